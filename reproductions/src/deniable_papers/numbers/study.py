"""The whole study: its cells, and the rows, charts and tables made from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from deniable_papers.cells import Notebook, Settings, Values
from deniable_papers.datasets import Dataset
from deniable_papers.numbers import findings, sets, simulations
from deniable_papers.numbers.grids import FULL, QUICK, Grid
from deniable_papers.results import Result
from deniable_papers.study import Study


class NumbersStudy(Study[Grid]):
    """What `deniable reproduce numbers` runs."""

    title = "Numeric and ordinal systems of T. Wang et al., A Comprehensive Survey on LDP"
    data = sets.NEEDED
    grids = (QUICK, FULL)

    @staticmethod
    def work(settings: Settings, rng: np.random.Generator) -> Values:
        return simulations.simulate(settings, rng)

    def __init__(
        self, full: bool, data: Mapping[str, Dataset] | None = None, grid: Grid | None = None
    ) -> None:
        super().__init__(full, data, grid)
        self.histograms = sets.histograms(self.sets)

    def stages(self, notebook: Notebook) -> Iterator[tuple[str, list[Settings]]]:
        yield "means of one number", self.grid.means(self.histograms)
        yield "means of several numbers", self.grid.boxes()
        yield "distributions", self.grid.distributions(self.histograms)

    def results(self, notebook: Notebook) -> list[Result]:
        return [
            *findings.epsilons(self.grid.epsilons),
            *findings.worst(self.grid.epsilons),
            *findings.least(self.grid.epsilons),
            *findings.means(self.grid.means(self.histograms), notebook),
            *findings.boxes(self.grid.boxes(), notebook),
            *findings.distributions(self.grid.distributions(self.histograms), notebook),
        ]

    def charts(self, results: list[Result]) -> dict[str, Any]:
        from deniable_papers.numbers import charts

        return {
            "numbers-means": charts.means(results),
            "numbers-distributions": charts.distributions(results),
        }

    def texts(self, results: list[Result]) -> dict[str, str]:
        """The table of all systems, as Markdown."""
        from deniable_papers.numbers.tables import markdown

        return {"numbers-systems.md": markdown(results)}
