"""What a request may cost: the length of its body, how many there are, and how they travel."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deniable.errors import InvalidArgument
from deniable.service.problems import Problem

_NAME = re.compile(r"[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]")
_PORT = re.compile(rb":[0-9]*$")
#: Bytes of an answer that are handed over at once.
SLICE = 1 << 15
#: Bytes that a piece of a body takes beside its own.
PART = 64


@dataclass(frozen=True)
class Limits:
    """At most so many bytes, requests a second, and requests at once."""

    single_bytes: int = 1 << 20
    batch_bytes: int = 1 << 26
    #: Of all single submissions, and of all batches, that are received or counted at once.
    singles_at_once: int = 1 << 24
    batches_at_once: int = 1 << 28
    #: Seconds until a body must have come; a batch has more of them, at so many bytes a second.
    single_seconds: float = 10.0
    batch_seconds: float = 30.0
    batch_pace: float = 100_000.0
    rate: float = 20_000.0
    at_once: int = 1_000


class Gate:
    """Lets requests in, or refuses them: one bucket for all, since nobody is told apart.

    ``secure`` demands that a proxy in front says the request came over HTTPS; ``hosts``, if there
    are any, are the names that requests may be addressed to.
    """

    def __init__(
        self,
        app: ASGIApp,
        rate: float,
        answer: Callable[[None, Problem], Response],
        *,
        secure: bool = False,
        hosts: Collection[str] = (),
    ) -> None:
        self._app, self._rate, self._answer, self._secure = app, rate, answer, secure
        self._hosts = {_host(host) for host in hosts}
        self._tokens, self._filled = rate, time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (problem := self._refusal(scope)) is not None:
            await self._answer(None, problem)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> Problem | None:
        now = time.monotonic()
        self._tokens = min(self._rate, self._tokens + (now - self._filled) * self._rate)
        self._filled = now
        if self._tokens < 1:
            return Problem("busy", "Send the same again a little later.")
        self._tokens -= 1
        if self._hosts and not self._known(scope["headers"]):
            return Problem("other-host", "This collector has another name.")
        if self._secure and not _encrypted(scope["headers"]):
            return Problem("insecure", "This collector is only reached through HTTPS.")
        return None

    def _known(self, headers: list[tuple[bytes, bytes]]) -> bool:
        """Whether the request names one host, with or without a port, and a known one."""
        named = [value for name, value in headers if name == b"host"]
        return len(named) == 1 and _PORT.sub(b"", named[0]).lower() in self._hosts


def _host(name: str) -> bytes:
    if not _NAME.fullmatch(name):
        allowed = "a name without scheme and port, like survey.example.org"
        raise InvalidArgument("--allow-host", name, allowed)
    return name.lower().encode()


def _encrypted(headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether the proxy said so; if anybody else did, too, the header is there twice."""
    return [value for name, value in headers if name == b"x-forwarded-proto"] == [b"https"]


class Slots:
    """At most so many requests that are worked on; who still sends, or reads, is none of them."""

    def __init__(self, most: int) -> None:
        self._free = most

    def __enter__(self) -> None:
        if not self._free:
            raise Problem("busy", "Send the same again a little later.")
        self._free -= 1

    def __exit__(self, *_: object) -> None:
        self._free += 1


class Sliced:
    """Hands long answers over slice by slice, as the client reads them.

    The next slice waits while the client has not taken the one before; all clients share the bytes.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sliced(message: Message) -> None:
            body = memoryview(message.get("body", b""))
            while len(body) > SLICE:
                await send({"type": message["type"], "body": body[:SLICE], "more_body": True})
                body = body[SLICE:]
                await asyncio.sleep(0)  # this slice is sent, and others have their turn
            await send({**message, "body": body} if body else message)

        await self._app(scope, receive, sliced)


class Room:
    """The bodies of one kind: how many bytes are in memory, and when each must have come.

    A body has some ``seconds``, and those that its length takes at ``pace`` bytes a second. One
    timer looks after all: a timer for each would cost as much as reading it. When the room is full,
    the next bytes are refused; or, with ``yielding``, the body that has been coming for the longest
    time is, so that nobody keeps others out with bodies that never end.
    """

    def __init__(
        self,
        media_type: str,
        most: int,
        at_once: int,
        seconds: float,
        pace: float = math.inf,
        *,
        yielding: bool = False,
    ) -> None:
        self.media_type, self.most, self._yielding = media_type, most, yielding
        self._free, self._seconds, self._pace = at_once, seconds, pace
        self._due: dict[asyncio.Task[Any], tuple[float, Visit]] = {}
        self._watched = False

    def take(self, size: int) -> None:
        while self._yielding and size > self._free and self._due:
            task, (_, visit) = next(iter(self._due.items()))
            if task is asyncio.current_task():
                break  # it is refused below; what it has would be taken for the whole body
            visit.leave()
            self._give_up(task)
        if size > self._free:
            raise Problem("busy", "Send the same again a little later.")
        self._free -= size

    def leave(self, size: int) -> None:
        self._free += size

    def begin(self, task: asyncio.Task[Any], length: int, visit: Visit) -> None:
        self._due[task] = time.monotonic() + self._seconds + length / self._pace, visit
        if not self._watched:
            self._watch()

    def end(self, task: asyncio.Task[Any]) -> bool:
        """Whether the task was still waited for."""
        return self._due.pop(task, None) is not None

    def _give_up(self, task: asyncio.Task[Any]) -> None:
        self.end(task)
        task.cancel()

    def _watch(self) -> None:
        now = time.monotonic()
        for task in [task for task, (due, _) in self._due.items() if due <= now]:
            self._give_up(task)
        self._watched = bool(self._due)
        if self._watched:
            asyncio.get_running_loop().call_later(self._seconds / 10, self._watch)


class Visit:
    """What one request holds of a room, until the end of a ``with`` statement."""

    def __init__(self, room: Room) -> None:
        self._room, self._held = room, 0
        self._parts: list[bytes] = []

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Give back what it holds."""
        self._room.leave(self._held)
        self._held, self._parts = 0, []

    async def body(self, scope: Scope, receive: Receive) -> bytes:
        """The body, if it has the right type and is not too long; it is never read further."""
        room, task = self._room, asyncio.current_task()
        length = self._length(dict(scope["headers"]))
        assert task is not None
        room.begin(task, length, self)
        try:
            return await self._whole(receive)
        except asyncio.CancelledError:
            if room.end(task) or task.uncancel():  # not the room's doing, or not only
                raise
            raise Problem("busy", "The body came too slowly; send the same again.") from None
        finally:
            room.end(task)

    def _length(self, headers: dict[bytes, bytes]) -> int:
        """What the head says about the length; refuses what is not read at all."""
        found = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if found != self._room.media_type.encode():
            raise Problem("media-type", f"This takes {self._room.media_type}.")
        if b"content-encoding" in headers:
            raise Problem("media-type", "This takes bodies without a Content-Encoding.")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._room.most:
            raise Problem("too-large", f"At most {self._room.most} bytes.")
        return int(length)

    async def _whole(self, receive: Receive) -> bytes:
        length = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Problem("malformed", "The body ended too early.")
            part: bytes = message.get("body", b"")
            self._room.take(len(part) + PART)
            self._held += len(part) + PART
            length += len(part)
            if length > self._room.most:
                raise Problem("too-large", f"At most {self._room.most} bytes.")
            self._parts.append(part)
            if not message.get("more_body", False):
                return b"".join(self._parts)
