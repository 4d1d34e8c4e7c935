"""From a folder with downloaded files to a `Dataset`."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from deniable.errors import CorruptData, InvalidArgument
from deniable_papers.datasets.columns import Column, Dataset
from deniable_papers.datasets.sources import SOURCES, File, Source

Table = dict[str, list[str]]


def load(name: str, folder: str | Path) -> Dataset:
    """A data set of `SOURCES` from the first of its files that ``folder`` holds.

    Every column is categorical; a missing entry is the label "" (or "?", where the source has it).
    """
    if name not in SOURCES:
        raise InvalidArgument("name", name, f"one of {', '.join(SOURCES)}")
    file, paths = _find(SOURCES[name], Path(folder))
    table = _joined([_read(file, path) for path in paths], paths)
    rows = len(next(iter(table.values())))
    note = f"{file.what}, {rows:,} rows{_checked(file, paths)}"
    return Dataset(name, note, {label: Column.of(values) for label, values in table.items()})


def _find(source: Source, folder: Path) -> tuple[File, list[Path]]:
    for file in source.files:
        if found := sorted(folder.glob(file.file)):
            return file, found
    wanted = " or ".join(file.file for file in source.files)
    raise FileNotFoundError(
        f"{source.title}: no {wanted} in {str(folder)!r}. Download {source.download}."
    )


def _checked(file: File, paths: Sequence[Path]) -> str:
    """What is known about the bytes."""
    if file.sha256 is None:
        return " (no checksum is known)"
    found = hashlib.sha256(paths[0].read_bytes()).hexdigest()
    return "" if found == file.sha256 else " (NOT the published file: its checksum differs)"


def _read(file: File, path: Path) -> Table:
    if file.separator == "parquet":
        return _from_parquet(path)
    with path.open(encoding="utf-8", newline="") as lines:
        rows = _rows(lines, file.separator)
        try:
            names = list(file.names) or next(rows, [])
            body = list(rows)
        except (UnicodeDecodeError, csv.Error) as error:
            raise CorruptData(f"{path.name} is no text as it should be ({error})") from None
    if not names or not body:
        raise CorruptData(f"{path.name} has no rows")
    for number, row in enumerate(body, 1):
        if len(row) != len(names):
            raise CorruptData(f"{path.name}: row {number} has {len(row)} of {len(names)} entries")
    return dict(zip(names, map(list, zip(*body, strict=True)), strict=True))


def _rows(lines: Iterable[str], separator: str | None) -> Iterator[list[str]]:
    """Entries without the blanks around them.

    UCI's adult.test opens with a remark after "|" and ends every row with a dot.
    """
    kept = (line for line in lines if line.strip() and not line.startswith("|"))
    split = map(str.split, kept) if separator is None else csv.reader(kept, delimiter=separator)
    for row in split:
        yield [*(entry.strip() for entry in row[:-1]), row[-1].strip().removesuffix(".")]


def _from_parquet(path: Path) -> Table:
    from deniable.extras import pyarrow

    pyarrow()
    from pyarrow import parquet

    table = parquet.read_table(path)
    return {name: list(map(_text, table[name].to_pylist())) for name in table.column_names}


def _text(value: object) -> str:
    """An entry as the text file has it: whole numbers without a point."""
    if value is None:
        return ""
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if whole else value)  # type: ignore[call-overload]


def _joined(tables: Sequence[Table], paths: Sequence[Path]) -> Table:
    """The rows of files of the same columns, one below the other."""
    if any(list(table) != list(tables[0]) for table in tables):
        raise CorruptData(f"{', '.join(path.name for path in paths)}: the columns differ")
    return {name: [value for table in tables for value in table[name]] for name in tables[0]}
