"""The frequencies under which the reports are most likely, and how precise they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from deniable.arrays import Floats
from deniable.core.mechanism import as_floats
from deniable.core.reports import Reports
from deniable.core.stored import Source, StoredReports
from deniable.core.tally import Tally
from deniable.errors import InvalidArgument, require_int, require_type
from deniable.estimation.frequencies.evidence import Evidence
from deniable.estimation.frequencies.ibu import pooled_supports
from deniable.estimation.frequencies.mle.gradients import accelerated
from deniable.estimation.frequencies.mle.newton import MOST, newton
from deniable.estimation.frequencies.mle.objective import Objective, Point
from deniable.estimation.frequencies.mle.shared import term_of_counts, term_of_reports
from deniable.estimation.frequencies.mle.stored import StoredTerm
from deniable.estimation.frequencies.mle.supports import LikelihoodTerm
from deniable.estimation.frequencies.simplex import project
from deniable.estimation.parts import tally_of
from deniable.mechanisms.frequency import FrequencyOracle, require_oracle

#: Values up to which Newton's method is used from the start.
DENSE = 512
#: Passes after which first derivatives alone have had their chance.
PATIENCE = 40


@dataclass(frozen=True, eq=False)
class Maximum:
    """Frequencies of the largest likelihood, and how sure that is.

    No frequencies at all have a log-likelihood that is larger by more than ``certificate`` a
    report. ``loglikelihood`` is that of a report on average, up to a constant that does not depend
    on the frequencies.
    """

    frequencies: Floats
    certificate: float
    #: Times that the reports were read.
    passes: int
    loglikelihood: float


def maximise(
    parts: Sequence[Source],
    *,
    tolerance: float = 1e-9,
    most_passes: int = 200,
    start: ArrayLike | None = None,
    threads: int | None = None,
    memory: int = 1 << 30,
) -> Maximum:
    """The maximum of the joint likelihood of ``parts``: of several mechanisms, but one domain.

    Stops when the certificate is at most ``tolerance``, or after ``most_passes``. Supports of
    hashed reports are kept if they fit into ``memory`` bytes, else made anew in every pass. Starts
    at ``start``, by default the projected unbiased frequencies.
    """
    if not isinstance(tolerance, (int, float)) or not tolerance >= 0:
        raise InvalidArgument("tolerance", tolerance, "a number that is not negative")
    require_int("most_passes", most_passes, 1, 1 << 31)
    objective, counted = _open(parts, threads, require_int("memory", memory, 0, 1 << 62))
    given = counted.unbiased if start is None else start
    first = project(_frequencies("start", given, objective.size))
    if len(objective.parts) == 1 and objective.parts[0].mechanism.direct:
        first = pooled_supports([part.supports for part in counted.parts if part.supports])
    point = solve(objective, first, tolerance, most_passes)
    return Maximum(point.f, point.certificate, objective.passes, point.value)


def loglikelihood(parts: Sequence[Source], f: ArrayLike) -> float:
    """The log-likelihood of a report on average at f, up to the constant of `maximise`."""
    objective, _ = _open(parts, None, 0)
    return objective.at(_distribution(f, objective.size)).value


def solve(objective: Objective, start: Floats, tolerance: float, most_passes: int) -> Point:
    """Newton's method for small domains, and for large ones once few values are in use."""
    if objective.size > DENSE:
        point = accelerated(objective, start, tolerance, min(PATIENCE, most_passes))
        if point.certificate <= tolerance or objective.passes >= most_passes:
            return point
        start = point.f
        if np.count_nonzero(start) > 3 * MOST // 4:
            return accelerated(objective, start, tolerance, most_passes)
    return newton(objective, start, tolerance, most_passes)


def information(parts: Sequence[Source], f: ArrayLike, *, sample: int = 50_000) -> Floats:
    """The Fisher information a report at f: mean_i w_i w_i^T / (W f)_i^2, a k x k matrix.

    w_iv is 1 + (rho - 1) [v in S_i]. At most ``sample`` reports of each part are read.
    """
    objective, _ = _open(parts, None, 0)
    frequencies = _distribution(f, objective.size)
    return objective.information(frequencies, require_int("sample", sample, 1, 1 << 62))


