"""Jobs that die, and jobs that break a promise: what workers of Spark import by name."""

from __future__ import annotations

import os
import pickle
import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deniable.engines.base import Engine, Job
from deniable.engines.privatising import JobKeys, PrivatiseJob


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
        with Path(self.path).open("ab") as file:
            pickle.dump(self.job.read(piece), file)

    def merge(self, one, other):
        return None

    def total(self):
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


class Through(Engine):
    """An engine that makes something else of each job that writes reports."""

    def __init__(self, engine: Engine, change: Callable[[PrivatiseJob], Job[Any]]) -> None:
        self._engine, self._change = engine, change

    def results(self, job, pieces):
        changed = self._change(job) if isinstance(job, PrivatiseJob) else job
        return self._engine.results(changed, pieces)


@dataclass(frozen=True)
class Seen(Job[Any]):
    """A job that writes reports, and an onlooker who copies whatever gets its name."""

    job: PrivatiseJob
    folder: str

    def read(self, piece):
        names = self.job.read(piece)
        for name in names:
            Path(self.folder, name).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(Path(self.job.folder, name), Path(self.folder, name, uuid.uuid4().hex))
        return names

    def merge(self, one, other):
        return self.job.merge(one, other)


@dataclass(frozen=True)
class DrawsAnew(JobKeys):
    """A planted bug: every attempt draws the keys of its coins."""

    def key(self, use, piece, report):
        return super().key(use, piece, report) if use == "name" else os.urandom(32)
