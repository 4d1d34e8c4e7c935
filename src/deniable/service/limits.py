"""What a request may cost: the length of its body, how many there are, and how they travel."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from deniable.service.problems import Problem

#: Whoever watches over the collector gets an answer even if it is full.
HEALTH = "/v1/health"


@dataclass(frozen=True)
class Limits:
    """At most so many bytes, requests a second, and requests at once."""

    single_bytes: int = 1 << 20
    batch_bytes: int = 1 << 26
    #: Of all single submissions, and again of all batches, that are received or counted at once.
    bytes_at_once: int = 1 << 28
    #: Seconds until a body must have come; a batch has more of them, at so many bytes a second.
    single_seconds: float = 10.0
    batch_seconds: float = 30.0
    batch_pace: float = 100_000.0
    rate: float = 20_000.0
    at_once: int = 1_000


class Gate:
    """Lets requests in, or answers 429: one bucket for all, since nobody is told apart.

    ``secure`` demands that a proxy in front says the request came over HTTPS.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        answer: Callable[[None, Problem], Response],
        *,
        secure: bool = False,
    ) -> None:
        self._app, self._limits, self._answer, self._secure = app, limits, answer, secure
        self._inside, self._tokens, self._filled = 0, limits.rate, time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if (problem := self._refusal(scope)) is not None:
            await self._answer(None, problem)(scope, receive, send)
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
        full = self._inside >= self._limits.at_once and scope["path"] != HEALTH
        if self._tokens < 1 or full:
            return Problem("busy", "Send the same again a little later.")
        self._tokens -= 1
        if self._secure and not _encrypted(scope["headers"]):
            return Problem("insecure", "This collector is only reached through HTTPS.")
        return None


def _encrypted(headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether the proxy said so; if anybody else did, too, the header is there twice."""
    return [value for name, value in headers if name == b"x-forwarded-proto"] == [b"https"]


class Room:
    """The bodies of one kind: how many bytes are in memory, and when each must have come.

    A body has some ``seconds``, and those that its length takes at ``pace`` bytes a second. One
    timer looks after all: a timer for each would cost as much as reading it.
    """

    def __init__(
        self, media_type: str, most: int, at_once: int, seconds: float, pace: float = math.inf
    ) -> None:
        self.media_type, self.most = media_type, most
        self._free, self._seconds, self._pace = at_once, seconds, pace
        self._due: dict[asyncio.Task[Any], float] = {}
        self._watched = False

    def take(self, size: int) -> None:
        if size > self._free:
            raise Problem("busy", "Send the same again a little later.")
        self._free -= size

    def leave(self, size: int) -> None:
        self._free += size

    def begin(self, task: asyncio.Task[Any], length: int) -> None:
        self._due[task] = time.monotonic() + self._seconds + length / self._pace
        if not self._watched:
            self._watch()

    def end(self, task: asyncio.Task[Any]) -> bool:
        """Whether the task was still waited for."""
        return self._due.pop(task, None) is not None

    def _watch(self) -> None:
        now = time.monotonic()
        for task in [task for task, due in self._due.items() if due <= now]:
            self.end(task)
            task.cancel()
        self._watched = bool(self._due)
        if self._watched:
            asyncio.get_running_loop().call_later(self._seconds / 10, self._watch)


class Visit:
    """What one request holds of a room, until the end of a ``with`` statement."""

    def __init__(self, room: Room) -> None:
        self._room, self._size = room, 0

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self._room.leave(self._size)

    async def body(self, scope: Scope, receive: Receive) -> bytes:
        """The body, if it has the right type and is not too long; it is never read further."""
        room, task = self._room, asyncio.current_task()
        headers: dict[bytes, bytes] = dict(scope["headers"])
        found = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if found != room.media_type.encode():
            raise Problem("media-type", f"This takes {room.media_type}.")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > room.most:
            raise Problem("too-large", f"At most {room.most} bytes.")
        assert task is not None
        room.begin(task, int(length))
        try:
            return await self._whole(receive)
        except asyncio.CancelledError:
            if room.end(task) or task.uncancel():  # not the room's doing, or not only
                raise
            raise Problem("busy", "The body came too slowly; send the same again.") from None
        finally:
            room.end(task)

    async def _whole(self, receive: Receive) -> bytes:
        parts: list[bytes] = []
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Problem("malformed", "The body ended too early.")
            part = message.get("body", b"")
            self._room.take(len(part))
            self._size += len(part)
            if self._size > self._room.most:
                raise Problem("too-large", f"At most {self._room.most} bytes.")
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)
