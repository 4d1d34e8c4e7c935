"""Which mechanism suits a question: the one with the least error for the expected respondents.

A question that is asked again may be answered by a device that remembers, or with a part of the
budget in every round: both are tried.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from operator import itemgetter
from typing import Any

from deniable.core.domain import Domain
from deniable.core.mechanism import Mechanism
from deniable.core.registry import find, mechanisms
from deniable.core.task import Task, find_task
from deniable.errors import InvalidArgument
from deniable.privacy.guarantee import float_above, float_below
from deniable.privacy.memoised import log_replaced

AUTO = "auto"
#: Longer reports are not chosen, only taken if they are asked for.
MOST_BITS = 4096
#: Variances that differ by less count as equal; the shortest report wins.
EQUAL = 1.02
#: How near a budget that has to be searched for comes to the whole.
SHARPNESS = 1e-6


@dataclass(frozen=True)
class Requirements:
    """What a question may spend, and who is expected to answer how often."""

    domain: Domain
    epsilon: float
    respondents: int
    rounds: int = 1
    changes: int = 0
    epsilon_1: float | None = None
    design: dict[str, int] = field(default_factory=dict)
    #: What must be estimated, by the names of tasks; errors are compared by the first one.
    tasks: tuple[str, ...] = ()

    def build(self, name: str) -> Mechanism:
        """The mechanism of this name with all of the budget."""
        family = find(name)
        if not family.on_devices:
            raise InvalidArgument("mechanism", name, "one for devices; this one is for comparison")
        if allowed := family.unsuited(self.domain):
            raise InvalidArgument("mechanism", name, f"one for these answers: it takes {allowed}")
        told = family.tasks_for(self.domain)
        if missing := [task for task in self.tasks if task not in told]:
            raise InvalidArgument("mechanism", name, f"one that estimates the {missing[0]}")
        if self.epsilon_1 is not None and not _has_two_targets(family):
            raise InvalidArgument("epsilon_1", self.epsilon_1, f"left out for {name}")
        if self.rounds == 1 or not family.remembers:
            return self._of(family, float_below(Fraction(self.epsilon) / self.rounds))
        whole = Fraction(self.epsilon) - self._replaced()
        budget = float_below(whole / self._keys(family))
        return self._of(family, budget) if _has_two_targets(family) else self._kept(family, budget)

    def _keys(self, family: type[Mechanism]) -> int:
        """Permanent answers that a device can have: changes + 1, or all that there are."""
        remembering: Any = self._of(family, self.epsilon)
        return min(self.changes + 1, int(remembering.permanent_guarantee.keys))

    def _replaced(self) -> Fraction:
        """What is set aside for answers that need more keys than there are, rounded up."""
        log = log_replaced(self.rounds, self.changes + 1)
        return Fraction(float_above(log)) if log else Fraction(0)

    def _of(self, family: type[Mechanism], epsilon: float) -> Mechanism:
        """A member of the family with this first budget."""
        if unknown := set(self.design) - set(family.design):
            allowed = f"made of {', '.join(family.design) or 'nothing'} for {family.name}"
            raise InvalidArgument("design", sorted(unknown), allowed)
        named: dict[str, Any] = {
            **family.advised(self.domain, epsilon, self.respondents, self.tasks),
            **self.design,
        }
        if _has_two_targets(family):
            named["epsilon_1"] = self.epsilon_1
        return family(self.domain, epsilon, **named)

    def _kept(self, family: type[Mechanism], budget: float) -> Mechanism:
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

    def choose(self, among: Collection[str] | None = None) -> Mechanism:
        """The best by error; of those that are nearly as good, the one with short reports.

        ``among`` names the mechanisms to choose from (default: all).
        """
        tried = self._tried(mechanisms() if among is None else among)
        found = [(self._task(m).error(m, self.respondents) ** 2, m) for m in tried]
        if not found and self.epsilon_1 is not None:
            allowed = "left out where nothing is remembered, unless a mechanism is named"
            raise InvalidArgument("epsilon_1", self.epsilon_1, allowed)
        if not found:
            wanted = "".join(f", {task}" for task in self.tasks)
            allowed = f"named: none is chosen for {self.domain}{wanted}"
            raise InvalidArgument("mechanism", AUTO, allowed)
        least = min(variance for variance, _ in found)
        near = [
            (m.bits_per_report, variance, m) for variance, m in found if variance <= EQUAL * least
        ]
        return min(near, key=itemgetter(0, 1))[2]

    def _task(self, mechanism: Mechanism) -> Task:
        return find_task(self.tasks[0]) if self.tasks else mechanism.task

    def _tried(self, among: Collection[str]) -> Iterator[Mechanism]:
        for name, family in mechanisms().items():
            if name not in among:
                continue
            if not family.on_devices or not isinstance(self.domain, family.automatic):
                continue
            if family.unsuited(self.domain) or (family.remembers and self.rounds == 1):
                continue
            if not set(self.tasks) <= set(family.tasks_for(self.domain)):
                continue
            if self.epsilon_1 is not None and not _has_two_targets(family):
                continue
            if family.remembers and self.changes and not family.key_is_value:
                continue
            built = self.build(name)
            if built.bits_per_report <= MOST_BITS:
                yield built


def _has_two_targets(family: type[Mechanism]) -> bool:
    """Whether it has an epsilon for one report beside that for all of them."""
    return "epsilon_1" in family.budgets
