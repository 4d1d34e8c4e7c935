"""Maximum likelihood from counts: the Iterative Bayesian Update, and its limit in closed form.

The update of Arcolezi et al., "On the Utility Gain of Iterative Bayesian Update for Locally
Differentially Private Mechanisms" (DBSec 2023), climbs sum_y c_y log (f A)_y over the simplex. With
their matrix (p on the diagonal, q off it) the limit is known, and `water_filling` gives it at once;
tens of thousands of iterations may not reach it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deniable.arrays import Floats
from deniable.core.mechanism import as_floats
from deniable.errors import InvalidArgument, require_int

#: Supports of the values in one collection, and its p and q.
Supported = tuple[ArrayLike, float, float]

#: What of the last change (new - old frequencies) must fall below the tolerance. The paper names
#: the iterations, the tolerance and one of these, "max_abs"; its software has all four.
RULES: dict[str, Callable[[Floats], np.floating[Any]]] = {
    "max_abs": lambda change: np.abs(change).max(),
    "mae": lambda change: np.abs(change).mean(),
    "max_squared": lambda change: np.square(change).max(),
    "mse": lambda change: np.square(change).mean(),
}
_STEPS = 100


@dataclass(frozen=True, eq=False)
class IbuResult:
    """Where the iteration ended; ``converged`` if by its rule and not by the iterations."""

    frequencies: Floats
    iterations: int
    converged: bool


def water_filling(counts: ArrayLike, p: float, q: float) -> Floats:
    """argmax over the simplex of sum_v c_v log(q + (p - q) f_v), in O(k log k).

    With r = q / (p - q) it is f_v = max(0, c_v t - r). If the a largest counts are above water,
    the sum 1 makes t = (1 + a r) / (their total); a is the largest for which the smallest of them
    is. Counts that are all 0 say nothing: uniform.
    """
    c, r = _counts("counts", counts), _ratio(p, q)
    if not c.any():
        return np.full(c.shape, 1.0 / c.size)
    descending = np.sort(c / c.max())[::-1]
    levels = (1.0 + r * np.arange(1, c.size + 1)) / np.cumsum(descending)
    t = levels[np.flatnonzero(descending * levels > r)[-1]]
    f = np.maximum(c / c.max() * t - r, 0.0)
    return np.asarray(f / f.sum())


def pooled_supports(parts: Sequence[Supported]) -> Floats:
    """argmax over the simplex of sum_g sum_v c_gv log(q_g + (p_g - q_g) f_v).

    The Generalised IBU of ElSalamouny and Palamidessi (EuroS&P 2020) at its limit, for collections
    with different p and q. With r_g = q_g / (p_g - q_g) and h_v(f) = sum_g c_gv / (r_g + f), the
    optimum has h_v(f_v) = 1 / t, or f_v = 0 where h_v(0) <= 1 / t. The sum of f(t) is convex and
    increasing, so Newton's method from above falls onto the t of sum 1 without overshooting.
    """
    c, r = _parts(parts)
    if not c.any():
        return np.full(c.shape[1], 1.0 / c.shape[1])
    held = c.any(axis=0)
    some = c[:, held] / c.max()
    # Here the sum is at least 1: the best supported value alone reaches 1.
    t = 1.0 / float(_pull(np.ones(some.shape[1]), some, r)[0].max())
    for _ in range(_STEPS):
        f, slope = _levels(t, some, r)
        step = t - (f.sum() - 1.0) / slope
        if not step < t:
            break
        t = step
    found = np.zeros(held.shape)
    found[held] = f / f.sum()
    return found


def _levels(t: float, c: Floats, r: Floats) -> tuple[Floats, float]:
    """f(t) of `pooled_supports` and the slope of its sum.

    Newton's method on 1 / h_v, which is concave (and linear for a single part), from the left.
    """
    f = np.maximum((c * t - r).max(axis=0), 0.0)
    for _ in range(_STEPS):
        h, steepness = _pull(f, c, r)
        # d(1 / h) / df = steepness / h^2, and 1 / h has to become t.
        step = f + np.maximum((t - 1.0 / h) * h * h / steepness, 0.0)
        if np.all(step <= f * (1.0 + 1e-15)):
            break
        f = step
    return f, float(np.sum((h * h / steepness)[f > 0]))


def _pull(f: Floats, c: Floats, r: Floats) -> tuple[Floats, Floats]:
    """h_v(f_v) and -h_v'(f_v); f_v + r_g is 0 only where c_gv is."""
    terms = np.divide(c, r + f, out=np.zeros_like(c), where=c > 0)
    steepness = np.divide(terms, r + f, out=np.zeros_like(c), where=c > 0)
    return terms.sum(axis=0), steepness.sum(axis=0)


