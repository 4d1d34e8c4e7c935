"""The whole study: its cells in two stages, and the rows and charts made from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from deniable.datasets import Dataset
from deniable.studio.papers.cells import Notebook, Settings
from deniable.studio.papers.comparative import losses
from deniable.studio.papers.comparative.grids import FULL, QUICK, Grid
from deniable.studio.papers.comparative.published import COLUMNS
from deniable.studio.papers.results import Result


class Comparative:
    """What `deniable reproduce comparative` runs."""

    name = "comparative"
    title = "Le and Zia, Discrete Distribution Estimation with LDP: A Comparative Analysis"
    data: Mapping[str, tuple[str, ...]] = COLUMNS
    work = staticmethod(losses.simulate)

    def __init__(
        self, full: bool, data: Mapping[str, Dataset] | None = None, grid: Grid | None = None
    ) -> None:
        self.grid = grid or (FULL if full else QUICK)
        self.sets = dict(data or {})

    def stages(self, notebook: Notebook) -> Iterator[tuple[str, list[Settings]]]:
        """(name, cells) of each stage."""
        yield "real data (Tables II-IV)", list(self.grid.tables(self.sets).values())
        yield "synthetic data (Figures 2-5)", self.grid.figures()

    def results(self, notebook: Notebook) -> list[Result]:
        """All rows."""
        from deniable.studio.papers.comparative import claims, findings

        return [
            *findings.data_sets(self.sets),
            *findings.printed_sketch(),
            *findings.tables(self.grid, self.sets, notebook),
            *findings.figures(self.grid, notebook),
            *claims.all_claims(self.grid, self.sets, notebook),
        ]

    def charts(self, results: list[Result]) -> dict[str, Any]:
        """Charts by the name of their file; the tables need data."""
        from deniable.studio.papers.comparative import charts

        drawn = {"comparative-figures": charts.figures(results)}
        if any(one.where.startswith("Table II") for one in results):
            drawn["comparative-tables"] = charts.tables(results)
        return drawn
