"""An audit of every mechanism: exactly on a small domain, by sampling on a larger one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from deniable.audit.empirical import audit_mechanism
from deniable.audit.exact import MOST_RUNS, verify
from deniable.audit.findings import Audit
from deniable.mechanisms import Mechanism, mechanisms
from deniable.mechanisms.cohorts import CohortMechanism
from deniable.mechanisms.memoised import Memoised

if TYPE_CHECKING:
    from numpy.random import Generator

#: Answers, reports a value and runs of the enumeration, if the survey must be quick, and if not.
QUICK = {"small": 3, "n": 4_000, "most_runs": 10_000}
THOROUGH = {"small": 5, "n": 40_000, "most_runs": 200_000}
#: Reports of one device that are audited together.
REPEATED = 5


def survey(
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
    reports = n or plan["n"]
    for family in mechanisms().values():
        yield exact_row(_member(family, plan["small"], epsilon), plan["most_runs"])
        member = _member(family, size, epsilon)
        for times in (1, REPEATED) if issubclass(family, Memoised) else (1,):
            found = audit_mechanism(
                member, reports=times, n=reports, confidence=confidence, rng=rng
            )
            yield row_of(found, member.name, member.domain.size)


def steps() -> int:
    """Rows of a survey."""
    return sum(3 if issubclass(family, Memoised) else 2 for family in mechanisms().values())


def _member(family: type[Mechanism], size: int, epsilon: float) -> Mechanism:
    """With cohorts, few and narrow ones: what a report supports is computed one by one."""
    design = family.small_design if issubclass(family, CohortMechanism) else {}
    return family(family.only_size or size, epsilon, **design)


def exact_row(m: Mechanism, most_runs: int = MOST_RUNS) -> dict[str, Any]:
    """A verification as a row."""
    found = verify(m, most_runs=most_runs)
    check = found.worst
    return {
        "mechanism": m.name,
        "k": m.domain.size,
        "reports": 1,
        "n": None,
        "method": found.method,
        "epsilon": check.worst.epsilon,
        "promised": check.declared.epsilon,
        "verdict": found.verdict,
        "words": found.words,
    }


def row_of(found: Audit, name: str, size: int) -> dict[str, Any]:
    """An audit as a row."""
    return {
        "mechanism": name,
        "k": size,
        "reports": found.rounds,
        "n": found.n,
        "method": "sampled",
        "epsilon": found.epsilon,
        "promised": found.promised,
        "verdict": found.verdict,
        "words": found.words,
    }
