"""What changed between rounds, with a stated rate of false alarms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from deniable.arrays import Bools, Floats
from deniable.core.domain import Label
from deniable.errors import InvalidArgument
from deniable.estimation.frequencies.estimator import asked
from deniable.estimation.frequencies.intervals import simultaneous_confidence
from deniable.exports import SHOWN, Exports, column
from deniable.mechanisms.frequency import require_oracle
from deniable.rounds.pooling import check_respondents
from deniable.rounds.rounds import Round, Rounds, counted, require_reports
from deniable.rounds.tests import RoundEstimate, difference_intervals, p_values

#: The least false-alarm rate of one comparison: its confidence 1 - rate must keep some digits.
LEAST_ALARM = 1e-11


@dataclass(frozen=True, eq=False, repr=False)
class Changes(Exports):
    """Comparisons x values: differences of unbiased frequencies, and which are more than chance.

    ``p_values`` are adjusted for all comparisons and values (Holm 1979): where one is at most
    ``false_alarm``, the change is ``flagged``. If nothing changes, the probability that anything is
    flagged is at most ``false_alarm``. Of fresh respondents, if only some values change, so is the
    probability that another one is flagged; of the same ones a flag says that some of them moved,
    and whoever moves draws anew what is kept about all values. ``intervals`` hold for all
    differences together with the confidence 1 - ``false_alarm``; Holm's procedure may see a little
    more than they do.
    """

    entries: ClassVar[str] = "comparisons"
    chosen: ClassVar[str] = "clearest"

    #: The rounds (from, to) of each comparison.
    pairs: tuple[tuple[Round, Round], ...]
    values: tuple[Label, ...]
    differences: Floats
    #: Comparisons x values x (low, high).
    intervals: Floats
    p_values: Floats
    false_alarm: float
    respondents: str
    #: "exact" or "normal".
    test: str
    #: The mechanism it came from, in words.
    source: str

    @property
    def flagged(self) -> Bools:
        """Comparisons x values."""
        return self.p_values <= self.false_alarm

    def columns(self) -> dict[str, list[Any]]:
        k, low_high = len(self.values), self.intervals.reshape(-1, 2)
        labels = np.array(column([label for pair in self.pairs for label in pair]), dtype=object)
        return {
            "from": np.repeat(labels[::2], k).tolist(),
            "to": np.repeat(labels[1::2], k).tolist(),
            "value": column(self.values) * len(self.pairs),
            "difference": self.differences.ravel().tolist(),
            "low": low_high[:, 0].tolist(),
            "high": low_high[:, 1].tolist(),
            "p_value": self.p_values.ravel().tolist(),
            "flagged": self.flagged.ravel().tolist(),
        }

    @property
    def about(self) -> dict[str, Any]:
        """What the numbers are."""
        return {
            "false_alarm": self.false_alarm,
            "respondents": self.respondents,
            "test": self.test,
            "mechanism": self.source,
        }

    @property
    def interval_words(self) -> str:
        """What the intervals are, in words."""
        return f"{100 * (1 - self.false_alarm):.6g} % simultaneous intervals"

    def shown(self, most: int = SHOWN) -> list[int]:
        """The comparisons with the least p-values."""
        order: list[int] = np.argsort(self.p_values, axis=None, kind="stable")[:most].tolist()
        return order

    def __str__(self) -> str:
        flagged = counted(int(self.flagged.sum()), "change")
        some = f"{flagged} flagged in {counted(self.flagged.size, 'comparison')}"
        return f"{some} ({self.test} tests, {self.respondents} respondents), {self.source}"


def compare(
    rounds: Rounds,
    false_alarm: float,
    respondents: str,
    baseline: Round | None,
    candidates: Iterable[str] | None,
) -> Changes:
    """The work of `Rounds.changes`."""
    check_respondents(respondents)
    require_oracle(rounds.mechanism)
    if rounds.mechanism.domain.optional:
        words = "one that nobody may skip: changes among those who answered are not compared yet"
        raise InvalidArgument("question", rounds.mechanism.domain, words)
    pairs = _pairs(rounds.labels, baseline)
    sides = {label: RoundEstimate.of(tally) for label, tally in _asked(rounds, candidates).items()}
    compared = [(sides[r], sides[s]) for r, s in pairs]
    first = compared[0][0]
    size = len(compared) * first.x.size
    allowed = check_false_alarm(false_alarm, size)
    level = simultaneous_confidence(1 - allowed, size)
    same = respondents == "same"
    mechanism = first.part.mechanism
    return Changes(
        pairs=tuple(pairs),
        values=tuple(mechanism.domain.listed),
        differences=np.array([s.x - r.x for r, s in compared]),
        intervals=np.array([difference_intervals(r, s, same, level) for r, s in compared]),
        p_values=holm(np.array([p_values(r, s, same) for r, s in compared])),
        false_alarm=allowed,
        respondents=respondents,
        test="normal" if same or first.supports is None else "exact",
        source=str(mechanism),
    )


def holm(p: Floats) -> Floats:
    """Adjusted p-values: the i-th smallest of m times m - i + 1, made monotone, at most 1.

    Whatever the dependence, flagging those of at most alpha makes a false alarm with at most alpha.
    """
    order = np.argsort(p, axis=None)
    scaled = p.ravel()[order] * np.arange(p.size, 0, -1)
    adjusted = np.empty(p.size)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted.reshape(p.shape)


def check_false_alarm(false_alarm: Any, comparisons: int) -> float:
    """``false_alarm``, if it is a probability that is not too small for so many comparisons."""
    least = LEAST_ALARM * comparisons
    number = float(false_alarm) if isinstance(false_alarm, (int, float)) else -1.0
    if not least <= number < 1:
        allowed = f"a number from {least:.2g} to below 1"
        raise InvalidArgument("false_alarm", false_alarm, allowed)
    return number


def _pairs(labels: Sequence[Round], baseline: Round | None) -> list[tuple[Round, Round]]:
    if len(labels) < 2:
        raise InvalidArgument("rounds", labels, "at least two rounds")
    if baseline is None:
        return list(pairwise(labels))
    if baseline not in labels:
        raise InvalidArgument("baseline", baseline, f"one of {tuple(labels)}")
    return [(baseline, label) for label in labels if label != baseline]


def _asked(rounds: Rounds, candidates: Iterable[str] | None) -> dict[Round, Any]:
    """The tally of each round, about the candidates where the answers were any text."""
    tallies = rounds.tallies()
    require_reports(tallies)
    return dict(zip(tallies, asked(list(tallies.values()), candidates), strict=True))
