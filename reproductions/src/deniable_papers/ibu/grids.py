"""Which cells are simulated: all of the paper's, with its 20 runs or with fewer."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from numpy.typing import NDArray

from deniable_papers.cells import Settings
from deniable_papers.ibu.populations import REAL, SYNTHETIC, buckets


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
