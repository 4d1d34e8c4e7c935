"""Group commit: all submissions that wait are kept in one transaction, then all are answered.

The slower the disk, the larger the groups: nobody waits for more than two commits.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from dataclasses import dataclass
from typing import Any

from deniable.service.packing import Counts
from deniable.service.store import Outcome, Store

#: Submissions in one transaction.
MOST = 2_000


@dataclass(frozen=True)
class _Waiting:
    """A submission, or a batch if it has counts, and who waits for its outcome."""

    name: bytes
    body: bytes
    counts: Counts | None
    answer: asyncio.Future[Outcome]


class Writer:
    """One thread that owns the writing side of the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="deniable-writer", daemon=True)
        self._thread.start()

    async def add(self, name: bytes, body: bytes, counts: Counts | None = None) -> Outcome:
        """Keep a submission, or a batch with its counts; on return it is on the disk."""
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._queue.put(_Waiting(name, body, counts, answer))
        return await answer

    def close(self) -> None:
        """Finish what waits, and stop."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (first := self._queue.get()) is not None:
            group = [first]
            while len(group) < MOST and not self._queue.empty():
                if (item := self._queue.get()) is None:
                    self._queue.put(None)
                    break
                group.append(item)
            self._keep(group)

    def _keep(self, group: list[_Waiting]) -> None:
        singles = [item for item in group if item.counts is None]
        if singles:
            _settle(singles, lambda: self._store.add([(item.name, item.body) for item in singles]))
        for item in group:
            if item.counts is not None:
                _settle([item], lambda i=item: [self._store.add_batch(i.name, i.body, i.counts)])


def _settle(group: list[_Waiting], task: Any) -> None:
    """Do the task, and hand its outcomes, or its failure, to those who wait for them."""
    try:
        results: list[Any] = task()
    except Exception as error:
        results = [error] * len(group)
    pairs = [(item.answer, result) for item, result in zip(group, results, strict=True)]
    group[0].answer.get_loop().call_soon_threadsafe(_answer, pairs)


def _answer(pairs: list[tuple[asyncio.Future[Outcome], Any]]) -> None:
    for future, result in pairs:
        if future.done():  # the client went away
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
