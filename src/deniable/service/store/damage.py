"""What is wrong with a store: `deniable verify-store`.

First the database checks itself. Then every row is looked at: its shape, the seal of its table, and
whether the tallies are what all reports add up to. With a checkpoint, it reads only the rows of
days that are new, that have other numbers of rows than before, or whose turn it is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import reduce
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from deniable.arrays import Counts
from deniable.errors import CorruptData
from deniable.service.encoding import TallyKey
from deniable.service.store.base import EPOCH, Progress, quiet
from deniable.service.store.checkpoints import Checkpoint, Day, Seen
from deniable.service.store.pieces import (
    ROW,
    Counted,
    CountKey,
    Pieces,
    added,
    from_row,
    piece_sizes,
)
from deniable.service.store.seals import NOTHING, SEALED, seal_kept, seal_of, seal_rows

if TYPE_CHECKING:
    from deniable.service.store.sql import SQLStore

#: Bytes of an id and of the hash of a token.
ID, HASH = 16, 32
#: The tables with reports.
KEPT = ("submissions", "batches")
#: Rows that one pass over a table reads, unless a day has more; and that are looked at at once.
PASS, GATHERED = 2_000_000, 200_000
#: Days since 1970 that a date can have.
LAST_DAY = 2_932_896


def find_damage(
    store: SQLStore, known: Checkpoint | None = None, progress: Progress = quiet
) -> Iterator[str]:
    """Everything that is wrong with a store that is held still, a sentence each.

    Days that are ``known`` are trusted if they have as many rows as before, and as many reports.
    What is found of the others is added to it.
    """
    checked = Checkpoint(store.collection.digest) if known is None else known
    found = list(store._structure(store._seen, whole=not checked.days))
    yield from found
    if found:  # what the rows of broken tables say would be guesses
        return
    recount = Pieces()
    yield from _collection(store)
    yield from _texts(store)
    yield from _tokens(store)
    yield from _invitations(store)
    yield from _purges(store)
    there = {table: _there(store, table) for table in KEPT}
    trusted = {table: checked.trusted(table, there[table]) for table in KEPT}
    work = _Work(
        progress,
        sum(seen.rows for t in KEPT for day, seen in there[t].items() if day not in trusted[t]),
    )
    for table in KEPT:
        yield from _kept(store, table, recount, checked, there[table], trusted[table], work)
    yield from _counted(store, "purged", recount)
    tallies = Pieces()
    yield from _counted(store, "tallies", tallies)
    yield from _differences(store, tallies, recount)


def _rows(store: SQLStore, statement: str) -> list[Any]:
    rows: list[Any] = store._run(store._seen, statement).fetchall()
    return rows


def _sealed(store: SQLStore, table: str, found: Counted) -> Iterator[str]:
    """Whether the rows of a table are those that its seal was made for."""
    where = " AND ".join(f"{name} = {value!r}" for name, value in seal_of(table)._asdict().items())
    rows = _rows(store, f"SELECT n, counts FROM tallies WHERE {where}")
    try:
        n, total = reduce(added, (from_row(*row) for row in rows), NOTHING)
    except CorruptData:
        yield f"{table}: the seal of the table is damaged"
        return
    if n != found[0]:
        yield f"{table}: there are {found[0]:,} rows, {n:,} were kept"
    elif not np.array_equal(total, found[1]):
        yield f"{table}: a row is not as it was kept (the seal of the table differs)"


def _collection(store: SQLStore) -> Iterator[str]:
    rows = _rows(store, "SELECT version, manifest, skeleton, made_by FROM collection")
    if len(rows) != 1:
        yield f"collection: there are {len(rows)} manifests instead of one"
    elif (type(rows[0][2]), type(rows[0][3])) != (bytes, str):
        yield "collection: what it says about its survey is damaged"
    else:  # the others were looked at when the store was opened
        yield from _sealed(store, "collection", seal_rows(rows))


def _texts(store: SQLStore) -> Iterator[str]:
    sound = []
    for row in _rows(store, "SELECT number, digest, document, day FROM texts"):
        number, digest, document, day = row
        if tuple(map(type, row)) != (int, str, bytes, int) or not 0 <= day <= LAST_DAY:
            yield "texts: a row is damaged"
        elif sha256(document).hexdigest() != digest:
            yield f"texts: document {number} has another digest"
        else:
            sound.append(row)
    yield from _sealed(store, "texts", seal_rows(sound))


def _tokens(store: SQLStore) -> Iterator[str]:
    sound = []
    for name, hashed in _rows(store, "SELECT name, hash FROM tokens"):
        if type(name) is not str or not name.strip() or not name.isprintable():
            yield "tokens: a name cannot be printed"
        elif type(hashed) is not bytes or len(hashed) != HASH:
            yield f"tokens: the hash of {name!r} has not {HASH} bytes"
        else:
            sound.append((name, hashed))
    yield from _sealed(store, "tokens", seal_rows(sound))


def _invitations(store: SQLStore) -> Iterator[str]:
    rows = _rows(store, "SELECT hash FROM invitations")
    sound = [row for row in rows if type(row[0]) is bytes and len(row[0]) == HASH]
    if len(sound) < len(rows):
        yield f"invitations: a hash has not {HASH} bytes ({len(rows) - len(sound):,} times)"
    yield from _sealed(store, "invitations", seal_rows(sound))


def _purges(store: SQLStore) -> Iterator[str]:
    rows = _rows(store, "SELECT before, day FROM purges")
    sound = [row for row in rows if all(type(day) is int and 0 <= day <= LAST_DAY for day in row)]
    if len(sound) < len(rows):
        yield f"purges: a day is none ({len(rows) - len(sound):,} times)"
    yield from _sealed(store, "purges", seal_rows(sound))


@dataclass
class _Work:
    """How many rows were read, and of how many."""

    progress: Progress
    total: int
    done: int = 0

    def add(self, rows: int) -> None:
        self.done += rows
        self.progress(self.done, self.total)


def _there(store: SQLStore, table: str) -> dict[Any, Seen]:
    """How many rows the days of a table have; also days that are none."""
    asked = f"SELECT day, count(*), count(body) FROM {table} GROUP BY day"
    return {day: Seen(rows, bodies) for day, rows, bodies in _rows(store, asked)}


def _kept(
    store: SQLStore,
    table: str,
    recount: Pieces,
    checked: Checkpoint,
    there: dict[Any, Seen],
    trusted: dict[int, Day],
    work: _Work,
) -> Iterator[str]:
    """The rows of submissions or batches; adds what they count for to ``recount``."""
    real = {day: seen for day, seen in there.items() if type(day) is int and 0 <= day <= LAST_DAY}
    if len(real) < len(there):
        rows = sum(seen.rows for day, seen in there.items() if day not in real)
        yield f"{table}: a day is none ({rows:,} times)"
        work.add(rows)
    total = Pieces({seal_of(table): NOTHING})
    for found in trusted.values():
        total.merge(found.sums)
    wrong = Counter[str]()
    for days in _passes({day: seen for day, seen in real.items() if day not in trusted}):
        sums, faults = _read(store, table, days, work)
        for day in days:
            wrong.update(faults[day])
            before, seen = checked.days.pop((table, day), None), real[day]
            if before is not None and before.seen == seen and not sums[day].equals(before.sums):
                yield f"{table}: a row of {_date(day)} is not as it was when it was verified"
            elif not faults[day]:
                checked.days[table, day] = Day(seen, checked.run, sums[day])
            total.merge(sums[day])
    for fault, number in sorted(wrong.items()):
        yield f"{table}: {fault} ({number:,} times)"
    yield from _sealed(store, table, total.pop(seal_of(table)))
    recount.merge(total)


def _date(day: int) -> date:
    return EPOCH + timedelta(days=day)


def _passes(days: dict[int, Seen]) -> Iterator[list[int]]:
    """Days in their order, as many as one pass over the table reads."""
    some: list[int] = []
    for day in sorted(days):
        if some and sum(days[one].rows for one in (*some, day)) > PASS:
            yield some
            some = []
        some.append(day)
    if some:
        yield some


def _read(
    store: SQLStore, table: str, days: list[int], work: _Work
) -> tuple[dict[int, Pieces], dict[int, Counter[str]]]:
    """The seals and the tallies of some days, and what is wrong with their rows."""
    sums = {day: Pieces({seal_of(table): NOTHING}) for day in days}
    faults = {day: Counter[str]() for day in days}
    gathered: dict[int, list[Any]] = defaultdict(list)
    number = 0

    def add() -> None:
        for day, rows in gathered.items():
            sound = []
            for row in rows:
                if fault := _fault(*row):
                    faults[day][fault] += 1
                else:
                    sound.append(row)
            sums[day].put(seal_of(table), seal_kept(sound))
            bodies = [body for _, _, body in sound if body is not None]
            faults[day].update(_count(store, table, bodies, sums[day]))
            work.add(len(rows))
        gathered.clear()

    asked = f"day IN ({', '.join('?' * len(days))})"
    for rows in store._kept(store._seen, table, asked, days):
        for row in rows:
            gathered[row[1]].append(row)
        number += len(rows)
        if number >= GATHERED or table == "batches":
            add()
            number = 0
    add()
    return sums, faults


def _fault(name: Any, day: Any, body: Any) -> str:
    if type(name) is not bytes or len(name) != ID:
        return f"an id has not {ID} bytes"
    if body is not None and (type(body) is not bytes or not body):
        return "a report is not made of bytes"
    return ""


def _count(store: SQLStore, table: str, bodies: list[bytes], recount: Pieces) -> Iterable[str]:
    """Count bodies, and say what is wrong with those that cannot be counted."""
    found = Pieces()
    try:
        for place, tally in store.count_kept(table, bodies):
            found.add(place, tally)
    except ValueError as error:  # of which CorruptData and InvalidArgument are
        if len(bodies) > 1:  # which of them?
            half = len(bodies) // 2
            for some in (bodies[:half], bodies[half:]):
                yield from _count(store, table, some, recount)
        else:
            yield str(error)
    else:
        for key, counted in found.items():
            recount.put(key, counted)


def _counted(store: SQLStore, table: str, total: Pieces) -> Iterator[str]:
    """Add the pieces of a table to others; names the rows of it that are none."""
    sizes = {name: piece_sizes(m.cells) for name, m in store.packing.mechanisms.items()}
    for *place, n, counts in _rows(store, f"SELECT {ROW} FROM {table}"):
        key = CountKey(*place)
        if table == "tallies" and key in map(seal_of, SEALED):
            continue
        if not _belongs(store, sizes, key):
            told = ", ".join(f"{name} {value!r}" for name, value in key._asdict().items())
            yield f"{table}: {told}: there is no such piece"
            continue
        size = sizes[key.report][key.piece]
        if type(n) is not int or type(counts) is not bytes or len(counts) != 8 * size:
            yield f"{table}: {store.named(key.place)}: this is no row of {size} counts"
        elif key.piece and n:
            yield f"{table}: {store.named(key.place)}: only the first piece has a number"
        else:
            total.put(key, from_row(n, counts))


def _belongs(store: SQLStore, sizes: dict[str, list[int]], key: CountKey) -> bool:
    """Whether there can be a piece with this key."""
    if key.report not in sizes or {type(value) for value in key[1:]} != {int}:
        return False
    rounds, strata = store.packing.rounds, store.packing.strata
    inside = 1 <= key.round <= rounds and 0 <= key.stratum < strata
    return inside and 0 <= key.piece < len(sizes[key.report])


def _differences(store: SQLStore, kept: Pieces, again: Pieces) -> Iterator[str]:
    """The places where the tallies are not what all reports add up to."""
    pieces: dict[TallyKey, set[CountKey]] = defaultdict(set)
    for key in (*kept, *again):
        pieces[key.place].add(key)
    for place, keys in sorted(pieces.items()):
        n, m = (found.get(CountKey(*place), NOTHING)[0] for found in (kept, again))
        if n != m:
            yield f"{store.named(place)}: the tally has {n:,} reports, a recount {m:,}"
        elif any(_differ(kept.get(key, NOTHING)[1], again.get(key, NOTHING)[1]) for key in keys):
            text = f"the tally of {n:,} reports differs from a recount"
            yield f"{store.named(place)}: {text}"


def _differ(one: Counts, other: Counts) -> bool:
    """Whether two pieces differ; zeros are as good as none."""
    return not np.array_equal(one, other) and bool(one.any() or other.any())
