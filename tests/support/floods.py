"""Clients that try to fill a collector's memory, its places or its time, and honest ones beside.

Each attack opens connections straight to the port and ends by itself; sizes are arguments, so that
a test runs in seconds what `benchmarks/attacks_http.py` runs at full size.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from collectors import request_bytes

Attack = Callable[["Crowd"], None]
_CHUNKED = (
    b"POST /v2/submissions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n"
)
#: Seconds that a client of an attack waits for anything.
PATIENCE = 2.0


class Crowd:
    """Connections to one port that are closed together."""

    def __init__(self, port: int, stack: ExitStack) -> None:
        self._port, self._stack = port, stack
        self.members: list[socket.socket] = []

    def join(self, *, buffer: int | None = None) -> socket.socket:
        """One more connection, with a small buffer for what it does not read."""
        one = self._stack.enter_context(socket.socket())
        one.settimeout(PATIENCE)
        if buffer is not None:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        with suppress(OSError):
            one.connect(("127.0.0.1", self._port))
        self.members.append(one)
        return one

    def send(self, data: bytes) -> None:
        """The same from every member; who was turned away sends nothing."""
        for one in self.members:
            with suppress(OSError):
                one.sendall(data)


def trailers(connections: int, each: int, *, lines: bool = True) -> Attack:
    """What follows a chunked body never ends: short lines, or one long line."""

    def attack(crowd: Crowd) -> None:
        for _ in range(connections):
            crowd.join()
        crowd.send(_CHUNKED + (b"" if lines else b"A: "))
        piece = b"a: b\r\n" * 10_000 if lines else b"b" * 60_000
        for _ in range(0, each, len(piece)):
            crowd.send(piece)

    return attack


def pipelines(connections: int, each: int) -> Attack:
    """Thousands of requests at once, of which no answer is read."""
    asks = b"GET /v2/health HTTP/1.1\r\nHost: x\r\n\r\n"

    def attack(crowd: Crowd) -> None:
        for _ in range(connections):
            crowd.join(buffer=4096).setblocking(False)
        crowd.send(asks * (each // len(asks)))
        time.sleep(1)

    return attack


def deaf(connections: int, seconds: float) -> Attack:
    """Everybody asks for the manifest, and nobody reads it."""

    def attack(crowd: Crowd) -> None:
        for _ in range(connections):
            with suppress(OSError):
                crowd.join(buffer=4096).sendall(b"GET /v2/manifest HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(seconds)

    return attack


def heads(connections: int, each: int, seconds: float) -> Attack:
    """Heads of very many lines that never end."""
    lines = b"a:b\r\n" * (each // 5)

    def attack(crowd: Crowd) -> None:
        for _ in range(connections):
            with suppress(OSError):
                crowd.join().sendall(b"GET / HTTP/1.1\r\nHost: x\r\n" + lines)
        time.sleep(seconds)

    return attack


def wide_paths(connections: int, each: int, seconds: float) -> Attack:
    """Long paths in two parts, with a character that makes all others take four bytes."""

    def attack(crowd: Crowd) -> None:
        for _ in range(connections):
            with suppress(OSError):
                crowd.join().sendall(b"GET /" + b"a" * (each // 2))
        time.sleep(seconds)
        crowd.send(b"a" * (each // 2) + b"%F0%9F%98%80 HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(seconds)

    return attack


def slow_bodies(connections: int, seconds: float, *, size: int = 1_000, first: int = 1) -> Attack:
    """Bodies that come a byte at a time; whoever is turned away comes again at once."""
    head, _, _ = request_bytes(b"").partition(b"Content-Length")
    begin = head + b"Content-Length: %d\r\n\r\n" % size + b" " * first

    def attack(crowd: Crowd) -> None:
        end = time.monotonic() + seconds
        places = [_begun(crowd, begin) for _ in range(connections)]
        while time.monotonic() < end:
            for place, one in enumerate(places):
                try:
                    one.sendall(b" ")
                except OSError:
                    one.close()
                    places[place] = _begun(crowd, begin)
            time.sleep(0.1)

    return attack


def crumbs(connections: int, seconds: float) -> Attack:
    """Bodies in chunks of one byte, as fast as they are read."""
    begin = _CHUNKED.removesuffix(b"0\r\n")

    def attack(crowd: Crowd) -> None:
        for _ in range(connections):
            _begun(crowd, begin).setblocking(False)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            crowd.send(b"1\r\n \r\n" * 5_000)

    return attack


def _begun(crowd: Crowd, data: bytes) -> socket.socket:
    one = crowd.join()
    with suppress(OSError):
        one.sendall(data)
    return one


class Honest(threading.Thread):
    """Sends submissions one after the other, as a client does: the same again until it is kept."""

    def __init__(self, port: int, bodies: Iterator[bytes], pause: float = 0.05) -> None:
        super().__init__(daemon=True)
        self._port, self._bodies, self._pause = port, bodies, pause
        self._ended = threading.Event()
        self.seconds: list[float] = []
        self.tries = 0

    def run(self) -> None:
        for body in self._bodies:
            start = time.monotonic()
            while not self._kept(body):
                time.sleep(0.05)
            self.seconds.append(time.monotonic() - start)
            if self._ended.wait(self._pause):
                return

    def _kept(self, body: bytes) -> bool:
        self.tries += 1
        try:
            with socket.create_connection(("127.0.0.1", self._port), 60) as one:
                one.sendall(request_bytes(body))
                return one.recv(1 << 12)[9:12] in (b"201", b"200")
        except OSError:
            return False

    def end(self) -> None:
        self._ended.set()
        self.join(120)


@contextmanager
def crowd_at(port: int) -> Iterator[Crowd]:
    with ExitStack() as stack:
        yield Crowd(port, stack)


def memory_of(pid: int, field: str = "VmHWM") -> int:
    """Bytes in memory, now (VmRSS) or at most so far (VmHWM)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


def suffered(collector: Any, attack: Attack, bodies: Iterator[bytes]) -> dict[str, float]:
    """What an attack does: growth of memory, and how long honest submissions take meanwhile."""
    honest = Honest(collector.port, bodies)
    Path(f"/proc/{collector.pid}/clear_refs").write_text("5")  # the peak begins anew
    before = memory_of(collector.pid, "VmRSS")
    honest.start()
    with crowd_at(collector.port) as crowd:
        attack(crowd)
        honest.end()
    growth = memory_of(collector.pid) - before
    found = {
        "growth_mb": growth / 1e6,
        "after_mb": (memory_of(collector.pid, "VmRSS") - before) / 1e6,
    }
    waits = honest.seconds or [float("inf")]
    return {**found, "kept": len(honest.seconds), "tries": honest.tries, "slowest_s": max(waits)}
