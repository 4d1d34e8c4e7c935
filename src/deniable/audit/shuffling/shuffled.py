"""What anonymity adds: the central (epsilon, delta) of a shuffled batch of local reports.

If only the multiset of the reports is seen, a person's report hides among all others. Feldman,
McMillan and Talwar (2021) for any mechanism; Balle et al. (2019) for known ones; `clones` has the
mathematics. The promise is about two batches that differ in one person's answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from deniable.audit.shuffling.amplification import Clones, delta_above, delta_counted, delta_seen
from deniable.errors import InvalidArgument, is_number, require_int
from deniable.mechanisms import Mechanism
from deniable.mechanisms.frequency import oracle_of
from deniable.privacy import check_epsilon, exp_below
from deniable.privacy.guarantee import log_above

#: What must hold; a caller states each by name.
CONDITIONS = {
    "no_ids": "nothing that tells who sent a report reaches the analyst: no name, account or "
    "address, and no hash function, cohort or set of bits that a device keeps",
    "no_order": "the reports reach the analyst in an order that says nothing about their arrival",
    "no_times": "exact times are dropped; a batch has one time for all",
    "no_collusion": "whoever drops these does not work with the analyst and keeps nothing",
    "one_report": "a person has one report in the batch; several batches, or reports over time, "
    "are not anonymous among themselves and must be added up",
}
#: Honest people that are reckoned with.
MOST_HONEST = 10**9
#: The search for epsilon ends within this relative distance, above it.
PRECISION = 1e-6


@dataclass(frozen=True)
class Shuffled:
    """A batch of reports of ``honest`` people is (epsilon, delta)-DP, under the ``conditions``."""

    epsilon: float
    delta: float
    #: What each report promises on its own, whatever becomes of the conditions.
    local_epsilon: float
    honest: int
    #: Which analysis holds: "any mechanism", or that of a family.
    analysis: str
    #: The published formula for any mechanism; None where it does not apply.
    closed_form: float | None
    #: No analysis can promise less than this at the same delta: an explicit attack achieves it.
    at_least: float
    conditions: tuple[str, ...]

    def sentences(self) -> list[str]:
        """The promise and what it rests on, in plain words."""
        return [
            f"If {self.honest:,} people answer honestly and the conditions hold, whoever sees the "
            f"batch learns about one person at most what epsilon = {_up(self.epsilon)} with "
            f"delta = {self.delta:g} allows.",
            f"Without them the report itself still promises epsilon = {_up(self.local_epsilon)}.",
            *(f"Condition: {words}." for words in self.conditions),
        ]

    def __str__(self) -> str:
        central = f"({_up(self.epsilon)}, {self.delta:g})-DP"
        return f"{central} among {self.honest:,} honest people, {self.analysis}, if shuffled"


def shuffled(
    mechanism: Mechanism | float, *, honest: int, delta: float, conditions: Iterable[str]
) -> Shuffled:
    """The central epsilon of a shuffled batch, rounded up.

    ``mechanism`` makes one report a person; its epsilon alone gives what holds for any mechanism.
    ``honest`` counts people who follow the protocol, not reports: those of liars hide nobody.
    ``conditions`` are the names of all `CONDITIONS`, as a statement that they hold; `CONDITIONS`
    itself states them all.
    """
    stated = _stated(conditions)
    n = require_int("honest", honest, 1, MOST_HONEST)
    allowed = _probability(delta)
    case = _case(mechanism)
    ratio_epsilon = log_above(case.ratio)
    epsilon = _least(lambda e: delta_above(case.clones, n, e), allowed, ratio_epsilon, up=True)
    return Shuffled(
        epsilon=epsilon,
        delta=allowed,
        local_epsilon=ratio_epsilon,
        honest=n,
        analysis=case.analysis,
        closed_form=closed_form(ratio_epsilon, n, allowed),
        at_least=_least(lambda e: case.attack(n, e), allowed, epsilon, up=False),
        conditions=stated,
    )


def shuffled_delta(
    mechanism: Mechanism | float, epsilon: float, *, honest: int, conditions: Iterable[str]
) -> float:
    """An upper bound on the delta of a shuffled batch at this central epsilon; see `shuffled`."""
    _stated(conditions)
    n = require_int("honest", honest, 1, MOST_HONEST)
    if not is_number(epsilon) or not 0 <= epsilon < math.inf:
        raise InvalidArgument("epsilon", epsilon, "a number of at least 0")
    return delta_above(_case(mechanism).clones, n, float(epsilon))


def closed_form(local_epsilon: float, n: int, delta: float) -> float | None:
    """Feldman, McMillan and Talwar (2021), theorem 3.1; None beyond its range.

    epsilon = ln(1 + (r - 1) / (r + 1) (8 sqrt(r ln(4 / delta) / n) + 8 r / n)) with r = e^epsilon0,
    for epsilon0 <= ln(n / (16 ln(2 / delta))).
    """
    r = math.exp(local_epsilon)
    if r > n / (16 * math.log(2 / delta)):
        return None
    spread = 8 * math.sqrt(r * math.log(4 / delta) / n) + 8 * r / n
    return math.log1p((r - 1) / (r + 1) * spread)


@dataclass(frozen=True)
class _Case:
    """A mechanism as far as shuffling is concerned."""

    ratio: Fraction
    analysis: str
    #: Its a and b are those of a pair of answers (in general: of binary randomised response).
    clones: Clones
    #: The probability of the same reports under a third answer, if there is one.
    third: Fraction | None = None

    def attack(self, n: int, epsilon: float) -> float:
        """A delta that an analyst achieves who knows everybody else's answer.

        All others answer x: count the reports that point to x' only, sent with b or a. Or all
        answer something third: count those for x only and for x' only.
        """
        found = delta_counted(self.clones.own, self.clones.other, n, epsilon)
        if self.third is None:
            return found
        visible = Clones(self.clones.own, self.clones.other, self.third, 1 - 2 * self.third)
        return max(found, delta_seen(visible, n, epsilon))


def _case(mechanism: Any) -> _Case:
    if not isinstance(mechanism, Mechanism):
        return _any(exp_below(check_epsilon(mechanism, "mechanism")))
    oracle, ratio = oracle_of(mechanism), mechanism.once.ratio
    if oracle is None or oracle.chances is None:
        return _any(ratio)
    p, q = oracle.chances
    if oracle.blanket is not None:
        split = Clones.drawn(p - q, oracle.blanket)
        third = split.cover if oracle.domain.size > 2 else None
        return _Case(ratio, "k-RR", split, third=third)
    if oracle.bitwise:
        third = q * (1 - q) if oracle.domain.size > 2 else None
        return _Case(ratio, "unary encoding", Clones.varied(ratio, p - q), third=third)
    return _any(ratio)


def _any(ratio: Fraction) -> _Case:
    return _Case(ratio, "any mechanism", Clones.general(ratio))


def _least(delta_at: Callable[[float], float], delta: float, most: float, *, up: bool) -> float:
    """The least epsilon at which delta_at is at most delta, from above or from below."""
    low, high = 0.0, most
    if delta_at(low) <= delta:
        return 0.0
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        low, high = (low, middle) if delta_at(middle) <= delta else (middle, high)
    return high if up else low


def _stated(conditions: Any) -> tuple[str, ...]:
    """All conditions in words, if the caller states all; in a mapping a False denies one."""
    given = _names(conditions)
    missing = [f"{name} ({words})" for name, words in CONDITIONS.items() if name not in given]
    unknown = [str(name) for name in given if name not in list(CONDITIONS)]
    if missing or unknown:
        allowed = f"the names of all conditions, for instance {list(CONDITIONS)}, "
        allowed += "because shuffling promises nothing otherwise"
        allowed += f"; not stated: {'; '.join(missing)}" if missing else ""
        allowed += f"; not known: {', '.join(unknown)}" if unknown else ""
        raise InvalidArgument("conditions", conditions, allowed)
    return tuple(CONDITIONS.values())


def _names(conditions: Any) -> list[Any]:
    if isinstance(conditions, Mapping):
        return [name for name, holds in conditions.items() if holds]
    if isinstance(conditions, str):
        return [conditions]
    return list(conditions) if isinstance(conditions, Iterable) else []


def _probability(delta: Any) -> float:
    if not is_number(delta) or not 1e-300 <= delta < 1:
        raise InvalidArgument("delta", delta, "a probability of 1e-300..1, for instance 1e-6")
    return float(delta)


def _up(number: float) -> str:
    """Four digits, never less than the number."""
    if number == 0:
        return "0"
    step = 10.0 ** (math.floor(math.log10(number)) - 3)
    return f"{math.ceil(number / step) * step:.4g}"
