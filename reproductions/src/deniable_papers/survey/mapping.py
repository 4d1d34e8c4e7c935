"""Rows of the map: what to choose at each epsilon, k and n, and what the library would."""

from __future__ import annotations

import math
from collections.abc import Iterator

from deniable_papers.cells import Notebook
from deniable_papers.results import Cell, Result, Trial, claimed, compared
from deniable_papers.survey.choosing import GOOD, Point
from deniable_papers.survey.grids import Grid
from deniable_papers.survey.losses import DECODERS, MECHANISMS
from deniable_papers.survey.table4 import PAPER


def points(grid: Grid, notebook: Notebook) -> list[Point]:
    """The finished map."""
    return [
        Point(
            *at, grid.map_sizes[at[1]], {name: notebook[one] for name, one in grid.at(*at).items()}
        )
        for at in grid.points()
    ]


def rows(grid: Grid, notebook: Notebook) -> Iterator[Result]:
    """All of them."""
    found = points(grid, notebook)
    yield from map(_chosen, found)
    yield from map(_auto, found)
    yield _auto_claim(found)
    clear = [point for point in found if not point.drowned]
    for name in MECHANISMS:
        yield _mean(clear, "mechanism", name, [(name, decoder) for decoder in DECODERS])
    for decoder in DECODERS:
        yield _mean(clear, "decoder", decoder, [(name, decoder) for name in MECHANISMS])


def _at(point: Point) -> dict[str, str | int | float]:
    return {"epsilon": point.epsilon, "k": point.k, "n": point.n}


def _chosen(point: Point) -> Result:
    """The score of the choice over the least score."""
    name, decoder = point.chosen
    cell: Cell = {
        **_at(point),
        "mechanism": name.upper(),
        "decoder": decoder,
        "best": f"{point.best[0].upper()} {point.best[1]}",
        "variance": round(point.variance_ratio(name), 3),
        "worst": round(point.worst(point.chosen), 2),
        "l1 / uniform guess": round(point.noise, 4),
        "drowned": "yes" if point.drowned else "no",
    }
    return compared(PAPER, "map", cell, None, *point.excess(point.chosen))


def _auto(point: Point) -> Result:
    """How much worse than the best choice the library's own is."""
    name, decoder = point.auto
    cell: Cell = {**_at(point), "mechanism": name.upper(), "decoder": decoder}
    return compared(PAPER, "map, auto", cell, None, *point.excess(point.auto))


def _auto_claim(found: list[Point]) -> Result:
    trials = []
    for point in found:
        value, error = point.excess(point.auto)
        place = " ".join(f"{name} {number:g}" for name, number in _at(point).items())
        trials.append(Trial(f"{place} {point.auto[0]} for {point.best[0]}", value - GOOD, error))
    claim = f"auto with the default decoder is at most {GOOD - 1:.0%} above the least score"
    return claimed(PAPER, "map, claim", claim, trials, "ours, not the paper's")


def _mean(found: list[Point], kind: str, name: str, choices: list[tuple[str, str]]) -> Result:
    """The geometric mean, over points that are not drowned, of the least of these over all."""
    ratios = [
        min(point.excess(choice)[0] for choice in choices if choice in point.scores)
        for point in found
        if any(choice in point.scores for choice in choices)
    ]
    mean = math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios)) if ratios else 1.0
    place = 0 if kind == "mechanism" else 1
    cell: Cell = {
        kind: name.upper() if kind == "mechanism" else name,
        "points": len(ratios),
        "chosen": sum(point.chosen[place] == name for point in found),
        "within 5%": sum(ratio <= GOOD for ratio in ratios),
        "worst": round(max(ratios, default=1.0), 3),
    }
    return compared(PAPER, f"map, {kind}", cell, None, mean)
