"""Estimates as they travel: JSON, CSV or Arrow, some values at a time.

A question may have a million answers. To write them all at once takes a second or more in which
nobody else is served, and hundreds of megabytes; pieces are written in a thread as they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from io import BytesIO

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from deniable.collection.batches import MEDIA_TYPE as ARROW
from deniable.estimation import Estimate
from deniable.service.problems import Problem

#: Values in one piece.
VALUES = 1_000
#: Bytes of estimates that are sent in pieces: each is kept until the client has read all of it.
SENT = 1 << 25
Pieces = Generator[bytes, None, None]


class Outgoing:
    """The estimates that are being sent: so many bytes of them, or one that is larger."""

    def __init__(self) -> None:
        self._bytes = 0

    def take(self, found: Estimate) -> int:
        """Count an estimate, or refuse it; returns its bytes."""
        size = found.nbytes
        if self._bytes and self._bytes + size > SENT:
            raise Problem("busy", "Others still read long estimates; ask again, or for `most`.")
        self._bytes += size
        return size

    def leave(self, size: int) -> None:
        self._bytes -= size


class Piecewise(StreamingResponse):
    """An answer in pieces; its estimate is kept until the client has read it, or is gone."""

    def __init__(self, found: Estimate, form: str, outgoing: Outgoing) -> None:
        media_type, write = WRITERS[form]
        self._size, self._outgoing, self._pieces = outgoing.take(found), outgoing, write(found)
        super().__init__(self._pieces, media_type=media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            with suppress(ValueError):  # a thread is still writing a piece
                self._pieces.close()
            self._outgoing.leave(self._size)


async def written(found: Estimate, form: str, outgoing: Outgoing) -> Response:
    """The answer with an estimate: whole if it is one piece, else piece by piece."""
    if len(found.labels) > VALUES:
        return Piecewise(found, form, outgoing)
    media_type, write = WRITERS[form]
    return Response(await run_in_threadpool(b"".join, write(found)), media_type=media_type)


def _pieces(found: Estimate) -> Iterator[Estimate]:
    for start in range(0, len(found.labels), VALUES):
        yield found.part(slice(start, start + VALUES))


def _json(found: Estimate) -> Pieces:
    yield msgspec.json.encode({**found.about, found.entries: []})[:-2]
    for place, piece in enumerate(_pieces(found)):
        yield (b"," if place else b"") + msgspec.json.encode(piece.rows())[1:-1]
    yield b"]}"


def _csv(found: Estimate) -> Pieces:
    for place, piece in enumerate(_pieces(found)):
        text = piece.to_csv()
        yield (text.partition("\n")[2] if place else text).encode()


def _arrow(found: Estimate) -> Pieces:
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


#: The media type of each format, and who writes it.
WRITERS: dict[str, tuple[str, Callable[[Estimate], Pieces]]] = {
    "json": ("application/json", _json),
    "csv": ("text/csv; charset=utf-8", _csv),
    "arrow": (ARROW, _arrow),
}