def pure_channel(k: int, p: float, q: float) -> Floats:
    """The k x k matrix of the paper for supports: p on the diagonal, q off it.

    Its rows sum to p + (k - 1) q, which is the expected number of values that a report supports.
    """
    k = require_int("k", k, 2, 1 << 20)
    _ratio(p, q)
    return np.full((k, k), float(q)) + (float(p) - float(q)) * np.eye(k)


def iterate(
    counts: ArrayLike,
    channel: ArrayLike,
    *,
    iterations: int = 10_000,
    tolerance: float = 1e-12,
    start: ArrayLike | None = None,
    rule: str = "max_abs",
) -> IbuResult:
    """f_v <- f_v sum_y A_vy c_y / (n (f A)_y), with A = ``channel`` (inputs x outputs).

    Starts from ``start`` (uniform) and ends after ``iterations``, or as soon as the ``rule`` (one
    of `RULES`) of the last change is below ``tolerance``. No step lowers the likelihood, whatever
    the rows of A sum to. Few iterations are a regulariser of their own: they stay near the start,
    and without any count they do not leave it.
    """
    c, matrix = _observed(counts, channel)
    f = _start(start, matrix.shape[0])
    iterations = require_int("iterations", iterations, 1, 1 << 62)
    if not isinstance(tolerance, (int, float)) or not 0 <= tolerance < np.inf:
        raise InvalidArgument("tolerance", tolerance, "a finite number that is not negative")
    if not isinstance(rule, str) or rule not in RULES:
        raise InvalidArgument("rule", rule, f"one of {', '.join(RULES)}")
    if not c.size:
        return IbuResult(f, 0, True)
    size = RULES[rule]
    for iteration in range(1, iterations + 1):
        new = f * (matrix @ (c / (f @ matrix)))
        change, f = new - f, new
        if size(change) < tolerance:
            return IbuResult(f, iteration, True)
    return IbuResult(f, iterations, False)


def _observed(counts: ArrayLike, channel: ArrayLike) -> tuple[Floats, Floats]:
    """The shares and columns of the outputs that occurred."""
    c, matrix = _counts("counts", counts), as_floats("channel", channel)
    if matrix.ndim != 2 or not matrix.shape[0] or not np.all((matrix >= 0) & (matrix < np.inf)):
        allowed = "a matrix (inputs x outputs) of probabilities"
        raise InvalidArgument("channel", channel, allowed)
    if matrix.shape[1] != c.size:
        raise InvalidArgument("counts", counts, f"{matrix.shape[1]} counts, one an output")
    if np.any(c[~matrix.any(axis=0)]):
        raise InvalidArgument("counts", counts, "counts of outputs that the channel can make")
    seen = c > 0
    return c[seen] / c[seen].sum(), np.ascontiguousarray(matrix[:, seen])


def _start(start: ArrayLike | None, k: int) -> Floats:
    """A distribution without zeros: the iteration never leaves a zero."""
    f = np.full(k, 1.0 / k) if start is None else as_floats("start", start)
    if f.shape != (k,) or not np.all(f > 0) or not abs(f.sum() - 1.0) <= 1e-9:
        raise InvalidArgument("start", start, f"{k} positive numbers that sum to 1")
    return f


def _parts(parts: Sequence[Supported]) -> tuple[Floats, Floats]:
    """Counts (parts x values) and the column of the r_g."""
    allowed = "(counts, p, q) of one or more collections over the same values"
    if not isinstance(parts, (list, tuple)) or not parts:
        raise InvalidArgument("parts", parts, allowed)
    if not all(isinstance(part, tuple) and len(part) == 3 for part in parts):
        raise InvalidArgument("parts", parts, allowed)
    rows = [_counts("parts", counts) for counts, _, _ in parts]
    if len({row.size for row in rows}) > 1:
        raise InvalidArgument("parts", parts, allowed)
    return np.stack(rows), np.array([[_ratio(p, q)] for _, p, q in parts])


def _counts(name: str, counts: ArrayLike) -> Floats:
    c = as_floats(name, counts)
    if c.ndim != 1 or not c.size or not np.all((c >= 0) & (c < np.inf)):
        raise InvalidArgument(name, counts, "a list of counts that are not negative")
    return c


def _ratio(p: float, q: float) -> float:
    """r = q / (p - q)."""
    values = as_floats("p, q", [p, q])
    if values.shape != (2,) or not 0 <= values[1] < values[0] <= 1:
        raise InvalidArgument("p, q", (p, q), "probabilities with q < p")
    return float(values[1] / (values[0] - values[1]))
