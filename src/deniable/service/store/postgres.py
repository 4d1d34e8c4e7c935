"""The store in a PostgreSQL database, one collection a database.

One writer at a time holds a lock of the database, so that several collectors may share it. The
server must sync its commits (``fsync = on``). Unlike SQLite's, its tables keep rows roughly in the
order of their arrival.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from deniable.collection.manifest import Collection
from deniable.errors import InvalidArgument, StoreUnavailable
from deniable.extras import psycopg
from deniable.service.store.base import check_store, today
from deniable.service.store.sql import SQLStore

if TYPE_CHECKING:
    from psycopg import Connection

_TYPES = {"bytes": "BYTEA", "whole": "BIGINT", "end": ""}
#: The number of our lock among the advisory locks of a database.
_LOCK = 0x64656E69
#: A commit returns when it is on the disk of the server.
_SETTINGS = "-c search_path=deniable -c synchronous_commit=on"


class PostgresStore(SQLStore):
    """A store in a database; a connection that breaks is opened again."""

    def __init__(self, address: str, collection: Collection) -> None:
        super().__init__(collection)
        self._address = address
        self._writing: Connection | None = None

    @classmethod
    def open(cls, address: str, collection: Collection | None = None) -> PostgresStore:
        """The store in a database; its tables are made if a collection is given."""
        with _clear(address), _connect(address) as connection:
            if _first(connection, "SHOW fsync") != "on":
                raise StoreUnavailable(f"{_shown(address)} does not sync what it commits")
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
            there = _first(connection, "SELECT to_regclass('deniable.collection') IS NOT NULL")
            if not there and collection is None:
                raise InvalidArgument("store", _shown(address), "a database with a collection")
            if not there and collection is not None:
                connection.execute("CREATE SCHEMA deniable")
                cls._create(connection, collection, **_TYPES)
            row = connection.execute("SELECT version, manifest FROM collection").fetchone()
        return cls(address, check_store(row, collection))

    def backup(self, target: str) -> None:
        raise InvalidArgument("store", _shown(self._address), "a file; PostgreSQL has pg_dump")

    @property
    def place(self) -> str:
        return _shown(self._address)

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
    def _transaction(self) -> Iterator[Connection]:
        with _clear(self._address):
            if self._writing is None or self._writing.closed:
                self._writing = _connect(self._address)
            with self._writing.transaction():
                self._writing.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
                yield self._writing

    @contextmanager
    def _snapshot(self) -> Iterator[Connection]:
        with _clear(self._address), _connect(self._address) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield connection

    def _known(self, connection: Connection, ids: list[bytes]) -> dict[bytes, bytes | None]:
        rows = connection.execute("SELECT id, body FROM submissions WHERE id = ANY(%s)", [ids])
        return dict(rows.fetchall())

    def _insert(self, connection: Connection, fresh: dict[bytes, bytes]) -> None:
        statement = "INSERT INTO submissions SELECT unnest(%s::bytea[]), %s, unnest(%s::bytea[])"
        connection.execute(statement, [list(fresh), today(), list(fresh.values())])

    def _shrink(self) -> None:
        """Write the tables anew. Copies in the server's log are overwritten in its own time."""
        with _clear(self._address), _connect(self._address) as connection:
            connection.autocommit = True
            connection.execute("VACUUM (FULL) submissions, batches")


def _connect(address: str) -> Connection:
    return psycopg().connect(address, options=_SETTINGS, connect_timeout=10)  # type: ignore[no-any-return]


def _first(connection: Connection, statement: Any) -> Any:
    row = connection.execute(statement).fetchone()
    return None if row is None else row[0]


def _shown(address: str) -> str:
    """The address without a password, which may stand before the @ or after the ?."""
    return address.partition("?")[0].rpartition("@")[2]


@contextmanager
def _clear(address: str) -> Iterator[None]:
    """PostgreSQL's errors in the words of the house."""
    try:
        yield
    except psycopg().Error as error:
        raise StoreUnavailable(f"{_shown(address)} cannot be used now: {error}") from error
