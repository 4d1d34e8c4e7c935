"""Seals: what is compared with the rows of a table, as tallies are with their reports.

The seal of a table is the number of its rows and the sum of their SHA-256, taken as four numbers
modulo 2**64: the order of rows does not matter. It is kept as the tally of a round 0, which no
report has, and whatever changes rows changes it in the same transaction. It shows damage. It
stops no forger: whoever can write to a store can write a seal, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from deniable.errors import CorruptData
from deniable.service.store.pieces import Counted, CountKey

#: The tables that have a seal, and the round of its tally.
SEALED = ("collection", "texts", "submissions", "batches", "tokens", "invitations", "purges")
ROUND = 0


def seal_of(table: str) -> CountKey:
    """Where the seal of a table is kept."""
    return CountKey(table, ROUND)


def seal_kept(rows: Iterable[tuple[bytes, int, bytes | None]]) -> Counted:
    """The seal of submissions or batches: (id, day, body), where a purged body is None.

    All ids have the same length and no body is empty, so that no two rows look alike.
    """
    try:
        return seal(
            [name + day.to_bytes(8, "big", signed=True) + (body or b"") for name, day, body in rows]
        )
    except (AttributeError, OverflowError, TypeError) as error:
        raise CorruptData("the store is damaged: an id, a day or a report is none") from error


def seal_rows(rows: Iterable[Iterable[bytes | int | str]]) -> Counted:
    """The seal of any other table: each value with its length before it."""
    return seal(b"".join(map(_value, row)) for row in rows)


def _value(value: bytes | int | str) -> bytes:
    if not isinstance(value, bytes):
        value = str(value).encode()
    return len(value).to_bytes(8, "big") + value


def seal(rows: Iterable[bytes]) -> Counted:
    """How many rows there are, and the sum of their hashes, which wraps around."""
    sha256 = hashlib.sha256
    hashes = [sha256(row).digest() for row in rows]
    lanes = np.frombuffer(b"".join(hashes), dtype="<i8").reshape(-1, 4)
    return len(hashes), lanes.sum(axis=0, dtype=np.int64)


def minus(one: Counted) -> Counted:
    """What takes a seal away."""
    return -one[0], -one[1]


#: The seal of an empty table.
NOTHING = seal([])
