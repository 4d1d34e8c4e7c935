"""The store in tables: what SQLite and PostgreSQL share.

Statements are written with the marks of SQLite; `SQLStore._run` puts in those of others.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from datetime import date
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from deniable.collection.manifest import Collection
from deniable.errors import InvalidArgument
from deniable.service.packing import Counts, add_counts
from deniable.service.store.base import (
    CHUNK,
    EPOCH,
    SCHEMA,
    Outcome,
    Store,
    from_bytes,
    outcomes,
    require_date,
    to_bytes,
    today,
)
from deniable.service.store.seals import ROUND as SEAL
from deniable.service.store.seals import seal_kept, seal_manifest, seal_tokens

#: Of SQLite and PostgreSQL alike, but for the names of two types.
TABLES = (
    "collection (version INTEGER NOT NULL, manifest {bytes} NOT NULL)",
    "submissions (id {bytes} PRIMARY KEY, day INTEGER NOT NULL, body {bytes}){end}",
    "batches (id {bytes} PRIMARY KEY, day INTEGER NOT NULL, body {bytes}){end}",
    "tallies (question TEXT, round INTEGER, n {whole} NOT NULL, counts {bytes} NOT NULL, "
    "PRIMARY KEY (question, round)){end}",
    "purged (question TEXT, round INTEGER, n {whole} NOT NULL, counts {bytes} NOT NULL, "
    "PRIMARY KEY (question, round)){end}",
    "tokens (name TEXT PRIMARY KEY, hash {bytes} NOT NULL){end}",
)
#: Rows in one statement.
ROWS = 250
Row = TypeVar("Row")
#: What can be forgotten before a day.
OLD = "body IS NOT NULL AND day < ?"


class SQLStore(Store):
    """A store in tables; a kind says how to connect."""

    _seen: Any = None

    @abstractmethod
    def _transaction(self, *, patient: bool = False) -> AbstractContextManager[Any]:
        """A connection for one writer at a time; all that is done with it, or nothing.

        A ``patient`` one may take as long as it needs: no respondent waits for it.
        """

    @abstractmethod
    def _snapshot(self, *, patient: bool = False) -> AbstractContextManager[Any]:
        """A connection of its own that sees one state of the store."""

    @abstractmethod
    def _known(self, connection: Any, ids: list[bytes]) -> dict[bytes, bytes | None]:
        """The bodies of those ids that are there."""

    @abstractmethod
    def _insert(self, connection: Any, fresh: list[tuple[bytes, int, bytes]]) -> None:
        """Keep new submissions: (id, day, body)."""

    @abstractmethod
    def _structure(self, connection: Any) -> Iterator[str]:
        """What the database finds wrong with its tables, without a look at what rows say."""

    @staticmethod
    def _run(connection: Any, statement: str, values: Sequence[Any] = ()) -> Any:
        return connection.execute(statement, values)

    @classmethod
    def _stream(cls, connection: Any, statement: str, values: Sequence[Any] = ()) -> Any:
        """Rows that are fetched some at a time, however many there are."""
        return cls._run(connection, statement, values)

    def add(self, entries: Sequence[tuple[bytes, bytes]]) -> list[Outcome]:
        day = today()
        with self._transaction() as connection:
            results, fresh = [Outcome.counted] * len(entries), dict(entries)
            rows = [(name, day, body) for name, body in fresh.items()]
            if len(fresh) < len(entries) or not self._insert_if_new(connection, rows):
                known = self._known(connection, list(fresh))
                results, fresh = outcomes(entries, known)
                rows = [(name, day, body) for name, body in fresh.items()]
                if rows:
                    self._insert(connection, rows)
            if rows:
                counts = self.packing.count(fresh.values())
                counts["submissions", SEAL] = seal_kept(rows)
                self._count(connection, "tallies", counts)
        return results

    def _insert_if_new(self, connection: Any, rows: list[tuple[bytes, int, bytes]]) -> bool:
        """Keep submissions if all of them are new, as nearly always, and say so; or none."""
        return False

    def add_batch(self, name: bytes, body: bytes, counts: Counts) -> Outcome:
        with self._transaction() as connection:
            return self._add_batch(connection, name, body, counts)

    def add_batches(self, batches: Iterable[tuple[bytes, bytes, Counts]]) -> list[Outcome]:
        with self._transaction(patient=True) as connection:
            return [self._add_batch(connection, *batch) for batch in batches]

    def _add_batch(self, connection: Any, name: bytes, body: bytes, counts: Counts) -> Outcome:
        found = self._run(connection, "SELECT body FROM batches WHERE id = ?", [name])
        if (row := found.fetchone()) is not None:
            return Outcome.known if row[0] in (None, body) else Outcome.conflict
        values = (name, today(), body)
        self._run(connection, "INSERT INTO batches VALUES (?, ?, ?)", values)
        self._count(connection, "tallies", {**counts, ("batches", SEAL): seal_kept([values])})
        return Outcome.counted

    @contextmanager
    def still(self) -> Iterator[SQLStore]:
        with self._snapshot(patient=True) as connection:
            found = copy.copy(self)
            found._seen = connection
            yield found

    def _reading(self) -> AbstractContextManager[Any]:
        """A connection that sees one state of the store: the one that is held still, or now's."""
        return self._snapshot() if self._seen is None else nullcontext(self._seen)

    def has_batch(self, name: bytes) -> bool:
        with self._reading() as connection:
            found = self._run(connection, "SELECT 1 FROM batches WHERE id = ?", [name])
            return found.fetchone() is not None

    def counts(self) -> Counts:
        return self._read("tallies")

    def purged(self) -> Counts:
        return self._read("purged")

    def singles(self) -> Iterator[list[bytes]]:
        with self._reading() as connection:
            statement = "SELECT body FROM submissions WHERE body IS NOT NULL"
            for rows in _chunks(self._stream(connection, statement)):
                yield [row[0] for row in rows]

    def batches(self) -> Iterator[bytes]:
        with self._reading() as connection:
            ids = self._run(connection, "SELECT id FROM batches WHERE body IS NOT NULL").fetchall()
            for name in ids:  # one at a time: a body can be large
                yield self._run(
                    connection, "SELECT body FROM batches WHERE id = ?", name
                ).fetchone()[0]

    def purge(self, before: date | str) -> int:
        day = (require_date(before) - EPOCH).days
        number = 0
        with self._transaction(patient=True) as connection:
            for table, count in (
                ("submissions", self.packing.count),
                ("batches", lambda bodies: self.count_batch(*bodies)),
            ):
                gone: Counts = {}
                change: Counts = {}
                for rows in self._kept(connection, table, OLD, [day]):
                    add_counts(gone, count([body for _, _, body in rows]))
                    old, n = seal_kept(rows)
                    blank, _ = seal_kept((name, came, None) for name, came, _ in rows)
                    add_counts(change, {(table, SEAL): (blank - old, 0)})
                    number += n
                self._count(connection, "purged", gone)
                self._count(connection, "tallies", change)
                self._run(connection, f"UPDATE {table} SET body = NULL WHERE {OLD}", [day])
        self._shrink()
        return number

    def verify(self) -> list[str]:
        from deniable.service.store.damage import find_damage

        with self.still() as still:
            return list(find_damage(still))

    def _kept(
        self, connection: Any, table: str, where: str = "TRUE", values: Sequence[Any] = ()
    ) -> Iterator[list[tuple[Any, Any, Any]]]:
        """The rows (id, day, body) of a table, some at a time; batches alone, for their length."""
        if table == "submissions":
            found = self._stream(
                connection, f"SELECT id, day, body FROM {table} WHERE {where}", values
            )
            yield from _chunks(found)
            return
        ids = self._run(connection, f"SELECT id FROM {table} WHERE {where}", values).fetchall()
        for name in ids:
            row = self._run(connection, f"SELECT id, day, body FROM {table} WHERE id = ?", name)
            yield row.fetchall()

    def _shrink(self) -> None:
        """Give back, and overwrite, the room of what was purged."""

    def add_token(self, name: str, hashed: bytes) -> None:
        with self._transaction() as connection:
            if self._run(connection, "SELECT 1 FROM tokens WHERE name = ?", [name]).fetchone():
                raise InvalidArgument("name", name, "new: there is a token of this name")
            self._run(connection, "INSERT INTO tokens VALUES (?, ?)", (name, hashed))
            self._count(connection, "tallies", {("tokens", SEAL): seal_tokens([(name, hashed)])})

    def tokens(self) -> dict[str, bytes]:
        with self._reading() as connection:
            return dict(self._run(connection, "SELECT name, hash FROM tokens").fetchall())

    def remove_token(self, name: str) -> bool:
        with self._transaction() as connection:
            found = self._run(connection, "SELECT name, hash FROM tokens WHERE name = ?", [name])
            rows = found.fetchall()
            self._run(connection, "DELETE FROM tokens WHERE name = ?", [name])
            total, n = seal_tokens(rows)
            self._count(connection, "tallies", {("tokens", SEAL): (-total, -n)})
            return n > 0

    def _read(self, table: str) -> Counts:
        with self._reading() as connection:
            statement = f"SELECT question, round, n, counts FROM {table} WHERE round <> {SEAL}"
            rows = self._run(connection, statement)
            return {(name, number): (from_bytes(c), n) for name, number, n, c in rows.fetchall()}

    @classmethod
    def _count(cls, connection: Any, table: str, more: Counts) -> None:
        """Add to counts that another process may have changed in the meantime."""
        for places in pieces(list(more)):
            asked = f"(question, round) IN (VALUES {marks(2, len(places))})"
            statement = f"SELECT question, round, n, counts FROM {table} WHERE {asked}"
            rows = cls._run(connection, statement, flat(places)).fetchall()
            before = {(name, number): (n, counts) for name, number, n, counts in rows}
            after = [_added(place, more[place], before.get(place)) for place in places]
            new = "SET n = excluded.n, counts = excluded.counts"
            statement = f"INSERT INTO {table} VALUES {marks(4, len(after))}"
            statement += f" ON CONFLICT (question, round) DO UPDATE {new}"
            cls._run(connection, statement, flat(after))

    @classmethod
    def _create(cls, connection: Any, collection: Collection, **types: str) -> None:
        """Make the tables; the caller holds a transaction."""
        for table in TABLES:
            cls._run(connection, f"CREATE TABLE {table.format(**types)}")
        row = (SCHEMA, collection.manifest)
        cls._run(connection, "INSERT INTO collection VALUES (?, ?)", row)
        cls._count(connection, "tallies", {("collection", SEAL): seal_manifest(*row)})


def _chunks(found: Any) -> Iterator[list[Any]]:
    with closing(found):
        while rows := found.fetchmany(CHUNK):
            yield rows


def _added(
    place: tuple[str, int], more: tuple[NDArray[np.int64], int], before: tuple[int, bytes] | None
) -> tuple[str, int, int, bytes]:
    """The row of a place with more counts."""
    counts, n = more
    if before is None:
        return (*place, n, to_bytes(counts))
    return (*place, n + before[0], to_bytes(counts + from_bytes(before[1])))


# One statement for many rows: whenever SQLite is called, the writer lets other threads work, and
# then waits for its turn again.


def pieces(rows: list[Row]) -> Iterator[list[Row]]:
    """Rows in parts that one statement can take."""
    for start in range(0, len(rows), ROWS):
        yield rows[start : start + ROWS]


def marks(width: int, rows: int) -> str:
    """The places of values in a statement."""
    return ", ".join([f"({', '.join('?' * width)})"] * rows)


def flat(rows: Iterable[Iterable[Any]]) -> list[Any]:
    return [value for row in rows for value in row]
