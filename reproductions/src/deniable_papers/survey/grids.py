"""What is simulated; the paper has formulas only, so that all grids are ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from deniable_papers.cells import Settings
from deniable_papers.survey.losses import DISTRIBUTIONS
from deniable_papers.survey.means import NAMES
from deniable_papers.survey.oracles import ORACLES

#: The mechanisms whose runs are longer, and so fewer: respondents share hash functions.
SHARED = ("rappor", "orappor", "orr", "cms", "hcms")


@dataclass(frozen=True)
class Grid:
    """The axes of all experiments; runs fall with k, as all values of a run are averaged."""

    sizes: tuple[int, ...]
    epsilons: tuple[float, ...]
    most_runs: int
    shared_runs: int
    timed: tuple[int, ...]
    timed_n: int
    repeats: int
    mean_epsilons: tuple[float, ...]
    draws: int
    map_sizes: dict[int, int]
    map_epsilons: tuple[float, ...]
    map_n: tuple[int, ...]

    def variances(self) -> list[Settings]:
        """Table 4."""
        axes = product(ORACLES.items(), self.sizes, self.epsilons)
        return [
            {
                "kind": "variance", "mechanism": name, "k": k, "epsilon": epsilon,
                "runs": self._runs(oracle.family, k),
            }
            for (name, oracle), k, epsilon in axes if oracle.suits(k)
        ]  # fmt: skip

    def _runs(self, family: str, k: int) -> int:
        most = self.shared_runs if family in SHARED else self.most_runs
        least = most // 2 if family in SHARED else most // 40
        return max(least, most // (k // 2))

    def costs(self) -> list[Settings]:
        """Times of all mechanisms at epsilon 1."""
        shared = {"kind": "cost", "epsilon": 1.0, "n": self.timed_n, "repeats": self.repeats}
        return [
            {**shared, "mechanism": name, "k": k}
            for (name, oracle), k in product(ORACLES.items(), self.timed)
            if oracle.suits(k)
        ]

    def means(self) -> list[Settings]:
        """Table 9."""
        return [
            {"kind": "mean", "mechanism": name, "epsilon": epsilon, "draws": self.draws}
            for name, epsilon in product(NAMES, self.mean_epsilons)
        ]

    def points(self) -> Iterator[tuple[float, int, int]]:
        """(epsilon, k, n) of the map."""
        return product(self.map_epsilons, self.map_sizes, self.map_n)

    def at(self, epsilon: float, k: int, n: int) -> dict[str, Settings]:
        """The cells of a point of the map, by distribution."""
        shared = {"kind": "map", "epsilon": epsilon, "k": k, "n": n, "runs": self.map_sizes[k]}
        return {name: {**shared, "distribution": name} for name in DISTRIBUTIONS}

    def maps(self) -> list[Settings]:
        """All cells of the map."""
        return [cell for point in self.points() for cell in self.at(*point).values()]


QUICK = Grid(
    sizes=(2, 16, 128),
    epsilons=(1.0, 4.0),
    most_runs=1200,
    shared_runs=60,
    timed=(16,),
    timed_n=50_000,
    repeats=3,
    mean_epsilons=(0.5, 1.0, 2.0, 4.0),
    draws=200_000,
    map_sizes={4: 6, 64: 4},
    map_epsilons=(0.5, 2.0, 4.0),
    map_n=(1_000, 100_000),
)
FULL = Grid(
    sizes=(2, 16, 128, 1024),
    epsilons=(0.5, 1.0, 2.0, 4.0),
    most_runs=4000,
    shared_runs=300,
    timed=(16, 1024),
    timed_n=50_000,
    repeats=5,
    mean_epsilons=(0.25, 0.5, 1.0, 1.5, 2.0, 4.0),
    draws=1_000_000,
    map_sizes={2: 12, 4: 16, 16: 12, 64: 8, 256: 6, 1024: 5},
    map_epsilons=(0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0),
    map_n=(1_000, 10_000, 100_000, 1_000_000),
)
