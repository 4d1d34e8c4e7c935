"""What a request may cost: the length of its body, how many there are, and how they travel."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from deniable.service.problems import Problem


@dataclass(frozen=True)
class Limits:
    """At most so many bytes, requests a second, and requests at once."""

    single_bytes: int = 1 << 20
    batch_bytes: int = 1 << 26
    #: Of all bodies that are received or counted at once.
    bytes_at_once: int = 1 << 28
    #: Seconds until the next part of a body must have come.
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
    """The bytes of all bodies that are in memory."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._taken = limits, 0

    def visit(self) -> Visit:
        """A share of the room for one request; use it in a ``with`` statement."""
        return Visit(self)

    def take(self, size: int) -> None:
        if self._taken + size > self._limits.bytes_at_once:
            raise Problem("busy", "Send the same again a little later.")
        self._taken += size

    def leave(self, size: int) -> None:
        self._taken -= size

    @property
    def patience(self) -> float:
        return self._limits.patience


class Visit:
    """What one request holds of the room until it is answered."""

    def __init__(self, room: Room) -> None:
        self._room, self._size = room, 0

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self._room.leave(self._size)

    async def body(self, request: Request, media_type: str, most: int) -> bytes:
        """The body, if it has the right type and is not too long; it is never read further."""
        found = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if found != media_type:
            raise Problem("media-type", f"This takes {media_type}.")
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > most:
            raise Problem("too-large", f"At most {most} bytes.")
        try:
            return b"".join(await self._parts(request, most))
        except ClientDisconnect:
            raise Problem("malformed", "The body ended too early.") from None
        except TimeoutError:
            raise Problem("busy", "The body came too slowly; send the same again.") from None

    async def _parts(self, request: Request, most: int) -> list[bytes]:
        parts: list[bytes] = []
        patience, now = self._room.patience, asyncio.get_running_loop().time
        async with asyncio.timeout(patience) as clock:
            async for part in request.stream():
                self._room.take(len(part))
                self._size += len(part)
                if self._size > most:
                    raise Problem("too-large", f"At most {most} bytes.")
                parts.append(part)
                clock.reschedule(now() + patience)
        return parts
