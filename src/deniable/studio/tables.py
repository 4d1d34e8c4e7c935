"""Tables: for the terminal (Rich), as JSON, or as CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable.estimation.exports import SHOWN
from deniable.studio.formats import Format

if TYPE_CHECKING:
    from rich.table import Table

    from deniable.estimation import Estimate
    from deniable.longitudinal.changes import Changes
    from deniable.longitudinal.series import Series

Row = Mapping[str, Any]
BAR_WIDTH = 14
#: Text columns shrink on a narrow terminal, but not below this, nor below words up to that.
TEXT_WIDTH, WORD_WIDTH = 9, 16


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
    """A table with numbers to the right; cells are plain text, never markup."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), caption=Text(caption), box=box.SIMPLE_HEAD)
    for name, first in rows[0].items():
        numeric = isinstance(first, (int, float)) and not isinstance(first, bool)
        heading = Text(name.replace("_", " "))
        cells = [plain(row[name]) for row in rows]
        word = max(len(word) for cell in cells for word in cell.split() or [""])
        table.add_column(
            heading,
            justify="right" if numeric else "left",
            no_wrap=numeric,
            min_width=max(min(word, WORD_WIDTH), min(max(map(len, cells)), TEXT_WIDTH)),
        )
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row.values()))
    return table


def plain(cell: Any) -> str:
    """A cell for the terminal: four significant digits, nothing that could steer it."""
    if isinstance(cell, float):
        return f"{cell:.4g}" if 1e-4 <= abs(cell) < 1e6 or cell == 0 else f"{cell:.3e}"
    text = "" if cell is None else str(cell)
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def estimate_table(estimate: Estimate, truth: NDArray[np.float64] | None = None) -> Table:
    """One row a value: frequency, interval, the truth of a simulation if known, and a bar."""
    top = max(float(estimate.frequencies.max()), 1e-12)
    rows = []
    for i in estimate.shown():
        low, high = estimate.intervals[i]
        row = {
            "value": str(estimate.labels[i]),
            "frequency": f"{estimate.frequencies[i]:.4f}",
            "s.e.": f"{estimate.standard_errors[i]:.4f}",
            f"{100 * estimate.confidence:.6g} % interval": f"{low:7.4f} .. {high:.4f}",
        }
        if truth is not None:
            row["truth"] = f"{truth[i]:.4f}"
        marked = None if truth is None else float(truth[i]) / top
        rows.append({**row, "": _bar(float(estimate.frequencies[i]) / top, marked)})
    k = len(estimate.labels)
    cut = f"; the {len(rows)} most frequent of {k} values" if len(rows) < k else ""
    caption = estimate.interval_words + cut
    table = rich_table(rows, str(estimate), caption)
    _numbers_right(table, 1)
    table.columns[-1].justify, table.columns[-1].overflow = "left", "crop"
    return table


def series_table(series: Series, places: Sequence[int], width: int) -> Table:
    """One row a round: n, and a frequency with its interval for as many values as fit."""
    from rich.text import Text

    rows: list[dict[str, Any]] = [
        {"round": str(label), "n": f"{n:,}"}
        for label, n in zip(series.rounds, series.n, strict=True)
    ]
    cells = _with_intervals(series, places)
    wide = max(map(len, cells.flat))
    left = min(max(len(row["round"]) for row in rows), WORD_WIDTH)
    left += max(len(row["n"]) for row in rows)
    # Rich adds three characters to each column and one to the table.
    shown = places[: max(1, (width - 1 - left - 2 * 3) // (wide + 3))]
    for row, line in zip(rows, cells, strict=True):
        row |= {str(i): cell for i, cell in zip(shown, line, strict=False)}
    k = len(series.values)
    cut = f"; {len(shown)} of {k} values" if len(shown) < k else ""
    table = rich_table(rows, str(series), f"in brackets: {series.interval_words}{cut}")
    _numbers_right(table, 1)
    for i, column in zip(shown, table.columns[2:], strict=True):
        column.header, column.width = Text(plain(series.values[i])), wide
        column.no_wrap, column.overflow = False, "fold"  # a long name takes several lines
    return table


def _with_intervals(series: Series, places: Sequence[int]) -> NDArray[np.str_]:
    """Rounds x values, such as 0.502 [0.483, 0.521]; half an interval is 5 last digits or more."""
    limits = series.intervals[:, places]
    narrow = max(float(np.diff(limits, axis=2).min()) / 2, 1e-6)
    digits = int(np.clip(np.ceil(np.log10(5 / narrow)), 3, 6))
    return np.array(
        [
            [
                f"{f:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"
                for f, (low, high) in zip(*line, strict=True)
            ]
            for line in zip(series.frequencies[:, places], limits, strict=True)
        ]
    )


def changes_table(changes: Changes) -> Table:
    """One row a flagged change, the clearest first; the clearest of all if none is flagged."""
    flagged = int(changes.flagged.sum())
    rows = []
    for i in changes.shown(max(1, min(flagged, SHOWN))):
        pair, v = divmod(i, len(changes.values))
        low, high = changes.intervals[pair, v]
        rows.append(
            {
                "from": str(changes.pairs[pair][0]),
                "to": str(changes.pairs[pair][1]),
                "value": str(changes.values[v]),
                "change": f"{changes.differences[pair, v]:+.4f}",
                "interval": f"{low:+.4f} .. {high:+.4f}",
                "p-value": _p_value(float(changes.p_values[pair, v])),
            }
        )
    limit = f"any false alarm: at most {100 * changes.false_alarm:.6g} %"
    cut = f"; the {SHOWN} clearest" if flagged > SHOWN else ""
    only = "" if flagged else "; nothing is flagged, the clearest comparison is shown"
    caption = f"{limit}; {changes.interval_words}; p-values adjusted{cut}{only}"
    table = _numbers_right(rich_table(rows, str(changes), caption), 3)
    for column in table.columns[:3]:
        column.min_width, column.overflow = None, "fold"  # where it is narrow, numbers come first
    return table


def _p_value(p: float) -> str:
    """Two digits; what is 0 in floats is not 0."""
    return f"{p:.2g}" if p > 1e-300 else "<1e-300"


def _numbers_right(table: Table, first: int) -> Table:
    """Columns from the first one on hold numbers in words."""
    for column in table.columns[first:]:
        column.justify, column.no_wrap = "right", True
    return table


def _bar(share: float, truth: float | None) -> str:
    """A bar of the estimate; ``|`` marks the truth of a simulation, whose column takes room."""
    width = BAR_WIDTH if truth is None else BAR_WIDTH // 2
    cells = list("█" * round(width * min(1.0, max(0.0, share))))
    cells += [" "] * (width + 1 - len(cells))
    if truth is not None:
        cells[min(width, round(width * truth))] = "|"
    return "".join(cells).rstrip()
