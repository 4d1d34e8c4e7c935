"""The whole study: its cells in three stages, and the rows and charts made from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from deniable_papers.cells import Notebook, Settings, Values
from deniable_papers.kairouz import closed, hashed
from deniable_papers.kairouz.grids import FULL, QUICK, Grid
from deniable_papers.results import Result
from deniable_papers.study import Study

#: An alphabet, a mechanism and an epsilon of Figure 3.
Line = tuple[str, str, float]
#: Designs that get a second look.
SHORTLIST = 4
_KINDS = {
    "closed": closed.simulate_decoders,
    "open": hashed.simulate,
    "proposition": closed.simulate_unbiased,
}


class Kairouz(Study[Grid]):
    """What `deniable reproduce kairouz` runs."""

    title = "Kairouz, Bonawitz and Ramage, Discrete Distribution Estimation under Local Privacy"
    grids = (QUICK, FULL)

    @staticmethod
    def work(settings: Settings, rng: np.random.Generator) -> Values:
        return _KINDS[settings["kind"]](settings, rng)

    def stages(self, notebook: Notebook) -> Iterator[tuple[str, list[Settings]]]:
        grid = self.grid
        yield "searching designs (Figure 3)", grid.search()
        listed = self.shortlist(notebook).values()
        yield "a second look (Figure 3)", [one for some in listed for one in some]
        yield "losses (Figure 3)", [*grid.plain(), *self.chosen(notebook).values()]
        yield "propositions", grid.propositions()
        yield "decoders (Figures 1-2)", [*grid.figures(), *grid.others()]

    def shortlist(self, notebook: Notebook) -> dict[Line, list[Settings]]:
        """The designs that did best in the search, for each line of Figure 3 at each epsilon."""
        lines: dict[Line, list[tuple[float, Settings]]] = {}
        for settings in self.grid.search():
            losses = notebook[settings]["losses"]
            for epsilon, (loss,) in zip(settings["epsilons"], losses, strict=True):
                line = settings["alphabet"], settings["mechanism"], epsilon
                lines.setdefault(line, []).append((loss, settings))
        again = {"samples": self.grid.second_look}
        return {
            line: [
                {**one, "epsilons": [line[2]], **again}
                for _, one in sorted(found, key=lambda pair: pair[0])[:SHORTLIST]
            ]
            for line, found in lines.items()
        }

    def chosen(self, notebook: Notebook) -> dict[Line, Settings]:
        """The best of each shortlist, to be run with fresh samples."""

        def loss(one: Settings) -> float:
            return float(np.mean(notebook[one]["losses"]))

        best = {line: min(some, key=loss) for line, some in self.shortlist(notebook).items()}
        return {line: {**one, "samples": self.grid.samples} for line, one in best.items()}

    def results(self, notebook: Notebook) -> list[Result]:
        from deniable_papers.kairouz import claims, findings

        return [
            *claims.formulas(),
            *findings.propositions(self.grid, notebook),
            *findings.decoders(self.grid, notebook),
            *findings.open_alphabets(self.grid, notebook, self.chosen(notebook)),
        ]

    def charts(self, results: list[Result]) -> dict[str, Any]:
        from deniable_papers.kairouz import charts

        return {
            "kairouz-figure-1": charts.figure_1(results),
            "kairouz-figure-2": charts.figure_2(results),
            "kairouz-figure-3": charts.figure_3(results),
            "kairouz-bounds": charts.bounds(results),
        }
