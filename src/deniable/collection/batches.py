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
        table = _table(body)
    except (pa.ArrowException, EOFError, OSError, UnicodeDecodeError, struct.error) as error:
        raise CorruptData(f"this is not a sound Arrow stream: {error}") from error
    stated = table.schema.metadata or {}
    if set(stated) != {_COLLECTION, _ID, _ROUND}:
        keys = ", ".join(key.decode() for key in (_COLLECTION, _ID, _ROUND))
        raise CorruptData(f"the metadata of the stream must be {keys}")
    names = [question.name for question in collection.questions]
    if table.column_names != names:
        raise CorruptData(f"the columns must be {', '.join(names)}")
    about = {key.decode(): stated[key].decode(errors="replace") for key in stated}
    return about, _columns(collection, table)


def _columns(collection: Collection, table: Any) -> Columns:
    columns, present = {}, np.zeros(table.num_rows, dtype=np.int64)
    for question in collection.questions:
        column = table.column(question.name)
        if collection.divide == "sampled":
            valid = _valid(column)
            present += valid
            column = column.filter(pyarrow().array(valid))
        columns[question.name] = from_arrow_column(column, question.mechanism.dtype, question.name)
    if collection.divide == "sampled" and np.any(present != 1):
        raise CorruptData("every row must have exactly one report")
    return columns


def _valid(column: Any) -> NDArray[np.bool_]:
    return np.asarray(column.is_valid().to_numpy(), dtype=bool)


def _table(body: bytes) -> Any:
    """The stream as a table; compressed ones are refused, as their size cannot be foreseen."""
    pa = pyarrow()
    source = pa.BufferReader(body)
    first = pa.ipc.read_message(source)
    if first.type != "schema":  # Arrow would follow a null pointer
        raise CorruptData("the stream must begin with a schema")
    schema = pa.ipc.read_schema(first)
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
    return table


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
