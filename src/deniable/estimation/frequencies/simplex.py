"""From unbiased frequencies to ones that are not negative and sum to 1."""

from __future__ import annotations

import numpy as np

from deniable.arrays import Floats


def clip_and_normalize(f: Floats) -> Floats:
    """Set negative frequencies to 0 and rescale to sum 1; uniform if nothing is left.

    The decoder of most papers. Biased: it moves mass from frequent values to rare ones.
    """
    clipped = np.maximum(f, 0.0)
    total = clipped.sum()
    return clipped / total if total > 0 else np.full(f.shape, 1.0 / f.size)


def project(f: Floats) -> Floats:
    """The point of the simplex that is nearest to f (Wang and Carreira-Perpinan 2013), O(k log k).

    It is max(f - t, 0), with t such that the sum is 1. The simplex is convex and holds the
    truth, so the squared error summed over the values never grows.
    """
    # A shift of all values changes nothing but the size of the rounding errors.
    f = f - f.max()
    descending = np.sort(f)[::-1]
    thresholds = (np.cumsum(descending) - 1.0) / np.arange(1, f.size + 1)
    t = float(thresholds[np.flatnonzero(descending > thresholds)[-1]])
    # The running sums of many values are rounded; the sum of what is above t is not.
    above = f[f > t] - t
    t += (float(above.sum()) - 1.0) / above.size
    return np.maximum(f - t, 0.0)
