"""A job that workers of Spark import by name: it takes its time, and notes every attempt."""

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


@dataclass(frozen=True)
class Slow(Job[Any]):
    """Another job, slowed down. Each attempt notes its process in a file when it begins."""

    job: Job[Any]
    notes: str

    def read(self, piece: Piece) -> Any:
        folder = Path(self.notes, str(piece.start))
        folder.mkdir(exist_ok=True)
        (folder / f"{os.getpid()}-{uuid.uuid4().hex}").touch()
        found = self.job.read(piece)
        time.sleep(SECONDS)
        return found

    def merge(self, one: Any, other: Any) -> Any:
        return self.job.merge(one, other)
