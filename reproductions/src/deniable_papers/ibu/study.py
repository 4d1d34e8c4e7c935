"""The whole study: its cells, and the rows and charts made from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from deniable_papers.cells import Notebook, Settings, Values
from deniable_papers.datasets import Dataset
from deniable_papers.ibu.populations import FULL, QUICK, Grid, incomes, seeded
from deniable_papers.ibu.simulation import simulate
from deniable_papers.results import Result
from deniable_papers.study import Study


class Ibu(Study[Grid]):
    """What `deniable reproduce ibu` runs."""

    title = "Arcolezi, Cerna and Palamidessi, On the Utility Gain of Iterative Bayesian Update"
    data = {"acs-income": ("PINCP",)}
    grids = (QUICK, FULL)

    @staticmethod
    def work(settings: Settings, rng: np.random.Generator) -> Values:
        return simulate(settings, rng)

    def __init__(
        self, full: bool, data: Mapping[str, Dataset] | None = None, grid: Grid | None = None
    ) -> None:
        super().__init__(full, data, grid)
        known = self.sets.get("acs-income")
        self._incomes = None if known is None else incomes(known)

    def cells(self, notebook: Notebook) -> list[Settings]:
        """All cells of the tables and figures."""
        return seeded(self.grid.cells(self._incomes), notebook.seed)

    def others(self, notebook: Notebook) -> list[Settings]:
        """The cells of another reading."""
        return seeded(self.grid.equal(), notebook.seed)

    def stages(self, notebook: Notebook) -> Iterator[tuple[str, list[Settings]]]:
        yield "gains of IBU (Tables 2-3, Figures 1-4)", self.cells(notebook)
        yield "another reading of the buckets", self.others(notebook)

    def results(self, notebook: Notebook) -> list[Result]:
        from deniable_papers.ibu import claims, findings
        from deniable_papers.ibu.gains import Found

        found = Found(self.cells(notebook), notebook)
        return [
            *findings.tables(found),
            *findings.figures(found),
            *claims.rows(found),
            *findings.clipping(found),
            *findings.decoders(found),
            *findings.promises(found),
            *findings.readings(found, Found(self.others(notebook), notebook)),
        ]

    def charts(self, results: list[Result]) -> dict[str, Any]:
        from deniable_papers.ibu import charts

        drawn = {
            "ibu-figure-3-4": charts.varied(results),
            "ibu-tables": charts.tables(results),
            "ibu-decoders": charts.decoders(results),
        }
        if any(one.where == "Figure 1" for one in results):
            drawn["ibu-figure-1-2"] = charts.real(results)
        return drawn
