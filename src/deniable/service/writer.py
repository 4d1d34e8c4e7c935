"""Group commit: all submissions that wait are kept in one transaction, then all are answered.

The event loop gathers a group while the thread keeps the one before: the slower the disk, the
larger the groups. It goes on as long as others join at every turn of the loop, because a group
costs many times what a submission adds to it, and because two busy threads slow each other down.

Whatever the store does, an answer comes within `PATIENCE` seconds. Clients that are told that the
store cannot be used send the same again, and it is counted once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, NamedTuple

from deniable.core.tally import Tally
from deniable.errors import CorruptData, StoreUnavailable
from deniable.service.encoding import TallyKey
from deniable.service.store import Outcome, Store

#: Submissions in one transaction.
MOST = 1_000
#: Seconds that a submission waits for the store, and the end of the collector for the writer.
PATIENCE, FINISH = 15.0, 5.0


class _Waiting(NamedTuple):
    """A submission, or a batch if it has tallies, and who waits for its outcome."""

    name: bytes
    body: bytes
    tallies: Mapping[TallyKey, Tally] | None
    answer: asyncio.Future[Outcome]


class Writer:
    """One thread that owns the writing side of the store; used from one event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._groups: SimpleQueue[tuple[list[_Waiting], asyncio.AbstractEventLoop] | None]
        self._groups = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._waiting: list[_Waiting] = []
        self._busy = self._late = False
        self._alarm: asyncio.TimerHandle | None = None
        with suppress(StoreUnavailable):  # the first submission tries again
            self._start()

    async def add(
        self, name: bytes, body: bytes, tallies: Mapping[TallyKey, Tally] | None = None
    ) -> Outcome:
        """Keep a submission, or a batch with its tallies; on return it is on the disk."""
        if self._late:
            raise StoreUnavailable(f"the store has not answered for {PATIENCE:g} seconds")
        loop = asyncio.get_running_loop()
        item = _Waiting(name, body, tallies, loop.create_future())
        self._waiting.append(item)
        if not self._busy:
            self._busy = True
            loop.call_soon(self._gather)
        try:
            return await item.answer
        except asyncio.CancelledError:  # whoever sends it again learns what became of it
            raise StoreUnavailable("the collector ended before a submission was kept") from None

    def close(self) -> bool:
        """Finish what is being kept, and stop; says whether that was done in time."""
        self._groups.put(None)
        if self._thread is not None:
            self._thread.join(FINISH)
        return self._thread is None or not self._thread.is_alive()

    def _start(self) -> None:
        """Start the thread, unless it runs. It does not keep the process from ending."""
        if self._thread is not None and self._thread.is_alive():
            return
        thread = threading.Thread(target=self._work, name="deniable-writer", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            raise StoreUnavailable(f"there is no thread to write with: {error}") from error
        self._thread = thread

    def _gather(self, before: int = 0) -> None:
        """Begin with the group, unless it grew in the last turn and may grow further."""
        loop = asyncio.get_running_loop()
        if before < len(self._waiting) < MOST:
            loop.call_soon(self._gather, len(self._waiting))
            return
        group, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
        self._busy = bool(group)
        if group:
            self._begin(group, loop)

    def _begin(self, group: list[_Waiting], loop: asyncio.AbstractEventLoop) -> None:
        try:
            self._start()
        except StoreUnavailable as error:
            self._answer([(item, error) for item in group])
            return
        self._alarm = loop.call_later(PATIENCE, self._give_up, group)
        self._groups.put((group, loop))

    def _give_up(self, group: list[_Waiting]) -> None:
        """Answer everybody who waits. Until the thread comes back, others are answered at once."""
        self._late = True
        waiting, self._waiting = self._waiting, []
        error = StoreUnavailable(f"the store did not answer within {PATIENCE:g} seconds")
        _tell([(item, error) for item in [*group, *waiting]])

    def _work(self) -> None:
        """The thread."""
        while (task := self._groups.get()) is not None:
            self._keep(*task)

    def _keep(self, group: list[_Waiting], loop: asyncio.AbstractEventLoop) -> None:
        results = _tried(lambda: self._kept(group))
        if isinstance(results, Exception):
            results = [(item, results) for item in group]
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(self._answer, results)

    def _kept(self, group: list[_Waiting]) -> list[tuple[_Waiting, Any]]:
        """One transaction for the submissions, one for each batch."""
        results: list[tuple[_Waiting, Any]] = []
        if singles := [item for item in group if item.tallies is None]:
            entries = [(item.name, item.body) for item in singles]
            found = _tried(lambda: self._store.add(entries))
            found = [found] * len(singles) if isinstance(found, Exception) else found
            results += zip(singles, found, strict=True)
        for item in group:
            if (tallies := item.tallies) is not None:
                kept = _tried(lambda i=item, t=tallies: self._store.add_batch(i.name, i.body, t))  # type: ignore[misc]
                results.append((item, kept))
        return results

    def _answer(self, results: list[tuple[_Waiting, Any]]) -> None:
        """Answer a group, and go on with the next, whatever happens."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._late, self._alarm = False, None
        try:
            _tell(results)
        finally:
            self._gather()


def _tell(results: list[tuple[_Waiting, Any]]) -> None:
    for item, result in results:
        if item.answer.done():  # it was given up, or the collector ends
            continue
        if isinstance(result, Exception):
            item.answer.set_exception(result)
        else:
            item.answer.set_result(result)


def _tried(task: Callable[[], Any]) -> Any:
    """What a task returns, or the error that it ends with: one that a client may try again."""
    try:
        return task()
    except (StoreUnavailable, CorruptData) as error:
        return error
    except Exception as error:
        return StoreUnavailable(f"the store failed: {error!r}")
