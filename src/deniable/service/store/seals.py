"""Seals: what is compared with the rows of a table, as tallies are with their reports.

The seal of a table is the number of its rows and the sum of their SHA-256 modulo 2**256: the order
of rows does not matter, and whatever changes rows changes it in the same transaction. It shows
damage. It stops no forger: whoever can write to a store can write a seal, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from deniable.errors import CorruptData

_MODULUS = 1 << 256


class Seal(NamedTuple):
    """A number of rows and the sum of their hashes."""

    n: int = 0
    sum: int = 0

    def plus(self, more: Seal) -> Seal:
        return Seal(self.n + more.n, (self.sum + more.sum) % _MODULUS)

    def minus(self, less: Seal) -> Seal:
        return Seal(self.n - less.n, (self.sum - less.sum) % _MODULUS)

    @property
    def bytes(self) -> bytes:
        return self.sum.to_bytes(32, "big")


def seal_kept(rows: Iterable[tuple[bytes, int, bytes | None]]) -> Seal:
    """The seal of submissions or batches: (id, day, body), where a purged body is None.

    All ids have the same length and no body is empty, so that no two rows look alike.
    """
    sha256, n, total = hashlib.sha256, 0, 0
    try:
        for name, day, body in rows:
            row = name + day.to_bytes(8, "big", signed=True) + (body or b"")
            total += int.from_bytes(sha256(row).digest(), "big")
            n += 1
    except (AttributeError, OverflowError, TypeError) as error:
        raise CorruptData("the store is damaged: an id, a day or a report is none") from error
    return Seal(n, total % _MODULUS)


def seal_tokens(rows: Iterable[tuple[str, bytes]]) -> Seal:
    """The seal of tokens: (name, hash), all hashes of the same length."""
    hashes = [hashlib.sha256(kept + name.encode()).digest() for name, kept in rows]
    return Seal(len(hashes), sum(int.from_bytes(one, "big") for one in hashes) % _MODULUS)


def seal_manifest(version: int, manifest: bytes) -> Seal:
    """The seal of the one row about the collection."""
    row = version.to_bytes(8, "big", signed=True) + manifest
    return Seal(1, int.from_bytes(hashlib.sha256(row).digest(), "big"))
