"""Ways out for results: charts and tables, pandas, Arrow, JSON, CSV, the terminal and notebooks.

How a result looks is written once, in `deniable.views`, by its class. `Shown` is the one hook to
that package, for results of all packages.
"""

from __future__ import annotations

import csv
import html
import importlib
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from deniable.extras import pandas, pyarrow

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from rich.table import Table

#: Rows shown on a screen; all of them are in every export.
SHOWN = 40


class Shown:
    """What can be drawn; the choices are those of the chart or table of its class."""

    def chart(self, *given: Any, **choices: Any) -> dict[str, Any]:
        """The Vega-Lite specification of the chart, with its data."""
        found: dict[str, Any] = _views().chart(self, *given, **choices)
        return found

    def plot(self, *given: Any, **choices: Any) -> Any:
        """The chart for a notebook (Altair); ``title`` is the question that was asked.

        Estimates and series mark the ``truth`` of a simulation: a pandas Series or a mapping is
        aligned by its labels, a list is in their order.
        """
        return _views().wrapped(self.chart(*given, **choices))

    def save(self, path: str | Path, *given: Any, **choices: Any) -> Path:
        """Save the chart as .html (one file that works offline), .png or .svg."""
        saved: Path = _views().save(self.chart(*given, **choices), Path(path))
        return saved


def _views() -> Any:
    return importlib.import_module("deniable.views")


class Exports(Shown, ABC):
    """What can be written as columns of equal length, and says what they are."""

    #: What the rows are, in JSON and in captions.
    entries: ClassVar[str] = "values"
    #: Which rows are shown if there are too many.
    chosen: ClassVar[str] = "most frequent"

    @abstractmethod
    def columns(self) -> dict[str, list[Any]]:
        """The numbers as plain columns, the common form of every export."""

    @property
    @abstractmethod
    def about(self) -> dict[str, Any]:
        """What the numbers are."""

    @property
    @abstractmethod
    def interval_words(self) -> str:
        """What the intervals are, in words."""

    @abstractmethod
    def shown(self, most: int = SHOWN) -> list[int]:
        """The rows to show to a person."""

    def table(self, *given: Any, **choices: Any) -> Table:
        """A table for the terminal."""
        found: Table = _views().table(self, *given, **choices)
        return found

    def rows(self) -> list[dict[str, Any]]:
        """`columns`, one entry a row."""
        columns = self.columns()
        cells = zip(*columns.values(), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in cells]

    def to_pandas(self) -> pd.DataFrame:
        return pandas().DataFrame(self.columns())

    def to_arrow(self) -> pa.Table:
        """An Arrow table with `about` in its metadata."""
        metadata = {f"deniable.{key}": str(value) for key, value in self.about.items()}
        return pyarrow().table(self.columns()).replace_schema_metadata(metadata)

    def to_json(self) -> str:
        """An object with `about` and one entry a row."""
        return json.dumps({**self.about, self.entries: self.rows()}, indent=2)

    def to_csv(self) -> str:
        columns = self.columns()
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        return text.getvalue()

    def __repr__(self) -> str:
        """In words: the numbers would fill a screen."""
        return str(self)

    def __rich__(self) -> Table:
        return self.table()

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in self.columns())
        rows = self.rows()
        shown = [rows[i].values() for i in self.shown()]
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in shown)
        cut = self.cut(len(shown), len(rows))
        caption = html.escape(f"{self} ({self.interval_words}{f'; {cut}' if cut else ''})")
        return f"<table><caption>{caption}</caption><tr>{head}</tr>{body}</table>"

    def cut(self, shown: int, rows: int) -> str:
        """Which rows are left out, in words, if any are."""
        return f"the {shown} {self.chosen} of {rows} {self.entries}" if shown < rows else ""


def column(labels: Sequence[Any]) -> list[Any]:
    """Labels as a column; those of several kinds become text, because a column has one type."""
    mixed = len({type(label) for label in labels}) > 1
    return [str(label) for label in labels] if mixed else list(labels)


def _cell(value: Any) -> str:
    text = f"{value:.4f}" if isinstance(value, float) else html.escape(str(value))
    return f"<td>{text}</td>"
