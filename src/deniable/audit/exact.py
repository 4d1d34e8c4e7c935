"""Exact verification: the ratio of the channel that the code really has, beside what is promised.

The report function itself is run with coins that take every branch, so what is compared are
integers, not samples. Where there are too many branches, the ratio that follows from the integer
thresholds is compared with epsilon, the same family is enumerated on small domains, and the
mechanism itself is looked at on some walks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

from deniable.audit.checks import Check, Verification, Walks, Worst
from deniable.audit.runs import Report, few_runs, remembered, worst_pair
from deniable.audit.walks import walk
from deniable.domain import Candidates, DomainLike, Text
from deniable.errors import InvalidArgument, require_type
from deniable.mechanisms import BRR, Mechanism
from deniable.mechanisms.memoised import Longitudinal, Memoised
from deniable.mechanisms.questionnaire import Questionnaire
from deniable.privacy import Guarantee, check_epsilon, exp_below

#: Runs of the report function, over all values, before enumeration is not tried.
MOST_RUNS = 200_000
#: Answers of the small relatives of a mechanism that is too large.
SMALL_SIZES = (2, 3, 5)
#: Kept draws and pairs of reports have many branches: they are enumerated for so many answers.
MEMO_SIZE = 3
#: Questions of a questionnaire of yes/no questions, if the real one is too large.
STAND_INS = 8
#: What is checked of every mechanism, and of one that remembers.
ONCE = ("one report",)
MEMORY = ("what is kept", "two reports")


def verify(mechanism: Mechanism | Questionnaire, *, most_runs: int = MOST_RUNS) -> Verification:
    """Compare the channel of the code with its guarantee, and that with epsilon."""
    if isinstance(mechanism, Questionnaire):
        return _questionnaire(mechanism, most_runs)
    require_type("mechanism", mechanism, Mechanism)
    needed = (*ONCE, *MEMORY) if isinstance(mechanism, Memoised) else ONCE
    checks = list(_enumerated(mechanism, most_runs))
    if len(checks) == len(needed):
        return Verification(str(mechanism), tuple(checks))
    for own in (True, False):
        small = {one: list(_enumerated(one, most_runs)) for one in relatives(mechanism, own=own)}
        small = {one: found for one, found in small.items() if len(found) > len(checks)}
        if small:  # a design for many answers may be too large for few
            break
    instead = _instead(small, "memory " if checks else "")
    checks = checks or [_from_thresholds(mechanism)]
    checks += [check for found in small.values() for check in found]
    seen = {check.what for check in checks if check.method == "enumerated"}
    unseen = tuple(what for what in needed if what not in seen)
    walks = walk(mechanism, list(small))
    return Verification(str(mechanism), tuple(checks), unseen, instead, walks)


def _instead(small: Iterable[Mechanism], what: str) -> str:
    """Which relatives were enumerated."""
    sizes = [str(one.domain.size) for one in small]
    if not sizes:
        return ""
    listed = " and ".join([", ".join(sizes[:-1]), sizes[-1]] if sizes[1:] else sizes)
    design = " of a smaller design" if any(one.small_design for one in small) else ""
    return f"{what}enumerated for {listed} answers{design}"


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


def relatives(m: Mechanism, *, own: bool = True) -> Iterator[Mechanism]:
    """The same family, epsilons and calibration with few answers.

    Where ``own``, integers that do not depend on the number of answers are those of the mechanism
    itself, unless it needs another design to be small.
    """
    family = type(m)
    sizes = (family.only_size,) if family.only_size else SMALL_SIZES
    small = [_relative(m, size, {}) for size in sizes]
    same = all(len({getattr(one, name) for one in small}) == 1 for name in m.thresholds)
    integers = {name: getattr(m, name) for name in (*m.design, *m.thresholds)}
    for one in small:
        try:
            keeps = own and same and not m.small_design
            yield _relative(m, one.domain, integers) if keeps else one
        except InvalidArgument:  # a design that so few answers cannot have
            yield one


def _relative(m: Mechanism, domain: DomainLike, integers: dict[str, int]) -> Mechanism:
    extra: dict[str, Any] = {**m.small_design, **integers}
    if isinstance(m, Longitudinal):
        extra["calibration"] = "exact" if m.exact else "paper"
    return type(m)(domain, *(getattr(m, name) for name in m.budgets), **extra)


# ---- questionnaires


def _questionnaire(q: Questionnaire, most_runs: int) -> Verification:
    """All answers together; where these are too many, from what its questions cost.

    Then every mechanism is verified alone, and the way in which reports are brought together with
    a yes/no question in the place of each of the first `STAND_INS`.
    """
    if (answers := _all_answers(q, most_runs)) and few_runs(q.report, answers, most_runs):
        return Verification(str(q), (_together(q, "enumerated", worst_pair(q.report, answers)),))
    some = list(q.questions.items())[:STAND_INS]
    short = type(q)({name: BRR(2, m.epsilon_1) for name, m in some}, q.mode)
    pair = worst_pair(short.report, _all_answers(short, most_runs))
    parts = [verify(m, most_runs=most_runs) for m in dict.fromkeys(q.questions.values())]
    checks = [
        _together(q, "from parts", Worst(q.guarantee.ratio, None, None, None)),
        _together(short, "enumerated", pair),
        *(check for part in parts for check in part.checks),
    ]
    unseen = tuple(dict.fromkeys(what for part in parts for what in part.unseen))
    walks = [part.walks for part in parts if part.walks]
    faults = tuple(fault for one in walks for fault in one.faults)
    seen = Walks(sum(one.runs for one in walks), faults) if walks else None
    rests = dict.fromkeys(f"{part.method}; {part.instead}" for part in parts if part.instead)
    instead = "; ".join([f"{len(some)} yes/no questions enumerated", *rests])
    return Verification(str(q), tuple(checks), unseen, instead, seen)


def _all_answers(q: Questionnaire, most: int) -> list[tuple[int, ...]]:
    """Every combination of answers; none if they are more than ``most``, or any text."""
    domains = [m.domain for m in q.questions.values()]
    if any(isinstance(domain, (Text, Candidates)) for domain in domains):
        return []
    if math.prod(domain.size for domain in domains) > most:
        return []
    return list(product(*(range(domain.size) for domain in domains)))


def _together(q: Questionnaire, method: str, worst: Worst) -> Check:
    """One report of all questions, or of the one that was drawn."""
    compose = math.prod if q.mode == "split" else max
    allowed = compose([exp_below(m.epsilon_1) for m in q.questions.values()])
    tight = all(m.spends_all for m in q.questions.values())
    return Check("one report", str(q), method, worst, q.guarantee, Fraction(allowed), tight)
