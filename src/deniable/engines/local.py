"""The engine of this machine: threads, and a bounded number of pieces at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from deniable.engines.base import Engine, Job, Partial, Value
from deniable.engines.files import Piece
from deniable.kernels.threads import thread_count


class LocalEngine(Engine):
    """Threads of this process; the kernels and Arrow leave the interpreter to others."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = thread_count(threads)

    def results(
        self, job: Job[Value], pieces: Sequence[tuple[int, Piece]]
    ) -> Iterator[Partial[Value]]:
        with ThreadPoolExecutor(self.threads) as pool:
            running: set[Future[Partial[Value]]] = set()
            try:
                for i, piece in pieces:
                    running.add(pool.submit(_one, job, i, piece))
                    if len(running) > self.threads:
                        yield from _ended(running)
                while running:
                    yield from _ended(running)
            finally:  # after an error, or if nobody wants the rest
                pool.shutdown(wait=False, cancel_futures=True)


def _one(job: Job[Value], position: int, piece: Piece) -> Partial[Value]:
    return Partial(frozenset([position]), job.read(piece))


def _ended(running: set[Future[Partial[Value]]]) -> Iterator[Partial[Value]]:
    """The results that are there, at least one; they are taken from ``running``."""
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in done:
        running.discard(future)
        yield future.result()
