"""What one connection may cost, and which one makes room when all places are taken.

Uvicorn reads ahead as far as a client sends, keeps heads and trailers of any length and number of
lines, and waits for ever for clients that send nothing or read nothing. Here a connection asks one
thing at a time, and holds little memory whoever is at its other end.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, BufferedProtocol, TimerHandle, Transport
from contextlib import suppress
from typing import Any, ClassVar

from httptools import HttpParserError, HttpParserUpgrade
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: Bytes that may come without a byte of a body: of a head, and again of trailers.
HEAD = 1 << 14
#: Bytes of a path: it is kept three times, and decoded each of them may take four.
PATH = 1 << 10
#: Lines of a head and its trailers.
LINES = 100
#: Pieces of a body in one reading: whoever sends more of them is read in sips of so many bytes.
#: Each piece takes as long as a hundred bytes, and a thousand such clients would keep all waiting.
PIECES, SIP = 64, 1 << 10
#: Bytes of an answer that wait for the client before the next slice waits, too.
UNSENT = 1 << 14

#: All connections read into the same bytes: each reading is dealt with before the next. So many
#: are also kept of a body until it is asked for.
_READING = memoryview(bytearray(HEAD + 1))


class CoalescingTransport:
    """A transport that sends what is written in one turn of the loop together.

    Head and body of an answer are written one after the other, and sending is what an answer costs
    most.
    """

    def __init__(self, transport: Transport, loop: AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        self.flush()
        self._transport.abort()

    def flush(self) -> None:
        """Send what there is, unless the client left in the meantime."""
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))


class LimitedProtocol(HttpToolsProtocol, BufferedProtocol):
    """At most so many connections, each with so many seconds for its next request.

    Whoever comes when all places are taken gets that of the client that was waited for the longest
    time: to ask, to send the rest, or to read. If the collector waits for none, nobody comes in.
    """

    most: ClassVar[int]
    seconds: ClassVar[float]
    #: Connections whose clients have the next turn, the one that did nothing for longest first.
    waiting: ClassVar[dict[LimitedProtocol, None]]
    idle_since = 0.0
    _timer: TimerHandle | None = None
    #: Bytes since the last one of a body.
    _bare = 0
    #: Pieces of a body in this reading, and how much is read at once.
    _pieces, _gulp = 0, HEAD + 1

    @property
    def idle(self) -> bool:
        """Whether the client has to ask, or to read."""
        done = self.cycle is None or self.cycle.response_complete
        return done or self.flow.write_paused

    @property
    def _answering(self) -> bool:
        """Whether there is a whole request, and not yet all of its answer."""
        cycle = self.cycle
        return cycle is not None and not cycle.more_body and not cycle.response_complete

    @property
    def _unread(self) -> bool:
        """Whether a part of a body waits until somebody asks for it."""
        cycle = self.cycle
        return bool(cycle and cycle.more_body and cycle.body and not cycle.response_complete)

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(UNSENT)
        self.transport = CoalescingTransport(transport, self.loop)  # type: ignore[assignment]
        self.idle_since = self.loop.time()
        self.waiting[self] = None
        self._look()
        if len(self.connections) > self.most:
            self._make_room()

    def _make_room(self) -> None:
        leaving = next(iter(self.waiting))
        self.connections.discard(leaving)
        del self.waiting[leaving]
        leaving.transport.abort()  # to close would wait until all answers were read

    def get_buffer(self, sizehint: int) -> memoryview:
        """Room for what may come, and a byte that shows that it is too much."""
        return _READING[: max(1, min(self._gulp, HEAD + 1 - self._bare))]

    def buffer_updated(self, nbytes: int) -> None:
        """Read one request; whoever sends the next one before the answer is answered, and left."""
        if self._answering:
            self._read_no_more()
            return
        self._bare += nbytes
        self._pieces = 0
        try:
            with suppress(
                HttpParserUpgrade
            ):  # answered as if it had not asked for another protocol
                self.parser.feed_data(_READING[:nbytes])
        except HttpParserError:
            self._broken()
        else:
            self._after_reading()

    def _after_reading(self) -> None:
        if self._pieces > PIECES:
            self._gulp = SIP
        if self._bare > HEAD:
            self.transport.abort()
        elif self._unread:
            self.flow.pause_reading()
        if self in self.waiting:
            del self.waiting[self]
            self.waiting[self] = None

    def _broken(self) -> None:
        if self._answering:
            self._read_no_more()
        else:
            self.logger.warning("Invalid HTTP request received.")
            self.send_400_response("Invalid HTTP request received.")

    def _read_no_more(self) -> None:
        self.cycle.keep_alive = False
        self.flow.pause_reading()

    def on_message_begin(self) -> None:
        if self._answering:
            raise ValueError("the next request came before the answer")
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self.headers) == LINES:
            raise ValueError("too many lines")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if len(self.url.partition(b"?")[0]) > PATH:
            raise ValueError("too long a path")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._bare = 0
        self._pieces += 1
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._bare = 0
        super().on_message_complete()
        if self._answering:
            self.waiting.pop(self, None)

    def eof_received(self) -> None:
        self.transport.flush()  # type: ignore[attr-defined]
        super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()

    def on_response_complete(self) -> None:
        """Instead of Uvicorn's: no request waits for this, and `_look` ends who asks no more."""
        self.server_state.total_requests += 1
        self.idle_since = self.loop.time()
        self.waiting[self] = None
        if not self.transport.is_closing():
            self.flow.resume_reading()

    def pause_writing(self) -> None:
        self.idle_since = self.loop.time()
        self.waiting[self] = None
        super().pause_writing()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._answering:
            self.waiting.pop(self, None)

    def _look(self) -> None:
        left = self.idle_since + self.seconds - self.loop.time() if self.idle else self.seconds
        if left > 0:
            self._timer = self.loop.call_later(left, self._look)
        else:
            self.transport.abort()


def limited_protocol(most: int, seconds: float) -> type[LimitedProtocol]:
    """`LimitedProtocol` with these limits: Uvicorn makes one for every connection."""
    own = {"most": most, "seconds": seconds, "waiting": {}}
    return type("LimitedProtocol", (LimitedProtocol,), own)
