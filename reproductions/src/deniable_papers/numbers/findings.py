"""The rows: true epsilons, variances beside the printed ones, and errors on data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deniable_papers.cells import Notebook, Settings
from deniable_papers.numbers.boxes import BOXES, MANY
from deniable_papers.numbers.systems import DISTRIBUTIONS, MEANS, OURS, exact_epsilon, small
from deniable_papers.results import Cell, Result, Trial, claimed, compared

PAPER = "survey, sections 3.4, 3.5 and 4"
#: A lattice of 1024 points, or the 32 of Laplace noise, changes a variance by this share at most.
LATTICE = 0.01
#: What the decay of Laplace noise leaves to rounding.
LEFT = 2.0**-15


def epsilons(values: Sequence[float]) -> Iterator[Result]:
    """The largest log ratio of small members, by running their code."""
    names = dict.fromkeys((*MEANS, *DISTRIBUTIONS))
    for name in names:
        for epsilon in values:
            m = small(name, epsilon)
            where = "true epsilon, enumerated"
            cell: Cell = {"system": name, "mechanism": m.name, "epsilon": epsilon}
            yield compared(PAPER, where, cell, epsilon, exact_epsilon(m), rounding=LEFT * epsilon)


def worst(values: Sequence[float]) -> Iterator[Result]:
    """n Var of the worst number, beside what is printed."""
    for name, system in MEANS.items():
        for epsilon in values:
            m = system.build(epsilon)
            ours, printed = 4 * MANY * m.worst_variance(MANY), system.published
            published = None if printed is None else printed(epsilon)
            cell: Cell = {"system": name, "mechanism": m.name, "epsilon": epsilon}
            rounding = LATTICE * (published or 0)
            where = "n Var, worst number"
            yield compared(PAPER, where, cell, published, ours, rounding=rounding)


def least(values: Sequence[float]) -> Iterator[Result]:
    """Whether the worst case of DRR is the least of all."""
    found = {
        (name, epsilon): system.build(epsilon).worst_variance(MANY)
        for name, system in MEANS.items()
        for epsilon in values
    }
    trials = [
        Trial(f"{name} epsilon {epsilon:g}", found["DRR", epsilon] / variance - 1, 0.0)
        for (name, epsilon), variance in found.items()
        if name != "DRR"
    ]
    where, claim = "n Var, worst number, claim", "DRR has the least variance of the worst number"
    yield claimed(PAPER, where, claim, trials)


def means(cells: Sequence[Settings], notebook: Notebook) -> Iterator[Result]:
    """n times the mean squared error of means, and whether it is the formula's."""
    trials = []
    for one in cells:
        values = notebook[one]
        cell = {"data": one["data"], "system": one["system"], "epsilon": one["epsilon"]}
        formula, error = values["formula"], values["error"]
        cell["formula"] = float(f"{formula:.4g}")
        yield compared(PAPER, "n Var of a mean", cell, None, values["value"], error)
        name = f"{one['system']} {one['data']} epsilon {one['epsilon']:g}"
        trials.append(_as_by_formula(name, values["value"] / formula, one["runs"]))
    yield claimed(PAPER, "n Var of a mean, claim", "measured as by the formula", trials)


def boxes(cells: Sequence[Settings], notebook: Notebook) -> Iterator[Result]:
    """The same of several numbers of one person."""
    trials = []
    for one in cells:
        values, d, epsilon = notebook[one], one["d"], one["epsilon"]
        formula, error = BOXES[one["system"]].variance(d, epsilon), values["error"]
        cell = {"d": d, "system": one["system"], "epsilon": epsilon}
        cell["formula"] = float(f"{formula:.4g}")
        yield compared(PAPER, "n Var of each of d means", cell, None, values["value"], error)
        name = f"{one['system']} d {d} epsilon {epsilon:g}"
        trials.append(_as_by_formula(name, values["value"] / formula, d * one["runs"]))
    yield claimed(PAPER, "n Var of each of d means, claim", "measured as by the formula", trials)


def _as_by_formula(name: str, ratio: float, squares: int) -> Trial:
    """The mean of so many squared errors over the formula: the cube root is nearly normal."""
    spread = 2 / (9 * squares)
    return Trial(name, abs(ratio ** (1 / 3) - (1 - spread)), spread**0.5)


def distributions(cells: Sequence[Settings], notebook: Notebook) -> Iterator[Result]:
    """Distances of the estimated distribution from the true one."""
    for one in cells:
        for measure, (value, error) in notebook[one].items():
            cell = {"data": one["data"], "system": one["system"], "epsilon": one["epsilon"]}
            yield compared(PAPER, f"distribution, {measure}", cell, None, value, error)
    for better, worse, where in (
        ("SW with EMS", "discretised, projected", "section 3.5, claim"),
        ("HH, penalised likelihood", "SW with EMS", f"distribution, {OURS}"),
        ("DRR, penalised likelihood", "SW with EMS", f"distribution, {OURS}"),
        ("HH, least squares", "HaarHRR", f"distribution, {OURS}"),
    ):
        for measure in ("W1", "KS", "range"):
            trials = list(_compared(cells, notebook, better, worse, measure))
            claim = f"{better} has a smaller {measure} error than {worse}"
            yield claimed(PAPER, where, claim, trials, "by the means of few runs")


def _compared(
    cells: Sequence[Settings], notebook: Notebook, better: str, worse: str, measure: str
) -> Iterator[Trial]:
    """A trial for each data set and epsilon, by the means of all runs."""
    found = {(one["data"], one["epsilon"], one["system"]): one for one in cells}
    for data, epsilon, system in found:
        if system == better:
            pair = (notebook[found[data, epsilon, name]][measure][0] for name in (better, worse))
            yield Trial(f"{data} epsilon {epsilon:g}", next(pair) / next(pair) - 1, 0.0)
