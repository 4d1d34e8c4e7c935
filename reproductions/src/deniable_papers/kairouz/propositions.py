"""Propositions 3 and 4 by simulation: losses of the unbiased estimates against p."""

from __future__ import annotations

import numpy as np

from deniable.mechanisms import GRR, SUE
from deniable_papers.cells import Settings, Values
from deniable_papers.kairouz.distributions import distribution

FAMILIES = {"k-RR": GRR, "k-RAPPOR": SUE}
LOSSES = ("l1", "l2", "norm")


def simulate(settings: Settings, rng: np.random.Generator) -> Values:
    """Mean and standard error of the l1 and (squared) l2 loss, and of the l1 norm."""
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
        for name, mean, error in zip(LOSSES, means, errors, strict=True)
    }
