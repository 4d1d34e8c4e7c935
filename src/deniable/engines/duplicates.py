"""Reports that would count twice: files with the same contents, and ids that come again.

Copies of a file that were written anew, with other row groups or another compression, look
different; only ids show them. A file without rows is no copy of another one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Indices
from deniable.core.mechanism import Mechanism
from deniable.core.reports import Reports
from deniable.engines.base import Engine, Job
from deniable.engines.files import Piece, Place, ReportFile, digest, pieces, reading
from deniable.engines.progress import Progress, silent, watching
from deniable.errors import InvalidArgument, MismatchError

#: Ids of one pass over the files; each takes 24 bytes with the number of its row.
MOST_IDS = 1 << 24
#: Ids are sorted in so many lots, one after the other: a lot is copied for it.
LOTS = 16
#: An odd number that spreads what differs between two ids over 64 bits.
_ODD = 0x9E3779B97F4A7C15
_DROP = "duplicates='drop', or --duplicates drop"

Rows = Indices
NONE: Rows = np.empty(0, dtype=np.int64)
#: Ids as rows of bytes, and the rows that they are in.
Ids = tuple[NDArray[np.uint8], Rows]


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
        alike_before = alike[file.fingerprint] if file.rows else []
        same = next((one for one in alike_before if _same(one.place, file.place)), None)
        if same is None:
            alike[file.fingerprint].append(file)
            kept.append(file)
        elif rule is Duplicates.refuse:
            raise MismatchError(
                f"{file.place} is a copy of {same.place}: its reports would count twice. "
                f"Remove one of them, or count copies once: {_DROP}"
            )
    return kept


def _same(one: Place, other: Place) -> bool:
    """Whether two files with the same fingerprint are the same, byte for byte."""
    return digest(one) == digest(other)


def repeated_ids(
    engine: Engine,
    files: Sequence[ReportFile],
    mechanism: Mechanism,
    rule: Duplicates,
    progress: Progress = silent,
) -> Rows:
    """The rows whose id comes in a row before, in ascending order; or a refusal.

    Memory is bounded: each pass compares those with the same remainder of a hash.
    """
    cut = pieces(files)
    named = {file.place for file in files if file.identified}
    some = [piece for piece in cut if piece.place in named]
    passes = -(-sum(piece.rows for piece in some) // MOST_IDS)
    found = [NONE]
    for number in range(passes):
        watch = watching(progress, "comparing ids", some, number, passes)
        job = IdJob(mechanism, number, passes)
        found += _repeated(engine.run(job, some, watch=watch))
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
        f"Find out why they were written twice, or count each id once: {_DROP}"
    )


@dataclass(frozen=True)
class IdJob(Job[list[Ids]]):
    """The ids of one of several passes."""

    mechanism: Mechanism
    number: int
    passes: int

    def read(self, piece: Piece) -> list[Ids]:
        with reading(piece, self.mechanism, ids=True) as batches:
            return [_chosen(*batch, self.number, self.passes) for batch in batches]

    def merge(self, one: list[Ids], other: list[Ids]) -> list[Ids]:
        one += other
        return one


def _chosen(start: int, reports: Reports, number: int, of: int) -> Ids:
    """The ids of a batch that are compared in one of several passes."""
    ids = reports.ids
    assert ids is not None
    mine = np.flatnonzero(_hashed(ids) // LOTS % of == number)
    return ids[mine], start + mine


def _hashed(ids: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """A number below 2**32 for each id: not all ids are as random as those of our clients."""
    one, other = np.ascontiguousarray(ids).view("<u8").T
    mixed: NDArray[np.uint64] = one * np.uint64(_ODD) ^ other
    mixed ^= mixed >> np.uint64(32)
    return mixed * np.uint64(_ODD) >> np.uint64(32)


def _repeated(found: list[Ids]) -> list[Rows]:
    """All rows of each id but its first."""
    repeated = []
    for lot in range(LOTS):
        mine = [_hashed(ids) % LOTS == lot for ids, _ in found]
        words = np.concatenate([ids[few] for (ids, _), few in zip(found, mine, strict=True)])
        rows = np.concatenate([all_[few] for (_, all_), few in zip(found, mine, strict=True)])
        words = words.view("<u8")
        order = np.lexsort((rows, words[:, 1], words[:, 0]))
        same = np.all(words[order[1:]] == words[order[:-1]], axis=1)
        repeated.append(rows[order[1:][same]])
    return repeated


def without(rows: Rows, start: int, reports: Reports) -> Reports:
    """Reports but for some rows, which are numbered in ascending order; the first is ``start``."""
    low, high = np.searchsorted(rows, [start, start + len(reports)])
    if low == high:
        return reports
    gone = rows[low:high] - start
    ids = None if reports.ids is None else np.delete(reports.ids, gone, axis=0)
    return Reports(reports.mechanism, np.delete(reports.data, gone, axis=0), ids)
