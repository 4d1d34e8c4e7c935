"""Records that a partner holds, randomised many at once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.collection.batches import Batch, write_batch
from deniable.collection.manifest import Collection
from deniable.collection.questions import YES_NO, Question
from deniable.errors import InvalidArgument
from deniable.extras import pyarrow
from deniable.randomness import Keystream, draw_key
from deniable.reports import read_columns


def privatized(collection: Collection, table: Any, round_: int, rows: int) -> Iterator[Batch]:
    """Batches of at most ``rows`` respondents; everything is checked before the first is made."""
    for question in filter(collection.remembered, collection.questions):
        allowed = "answered on the devices: what is remembered belongs to one respondent"
        raise InvalidArgument(question.name, question.mechanism, allowed)
    found = _arrow(table, [question.name for question in collection.questions])
    values = {q.name: _encoded(q, found.column(q.name)) for q in collection.questions}
    return (
        _batch(collection, {name: part[i : i + rows] for name, part in values.items()}, round_)
        for i in range(0, found.num_rows, rows)
    )


def _batch(collection: Collection, values: Mapping[str, NDArray[Any]], round_: int) -> Batch:
    places = None
    if collection.divide == "sampled":
        places = _drawn(len(collection.questions), len(next(iter(values.values()))))
    columns = {}
    for place, question in enumerate(collection.questions):
        part = values[question.name]
        asked = part if places is None else part[places == place]
        columns[question.name] = question.mechanism.randomise(asked, draw_key(None))
    return write_batch(collection, columns, places, round_)


def _drawn(questions: int, n: int) -> NDArray[np.intp]:
    """One question for each respondent: floor(w questions / 2**64), as `Coins.choice` draws it."""
    words = np.frombuffer(Keystream(draw_key(None)).bytes(8 * n), dtype="<u8")
    high, low = words >> np.uint64(32), words & np.uint64(0xFFFFFFFF)
    size, half = np.uint64(questions), np.uint64(32)
    drawn: NDArray[np.intp] = ((high * size + (low * size >> half)) >> half).astype(np.intp)
    return drawn


def _arrow(table: Any, names: list[str]) -> Any:
    """An Arrow table with these columns and perhaps others."""
    found = _table(table, names)
    _require(names, found.column_names)
    return found


def _require(names: list[str], found: list[str]) -> None:
    if not set(names) <= set(found):
        raise InvalidArgument("table", found, f"one with the columns {', '.join(names)}")


def _table(table: Any, names: list[str]) -> Any:
    """An Arrow table of a file or of anything that speaks Arrow's or pandas' language."""
    pa = pyarrow()
    if isinstance(table, (str, os.PathLike)):
        import pyarrow.parquet as parquet

        try:
            with parquet.ParquetFile(table) as file:
                _require(names, file.schema_arrow.names)
                return read_columns(file, names)
        except (OSError, pa.ArrowException) as error:
            raise InvalidArgument("table", table, f"a Parquet file ({error})") from error
    if isinstance(table, pa.Table):
        return table
    if hasattr(table, "__arrow_c_stream__"):
        return pa.table(table)
    if hasattr(table, "to_arrow"):
        return table.to_arrow()
    raise InvalidArgument("table", type(table), "a Parquet file, a frame or an Arrow table")


def _encoded(question: Question, column: Any) -> NDArray[Any]:
    """The indices of a column of answers."""
    try:
        if question.kind == "number":
            return _bins(question, column)
        values = column.to_pylist()
        if question.kind == "yes/no":
            values = [YES_NO[not v] if isinstance(v, bool) else v for v in values]
        return question.mechanism.domain.encode(values)
    except InvalidArgument as refused:
        name = f"{question.name}: {refused.name}"
        raise InvalidArgument(name, refused.value, refused.allowed) from None


def _bins(question: Question, column: Any) -> NDArray[Any]:
    numbers = column.to_numpy()
    if column.null_count or numbers.dtype.kind not in "iuf" or not np.all(np.isfinite(numbers)):
        raise InvalidArgument("values", column.type, "finite numbers, none missing")
    bins: NDArray[Any] = np.searchsorted(np.array(question.edges), numbers, side="right")
    return bins.astype(np.uint32)
