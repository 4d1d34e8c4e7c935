"""How far long work is, told a few times per second."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from deniable.engines.base import Partial, Watch
from deniable.engines.files import Piece

#: Told what is being done, how much of it is done, and of how much.
Progress = Callable[[str, int, int], None]
#: Seconds between two times that somebody is told.
PACE = 0.1


def silent(doing: str, done: int, total: int) -> None:
    """Tell nobody."""


def watching(
    progress: Progress, doing: str, pieces: Sequence[Piece], number: int = 0, of: int = 1
) -> Watch:
    """Tells how many rows of the pieces were read, in one of several passes over them."""
    rows = np.array([piece.rows for piece in pieces], dtype=np.int64)
    each = int(rows.sum())
    last = -np.inf

    def watch(done: Partial[object]) -> None:
        nonlocal last
        if (now := time.monotonic()) - last > PACE or len(done.pieces) == len(pieces):
            last = now
            read = int(rows[np.fromiter(done.pieces, dtype=np.int64)].sum())
            progress(doing, number * each + read, of * each)

    return watch
