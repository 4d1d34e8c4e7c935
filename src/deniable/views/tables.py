"""Tables: for the terminal (Rich), as JSON, or as CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deniable.views.formats import Format

if TYPE_CHECKING:
    from rich.table import Table

Row = Mapping[str, Any]
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


def numbers_right(table: Table, first: int) -> Table:
    """Columns from the first one on hold numbers in words."""
    for column in table.columns[first:]:
        column.justify, column.no_wrap = "right", True
    return table
