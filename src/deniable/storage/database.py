"""SQLite files that crashes, full disks and other processes cannot garble.

A file appears complete or not at all, is readable for its owner only, and what was committed is on
the disk.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from glob import escape
from pathlib import Path

from deniable.errors import CorruptData, InvalidArgument, StoreUnavailable
from deniable.storage.files import real_file, sync, sync_folder

#: Seconds to wait for another process.
PATIENCE = 30.0
#: EXTRA also syncs the folder when the journal is removed, which is the moment of the commit;
#: `fullfsync` makes macOS empty the cache of the disk.
PRAGMAS = ("PRAGMA journal_mode = DELETE", "PRAGMA synchronous = EXTRA", "PRAGMA fullfsync = ON")
#: What SQLite says of files that are not, or no longer, what they were.
DAMAGE = {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
#: The files that belong to a database, itself included.
SUFFIXES = ("", "-journal", "-wal", "-shm")
#: How the name of a file goes on until it is complete.
NEW = ".new"


class Database:
    """An SQLite file. Missing is FileNotFoundError, damaged is CorruptData."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = real_file("path", path)  # SQLite, too, puts the journal beside the real file

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
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
        except UnicodeDecodeError as error:  # a message that quotes a damaged schema
            raise CorruptData(f"{self.path} is damaged ({error})") from error
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in DAMAGE:
                raise CorruptData(f"{self.path} is damaged ({error})") from error
            raise self._unavailable(error) from error

    def place_file(self, contents: bytes) -> None:
        """Put a complete new file into place; FileExistsError if one is there."""
        try:
            self._place(contents)
        except (FileExistsError, StoreUnavailable):
            raise
        except OSError as error:
            raise self._unavailable(error) from error

    def read_file(self) -> bytes:
        """The bytes that `place_file` put into place; FileNotFoundError if there are none."""
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self._unavailable(error) from error

    def remove_file(self) -> None:
        """Remove what `place_file` put into place, also what it left when it was killed."""
        left = self.path.parent.glob(f"{escape(self.path.name)}{NEW}*")
        try:
            for file in (self.path, *left):
                file.unlink(missing_ok=True)
        except OSError as error:
            raise self._unavailable(error) from error

    def make_folder(self) -> None:
        """Make the folder that the file will be in, if it is not there."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unavailable(error) from error

    def traces(self) -> list[Path]:
        """The files that are there of this database."""
        return [file for file in self._files if self._exists(file)]

    @property
    def _files(self) -> list[Path]:
        """Itself, and the names that SQLite uses beside it."""
        return [self.path.with_name(self.path.name + suffix) for suffix in SUFFIXES]

    def require_apart(self, witness: Database, noun: str) -> None:
        """Refuse a witness that SQLite would overwrite."""
        if witness.path in self._files:
            allowed = f"another file than the {noun} and its journals"
            raise InvalidArgument("witness", str(witness.path), allowed)

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
        """Make the names of the files durable."""
        try:
            sync_folder(self.path.parent)
        except OSError as error:
            raise self._unavailable(error) from error

    def _place(self, contents: bytes) -> None:
        handle, temporary = tempfile.mkstemp(prefix=f"{self.path.name}{NEW}", dir=self.path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(contents)
                file.flush()
                sync(file.fileno())
            os.link(temporary, self.path)  # unlike a rename, it never replaces a file
        finally:
            Path(temporary).unlink()
        self.sync_folder()

    def _unavailable(self, error: Exception) -> StoreUnavailable:
        return StoreUnavailable(f"{self.path} cannot be used now, and no report was made: {error}")
