"""An audit of every mechanism: exactly on a small domain, by walks and samples on a larger one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from deniable.audit.black_box.empirical import audit_mechanism
from deniable.audit.black_box.findings import Audit
from deniable.audit.exact.checks import Check, Verification, Walks
from deniable.audit.exact.spot_checks import walk, walked
from deniable.audit.exact.verify import relatives, verify
from deniable.core.domain import Domain
from deniable.core.registry import mechanisms
from deniable.mechanisms import Mechanism
from deniable.mechanisms.frequency import frequency_oracles

if TYPE_CHECKING:
    from numpy.random import Generator

#: Answers, reports a value and runs of the enumeration, if the audit must be quick, and if not.
QUICK = {"small": 3, "n": 4_000, "most_runs": 10_000}
THOROUGH = {"small": 5, "n": 40_000, "most_runs": 200_000}
#: Reports of one device that are audited together.
REPEATED = 5
#: How many reports a check is about; what is kept is about any number.
REPORTS_OF = {"one report": 1, "two reports": 2}


def audit_everything(
    size: int,
    epsilon: float,
    *,
    quick: bool,
    n: int | None,
    confidence: float,
    rng: Generator | None,
) -> Iterator[dict[str, Any]]:
    """One row a mechanism and check; `steps` of them."""
    plan = QUICK if quick else THOROUGH
    reports = plan["n"] if n is None else n
    for family in mechanisms().values():
        small = family.example(usual_domain(family, plan["small"]), epsilon, **family.small_design)
        yield exact_row(small, verify(small, most_runs=plan["most_runs"]))
        member = _sampled(family, size, epsilon)
        yield walk_row(member, walk(member, list(relatives(member))))
        for times in (1, REPEATED) if family.remembers else (1,):
            found = audit_mechanism(
                member, reports=times, n=reports, confidence=confidence, rng=rng
            )
            yield row_of(found, member.name, size_of(member))


def steps() -> int:
    """Rows of such an audit."""
    return sum(4 if family.remembers else 3 for family in mechanisms().values())


def usual_domain(family: type[Mechanism], size: int) -> Domain:
    """So many answers, or what the family takes instead."""
    listed = Domain(size)
    return listed if family.unsuited(listed) is None else next(family.small_domains())


def size_of(m: Mechanism) -> int | None:
    """The number of answers, where they are listed."""
    return m.domain.size if m.domain.is_listed else None


def _sampled(family: type[Mechanism], size: int, epsilon: float) -> Mechanism:
    """With shared hash functions, few and narrow: what a report says is computed one by one."""
    oracle = frequency_oracles().get(family.name)
    design = family.small_design if oracle is not None and not oracle.independent_supports else {}
    return family.example(usual_domain(family, size), epsilon, **design)


def exact_row(m: Mechanism, found: Verification) -> dict[str, Any]:
    """A verification as one row: its worst check."""
    row = check_row(m, found.worst, size_of(m))
    return {**row, "method": found.method, "verdict": found.verdict, "words": found.words}


def exact_rows(m: Mechanism, found: Verification) -> Iterator[dict[str, Any]]:
    """A row a check, those of small relatives and walks too, one for each that was not possible."""
    sizes = {str(one): size_of(one) for one in (*relatives(m), m)}
    for check in found.checks:
        yield check_row(m, check, sizes.get(check.subject))
    for what in found.unseen:
        yield {
            **check_row(m, found.worst, None),
            "what": what,
            "method": "too many branches",
            "epsilon": None,
            "promised": None,
            "verdict": "not enumerated",
            "words": found.words,
        }
    if found.walks:
        yield walk_row(m, found.walks)


def walk_row(m: Mechanism, walks: Walks) -> dict[str, Any]:
    """What walks at the real size found: no epsilon, but whether the code does what it declares."""
    verdict = "suspicious" if walks.faults else "nothing found"
    values = ", ".join(map(str, walked(m)))
    words = "; ".join([f"{verdict}: {walks.runs:,} walks with the values {values}", *walks.faults])
    return {
        "mechanism": m.name,
        "k": size_of(m),
        "what": "the code",
        "reports": 1,
        "n": walks.runs,
        "method": "walks",
        "epsilon": None,
        "promised": None,
        "verdict": verdict,
        "words": words,
    }


def check_row(m: Mechanism, check: Check, size: int | None) -> dict[str, Any]:
    return {
        "mechanism": m.name,
        "k": size,
        "what": check.what,
        "reports": REPORTS_OF.get(check.what),
        "n": None,
        "method": check.method,
        "epsilon": check.worst.epsilon,
        "promised": check.declared.epsilon,
        "verdict": check.verdict,
        "words": check.words,
    }


def row_of(found: Audit, name: str, size: int | None) -> dict[str, Any]:
    """An audit as a row."""
    return {
        "mechanism": name,
        "k": size,
        "what": "one report" if found.rounds == 1 else f"{found.rounds} reports",
        "reports": found.rounds,
        "n": found.n,
        "method": "sampled",
        "epsilon": found.epsilon,
        "promised": found.promised,
        "verdict": found.verdict,
        "words": found.words,
    }
