"""Many submissions at once: an Arrow IPC stream with a column for each question.

`docs/wire-format.md` specifies it. A batch has one id and is counted once, or not at all.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.collection.manifest import Collection
from deniable.collection.wire import fresh_id
from deniable.errors import CorruptData
from deniable.extras import pyarrow
from deniable.reports import from_arrow_column, to_arrow_column

MEDIA_TYPE = "application/vnd.apache.arrow.stream"
_COLLECTION, _ID, _ROUND = b"deniable.collection", b"deniable.id", b"deniable.round"

#: Record batches in one stream: each costs far more memory than its bytes if it has few rows.
MOST_PIECES = 4096

#: A column of reports for each question.
Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Batch:
    """The reports of many respondents in one round, and the bytes that carry them."""

    id: str
    round: int
    n: int
    body: bytes


def write_batch(
    collection: Collection,
    columns: Mapping[str, NDArray[Any]],
    places: NDArray[np.intp] | None,
    round_: int = 1,
    name: str | None = None,
) -> Batch:
    """A batch, with a fresh id unless given; ``places`` say which question each one drew."""
    pa = pyarrow()
    named = {}
    for place, question in enumerate(collection.questions):
        column = to_arrow_column(columns[question.name])
        named[question.name] = column if places is None else _spread(column, places == place)
    name = fresh_id() if name is None else name
    stated = {_COLLECTION: collection.digest, _ID: name, _ROUND: str(round_)}
    table = pa.table(named).replace_schema_metadata(stated).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return Batch(name, round_, table.num_rows, sink.getvalue().to_pybytes())


def _spread(column: Any, drawn: NDArray[np.bool_]) -> Any:
    """The reports at the rows of those who drew the question, nulls elsewhere."""
    pa = pyarrow()
    where = np.cumsum(drawn) - 1
    return column.take(pa.array(where, mask=~drawn))


def read_batch(collection: Collection, body: bytes) -> tuple[dict[str, str], Columns]:
    """What a stream says about itself (collection, id, round), and its columns without nulls.

    Refuses with `CorruptData` whatever is not such a stream; the reports are not looked at yet.
    """
    pa = pyarrow()
    try:
        table = _table(collection, body)
        return _stated(table.schema.metadata or {}), _columns(collection, table)
    except CorruptData:
        raise
    except (pa.ArrowException, EOFError, OSError, ValueError, MemoryError, struct.error) as error:
        raise CorruptData(f"this is not a sound Arrow stream: {error}") from error


def _stated(metadata: Mapping[bytes, bytes]) -> dict[str, str]:
    if set(metadata) != {_COLLECTION, _ID, _ROUND}:
        keys = ", ".join(key.decode() for key in (_COLLECTION, _ID, _ROUND))
        raise CorruptData(f"the metadata of the stream must be {keys}")
    return {key.decode(): metadata[key].decode(errors="replace") for key in metadata}


def _columns(collection: Collection, table: Any) -> Columns:
    sampled = collection.divide == "sampled"
    if sampled and not all(map(_one_report, table.to_batches())):
        raise CorruptData("every row must have exactly one report")
    columns = {}
    for question in collection.questions:
        column = table.column(question.name)
        column = column.drop_null() if sampled else column
        columns[question.name] = from_arrow_column(column, question.mechanism.dtype, question.name)
    return columns


def _one_report(rows: Any) -> bool:
    """Whether every row has exactly one; there are at most 256 questions, so 257 never pass."""
    present = np.zeros(rows.num_rows, dtype=np.uint8)
    for column in rows.columns:
        present += column.is_valid().to_numpy(zero_copy_only=False)
    present -= 1
    return not present.any()


def _table(collection: Collection, body: bytes) -> Any:
    """The stream as a table; compressed ones are refused, as their size cannot be foreseen."""
    pa = pyarrow()
    source = pa.BufferReader(body)
    first = pa.ipc.read_message(source)
    if first.type != "schema":  # Arrow would follow a null pointer
        raise CorruptData("the stream must begin with a schema")
    schema = pa.ipc.read_schema(first)
    _check_schema(collection, schema)
    batches: list[Any] = []
    while source.tell() < len(body):
        if body[source.tell() : source.tell() + 8] == _END:
            source.seek(source.tell() + 8)
            break
        message = pa.ipc.read_message(source)
        if message.type != "record batch" or _compressed(message.metadata.to_pybytes()):
            raise CorruptData("the stream must hold record batches without compression only")
        if len(batches) == MOST_PIECES:
            raise CorruptData(f"the stream must hold at most {MOST_PIECES} record batches")
        batches.append(pa.ipc.read_record_batch(message, schema))
    if source.tell() != len(body):
        raise CorruptData("bytes follow the end of the stream")
    table = pa.Table.from_batches(batches, schema)
    table.validate(full=True)
    if table.nbytes > len(body):
        raise CorruptData("no two columns may share their bytes")
    return table


def _check_schema(collection: Collection, schema: Any) -> None:
    """Refuse other names and types: those of reports take bytes of the body for every row."""
    names = [question.name for question in collection.questions]
    if schema.names != names:
        raise CorruptData(f"the columns must be {', '.join(names)}")
    for question, found in zip(collection.questions, schema.types, strict=True):
        expected = to_arrow_column(np.empty(0, dtype=question.mechanism.dtype)).type
        if found != expected:
            raise CorruptData(f"column {question.name!r} must be {expected}, not {found}")


#: How a stream ends: a continuation mark and the length 0.
_END = b"\xff\xff\xff\xff\0\0\0\0"
#: Where a flatbuffer's table keeps the offset of a field: Message.header, RecordBatch.compression.
_HEADER, _COMPRESSION = 4 + 2 * 2, 4 + 2 * 3


def _compressed(metadata: bytes) -> bool:
    """Whether a record batch says that its buffers are compressed."""
    (root,) = struct.unpack_from("<I", metadata)
    header = root + _field(metadata, root, _HEADER)
    (jump,) = struct.unpack_from("<I", metadata, header)
    return _field(metadata, header + jump, _COMPRESSION) != 0


def _field(metadata: bytes, table: int, slot: int) -> int:
    """The offset of a field within a table of a flatbuffer; 0 if it is not there."""
    (back,) = struct.unpack_from("<i", metadata, table)
    (size,) = struct.unpack_from("<H", metadata, table - back)
    return int(struct.unpack_from("<H", metadata, table - back + slot)[0]) if slot < size else 0
