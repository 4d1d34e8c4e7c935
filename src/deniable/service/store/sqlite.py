"""The store in one SQLite file: nothing to install, and as durable as the disk.

Write-ahead log with ``synchronous=FULL``: every commit is synced before it returns. Several
processes may use the file. Rows are kept in the order of their random ids. The log, and the places
of rows within a page, still show the order of the latest arrivals; a backup does not.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from deniable.collection.manifest import Collection
from deniable.errors import CorruptData, InvalidArgument, StoreUnavailable
from deniable.service.store.base import check_store, today
from deniable.service.store.sql import ROWS, SQLStore, flat, marks, pieces
from deniable.storage.database import DAMAGE, PATIENCE

#: Statements that are not prepared anew: there is one for every number of rows.
STATEMENTS = 4 * ROWS
_TYPES = {"bytes": "BLOB", "whole": "INTEGER", "end": " WITHOUT ROWID"}


class SQLiteStore(SQLStore):
    """A store in a file."""

    def __init__(self, path: Path, collection: Collection) -> None:
        super().__init__(collection)
        self.path = path
        with _clear(path):
            self._writing = _connect(path)

    @classmethod
    def open(cls, path: str, collection: Collection | None = None) -> SQLiteStore:
        """The store in a file, which is made if there is none and a collection is given."""
        file = Path(path).resolve()
        if not file.exists() and collection is None:
            raise InvalidArgument("store", path, "a file that exists")
        with _clear(file), closing(_plain(file, fresh=True)) as connection:
            if collection is not None:
                connection.execute("BEGIN IMMEDIATE")
                if not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                    cls._create(connection, collection, **_TYPES)
                connection.execute("COMMIT")
            row = connection.execute("SELECT version, manifest FROM collection").fetchone()
        return cls(file, check_store(row, collection))

    def backup(self, target: str) -> None:
        file = Path(target)
        if file.exists():
            raise InvalidArgument("target", target, "a file that does not exist yet")
        try:
            with (
                self._snapshot() as source,
                _clear(file),
                closing(_plain(file, fresh=True)) as copy,
            ):
                source.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")
                copy.execute("VACUUM")  # pages in the order of the ids, not of arrival
        except BaseException:  # half a copy is none
            file.unlink(missing_ok=True)
            raise

    @property
    def place(self) -> str:
        return str(self.path)

    def close(self) -> None:
        self._writing.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with _clear(self.path):
            self._writing.execute("BEGIN IMMEDIATE")
            try:
                yield self._writing
                self._writing.execute("COMMIT")
            finally:
                if self._writing.in_transaction:
                    self._writing.execute("ROLLBACK")

    @contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own: readers never wait for the writer."""
        with _clear(self.path), closing(_connect(self.path)) as connection:
            connection.execute("BEGIN")
            yield connection

    def _known(self, connection: sqlite3.Connection, ids: list[bytes]) -> dict[bytes, bytes | None]:
        found: dict[bytes, bytes | None] = {}
        for some in pieces(ids):
            statement = (
                f"SELECT id, body FROM submissions WHERE id IN (VALUES {marks(1, len(some))})"
            )
            found.update(connection.execute(statement, some).fetchall())
        return found

    def _insert(self, connection: sqlite3.Connection, fresh: dict[bytes, bytes]) -> None:
        """If one is not new, the whole transaction is undone: SQLite need not keep what it was."""
        day = today()
        for some in pieces([(name, day, body) for name, body in fresh.items()]):
            statement = f"INSERT OR ROLLBACK INTO submissions VALUES {marks(3, len(some))}"
            connection.execute(statement, flat(some))

    def _insert_if_new(self, connection: sqlite3.Connection, entries: dict[bytes, bytes]) -> bool:
        try:
            self._insert(connection, entries)
        except sqlite3.IntegrityError:
            connection.execute("BEGIN IMMEDIATE")
            return False
        return True

    def _shrink(self) -> None:
        with _clear(self.path):
            self._writing.execute("VACUUM")
            (busy, *_), *_ = self._writing.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if busy:
            detail = "they leave the file when nobody reads them; purge again"
            raise StoreUnavailable(f"{self.path}: the reports are purged, but {detail}")


def _plain(path: Path, *, fresh: bool = False) -> sqlite3.Connection:
    """A connection that leaves a file as it is: it may belong to another program.

    A ``fresh`` one is made for its owner only; SQLite gives its other files the same mode.
    """
    if fresh:
        with suppress(OSError):  # it is there already, or SQLite will say why it cannot be
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    return sqlite3.connect(
        path, PATIENCE, isolation_level=None, check_same_thread=False, cached_statements=STATEMENTS
    )


def _connect(path: Path) -> sqlite3.Connection:
    connection = _plain(path)
    _switch_to_log(connection)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")  # macOS: also empty the cache of the disk
    return connection


def _switch_to_log(connection: sqlite3.Connection) -> None:
    """SQLite waits for others everywhere but here, where several may begin at once."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


@contextmanager
def _clear(path: Path) -> Iterator[None]:
    """SQLite's errors in the words of the house."""
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in DAMAGE:
            raise CorruptData(f"{path} is damaged, or no store ({error})") from error
        raise StoreUnavailable(f"{path} cannot be used now: {error}") from error
