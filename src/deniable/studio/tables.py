"""Tables: for the terminal (Rich), as JSON, or as CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable.estimation.estimate import SHOWN
from deniable.studio.formats import Format

if TYPE_CHECKING:
    from rich.table import Table

    from deniable.estimation import Estimate

Row = Mapping[str, Any]
BAR_WIDTH = 14


def render(rows: Sequence[Row], layout: Format, title: str = "") -> Table | str:
    """Rows of equal keys in the wanted format; numbers are rounded only for the terminal."""
    if layout is Format.json:
        return json.dumps(list(rows), indent=2)
    if layout is Format.csv:
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue().rstrip("\n")
    return rich_table(rows, title)


def show(rows: Sequence[Row], layout: Format, title: str = "") -> None:
    """Print rows in the wanted format; JSON and CSV are never wrapped or coloured."""
    rendered = render(rows, layout, title)
    if isinstance(rendered, str):
        print(rendered)
    else:
        from rich.console import Console

        Console().print(rendered)


def rich_table(rows: Sequence[Row], title: str, caption: str = "") -> Table:
    """A table with numbers to the right."""
    from rich import box
    from rich.table import Table

    table = Table(title=title or None, caption=caption or None, box=box.SIMPLE_HEAD)
    for name, first in rows[0].items():
        numeric = isinstance(first, (int, float)) and not isinstance(first, bool)
        table.add_column(name.replace("_", " "), justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*map(text, row.values()))
    return table


def text(cell: Any) -> str:
    """A cell for the terminal: four significant digits, no needless exponents."""
    if isinstance(cell, float):
        return f"{cell:.4g}" if 1e-4 <= abs(cell) < 1e6 or cell == 0 else f"{cell:.3e}"
    return "" if cell is None else str(cell)


def estimate_table(estimate: Estimate, truth: NDArray[np.float64] | None = None) -> Table:
    """One row a value: frequency, interval, the truth of a simulation if known, and a bar."""
    shown = slice(SHOWN)
    low, high = estimate.intervals[shown].T
    top = max(float(estimate.frequencies.max()), 1e-12)
    rows = [
        {
            "value": str(label),
            "frequency": f"{f:.4f}",
            "± s.e.": f"{s:.4f}",
            f"{estimate.confidence:.0%} interval": f"{a:7.4f} .. {b:.4f}",
        }
        for label, f, s, a, b in zip(
            estimate.labels[shown],
            estimate.frequencies[shown],
            estimate.standard_errors[shown],
            low,
            high,
            strict=True,
        )
    ]
    for row, f, t in zip(rows, estimate.frequencies, _truths(truth, len(rows)), strict=False):
        if t is not None:
            row["truth"] = f"{t:.4f}"
        row[""] = _bar(float(f) / top, None if t is None else t / top)
    hidden = len(estimate.labels) - len(rows)
    caption = f"{hidden} more values are in every export" if hidden else ""
    table = rich_table(rows, str(estimate), caption)
    for column in table.columns[1:-1]:
        column.justify = "right"
    return table


def _truths(truth: NDArray[np.float64] | None, count: int) -> list[float | None]:
    return [None] * count if truth is None else list(truth[:count].tolist())


def _bar(share: float, truth: float | None) -> str:
    """A bar of the estimate; ``|`` marks the truth of a simulation."""
    cells = list("█" * round(BAR_WIDTH * min(1.0, max(0.0, share))))
    cells += [" "] * (BAR_WIDTH + 1 - len(cells))
    if truth is not None:
        cells[min(BAR_WIDTH, round(BAR_WIDTH * truth))] = "|"
    return "".join(cells).rstrip()
