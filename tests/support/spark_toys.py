"""Jobs that die, and jobs that break a promise: what workers of Spark import by name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deniable.engines.base import Job


def first_time(folder: str | Path, name: str) -> bool:
    """Whether nobody asked before: also across processes, and after deaths."""
    try:
        Path(folder, name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


@dataclass(frozen=True)
class Dying(Job[Any]):
    """A job whose worker dies in the middle of the first attempt at each piece."""

    job: Job[Any]
    deaths: str

    def read(self, piece):
        found = self.job.read(piece)
        if first_time(self.deaths, f"{piece.start}"):
            os._exit(1)
        return found

    def merge(self, one, other):
        return self.job.merge(one, other)


@dataclass(frozen=True)
class Accumulates(Job[Any]):
    """A planted bug: a job that adds to a file as it goes, and counts what it finds there."""

    job: Job[Any]
    path: str

    def read(self, piece):
        import pickle

        with Path(self.path).open("ab") as file:
            pickle.dump(self.job.read(piece), file)
        return

    def merge(self, one, other):
        return None

    def total(self):
        import pickle

        parts = []
        with Path(self.path).open("rb") as file:
            while True:
                try:
                    parts.append(pickle.load(file))
                except EOFError:
                    break
        total = parts[0]
        for part in parts[1:]:
            total = self.job.merge(total, part)
        return total
