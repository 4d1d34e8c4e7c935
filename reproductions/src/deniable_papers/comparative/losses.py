"""A cell: the mean absolute error of every design and decoder over some runs."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.populations import geometric
from deniable_papers.cells import Settings, Values
from deniable_papers.comparative.designs import estimates
from deniable_papers.comparative.grids import MEANS


def simulate(settings: Settings, rng: np.random.Generator) -> Values:
    """[mean, standard deviation, error of the latter] of the MAE, by design and decoder.

    Real data are one population; synthetic ones are drawn anew for each run.
    """
    runs: dict[str, list[float]] = {}
    for _ in range(settings["runs"]):
        histogram = _population(settings, rng)
        truth = histogram / histogram.sum()
        for name, f in estimates(histogram, settings["epsilon"], rng).items():
            runs.setdefault(name, []).append(float(np.abs(f - truth).mean()))
    return {name: [float(f"{x:.6g}") for x in _moments(losses)] for name, losses in runs.items()}


def _population(settings: Settings, rng: np.random.Generator) -> NDArray[np.int64]:
    if "histogram" in settings:
        return np.array(settings["histogram"], dtype=np.int64)
    d = settings["d"]
    p = geometric(d, d / (d + MEANS[settings["distribution"]]))
    return rng.multinomial(settings["n"], p)


def _moments(losses: list[float]) -> tuple[float, float, float]:
    """Var(s) is about (m4 - s^4) / (4 s^2 r) for r runs with fourth central moment m4."""
    x = np.array(losses)
    s, fourth = float(x.std(ddof=1)), float(((x - x.mean()) ** 4).mean())
    error = math.sqrt(max(fourth - s**4, 0.0) / (4 * x.size)) / s if s else 0.0
    return float(x.mean()), s, error


class Loss(NamedTuple):
    """The mean absolute error of a design and decoder over ``runs``."""

    mean: float
    std: float
    by_moments: float
    runs: int

    @property
    def std_error(self) -> float:
        """Of the standard deviation: by moments, which few runs know badly, or of normal runs."""
        return max(self.by_moments, self.std / math.sqrt(2 * (self.runs - 1)))

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return self.std / math.sqrt(self.runs)


def losses(settings: Settings, values: Values) -> dict[str, Loss]:
    """The losses of a finished cell."""
    runs = settings["runs"]
    return {name: Loss(mean, std, error, runs) for name, (mean, std, error) in values.items()}
