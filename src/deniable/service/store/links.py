"""Connections to PostgreSQL that end: every wait has a limit, also for a server that is stopped.

The server ends statements, waits for locks and idle transactions. Should it say nothing at all, the
client closes the connection. Addresses are shown without passwords, also where they are malformed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deniable.errors import InvalidArgument
from deniable.extras import psycopg as _needed

if TYPE_CHECKING:
    import psycopg
else:  # only addresses of databases import this module
    psycopg = _needed()

#: Seconds to connect (to each host of an address), and to hear anything at all.
CONNECT, SILENCE = 5, 10
#: Seconds for a lock, for a statement, and for what a client does between statements.
LOCK, STATEMENT, IDLE = 5, 8, 10
#: The same for commands that nobody waits for, such as `deniable purge`; 0 is no limit.
PATIENT_LOCK, PATIENT_STATEMENT, PATIENT_IDLE = 60, 0, 600
#: How each end notices that the network is gone, in seconds.
_ALIVE = {"idle": 10, "interval": 5, "count": 2}
_SCHEME = re.compile("postgres(ql)?://")
#: What is shown of an address that cannot be read.
HIDDEN = "postgresql://..."
#: Hosts, ports and the name of a database as they may be shown; an @ would be part of a password.
_SHOWN = re.compile(r"[^@?#:/\[]*(\[[0-9a-fA-F:.%]*\])?(:[0-9]*)?(/[^@?#]*)?")


@dataclass(frozen=True)
class Address:
    """Where a database is."""

    uri: str = field(repr=False)
    password: str = field(repr=False)
    #: Without user and password.
    shown: str

    @classmethod
    def parse(cls, uri: str) -> Address:
        """The address that is written as a URI. What cannot be read is refused, and not shown."""
        try:
            found = psycopg.conninfo.conninfo_to_dict(uri)
        except psycopg.Error:  # it quotes what it could not read
            raise cls._refused() from None
        rest = _SCHEME.sub("", uri, count=1)
        if "@" in rest.partition("/")[0]:
            rest = rest.partition("@")[2]
        shown = rest.partition("?")[0]
        if not all(_SHOWN.fullmatch(host) for host in shown.split(",")):
            raise cls._refused()
        return cls(uri, str(found.get("password") or ""), shown)

    @staticmethod
    def _refused() -> InvalidArgument:
        allowed = "an address such as postgresql://user:password@host:5432/database, where "
        allowed += "% @ / ? # : in a password are written as %25 %40 %2F %3F %23 %3A"
        return InvalidArgument("store", HIDDEN, allowed)

    def without_password(self, text: str) -> str:
        return text.replace(self.password, "...") if self.password else text


class Link(psycopg.Connection[Any]):
    """A connection that is closed when the server says nothing for too long."""

    silence: float | None = None

    def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        return super().wait(self._watched(gen), *args, **options)

    def _watched(self, gen: Any) -> Generator[Any, Any, Any]:
        """The same waits, each of them limited; psycopg looks up every tenth of a second."""
        heard = time.monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                now = time.monotonic()
                heard = now if ready else heard
                if self.silence is not None and now - heard > self.silence:
                    self.close()
                    raise psycopg.OperationalError(f"no answer for {self.silence:g} seconds")
                wanted = gen.send(ready)
        except StopIteration as done:
            return done.value


def connect(address: Address, *, patient: bool = False) -> Link:
    """A connection with its limits; a ``patient`` one may take long."""
    limits = (LOCK, STATEMENT, IDLE)
    if patient:
        limits = (PATIENT_LOCK, PATIENT_STATEMENT, PATIENT_IDLE)
    names = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
    settings = {"search_path": "deniable", "synchronous_commit": "on"}
    settings["default_transaction_isolation"] = r"read\ committed"  # whatever the server prefers
    settings |= {name: f"{limit}s" for name, limit in zip(names, limits, strict=True)}
    settings |= {f"tcp_keepalives_{name}": str(value) for name, value in _ALIVE.items()}
    settings["tcp_user_timeout"] = f"{SILENCE}s"
    options: dict[str, Any] = {f"keepalives_{name}": value for name, value in _ALIVE.items()}
    options["options"] = " ".join(f"-c {name}={value}" for name, value in settings.items())
    options |= {"connect_timeout": CONNECT, "tcp_user_timeout": 1000 * SILENCE}
    found = Link.connect(address.uri, **options)
    found.silence = None if patient else SILENCE
    return found
