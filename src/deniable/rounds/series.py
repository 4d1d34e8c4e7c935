"""The estimates of a repeated collection, one a round, in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from deniable.arrays import Floats
from deniable.core.domain import Label, in_order
from deniable.core.mechanism import Labelled, as_floats
from deniable.core.reports import Reports
from deniable.core.tally import Tally
from deniable.errors import InvalidArgument
from deniable.estimation import Estimate, Quantity
from deniable.estimation.estimate import check_truth
from deniable.exports import SHOWN, Exports, column
from deniable.rounds.rounds import Round, counted, require_reports


@dataclass(frozen=True, eq=False, repr=False)
class Series(Exports):
    """One estimate a round, all with the same choices.

    Each estimate knows nothing of the others: its interval is about its own round. Whether two
    rounds differ is another question (`Rounds.changes`), as is what they say together
    (`Rounds.pooled`).
    """

    chosen: ClassVar[str] = "first"

    #: The labels of the rounds.
    rounds: tuple[Round, ...]
    estimates: tuple[Estimate, ...]

    @classmethod
    def of(
        cls, rounds: Mapping[Round, Tally | Reports], method: str | None = None, **choices: Any
    ) -> Series:
        """Estimate every round by itself; choices as in `deniable.combine`."""
        require_reports(rounds)
        found = (
            part.mechanism.task.estimate([part], method, **choices) for part in rounds.values()
        )
        return cls(tuple(rounds), tuple(found))

    @property
    def values(self) -> tuple[Label, ...]:
        """The values that can be answered, or what else is estimated: the mean."""
        return self.estimates[0].labels

    @property
    def quantities(self) -> list[Quantity]:
        """What the series is of, in each round: the first quantity of its estimate."""
        return [next(iter(estimate.quantities.values())) for estimate in self.estimates]

    @property
    def n(self) -> tuple[int, ...]:
        """The number of reports in each round."""
        return tuple(estimate.n for estimate in self.estimates)

    @property
    def numbers(self) -> Floats:
        """Rounds x values."""
        return np.stack([one.values for one in self.quantities])

    @property
    def frequencies(self) -> Floats:
        """The numbers, of a series of shares."""
        if not self.quantities[0].share:
            raise InvalidArgument("series", self, "one of shares; this one has `numbers`")
        return self.numbers

    @property
    def standard_errors(self) -> Floats:
        """Rounds x values."""
        return np.stack([one.standard_errors for one in self.quantities])

    @property
    def intervals(self) -> Floats:
        """Rounds x values x (low, high)."""
        return np.stack([one.intervals for one in self.quantities])

    def columns(self) -> dict[str, list[Any]]:
        each = [estimate.columns() for estimate in self.estimates]
        k = len(self.values)
        return {
            "round": np.repeat(np.array(column(self.rounds), dtype=object), k).tolist(),
            **{name: [cell for one in each for cell in one[name]] for name in each[0]},
            "n": np.repeat(self.n, k).tolist(),
        }

    @property
    def about(self) -> dict[str, Any]:
        """What the numbers are."""
        first, known = self.estimates[0], self.estimates[0].about
        kinds = dict.fromkeys(estimate.errors for estimate in self.estimates)
        left_out = ("n", "certificate", *(first.skipped.about if first.skipped else ()))
        chosen = {key: value for key, value in known.items() if key not in left_out}
        return {"rounds": len(self.rounds), **chosen, "errors": " or ".join(kinds)}

    @property
    def interval_words(self) -> str:
        """What the intervals are, in words."""
        return replace(self.estimates[0], errors=self.about["errors"]).interval_words

    def shown(self, most: int = SHOWN) -> list[int]:
        """The first rows."""
        return list(range(min(most, len(self.rounds) * len(self.values))))

    def most_frequent(self, values: Iterable[Label] | None = None, most: int = 6) -> list[int]:
        """The places of ``values``, or of those most frequent over all rounds.

        Of other numbers than shares, the first: the mean.
        """
        if values is None and not self.quantities[0].share:
            return [0]
        if values is None:
            order = np.argsort(-np.average(self.frequencies, axis=0, weights=self.n), kind="stable")
            few: list[int] = order[:most].tolist()
            return few
        places = {label: i for i, label in enumerate(self.values)}
        wanted = list(dict.fromkeys(values))
        if not wanted or not all(value in places for value in wanted):
            raise InvalidArgument("values", values, f"some of {self.values[:SHOWN]}")
        return [places[value] for value in wanted]

    def aligned(self, truth: Labelled) -> Floats:
        """The true numbers (of a simulation), rounds x values."""
        shape, share = self.numbers.shape, self.quantities[0].share
        allowed = f"{'frequencies' if share else 'numbers'} of shape {shape} or {shape[1:]}"
        columns = _columns(truth)
        if columns is not None:
            ordered = in_order("truth", columns, self.values)
            rounds = [as_floats("truth", one, self.rounds) for one in ordered]
            if any(one.shape != shape[:1] for one in rounds):
                raise InvalidArgument("truth", truth, allowed)
            given = np.stack(rounds, axis=1)
        else:
            given = as_floats("truth", truth, self.values)
        if given.shape not in (shape, shape[1:]):
            raise InvalidArgument("truth", truth, allowed)
        return np.broadcast_to(check_truth(truth, given) if share else given, shape)

    def __str__(self) -> str:
        first = self.estimates[0]
        return (
            f"{first.method} {first.noun} of {counted(sum(self.n), 'report')} in {self.words}, "
            f"{first.source}"
        )

    @property
    def words(self) -> str:
        """How many rounds there are."""
        return counted(len(self.rounds), "round")


def _columns(truth: Any) -> Mapping[Any, Any] | None:
    """A column of rounds for each value, of a table or a mapping of lists; else None."""
    if isinstance(truth, Mapping):
        return truth if any(np.ndim(one) for one in truth.values()) else None
    if not hasattr(truth, "columns"):
        return None
    return {name: truth[name] for name in getattr(truth, "column_names", truth.columns)}
