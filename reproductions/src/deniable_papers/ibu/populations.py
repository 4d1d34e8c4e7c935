"""The data and the cells: samples of five distributions, and incomes, in k buckets.

The text says "bucketize to a k-bins histogram". The authors' software takes k + 1 buckets of equal
width between the least and the largest of a sample and counts the last two as one, and so do we.
These are samples of numbers; `deniable.populations` has shares of listed answers.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable_papers.cells import Settings
from deniable_papers.datasets import Dataset

Counts = NDArray[np.int64]
Sample = NDArray[np.generic]

SYNTHETIC: dict[str, Callable[[np.random.Generator, int], Sample]] = {
    "Gauss.": lambda rng, n: rng.normal(1000.0, 100.0, n),
    "Exp.": lambda rng, n: rng.exponential(1.0, n),
    "Unif.": lambda rng, n: rng.uniform(100.0, 10_000.0, n),
    "Poiss.": lambda rng, n: rng.poisson(5.0, n),
    "Triang.": lambda rng, n: rng.triangular(100.0, 4500.0, 10_000.0, n),
}
#: Incomes of another year and other persons than in the paper.
REAL = "Real (ACS stand-in)"
#: The software asks for one state after the other until it has enough persons.
FIRST_STATES = ("AL", "AK")
#: It leaves out incomes up to this one.
LEAST_INCOME = 100.0


def buckets(sample: Sample, k: int, equal: bool = False) -> Counts:
    """How many are in each of k buckets, the last of which is twice as wide unless ``equal``."""
    counts, _ = np.histogram(sample, bins=k if equal else k + 1)
    if not equal:
        counts[-2] += counts[-1]
    return counts[:k].astype(np.int64)


def incomes(data: Dataset) -> NDArray[np.float64]:
    """Personal incomes above the least; of the first states, if the file has several."""
    columns = {name.lower(): column for name, column in data.columns.items()}
    income = columns["pincp"]
    amounts = np.array([float(label or 0) for label in income.labels])[income.codes]
    kept = amounts > LEAST_INCOME
    if "stabbr" in columns:
        state = columns["stabbr"]
        kept &= np.isin(np.array(state.labels)[state.codes], FIRST_STATES)
    return np.asarray(amounts[kept])


def histograms(settings: Settings, rng: np.random.Generator) -> Counts:
    """The respondents of every run: a row each, n in a row.

    A run has the same sample at every k and epsilon, as in the paper. Of incomes, whose histogram
    is in the settings, every run draws n with replacement.
    """
    n, runs = settings["n"], settings["runs"]
    if "histogram" in settings:
        known = np.array(settings["histogram"])
        return rng.multinomial(n, known / known.sum(), size=runs)
    name = settings["distribution"]
    seed = [settings["sample"]] if "sample" in settings else []
    seeds = ([zlib.crc32(name.encode()), n, run, *seed] for run in range(runs))
    samples = (SYNTHETIC[name](np.random.default_rng(seed), n) for seed in seeds)
    equal = "equal buckets" in settings
    return np.array([buckets(sample, settings["k"], equal) for sample in samples])


@dataclass(frozen=True)
class Grid:
    """The axes; in the first ``learned`` runs the default decoder is tried, too.

    ``readings``: buckets of equal width are tried, too.
    """

    runs: int
    learned: int
    readings: bool = False
    sizes: tuple[int, ...] = (2, 50, 100, 200)
    respondents: tuple[int, ...] = (20_000, 100_000)
    epsilons: tuple[float, ...] = (1.0, 2.0, 4.0)

    def cells(self, incomes: NDArray[Any] | None = None) -> list[Settings]:
        """All cells; those of real data only with incomes."""
        axes = product(self.respondents, self.sizes, self.epsilons)
        rest = {"runs": self.runs, "learned": self.learned}
        cells: list[Settings] = []
        for n, k, epsilon in axes:
            one: Settings = {"n": n, "k": k, "epsilon": epsilon, **rest}
            cells += [{"distribution": name, **one} for name in SYNTHETIC]
            if incomes is not None:
                histogram = buckets(incomes, k).tolist()
                cells.append({"distribution": REAL, **one, "histogram": histogram})
        return cells

    def equal(self) -> list[Settings]:
        """The synthetic data in k buckets of equal width."""
        extra = {"learned": 0, "equal buckets": True}
        return [{**one, **extra} for one in self.cells()] if self.readings else []


def seeded(cells: list[Settings], seed: int) -> list[Settings]:
    """The cells of a seed. They share their samples, so it is among their settings, if not 0."""
    return [{**one, "sample": seed} for one in cells] if seed else cells


QUICK = Grid(runs=4, learned=0)
FULL = Grid(runs=20, learned=4, readings=True)
