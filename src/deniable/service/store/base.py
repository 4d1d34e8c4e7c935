"""What every store promises.

What `add` returned is on the disk, and was counted exactly once: submissions and tallies change in
the same transaction. No time of day is kept, only the day; but the files of a store in use
show in which order the latest submissions came.
"""

from __future__ import annotations

import hashlib
import hmac
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, date, datetime
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.collection.batches import read_batch
from deniable.collection.manifest import Collection
from deniable.errors import CorruptData, InvalidArgument, MismatchError
from deniable.service.packing import Counts, Packing
from deniable.tally import Tally

#: The version of the tables; 1 had no seals.
SCHEMA = 2
#: Submissions that are recounted or exported at once.
CHUNK = 50_000
EPOCH = date(1970, 1, 1)


class Outcome(Enum):
    """What became of a submission."""

    counted = "counted"
    known = "counted before"
    conflict = "another submission has this id"


class Store(ABC):
    """Submissions and tallies of one collection."""

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self.packing = Packing(collection)

    # ---- what a kind of store says

    @property
    @abstractmethod
    def place(self) -> str:
        """Where it is, without a password."""

    @abstractmethod
    def add(self, entries: Sequence[tuple[bytes, bytes]]) -> list[Outcome]:
        """Keep and count pairs of (id, packed submission), all in one transaction."""

    @abstractmethod
    def add_batch(self, name: bytes, body: bytes, counts: Counts) -> Outcome:
        """Keep and count one batch whose counts are known."""

    @abstractmethod
    def add_batches(self, batches: Iterable[tuple[bytes, bytes, Counts]]) -> list[Outcome]:
        """Keep and count triples of (id, body, counts), all of them or none, however many."""

    @abstractmethod
    def still(self) -> AbstractContextManager[Store]:
        """The store as it is now, for reading, whatever others write in the meantime."""

    @abstractmethod
    def has_batch(self, name: bytes) -> bool:
        """Whether there is a batch with this id."""

    @abstractmethod
    def counts(self) -> Counts:
        """The counts as they are kept."""

    @abstractmethod
    def purged(self) -> Counts:
        """The counts of the submissions whose reports were purged."""

    @abstractmethod
    def verify(self) -> list[str]:
        """What is wrong with the store, a sentence each: nothing, if all is well."""

    @abstractmethod
    def singles(self) -> Iterator[list[bytes]]:
        """Packed submissions that are still there, some at a time."""

    @abstractmethod
    def batches(self) -> Iterator[bytes]:
        """The bodies of batches that are still there."""

    @abstractmethod
    def purge(self, before: date) -> int:
        """Forget the reports of submissions that came before a day; returns how many.

        What they were counted for stays, and so do their ids: a retry is not counted again.
        """

    @abstractmethod
    def backup(self, target: str) -> None:
        """Write a complete copy while the store is in use."""

    @abstractmethod
    def add_token(self, name: str, hashed: bytes) -> None:
        """Keep the hash of a token; the name must be new."""

    @abstractmethod
    def tokens(self) -> dict[str, bytes]:
        """The hashes of the tokens by name."""

    @abstractmethod
    def remove_token(self, name: str) -> bool:
        """Forget a token; says whether it was there."""

    @abstractmethod
    def close(self) -> None:
        """Let go of files and connections."""

    # ---- what follows

    def tallies(self) -> dict[tuple[str, int], Tally]:
        """A tally for each question and round that has reports."""
        found = {}
        for (name, round_), (counts, n) in sorted(self.counts().items()):
            mechanism = self.collection.question(name).mechanism
            found[name, round_] = Tally.of_counts(mechanism, counts, n)
        return found

    def columns(self) -> Iterator[tuple[str, int, NDArray[Any]]]:
        """All reports that are still there."""
        for bodies in self.singles():
            yield from self.packing.columns(bodies)
        for body in self.batches():
            yield from self._batch_columns(body)

    def _batch_columns(self, body: bytes) -> Iterator[tuple[str, int, NDArray[Any]]]:
        about, columns = read_batch(self.collection, body)
        for name, column in columns.items():
            yield name, int(about["deniable.round"]), column

    def count_batch(self, body: bytes) -> Counts:
        """The counts of a batch that was kept."""
        return self.packing.count_columns(self._batch_columns(body))


def today() -> int:
    """Days since 1970: all that is kept of the time of arrival."""
    return (datetime.now(UTC).date() - EPOCH).days


def outcomes(
    entries: Sequence[tuple[bytes, bytes]], known: dict[bytes, bytes | None]
) -> tuple[list[Outcome], dict[bytes, bytes]]:
    """What becomes of entries where ``known`` ids have these bodies (None: purged); and the new.

    An id that comes twice in one group is a retry like any other.
    """
    fresh: dict[bytes, bytes] = {}
    found = []
    for name, body in entries:
        if name in known or name in fresh:
            before = fresh[name] if name in fresh else known[name]
            same = before is None or before == body
            found.append(Outcome.known if same else Outcome.conflict)
        else:
            fresh[name] = body
            found.append(Outcome.counted)
    return found, fresh


def check_store(found: Iterable[Any] | None, collection: Collection | None) -> Collection:
    """The collection that a store was made for, if it is the one that is expected."""
    if found is None:
        raise CorruptData("this is not a store of submissions, or its first line is missing")
    schema, manifest = found
    if type(schema) is not int or type(manifest) is not bytes:
        raise CorruptData("the store is damaged: what it says about its collection is no manifest")
    if schema != SCHEMA:
        raise MismatchError(f"the store has version {schema} of the tables; only {SCHEMA} is known")
    kept = Collection.from_manifest(manifest)
    if collection is not None and kept.digest != collection.digest:
        raise MismatchError(
            f"the store holds collection {kept.digest[:12]} ({kept.title!r}), "
            f"not {collection.digest[:12]}: a survey that changed needs a store of its own "
            "(--store another.db)"
        )
    return kept


def from_bytes(counts: bytes) -> NDArray[np.int64]:
    if type(counts) is not bytes or len(counts) % 8:
        raise CorruptData("the store is damaged: a tally is no row of counts")
    return np.frombuffer(counts, dtype="<i8").astype(np.int64)


def to_bytes(counts: NDArray[np.int64]) -> bytes:
    return counts.astype("<i8").tobytes()


def hash_token(token: str) -> bytes:
    """What is kept of a token: 256 random bits need no salt."""
    return hashlib.sha256(token.encode()).digest()


def token_fits(token: str, kept: Iterable[bytes]) -> bool:
    """Whether a token is one of those kept; takes as long whichever it is."""
    offered = hash_token(token)
    return sum([hmac.compare_digest(offered, one) for one in kept]) > 0 and token != ""


def require_date(before: Any) -> date:
    """A day, also if it is written as 2026-01-31."""
    try:
        return before if type(before) is date else date.fromisoformat(before)
    except (TypeError, ValueError):
        raise InvalidArgument("before", before, "a day, such as 2026-01-31") from None
