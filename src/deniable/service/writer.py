"""Group commit: all submissions that wait are kept in one transaction, then all are answered.

The event loop gathers a group while the thread keeps the one before: the slower the disk, the
larger the groups. It goes on as long as others join at every turn of the loop, because a group
costs many times what a submission adds to it, and because two busy threads slow each other down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from deniable.errors import StoreUnavailable
from deniable.service.packing import Counts
from deniable.service.store import Outcome, Store

#: Submissions in one transaction.
MOST = 1_000


class _Waiting(NamedTuple):
    """A submission, or a batch if it has counts, and who waits for its outcome."""

    name: bytes
    body: bytes
    counts: Counts | None
    answer: asyncio.Future[Outcome]


class Writer:
    """One thread that owns the writing side of the store; used from one event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._thread = ThreadPoolExecutor(1, "deniable-writer")
        self._waiting: list[_Waiting] = []
        self._busy = False

    async def add(self, name: bytes, body: bytes, counts: Counts | None = None) -> Outcome:
        """Keep a submission, or a batch with its counts; on return it is on the disk."""
        loop = asyncio.get_running_loop()
        item = _Waiting(name, body, counts, loop.create_future())
        self._waiting.append(item)
        if not self._busy:
            self._busy = True
            loop.call_soon(self._gather)
        try:
            return await item.answer
        except asyncio.CancelledError:  # whoever sends it again learns what became of it
            raise StoreUnavailable("the collector ended before a submission was kept") from None

    def close(self) -> None:
        """Finish what is being kept, and stop."""
        self._thread.shutdown()

    def _gather(self, before: int = 0) -> None:
        """Begin with the group, unless it grew in the last turn and may grow further."""
        loop = asyncio.get_running_loop()
        if before < len(self._waiting) < MOST:
            loop.call_soon(self._gather, len(self._waiting))
            return
        group, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
        self._busy = bool(group)
        if group:
            self._thread.submit(self._keep, group, loop)

    def _keep(self, group: list[_Waiting], loop: asyncio.AbstractEventLoop) -> None:
        """In the thread: one transaction for the submissions, one for each batch."""
        results: list[tuple[_Waiting, Any]] = []
        if singles := [item for item in group if item.counts is None]:
            entries = [(item.name, item.body) for item in singles]
            found = _tried(lambda: self._store.add(entries))
            found = [found] * len(singles) if isinstance(found, Exception) else found
            results += zip(singles, found, strict=True)
        for item in group:
            if (counts := item.counts) is not None:
                kept = _tried(lambda i=item, c=counts: self._store.add_batch(i.name, i.body, c))  # type: ignore[misc]
                results.append((item, kept))
        loop.call_soon_threadsafe(self._answer, results)

    def _answer(self, results: list[tuple[_Waiting, Any]]) -> None:
        for item, result in results:
            if item.answer.done():  # the collector ends
                continue
            if isinstance(result, Exception):
                item.answer.set_exception(result)
            else:
                item.answer.set_result(result)
        self._gather()


def _tried(task: Callable[[], Any]) -> Any:
    """What a task returns, or the error that it ends with."""
    try:
        return task()
    except Exception as error:
        return error
