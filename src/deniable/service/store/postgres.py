"""The store in a PostgreSQL database, one collection a database.

Several collectors may share it, and commit at the same time. Transactions are READ COMMITTED. The
unique index of the ids decides which of them counts a submission: whoever sends an id that another
transaction is keeping waits for its end. Each transaction locks, in this order,

1. the database, shared with others that add; whatever changes other rows locks it alone,
2. a slot of the tallies, the first that nobody has: this never waits,
3. ids, in ascending order,
4. the tallies of its slot, which nobody else changes.

So nobody waits for somebody who waits for him. The server must sync its commits; it is asked before
each. Unlike SQLite's, its tables keep rows roughly in the order of their arrival. A server that
hangs is given up after a while: see `links`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from deniable.collection.manifest import Collection
from deniable.collection.survey import Survey
from deniable.collection.wording import Texts
from deniable.errors import InvalidArgument, StoreUnavailable
from deniable.extras import psycopg
from deniable.service.store.base import Progress, quiet
from deniable.service.store.links import Address, connect
from deniable.service.store.sql import TABLES, SQLStore

if TYPE_CHECKING:
    from psycopg import Connection

_TYPES = {"bytes": "BYTEA", "whole": "BIGINT", "end": ""}
#: The number of our lock among the advisory locks of a database.
_LOCK = 0x64656E69
#: Writers that commit at the same time, at most: far more than a server takes connections.
SLOTS = 256
#: Those locks are pairs of _LOCK and a slot, which differ from all single numbers.
_SLOT = (
    f"SELECT slot FROM generate_series(1, {SLOTS}) AS slot "
    f"WHERE pg_try_advisory_xact_lock({_LOCK}, slot) LIMIT 1"
)
#: What a server must say for a commit to be on its disk, also after a power cut.
DURABLE = ("fsync", "full_page_writes", "synchronous_commit")
_ASKED = ", ".join(f"current_setting('{name}')" for name in DURABLE)
#: Tables are read as they lie, not by an index that may be damaged.
_NO_INDEX = ("enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan")


class PostgresStore(SQLStore):
    """A store in a database; a connection that breaks is opened again."""

    def __init__(self, address: Address, published: tuple[Collection, Texts]) -> None:
        super().__init__(*published)
        self._address = address
        self._writing: Connection | None = None

    @classmethod
    def open(
        cls, address: str, survey: Survey | None = None, *, upgrade: bool = False
    ) -> PostgresStore:
        """The store in a database; its tables are made if a survey is given."""
        parsed = Address.parse(address)
        with _clear(parsed), connect(parsed, patient=upgrade) as connection:
            _require_durable(parsed, connection.execute(f"SELECT {_ASKED}").fetchone())
            if (
                survey is not None or upgrade
            ):  # first, or what is asked next is answered from a cache
                connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
            there = _first(connection, "SELECT to_regclass('deniable.collection') IS NOT NULL")
            if not there and survey is None:
                raise InvalidArgument("store", parsed.shown, "a database with a collection")
            if not there and survey is not None:
                connection.execute("CREATE SCHEMA deniable")
                cls._create(connection, survey, **_TYPES)
                # The server's statistics would keep samples of reports, also after a purge.
                for table in ("submissions", "batches"):
                    connection.execute(f"ALTER TABLE {table} ALTER COLUMN body SET STATISTICS 0")
            if upgrade:
                cls._upgrade(connection, **_TYPES)
            published = cls._published(connection, survey)
        return cls(parsed, published)

    def backup(self, target: str, *, progress: Progress = quiet) -> None:
        raise InvalidArgument("store", self.place, "a file; PostgreSQL has pg_dump")

    @property
    def place(self) -> str:
        return self._address.shown

    def close(self) -> None:
        if self._writing is not None:
            self._writing.close()
        self._writing = None

    @staticmethod
    def _run(connection: Any, statement: str, values: Sequence[Any] = ()) -> Any:
        return connection.execute(statement.replace("?", "%s"), values)

    @classmethod
    def _stream(cls, connection: Any, statement: str, values: Sequence[Any] = ()) -> Any:
        cursor = connection.cursor(name="deniable")  # on the server
        return cursor.execute(statement.replace("?", "%s"), values)

    @contextmanager
    def _transaction(self, *, patient: bool = False) -> Iterator[Connection]:
        with _clear(self._address):
            if patient:
                with connect(self._address, patient=True) as connection, connection.transaction():
                    self._lock(connection)
                    yield connection
                return
            with self._connected().transaction():
                self._lock(self._connected())
                yield self._connected()

    def _connected(self) -> Connection:
        """The connection of the writer; one that broke is opened again."""
        if self._writing is None or self._writing.closed:
            self._writing = connect(self._address)
        return self._writing

    def _lock(self, connection: Connection) -> None:
        """Wait for other writers, and ask in the same breath whether the server still syncs."""
        statement = f"SELECT {_ASKED} FROM pg_advisory_xact_lock(%s)"
        _require_durable(self._address, connection.execute(statement, [_LOCK]).fetchone())

    @contextmanager
    def _adding(self) -> Iterator[tuple[Connection, int]]:
        with _clear(self._address):
            connection = self._connected()
            with connection.transaction():
                statement = f"SELECT {_ASKED}, ({_SLOT}) FROM pg_advisory_xact_lock_shared(%s)"
                *found, slot = connection.execute(statement, [_LOCK]).fetchone() or ()
                _require_durable(self._address, found)
                if slot is None:
                    detail = f"{SLOTS:,} collectors write to it"
                    raise StoreUnavailable(f"{self.place} cannot be used now: {detail}")
                yield connection, slot

    @contextmanager
    def _snapshot(self, *, patient: bool = False) -> Iterator[Connection]:
        with _clear(self._address), connect(self._address, patient=patient) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield connection

    def _known(self, connection: Connection, ids: list[bytes]) -> dict[bytes, bytes | None]:
        rows = connection.execute("SELECT id, body FROM submissions WHERE id = ANY(%s)", [ids])
        return dict(rows.fetchall())

    def _insert(self, connection: Connection, rows: list[tuple[bytes, int, bytes]]) -> set[bytes]:
        statement = "INSERT INTO submissions SELECT unnest(%s::bytea[]), %s, unnest(%s::bytea[]) "
        statement += "ON CONFLICT (id) DO NOTHING RETURNING id"
        names, days, bodies = zip(*rows, strict=True)
        found = connection.execute(statement, [list(names), days[0], list(bodies)], binary=True)
        return {name for (name,) in found.fetchall()}

    def _overwrite(self, *, rewrite: bool) -> None:
        """Give the room to new rows, or write the tables anew.

        Copies in unused places, and in the server's log, are overwritten in its own time.
        """
        with _clear(self._address), connect(self._address, patient=True) as connection:
            connection.autocommit = True
            how = "VACUUM (FULL)" if rewrite else "VACUUM"
            connection.execute(f"{how} submissions, batches".encode())

    def _structure(self, connection: Connection, *, whole: bool) -> Iterator[str]:
        """The tables and their keys; PostgreSQL has no check of all that a user may ask for."""
        for name in _NO_INDEX:
            connection.execute(f"SET LOCAL {name} = off".encode())
        names = [table.partition(" ")[0] for table in TABLES]
        keys = "SELECT conrelid::regclass::text FROM pg_constraint WHERE contype = 'p' AND "
        keys += "connamespace = 'deniable'::regnamespace"
        keyed = {name for (name,) in connection.execute(keys.encode()).fetchall()}
        for name in names:
            found = _first(connection, f"SELECT to_regclass('deniable.{name}') IS NOT NULL")
            if not found:
                yield f"the tables: {name} is missing"
            elif name not in {*keyed, "collection"}:
                yield f"the tables: {name} has no primary key"
            elif whole and name in ("submissions", "batches"):
                twice = f"SELECT id FROM {name} GROUP BY id HAVING count(*) > 1"
                if number := _first(connection, f"SELECT count(*) FROM ({twice}) AS twice"):
                    yield f"{name}: {number:,} ids are there more than once"


def _require_durable(address: Address, found: Any) -> None:
    for name, value in zip(DURABLE, found, strict=True):
        if value != "on":
            detail = f"{name} is {value}, not on"
            raise StoreUnavailable(f"{address.shown} does not sync what it commits: {detail}")


def _first(connection: Connection, statement: str) -> Any:
    row = connection.execute(statement.encode()).fetchone()
    return None if row is None else row[0]


@contextmanager
def _clear(address: Address) -> Iterator[None]:
    """PostgreSQL's errors in our own words, without a password in what caused them."""
    try:
        yield
    except psycopg().Error as error:
        told = address.without_password(str(error))
        raise StoreUnavailable(f"{address.shown} cannot be used now: {told}") from None
