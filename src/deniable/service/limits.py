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


class RequestFilter:
    """Passes requests on, or refuses them: at most ``rate`` a second, all together.

    There is one bucket of tokens for everybody, since nobody is told apart.
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


class BodyBudget:
    """The bodies of one kind: how many bytes are in memory, and when each must have come.

    A client decides how much it sends, and how slowly. So a body has a budget and a deadline. The
    budget is shared: all bodies of the kind that are read or worked on have ``at_once`` bytes
    together, and a `BodyReader` takes what it reads from them until its request is done with. The
    deadline is each body's own: some ``seconds``, and those that its length takes at ``pace`` bytes
    a second. Who misses it is given up, and gives back its bytes. One timer looks after all: a
    timer for each would cost as much as reading it.

    When the budget is spent, the next bytes are refused; or, with ``yielding``, the body that has
    been coming for the longest time is given up for them, so that nobody keeps others out with
    bodies that never end.
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
        #: The deadlines of those that still read, the one that began first before the others.
        self._deadlines: dict[BodyReader, float] = {}
        self._watched = False

    def take(self, reader: BodyReader, size: int) -> None:
        while self._yielding and size > self._free and self._deadlines:
            oldest = next(iter(self._deadlines))
            if oldest is reader:
                break  # it is refused below; what it has would be taken for the whole body
            oldest.give_up()
        if size > self._free:
            raise Problem("busy", "Send the same again a little later.")
        self._free -= size

    def give_back(self, size: int) -> None:
        self._free += size

    def begin(self, reader: BodyReader, length: int) -> None:
        self._deadlines[reader] = time.monotonic() + self._seconds + length / self._pace
        if not self._watched:
            self._watch()

    def end(self, reader: BodyReader) -> None:
        self._deadlines.pop(reader, None)

    def _watch(self) -> None:
        now = time.monotonic()
        for reader in [reader for reader, due in self._deadlines.items() if due <= now]:
            reader.give_up()
        self._watched = bool(self._deadlines)
        if self._watched:
            asyncio.get_running_loop().call_later(self._seconds / 10, self._watch)


class BodyReader:
    """Reads one body, and holds its bytes of a budget until the end of a ``with`` statement."""

    _task: asyncio.Task[Any]

    def __init__(self, budget: BodyBudget) -> None:
        self._budget, self._held, self._given_up = budget, 0, False
        self._parts: list[bytes] = []

    def __enter__(self) -> BodyReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._give_back()

    def _give_back(self) -> None:
        self._budget.give_back(self._held)
        self._held, self._parts = 0, []

    def give_up(self) -> None:
        """Let go what came so far; the client is told to send it again."""
        self._given_up = True
        self._give_back()
        self._budget.end(self)
        self._task.cancel()

    async def body(self, scope: Scope, receive: Receive) -> bytes:
        """The body, if it has the right type and is not too long; it is never read further."""
        length, task = self._length(dict(scope["headers"])), asyncio.current_task()
        assert task is not None
        self._task = task
        self._budget.begin(self, length)
        try:
            return await self._whole(receive)
        except asyncio.CancelledError:
            # Others than `give_up` may cancel the task, even at the same time: they come first.
            if not self._given_up or task.uncancel():
                raise
            raise Problem("busy", "The body came too slowly; send the same again.") from None
        finally:
            self._budget.end(self)

    def _length(self, headers: dict[bytes, bytes]) -> int:
        """What the head says about the length; refuses what is not read at all."""
        found = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if found != self._budget.media_type.encode():
            raise Problem("media-type", f"This takes {self._budget.media_type}.")
        if b"content-encoding" in headers:
            raise Problem("media-type", "This takes bodies without a Content-Encoding.")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._budget.most:
            raise Problem("too-large", f"At most {self._budget.most} bytes.")
        return int(length)

    async def _whole(self, receive: Receive) -> bytes:
        length = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Problem("malformed", "The body ended too early.")
            part: bytes = message.get("body", b"")
            self._budget.take(self, len(part) + PART)
            self._held += len(part) + PART
            length += len(part)
            if length > self._budget.most:
                raise Problem("too-large", f"At most {self._budget.most} bytes.")
            self._parts.append(part)
            if not message.get("more_body", False):
                return b"".join(self._parts)
