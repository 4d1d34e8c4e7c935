"""The likelihood of several parts of a collection together, as a function on the simplex."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Floats, Indices
from deniable.estimation.frequencies.mle.supports import LikelihoodTerm


@dataclass(frozen=True, eq=False)
class Point:
    """What one pass says about frequencies f that sum to 1, per report.

    With w_iv = 1 + (rho_i - 1) [v in S_i] the likelihood of report i is (W f)_i up to a factor;
    ``value`` = mean_i log (W f)_i, ``gradient`` g_v = mean_i w_iv / (W f)_i, and ``curvature``
    (where asked for) mean_i w_iv^2 / (W f)_i^2, the diagonal of minus the Hessian.
    """

    f: Floats
    value: float
    gradient: Floats
    curvature: Floats

    @property
    def certificate(self) -> float:
        """max_v g_v - 1: no frequencies have a value larger than this one by more.

        By concavity value(h) - value(f) <= g (h - f), and g f = 1.
        """
        return float(self.gradient.max() - 1)


class Objective:
    """The mean log-likelihood of all reports; counts the passes over them."""

    def __init__(self, parts: Sequence[LikelihoodTerm], threads: int | None) -> None:
        self.parts = parts
        self.n = sum(part.n for part in parts)
        self.size = parts[0].mechanism.domain.size
        self.threads = threads
        self.passes = 0

    def at(self, f: Floats, *, curvature: bool = False) -> Point:
        """One pass."""
        value, gradient, diagonal = 0.0, np.zeros(f.size), np.zeros(f.size)
        for part in self.parts:
            totals, by_value = part.sums(f, self.threads, squares=curvature)
            value += totals[0]
            gradient += totals[1] + part.gain * by_value[0]
            if curvature:
                diagonal += totals[2] + part.gain * (part.gain + 2) * by_value[1]
        self.passes += 1
        return Point(f, value / self.n, gradient / self.n, diagonal / self.n)

    def blocks(self, f: Floats) -> tuple[Indices, Floats]:
        """The blocks that the Hessian at f has, of the part where they matter most."""
        found = max((part.blocks(f) for part in self.parts), key=lambda blocks: blocks[1].sum())
        return found[0], found[1] / self.n

    def information(self, f: Floats, most: int, values: Indices | None = None) -> Floats:
        """mean_i w_i w_i^T / (W f)_i^2, minus the Hessian; of at most ``most`` reports a part.

        With ``values``, only the rows and columns of these.
        """
        values = np.arange(f.size) if values is None else values
        matrix = np.zeros((values.size, values.size))
        for part in self.parts:
            gram = part.gram(f, values, most)
            single = part.gain * gram.single
            matrix += gram.total + single + single[:, None] + part.gain**2 * gram.pairs
        return matrix / self.n
