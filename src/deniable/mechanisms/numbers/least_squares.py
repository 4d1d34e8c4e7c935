"""Shares of bins from unbiased sums of them, by least squares under sum f = 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deniable.arrays import Floats


class LeastSquares:
    """f minimises sum_l w_l |z_l - A_l f|^2 under sum f = 1, exactly.

    With C = (sum_l w_l A_l' A_l + t 11')^-1 and o = C 1 that is f = sum_l G_l z_l + o / (1'o),
    where G_l = w_l (C - o o' / (1'o)) A_l'; under the constraint, t > 0 changes nothing. The
    weights w are fixed, so f is linear in z, and as sum_l G_l A_l = I - o 1' / (1'o), it is
    unbiased where z is.
    """

    def __init__(self, sums: Sequence[Floats], weights: Sequence[float]) -> None:
        normal = np.asarray(sum(w * (a.T @ a) for w, a in zip(weights, sums, strict=True)))
        c = np.linalg.inv(normal + normal.diagonal().mean() / len(normal))
        o = c.sum(axis=1)
        #: What f is where z is 0.
        self.offset: Floats = o / o.sum()
        c -= np.outer(self.offset, o)
        #: G_l of each level.
        self.gains: list[Floats] = [w * (c @ a.T) for w, a in zip(weights, sums, strict=True)]

    def shares(self, z: Sequence[Floats]) -> Floats:
        """f, which may be negative."""
        return self.offset + sum(g @ one for g, one in zip(self.gains, z, strict=True))


def plausible(f: Floats) -> Floats:
    """The shares whose cumulative sums are the closest ones to those of f that rise from 0 to 1.

    They are none below 0: what variances are computed for.
    """
    from scipy.optimize import isotonic_regression

    rising = isotonic_regression(np.cumsum(f)[:-1]).x
    found: Floats = np.diff(np.clip(rising, 0.0, 1.0), prepend=0.0, append=1.0)
    return found
