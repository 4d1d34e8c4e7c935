"""What is wrong with a store: `deniable verify-store`.

First the database checks itself. Then every row is looked at: its shape, the seal of its table, and
whether the tallies are what all reports add up to.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import reduce
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import CorruptData
from deniable.service.encoding import Place
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
#: Days since 1970 that a date can have.
LAST_DAY = 2_932_896


def find_damage(store: SQLStore) -> Iterator[str]:
    """Everything that is wrong with a store that is held still, a sentence each."""
    found = list(store._structure(store._seen))
    yield from found
    if found:  # what the rows of broken tables say would be guesses
        return
    recount = Pieces()
    yield from _collection(store)
    yield from _texts(store)
    yield from _tokens(store)
    yield from _invitations(store)
    yield from _purges(store)
    yield from _kept(store, "submissions", recount)
    yield from _kept(store, "batches", recount)
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


def _kept(store: SQLStore, table: str, recount: Pieces) -> Iterator[str]:
    """The rows of submissions or batches; adds what they count for to ``recount``."""
    total = Pieces({seal_of(table): NOTHING})
    wrong = Counter[str]()
    for rows in store._kept(store._seen, table):
        sound = []
        for row in rows:
            if fault := _fault(*row):
                wrong[fault] += 1
            else:
                sound.append(row)
        total.put(seal_of(table), seal_kept(sound))
        bodies = [body for _, _, body in sound if body is not None]
        wrong.update(_count(store, table, bodies, recount))
    for fault, number in sorted(wrong.items()):
        yield f"{table}: {fault} ({number:,} times)"
    yield from _sealed(store, table, total[seal_of(table)])


def _fault(name: Any, day: Any, body: Any) -> str:
    if type(name) is not bytes or len(name) != ID:
        return f"an id has not {ID} bytes"
    if type(day) is not int or not 0 <= day <= LAST_DAY:
        return "a day is none"
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
    pieces: dict[Place, set[CountKey]] = defaultdict(set)
    for key in (*kept, *again):
        pieces[key.place].add(key)
    for place, keys in sorted(pieces.items()):
        n, m = (found.get(CountKey(*place), NOTHING)[0] for found in (kept, again))
        if n != m:
            yield f"{store.named(place)}: the tally has {n:,} reports, a recount {m:,}"
        elif any(_differ(kept.get(key, NOTHING)[1], again.get(key, NOTHING)[1]) for key in keys):
            text = f"the tally of {n:,} reports differs from a recount"
            yield f"{store.named(place)}: {text}"


def _differ(one: NDArray[np.int64], other: NDArray[np.int64]) -> bool:
    """Whether two pieces differ; zeros are as good as none."""
    return not np.array_equal(one, other) and bool(one.any() or other.any())
