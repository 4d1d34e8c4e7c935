"""To the maximum of the likelihood by first derivatives, for domains too large for more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.arrays import Floats, Indices
from deniable.estimation.frequencies.mle.newton import ROUNDING
from deniable.estimation.frequencies.mle.objective import Objective, Point


def accelerated(objective: Objective, start: Floats, tolerance: float, most_passes: int) -> Point:
    """Projected gradients with momentum.

    The metric is a simple likeness of the Hessian times a factor, the largest curvature met of late
    relative to it. A point that is worse than the one before is not kept: first the momentum is
    dropped and the metric made anew, then the steps are cut.
    """
    here = best = objective.at(start, curvature=True)
    metric = Metric.at(objective, here)
    last, scale, age = here.f, 1.0, 1.0
    while best.certificate > tolerance and objective.passes < most_passes:
        step = metric.step(here, scale)
        older = (1 + np.sqrt(1 + 4 * age**2)) / 2
        ahead = np.maximum(step + (age - 1) / older * (step - last), 0.0)
        there = objective.at(ahead / ahead.sum(), curvature=True)
        met = metric.curvature(here, there)
        if there.value < here.value - ROUNDING:
            scale = scale if age > 1 else max(2 * scale, met)
            metric = Metric.at(objective, here)
            last, age = here.f, 1.0
            continue
        scale = max(0.9 * scale, met)
        here, last, age = there, step, older
        best = min(best, here, key=lambda point: point.certificate)
    return best


@dataclass(frozen=True, eq=False)
class Metric:
    """A diagonal, plus a constant ``stiffness`` between the values of each block.

    The diagonal is that of the Hessian on the plane of constant sum, mean_i (w_iv / (W f)_i -
    g_v)^2, less what the block has in common.
    """

    diagonal: Floats
    block: Indices
    stiffness: Floats

    @classmethod
    def at(cls, objective: Objective, point: Point) -> Metric:
        block, stiffness = objective.blocks(point.f)
        spread = np.maximum(point.curvature - point.gradient**2, 1e-3 * point.curvature)
        return cls(np.maximum(spread - stiffness[block], 0.25 * spread), block, stiffness)

    def curvature(self, here: Point, there: Point) -> float:
        """The curvature of the likelihood between two points, relative to the metric."""
        moved = there.f - here.f
        along = float(moved**2 @ self.diagonal + self.stiffness @ self._totals(moved) ** 2)
        return float((here.gradient - there.gradient) @ moved) / along if along else 0.0

    def step(self, here: Point, scale: float) -> Floats:
        """The z of the simplex with the least scale |z - f|^2 / 2 - g (z - f) in this metric.

        z_v = max(x_v - t_b / D_v, 0) with x = f + (g - 1) / (scale D), and t_b = t + c_b (Z_b -
        F_b) for the block's sums Z and F of z and f: linear, once it is known which z are positive.
        """
        d = self.diagonal
        x = here.f + (here.gradient - 1) / (scale * d)
        positive = np.ones(x.size, dtype=np.bool_)
        c, total = self.stiffness, self._totals(here.f)
        for _ in range(50):
            a, b = self._totals(x * positive), self._totals(positive / d)
            soft = 1 + c * b
            fixed = a - b * c * (a - total) / soft
            t = (fixed.sum() - 1) / (b / soft).sum()
            z: Floats = x - ((t + c * (a - total)) / soft)[self.block] / d
            if np.array_equal(positive, z > 0):
                break
            positive = z > 0
        z = np.maximum(z, 0.0)
        return z / float(z.sum())

    def _totals(self, values: Floats) -> Floats:
        """The sum over each block."""
        totals = np.bincount(self.block, weights=values, minlength=self.stiffness.size)
        return totals.astype(np.float64, copy=False)
