"""One record in a file of its own that crashes, full disks and other processes cannot garble.

The file is an SQLite database with one row: the record and its SHA-256. It appears complete or
not at all, is readable for its owner only, and a change is on the disk when the block that made
it ends.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from deniable.errors import CorruptData, InvalidArgument, MemoUnavailable

#: Seconds to wait for another process.
PATIENCE = 30.0
#: EXTRA also syncs the folder when the journal is removed, which is the moment of the commit;
#: `fullfsync` makes macOS empty the cache of the disk.
PRAGMAS = ("PRAGMA journal_mode = DELETE", "PRAGMA synchronous = EXTRA", "PRAGMA fullfsync = ON")
#: What SQLite says of files that are not, or no longer, what they were.
DAMAGE = {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
#: The files that belong to a database, itself included.
SUFFIXES = ("", "-journal", "-wal", "-shm")


@dataclass
class Contents:
    """A record that is held; assign ``record`` to change it."""

    record: bytes


class Box:
    """A file with one record. Missing is FileNotFoundError, damaged is CorruptData."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:  # SQLite, too, puts the journal beside the real file
            self.path = Path(path).resolve()
        except (OSError, RuntimeError, TypeError, ValueError) as error:
            raise InvalidArgument("path", path, f"the name of a file ({error})") from error

    @contextmanager
    def held(self) -> Iterator[Contents]:
        """The record, locked for this caller; changed on the disk when the block ends."""
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            contents = Contents(self._read(connection))
            before = contents.record
            yield contents
            if contents.record != before:
                connection.execute("UPDATE memo SET record = ?, seal = ?", _row(contents.record))
            connection.execute("COMMIT")

    def read(self) -> bytes:
        """The record as it is now. Who holds one box may read another, but not hold it, too."""
        with self._connection() as connection:
            return self._read(connection)

    def place(self, record: bytes) -> None:
        """Put a complete new file into place; FileExistsError if one is there."""
        try:
            self._place(record)
        except FileExistsError:
            raise
        except OSError as error:
            raise self._unavailable(error) from error

    def traces(self) -> list[Path]:
        """The files that are there of this box."""
        files = [self.path.with_name(self.path.name + suffix) for suffix in SUFFIXES]
        return [file for file in files if self._exists(file)]

    def _exists(self, file: Path) -> bool:
        try:
            return file.exists()
        except OSError as error:
            raise self._unavailable(error) from error

    def set_aside(self, mark: str) -> None:
        """Rename what is there. A journal that stayed would be played into the next file."""
        for file in self.traces():
            file.replace(
                file.with_name(f"{self.path.name}.{mark}{file.name[len(self.path.name) :]}")
            )

    def sync_folder(self) -> None:
        """Make the names of the files durable. Windows has no such call, and needs none."""
        if os.name == "nt":
            return
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            _sync(folder)
        finally:
            os.close(folder)

    def _place(self, record: bytes) -> None:
        handle, temporary = tempfile.mkstemp(prefix=f"{self.path.name}.new", dir=self.path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_database(record))
                file.flush()
                _sync(file.fileno())
            os.link(temporary, self.path)  # unlike a rename, it never replaces a file
        finally:
            Path(temporary).unlink()
        self.sync_folder()

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A connection for one block only: none is inherited by a fork or shared by threads."""
        if not self._exists(self.path):
            raise FileNotFoundError(f"{self.path} is missing")
        address = f"{self.path.as_uri()}?mode=rw"
        try:
            opened = sqlite3.connect(address, PATIENCE, isolation_level=None, uri=True)
            with closing(opened) as connection:
                for pragma in PRAGMAS:
                    connection.execute(pragma)
                yield connection
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in DAMAGE:
                raise CorruptData(f"{self.path} is damaged ({error})") from error
            raise self._unavailable(error) from error

    def _read(self, connection: sqlite3.Connection) -> bytes:
        rows = connection.execute("SELECT record, seal FROM memo").fetchall()
        if len(rows) != 1 or not isinstance(rows[0][0], bytes) or _row(rows[0][0]) != rows[0]:
            raise CorruptData(f"{self.path} is damaged (its checksum is wrong)")
        record: bytes = rows[0][0]
        return record

    def _unavailable(self, error: Exception) -> MemoUnavailable:
        return MemoUnavailable(f"{self.path} cannot be used now, and no report was made: {error}")


def _row(record: bytes) -> tuple[bytes, bytes]:
    return record, hashlib.sha256(record).digest()


def _database(record: bytes) -> bytes:
    """The bytes of a database with this record."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE memo (record BLOB NOT NULL, seal BLOB NOT NULL)")
        connection.execute("INSERT INTO memo VALUES (?, ?)", _row(record))
        return connection.serialize()


def _sync(handle: int) -> None:
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
    else:
        os.fsync(handle)
