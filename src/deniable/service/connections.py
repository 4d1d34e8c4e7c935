"""How many connections there may be, and how long one may ask nothing.

Uvicorn closes a connection that is silent after an answer. One that never asks, that sends the head
of a request a byte at a time or without end, or that does not read its answers, it keeps for ever.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, TimerHandle, Transport
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: Bytes that the head of a request may have, beyond those that came with its beginning.
HEAD = 1 << 16


class OneWrite:
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


class Limited(HttpToolsProtocol):
    """At most so many connections, each with so many seconds for its next request.

    Whoever comes when all places are taken gets that of the one who was idle for the longest time;
    if all are busy, nobody comes in. Who does not read is idle; who reads slowly has more time.
    """

    most: ClassVar[int]
    seconds: ClassVar[float]
    idle_since = 0.0
    _timer: TimerHandle | None = None
    #: Bytes that the client had not taken when it was last looked at.
    _unsent = 0
    #: Whether the head of a request is being read, and its bytes so far.
    _in_head, _head = False, 0

    @property
    def idle(self) -> bool:
        """Whether it is the client's turn: to ask, or to read."""
        done = self.cycle is None or self.cycle.response_complete
        return done or self.flow.write_paused

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.transport = OneWrite(transport, self.loop)  # type: ignore[assignment]
        self.idle_since = self.loop.time()
        self._look()
        if len(self.connections) > self.most:
            self._make_room()

    def _make_room(self) -> None:
        others = [one for one in self.connections if one is not self]
        idle = [one for one in others if isinstance(one, Limited) and one.idle]
        leaving = min(idle, key=lambda one: one.idle_since, default=self)
        self.connections.discard(leaving)
        leaving.transport.abort()  # to close would wait until all answers were read

    def data_received(self, data: bytes) -> None:
        self._head += len(data)
        super().data_received(data)
        if self._in_head and self._head > HEAD:
            self.transport.abort()

    def on_message_begin(self) -> None:
        self._in_head, self._head = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def eof_received(self) -> None:
        self.transport.flush()  # type: ignore[attr-defined]
        super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._timer is not None:
            self._timer.cancel()

    def on_response_complete(self) -> None:
        self.idle_since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        self.idle_since = self.loop.time()
        self._unsent = self.transport.get_write_buffer_size()
        super().pause_writing()

    def _look(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        reads, self._unsent = unsent < self._unsent, unsent
        left = self.idle_since + self.seconds - self.loop.time()
        if reads or not self.idle:
            left = self.seconds
        if left > 0:
            self._timer = self.loop.call_later(left, self._look)
        else:
            self.transport.abort()


def limited(most: int, seconds: float) -> type[Limited]:
    """`Limited` with these limits: Uvicorn makes one for every connection."""
    return type("Limited", (Limited,), {"most": most, "seconds": seconds})
