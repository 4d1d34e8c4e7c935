"""From simulated cells to rows: Tables I-IV and Figures 2-5, as published and corrected."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from deniable_papers.cells import Notebook
from deniable_papers.comparative.designs import (
    AS_PUBLISHED,
    CORRECTED,
    DEFAULT,
    READINGS,
    SKETCH,
    choices,
    true_epsilon,
)
from deniable_papers.comparative.grids import FIGURES, GEOMETRIC, PANELS, Grid, label
from deniable_papers.comparative.losses import Loss, losses
from deniable_papers.comparative.published import (
    ATTRIBUTES,
    LOSSES,
    MECHANISMS,
    ROUNDING,
    TABLES,
    Attribute,
)
from deniable_papers.datasets import Dataset
from deniable_papers.results import Cell, Result, Verdict, compared

PAPER = "comparative"
SAMPLE = "a sample stands in for the data: rare values are missing"


def data_sets(data: Mapping[str, Dataset]) -> Iterator[Result]:
    """Table I."""
    for one in ATTRIBUTES:
        if one.source in data and one.column in data[one.source].columns:
            column = data[one.source].column(one.column)
            cell: Cell = {"data": one.data, "attribute": one.name}
            n, d = float(column.codes.size), float(column.size)
            yield compared(PAPER, "Table I, n", cell, one.n, n, reason=SAMPLE * (n != one.n))
            yield compared(PAPER, "Table I, d", cell, one.d, d, reason=SAMPLE * (d != one.d))


def printed_sketch() -> Iterator[Result]:
    """Section II.E flips bits with f = 1 / (e^eps / 2 + 1): epsilon is 2 |ln((1 - f) / f)|."""
    reason = "a slip: e^eps / 2 for e^(eps / 2)"
    for epsilon in TABLES:
        ours = 2 * abs(epsilon - math.log(2))
        where = "section II.E, epsilon of CMS as printed"
        yield compared(PAPER, where, {"epsilon": epsilon}, epsilon, ours, reason=reason)


def tables(grid: Grid, data: Mapping[str, Dataset], notebook: Notebook) -> Iterator[Result]:
    """Tables II-IV: every published number, and the same attributes with correct settings."""
    for (one, epsilon), settings in grid.tables(data).items():
        found = losses(settings, notebook[settings])
        place: dict[str, str | int | float] = {
            "data": label(one, data[one.source]),
            "attribute": one.name,
            "epsilon": epsilon,
        }
        for mechanism in MECHANISMS:
            yield from _published(one, epsilon, mechanism, place, found)
        for reading in (CORRECTED, DEFAULT):
            sketch: Cell = {"CMS sketch": _short(found[SKETCH].mean)}
            some = {m: found[c] for m, c in choices(reading, one.d, epsilon).items()}
            where = f"{TABLES[epsilon]}, corrected"
            yield compete(where, {"reading": reading, **place}, some, sketch)


def _published(
    one: Attribute, epsilon: float, mechanism: str, place: Cell, found: Mapping[str, Loss]
) -> Iterator[Result]:
    """The mean and the standard deviation of a cell of a table."""
    choice = READINGS[AS_PUBLISHED][mechanism]
    cell: Cell = {
        **place,
        "mechanism": mechanism,
        "as": choice,
        "true epsilon": _short(true_epsilon(choice, one.d, epsilon)),
    }
    yield _mean(one, epsilon, mechanism, cell, found[choice])
    same = {**place, "mechanism": mechanism}
    yield _deviation(one, epsilon, mechanism, same, found[choice])


def _mean(one: Attribute, epsilon: float, mechanism: str, cell: Cell, ours: Loss) -> Result:
    """A published mean and ours.

    Few runs know their deviation badly. If the setting is right the published one is theirs, too:
    errors follow from the larger of both.
    """
    mean, std = LOSSES[epsilon][one.data, one.name, mechanism]
    known, error = ours._replace(std=max(ours.std, std)), (std + ROUNDING) / math.sqrt(one.runs)
    return compared(
        PAPER, TABLES[epsilon], cell, mean, ours.mean, known.error, ROUNDING,
        _reason(one, mechanism, mean), error, min(ours.runs, one.runs),
    )  # fmt: skip


def _deviation(one: Attribute, epsilon: float, mechanism: str, cell: Cell, ours: Loss) -> Result:
    """A published standard deviation and ours, with errors as in `_mean`."""
    mean, std = LOSSES[epsilon][one.data, one.name, mechanism]
    error = ours._replace(std=max(ours.std, std)).std_error
    return compared(
        PAPER, f"{TABLES[epsilon]}, Std.", cell, std, ours.std, error, ROUNDING,
        _reason(one, mechanism, mean), error * math.sqrt(ours.runs / one.runs),
        min(ours.runs, one.runs),
    )  # fmt: skip


def explained(grid: Grid, data: Mapping[str, Dataset], notebook: Notebook) -> Iterator[Result]:
    """How many published means other settings would explain: what an agreement is worth."""
    cells = grid.tables(data)
    for reading in (AS_PUBLISHED, CORRECTED) if cells else ():
        right = dict.fromkeys(MECHANISMS, 0)
        for (one, epsilon), settings in cells.items():
            found = losses(settings, notebook[settings])
            for mechanism, choice in choices(reading, one.d, epsilon).items():
                row = _mean(one, epsilon, mechanism, {}, found[choice])
                right[mechanism] += row.verdict is Verdict.reproduced
        cell: Cell = {"reading": reading, "means of a mechanism": len(cells), **right}
        where = "Tables II-IV, means explained"
        yield compared(PAPER, where, cell, None, float(sum(right.values())))


def _reason(one: Attribute, mechanism: str, mean: float) -> str:
    """Why the settings of a column may not give its numbers."""
    if one.d >= 63 and mechanism in ("bRAPPOR", "CMS"):
        return f"unexplained: {mean:g} is {mean * one.d:.2f} in l1; zeros everywhere have 1"
    if one.data == "USCensus1990" and mechanism == "HR":
        return "the bias depends on the frequencies, and these are of a sample"
    return ""


def compete(where: str, place: Cell, some: Mapping[str, Loss], more: Cell | None = None) -> Result:
    """The losses of all mechanisms in one row; ``ours`` is the least."""
    best = min(some, key=lambda name: some[name].mean)
    means = {name: _short(loss.mean) for name, loss in some.items()}
    cell: Cell = {**place, "best": best, **means, **(more or {})}
    return compared(PAPER, where, cell, None, some[best].mean, some[best].error)


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def figures(grid: Grid, notebook: Notebook) -> Iterator[Result]:
    """Figures 2-5 with the first geometric distribution; the second serves the claims only."""
    for number in FIGURES:
        for settings in grid.figure(number, GEOMETRIC):
            found = losses(settings, notebook[settings])
            where = f"Figure {number}{PANELS[settings['epsilon']]}"
            for reading in (AS_PUBLISHED, CORRECTED, DEFAULT):
                d, epsilon, n = (settings[name] for name in ("d", "epsilon", "n"))
                place = {"reading": reading, "d": d, "epsilon": epsilon, "n": n}
                some = {m: found[c] for m, c in choices(reading, d, epsilon).items()}
                yield compete(where, place, some)
