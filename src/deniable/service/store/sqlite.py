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
from functools import cache, partial
from pathlib import Path

from deniable.collection.manifest import Collection
from deniable.collection.survey import Survey
from deniable.collection.wording import Texts
from deniable.errors import CorruptData, InvalidArgument, StoreUnavailable, shorten
from deniable.service.store.base import Progress, quiet
from deniable.service.store.copies import new_copy
from deniable.service.store.sql import ALONE, ROWS, TABLES, SQLStore, flat, marks, parts
from deniable.storage.database import DAMAGE, PATIENCE
from deniable.storage.files import Identity, create, identity, real_file

#: Statements that are not prepared anew: there is one for every number of rows.
STATEMENTS = 4 * ROWS
TYPES = {"bytes": "BLOB", "whole": "INTEGER", "end": " WITHOUT ROWID"}
#: The files of the log, which SQLite keeps as long as a connection is open.
LOGS = ("-wal", "-shm")
#: Pages that a backup copies before it tells how far it is.
PAGES = 4096
#: Seconds that a purge waits for readers at once: respondents wait for it meanwhile.
BRIEF = 0.1
#: What SQLite says where it may not make them.
_NO_LOG = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}


class SQLiteStore(SQLStore):
    """A store in a file. It writes only as long as the file has its name."""

    def __init__(
        self, path: Path, published: tuple[Collection, Texts], file: Identity | None
    ) -> None:
        super().__init__(*published)
        self.path = path
        self._writing: sqlite3.Connection | None = None
        #: The files that are open, and which they were.
        self._opened = {str(path): file}
        self._lost = False

    @classmethod
    def open(cls, path: str, survey: Survey | None = None, *, upgrade: bool = False) -> SQLiteStore:
        """The store in a file, which is made if there is none and a survey is given."""
        file = real_file("store", path)
        if survey is not None:
            with suppress(OSError):  # it is there already, or SQLite will say why it cannot be
                os.close(create(file))
        elif not os.path.lexists(file):
            raise InvalidArgument("store", path, "a file that exists")
        _require_own_log(file)
        with _clear(file), closing(_readable(file)) as connection:
            reading = survey is None and not upgrade
            connection.execute("BEGIN" if reading else "BEGIN IMMEDIATE")
            empty = not connection.execute("SELECT 1 FROM sqlite_master").fetchone()
            if empty and survey is not None:
                cls._create(connection, survey, **TYPES)
            if upgrade and not empty:
                cls._upgrade(connection, **TYPES)
            published = cls._published(connection, survey)
            connection.execute("COMMIT")
            opened = identity(file)
        return cls(file, published, opened)

    def backup(self, target: str, *, progress: Progress = quiet) -> None:
        file = real_file("target", target)
        if file.exists():
            raise InvalidArgument("target", target, "a file that does not exist yet")
        with _clear(file), new_copy(file) as copy, self._snapshot() as source:
            told = partial(_tell, progress)
            source.backup(
                copy, pages=PAGES, progress=told
            )  # of one state: it is read in a snapshot
            copy.execute("PRAGMA journal_mode = DELETE")
            copy.execute("VACUUM")  # pages in the order of the ids, not of arrival

    @property
    def place(self) -> str:
        return str(self.path)

    def close(self) -> None:
        if self._writing is not None:
            self._writing.close()
        self._writing = None

    def _connected(self) -> sqlite3.Connection:
        """The connection of the writer, opened when it is first needed: readers change nothing."""
        if self._writing is None:
            self._require_same()
            connection = _connect(self.path)
            try:
                connection.execute("SELECT 1 FROM collection").fetchone()  # opens the log
                log = {f"{self.path}{end}": identity(f"{self.path}{end}") for end in LOGS}
                self._require_same()
            except BaseException:
                connection.close()
                raise
            self._writing, self._opened = connection, {**self._opened, **log}
        return self._writing

    def _require_same(self) -> None:
        """Refuse to go on in a file that lost its name: whatever is kept there is gone.

        There is no way back but a new start: others may have used the name in the meantime.
        """
        if not self._lost and _are_same(self._opened):
            return
        self._lost = True
        detail = "its file or its log was deleted, renamed or replaced while in use"
        remedy = "stop the collector, put back the files that belong together, and start it again"
        raise StoreUnavailable(f"{self.path} cannot be used: {detail}; {remedy}")

    @contextmanager
    def _transaction(self, *, patient: bool = False) -> Iterator[sqlite3.Connection]:
        with _clear(self.path):
            connection = self._connected()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                self._require_same()  # nothing is added to a log that lies beside another file
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            self._require_same()  # what is acknowledged was in the file of this name

    @contextmanager
    def _adding(self) -> Iterator[tuple[sqlite3.Connection, int]]:
        """A file has one writer at a time."""
        with self._transaction() as connection:
            yield connection, ALONE

    @contextmanager
    def _snapshot(self, *, patient: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection of its own: readers never wait for the writer."""
        self._require_same()  # SQLite would play our log into another file, and remove it
        with _clear(self.path), closing(_readable(self.path)) as connection:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("BEGIN")
            self._require_same()
            yield connection

    def _structure(self, connection: sqlite3.Connection, *, whole: bool) -> Iterator[str]:
        check = "PRAGMA integrity_check(10)" if whole else "SELECT 'ok'"
        found = [text for (text,) in connection.execute(check)]
        if found != ["ok"]:
            yield from (f"the database: {' '.join(text.split())}" for text in found)
        made = {f"CREATE TABLE {table.format(**TYPES)}" for table in TABLES}
        there = {text for (text,) in connection.execute("SELECT sql FROM sqlite_master")}
        for text in sorted(made ^ there, key=str):
            what = "is missing" if text in made else "does not belong to a store"
            yield f"the tables: {shorten(text)} {what}"

    def _known(self, connection: sqlite3.Connection, ids: list[bytes]) -> dict[bytes, bytes | None]:
        found: dict[bytes, bytes | None] = {}
        for some in parts(ids):
            statement = (
                f"SELECT id, body FROM submissions WHERE id IN (VALUES {marks(1, len(some))})"
            )
            found.update(connection.execute(statement, some).fetchall())
        return found

    def _insert(
        self, connection: sqlite3.Connection, rows: list[tuple[bytes, int, bytes]]
    ) -> set[bytes]:
        new: set[bytes] = set()
        for some in parts(rows):
            statement = f"INSERT INTO submissions VALUES {marks(3, len(some))} "
            statement += "ON CONFLICT (id) DO NOTHING RETURNING id"
            new.update(name for (name,) in connection.execute(statement, flat(some)).fetchall())
        return new

    def _overwrite(self, *, rewrite: bool) -> None:
        """Empty the log, where the reports still are. Respondents wait for each try, a moment."""
        with _clear(self.path):
            connection = self._connected()
            if rewrite:
                connection.execute("VACUUM")
            connection.execute(f"PRAGMA busy_timeout = {1000 * BRIEF:.0f}")
            deadline = time.monotonic() + PATIENCE
            while (busy := _emptied(connection)) and time.monotonic() < deadline:
                time.sleep(BRIEF)
            connection.execute(f"PRAGMA busy_timeout = {1000 * PATIENCE:.0f}")
        if busy:
            detail = "they leave the file when nobody reads them; purge again"
            raise StoreUnavailable(f"{self.path}: the reports are purged, but {detail}")


def _tell(progress: Progress, status: int, left: int, total: int) -> None:
    progress(total - left, total)


def _emptied(connection: sqlite3.Connection) -> bool:
    """Empty the log; says whether somebody hindered that."""
    (busy, *_), *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return bool(busy)


def _are_same(opened: dict[str, Identity | None]) -> bool:
    """Whether all names still have the files that they had. It is asked for every group."""
    try:
        for path, was in opened.items():
            found = os.lstat(path)
            if (found.st_dev, found.st_ino) != was:
                return False
    except OSError:
        return False
    return True


def _require_own_log(file: Path) -> None:
    """Refuse a file beside the log of another: SQLite would play it in, and destroy the file.

    A backup has no log until somebody writes to it, and says so in its header.
    """
    log = Path(f"{file}{LOGS[0]}")
    try:
        foreign = log.stat().st_size > 0 and _header(file)[18:] == b"\1\1"
    except OSError:  # there is no log, or SQLite will say what is wrong
        return
    if foreign:
        remedy = f"if {file} is the copy that you want, remove {log} and {file}{LOGS[1]}"
        raise CorruptData(f"{log} is the log of another file than {file}; {remedy}")


def _header(file: Path) -> bytes:
    if os.name == "nt":
        with file.open("rb") as opened:
            return opened.read(20)
    return os.pread(_kept_open(file, identity(file)), 20, 0)


@cache
def _kept_open(file: Path, _: Identity | None) -> int:
    """It is never closed: that would give up the locks that SQLite has on the file."""
    return os.open(file, os.O_RDONLY)


def _plain(path: Path, mode: str = "mode=rw") -> sqlite3.Connection:
    """A connection that makes no file, and leaves this as it is: it may be another program's."""
    return sqlite3.connect(
        f"{path.as_uri()}?{mode}", PATIENCE, isolation_level=None, check_same_thread=False,
        cached_statements=STATEMENTS, uri=True,
    )  # fmt: skip


def _readable(path: Path) -> sqlite3.Connection:
    """A plain connection, also to a store in a folder where this process may not write.

    SQLite wants to make a log there. Without one nobody is writing, and the file can be read alone.
    """
    connection = _plain(path)
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in _NO_LOG or Path(f"{path}-wal").exists():
            raise
        connection.close()
        return _plain(path, "mode=ro&immutable=1")
    return connection


def _connect(path: Path) -> sqlite3.Connection:
    connection = _plain(path)
    _switch_to_log(connection)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")  # what is purged becomes zeros
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
    """SQLite's errors in our own words."""
    try:
        yield
    except UnicodeDecodeError as error:  # a message that quotes a damaged schema
        raise CorruptData(f"{path} is damaged ({error})") from error
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in DAMAGE:
            raise CorruptData(f"{path} is damaged, or no store ({error})") from error
        raise StoreUnavailable(f"{path} cannot be used now: {error}") from error
