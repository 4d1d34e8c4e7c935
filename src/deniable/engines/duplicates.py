"""Reports that would count twice: files with the same contents, and ids that come again.

Copies of a file that were written anew, with other row groups or another compression, look
different; only ids show them.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from deniable.core.mechanism import Mechanism
from deniable.core.reports import ID_BYTES
from deniable.engines.base import Engine, Job, Watch
from deniable.engines.files import Piece, Place, ReportFile, opened, pieces, read
from deniable.errors import InvalidArgument, MismatchError

#: Ids that are compared at once; each takes 16 bytes, and as much again while they are sorted.
MOST_IDS = 1 << 24
_BUFFER = 1 << 20

Rows = NDArray[np.int64]
NONE: Rows = np.empty(0, dtype=np.int64)


class Duplicates(Enum):
    """What becomes of reports that are there twice."""

    refuse = "refuse"
    #: All but the first, in the order of the files and of their rows.
    drop = "drop"


def require_rule(rule: str | Duplicates) -> Duplicates:
    try:
        return Duplicates(rule)
    except ValueError:
        names = " or ".join(one.value for one in Duplicates)
        raise InvalidArgument("duplicates", rule, names) from None


def without_copies(files: Sequence[ReportFile], rule: Duplicates) -> list[ReportFile]:
    """The files without those that are a copy of one before; or a refusal that names both."""
    kept: list[ReportFile] = []
    alike: dict[str, list[ReportFile]] = defaultdict(list)
    for file in files:
        same = next((one for one in alike[file.fingerprint] if _same(one.place, file.place)), None)
        if same is None:
            alike[file.fingerprint].append(file)
            kept.append(file)
        elif rule is Duplicates.refuse:
            raise MismatchError(
                f"{file.place} is a copy of {same.place}: its reports would count twice. "
                "Remove one of them, or count copies once with duplicates='drop'"
            )
    return kept


def _same(one: Place, other: Place) -> bool:
    """Whether two files with the same fingerprint are the same, byte for byte."""
    return _digest(one) == _digest(other)


def _digest(place: Place) -> bytes:
    digest = hashlib.sha256()
    with opened(place) as file:
        while some := file.read(_BUFFER):
            digest.update(some)
    return digest.digest()


def repeated_ids(
    engine: Engine,
    files: Sequence[ReportFile],
    mechanism: Mechanism,
    rule: Duplicates,
    watch: Watch = lambda done: None,
) -> Rows:
    """The rows whose id comes in a row before, in ascending order; or a refusal.

    Memory is bounded: ids are random, and those that begin with the same bits are compared in a
    pass of their own.
    """
    cut = pieces(files)
    named = {file.place for file in files if file.identified}
    some = [piece for piece in cut if piece.place in named]
    total = sum(piece.rows for piece in some)
    passes = -(-total // MOST_IDS)
    found = [NONE]
    for number in range(passes):
        ids, rows = engine.run(IdJob(mechanism, number, passes), some, watch=watch)
        found.append(_repeated(ids, rows))
    dropped = np.sort(np.concatenate(found))
    if dropped.size and rule is Duplicates.refuse:
        raise MismatchError(_told(cut, dropped))
    return dropped


def _told(cut: Sequence[Piece], rows: Rows) -> str:
    first = int(rows[0])
    piece = next(one for one in cut if one.start <= first < one.start + one.rows)
    number = first - next(one.start for one in cut if one.place == piece.place)
    ids = "1 report has an id" if rows.size == 1 else f"{rows.size:,} reports have ids"
    return (
        f"{ids} that came before: the first is row {number:,} of {piece.place}. "
        "Find out why they were written twice, or count each id once with duplicates='drop'"
    )


@dataclass(frozen=True)
class IdJob(Job[tuple[NDArray[np.uint8], Rows]]):
    """The ids of one of several passes, and the rows that they are in."""

    mechanism: Mechanism
    number: int
    passes: int

    def read(self, piece: Piece) -> tuple[NDArray[np.uint8], Rows]:
        ids: list[NDArray[np.uint8]] = [np.empty((0, ID_BYTES), dtype=np.uint8)]
        rows = [NONE]
        for start, reports in read(piece, self.mechanism, ids=True):
            assert reports.ids is not None
            firsts = np.ascontiguousarray(reports.ids[:, :4]).view("<u4")[:, 0]
            mine = np.flatnonzero(firsts % np.uint32(self.passes) == self.number)
            ids.append(reports.ids[mine])
            rows.append(start + mine)
        return np.concatenate(ids), np.concatenate(rows)

    def merge(
        self, one: tuple[NDArray[np.uint8], Rows], other: tuple[NDArray[np.uint8], Rows]
    ) -> tuple[NDArray[np.uint8], Rows]:
        return np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]])


def _repeated(ids: NDArray[np.uint8], rows: Rows) -> Rows:
    """All rows of each id but its first."""
    words = np.ascontiguousarray(ids).view("<u8")
    order = np.lexsort((rows, words[:, 1], words[:, 0]))
    same = np.all(words[order[1:]] == words[order[:-1]], axis=1)
    return rows[order[1:][same]]
