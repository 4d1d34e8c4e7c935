"""Which cells are simulated.

From the text: 100 runs for Statlog and Adult, 10 for the census; d and the range of n of the
figures. Ours, because the text does not say: the steps of n, the runs of the figures, and the
parameter of the geometric distribution (mean d / 5 as in Kairouz et al., and d / 20 beside it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from deniable_papers.cells import Settings
from deniable_papers.comparative.published import ATTRIBUTES, TABLES, Attribute
from deniable_papers.datasets import Dataset

Counts = NDArray[np.int64]

#: d and whether n is small, by figure.
FIGURES = {2: (20, True), 3: (100, True), 4: (100, False), 5: (500, False)}
PANELS = dict(zip(TABLES, "abc", strict=True))
#: The distribution of the rows, and the second one.
GEOMETRIC, SHARPER = "geometric", "geometric 20"
#: Their means are d over these.
MEANS = {GEOMETRIC: 5, SHARPER: 20}


@dataclass(frozen=True)
class Grid:
    """The axes; ``runs`` are those of Statlog and Adult, the census, small n and large n."""

    runs: tuple[int, int, int, int]
    small: tuple[int, ...]
    large: tuple[int, ...]

    def tables(self, data: Mapping[str, Dataset]) -> dict[tuple[Attribute, float], Settings]:
        """The cells of the attributes that the data hold."""
        held = [one for one in ATTRIBUTES if one.source in data]
        found: dict[tuple[Attribute, float], Settings] = {}
        for one in [one for one in held if one.column in data[one.source].columns]:
            runs = self.runs[1] if one.data == "USCensus1990" else self.runs[0]
            for epsilon in TABLES:
                found[one, epsilon] = {
                    "kind": "table",
                    "data": one.data,
                    "attribute": one.name,
                    "histogram": population(one, data[one.source]).tolist(),
                    "epsilon": epsilon,
                    "runs": runs,
                }
        return found

    def figure(self, number: int, name: str) -> list[Settings]:
        """The cells of a figure."""
        d, small = FIGURES[number]
        sizes, runs = (self.small, self.runs[2]) if small else (self.large, self.runs[3])
        shared = {"kind": "figure", "distribution": name, "d": d, "runs": runs}
        return [{**shared, "epsilon": e, "n": n} for e, n in product(TABLES, sizes)]

    def figures(self) -> list[Settings]:
        """All figures, of both distributions."""
        return [
            one for name in (GEOMETRIC, SHARPER) for f in FIGURES for one in self.figure(f, name)
        ]


def population(one: Attribute, data: Dataset) -> Counts:
    """The column as n respondents with d values.

    Of a sample the frequencies are taken (largest remainders make them whole), and values that it
    lacks have frequency 0.
    """
    counts = data.column(one.column).histogram
    counts = np.concatenate([counts, np.zeros(max(0, one.d - counts.size), dtype=np.int64)])
    exact = counts * (one.n / counts.sum())
    whole: Counts = np.floor(exact).astype(np.int64)
    rest = one.n - int(whole.sum())
    whole[np.argsort(whole - exact, kind="stable")[:rest]] += 1
    return whole


def label(one: Attribute, data: Dataset) -> str:
    """What was run: the data themselves, or a sample that stands in for them."""
    if data.n == one.n:
        return one.data
    return f"{one.data} (frequencies of a sample of {data.n:,} rows)"


QUICK = Grid(runs=(12, 2, 4, 2), small=(2000, 20_000), large=(40_000, 400_000))
FULL = Grid(
    runs=(100, 10, 30, 10),
    small=(1000, 2000, 5000, 10_000, 20_000),
    large=(40_000, 100_000, 200_000, 400_000),
)
