"""The compiled loop of `iterating`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.kernels.jit import kernel

Floats = NDArray[np.float64]


@kernel
def step_all(f: Floats, c: Floats, r: Floats, iterations: int, tolerance: float) -> None:
    """Update each row of f in place until no entry changes by the tolerance.

    Four partial sums, because the compiler may not reorder a single one.
    """
    k = f.shape[1]
    whole = k // 4 * 4
    w = np.empty(k)
    for i in range(len(f)):
        for _ in range(iterations):
            for v in range(k):
                w[v] = c[i, v] / (f[i, v] + r[i])
            s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
            for v in range(0, whole, 4):
                s0 += w[v]
                s1 += w[v + 1]
                s2 += w[v + 2]
                s3 += w[v + 3]
            for v in range(whole, k):
                s0 += w[v]
            rest = r[i] * ((s0 + s1) + (s2 + s3))
            going = False
            for v in range(k):
                new = f[i, v] * (w[v] + rest)
                going |= abs(new - f[i, v]) >= tolerance
                f[i, v] = new
            if not going:
                break
