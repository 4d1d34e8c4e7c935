"""What is simulated: means of one number, means of several, and distributions."""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator

import deniable as dn
from deniable.arrays import Floats
from deniable_papers.cells import Settings, Values
from deniable_papers.numbers.boxes import BOXES, estimated, numbers_of_boxes
from deniable_papers.numbers.systems import DISTRIBUTIONS, MEANS

#: Random ranges whose shares are looked at.
RANGES = 500


def simulate(settings: Settings, rng: Generator) -> Values:
    """The values of a cell."""
    return {"mean": _mean, "box": _box, "distribution": _distribution}[settings["kind"]](
        settings, rng
    )


def _average(squares: Floats) -> Values:
    """The mean of some squares over runs, with its standard error."""
    error = squares.std(ddof=1) / math.sqrt(len(squares))
    return {"value": float(f"{squares.mean():.9g}"), "error": float(f"{error:.6g}")}


def respondents(histogram: list[float], n: int) -> Floats:
    """n numbers of 0..1 with these shares, as nearly as n allows."""
    ranks = (np.arange(n) + 0.5) / n
    places = np.searchsorted(np.cumsum(histogram), ranks).clip(max=len(histogram) - 1)
    return np.asarray(places / (len(histogram) - 1))


def _mean(settings: Settings, rng: Generator) -> Values:
    """n times the mean squared error of a mean of -1..1, of the same people again and again."""
    n, m = settings["n"], MEANS[settings["system"]].build(settings["epsilon"])
    x = respondents(settings["histogram"], n)
    found = np.array([estimated(m, x, rng) for _ in range(settings["runs"])])
    return {
        **_average(4 * n * (found - x.mean()) ** 2),
        "formula": float(f"{4 * n * m.variance_for(x, n):.9g}"),
    }


def _distribution(settings: Settings, rng: Generator) -> Values:
    """The mean distance of cumulative shares (W1), the largest (KS), and the error of ranges."""
    f, n, system = np.array(settings["histogram"]), settings["n"], DISTRIBUTIONS[settings["system"]]
    m = system.build(dn.Number(0, len(f) - 1, 1), settings["epsilon"])
    ranges = np.sort(rng.integers(0, len(f) + 1, (RANGES, 2)), axis=1)
    found = []
    for _ in range(settings["runs"]):
        x = np.repeat(np.arange(len(f)), rng.multinomial(n, f / f.sum()))
        shares = system.decode(m, m.count(m.privatize(x, rng).data), n)
        off = np.concatenate([[0.0], np.cumsum(shares - np.bincount(x, minlength=len(f)) / n)])
        inside = off[ranges[:, 1]] - off[ranges[:, 0]]
        found.append((np.abs(off).mean(), np.abs(off).max(), np.sqrt(np.mean(inside**2))))
    means = np.mean(found, axis=0)
    errors = np.std(found, axis=0, ddof=1) / math.sqrt(len(found))
    names = ("W1", "KS", "range")
    return {name: [float(f"{a:.6g}"), float(f"{b:.6g}")]
            for name, a, b in zip(names, means, errors, strict=True)}  # fmt: skip


def _box(settings: Settings, rng: Generator) -> Values:
    """n times the mean squared error of the means of d numbers, averaged over the d."""
    d, n, epsilon = settings["d"], settings["n"], settings["epsilon"]
    v, box = numbers_of_boxes(n * d).reshape(d, n).T, BOXES[settings["system"]]
    errors = [box.estimate(v, epsilon, rng) - v.mean(axis=0) for _ in range(settings["runs"])]
    return _average(n * np.square(errors).mean(axis=1))
