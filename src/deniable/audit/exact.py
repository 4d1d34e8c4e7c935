"""Exact verification: the ratio of the channel that the code really has, beside what is promised.

The report function itself is run with coins that take every branch, so what is compared are
integers, not samples. Where there are too many branches, the ratio that follows from the integer
thresholds is compared with epsilon, and the same family is enumerated on small domains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from random import Random
from typing import Any

from deniable.audit.checks import Check, Verification, Worst
from deniable.audit.encoding import frozen
from deniable.domain import Candidates, DomainLike, Text
from deniable.errors import InvalidArgument, require_type
from deniable.mechanisms import Mechanism
from deniable.mechanisms.memoised import Longitudinal, Memoised
from deniable.privacy import Guarantee, PathCoins, check_epsilon, enumerate_reports, exp_below
from deniable.randomness import Coins

Report = Callable[[Any, Coins], Any]

#: Runs of the report function, over all values, before enumeration is not tried.
MOST_RUNS = 200_000
#: Random walks to estimate the number of branches from.
WALKS = 20
#: Answers of the small relatives of a mechanism that is too large.
SMALL_SIZES = (2, 3, 5)
#: Kept draws and pairs of reports have many branches: they are enumerated for so many answers.
MEMO_SIZE = 3
#: What is checked of every mechanism, and of one that remembers.
ONCE = ("one report",)
MEMORY = ("what is kept", "two reports")


def verify(mechanism: Mechanism, *, most_runs: int = MOST_RUNS) -> Verification:
    """Compare the channel of a mechanism's code with its guarantee, and that with epsilon."""
    require_type("mechanism", mechanism, Mechanism)
    checks = list(_enumerated(mechanism, most_runs))
    if len(checks) < (3 if isinstance(mechanism, Memoised) else 1):
        checks = checks or [_from_thresholds(mechanism)]
        checks += [c for one in relatives(mechanism) for c in _enumerated(one, most_runs)]
    seen = {check.what for check in checks if check.method == "enumerated"}
    needed = ONCE if not isinstance(mechanism, Memoised) else (*ONCE, *MEMORY)
    unseen = tuple(what for what in needed if what not in seen)
    return Verification(str(mechanism), tuple(checks), unseen)


def verify_function(
    report: Report, values: Sequence[Any], epsilon: float, *, most_runs: int = MOST_RUNS
) -> Verification:
    """Enumerate any function of a value and `Coins`: a mechanism, a chain, a questionnaire.

    It may draw any number of coins, also one that depends on what was drawn; values may be
    anything, reports anything with a stable content.
    """
    allowed = exp_below(check_epsilon(epsilon))
    if len(values) < 2:
        raise InvalidArgument("values", values, "at least two values")
    runs = estimated_runs(report, values)
    if runs > most_runs:
        raise InvalidArgument("report", report, f"of at most {most_runs:,} runs; about {runs:.1e}")
    name = getattr(report, "__name__", "report")
    worst = worst_pair(report, values)
    check = Check("one report", name, "enumerated", worst, Guarantee(allowed), allowed)
    return Verification(f"{name}, epsilon = {epsilon:g}", (check,))


def worst_pair(report: Report, values: Iterable[Any]) -> Worst:
    """The report, and the two values, with the largest ratio of likelihoods."""
    names = list(values)
    laws = [enumerate_reports(_frozen(report), value) for value in names]
    if any(sum(law.values()) != 1 for law in laws):
        raise InvalidArgument("report", report, "a function that draws with probabilities of 0..1")
    worst = Worst(Fraction(1), names[0], names[1], None)
    for output in dict.fromkeys(y for law in laws for y in law):
        column = [law.get(output, Fraction(0)) for law in laws]
        high, low = max(column), min(column)
        ratio = high / low if low else None
        if ratio is None or (worst.ratio is not None and ratio > worst.ratio):
            pair = names[column.index(high)], names[column.index(low)]
            worst = Worst(ratio, *pair, output)
        if ratio is None:
            break
    return worst


def _frozen(report: Report) -> Report:
    return lambda value, coins: frozen(report(value, coins))


