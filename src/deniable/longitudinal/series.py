"""The estimates of a repeated collection, one a round, in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from deniable.domain import Label, in_order
from deniable.errors import InvalidArgument
from deniable.estimation import Estimate, combine
from deniable.estimation.estimate import check_truth
from deniable.estimation.exports import SHOWN, Exports, column
from deniable.longitudinal.rounds import Round, counted, require_reports
from deniable.mechanisms.base import Floats, Labelled, as_floats
from deniable.reports import Reports
from deniable.tally import Tally

if TYPE_CHECKING:
    import altair as alt
    from rich.table import Table

    from deniable.longitudinal.changes import Changes


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
        found = [combine([part], method, **choices) for part in rounds.values()]
        return cls(tuple(rounds), tuple(found))

    @property
    def values(self) -> tuple[Label, ...]:
        """The values that can be answered."""
        return self.estimates[0].labels

    @property
    def n(self) -> tuple[int, ...]:
        """The number of reports in each round."""
        return tuple(estimate.n for estimate in self.estimates)

    @property
    def frequencies(self) -> Floats:
        """Rounds x values."""
        return np.stack([estimate.frequencies for estimate in self.estimates])

    @property
    def standard_errors(self) -> Floats:
        """Rounds x values."""
        return np.stack([estimate.standard_errors for estimate in self.estimates])

    @property
    def intervals(self) -> Floats:
        """Rounds x values x (low, high)."""
        return np.stack([estimate.intervals for estimate in self.estimates])

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
        known = self.estimates[0].about
        kinds = dict.fromkeys(estimate.errors for estimate in self.estimates)
        left_out = ("n", "certificate")
        chosen = {key: value for key, value in known.items() if key not in left_out}
        return {"rounds": len(self.rounds), **chosen, "errors": " or ".join(kinds)}

    @property
    def interval_words(self) -> str:
        """What the intervals are, in words."""
        return replace(self.estimates[0], errors=self.about["errors"]).interval_words

    def plot(
        self,
        truth: Labelled | None = None,
        values: Iterable[Label] | None = None,
        changes: Changes | None = None,
    ) -> alt.LayerChart:
        """A line with a band of intervals for each of some values, by default the most frequent.

        ``truth`` (of a simulation; rounds x values, or values if it is stable) is dotted, and
        flagged ``changes`` are marked. What has labels is aligned by them.
        """
        from deniable.studio.timelines import series_chart

        known = None if truth is None else self._truth(truth)
        chart: alt.LayerChart = series_chart(self, known, self.most_frequent(values), changes)
        return chart

    def save(self, path: str | Path, **choices: Any) -> Path:
        """Save `plot` as .html (one file that works offline), .png or .svg."""
        from deniable.studio.charts import save

        return save(self.plot(**choices), Path(path))

    def table(self, values: Iterable[Label] | None = None, width: int = 80) -> Table:
        """A table for the terminal: one row a round, a column for each of some values.

        It shows as many of ``values``, by default the most frequent, as fit into ``width``.
        """
        from deniable.studio.tables import series_table

        return series_table(self, self.most_frequent(values), width)

    def shown(self, most: int = SHOWN) -> list[int]:
        """The first rows."""
        return list(range(min(most, len(self.rounds) * len(self.values))))

    def most_frequent(self, values: Iterable[Label] | None = None, most: int = 6) -> list[int]:
        """The places of ``values``, or of those most frequent over all rounds."""
        if values is None:
            order = np.argsort(-np.average(self.frequencies, axis=0, weights=self.n), kind="stable")
            few: list[int] = order[:most].tolist()
            return few
        places = {label: i for i, label in enumerate(self.values)}
        wanted = list(dict.fromkeys(values))
        if not wanted or not all(value in places for value in wanted):
            raise InvalidArgument("values", values, f"some of {self.values[:SHOWN]}")
        return [places[value] for value in wanted]

    def _truth(self, truth: Labelled) -> Floats:
        shape = self.frequencies.shape
        allowed = f"frequencies of shape {shape} or {shape[1:]}"
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
        return np.broadcast_to(check_truth(truth, given), shape)

    def __str__(self) -> str:
        first = self.estimates[0]
        return (
            f"{first.method} frequencies of {counted(sum(self.n), 'report')} in {self.words}, "
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
