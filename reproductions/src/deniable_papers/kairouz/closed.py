"""Listed values: losses of k-RR and k-RAPPOR, for Propositions 3-4 and for Figures 1-2.

The figures are about l1 losses of decoders, against what was answered. Both mechanisms and all
decoders meet the same respondents, so differences of their losses are known better than the losses:
a cell holds the covariances of the mean losses, too.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from deniable.estimation.frequencies.ibu import water_filling
from deniable.estimation.frequencies.simplex import clip_and_normalize, project
from deniable.mechanisms import GRR, SUE
from deniable_papers.cells import Settings, Values
from deniable_papers.kairouz.grids import distribution

Floats = NDArray[np.float64]
#: The decoders that the paper compares; "ml" is the maximum likelihood of k-RR.
DECODERS = (
    "k-RR ml", "k-RR normalized", "k-RR projected",
    "k-RAPPOR standard", "k-RAPPOR normalized", "k-RAPPOR projected",
)  # fmt: skip
FAMILIES = {"k-RR": GRR, "k-RAPPOR": SUE}
#: What is simulated for the propositions.
UNBIASED_LOSSES = ("l1", "l2", "norm")
#: Covariances are kept to six digits: variances of differences below this share are rounding.
ROUNDING = 1e-5


def simulate_unbiased(settings: Settings, rng: np.random.Generator) -> Values:
    """Propositions 3 and 4: losses of the unbiased estimates, against p.

    Mean and standard error of the l1 and (squared) l2 loss, and of the l1 norm.
    """
    k, n = settings["k"], settings["n"]
    m = FAMILIES[settings["mechanism"]](k, settings["epsilon"])
    p = distribution(settings["distribution"], k, rng)
    runs = []
    for _ in range(settings["runs"]):
        f = m.unbiased(m.simulate(rng.multinomial(n, p), rng), n)
        runs.append((np.abs(f - p).sum(), np.square(f - p).sum(), np.abs(f).sum()))
    means = np.mean(runs, axis=0)
    errors = np.std(runs, axis=0, ddof=1) / len(runs) ** 0.5
    return {
        name: [float(f"{mean:.8g}"), float(f"{error:.6g}")]
        for name, mean, error in zip(UNBIASED_LOSSES, means, errors, strict=True)
    }


def simulate_decoders(settings: Settings, rng: np.random.Generator) -> Values:
    """Figures 1 and 2: the mean losses by `DECODERS`.

    Beside them the covariances of these means (upper triangle).
    """
    losses = np.array(list(_runs(settings, rng)))
    covariance = np.cov(losses.T) / len(losses)
    upper = covariance[np.triu_indices(len(DECODERS))]
    return {
        "means": [float(f"{mean:.8g}") for mean in losses.mean(axis=0)],
        "covariances": [float(f"{entry:.6g}") for entry in upper],
    }


def _runs(settings: Settings, rng: np.random.Generator) -> Iterator[list[float]]:
    k, n = settings["k"], settings["n"]
    rr, rappor = GRR(k, settings["epsilon"]), SUE(k, settings["epsilon"])
    p, q = float(rr.p), float(rr.q)
    for _ in range(settings["runs"]):
        histogram = rng.multinomial(n, distribution(settings["distribution"], k, rng))
        counts = rr.simulate(histogram, rng)
        unbiased = rr.unbiased(counts, n)
        bits = rappor.unbiased(rappor.simulate(histogram, rng), n)
        decoded = (
            water_filling(counts, p, q), clip_and_normalize(unbiased), project(unbiased),
            bits, clip_and_normalize(bits), project(bits),
        )  # fmt: skip
        truth = histogram / n
        yield [float(np.abs(one - truth).sum()) for one in decoded]


class Losses:
    """The mean losses of a cell."""

    def __init__(self, values: Values) -> None:
        size = len(DECODERS)
        self.means = dict(zip(DECODERS, values["means"], strict=True))
        upper = np.zeros((size, size))
        upper[np.triu_indices(size)] = values["covariances"]
        self._covariance = upper + np.triu(upper, 1).T

    def best(self, mechanism: str, but: str = "") -> str:
        """The decoder of a mechanism with the least mean loss, other than ``but``."""
        names = [name for name in DECODERS if name.startswith(mechanism + " ") and name != but]
        return min(names, key=self.means.__getitem__)

    def difference(self, one: str, other: str) -> tuple[float, float]:
        """Loss of one less that of the other, and its standard error."""
        weights = np.zeros(len(DECODERS))
        weights[DECODERS.index(one)], weights[DECODERS.index(other)] = 1.0, -1.0
        variance = float(weights @ self._covariance @ weights)
        least = ROUNDING * float(weights**2 @ np.diag(self._covariance))
        return self.means[one] - self.means[other], max(variance, least) ** 0.5

    def gain(self, mechanism: str) -> tuple[float, float]:
        """Figure 1: loss of the projected decoder less that of the next best (negative: better)."""
        projected = f"{mechanism} projected"
        return self.difference(projected, self.best(mechanism, projected))

    def advantage(self) -> tuple[float, float]:
        """Figure 2: loss of the best k-RR less that of the best k-RAPPOR (negative: better)."""
        return self.difference(self.best("k-RR"), self.best("k-RAPPOR"))
