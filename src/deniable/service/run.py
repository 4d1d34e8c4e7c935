"""Start a collector."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import signal
import socket
import time
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any, cast

from starlette.types import ASGIApp

from deniable.collection.transport import is_loopback
from deniable.errors import InvalidArgument

#: Seconds that requests have to end once the collector was told to.
GRACE = 10
#: Seconds after which the process ends, whatever its threads do.
END = 20
#: Seconds that a connection may ask nothing.
IDLE = 30
#: Connections that the system keeps until they are taken in.
BACKLOG = 2048
#: Connections that are taken in at once: in between, those that are in are read.
NEWCOMERS = 50
#: Bytes of an answer that the system keeps for a client; it takes twice as many.
SENDING = 1 << 16
#: Files that are open beside the connections; newcomers come before others have gone.
FILES = 100 + 2 * NEWCOMERS


class Seldom(logging.Filter):
    """At most one line of a kind in a second: bad requests must not fill a disk."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[object, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        kind, now = (record.levelno, record.msg), time.monotonic()
        if now - self._last.get(kind, -1.0) < 1:
            return False
        self._last[kind] = now
        return True


def _places(connections: int) -> int:
    """For how many connections there are files; asks the system for as many as are needed."""
    try:
        import resource
    except ImportError:  # another system, with other limits
        return connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return connections if soft == resource.RLIM_INFINITY else max(1, min(soft, needed) - FILES)


def check_host(host: str, *, proxied: bool, plain: bool) -> None:
    """Refuse to listen to the world without encryption, unless that is wanted.

    Behind a proxy, too: whoever reaches the port past it can claim to have come over HTTPS.
    """
    if not (is_loopback(host) or plain):
        where = "where the proxy is" if proxied else "with --behind-proxy if a proxy encrypts"
        raise InvalidArgument("host", host, f"this machine (127.0.0.1), {where}; or --plain-http")


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise InvalidArgument("port", port, f"free on {host} ({error})") from error
    # Connections inherit both. What the system keeps of an answer that nobody reads is memory, too.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SENDING)
    # Otherwise the second part of every answer waits 40 ms for the client.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def serve(
    app: ASGIApp,
    listening: socket.socket,
    *,
    connections: int = 1_000,
    idle: float = IDLE,
    parent: Connection | None = None,
    **options: Any,
) -> None:
    """Serve until a signal ends it; nothing about who asks is logged.

    A ``parent`` is told once when requests are taken, and says nothing: when it is gone, this ends.
    """
    import uvicorn

    from deniable.service.connections import limited_protocol

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            listening.listen(BACKLOG)  # the loop takes in as many as it lets the system keep
            if parent is not None:
                asyncio.get_running_loop().add_reader(parent.fileno(), self.lose_parent)
                parent.send(True)

        def lose_parent(self) -> None:
            asyncio.get_running_loop().remove_reader(cast("Connection", parent).fileno())
            signal.raise_signal(signal.SIGTERM)

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if not self.should_exit:  # a thread that hangs in a store cannot keep the process
                faulthandler.dump_traceback_later(END, exit=True)
            super().handle_exit(sig, frame)

    usual = {
        "access_log": False,
        "log_level": "warning",
        "proxy_headers": False,
        "server_header": False,
        "http": limited_protocol(_places(connections), idle),
        "loop": "asyncio",  # others read and accept in other amounts: the limits are not theirs
        "backlog": NEWCOMERS,
        "ws": "none",
        "timeout_graceful_shutdown": GRACE,
    }
    config = uvicorn.Config(app, **{**usual, **options})
    for name in ("uvicorn.error", "deniable.service"):
        logging.getLogger(name).addFilter(Seldom())
    Server(config).run(sockets=[listening])