def estimated_runs(report: Report, values: Sequence[Any]) -> float:
    """The number of branches over all values: the mean size of random walks (Knuth 1975)."""
    walks = [_walk(report, value, Random(seed)) for value in values[:2] for seed in range(WALKS)]
    return len(values) * sum(walks) / len(walks)


def _walk(report: Report, value: Any, rng: Random) -> float:
    coins = WalkingCoins(rng)
    report(value, coins)
    size = 1.0
    for outcomes in coins.sizes:
        size = min(size * outcomes, 1e300)
    return size


class WalkingCoins(PathCoins):
    """Coins that take any outcome of each draw, all being equally likely."""

    def __init__(self, rng: Random) -> None:
        super().__init__([])
        self._rng = rng

    def _next(self, size: int) -> int:
        self.sizes.append(size)
        return self._rng.randrange(size)


# ---- mechanisms


def one_report(m: Mechanism) -> Check:
    """One report costs at most `once`, and that at most epsilon_1; both hardly more."""
    worst = worst_pair(m.report, range(m.domain.size))
    allowed = exp_below(m.epsilon_1)
    return Check("one report", str(m), "enumerated", worst, m.once, allowed, m.spends_all)


def memory(m: Any) -> Iterator[Check]:
    """What is kept costs what all reports together do; two reports cost what is stated."""
    stated, allowed = m.permanent_guarantee, _in_all(m)
    promises = ((0, stated), (2, stated.exactly(2)))
    for what, (reports, promise) in zip(MEMORY, promises, strict=True):
        worst = worst_pair(partial(remembered, m, reports), range(m.domain.size))
        yield Check(what, str(m), "enumerated", worst, promise, allowed, False)


def _in_all(m: Any) -> Fraction:
    """What all reports may cost: a target of its own, or what is stated where there is none."""
    if isinstance(m, Longitudinal):
        return exp_below(m.epsilon_inf)
    ratio: Fraction = m.permanent_guarantee.ratio
    return ratio


def remembered(m: Any, reports: int, value: int, coins: Coins) -> Any:
    """What an observer learns from some reports made from one draw; for 0 reports, the draw."""
    begun = m.begin(coins)
    kept = m.memoise(begun, m.key(begun, value), coins)
    if not reports:
        return begun, kept
    return tuple(m.instant(begun, kept, coins) for _ in range(reports))


def _enumerated(m: Mechanism, most_runs: int) -> Iterator[Check]:
    """All checks that are small enough."""
    if isinstance(m.domain, (Text, Candidates)):
        return
    values = range(m.domain.size)
    if estimated_runs(m.report, values) > most_runs:
        return
    yield one_report(m)
    remembers = isinstance(m, Memoised) and m.domain.size <= MEMO_SIZE
    if remembers and estimated_runs(partial(remembered, m, 2), values) <= most_runs:
        yield from memory(m)


def _from_thresholds(m: Mechanism) -> Check:
    """`once` was computed from the integers of the channel; compare it with epsilon_1."""
    worst = Worst(m.once.ratio, None, None, None)
    allowed = exp_below(m.epsilon_1)
    return Check("one report", str(m), "from thresholds", worst, m.once, allowed, m.spends_all)


def relatives(m: Mechanism) -> Iterator[Mechanism]:
    """The same family, epsilons and calibration with few answers.

    Integers that do not depend on the number of answers are those of the mechanism itself, unless
    it needs another design to be small.
    """
    family = type(m)
    sizes = (family.only_size,) if family.only_size else SMALL_SIZES
    small = [_relative(m, size, {}) for size in sizes]
    same = all(len({getattr(one, name) for one in small}) == 1 for name in m.thresholds)
    own = {name: getattr(m, name) for name in (*m.design, *m.thresholds)}
    for one in small:
        try:
            yield _relative(m, one.domain, own) if same and not m.small_design else one
        except InvalidArgument:  # a design that so few answers cannot have
            yield one


def _relative(m: Mechanism, domain: DomainLike, integers: dict[str, int]) -> Mechanism:
    extra: dict[str, Any] = {**m.small_design, **integers}
    if isinstance(m, Longitudinal):
        extra["calibration"] = "exact" if m.exact else "paper"
    return type(m)(domain, *(getattr(m, name) for name in m.budgets), **extra)
