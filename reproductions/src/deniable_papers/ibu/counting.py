"""Counts of reports in many collections at once, by their exact law."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.mechanisms import SS
from deniable_papers.ibu.designs import Design

Counts = NDArray[np.int64]


def count_all(one: Design, histograms: Counts, epsilon: float, rng: np.random.Generator) -> Counts:
    """How many reports support each value: a row for each row of respondents.

    Direct (k-RR): Bin(h_v, p - q) respondents keep their value, and all others report a uniform
    one. Bits: Bin(h_v, p) + Bin(n - h_v, q), each on its own; so are the supports of hashed
    reports, if hashing is ideal. Subsets are drawn.
    """
    n = histograms.sum(axis=1, keepdims=True)
    k = histograms.shape[1]
    if one.law == "subset" and one.omega > 1:
        m = SS(k, epsilon, omega=one.omega)
        return np.array([m.simulate(row, rng) for row in histograms])
    if one.law == "bits":
        own = rng.binomial(histograms, one.p)
        return np.asarray(own + rng.binomial(n - histograms, one.q))
    kept = rng.binomial(histograms, one.p - one.q)
    others = (n - kept.sum(axis=1, keepdims=True))[:, 0]
    return np.asarray(kept + rng.multinomial(others, np.full(k, 1 / k)))
