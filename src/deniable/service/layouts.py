"""Estimates as they travel: JSON, CSV or Arrow, some values at a time.

A question may have a million answers. To write them all at once takes a second or more in which
nobody else is served, and hundreds of megabytes; pieces are written in a thread as they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from deniable.collection.batches import MEDIA_TYPE as ARROW
from deniable.estimation import Estimate

#: Values in one piece.
VALUES = 1_000


async def written(found: Estimate, layout: str) -> Response:
    """The answer with an estimate: whole if it is one piece, else piece by piece."""
    media_type, write = LAYOUTS[layout]
    if len(found.labels) <= VALUES:
        return Response(await run_in_threadpool(b"".join, write(found)), media_type=media_type)
    return StreamingResponse(write(found), media_type=media_type)


def _pieces(found: Estimate) -> Iterator[Estimate]:
    for start in range(0, len(found.labels), VALUES):
        rows = slice(start, start + VALUES)
        yield replace(
            found,
            labels=found.labels[rows],
            frequencies=found.frequencies[rows],
            standard_errors=found.standard_errors[rows],
            intervals=found.intervals[rows],
        )


def _json(found: Estimate) -> Iterator[bytes]:
    yield msgspec.json.encode({**found.about, found.entries: []})[:-2]
    for place, piece in enumerate(_pieces(found)):
        yield (b"," if place else b"") + msgspec.json.encode(piece.rows())[1:-1]
    yield b"]}"


def _csv(found: Estimate) -> Iterator[bytes]:
    for place, piece in enumerate(_pieces(found)):
        text = piece.to_csv()
        yield (text.partition("\n")[2] if place else text).encode()


def _arrow(found: Estimate) -> Iterator[bytes]:
    import pyarrow as pa

    sink, tables = BytesIO(), (piece.to_arrow() for piece in _pieces(found))
    first = next(tables)
    with pa.ipc.new_stream(sink, first.schema) as stream:
        stream.write_table(first)
        for table in tables:
            yield _taken(sink)
            stream.write_table(table)
    yield _taken(sink)


def _taken(sink: BytesIO) -> bytes:
    data = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return data


#: The media type of each layout, and who writes it.
LAYOUTS: dict[str, tuple[str, Callable[[Estimate], Iterator[bytes]]]] = {
    "json": ("application/json", _json),
    "csv": ("text/csv; charset=utf-8", _csv),
    "arrow": (ARROW, _arrow),
}
