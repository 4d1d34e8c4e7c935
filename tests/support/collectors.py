"""A collector in a process of its own, and clients that can misbehave.

Run as a script with options as JSON it serves an existing store on a free port of this machine and
prints the port. ``plant`` names a bug to serve with: whoever checks collectors must find it.
"""

from __future__ import annotations

import http.client
import importlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from places import ROOT

HERE = Path(__file__).parent
SOURCES = ROOT / "src"
ARROW = "application/vnd.apache.arrow.stream"
JSON = "application/json"
#: What every collector here asks of partners.
PARTNER_KEY = "p" * 40


class Collector:
    """A server process; it can be killed and started again on the same store and port."""

    def __init__(self, store: str, *, before: tuple[str, ...] = (), **options: Any) -> None:
        self.options = {"store": str(store), "port": 0, **options}
        self._before = before
        self.start()

    def start(self) -> Collector:
        """Start, and wait until it listens."""
        self.process = subprocess.Popen(
            [*self._before, sys.executable, str(HERE / "collectors.py"), json.dumps(self.options)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(SOURCES)},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the collector did not start:\n{self._rest()[1]}")
        self.port, self.pid = map(int, line.split())
        self.options["port"] = self.port
        return self

    def kill(self) -> None:
        """As a power cut does it to a process: no time for anything."""
        os.kill(self.pid, signal.SIGKILL)
        self._rest()

    def stop(self) -> tuple[str, str]:
        """End it politely; returns what it wrote."""
        if self.process.returncode is None:
            os.kill(self.pid, signal.SIGTERM)
        return self._rest()

    def _rest(self) -> tuple[str, str]:
        try:
            out, err = self.process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
        return out.decode(), err.decode()

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def ask(
        self, method: str, path: str, body: bytes = b"", **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """One request on a connection of its own: status, headers (small letters), body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, found, answer.read()
        finally:
            connection.close()

    def post(self, body: bytes, path: str = "/v2/submissions", **headers: str) -> int:
        """The status of the answer to a body."""
        usual = {"content_type": JSON}
        if path == "/v2/batches":
            usual = {"content_type": ARROW, "authorization": f"Bearer {PARTNER_KEY}"}
        return self.ask("POST", path, body, **{**usual, **headers})[0]

    def raw(self, data: bytes, *, wait: bool = True) -> bytes:
        """Send bytes as they are; returns all that comes back, or goes away at once."""
        parts: list[bytes] = []
        with (
            socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection,
            suppress(OSError),  # the collector may leave before it has read, or said, everything
        ):
            connection.sendall(data)
            if wait:
                connection.shutdown(socket.SHUT_WR)
                while part := connection.recv(1 << 16):
                    parts.append(part)
        return b"".join(parts)

    @property
    def memory(self) -> int:
        """Bytes in memory now."""
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * resource.getpagesize()


def request_bytes(body: bytes, path: str = "/v2/submissions", kind: str = JSON) -> bytes:
    """A request as it travels."""
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\n"
    if path == "/v2/batches":
        head += f"Authorization: Bearer {PARTNER_KEY}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def problem_of(answer: tuple[int, dict[str, str], bytes]) -> str:
    """The type of a problem document, which must be whole."""
    status, headers, body = answer
    assert headers["content-type"] == "application/problem+json", (status, headers, body)
    document = json.loads(body)
    assert document["status"] == status
    assert {"type", "title", "detail"} <= set(document)
    kind: str = document["type"]
    assert kind.startswith("urn:deniable:")
    return kind.removeprefix("urn:deniable:")


def plant(bug: str) -> None:
    """Break this process on purpose."""
    from deniable.service.store import Outcome, sqlite
    from deniable.service.writer import Writer

    if bug == "no sync":
        connect = sqlite._connect

        def careless(path: Path) -> Any:
            connection = connect(path)
            connection.execute("PRAGMA synchronous = OFF")
            return connection

        sqlite._connect = careless
    elif bug == "early answer":
        keep = Writer._keep

        def hasty(self: Writer, group: Any, loop: Any) -> None:
            for item in group:
                loop.call_soon_threadsafe(item.answer.set_result, Outcome.counted)
            time.sleep(0.05)
            keep(self, group, loop)

        Writer._keep = hasty  # type: ignore[method-assign]
    elif bug == "two count one id":  # whoever looks before he writes, and does not look again
        from deniable.service.store.postgres import PostgresStore

        insert = PostgresStore._insert

        def racing(self: PostgresStore, connection: Any, rows: Any) -> set[bytes]:
            names = {name for name, _, _ in rows}
            known = self._known(connection, list(names))
            time.sleep(0.02)
            insert(self, connection, rows)
            return names - known.keys()

        PostgresStore._insert = racing  # type: ignore[method-assign]
    elif bug == "a store that hangs":
        sqlite.SQLiteStore.add = lambda self, entries: time.sleep(3_600)  # type: ignore
    else:
        raise ValueError(bug)


def shift_clock(days: int) -> None:
    """Let this process believe that it is another day."""
    from datetime import datetime, timedelta

    from deniable.service.store import base

    class Shifted(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(days=days)

    base.datetime = Shifted  # type: ignore[attr-defined]


def main(options: dict[str, Any]) -> None:
    from deniable.service.app import Settings, create_app
    from deniable.service.limits import Limits
    from deniable.service.run import bind, serve
    from deniable.service.store import open_store

    if "plant" in options:
        plant(options["plant"])
    for place, value in options.get("constants", {}).items():
        module, _, name = place.rpartition(".")
        setattr(importlib.import_module(f"deniable.service.{module}"), name, value)
    shift_clock(options.get("days", 0))
    store = open_store(options["store"])
    limits = Limits(**{"rate": 1e9, **options.get("limits", {})})
    keys = {"key": options.get("key"), "partner_key": options.get("partner_key", PARTNER_KEY)}
    named = {name: tuple(options.get(name, ())) for name in ("hosts", "origins")}
    named["keep_days"] = options.get("keep_days")
    settings = Settings(limits, secure=options.get("secure", False), **keys, **named)
    app = create_app(store, settings)
    listening = bind("127.0.0.1", options["port"])
    if "file_bytes" in options:
        resource.setrlimit(resource.RLIMIT_FSIZE, (options["file_bytes"],) * 2)
    print(listening.getsockname()[1], os.getpid(), flush=True)
    serve(app, listening, **options.get("server", {}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
