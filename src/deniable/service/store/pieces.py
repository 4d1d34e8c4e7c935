"""Tallies as a store keeps them: cut into pieces, of which a commit rewrites those that it touches.

A tally of many cells is large, and a group of submissions touches few of them. The number of
reports stands at piece 0, which is always there, and is read without any counts. A piece that is
not there has zeros only.

Writers that commit at the same time each have a slot, with rows of their own: no writer waits for
the rows of another. A piece is the sum of its rows, whatever their slots.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from deniable.arrays import Counts
from deniable.core.tally import Tally
from deniable.errors import CorruptData
from deniable.service.encoding import TallyKey

#: Cells in one piece.
PIECE = 8192
#: A number of reports or rows, and counts.
Counted = tuple[int, Counts]


class CountKey(NamedTuple):
    """Where a piece is kept."""

    report: str
    round: int
    stratum: int = 0
    piece: int = 0

    @property
    def place(self) -> TallyKey:
        return TallyKey(*self[:3])


#: The columns of a key, and all of a row.
KEY = ", ".join(CountKey._fields)
ROW = f"{KEY}, n, counts"


class Pieces(dict[CountKey, Counted]):
    """Sums of tallies, and of seals, piece by piece."""

    def add(self, place: TallyKey, tally: Tally) -> None:
        """Add what a tally counts; pieces that it does not touch are left out."""
        for piece, start in enumerate(range(0, tally.counts.size, PIECE)):
            counts = tally.counts[start : start + PIECE]
            if not piece:
                self.put(CountKey(*place), (tally.n, counts))
            elif counts.any():
                self.put(CountKey(*place, piece), (0, counts))

    def merge(self, more: Pieces) -> None:
        """Add all pieces of others."""
        for key, counted in more.items():
            self.put(key, counted)

    def equals(self, other: Pieces) -> bool:
        """Whether both have the same sums."""
        return self.keys() == other.keys() and all(
            n == other[key][0] and np.array_equal(counts, other[key][1])
            for key, (n, counts) in self.items()
        )

    def put(self, key: CountKey, more: Counted) -> None:
        """Add to one piece."""
        self[key] = added(self[key], more) if key in self else more


def added(before: Counted, more: Counted) -> Counted:
    """The sum of two pieces of the same length."""
    if before[1].size != more[1].size:
        raise CorruptData("the store is damaged: a tally has another length")
    return before[0] + more[0], before[1] + more[1]


def piece_sizes(cells: int) -> list[int]:
    """The lengths of the pieces of a tally."""
    return [min(PIECE, cells - start) for start in range(0, cells, PIECE)]


def paste(tally: Tally, piece: int, more: Counted) -> None:
    """Add a piece to the tally that it is a part of."""
    start = piece * PIECE
    cells = tally.counts[start : start + PIECE]
    if piece < 0 or not cells.size or cells.size != more[1].size:
        raise CorruptData("the store is damaged: a tally has another length")
    cells += more[1]
    tally.n += more[0]


def from_row(n: Any, counts: Any) -> Counted:
    """A piece as a row has it."""
    if type(n) is not int or type(counts) is not bytes or len(counts) % 8:
        raise CorruptData("the store is damaged: a tally is no row of counts")
    return n, np.frombuffer(counts, dtype="<i8")


def to_row(counted: Counted) -> tuple[int, bytes]:
    n, counts = counted
    return n, counts.astype("<i8", copy=False).tobytes()
