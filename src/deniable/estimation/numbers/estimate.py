"""What is estimated of answers that are numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from deniable.errors import InvalidArgument
from deniable.estimation.estimate import Estimate, Quantity
from deniable.exports import SHOWN

#: The rows of `Numbers`, of which every mechanism knows the first.
MEAN, DEVIATION = "mean", "standard deviation"


class Statistic(NamedTuple):
    """One number about all answers, in their unit."""

    name: str
    value: float
    standard_error: float
    #: (low, high).
    interval: tuple[float, float]

    def scaled(self, lo: float, hi: float) -> Statistic:
        """That of answers from lo to hi, of one that is about numbers from 0 to 1."""
        width, (low, high) = hi - lo, self.interval
        ends = (lo + width * low, lo + width * high)
        return Statistic(self.name, lo + width * self.value, width * self.standard_error, ends)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Numbers(Estimate):
    """The mean of answers that are numbers from ``lo`` to ``hi``, and how they are spread.

    Where answers are ``clipped``, those outside count as the nearer end.
    """

    heading = "statistic"
    noun = "statistics"
    title = "Estimated mean"
    chosen = "first"

    lo: float
    hi: float
    clipped: bool = True

    @classmethod
    def of(cls, statistics: Sequence[Statistic], **about: Any) -> Self:
        """An estimate with these rows, the mean first."""
        names, values, errors, intervals = zip(*statistics, strict=True)
        lo, hi = about["lo"], about["hi"]
        words = f"answers {'clipped to' if about['clipped'] else 'in'} [{_plain(lo)}, {_plain(hi)}]"
        columns = (np.array(values), np.array(errors), np.array(intervals))
        one = Quantity(*columns, limits=(lo, hi), words=words)
        return cls(labels=names, quantities={"estimate": one}, **about)

    @property
    def mean(self) -> float:
        return self.statistic(MEAN).value

    @property
    def standard_error(self) -> float:
        """That of the mean."""
        return self.statistic(MEAN).standard_error

    @property
    def mean_interval(self) -> tuple[float, float]:
        """(low, high)."""
        return self.statistic(MEAN).interval

    def statistic(self, name: str) -> Statistic:
        """One of the rows."""
        if name not in self.labels:
            raise InvalidArgument("name", name, f"one of {', '.join(map(str, self.labels))}")
        row, one = self.labels.index(name), self.quantities["estimate"]
        low, high = one.intervals[row].tolist()
        return Statistic(name, float(one.values[row]), float(one.standard_errors[row]), (low, high))

    def shown(self, most: int = SHOWN) -> list[int]:
        """The first rows."""
        return list(range(min(most, len(self.labels))))

    @property
    def about(self) -> dict[str, Any]:
        """What the numbers are."""
        return {**super().about, "of": self.words, "lo": self.lo, "hi": self.hi}

    @property
    def words(self) -> str:
        """Which answers the numbers are about."""
        return self.quantities["estimate"].words


def _plain(number: float) -> str:
    return f"{number:,.12g}"
