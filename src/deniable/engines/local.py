"""The engine of this machine: threads, and a bounded number of pieces at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import reduce

from deniable.engines.base import Engine, Job, Partial, Value
from deniable.engines.files import Piece
from deniable.kernels.threads import thread_count

#: Pieces that one thread reads before their result is merged with all others: there may be many
#: small files, and to note each one on its own would cost more than to read it.
MOST_TOGETHER = 64
#: How often, in the course of a job, each thread has a result at least, if pieces are many.
RESULTS = 16

Numbered = tuple[int, Piece]


class LocalEngine(Engine):
    """Threads of this process; the kernels and Arrow leave the interpreter to others.

    Results come in the order of the pieces, so that sums of floating-point numbers are the same in
    every run.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads = thread_count(threads)

    def results(self, job: Job[Value], pieces: Sequence[Numbered]) -> Iterator[Partial[Value]]:
        together = min(MOST_TOGETHER, 1 + len(pieces) // (RESULTS * self.threads))
        tasks = [pieces[i : i + together] for i in range(0, len(pieces), together)]
        with ThreadPoolExecutor(self.threads) as pool:
            running: deque[Future[Partial[Value]]] = deque()
            try:
                for task in tasks:
                    running.append(pool.submit(_read, job, task))
                    if len(running) > 2 * self.threads:
                        yield running.popleft().result()
                while running:
                    yield running.popleft().result()
            finally:  # after an error, or if nobody wants the rest
                pool.shutdown(wait=False, cancel_futures=True)


def _read(job: Job[Value], task: Sequence[Numbered]) -> Partial[Value]:
    """The result of some pieces, one after the other."""
    parts = (Partial(frozenset([i]), job.read(piece)) for i, piece in task)
    return reduce(lambda one, other: one.merge(other, job), parts)
