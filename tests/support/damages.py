"""Damages of a store, one at a time: every table and column, rows gone, doubled and exchanged."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from collection_toys import batch, packed, submission, survey, surveyed
from deniable.errors import CorruptData, InvalidArgument, MismatchError, StoreUnavailable
from deniable.service.access import new_token
from deniable.service.store import open_store
from deniable.service.store.seals import seal_of, seal_rows

#: The key of a piece of a tally.
KEY = ("report", "round", "stratum", "piece")
#: The keys of the tables, and their other columns. The slot of a piece may be any: its rows add up.
COLUMNS = {
    "collection": (["rowid"], ["version", "manifest", "skeleton", "made_by"]),
    "texts": (["number"], ["number", "digest", "document", "day"]),
    "submissions": (["id"], ["id", "day", "body"]),
    "batches": (["id"], ["id", "day", "body"]),
    "tallies": (list(KEY), [*KEY, "n", "counts"]),
    "purged": (list(KEY), [*KEY, "n", "counts"]),
    "tokens": (["name"], ["name", "hash"]),
    "invitations": (["hash"], ["hash"]),
    "purges": (["before"], ["before", "day"]),
}
Damage = tuple[str, Callable[[sqlite3.Connection], None]]


def whole(path: str) -> None:
    """A store with all that a store can have; its tallies are in several pieces."""
    import numpy as np

    toys = survey(rounds=2)
    rng = np.random.default_rng(3)
    for title in ("One", "Two"):
        open_store(path, surveyed(rounds=2, title=title)).close()
    store = open_store(path)
    for last in (False, True):
        rounds = [1] * 12 + [2] * 6
        store.add([packed(toys, submission(toys, rng, number)) for number in rounds])
        for seed in (1, 2):
            made = batch(toys, 20, seed + 10 * last)
            store.add_batch(bytes.fromhex(made.id), made.body, store.count_batch(made.body))
        if not last:
            store.purge("2999-01-01")
    for name in ("ann", "bob"):
        new_token(store, name)
    invite(store, [rng.bytes(32) for _ in range(3)])
    assert store.verify() == []
    store.close()


def invite(store: Any, hashes: list[bytes]) -> None:
    """Invitations as the table will have them."""
    with store._transaction() as connection:
        for one in hashes:
            store._run(connection, "INSERT INTO invitations VALUES (?)", [one])
        seal = {seal_of("invitations"): seal_rows([(one,) for one in hashes])}
        store._count(connection, "tallies", seal)


def altered(value: Any, rng: random.Random) -> Iterator[Any]:
    """Other values in the place of one."""
    yield None
    if isinstance(value, bytes):
        place, bit = rng.randrange(len(value)), 1 << rng.randrange(8)
        yield value[:place] + bytes([value[place] ^ bit]) + value[place + 1 :]
        yield rng.randbytes(len(value))
        yield from (b"", value[:-1], value + b"\0", value.hex(), 7)
    elif isinstance(value, int):
        yield from (value + 1, value - 1, -value - 1, 1 << 40, rng.random(), str(value) + "x", b"x")
    elif isinstance(value, str):
        yield from (value + "x", value[:-1], "", "\n", value.encode(), 5)
    else:  # a body that was purged
        yield from (b"", b"\1\0\0\0", rng.randbytes(8), "x", 0)


def damages(path: str, rng: random.Random, rows: int) -> Iterator[Damage]:
    """Damages of some random rows of every table."""
    connection = sqlite3.connect(path)
    for table, (keys, columns) in COLUMNS.items():
        listed = ", ".join([*keys, *columns])
        found = connection.execute(f"SELECT {listed} FROM {table}").fetchall()
        for row in rng.sample(found, min(rows, len(found))):
            key, values = row[: len(keys)], row[len(keys) :]
            where = " AND ".join(f"{name} IS ?" for name in keys)
            yield f"{table}: a row is gone", _do(f"DELETE FROM {table} WHERE {where}", key)
            yield f"{table}: a row is doubled", _double(table, columns, values, rng)
            for column, value in zip(columns, values, strict=True):
                for other in altered(value, rng):
                    if other == value and type(other) is type(value):
                        continue
                    text = f"UPDATE {table} SET {column} = ? WHERE {where}"
                    yield f"{table}.{column}: {value!r:.20} is {other!r:.20}", _do(text, other, key)
        for column in columns:
            if len({row[len(keys) + columns.index(column)] for row in found}) > 1:
                yield f"{table}.{column}: two are exchanged", _exchange(table, keys, column, rng)
        yield f"{table} is empty", _do(f"DELETE FROM {table}")
        yield f"{table} is gone", _do(f"DROP TABLE {table}")
    connection.close()


def _do(statement: str, *values: Any) -> Callable[[sqlite3.Connection], None]:
    flat = [v for value in values for v in (value if isinstance(value, tuple) else (value,))]
    return lambda connection: connection.execute(statement, flat) and None


def _double(table: str, columns: list[str], values: Any, rng: random.Random) -> Any:
    """The same row under another key."""
    first = values[0]
    key = rng.randbytes(16) if isinstance(first, bytes) else first
    key = key + "x" if isinstance(key, str) else key
    slot = {"slot": 0} if table in ("tallies", "purged") else {}
    named = dict(zip(columns, (key, *values[1:]), strict=True)) | slot
    marks = ", ".join("?" * len(named))
    return _do(f"INSERT INTO {table} ({', '.join(named)}) VALUES ({marks})", (*named.values(),))


def _exchange(table: str, keys: list[str], column: str, rng: random.Random) -> Any:
    """Two rows that differ in a column, with each other's value."""

    def run(connection: sqlite3.Connection) -> None:
        listed = ", ".join([*keys, column])
        rows = connection.execute(f"SELECT {listed} FROM {table}").fetchall()
        one = rng.choice(rows)
        other = rng.choice([row for row in rows if row[-1] != one[-1]])
        where = " AND ".join(f"{name} IS ?" for name in keys)
        if column in keys:  # by a value that is free
            statement = f"UPDATE {table} SET {column} = ? WHERE {where}"
            free = b"f" * 16 if isinstance(one[-1], bytes) else "free"
            for value, key in ((free, one[:-1]), (one[-1], other[:-1])):
                connection.execute(statement, (value, *key))
            moved = [free if name == column else v for name, v in zip(keys, one[:-1], strict=True)]
            connection.execute(statement, (other[-1], *moved))
            return
        for row, value in ((one, other[-1]), (other, one[-1])):
            statement = f"UPDATE {table} SET {column} = ? WHERE {where}"
            connection.execute(statement, (value, *row[:-1]))

    return run


def tried(source: Path, damage: Callable[[sqlite3.Connection], None]) -> str | None:
    """What is told of a damaged copy in one line; None if the database itself refuses the damage.

    "" is a damage that went unnoticed.
    """
    copy = source.with_name("damaged.db")
    shutil.copy(source, copy)
    connection = sqlite3.connect(copy)
    before = list(connection.iterdump())
    try:
        damage(connection)
        connection.commit()
        after = list(connection.iterdump())
    except sqlite3.IntegrityError:
        return None
    finally:
        connection.close()
    return None if before == after else told(copy)


def told(copy: Path) -> str:
    """What `deniable verify-store` says: errors that it prints in a line, or what it found."""
    try:
        store = open_store(str(copy))
        found = store.verify()
        store.close()
    except (CorruptData, InvalidArgument, MismatchError, StoreUnavailable) as error:
        found = [str(error)]
    assert all(text and "\n" not in text for text in found), found
    return "; ".join(found)
