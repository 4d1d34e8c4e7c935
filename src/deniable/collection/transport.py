"""HTTP as a client needs it: connections kept open, and the same bytes again until answered."""

from __future__ import annotations

import http.client
import ipaddress
import json
import math
import os
import random
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from deniable.errors import InvalidArgument, Refused, StoreUnavailable, is_number, require_int

#: Answers that mean "taken", and those that mean "try again", as no answer does.
TAKEN = (200, 201)
AGAIN = (408, 429, 500, 502, 503, 504)
#: Seconds before the second attempt; doubled each time, and at most so many.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
#: What a server may answer at most, and how much of its words a message repeats.
MOST_BYTES = 1 << 26
MOST_WORDS = 300
#: Names of hosts and paths as they travel.
_HOST = re.compile("[a-z0-9_-]+([.][a-z0-9_-]+)*")
_PATH = re.compile("[!-~]*")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Answer:
    """What a server answered."""

    status: int
    body: bytes
    #: Seconds that it asks for before the next attempt.
    pause: float = 0.0


class Transport:
    """Requests to one server, from any number of threads and forks.

    An attempt fails if connecting, sending, or the whole answer takes more than ``timeout``
    seconds. Plain HTTP is only spoken to this machine, unless ``insecure``: reports are deniable,
    but on the way somebody could exchange them, or the manifest.
    """

    def __init__(
        self, url: str, *, timeout: float = 30.0, attempts: int = 6, insecure: bool = False
    ) -> None:
        parts = _parts(url)
        if not is_number(timeout) or not 0 < timeout < math.inf:
            raise InvalidArgument("timeout", timeout, "a number of seconds above 0")
        require_int("attempts", attempts, 1, 1000)
        self.url, self._secure, self._path = url, parts.scheme == "https", parts.path.rstrip("/")
        self._host, self._port = _host(parts), parts.port or _PORTS[parts.scheme]
        if not self._secure and not insecure and not is_loopback(self._host):
            raise InvalidArgument("url", url, "https, except on this machine or with insecure=True")
        self._attempts, self._timeout = attempts, timeout
        #: Connections that nobody uses now, and the process that they belong to.
        self._idle: list[http.client.HTTPConnection] = []
        self._process = os.getpid()

    @property
    def address(self) -> str:
        """The server's address, written in one way."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'https' if self._secure else 'http'}://{host}:{self._port}{self._path}"

    def get(self, path: str, headers: dict[str, str] | None = None) -> bytes:
        """The document at a path."""
        return self._request("GET", path, None, headers or {}).body

    def post(self, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        """Send a body, the same one until there is an answer."""
        return self._request("POST", path, body, headers)

    def close(self) -> None:
        """Close the connections; another one opens when it is needed."""
        while self._idle:
            self._idle.pop().close()

    def _request(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> Answer:
        reason, asked = "", 0.0
        for attempt in range(self._attempts):
            if attempt:
                time.sleep(max(_pause(attempt), min(asked, LONGEST_PAUSE)))
            try:
                answer = self._once(method, path, body, headers)
            except (OSError, http.client.HTTPException) as error:
                self.close()  # the others are as old, and perhaps as dead
                reason = _plain(str(error) or repr(error))
                continue
            if answer.status in TAKEN:
                return answer
            reason, asked = _problem(answer), answer.pause
            if answer.status not in AGAIN:
                raise Refused(f"{self.url}: {reason}", answer.status, _type(answer))
        tried = f"gave no useful answer in {self._attempts} attempts"
        raise StoreUnavailable(f"{self.url} {tried}: {reason}")

    def _once(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        connection = self._connection()
        try:
            connection.request(method, self._path + path, body, headers)
            with _deadline(connection, self._timeout), connection.getresponse() as response:
                content = response.read(MOST_BYTES + 1)
        except BaseException:
            connection.close()
            raise
        if len(content) > MOST_BYTES:
            connection.close()
            raise http.client.HTTPException(f"more than {MOST_BYTES} bytes")
        self._idle.append(connection)
        after = response.headers.get("Retry-After", "")
        return Answer(response.status, content, float(after) if after.isdecimal() else 0.0)

    def _connection(self) -> http.client.HTTPConnection:
        """A connection for this caller alone: two on one would read each other's answers."""
        if self._process != os.getpid():  # the parent still uses those that a fork copied
            self.close()
            self._process = os.getpid()
        with suppress(IndexError):
            return self._idle.pop()
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        return kind(self._host, self._port, timeout=self._timeout)


@contextmanager
def _deadline(connection: http.client.HTTPConnection, seconds: float) -> Iterator[None]:
    """Cut a connection off whose answer takes longer.

    A timeout of sockets is about one piece: a server that sends a byte now and then never ends.
    """
    opened, late = connection.sock, threading.Event()

    def cut() -> None:
        late.set()
        with suppress(OSError):
            socket.socket.shutdown(opened, socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if late.is_set():
            raise TimeoutError(f"no whole answer in {seconds:g} seconds")


def _parts(url: Any) -> SplitResult:
    """The parts of an address that can be sent to as it is written."""
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        _ = parts and parts.port
    except ValueError:
        parts = None
    if parts is None or parts.scheme not in _PORTS or not parts.hostname:
        # What stands before an @ may be a password.
        shown = url.rpartition("@")[2] if isinstance(url, str) else url
        allowed = "an address such as https://host or http://host:port"
        raise InvalidArgument("url", shown, allowed)
    if parts.username is not None:
        raise InvalidArgument("url", parts.hostname, "an address without a name or password")
    if parts.port == 0 or parts.query or parts.fragment or not _PATH.fullmatch(parts.path):
        allowed = "a host, perhaps a port and a path of ASCII characters, no ? or #"
        raise InvalidArgument("url", parts.hostname, allowed)
    return parts


def _host(parts: SplitResult) -> str:
    """The host, written in one way."""
    name = str(parts.hostname).rstrip(".")
    with suppress(ValueError):
        return str(ipaddress.ip_address(name))
    with suppress(UnicodeError):
        found = name.encode("idna").decode().lower()
        if _HOST.fullmatch(found):
            return found
    raise InvalidArgument("url", name, "an address whose host has a name")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _pause(attempt: int) -> float:
    """Twice as long each time, and not the same for all who failed together."""
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (attempt - 1)) * random.uniform(0.5, 1.0)


def _document(answer: Answer) -> dict[str, Any]:
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _problem(answer: Answer) -> str:
    found = _document(answer)
    words = [found.get("title"), found.get("detail"), found.get("pointer")]
    return _plain(f"{answer.status} {': '.join(str(word) for word in words if word)}".strip())


def _plain(words: str) -> str:
    """Words of a server, without what steers a terminal, and not without end."""
    shown = "".join(mark if mark.isprintable() else "?" for mark in words[: MOST_WORDS + 1])
    return shown if len(words) <= MOST_WORDS else f"{shown[:MOST_WORDS]}..."


def _type(answer: Answer) -> str:
    return _plain(str(_document(answer).get("type", ""))).removeprefix("urn:deniable:")
