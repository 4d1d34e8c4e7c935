"""The distributions of section 4.4, over the values 0..k-1.

The paper does not say how it cuts a geometric (mean k / 5) or Zipf distribution off at k values:
here both are, and are then normalised. A binomial one has k - 1 trials. `READINGS` are geometric
distributions with smaller means, k / 20 and k / 80, which the paper does not have.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InvalidArgument

Floats = NDArray[np.float64]
PARAMETERS = {"binomial": (0.1, 0.2, 0.3, 0.4, 0.5), "zipf": (0.5, 1.0, 2.0, 3.0, 4.0)}
NAMES = (
    "geometric",
    "dirichlet",
    *(f"{kind} {parameter:g}" for kind, some in PARAMETERS.items() for parameter in some),
)
READINGS = ("geometric 20", "geometric 80")


def distribution(name: str, k: int, rng: np.random.Generator) -> Floats:
    """One of `NAMES` or `READINGS`; only "dirichlet" is random, uniform over all distributions."""
    kind, _, parameter = name.partition(" ")
    if kind == "geometric":
        p = (k / (k + float(parameter or 5))) ** np.arange(k)
    elif kind == "dirichlet":
        p = rng.exponential(size=k)
    elif kind == "zipf":
        p = np.arange(1, k + 1) ** -float(parameter)
    elif kind == "binomial":
        from scipy.stats import binom

        p = binom.pmf(np.arange(k), k - 1, float(parameter))
    else:
        raise InvalidArgument("distribution", name, f"one of {', '.join(NAMES)}")
    return np.asarray(p / p.sum())
