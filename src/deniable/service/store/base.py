"""What every store promises.

What `add` returned is on the disk, and was counted exactly once: submissions and tallies change in
the same transaction. No time of day is kept, only the day; but the files of a store in use
show in which order the latest submissions came.
"""

from __future__ import annotations

import hashlib
import hmac
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, date, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import NDArray

from deniable.collection.batches import read_batch
from deniable.collection.manifest import Collection
from deniable.collection.wording import Texts
from deniable.core.tally import Tally
from deniable.errors import InvalidArgument
from deniable.service.encoding import Columns, Packing, TallyKey

if TYPE_CHECKING:
    from deniable.service.store.checkpoints import Checkpoint

#: Submissions that are recounted or exported at once.
CHUNK = 50_000
EPOCH = date(1970, 1, 1)
#: Told how much of some work is done, and of how much.
Progress = Callable[[int, int], None]


def quiet(done: int, total: int) -> None:
    """Tell nobody."""


class Outcome(Enum):
    """What became of a submission."""

    counted = "counted"
    known = "counted before"
    conflict = "another submission has this id"


class Kept(NamedTuple):
    """How many submissions and batches there are with their reports, and their bytes."""

    submissions: int = 0
    batches: int = 0
    size: int = 0

    @property
    def number(self) -> int:
        return self.submissions + self.batches


class Store(ABC):
    """Submissions and tallies of one collection."""

    def __init__(self, collection: Collection, texts: Texts) -> None:
        self.collection = collection
        #: What people read, as it was last published.
        self.texts = texts
        self.packing = Packing(collection)

    # ---- what a kind of store says

    @property
    @abstractmethod
    def place(self) -> str:
        """Where it is, without a password."""

    @abstractmethod
    def add(self, entries: Sequence[tuple[bytes, bytes]]) -> list[Outcome]:
        """Keep and count pairs of (id, packed submission), all in one transaction.

        Run by the collector.
        """

    @abstractmethod
    def add_batch(self, name: bytes, body: bytes, tallies: Mapping[TallyKey, Tally]) -> Outcome:
        """Keep and count one batch whose tallies are known. Run by the collector."""

    @abstractmethod
    def add_batches(
        self, batches: Iterable[tuple[bytes, bytes, Mapping[TallyKey, Tally]]]
    ) -> list[Outcome]:
        """Keep and count triples of (id, body, tallies), all of them or none, however many.

        Run by the operator of the collector.
        """

    @abstractmethod
    def still(self) -> AbstractContextManager[Store]:
        """The store as it is now, for reading, whatever others write in the meantime."""

    @abstractmethod
    def has_batch(self, name: bytes) -> bool:
        """Whether there is a batch with this id."""

    @abstractmethod
    def numbers(self) -> dict[TallyKey, int]:
        """How many reports there are of each kind, without a look at what they count for.

        Run by the collector and the analyst.
        """

    @abstractmethod
    def purged(self) -> dict[TallyKey, int]:
        """The same for the submissions whose reports were purged."""

    @abstractmethod
    def tallies(self) -> dict[TallyKey, Tally]:
        """A tally for each report, round and stratum that has any. Run by the analyst."""

    @abstractmethod
    def tally(self, report: str, round_: int) -> Tally:
        """The tally of a report in a round, all strata together. Run by the analyst."""

    @abstractmethod
    def verify(self, known: Checkpoint | None = None, *, progress: Progress = quiet) -> list[str]:
        """What is wrong with the store, a sentence each: nothing, if all is well.

        With what is ``known`` from runs before, only the rest is read, and added to it; also if
        the work is interrupted. Run by the operator of the collector.
        """

    @abstractmethod
    def singles(self) -> Iterator[list[bytes]]:
        """Packed submissions that are still there, some at a time."""

    @abstractmethod
    def batches(self) -> Iterator[bytes]:
        """The bodies of batches that are still there."""

    @abstractmethod
    def days(self) -> dict[date, Kept]:
        """What is still there of each day that has any. Run by the operator of the collector."""

    @abstractmethod
    def columns_on(self, days: Sequence[date]) -> Iterator[tuple[date, TallyKey, NDArray[Any]]]:
        """The reports of some days, in the order of the ids. Run by the operator."""

    @abstractmethod
    def purge(self, before: date, *, rewrite: bool = False, progress: Progress = quiet) -> int:
        """Forget the reports of submissions that came before a day; returns how many.

        What they were counted for stays, and so do their ids: a retry is not counted again. It
        takes many short transactions, may end after any of them, and goes on when it is called
        again. With ``rewrite``, the file is written anew, for which respondents wait. Run by the
        collector, or by its operator.
        """

    @abstractmethod
    def purged_before(self) -> date | None:
        """The first day that all purges kept: reports before it are only counted.

        None if there was no purge. Run by the collector and the analyst.
        """

    @abstractmethod
    def another(self) -> Store:
        """The same store with connections of its own, for another thread. Run by the collector."""

    @abstractmethod
    def backup(self, target: str, *, progress: Progress = quiet) -> None:
        """Write a complete copy while the store is in use. Run by the operator of the collector."""

    @abstractmethod
    def add_token(self, name: str, hashed: bytes) -> None:
        """Keep the hash of a token; the name must be new. Run by the operator of the collector."""

    @abstractmethod
    def tokens(self) -> dict[str, bytes]:
        """The hashes of the tokens by name. Run by the collector."""

    @abstractmethod
    def remove_token(self, name: str) -> bool:
        """Forget a token; says whether it was there. Run by the operator of the collector."""

    @abstractmethod
    def close(self) -> None:
        """Let go of files and connections. Run by the collector."""

    # ---- what follows

    def named(self, place: TallyKey) -> str:
        """A place in words."""
        stratum = f", stratum {place.stratum}" if self.packing.strata > 1 else ""
        return f"{place.report}, round {place.round}{stratum}"

    def _batch_columns(self, body: bytes) -> Columns:
        return self.packing.placed(*read_batch(self.collection, body))

    def count_batch(self, body: bytes) -> dict[TallyKey, Tally]:
        """The tallies of a batch that was kept."""
        return dict(self.packing.count_columns(self._batch_columns(body)))


def today() -> int:
    """Days since 1970: all that is kept of the time of arrival."""
    return (datetime.now(UTC).date() - EPOCH).days


def outcomes(
    entries: Sequence[tuple[bytes, bytes]], known: Mapping[bytes, bytes | None]
) -> list[Outcome]:
    """What becomes of entries where ``known`` ids had these bodies before (None: purged).

    An id that comes twice in one group is a retry like any other.
    """
    kept, found = dict(known), []
    for name, body in entries:
        if name in kept:
            same = kept[name] is None or kept[name] == body
            found.append(Outcome.known if same else Outcome.conflict)
        else:
            kept[name] = body
            found.append(Outcome.counted)
    return found


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
