"""Which mechanism suits a question: the one with the least variance for the expected respondents.

A question that is asked again may be answered by a device that remembers, or with a part of the
budget in every round: both are tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.domain import Domain, Text
from deniable.errors import InvalidArgument
from deniable.mechanisms import Mechanism, find
from deniable.mechanisms.cohorts import CohortMechanism
from deniable.mechanisms.memoised import Longitudinal, Memoised
from deniable.privacy.guarantee import float_above, float_below
from deniable.privacy.lasting import log_replaced

AUTO = "auto"
LISTED = ("brr", "grr", "oue", "ss", "olh", "hr", "hrr")
LISTED_AGAIN = ("lgrr", "losue", "lsoue", "loue", "lolh")
ANY_TEXT = ("orr", "hcms")
ANY_TEXT_AGAIN = ("rappor",)
#: Longer reports are not chosen, only taken if they are asked for.
MOST_BITS = 4096
#: Variances that differ by less count as equal; the shortest report wins.
EQUAL = 1.02
#: How near a budget that has to be searched for comes to the whole.
SHARPNESS = 1e-6


@dataclass(frozen=True)
class Terms:
    """What a question may spend, and who is expected to answer how often."""

    domain: Domain
    epsilon: float
    respondents: int
    rounds: int = 1
    changes: int = 0
    epsilon_1: float | None = None
    design: dict[str, int] = field(default_factory=dict)

    def build(self, name: str) -> Mechanism:
        """The mechanism of this name with all of the budget."""
        family: Any = find(name)
        again = self.rounds > 1 and issubclass(family, Memoised)
        parts = self._keys(family) if again else self.rounds
        whole = Fraction(self.epsilon) - (self._replaced() if again else 0)
        budget = float_below(whole / parts)
        if self.epsilon_1 is not None and not issubclass(family, Longitudinal):
            raise InvalidArgument("epsilon_1", self.epsilon_1, f"left out for {name}")
        if again and not issubclass(family, Longitudinal):
            return self._of_permanent(family, budget)
        return self._of(family, budget)

    def _keys(self, family: Any) -> int:
        """Permanent answers that a device can have: changes + 1, or all that there are."""
        listed = not isinstance(self.domain, Text) and not issubclass(family, CohortMechanism)
        return min(self.changes + 1, self.domain.size) if listed else self.changes + 1

    def _replaced(self) -> Fraction:
        """What is set aside for answers that need more keys than there are, rounded up."""
        log = log_replaced(self.rounds, self.changes + 1)
        return Fraction(float_above(log)) if log else Fraction(0)

    def _of(self, family: Any, epsilon: float) -> Mechanism:
        """A member of the family with this first budget."""
        extra: dict[str, Any] = dict(self.design)
        if unknown := set(extra) - set(family.design):
            allowed = f"made of {', '.join(family.design) or 'nothing'} for {family.name}"
            raise InvalidArgument("design", sorted(unknown), allowed)
        if issubclass(family, Longitudinal):
            extra["epsilon_1"] = self.epsilon_1
        if issubclass(family, CohortMechanism) and isinstance(self.domain, Text):
            extra = {**family.suggest(epsilon, self.respondents), **extra}
        built: Mechanism = family(self.domain, epsilon, **extra)
        return built

    def _of_permanent(self, family: Any, budget: float) -> Mechanism:
        """The member whose permanent step costs this much, where epsilon is that of one report."""

        def fits(epsilon: float) -> bool:
            built: Any = self._of(family, epsilon)
            return bool(built.epsilon_inf <= budget)

        if fits(budget):
            return self._of(family, budget)
        low, high = 0.0, budget
        while high - low > SHARPNESS * budget:
            middle = (low + high) / 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return self._of(family, low)

    def choose(self) -> Mechanism:
        """The best by variance; of those that are nearly as good, the one with short reports."""
        if self.epsilon_1 is not None and (self.rounds == 1 or isinstance(self.domain, Text)):
            allowed = "left out where nothing is remembered, unless a mechanism is named"
            raise InvalidArgument("epsilon_1", self.epsilon_1, allowed)
        found = [(self.predicted(m), m) for m in self._tried()]
        least = min(variance for variance, _ in found)
        near = [m for variance, m in found if variance <= EQUAL * least]
        return min(near, key=lambda m: m.bits_per_report)

    def predicted(self, m: Mechanism) -> float:
        """The mean variance of a frequency in one round, where all values are alike."""
        if isinstance(self.domain, Text):
            m = m.among(["one", "another"])
            return float(np.max(m.variance(self.respondents, [0.0] * m.domain.size)))
        return float(m.variance(self.respondents, 1 / self.domain.size))

    def _tried(self) -> Iterator[Mechanism]:
        text = isinstance(self.domain, Text)
        names = ANY_TEXT if text else LISTED
        again = ANY_TEXT_AGAIN if text else LISTED_AGAIN
        for name in (*names, *again) if self.rounds > 1 else names:
            family = find(name)
            if self.epsilon_1 is not None and not issubclass(family, Longitudinal):
                continue
            if not text and family.only_size not in (None, self.domain.size):
                continue
            if self.changes and not getattr(family, "key_is_value", True):
                continue
            built = self.build(name)
            if built.bits_per_report <= MOST_BITS:
                yield built
