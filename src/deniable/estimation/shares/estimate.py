"""What is estimated of sets of answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from deniable.arrays import Floats
from deniable.core.domain import Label
from deniable.core.mechanism import Labelled
from deniable.estimation.estimate import Estimate, Quantity, check_truth
from deniable.estimation.numbers.statistic import Statistic

#: What charts call the shares.
WORDS = "share of people (several answers possible)"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Shares(Estimate):
    """Which share of the people ticked each answer; as several are possible, the sum is not 1.

    ``ticks`` is the mean number of answers that a person ticked: the sum of the shares, with an
    error of its own, for answers go together or exclude one another.
    """

    noun = "shares"
    title = "Estimated shares"
    chosen = "most frequent"

    ticks: Statistic

    @property
    def shares(self) -> Floats:
        return self.quantities["share"].values

    @property
    def standard_errors(self) -> Floats:
        return self.quantities["share"].standard_errors

    @property
    def intervals(self) -> Floats:
        """One row (low, high) an answer."""
        return self.quantities["share"].intervals

    @property
    def about(self) -> dict[str, Any]:
        """What the numbers are."""
        low, high = self.ticks.interval
        return {
            **super().about,
            "ticks": self.ticks.value,
            "ticks_standard_error": self.ticks.standard_error,
            "ticks_low": low,
            "ticks_high": high,
        }

    @property
    def remarks(self) -> list[str]:
        low, high = self.ticks.interval
        half = float(f"{(high - low) / 2:.2g}")
        digits = max(0, 1 - math.floor(math.log10(half))) if half else 2
        mean = f"{self.ticks.value:.{digits}f} ± {half:.{digits}f}"
        return [f"The mean number of answers is {mean}.", *super().remarks]

    def aligned(self, truth: Labelled) -> Floats:
        return check_truth(truth, super().aligned(truth))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Pairs(Estimate):
    """Which share of the people ticked both answers of a pair, and whether they go together.

    The association of u and v is f_uv - f_u f_v: above 0 if those who ticked one ticked the other
    more often than everybody did.
    """

    heading = "pair"
    noun = "shares of pairs"
    title = "Answers that go together"
    chosen = "most frequent"

    #: The two answers of each row.
    answers: tuple[tuple[Label, Label], ...]

    @property
    def clear(self) -> list[int]:
        """The rows whose association is not 0: its interval does not hold 0."""
        low, high = self.quantities["association"].intervals.T
        found: list[int] = np.flatnonzero((low > 0) | (high < 0)).tolist()
        return found

    def _of(self, labels: tuple[Label, ...], quantities: Mapping[str, Quantity]) -> Self:
        known = dict(zip(self.labels, self.answers, strict=True))
        answers = tuple(known[label] for label in labels)
        return replace(self, labels=labels, quantities=quantities, answers=answers)
