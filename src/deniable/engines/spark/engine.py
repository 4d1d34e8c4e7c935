"""The engine of many machines: tasks of Apache Spark that read their own files.

A DataFrame has one row for each task, a number. `mapInArrow` hands it to our code in a worker,
which reads the pieces of that task and returns their sealed result as bytes. So no report goes
through Spark, and Spark's retries and speculation cost time only: it takes one result per task.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from typing import Generic

from deniable.engines.base import Engine, Job, Partial, Value
from deniable.engines.files import Piece
from deniable.engines.spark.session import session
from deniable.engines.spark.worker import RESULTS, Batches, collected, portable, sealed

#: Pieces and rows of one task at most: small files are cheaper to open than tasks are to start, and
#: Spark takes as long to start a task as a core takes to count tens of millions of reports.
MOST_TOGETHER, MOST_ROWS = 64, 1 << 27
#: Tasks for each core at least, so that a slow one does not keep all others waiting.
SHARES = 4
#: Tasks for each core in one job of Spark. There are several jobs, so that what is done can be
#: shown and kept; two run at a time, so that the second fills the cores that the first leaves idle.
_WAVE, _AT_ONCE = 2, 2

Numbered = tuple[int, Piece]


class SparkEngine(Engine):
    """Tasks of the Spark session that runs, or of a new one on ``master``."""

    def __init__(self, master: str | None = None) -> None:
        self.session = session(master)

    def results(self, job: Job[Value], pieces: Sequence[Numbered]) -> Iterator[Partial[Value]]:
        cores = self.session.sparkContext.defaultParallelism
        tasks = _tasks(pieces, cores)
        size = _WAVE * cores
        waves = [tasks[start : start + size] for start in range(0, len(tasks), size)]
        group = f"deniable-{uuid.uuid4()}"
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            running: deque[Future[list[Partial[Value]]]] = deque()
            try:
                for wave in waves:
                    running.append(pool.submit(self._run, job, wave, group))
                    if len(running) > _AT_ONCE:
                        yield from running.popleft().result()
                while running:
                    yield from running.popleft().result()
            except BaseException:  # an error, or nobody wants the rest
                pool.shutdown(wait=False, cancel_futures=True)
                self.session.sparkContext.cancelJobGroup(group)
                raise

    def _run(
        self, job: Job[Value], tasks: list[list[Numbered]], group: str
    ) -> list[Partial[Value]]:
        self.session.sparkContext.setJobGroup(group, "deniable", interruptOnCancel=True)
        numbers = self.session.range(0, len(tasks), 1, len(tasks))
        return collected(numbers.mapInArrow(portable(ReadPieces(job, tasks)), RESULTS))


def _tasks(pieces: Sequence[Numbered], cores: int) -> list[list[Numbered]]:
    """Pieces put together to tasks of about as many rows, several for each core."""
    rows = sum(piece.rows for _, piece in pieces)
    enough = min(MOST_ROWS, rows // (SHARES * cores))
    tasks: list[list[Numbered]] = []
    held = 0
    for one in pieces:
        if not tasks or held >= enough or len(tasks[-1]) == MOST_TOGETHER:
            tasks.append([])
            held = 0
        tasks[-1].append(one)
        held += one[1].rows
    return tasks


@dataclass(frozen=True)
class ReadPieces(Generic[Value]):
    """The task of a worker: the result of the pieces of each number that it gets."""

    job: Job[Value]
    tasks: list[list[Numbered]]

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield sealed(self._read, number)

    def _read(self, number: int) -> Partial[Value]:
        parts = (Partial(frozenset([i]), self.job.read(piece)) for i, piece in self.tasks[number])
        return reduce(lambda one, other: one.merge(other, self.job), parts)
