"""The Iterative Bayesian Update of many collections, in O(k) a step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: The paper's limits.
ITERATIONS, TOLERANCE = 10_000, 1e-12


def iterate_all(
    counts: Floats,
    p: Floats,
    q: Floats,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
) -> Floats:
    """`estimation.ibu.iterate` from uniform, a row for each row of counts and its p and q.

    With p on the diagonal and q off it, r = q / (p - q) and shares c of the counts, a step is
    f_v <- f_v (w_v + r sum_u w_u) with w_v = c_v / (f_v + r). A row ends when no frequency changes
    by the tolerance ("max_abs").
    """
    from deniable_papers.ibu.stepping import step_all

    shares = counts / counts.sum(axis=1, keepdims=True)
    f = np.full(counts.shape, 1.0 / counts.shape[1])
    step_all(f, shares, q / (p - q), iterations, tolerance)
    return f
