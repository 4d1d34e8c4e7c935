"""Records that a partner holds, randomised many at once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.answers.choice import Choice
from deniable.answers.columns import check_missing, gaps_closed
from deniable.collection.batches import Batch, write_batch
from deniable.collection.manifest import Collection, Report
from deniable.collection.questions import Question
from deniable.core.reports import read_columns
from deniable.errors import InvalidArgument, Unshown
from deniable.extras import pyarrow
from deniable.randomness import draw_key


def privatized(
    collection: Collection, table: Any, round_: int, rows: int, missing: str
) -> Iterator[Batch]:
    """Batches of at most ``rows`` respondents; everything is checked before the first is made.

    A batch is about one stratum: where there are public fields, each has batches of its own.
    """
    check_missing(missing)
    for report in filter(collection.remembered, collection.reports):
        allowed = "answered on the devices: what is remembered belongs to one respondent"
        raise InvalidArgument(report.name, report.mechanism, allowed)
    asked = [question.name for question in collection.questions]
    names = [*asked, *(field.name for field in collection.fields)]
    found = _arrow(table, names)
    values = {q.name: _encoded(q, found.column(q.name), missing) for q in collection.questions}
    strata = _strata(collection, found)
    return (
        _batch(collection, values, places[start : start + rows], round_, stratum)
        for stratum in np.unique(strata).tolist()
        for places in [np.flatnonzero(strata == stratum)]
        for start in range(0, len(places), rows)
    )


def _strata(collection: Collection, table: Any) -> NDArray[np.int64]:
    """The stratum of each row."""
    strata = np.zeros(table.num_rows, dtype=np.int64)
    for field in collection.fields:
        places = _encoded(Question(field.name, Choice(field.values)), table.column(field.name))
        strata = strata * len(field.values) + places
    return strata


def _batch(
    collection: Collection,
    values: Mapping[str, NDArray[Any]],
    places: NDArray[np.intp],
    round_: int,
    stratum: int,
) -> Batch:
    columns = {}
    for report in collection.reports:
        answers = {name: values[name][places] for name in report.of}
        columns[report.name] = report.mechanism.randomise(
            _together(report, answers), draw_key(None)
        )
    return write_batch(collection, columns, round_, collection.fields_of(stratum))


def _together(report: Report, answers: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """The encoded answers of a report: a column, or a record with a field for each question."""
    if len(answers) == 1:
        return next(iter(answers.values()))
    records = np.empty(len(answers[report.of[0]]), dtype=report.mechanism.domain.dtype)
    for name, column in answers.items():
        records[name] = column
    return records


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
        try:
            return pa.table(table)
        except (pa.ArrowException, OverflowError):  # they quote a cell
            allowed = "one whose columns hold values of one type each"
            raise InvalidArgument("table", type(table), allowed) from None
    if hasattr(table, "to_arrow"):
        return table.to_arrow()
    raise InvalidArgument("table", type(table), "a Parquet file, a frame or an Arrow table")


def _encoded(question: Question, column: Any, missing: str = "refuse") -> NDArray[Any]:
    """The encoded answers of a column; a refusal shows none."""
    try:
        return question.domain.encode(gaps_closed(column, question.domain, missing))
    except InvalidArgument as refused:
        name = f"{question.name}: {refused.name}"
        raise InvalidArgument(name, Unshown(refused.value), refused.allowed) from None
