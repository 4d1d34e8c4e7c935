"""The whole study: its cells in three stages, and the rows and charts made from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable.studio.papers.cells import Notebook, Settings, Values
from deniable.studio.papers.kairouz import closed, hashed, propositions
from deniable.studio.papers.kairouz.grids import FULL, QUICK, Grid
from deniable.studio.papers.results import Result

#: Designs within this of the best of the search count as equal: the smallest is taken.
ALIKE = 1.03
_KINDS = {
    "closed": closed.simulate,
    "open": hashed.simulate,
    "proposition": propositions.simulate,
}


def work(settings: Settings, rng: np.random.Generator) -> Values:
    """Simulate one cell."""
    return _KINDS[settings["kind"]](settings, rng)


class Kairouz:
    """What `deniable reproduce kairouz` runs."""

    name = "kairouz"
    title = "Kairouz, Bonawitz and Ramage, Discrete Distribution Estimation under Local Privacy"
    work = staticmethod(work)

    def __init__(self, full: bool, grid: Grid | None = None) -> None:
        self.grid = grid or (FULL if full else QUICK)

    def stages(self, notebook: Notebook) -> Any:
        """(name, cells) of each stage; the last needs what the first found."""
        grid = self.grid
        yield "searching designs (Figure 3)", grid.search()
        yield "losses (Figure 3)", [*grid.plain(), *self.chosen(notebook).values()]
        yield "propositions", grid.propositions()
        yield "decoders (Figures 1-2)", [*grid.figures(), *grid.others()]

    def chosen(self, notebook: Notebook) -> dict[tuple[str, str, float], Settings]:
        """The design of each line of Figure 3 at each epsilon."""
        lines: dict[tuple[str, str, float], list[tuple[float, Settings]]] = {}
        for settings in self.grid.search():
            losses = notebook[settings]["losses"]
            for epsilon, (loss,) in zip(settings["epsilons"], losses, strict=True):
                line = settings["alphabet"], settings["mechanism"], epsilon
                lines.setdefault(line, []).append((loss, settings))
        return {line: self._final(found, line[2]) for line, found in lines.items()}

    def _final(self, found: list[tuple[float, Settings]], epsilon: float) -> Settings:
        least = min(loss for loss, _ in found)
        good = [one for loss, one in found if loss <= ALIKE * least]
        best = min(good, key=lambda one: one["cohorts"] * one["width"] * one["hashes"])
        return {**best, "epsilons": [epsilon], "samples": self.grid.samples}

    def results(self, notebook: Notebook) -> list[Result]:
        """All rows."""
        from deniable.studio.papers.kairouz import claims, findings

        return [
            *claims.formulas(),
            *findings.propositions(self.grid, notebook),
            *findings.decoders(self.grid, notebook),
            *findings.open_alphabets(self.grid, notebook, self.chosen(notebook)),
        ]

    def charts(self, results: list[Result]) -> dict[str, Any]:
        """Charts by the name of their file."""
        from deniable.studio.papers.kairouz import charts

        return {
            "kairouz-figure-1": charts.figure_1(results),
            "kairouz-figure-2": charts.figure_2(results),
            "kairouz-figure-3": charts.figure_3(results),
            "kairouz-bounds": charts.bounds(results),
        }
