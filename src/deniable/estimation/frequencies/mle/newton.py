"""To the maximum of the likelihood by second derivatives. Every evaluation is one pass.

This works on phi(f) = sum f - mean_i log (W f)_i, whose minimum over f >= 0 is the maximum on the
simplex: phi falls along every ray up to the point where f sums to 1, so rescaling is free.
"""

from __future__ import annotations

import numpy as np

from deniable.arrays import Floats, Indices
from deniable.estimation.frequencies.mle.objective import Objective, Point
from deniable.estimation.frequencies.solvers import Singular, non_negative

#: Values up to which a Hessian is cheap beside the passes that it saves.
MOST = 2048
#: What rounding may do to a mean log-likelihood.
ROUNDING = 1e-13


def newton(objective: Objective, start: Floats, tolerance: float, most_passes: int) -> Point:
    """Sequential quadratic programming with the Hessian of a sample of the reports.

    A sample of m reports makes the error shrink by about 2 sqrt(k / m) a pass; all of them make
    the convergence quadratic. The Hessian is kept while the certificate falls fast. In a large
    domain only the values in use, or likely to be, take part.
    """
    here = best = objective.at(start)
    before = 0.0
    while best.certificate > tolerance and objective.passes < most_passes:
        if here.certificate > before / 20:
            values = _in_use(here)
            matrix = objective.information(here.f, _sample(values.size), values)
        before = here.certificate
        target = np.zeros(here.f.size)
        target[values] = _model_minimum(matrix, here.f[values], here.gradient[values], before)
        here = _search(objective, here, target, most_passes)
        best = min(best, here, key=lambda point: point.certificate)
    return best


def _in_use(point: Point) -> Indices:
    """The values whose frequency is not 0, then those that gain most, up to `MOST` in all."""
    order = np.argsort(-np.where(point.f > 0, np.inf, point.gradient), kind="stable")
    return np.sort(order[: max(MOST, np.count_nonzero(point.f))])


def _sample(size: int) -> int:
    """Reports for a Hessian: as many as cost some tenths of a second."""
    return int(np.clip((1 << 32) // size**2, 1 << 14, 1 << 16))


def _model_minimum(information: Floats, f: Floats, gradient: Floats, certificate: float) -> Floats:
    """Where the quadratic model of phi at f is least, scaled to sum 1.

    With fewer reports than values the Hessian is singular. A ridge that vanishes with the
    certificate keeps the model sound and the convergence fast; rounding may ask for a larger one.
    """
    ridge = min(1e-3, max(1e-12, 1e-2 * certificate))
    while True:
        matrix = information + np.diag(ridge * np.diagonal(information))
        try:
            z = non_negative(matrix, matrix @ f + gradient - 1, start=f > 0)
        except Singular:
            ridge *= 10
        else:
            return z / float(z.sum())


def _search(objective: Objective, here: Point, target: Floats, most_passes: int) -> Point:
    """The first point from ``target`` back towards f that is no worse and not too far.

    Too far means that the slope has turned round: then the secant through both slopes says where
    to look next.
    """
    direction = target - here.f
    slope = float((here.gradient - 1) @ direction)
    step = 1.0
    while True:
        there = objective.at(here.f + step * direction)
        ahead = float((there.gradient - 1) @ direction)
        better = there.value >= here.value - ROUNDING and ahead >= -0.9 * abs(slope) - ROUNDING
        if better or objective.passes >= most_passes or step < 1e-9:
            return there
        secant = slope / (slope - ahead) if slope > ahead else 0.5
        step *= min(0.5, max(0.1, secant))
