"""What a request may cost: the length of its body, how many there are, and how they travel."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from deniable.service.problems import Problem


@dataclass(frozen=True)
class Limits:
    """At most so many bytes, requests a second, and requests at once."""

    single_bytes: int = 1 << 20
    batch_bytes: int = 1 << 26
    #: Of all bodies that are received or counted at once.
    bytes_at_once: int = 1 << 28
    #: Seconds until, at the latest twice that, the next part of a body must have come.
    patience: float = 30.0
    rate: float = 20_000.0
    at_once: int = 1_000


class Gate:
    """Lets requests in, or answers 429: one bucket for all, since nobody is told apart.

    ``secure`` demands that a proxy in front says the request came over HTTPS.
    """

    def __init__(self, app: ASGIApp, limits: Limits, *, secure: bool = False) -> None:
        self._app, self._limits, self._secure = app, limits, secure
        self._inside, self._tokens, self._filled = 0, limits.rate, time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if (problem := self._refusal(scope)) is not None:
            await problem.response()(scope, receive, send)
            return
        self._inside += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._inside -= 1

    def _refusal(self, scope: Scope) -> Problem | None:
        now = time.monotonic()
        rate = self._limits.rate
        self._tokens = min(rate, self._tokens + (now - self._filled) * rate)
        self._filled = now
        if self._tokens < 1 or self._inside >= self._limits.at_once:
            return Problem("busy", "Send the same again a little later.")
        self._tokens -= 1
        if self._secure and dict(scope["headers"]).get(b"x-forwarded-proto") != b"https":
            return Problem("insecure", "This collector is only reached through HTTPS.")
        return None


class Room:
    """The bodies that are in memory: how many bytes they have, and whether they still grow.

    One timer looks after all bodies: a timer for each would cost as much as reading it.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits, self._taken = limits, 0
        self._reading: set[Visit] = set()
        self._watched = False

    def visit(self) -> Visit:
        """A share of the room for one request; use it in a ``with`` statement."""
        return Visit(self)

    def take(self, size: int) -> None:
        if self._taken + size > self._limits.bytes_at_once:
            raise Problem("busy", "Send the same again a little later.")
        self._taken += size

    def leave(self, size: int) -> None:
        self._taken -= size

    def begin(self, visit: Visit) -> None:
        self._reading.add(visit)
        if not self._watched:
            self._watched = True
            self._watch()

    def end(self, visit: Visit) -> None:
        self._reading.discard(visit)

    def _watch(self) -> None:
        """Whoever sent nothing between two looks is late."""
        for visit in self._reading:
            visit.hurry()
        self._watched = bool(self._reading)
        if self._watched:
            asyncio.get_running_loop().call_later(self._limits.patience, self._watch)


class Visit:
    """What one request holds of the room until it is answered."""

    def __init__(self, room: Room) -> None:
        self._room, self._size = room, 0
        self._seen, self._late = -1, False
        self._task: asyncio.Task[Any] | None = None

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self._room.leave(self._size)

    def hurry(self) -> None:
        """End the reading of a body that has not grown since the last time."""
        if self._seen == self._size and self._task is not None:
            self._late = self._task.cancel()
        self._seen = self._size

    async def body(self, headers: Headers, receive: Receive, media_type: str, most: int) -> bytes:
        """The body, if it has the right type and is not too long; it is never read further."""
        found = headers.get("content-type", "").partition(";")[0].strip().lower()
        if found != media_type:
            raise Problem("media-type", f"This takes {media_type}.")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > most:
            raise Problem("too-large", f"At most {most} bytes.")
        self._task = asyncio.current_task()
        self._room.begin(self)
        try:
            return await self._whole(receive, most)
        except asyncio.CancelledError:
            if not self._late or self._task is None or self._task.uncancel():
                raise
            raise Problem("busy", "The body came too slowly; send the same again.") from None
        finally:
            self._room.end(self)

    async def _whole(self, receive: Receive, most: int) -> bytes:
        parts: list[bytes] = []
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Problem("malformed", "The body ended too early.")
            part = message.get("body", b"")
            self._room.take(len(part))
            self._size += len(part)
            if self._size > most:
                raise Problem("too-large", f"At most {most} bytes.")
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)
