"""One store out of several: `deniable merge`, for collectors that cannot share a database.

Stores of one collection are merged by their ids. An id that several of them hold

- with the same report is counted once,
- with different reports is refused, as a collector refuses the second of them,
- whose report is purged in one of them is counted there, and the report that others still hold is
  left out: a collector, too, takes an id that was purged for a retry,
- whose report is purged in two of them is refused: it is in the sums of both, and nothing can take
  it out of one.

The new store has the texts of the first one, and neither tokens nor invitations.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple, cast

from deniable.collection.survey import Survey
from deniable.errors import CorruptData, InvalidArgument, MismatchError
from deniable.service.store import open_store
from deniable.service.store.copies import new_copy
from deniable.service.store.damage import find_damage
from deniable.service.store.pieces import ROW, CountKey, Pieces, from_row
from deniable.service.store.seals import seal_kept, seal_of, seal_rows
from deniable.service.store.sql import SQLStore, flat, marks, parts
from deniable.service.store.sqlite import TYPES, SQLiteStore
from deniable.storage.files import real_file

_TABLES = ("submissions", "batches")


class Merged(NamedTuple):
    """What became of the submissions and batches of several stores."""

    kept: int
    #: Those that another store held before.
    again: int


def merge_stores(addresses: Sequence[str], target: str) -> Merged:
    """Write a new file with all that some stores hold; it appears complete or not at all."""
    file = real_file("target", target)
    if os.path.lexists(file):
        raise InvalidArgument("target", target, "a file that does not exist yet")
    with ExitStack() as held:
        opened = [cast(SQLStore, open_store(address)) for address in addresses]
        digests = {store.collection.digest for store in opened}
        if len(digests) > 1:
            told = ", ".join(f"{store.place} ({store.collection.digest[:12]})" for store in opened)
            raise MismatchError(f"these stores hold different collections: {told}")
        sources = [held.enter_context(store.still()) for store in opened]
        for source in sources:
            if found := next(find_damage(source), None):
                remedy = "`deniable verify-store` shows all that is wrong"
                raise CorruptData(f"{source.place} is damaged: {found}; {remedy}")
        copy = held.enter_context(new_copy(file))
        copy.execute("BEGIN")
        merged = _merged(
            SQLiteStore(file, (sources[0].collection, sources[0].texts), None), copy, sources
        )
        copy.execute("COMMIT")
        copy.execute("VACUUM")  # pages in the order of the ids, not of the stores
    return merged


def _merged(new: SQLiteStore, copy: sqlite3.Connection, sources: list[SQLStore]) -> Merged:
    _publish(new, copy, sources[0])
    again = sum(_take(copy, table, source) for table in _TABLES for source in sources)
    kept = sum(_recount(new, copy, table) for table in _TABLES)
    for source in sources:
        purged = Pieces()
        for *key, n, counts in source._run(source._seen, f"SELECT {ROW} FROM purged").fetchall():
            purged.put(CountKey(*key), from_row(n, counts))
        for table in ("purged", "tallies"):
            new._count(copy, table, purged)
        for purge in source._run(source._seen, "SELECT before, day FROM purges").fetchall():
            new._note_purge(copy, purge)
    return Merged(kept, again)


def _publish(new: SQLiteStore, copy: sqlite3.Connection, first: SQLStore) -> None:
    """What was asked, and in which words."""
    (skeleton,) = first._run(first._seen, "SELECT skeleton FROM collection").fetchone()
    new._create(copy, Survey(first.collection, first.texts, skeleton), **TYPES)
    asked = "SELECT number, digest, document, day FROM texts"
    if rows := first._run(first._seen, asked).fetchall():
        copy.execute(f"INSERT INTO texts VALUES {marks(4, len(rows))}", flat(rows))
        new._count(copy, "tallies", {seal_of("texts"): seal_rows(rows)})


def _take(copy: sqlite3.Connection, table: str, source: SQLStore) -> int:
    """Take the rows of a table whose ids are new; how many were not."""
    again = 0
    for rows in source._kept(source._seen, table):
        for some in parts(rows):
            statement = f"INSERT INTO {table} VALUES {marks(3, len(some))} "
            statement += "ON CONFLICT (id) DO NOTHING RETURNING id"
            fresh = {name for (name,) in copy.execute(statement, flat(some)).fetchall()}
            for name, _, body in some:
                if name not in fresh:
                    _settle(copy, table, source, name, body)
                    again += 1
    return again


def _settle(
    copy: sqlite3.Connection, table: str, source: SQLStore, name: bytes, body: bytes | None
) -> None:
    """What becomes of an id that an earlier store had, too."""
    (before,) = copy.execute(f"SELECT body FROM {table} WHERE id = ?", [name]).fetchone()
    told = f"{source.place} and a store before it both hold the id {name.hex()}"
    if body is None and before is None:
        why = "both purged its report, which is in the sums of both and would count twice"
        raise MismatchError(f"{told}, and {why}")
    if body is None:
        copy.execute(f"UPDATE {table} SET body = NULL WHERE id = ?", [name])
    elif before is not None and before != body:
        raise MismatchError(f"{told}, with different reports: one of them is not this respondent's")


def _recount(new: SQLiteStore, copy: sqlite3.Connection, table: str) -> int:
    """Count and seal the rows that the new store has; how many there are."""
    number = 0
    for rows in new._kept(copy, table):
        pieces = Pieces({seal_of(table): seal_kept(rows)})
        bodies = [body for _, _, body in rows if body is not None]
        for place, tally in new.count_kept(table, bodies):
            pieces.add(place, tally)
        new._count(copy, "tallies", pieces)
        number += len(rows)
    return number
