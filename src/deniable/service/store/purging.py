"""Forget old reports a few at a time: their counts stay, and so do their ids.

A step reads some old rows and counts them without a lock. One short transaction then deletes their
bodies and adds their counts to those of purged reports. Between steps, respondents have their turn.
Whatever ends a purge, also kill -9, leaves whole steps behind. The next purge finds what is left,
because the rows themselves say it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from deniable.service.store.base import Progress, today
from deniable.service.store.pieces import Pieces
from deniable.service.store.seals import minus, seal_kept, seal_of

if TYPE_CHECKING:
    from deniable.service.store.sql import SQLStore

#: Rows that one transaction forgets, and rows that are read at once. Batches are forgotten alone.
STEP, READ = 1_000, 20_000
#: Seconds between two steps at least; as long as the last step took, if that was longer.
PAUSE = 0.02
#: What can be forgotten before a day.
OLD = "body IS NOT NULL AND day < ?"
TABLES = ("submissions", "batches")
Row = tuple[bytes, int, bytes]


class Overtaken(Exception):
    """Another purge was faster: the step changed nothing."""


def forget(store: SQLStore, before: int, progress: Progress) -> int:
    """Forget the reports of days before this one; returns how many submissions and batches."""
    found = [_found(store, table, before) for table in TABLES]
    # Nothing came on the days after the newest report: what comes on them later is not forgotten.
    before = max(newest for _, newest in found) + 1
    done, total = 0, sum(number for number, _ in found)
    progress(done, total)
    for table in TABLES:
        last = b""
        while rows := _old(store, table, before, last):
            for start in range(0, len(rows), STEP):
                some = rows[start : start + STEP]
                began = time.monotonic()
                try:
                    _step(store, table, before, some)
                except Overtaken:
                    break
                last = some[-1][0]
                done += len(some)
                progress(done, max(done, total))
                time.sleep(max(PAUSE, time.monotonic() - began))
    return done


def _found(store: SQLStore, table: str, before: int) -> tuple[int, int]:
    """How much there is to forget, and its newest day."""
    with store._snapshot(patient=True) as connection:
        asked = f"SELECT count(*), coalesce(max(day), 0) FROM {table} WHERE {OLD}"
        number, newest = store._run(connection, asked, [before]).fetchone()
    return number, newest


def _old(store: SQLStore, table: str, before: int, last: bytes) -> list[Row]:
    """The next rows with reports to forget, in the order of their ids."""
    most = 1 if table == "batches" else READ
    with store._snapshot(patient=True) as connection:
        asked = f"SELECT id, day, body FROM {table} WHERE id > ? AND {OLD} ORDER BY id LIMIT {most}"
        rows: list[Row] = store._run(connection, asked, [last, before]).fetchall()
    return rows


def _step(store: SQLStore, table: str, before: int, rows: list[Row]) -> None:
    """Forget these rows, all of them or none."""
    gone = Pieces()
    for place, tally in store.count_kept(table, [body for _, _, body in rows]):
        gone.add(place, tally)
    change = Pieces({seal_of(table): minus(seal_kept(rows))})
    change.put(seal_of(table), seal_kept((*row[:2], None) for row in rows))
    with store._transaction() as connection:
        if _emptied(store, connection, table, [name for name, _, _ in rows]) < len(rows):
            raise Overtaken
        store._note_purge(connection, (before, today()))
        store._count(connection, "purged", gone)
        store._count(connection, "tallies", change)


def _emptied(store: SQLStore, connection: Any, table: str, names: list[bytes]) -> int:
    """Delete the bodies of these rows; says how many were still there."""
    from deniable.service.store.sql import parts

    number = 0
    for some in parts(names):
        # A plain list: PostgreSQL looks its ids up, but joins VALUES with the whole table.
        asked = f"id IN ({', '.join('?' * len(some))}) AND body IS NOT NULL"
        change = f"UPDATE {table} SET body = NULL WHERE {asked}"
        number += store._run(connection, change, some).rowcount
    return number
