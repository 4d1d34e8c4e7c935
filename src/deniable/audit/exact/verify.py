"""Exact verification: the ratio of the channel that the code really has, beside what is promised.

The report function itself is run with coins that take every branch, so what is compared are
integers, not samples. Where there are too many branches, the ratio that follows from the integer
thresholds is compared with epsilon, the same family is enumerated on small domains, and the
mechanism itself is looked at on some walks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from deniable.audit.exact.branches import Report, few_runs, remembered, worst_pair
from deniable.audit.exact.checks import Check, Verification, Walks, Worst
from deniable.audit.exact.spot_checks import walk
from deniable.errors import InvalidArgument, require_type
from deniable.mechanisms import BRR, Mechanism
from deniable.privacy import Guarantee, check_epsilon, exp_below

#: Runs of the report function, over all values, before enumeration is not tried.
MOST_RUNS = 200_000
#: Kept draws and pairs of reports have many branches: they are enumerated for so many values.
MEMO_SIZE = 3
#: Yes/no questions that stand for the parts of a mechanism that is made of many.
STAND_INS = 8
#: What is checked of every mechanism, and of one that remembers.
ONCE = ("one report",)
MEMORY = ("what is kept", "two reports")


def verify(mechanism: Mechanism, *, most_runs: int = MOST_RUNS) -> Verification:
    """Compare the channel of the code with its guarantee, and that with epsilon."""
    require_type("mechanism", mechanism, Mechanism)
    needed = (*ONCE, *MEMORY) if mechanism.remembers else ONCE
    checks = list(_enumerated(mechanism, most_runs))
    if len(checks) == len(needed):
        return Verification(str(mechanism), tuple(checks))
    if mechanism.parts:
        return _from_parts(mechanism, most_runs)
    for own in (True, False):
        small = {one: list(_enumerated(one, most_runs)) for one in relatives(mechanism, own=own)}
        small = {one: found for one, found in small.items() if len(found) > len(checks)}
        if small:  # a design for many answers may be too large for few
            break
    instead = _instead(small, "memory " if checks else "")
    checks = checks or [_declared(mechanism, "from thresholds")]
    checks += [check for found in small.values() for check in found]
    seen = {check.what for check in checks if check.method == "enumerated"}
    unseen = tuple(what for what in needed if what not in seen)
    walks = walk(mechanism, list(small))
    return Verification(str(mechanism), tuple(checks), unseen, instead, walks)


def _instead(small: Iterable[Mechanism], what: str) -> str:
    """Which relatives were enumerated."""
    domains = [one.domain for one in small]
    if not domains:
        return ""
    listed = all(domain.is_listed for domain in domains)
    names = [str(domain.size) if listed else domain.words() for domain in domains]
    named = " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
    design = " of a smaller design" if any(one.small_design for one in small) else ""
    return f"{what}enumerated for {named}{' answers' if listed else ''}{design}"


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
    return _one_report(m, "enumerated", worst_pair(m.report, m.domain.values(MOST_RUNS)))


def _one_report(m: Mechanism, method: str, worst: Worst) -> Check:
    allowed = exp_below(m.epsilon_1)
    tight = all(one.spends_all for one in (m, *m.parts))
    return Check("one report", str(m), method, worst, m.once, allowed, tight)


def memory(m: Mechanism) -> Iterator[Check]:
    """What is kept costs what all reports together do; two reports cost what is stated."""
    stated, allowed = m.lasting, _in_all(m)
    values = m.domain.values(MOST_RUNS)
    promises = ((0, stated), (2, stated.exactly(2)))
    for what, (reports, promise) in zip(MEMORY, promises, strict=True):
        worst = worst_pair(partial(remembered, m, reports), values)
        yield Check(what, str(m), "enumerated", worst, promise, allowed, False)


def _in_all(m: Mechanism) -> Fraction:
    """What all reports may cost: a target of its own, or what is stated where there is none."""
    return exp_below(m.epsilon) if "epsilon_inf" in m.budgets else m.lasting.ratio


def _enumerated(m: Mechanism, most_runs: int) -> Iterator[Check]:
    """All checks that are small enough."""
    values = m.domain.values(most_runs)
    if not values or not few_runs(m.report, values, most_runs):
        return
    yield one_report(m)
    remembers = m.remembers and len(values) <= MEMO_SIZE
    if remembers and few_runs(partial(remembered, m, 2), values, most_runs):
        yield from memory(m)


def _declared(m: Mechanism, method: str) -> Check:
    """`once` was computed from the integers of the channel; compare it with epsilon_1."""
    return _one_report(m, method, Worst(m.once.ratio, None, None, None))


def relatives(m: Mechanism, *, own: bool = True) -> Iterator[Mechanism]:
    """The same family, epsilons and calibration with few answers, or with parts of few answers.

    Where ``own``, integers that do not depend on the number of answers are those of the mechanism
    itself, unless it needs another design to be small.
    """
    if m.parts and not m.small_design:
        yield m.made_of([BRR(2, part.epsilon_1) for part in m.parts[:STAND_INS]])
        return
    small = [m.over(domain, **m.small_design) for domain in m.small_domains()]
    same = all(len({getattr(one, name) for one in small}) == 1 for name in m.thresholds)
    integers = {name: getattr(m, name) for name in (*m.design, *m.thresholds)}
    for one in small:
        try:
            keeps = own and same and not m.small_design
            yield m.over(one.domain, **integers) if keeps else one
        except InvalidArgument:  # a design that so few answers cannot have
            yield one


# ---- mechanisms that are made of others


def _from_parts(m: Mechanism, most_runs: int) -> Verification:
    """Where all answers together are too many, what a report costs follows from what its parts do.

    So every part is verified alone, and the way in which they are brought together with a yes/no
    question in the place of each of the first `STAND_INS`, or with a smaller design.
    """
    shorts = list(relatives(m))
    parts = [verify(part, most_runs=most_runs) for part in dict.fromkeys(m.parts)]
    checks = [
        _declared(m, "from parts"),
        *map(one_report, shorts),
        *(check for part in parts for check in part.checks),
    ]
    unseen = tuple(dict.fromkeys(what for part in parts for what in part.unseen))
    walks = [part.walks for part in parts if part.walks]
    faults = tuple(fault for one in walks for fault in one.faults)
    seen = Walks(sum(one.runs for one in walks), faults) if walks else None
    rests = dict.fromkeys(f"{part.method}; {part.instead}" for part in parts if part.instead)
    enumerated = f"{len(shorts[0].parts)} yes/no questions enumerated"
    instead = "; ".join([_instead(shorts, "") if m.small_design else enumerated, *rests])
    return Verification(str(m), tuple(checks), unseen, instead, seen)
