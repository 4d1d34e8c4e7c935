"""Exact verification: the ratio of the channel that the code really has, beside what is promised.

The report function itself is run with coins that take every branch, so what is compared are
integers, not samples. Where there are too many branches, the ratio that follows from the integer
thresholds is compared with epsilon, and the same family is enumerated on small domains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from deniable.audit.checks import Check, Verification, Worst
from deniable.audit.runs import Report, few_runs, remembered, worst_pair
from deniable.domain import Candidates, DomainLike, Text
from deniable.errors import InvalidArgument, require_type
from deniable.mechanisms import Mechanism
from deniable.mechanisms.memoised import Longitudinal, Memoised
from deniable.privacy import Guarantee, check_epsilon, exp_below

#: Runs of the report function, over all values, before enumeration is not tried.
MOST_RUNS = 200_000
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
    if not few_runs(report, values, most_runs):
        raise InvalidArgument("report", report, f"a function of at most {most_runs:,} runs")
    name = getattr(report, "__name__", "report")
    worst = worst_pair(report, values)
    check = Check("one report", name, "enumerated", worst, Guarantee(allowed), allowed)
    return Verification(f"{name}, epsilon = {epsilon:g}", (check,))


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


def _enumerated(m: Mechanism, most_runs: int) -> Iterator[Check]:
    """All checks that are small enough."""
    if isinstance(m.domain, (Text, Candidates)):
        return
    values = range(m.domain.size)
    if not few_runs(m.report, values, most_runs):
        return
    yield one_report(m)
    remembers = isinstance(m, Memoised) and m.domain.size <= MEMO_SIZE
    if remembers and few_runs(partial(remembered, m, 2), values, most_runs):
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