def efficient(
    parts: Sequence[Source], maximum: Maximum, *, sample: int = 50_000
) -> tuple[Floats, Floats]:
    """Nearly unbiased frequencies with the least variance, and their covariance matrix.

    From the maximum f one Newton step that minds the sum but not the signs: f + K g, with K the
    inverse of the information I on the plane of sum 0. A report adds K w_i / (n (W f)_i), whose
    mean under value v is (e_v - f) / n, so for a fixed population the covariance is (K - diag(f) +
    f f^T) / n: what is left of the variance for independent respondents without their sampling.
    """
    objective, _ = _open(parts, None, 0)
    require_type("maximum", maximum, Maximum)
    f = _distribution(maximum.frequencies, objective.size)
    matrix = objective.information(f, require_int("sample", sample, 1, 1 << 62))
    inverse = _plane_inverse(matrix)
    step = inverse @ objective.at(f).gradient
    return f + step, (inverse - np.diag(f) + np.outer(f, f)) / objective.n


def _frequencies(name: str, f: ArrayLike, size: int) -> Floats:
    given = as_floats(name, f)
    if given.shape != (size,) or not np.all(np.isfinite(given)):
        raise InvalidArgument(name, f, f"{size} frequencies")
    return given


def _distribution(f: ArrayLike, size: int) -> Floats:
    given = _frequencies("f", f, size)
    if given.min() < 0 or abs(given.sum() - 1) > 1e-6:
        raise InvalidArgument("f", f, f"{size} frequencies of at least 0 that sum to 1")
    return given


def _plane_inverse(matrix: Floats) -> Floats:
    """K with K A K = K and K 1 = 0: the inverse of A among the vectors of sum 0."""
    size = len(matrix)
    bordered = np.ones((size + 1, size + 1))
    bordered[:size, :size] = matrix
    bordered[size, size] = 0.0
    if np.linalg.cond(bordered) > 1e12:
        allowed = "reports that determine every frequency; there are too few"
        raise InvalidArgument("parts", "reports with a singular information matrix", allowed)
    return np.asarray(np.linalg.inv(bordered)[:size, :size], dtype=np.float64)


def _open(parts: Sequence[Source], threads: int | None, memory: int) -> tuple[Objective, Evidence]:
    """The likelihood of the parts that are not empty, and what their counts say."""
    if not isinstance(parts, Sequence):
        raise InvalidArgument("parts", parts, "a list of tallies or reports")
    tallies: list[Tally] = []
    found: list[LikelihoodTerm] = []
    counted: dict[FrequencyOracle, Tally] = {}
    for source in parts:
        tally = tally_of(source, threads)
        mechanism = require_oracle(tally.mechanism)
        if mechanism.counts_suffice:
            counted[mechanism] = counted.get(mechanism, Tally(mechanism)).merge(tally)
        elif isinstance(source, Tally):
            raise _insufficient(mechanism)
        elif tally.n:
            tallies.append(tally)
            found.append(_term(mechanism, source, memory))
    merged = {mechanism: tally for mechanism, tally in counted.items() if tally.n}
    found += [term_of_counts(mechanism, tally.counts) for mechanism, tally in merged.items()]
    if not found:
        raise InvalidArgument("parts", parts, "parts with at least one report")
    return Objective(found, threads), Evidence.of([*tallies, *merged.values()])


def _term(
    mechanism: FrequencyOracle, source: Reports | StoredReports, memory: int
) -> LikelihoodTerm:
    if isinstance(source, StoredReports):
        return StoredTerm(mechanism, source)
    return term_of_reports(mechanism, source.data, memory)


def _insufficient(mechanism: FrequencyOracle) -> InvalidArgument:
    name = type(mechanism).__name__
    allowed = f"reports: the counts of {name} do not determine its likelihood"
    return InvalidArgument("parts", f"a tally of {name}", allowed)
