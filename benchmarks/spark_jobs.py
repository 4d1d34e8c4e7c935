"""Jobs that workers of Spark import by name: they take their time, and note every attempt."""

from __future__ import annotations

import os
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deniable.engines.base import Job
from deniable.engines.files import Piece

#: Seconds that a piece takes at least.
SECONDS = 1.0
#: Seconds that a straggler takes: longer than Spark needs to start a copy, and to finish it.
STRAGGLES = 30.0


@dataclass(frozen=True)
class Slow(Job[Any]):
    """Another job, slowed down. Each attempt notes its process in a file when it begins."""

    job: Job[Any]
    notes: str

    def read(self, piece: Piece) -> Any:
        folder = Path(self.notes, str(piece.start))
        folder.mkdir(exist_ok=True)
        (folder / f"{os.getpid()}-{uuid.uuid4().hex}").touch()
        attempt = len(list(folder.iterdir()))
        found = self.job.read(piece)
        time.sleep(self.seconds(piece, attempt))
        return found

    def seconds(self, piece: Piece, attempt: int) -> float:
        """How long an attempt waits once its work is done, and before it says so."""
        return SECONDS

    def merge(self, one: Any, other: Any) -> Any:
        return self.job.merge(one, other)


@dataclass(frozen=True)
class Straggling(Slow):
    """Another job, of which only the first attempt at the first piece is slow."""

    def seconds(self, piece: Piece, attempt: int) -> float:
        return STRAGGLES if (piece.start, attempt) == (0, 1) else 0.0
