"""What is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from deniable_papers.cells import Settings
from deniable_papers.numbers.boxes import BOXES
from deniable_papers.numbers.systems import DISTRIBUTIONS, MEANS


@dataclass(frozen=True)
class Grid:
    """The axes of all experiments."""

    epsilons: tuple[float, ...]
    mean_n: int
    mean_runs: int
    sizes: tuple[int, ...]
    box_epsilons: tuple[float, ...]
    box_n: int
    box_runs: int
    #: Of distributions.
    sets: tuple[str, ...]
    n: int
    runs: int

    def means(self, histograms: Mapping[str, list[float]]) -> list[Settings]:
        """One number."""
        return [
            {
                "kind": "mean", "system": system, "epsilon": epsilon, "data": name,
                "n": self.mean_n, "runs": self.mean_runs, "histogram": f,
            }
            for (name, f), system, epsilon in product(histograms.items(), MEANS, self.epsilons)
        ]  # fmt: skip

    def boxes(self) -> list[Settings]:
        """Several numbers of one person."""
        shared = {"kind": "box", "n": self.box_n, "runs": self.box_runs}
        return [
            {**shared, "system": system, "d": d, "epsilon": epsilon}
            for system, d, epsilon in product(BOXES, self.sizes, self.box_epsilons)
        ]

    def distributions(self, histograms: Mapping[str, list[float]]) -> list[Settings]:
        """All of a distribution."""
        known = [(name, f) for name, f in histograms.items() if name in self.sets]
        return [
            {
                "kind": "distribution", "system": system, "epsilon": epsilon, "data": name,
                "n": self.n, "runs": self.runs, "histogram": f,
            }
            for (name, f), system, epsilon in product(known, DISTRIBUTIONS, self.epsilons)
        ]  # fmt: skip


QUICK = Grid(
    epsilons=(1.0, 4.0),
    mean_n=10_000,
    mean_runs=100,
    sizes=(4,),
    box_epsilons=(1.0, 6.0),
    box_n=10_000,
    box_runs=50,
    sets=("normal", "exponential", "income"),
    n=100_000,
    runs=2,
)
FULL = Grid(
    epsilons=(0.5, 1.0, 2.0, 4.0),
    mean_n=10_000,
    mean_runs=200,
    sizes=(4, 16),
    box_epsilons=(1.0, 4.0, 6.0, 8.0),
    box_n=10_000,
    box_runs=100,
    sets=("normal", "exponential", "age", "hours", "capital gain", "income"),
    n=100_000,
    runs=3,
)
