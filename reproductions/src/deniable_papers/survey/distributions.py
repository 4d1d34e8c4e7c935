"""Who answers what, on the map: from flat to a few values that have everything."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DISTRIBUTIONS = ("flat", "geometric", "zipf", "sparse")


def distribution(name: str, k: int) -> Floats:
    """Geometric has the mean k / 5 and zipf the exponent 1.2.

    In a sparse one a sixteenth of the values, but at least one, shares 95 %; the others the rest.
    """
    place = np.arange(k)
    few = max(1, k // 16)
    weights = {
        "flat": np.ones(k),
        "geometric": (k / (k + 5)) ** place,
        "zipf": (place + 1.0) ** -1.2,
        "sparse": np.where(place < few, 0.95 / few, 0.05 / (k - few)),
    }[name]
    return np.asarray(weights / weights.sum())
