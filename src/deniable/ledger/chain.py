"""The entries of a ledger: each seals all that came before it, and none is ever changed."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from deniable.errors import CorruptData
from deniable.ledger.terms import ID_BYTES, Terms

COLUMNS = "number, collection, cost, subjects, marks, link"
SCHEMA = (
    "CREATE TABLE terms (record BLOB NOT NULL)",
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, collection TEXT NOT NULL, "
    "cost INTEGER NOT NULL, subjects BLOB NOT NULL, marks BLOB NOT NULL, link BLOB NOT NULL)",
    *(
        f"CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table} "
        "BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END"
        for table, verb in (
            ("entries", "UPDATE"), ("entries", "DELETE"),
            ("terms", "UPDATE"), ("terms", "DELETE"), ("terms", "INSERT"),
        )
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A charge of ``cost`` micro-epsilon to each of some subjects.

    ``subjects`` are pseudonyms; ``marks``, one for each, name the charge if it had a token.
    """

    number: int
    collection: str
    cost: int
    subjects: bytes
    marks: bytes

    def link(self, previous: bytes) -> bytes:
        """SHA-256 of the link before and of every field, long ones after their length."""
        found = hashlib.sha256(previous)
        found.update(self.number.to_bytes(8, "big") + self.cost.to_bytes(8, "big"))
        for part in (self.collection.encode(), self.subjects, self.marks):
            found.update(len(part).to_bytes(8, "big") + part)
        return found.digest()


class Chain:
    """The balances that follow from all entries up to ``number``, every one of them checked."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.number = 0
        self.link = terms.link
        self.spent: dict[bytes, int] = defaultdict(int)
        self.collections: dict[str, dict[bytes, int]] = defaultdict(lambda: defaultdict(int))
        self.marks: set[bytes] = set()

    @classmethod
    def load(cls, connection: sqlite3.Connection) -> Chain:
        """The chain of a file, from its first entry to its last."""
        found = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_schema")]
        sound = connection.execute("PRAGMA quick_check(1)").fetchall()
        if found != list(SCHEMA) or sound != [("ok",)]:
            raise CorruptData("it is not a ledger, or it is damaged")
        chain = cls(Terms.read(_record(connection)))
        for row in connection.execute(f"SELECT {COLUMNS} FROM entries ORDER BY number"):
            chain._follow(row)
        return chain

    def catch_up(self, connection: sqlite3.Connection) -> None:
        """Follow what was written since; refuse a file that is another or an older one."""
        if _record(connection) != self.terms.record():
            raise CorruptData("another ledger took its place")
        if self.number and link_at(connection, self.number) != self.link:
            raise CorruptData("an old copy, or another one, took its place")
        query = f"SELECT {COLUMNS} FROM entries WHERE number > ? ORDER BY number"
        for row in connection.execute(query, (self.number,)):
            self._follow(row)

    def write(self, entry: Entry, connection: sqlite3.Connection) -> bytes:
        """Append an entry; its link. It counts here when `catch_up` finds it in the file."""
        link = entry.link(self.link)
        connection.execute(
            f"INSERT INTO entries ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",
            (*vars(entry).values(), link),
        )
        return link

    def _follow(self, row: tuple[object, ...]) -> None:
        """Check the next row, then count it."""
        try:
            entry = Entry(*row[:-1])  # type: ignore[arg-type]
            sealed = entry.number == self.number + 1 and entry.link(self.link) == row[-1]
        except (TypeError, AttributeError, OverflowError):
            sealed = False
        if not sealed:
            raise CorruptData(f"the chain breaks after entry {self.number}")
        in_collection = self.collections[entry.collection]
        for subject in parts(entry.subjects):
            self.spent[subject] += entry.cost
            in_collection[subject] += entry.cost
        self.marks.update(parts(entry.marks))
        self.number, self.link = entry.number, entry.link(self.link)


def parts(joined: bytes) -> Iterator[bytes]:
    """The keyed hashes of an entry, one by one."""
    return (joined[i : i + ID_BYTES] for i in range(0, len(joined), ID_BYTES))


def link_at(connection: sqlite3.Connection, number: int) -> bytes | None:
    """The link of an entry, if it is there."""
    row = connection.execute("SELECT link FROM entries WHERE number = ?", (number,)).fetchone()
    return None if row is None else row[0]


def empty_file(terms: Terms) -> bytes:
    """The bytes of a ledger without entries."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for statement in SCHEMA[:2]:
            connection.execute(statement)
        connection.execute("INSERT INTO terms VALUES (?)", (terms.record(),))
        for statement in SCHEMA[2:]:
            connection.execute(statement)
        return connection.serialize()


def _record(connection: sqlite3.Connection) -> bytes:
    rows = connection.execute("SELECT record FROM terms").fetchall()
    if len(rows) != 1 or not isinstance(rows[0][0], bytes):
        raise CorruptData("its terms are damaged")
    record: bytes = rows[0][0]
    return record
