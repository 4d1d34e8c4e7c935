"""Rows about Table 4: variances, the size of reports, and times; and all of them as one table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from deniable.mechanisms import BasicRAPPOR
from deniable_papers.cells import Notebook, Settings
from deniable_papers.results import Cell, Result, Trial, Verdict, claimed, compared
from deniable_papers.survey.costs import STEPS, growth
from deniable_papers.survey.grids import Grid
from deniable_papers.survey.oracles import ORACLES

PAPER = "survey"
#: "O(log k)" is a power of k below this, between 2^10 and 2^16 values.
ALLOWED_POWER = 0.2
#: Formulas that differ by less are the same: thresholds are rounded to 2**-64.
SAME = 1e-6
#: The one table is about this epsilon.
EPSILON = 1.0


def rows(grid: Grid, notebook: Notebook) -> Iterator[Result]:
    """All of them."""
    cells = grid.variances()
    for one in cells:
        yield _variance(one, notebook)
    yield _our_formulas(cells, notebook)
    yield _google()
    yield from _communication()
    yield _subsets()
    for one in grid.costs():
        yield _times(one, notebook)


def _variance(one: Settings, notebook: Notebook) -> Result:
    """n Var at f = 0: published, and measured; our formula is in the cell.

    Reproduced: our formula is the published one, and what was measured is not surely another.
    """
    values = notebook[one]
    published, formula = values["published"], values["formula"]
    cell: Cell = {
        "mechanism": one["mechanism"],
        "k": one["k"],
        "epsilon": one["epsilon"],
        "formula": float(f"{formula:.5g}"),
    }
    pair, where = (values["mean"], values["error"]), "Table 4, variance"
    found = compared(PAPER, where, cell, published, *pair)
    if published is None or abs(formula / published - 1) <= SAME:
        return found
    reason = ORACLES[one["mechanism"]].reason
    return replace(found, verdict=Verdict.differs, reason=reason)


def _our_formulas(cells: list[Settings], notebook: Notebook) -> Result:
    trials = []
    for one in cells:
        values = notebook[one]
        name = f"{one['mechanism']} k {one['k']} epsilon {one['epsilon']:g}"
        away = abs(values["mean"] - values["formula"])
        trials.append(Trial(name, away / values["formula"], values["error"] / values["formula"]))
    claim = "the measured n Var is that of the library's formula"
    return claimed(PAPER, "Table 4, our formulas", claim, trials)


def _google() -> Result:
    """RAPPOR as it was run: the text gives it the epsilon of the permanent step."""
    m = BasicRAPPOR(16, f=0.5, p=0.75, q=0.5)
    s = math.exp(m.epsilon_inf / 2)
    cell: Cell = {"k": 16, "epsilon_inf": round(m.epsilon_inf, 4), "epsilon": round(m.epsilon, 4)}
    reason = "the formula is that of one symmetric step; the second step costs the rest"
    ours = float(m.variance(1, 0.0))
    where = "Table 4, RAPPOR with r .5, p .75, q .5"
    return compared(PAPER, where, cell, s / (s - 1) ** 2, ours, reason=reason)


def _communication() -> Iterator[Result]:
    """The power of k that the bits of a report follow, at epsilon 1."""
    for name, oracle in ORACLES.items():
        sizes = [k for k in (2, 16, 1024) if oracle.suits(k)][-2:]
        built = {k: oracle.build(k, 1.0) for k in sizes}
        cell: Cell = {
            "mechanism": name,
            "order": oracle.order,
            **{f"bits at {k}": m.bits_per_report for k, m in built.items()},
            **{f"bytes at {k}": m.dtype.itemsize for k, m in built.items()},
        }
        power, where = growth(oracle, 1.0), "Table 4, communication"
        order = None if power is None else oracle.exponent
        yield compared(PAPER, where, cell, order, power or 0.0, rounding=ALLOWED_POWER)


def _subsets() -> Result:
    """Section 3.1.5: omega indices of log2 k bits against a bit for every value."""
    trials = []
    for k in (16, 128, 1024):
        for epsilon in (0.5, 1.0, 2.0, 4.0):
            omega = getattr(ORACLES["w-SM"].build(k, epsilon), "omega")  # noqa: B009
            value = omega * math.ceil(math.log2(k)) / k - 1
            trials.append(Trial(f"k {k} epsilon {epsilon:g} omega {omega}", value, 0.0))
    claim = "w-SM reduces the communication cost (against k bits)"
    note = "omega is about k / (e^eps + 1)"
    return claimed(PAPER, "Table 4, communication, claim", claim, trials, note)


def _times(one: Settings, notebook: Notebook) -> Result:
    """The time of a client over that of GRR; the other steps are in the cell."""
    values = notebook[one]
    cell: Cell = {
        "mechanism": one["mechanism"],
        "k": one["k"],
        **{step: values[step][0] for step in STEPS[1:]},
        **({f"us, {step}": values[step][1] for step in STEPS} if one["mechanism"] == "GRR" else {}),
    }
    return compared(PAPER, "Table 4, times / GRR", cell, None, values["client"][0])


def markdown(results: Sequence[Result]) -> str:
    """One table of all mechanisms, in Markdown: variances, sizes and times.

    Of Table 4's rows it also says how many designs were reproduced.
    """
    measured = _rows_about(results, "variance")
    names = list(dict.fromkeys(str(one.cell["mechanism"]) for one in measured))
    sizes = sorted({int(one.cell["k"]) for one in measured})
    shown = (sizes[len(sizes) > 2], sizes[-1])
    head = ["mechanism", "Table 4 reproduced"]
    head += [f"n Var, k = {k}: Table 4, formula, measured" for k in shown]
    head += ["order in Table 4", "bits, k = 16; 1024", "bytes", "client", "tally", "decoding"]
    lines = [head, ["---"] * len(head), *(_line(results, name, shown) for name in names)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _rows_about(results: Sequence[Result], part: str) -> list[Result]:
    return [one for one in results if one.where == f"Table 4, {part}"]


def _line(results: Sequence[Result], name: str, sizes: Sequence[int]) -> list[str]:
    own = [one for one in results if one.cell.get("mechanism") == name]
    found = _rows_about(own, "variance")
    right = sum(one.verdict is Verdict.reproduced for one in found)
    share = f"{right} of {len(found)}" if found[0].published is not None else ""
    (size,) = _rows_about(own, "communication")
    bits, packed = (
        "; ".join(str(value) for key, value in size.cell.items() if key.startswith(unit))
        for unit in ("bits", "bytes")
    )
    numbers = [_numbers(found, k) for k in sizes]
    return [name, share, *numbers, str(size.cell["order"]), bits, packed, *_relative_times(own)]


def _numbers(found: Sequence[Result], k: int) -> str:
    """Published, formula and measured n Var of a design."""
    for one in found:
        if (one.cell["k"], one.cell["epsilon"]) == (k, EPSILON):
            published = "" if one.published is None else _digits(one.published)
            three = (published, _digits(float(one.cell["formula"])), _digits(one.ours))
            return ", ".join(part or "-" for part in three)
    return ""


def _relative_times(own: Sequence[Result]) -> list[str]:
    """Client, tally, decoding over those of GRR, at the largest k."""
    timed = _rows_about(own, "times / GRR")
    if not timed:
        return ["", "", ""]
    cell: Any = timed[-1].cell
    return [_digits(value, 2) for value in (timed[-1].ours, cell["tally"], cell["decoding"])]


def _digits(value: float, digits: int = 3) -> str:
    """Some digits, never as a power of ten."""
    return f"{float(f'{value:.{digits}g}'):.6g}"
