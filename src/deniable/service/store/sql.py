"""The store in tables: what SQLite and PostgreSQL share.

Statements are written with the marks of SQLite; `SQLStore._run` puts in those of others.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from datetime import date, timedelta
from typing import Any, TypeVar

from numpy.typing import NDArray

from deniable import __version__
from deniable.collection.manifest import Collection
from deniable.collection.survey import Survey
from deniable.collection.wording import Texts
from deniable.core.tally import Tally
from deniable.errors import CorruptData, InvalidArgument
from deniable.service.encoding import Columns, Tallies, TallyKey
from deniable.service.store.base import (
    CHUNK,
    EPOCH,
    Kept,
    Outcome,
    Progress,
    Store,
    outcomes,
    quiet,
    require_date,
    today,
)
from deniable.service.store.checkpoints import Checkpoint
from deniable.service.store.pieces import (
    KEY,
    ROW,
    Counted,
    CountKey,
    Pieces,
    added,
    from_row,
    paste,
    to_row,
)
from deniable.service.store.published import (
    BEFORE,
    OLD_COLUMNS,
    SCHEMA,
    check_store,
    kept_texts,
    words_of,
)
from deniable.service.store.purging import forget
from deniable.service.store.seals import ROUND as SEAL
from deniable.service.store.seals import minus, seal_kept, seal_of, seal_rows

#: Tallies, and those of reports that were purged.
_COUNTS = (
    "(report TEXT, round INTEGER, stratum INTEGER, piece INTEGER, slot INTEGER, "
    "n {whole} NOT NULL, counts {bytes} NOT NULL, "
    "PRIMARY KEY (report, round, stratum, piece, slot)){end}"
)
#: The slot of whoever writes alone.
ALONE = 0
_KEPT = "(id {bytes} PRIMARY KEY, day INTEGER NOT NULL, body {bytes}){end}"
#: Of SQLite and PostgreSQL alike, but for the names of two types.
TABLES = (
    "collection (version INTEGER NOT NULL, manifest {bytes} NOT NULL, skeleton {bytes} NOT NULL, "
    "made_by TEXT NOT NULL)",
    "texts (number INTEGER PRIMARY KEY, digest TEXT NOT NULL, document {bytes} NOT NULL, "
    "day INTEGER NOT NULL){end}",
    f"submissions {_KEPT}",
    f"batches {_KEPT}",
    f"tallies {_COUNTS}",
    f"purged {_COUNTS}",
    "tokens (name TEXT PRIMARY KEY, hash {bytes} NOT NULL){end}",
    "invitations (hash {bytes} PRIMARY KEY){end}",
    "purges (before INTEGER PRIMARY KEY, day INTEGER NOT NULL){end}",
)
#: Rows in one statement.
ROWS = 250
Row = TypeVar("Row")


class SQLStore(Store):
    """A store in tables; a kind says how to connect."""

    _seen: Any = None
    #: The connection of the writer, if it is open.
    _writing: Any = None

    @abstractmethod
    def _transaction(self, *, patient: bool = False) -> AbstractContextManager[Any]:
        """A connection for one writer at a time; all that is done with it, or nothing.

        A ``patient`` one may take as long as it needs: no respondent waits for it.
        """

    @abstractmethod
    def _snapshot(self, *, patient: bool = False) -> AbstractContextManager[Any]:
        """A connection of its own that sees one state of the store."""

    @abstractmethod
    def _adding(self) -> AbstractContextManager[tuple[Any, int]]:
        """A transaction beside which others may add, and the slot whose tallies are its own."""

    @abstractmethod
    def _known(self, connection: Any, ids: list[bytes]) -> dict[bytes, bytes | None]:
        """The bodies of those ids that are there."""

    @abstractmethod
    def _insert(self, connection: Any, rows: list[tuple[bytes, int, bytes]]) -> set[bytes]:
        """Keep those submissions (id, day, body) whose ids are new, and return these ids.

        Where another transaction is keeping an id, it waits until that has ended.
        """

    @abstractmethod
    def _structure(self, connection: Any, *, whole: bool) -> Iterator[str]:
        """What the database finds wrong with its tables, without a look at what rows say.

        Unless ``whole``, only whether the tables are there: to check all of them takes long.
        """

    @staticmethod
    def _run(connection: Any, statement: str, values: Sequence[Any] = ()) -> Any:
        return connection.execute(statement, values)

    @classmethod
    def _stream(cls, connection: Any, statement: str, values: Sequence[Any] = ()) -> Any:
        """Rows that are fetched some at a time, however many there are."""
        return cls._run(connection, statement, values)

    def add(self, entries: Sequence[tuple[bytes, bytes]]) -> list[Outcome]:
        day, sent = today(), dict(reversed(entries))  # of an id that comes twice, the first counts
        # In the order of their ids: writers that share some cannot wait for each other in turn.
        rows = [(name, day, sent[name]) for name in sorted(sent)]
        with self._adding() as (connection, slot):
            new = self._insert(connection, rows) if rows else set()
            known = self._known(connection, list(sent.keys() - new)) if len(new) < len(rows) else {}
            if new:
                rows = [row for row in rows if row[0] in new]
                pieces = Pieces({seal_of("submissions"): seal_kept(rows)})
                for place, tally in self.packing.count(body for _, _, body in rows):
                    pieces.add(place, tally)
                self._count(connection, "tallies", pieces, slot)
        return outcomes(entries, known)

    def add_batch(self, name: bytes, body: bytes, tallies: Mapping[TallyKey, Tally]) -> Outcome:
        with self._adding() as (connection, slot):
            return self._add_batch(connection, name, body, tallies, slot)

    def add_batches(
        self, batches: Iterable[tuple[bytes, bytes, Mapping[TallyKey, Tally]]]
    ) -> list[Outcome]:
        with self._transaction(patient=True) as connection:
            return [self._add_batch(connection, *batch) for batch in batches]

    def _add_batch(
        self,
        connection: Any,
        name: bytes,
        body: bytes,
        tallies: Mapping[TallyKey, Tally],
        slot: int = ALONE,
    ) -> Outcome:
        values = (name, today(), body)
        statement = "INSERT INTO batches VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING RETURNING day"
        if not self._run(connection, statement, values).fetchall():
            found = self._run(connection, "SELECT body FROM batches WHERE id = ?", [name])
            return Outcome.known if found.fetchone()[0] in (None, body) else Outcome.conflict
        pieces = Pieces({seal_of("batches"): seal_kept([values])})
        for place, tally in tallies.items():
            pieces.add(place, tally)
        self._count(connection, "tallies", pieces, slot)
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

    def numbers(self) -> dict[TallyKey, int]:
        return self._numbers("tallies")

    def purged(self) -> dict[TallyKey, int]:
        return self._numbers("purged")

    def tallies(self) -> dict[TallyKey, Tally]:
        found: dict[TallyKey, Tally] = {}
        with self._reading() as connection:
            asked = f"SELECT {ROW} FROM tallies WHERE round <> {SEAL} ORDER BY {KEY}"
            for *key, n, counts in self._run(connection, asked).fetchall():
                self._paste(found, CountKey(*key), n, counts)
        return found

    def tally(self, report: str, round_: int) -> Tally:
        found = {TallyKey(report, round_): Tally(self.packing.mechanisms[report])}
        with self._reading() as connection:
            asked = f"SELECT {ROW} FROM tallies WHERE report = ? AND round = ?"
            for *key, n, counts in self._run(connection, asked, (report, round_)).fetchall():
                self._paste(found, CountKey(*key)._replace(stratum=0), n, counts)
        return found[TallyKey(report, round_)]

    def _paste(self, found: dict[TallyKey, Tally], key: CountKey, n: Any, counts: Any) -> None:
        """Put a piece into its tally."""
        place = key.place
        if place not in found:
            if (mechanism := self.packing.mechanisms.get(key.report)) is None:
                raise CorruptData(f"the store is damaged: there is no report {key.report!r}")
            found[place] = Tally(mechanism)
        paste(found[place], key.piece, from_row(n, counts))

    def _numbers(self, table: str) -> dict[TallyKey, int]:
        with self._reading() as connection:
            asked = f"SELECT report, round, stratum, n FROM {table} WHERE piece = 0"
            rows = self._run(connection, f"{asked} AND round <> {SEAL}").fetchall()
        found: Counter[TallyKey] = Counter()
        for *place, n in sorted(rows):
            found[TallyKey(*place)] += n
        return dict(found)

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

    def days(self) -> dict[date, Kept]:
        found: dict[date, Kept] = defaultdict(Kept)
        with self._reading() as connection:
            for table in ("submissions", "batches"):
                asked = f"SELECT day, count(*), sum(length(body)) FROM {table}"
                asked += " WHERE body IS NOT NULL GROUP BY day"
                for number, *kept in self._run(connection, asked).fetchall():
                    day, (rows, size) = EPOCH + timedelta(days=number), map(int, kept)
                    before = found[day]
                    more = before._replace(**{table: rows}, size=before.size + size)
                    found[day] = more
        return dict(sorted(found.items()))

    def columns_on(self, days: Sequence[date]) -> Iterator[tuple[date, TallyKey, NDArray[Any]]]:
        numbers = [(day - EPOCH).days for day in days]
        asked = f"body IS NOT NULL AND day IN ({', '.join('?' * len(days))}) ORDER BY id"
        with self._reading() as connection:
            for table in ("submissions", "batches"):
                for rows in self._kept(connection, table, asked, numbers):
                    bodies = defaultdict(list)
                    for _, number, body in rows:
                        bodies[number].append(body)
                    for number, some in bodies.items():
                        for place, column in self._columns(table, some):
                            yield EPOCH + timedelta(days=number), place, column

    def _columns(self, table: str, bodies: list[bytes]) -> Columns:
        if table == "submissions":
            return self.packing.columns(bodies)
        return (item for body in bodies for item in self._batch_columns(body))

    def purge(
        self, before: date | str, *, rewrite: bool = False, progress: Progress = quiet
    ) -> int:
        number = forget(self, (require_date(before) - EPOCH).days, progress)
        self._overwrite(rewrite=rewrite)
        return number

    def purged_before(self) -> date | None:
        with self._reading() as connection:
            found = self._run(connection, "SELECT max(before) FROM purges").fetchone()
        return None if found[0] is None else EPOCH + timedelta(days=found[0])

    def another(self) -> SQLStore:
        """The same store with connections of its own, for another thread."""
        found = copy.copy(self)
        found._writing = None
        return found

    def count_kept(self, table: str, bodies: list[bytes]) -> Tallies:
        """What the bodies of a table count for."""
        return self.packing.count_columns(self._columns(table, bodies))

    def verify(self, known: Checkpoint | None = None, *, progress: Progress = quiet) -> list[str]:
        from deniable.service.store.damage import find_damage

        with self.still() as still:
            return list(find_damage(still, known, progress))

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

    @abstractmethod
    def _overwrite(self, *, rewrite: bool) -> None:
        """Overwrite what was purged.

        With ``rewrite``, also write the tables anew: what the database left of purged reports in
        unused places goes, and the room is given back. Respondents wait meanwhile.
        """

    def add_token(self, name: str, hashed: bytes) -> None:
        with self._transaction() as connection:
            if self._run(connection, "SELECT 1 FROM tokens WHERE name = ?", [name]).fetchone():
                raise InvalidArgument("name", name, "new: there is a token of this name")
            self._run(connection, "INSERT INTO tokens VALUES (?, ?)", (name, hashed))
            self._count(connection, "tallies", {seal_of("tokens"): seal_rows([(name, hashed)])})

    def tokens(self) -> dict[str, bytes]:
        with self._reading() as connection:
            return dict(self._run(connection, "SELECT name, hash FROM tokens").fetchall())

    def remove_token(self, name: str) -> bool:
        with self._transaction() as connection:
            found = self._run(connection, "SELECT name, hash FROM tokens WHERE name = ?", [name])
            rows = found.fetchall()
            self._run(connection, "DELETE FROM tokens WHERE name = ?", [name])
            self._count(connection, "tallies", {seal_of("tokens"): minus(seal_rows(rows))})
            return len(rows) > 0

    @classmethod
    def _count(
        cls, connection: Any, table: str, more: Mapping[CountKey, Counted], slot: int = ALONE
    ) -> None:
        """Add to the pieces of a slot. Others may have changed them before this transaction."""
        for keys in parts(list(more)):
            asked = f"slot = ? AND ({KEY}) IN (VALUES {marks(4, len(keys))})"
            found = [slot, *flat(keys)]
            rows = cls._run(connection, f"SELECT {ROW} FROM {table} WHERE {asked}", found)
            before = {tuple(key): from_row(n, counts) for *key, n, counts in rows.fetchall()}
            after = [
                (*key, slot, *to_row(added(before[key], more[key]) if key in before else more[key]))
                for key in keys
            ]
            statement = f"INSERT INTO {table} VALUES {marks(7, len(after))} "
            statement += f"ON CONFLICT ({KEY}, slot) "
            statement += "DO UPDATE SET n = excluded.n, counts = excluded.counts"
            cls._run(connection, statement, flat(after))

    @classmethod
    def _create(cls, connection: Any, survey: Survey, **types: str) -> None:
        """Make the tables; the caller holds a transaction."""
        for table in TABLES:
            cls._run(connection, f"CREATE TABLE {table.format(**types)}")
        row = (SCHEMA, survey.collection.manifest, survey.skeleton or b"", __version__)
        cls._run(connection, "INSERT INTO collection VALUES (?, ?, ?, ?)", row)
        cls._count(connection, "tallies", {seal_of("collection"): seal_rows([row])})

    @classmethod
    def _note_purge(cls, connection: Any, purge: tuple[int, int]) -> None:
        """Keep the first day that a purge kept, and the day when it began, unless it is known."""
        statement = "INSERT INTO purges VALUES (?, ?) ON CONFLICT (before) DO NOTHING"
        if cls._run(connection, statement, purge).rowcount == 1:
            cls._count(connection, "tallies", {seal_of("purges"): seal_rows([purge])})

    @classmethod
    def _upgrade(cls, connection: Any, **types: str) -> None:
        """Bring tables of the version before to this one; the caller holds a transaction."""
        row = cls._run(connection, "SELECT * FROM collection").fetchone()
        if row is None or row[0] != BEFORE or len(row) <= OLD_COLUMNS:
            return  # `check_store` says what it is
        for table in TABLES:
            name = table.partition(" ")[0]
            if name in ("tallies", "purged"):  # they had no slots
                cls._run(connection, f"ALTER TABLE {name} RENAME TO before")
                cls._run(connection, f"CREATE TABLE {table.format(**types)}")
                columns = f"{KEY}, {ALONE}, n, counts"
                cls._run(connection, f"INSERT INTO {name} SELECT {columns} FROM before")
                cls._run(connection, "DROP TABLE before")
            elif name == "purges":  # purges were not noted
                cls._run(connection, f"CREATE TABLE {table.format(**types)}")
        gone = [
            f"SELECT day FROM {table} WHERE body IS NULL" for table in ("submissions", "batches")
        ]
        last = f"SELECT max(day) FROM ({' UNION ALL '.join(gone)}) AS gone"
        (day,) = cls._run(connection, last).fetchone()
        if day is not None:
            cls._note_purge(connection, (day + 1, today()))
        after = (SCHEMA, *row[1:3], __version__)
        cls._run(connection, "UPDATE collection SET version = ?, made_by = ?", after[::3])
        for seal in (minus(seal_rows([row])), seal_rows([after])):
            cls._count(connection, "tallies", {seal_of("collection"): seal})

    @classmethod
    def _published(cls, connection: Any, survey: Survey | None) -> tuple[Collection, Texts]:
        """The collection of a store, and its texts; those of the survey are kept if they are new.

        With a survey, the caller holds a transaction.
        """
        row = cls._run(connection, "SELECT * FROM collection").fetchone()
        collection = check_store(row, survey)
        asked = "SELECT number, document FROM texts ORDER BY number DESC LIMIT 1"
        latest = cls._run(connection, asked).fetchone()
        kept = kept_texts(latest[0], latest[1], collection) if latest else Texts.plain(collection)
        words = words_of(survey, collection)
        if words is None or (latest and words.document == kept.document):
            return collection, kept
        row = (latest[0] + 1 if latest else 1, words.digest, words.document, today())
        cls._run(connection, "INSERT INTO texts VALUES (?, ?, ?, ?)", row)
        cls._count(connection, "tallies", {seal_of("texts"): seal_rows([row])})
        return collection, words


def _chunks(found: Any) -> Iterator[list[Any]]:
    with closing(found):
        while rows := found.fetchmany(CHUNK):
            yield rows


# One statement for many rows: whenever SQLite is called, the writer lets other threads work, and
# then waits for its turn again.


def parts(rows: list[Row]) -> Iterator[list[Row]]:
    """Rows in parts that one statement can take."""
    for start in range(0, len(rows), ROWS):
        yield rows[start : start + ROWS]


def marks(width: int, rows: int) -> str:
    """The places of values in a statement."""
    return ", ".join([f"({', '.join('?' * width)})"] * rows)


def flat(rows: Iterable[Iterable[Any]]) -> list[Any]:
    return [value for row in rows for value in row]
