"""What is wrong with a store: `deniable verify-store`.

First the database checks itself. Then every row is looked at: its shape, the seal of its table, and
whether the tallies are what all reports add up to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from deniable.service.packing import Counts, add_counts
from deniable.service.store.base import SCHEMA, from_bytes, to_bytes
from deniable.service.store.seals import (
    ROUND,
    SEALED,
    Seal,
    seal,
    seal_kept,
    seal_manifest,
    seal_tokens,
)

if TYPE_CHECKING:
    from deniable.service.store.sql import SQLStore

#: Bytes of an id and of the hash of a token.
ID, HASH = 16, 32
#: Days since 1970 that a date can have.
LAST_DAY = 2_932_896


def find_damage(store: SQLStore) -> Iterator[str]:
    """Everything that is wrong with a store that is held still, a sentence each."""
    found = list(store._structure(store._seen))
    yield from found
    if found:  # what the rows of broken tables say would be guesses
        return
    recount: Counts = {}
    yield from _collection(store)
    yield from _tokens(store)
    yield from _kept(store, "submissions", recount)
    yield from _kept(store, "batches", recount)
    purged, wrong = _counts(store, "purged")
    tallies, more = _counts(store, "tallies")
    yield from [*wrong, *more]
    with suppress(ValueError):  # counts of another length were named above
        add_counts(recount, purged)
    yield from _differences(tallies, recount)


def _rows(store: SQLStore, statement: str) -> list[Any]:
    rows: list[Any] = store._run(store._seen, statement).fetchall()
    return rows


def _sealed(store: SQLStore, table: str, found: Seal) -> Iterator[str]:
    """Whether the rows of a table are those that its seal was made for."""
    asked = f"SELECT n, counts FROM tallies WHERE question = '{table}' AND round = {ROUND}"
    n, total = (_rows(store, asked) or [(0, to_bytes(seal([])[0]))])[0]
    if n != found[1]:
        yield f"{table}: there are {found[1]:,} rows, {n} were kept"
    elif total != to_bytes(found[0]):
        yield f"{table}: a row is not as it was kept (the seal of the table differs)"


def _collection(store: SQLStore) -> Iterator[str]:
    rows = _rows(store, "SELECT version, manifest FROM collection")
    if len(rows) != 1:
        yield f"collection: there are {len(rows)} manifests instead of one"
    else:  # its types were looked at when the store was opened
        yield from _sealed(store, "collection", seal_manifest(SCHEMA, rows[0][1]))


def _tokens(store: SQLStore) -> Iterator[str]:
    sound = []
    for name, hashed in _rows(store, "SELECT name, hash FROM tokens"):
        if type(name) is not str or not name.strip() or not name.isprintable():
            yield "tokens: a name cannot be printed"
        elif type(hashed) is not bytes or len(hashed) != HASH:
            yield f"tokens: the hash of {name!r} has not {HASH} bytes"
        else:
            sound.append((name, hashed))
    yield from _sealed(store, "tokens", seal_tokens(sound))


def _kept(store: SQLStore, table: str, recount: Counts) -> Iterator[str]:
    """The rows of submissions or batches; adds what they count for to ``recount``."""
    total: Counts = {(table, ROUND): seal([])}
    wrong = Counter[str]()
    for rows in store._kept(store._seen, table):
        sound = []
        for row in rows:
            if fault := _fault(*row):
                wrong[fault] += 1
            else:
                sound.append(row)
        add_counts(total, {(table, ROUND): seal_kept(sound)})
        bodies = [body for _, _, body in sound if body is not None]
        wrong.update(_count(store, table, bodies, recount))
    for fault, number in sorted(wrong.items()):
        yield f"{table}: {fault} ({number:,} times)"
    yield from _sealed(store, table, total[table, ROUND])


def _fault(name: Any, day: Any, body: Any) -> str:
    if type(name) is not bytes or len(name) != ID:
        return f"an id has not {ID} bytes"
    if type(day) is not int or not 0 <= day <= LAST_DAY:
        return "a day is none"
    if body is not None and (type(body) is not bytes or not body):
        return "a report is not made of bytes"
    return ""


def _count(store: SQLStore, table: str, bodies: list[bytes], recount: Counts) -> Iterable[str]:
    """Count bodies, and say what is wrong with those that cannot be counted."""
    single = table == "submissions"
    try:
        found = store.packing.count(bodies) if single else _batch(store, bodies)
        add_counts(recount, found)
    except ValueError as error:  # of which CorruptData and InvalidArgument are
        if len(bodies) > 1:  # which of them?
            half = len(bodies) // 2
            for some in (bodies[:half], bodies[half:]):
                yield from _count(store, table, some, recount)
        else:
            yield str(error)


def _batch(store: SQLStore, bodies: list[bytes]) -> Counts:
    found: Counts = {}
    for body in bodies:
        add_counts(found, store.count_batch(body))
    return found


def _counts(store: SQLStore, table: str) -> tuple[Counts, list[str]]:
    """The counts of a table, and the rows of it that are none."""
    found: Counts = {}
    wrong = []
    sizes = {q.name: q.mechanism.tally().counts.size for q in store.collection.questions}
    for name, number, n, counts in _rows(store, f"SELECT question, round, n, counts FROM {table}"):
        if table == "tallies" and name in SEALED and (type(number), number) == (int, ROUND):
            continue
        rounds = type(number) is int and 1 <= number <= store.collection.rounds
        if name not in sizes or not rounds:
            wrong.append(f"{table}: {name!r}, round {number!r}: there is no such question or round")
        elif type(n) is not int or type(counts) is not bytes or len(counts) != 8 * sizes[name]:
            wrong.append(f"{table}: {name}, round {number}: this is no row of {sizes[name]} counts")
        else:
            found[name, number] = (from_bytes(counts), n)
    return found, wrong


def _differences(kept: Counts, again: Counts) -> Iterator[str]:
    for place in sorted({*kept, *again}):
        (a, n), (b, m) = kept.get(place, (None, 0)), again.get(place, (None, 0))
        if n != m:
            text = f"the tally has {n:,} reports, a recount {m:,}"
            yield f"{place[0]}, round {place[1]}: {text}"
        elif not np.array_equal(a, b):  # type: ignore[arg-type]
            text = f"the tally of {n:,} reports differs from a recount"
            yield f"{place[0]}, round {place[1]}: {text}"
