"""Seals: what is compared with the rows of a table, as tallies are with their reports.

The seal of a table is the number of its rows and the sum of their SHA-256, taken as four numbers
modulo 2**64: the order of rows does not matter. It is kept as the tally of a round 0, which no
question has, and whatever changes rows changes it in the same transaction. It shows damage. It
stops no forger: whoever can write to a store can write a seal, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from deniable.errors import CorruptData

#: The tables that have a seal, and the round of its tally.
SEALED, ROUND = ("collection", "submissions", "batches", "tokens"), 0
#: The sum and the number, as those of a tally.
Seal = tuple[NDArray[np.int64], int]


def seal_kept(rows: Iterable[tuple[bytes, int, bytes | None]]) -> Seal:
    """The seal of submissions or batches: (id, day, body), where a purged body is None.

    All ids have the same length and no body is empty, so that no two rows look alike.
    """
    try:
        return seal(
            [name + day.to_bytes(8, "big", signed=True) + (body or b"") for name, day, body in rows]
        )
    except (AttributeError, OverflowError, TypeError) as error:
        raise CorruptData("the store is damaged: an id, a day or a report is none") from error


def seal_tokens(rows: Iterable[tuple[str, bytes]]) -> Seal:
    """The seal of tokens: (name, hash), all hashes of the same length."""
    return seal(kept + name.encode() for name, kept in rows)


def seal_manifest(version: int, manifest: bytes) -> Seal:
    """The seal of the one row about the collection."""
    return seal([version.to_bytes(8, "big", signed=True) + manifest])


def seal(rows: Iterable[bytes]) -> Seal:
    """The sum of hashes, which wraps around, and how many there are."""
    sha256 = hashlib.sha256
    hashes = [sha256(row).digest() for row in rows]
    lanes = np.frombuffer(b"".join(hashes), dtype="<i8").reshape(-1, 4)
    return lanes.sum(axis=0, dtype=np.int64), len(hashes)
