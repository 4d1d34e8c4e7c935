"""One record in an SQLite file of its own, with its SHA-256."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from deniable.errors import CorruptData
from deniable.storage.database import Database


@dataclass
class Contents:
    """A record that is held; assign ``record`` to change it."""

    record: bytes


class Box(Database):
    """A file with one record; a change is on the disk when the block that made it ends."""

    @contextmanager
    def held(self) -> Iterator[Contents]:
        """The record, locked for this caller; changed on the disk when the block ends."""
        with self.connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            contents = Contents(self._read(connection))
            before = contents.record
            yield contents
            if contents.record != before:
                connection.execute("UPDATE memo SET record = ?, seal = ?", _row(contents.record))
            connection.execute("COMMIT")

    def read(self) -> bytes:
        """The record as it is now. Who holds one box may read another, but not hold it, too."""
        with self.connection() as connection:
            return self._read(connection)

    def place(self, record: bytes) -> None:
        """Put a complete new file into place; FileExistsError if one is there."""
        self.place_file(_database(record))

    def _read(self, connection: sqlite3.Connection) -> bytes:
        rows = connection.execute("SELECT record, seal FROM memo").fetchall()
        if len(rows) != 1 or not isinstance(rows[0][0], bytes) or _row(rows[0][0]) != rows[0]:
            raise CorruptData(f"{self.path} is damaged (its checksum is wrong)")
        record: bytes = rows[0][0]
        return record


def _row(record: bytes) -> tuple[bytes, bytes]:
    return record, hashlib.sha256(record).digest()


def _database(record: bytes) -> bytes:
    """The bytes of a database with this record."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE memo (record BLOB NOT NULL, seal BLOB NOT NULL)")
        connection.execute("INSERT INTO memo VALUES (?, ?)", _row(record))
        return connection.serialize()
