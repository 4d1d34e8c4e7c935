"""The frequencies under which the reports are most likely, and how precise they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from deniable.errors import InvalidArgument, MismatchError, require_int, require_type
from deniable.estimation.cells import cells_of
from deniable.estimation.gradients import accelerated
from deniable.estimation.newton import MOST, newton
from deniable.estimation.objective import Objective, Point
from deniable.estimation.simplex import project
from deniable.estimation.supports import Part, part_of
from deniable.mechanisms import BRR, GRR, Mechanism
from deniable.mechanisms.base import Counts, Floats, as_floats
from deniable.mechanisms.index import IndexMechanism
from deniable.reports import Reports
from deniable.tally import Tally

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
    parts: Sequence[Reports | Tally],
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
    objective, tallies = _open(parts, threads, require_int("memory", memory, 0, 1 << 62))
    given = _unbiased(tallies) if start is None else as_floats("start", start)
    if given.shape != (objective.size,) or not np.all(np.isfinite(given)):
        raise InvalidArgument("start", start, f"{objective.size} frequencies")
    first = project(given)
    if len(objective.parts) == 1 and isinstance(objective.parts[0].mechanism, (BRR, GRR)):
        first = direct_maximum(tallies[0].counts, objective.parts[0].gain)
    point = solve(objective, first, tolerance, most_passes)
    return Maximum(point.f, point.certificate, objective.passes, point.value)


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


def direct_maximum(counts: Counts, gain: float) -> Floats:
    """The maximum for randomised response, where report v supports v only.

    Where f_v > 0 the derivative c_v gain / (1 + gain f_v) is the same for all v, so f_v = max(0,
    c_v t - 1 / gain); with the a largest counts above zero, t = (1 + a / gain) / their sum.
    """
    descending = np.sort(counts)[::-1]
    scales = (1 + np.arange(1, counts.size + 1) / gain) / np.cumsum(descending)
    t = scales[np.flatnonzero(descending * scales > 1 / gain)[-1]]
    f: Floats = np.maximum(counts * t - 1 / gain, 0.0)
    return f / float(f.sum())


def information(parts: Sequence[Reports | Tally], f: ArrayLike, *, sample: int = 50_000) -> Floats:
    """The Fisher information a report at f: mean_i w_i w_i^T / (W f)_i^2, a k x k matrix.

    w_iv is 1 + (rho - 1) [v in S_i]. At most ``sample`` reports of each part are read.
    """
    objective, _ = _open(parts, None, 0)
    frequencies = as_floats("f", f)
    if frequencies.shape != (objective.size,):
        raise InvalidArgument("f", f, f"{objective.size} frequencies")
    return objective.information(frequencies, require_int("sample", sample, 1, 1 << 62))


def efficient(
    parts: Sequence[Reports | Tally], maximum: Maximum, *, sample: int = 50_000
) -> tuple[Floats, Floats]:
    """Nearly unbiased frequencies with the least variance, and their covariance matrix.

    From the maximum f one Newton step that minds the sum but not the signs: f + K g, with K the
    inverse of the information I on the plane of sum 0. A report adds K w_i / (n (W f)_i), whose
    mean under value v is (e_v - f) / n, so for a fixed population the covariance is (K - diag(f) +
    f f^T) / n: what is left of the variance for independent respondents without their sampling.
    """
    objective, _ = _open(parts, None, 0)
    f = maximum.frequencies
    matrix = objective.information(f, require_int("sample", sample, 1, 1 << 62))
    inverse = _plane_inverse(matrix)
    step = inverse @ objective.at(f).gradient
    return f + step, (inverse - np.diag(f) + np.outer(f, f)) / objective.n


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


def _open(
    parts: Sequence[Reports | Tally], threads: int | None, memory: int
) -> tuple[Objective, list[Tally]]:
    """The likelihood of the parts that are not empty, and their counts (which checks them)."""
    tallies: list[Tally] = []
    found: list[Part] = []
    counted: dict[Mechanism, Tally] = {}
    for source in parts:
        tally = _tally(source, threads)
        if isinstance(tally.mechanism, IndexMechanism):
            earlier = counted.get(tally.mechanism, Tally(tally.mechanism))
            counted[tally.mechanism] = earlier.merge(tally)
        elif isinstance(source, Tally):
            raise _insufficient(tally.mechanism)
        elif tally.n:
            tallies.append(tally)
            found.append(part_of(tally.mechanism, source.data, memory))
    merged = [tally for tally in counted.values() if tally.n]
    found += [cells_of(tally.mechanism, tally.counts) for tally in merged]
    if not found:
        raise InvalidArgument("parts", parts, "parts with at least one report")
    for part in found:
        require_same_domain(found[0].mechanism, part.mechanism)
    return Objective(found, threads), tallies + merged


def _tally(source: Reports | Tally, threads: int | None) -> Tally:
    if isinstance(source, Tally):
        return source
    require_type("parts", source, Reports)
    return source.mechanism.tally(source, threads=threads)


def _insufficient(mechanism: Mechanism) -> InvalidArgument:
    name = type(mechanism).__name__
    allowed = f"reports: the counts of {name} do not determine its likelihood"
    return InvalidArgument("parts", f"a tally of {name}", allowed)


def require_same_domain(ours: Mechanism, theirs: Mechanism) -> None:
    """Refuse to bring together reports about different questions."""
    if ours.domain != theirs.domain:
        raise MismatchError(f"these have different domains: {ours!r} and {theirs!r}")


def _unbiased(tallies: Sequence[Tally]) -> Floats:
    """The unbiased frequencies of all parts, weighted by their precision."""
    precisions = [1 / float(tally.mechanism.variance(tally.n).mean()) for tally in tallies]
    total = sum(
        precision * tally.mechanism.unbiased(tally.counts, tally.n)
        for precision, tally in zip(precisions, tallies, strict=True)
    )
    return np.asarray(total) / sum(precisions)
