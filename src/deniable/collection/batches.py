"""Many submissions at once: an Arrow IPC stream with a column for each report.

`docs/wire-format.md` specifies it. A batch has one id and is counted once, or not at all.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.canonical import canonical
from deniable.collection.manifest import Collection
from deniable.collection.wire import fresh_id
from deniable.core.reports import from_arrow_column, to_arrow_column
from deniable.errors import CorruptData
from deniable.extras import pyarrow

MEDIA_TYPE = "application/vnd.apache.arrow.stream"
_COLLECTION, _FIELDS = b"deniable.collection", b"deniable.fields"
_ID, _ROUND = b"deniable.id", b"deniable.round"

#: Record batches in one stream: each costs far more memory than its bytes if it has few rows.
MOST_PIECES = 4096

#: A column for each report.
Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Batch:
    """The reports of many respondents in one round and stratum, and the bytes that carry them."""

    id: str
    round: int
    n: int
    body: bytes


def write_batch(
    collection: Collection,
    columns: Mapping[str, NDArray[Any]],
    round_: int = 1,
    fields: Mapping[str, str] | None = None,
    name: str | None = None,
) -> Batch:
    """A batch, with a fresh id unless given; ``fields`` are the public values of all its rows."""
    pa = pyarrow()
    name = fresh_id() if name is None else name
    stated = {
        _COLLECTION: collection.digest,
        _FIELDS: canonical(dict(fields or {})),
        _ID: name,
        _ROUND: str(round_),
    }
    named = {report.name: to_arrow_column(columns[report.name]) for report in collection.reports}
    table = pa.table(named).replace_schema_metadata(stated).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return Batch(name, round_, table.num_rows, sink.getvalue().to_pybytes())


def read_batch(collection: Collection, body: bytes) -> tuple[dict[str, str], Columns]:
    """What a stream says about itself (collection, fields, id, round), and its columns.

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
    keys = (_COLLECTION, _FIELDS, _ID, _ROUND)
    if set(metadata) != set(keys):
        words = ", ".join(key.decode() for key in keys)
        raise CorruptData(f"the metadata of the stream must be {words}")
    return {key.decode(): metadata[key].decode(errors="replace") for key in metadata}


def _columns(collection: Collection, table: Any) -> Columns:
    return {
        report.name: from_arrow_column(
            table.column(report.name), report.mechanism.dtype, report.name
        )
        for report in collection.reports
    }


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
    names = [report.name for report in collection.reports]
    if schema.names != names:
        raise CorruptData(f"the columns must be {', '.join(names)}")
    for report, found in zip(collection.reports, schema.types, strict=True):
        expected = to_arrow_column(np.empty(0, dtype=report.mechanism.dtype)).type
        if found != expected:
            raise CorruptData(f"column {report.name!r} must be {expected}, not {found}")


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
