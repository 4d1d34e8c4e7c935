"""A collector that forgets: once a day, reports of days that are not to be kept become counts only.

The work is that of `deniable purge`, in a thread and on connections of its own. Several collectors
of one store may do it at once: what one has forgotten, another finds done. They begin after a
random while, so that workers that start together seldom do the same work.
"""

from __future__ import annotations

import logging
import secrets
import threading
from datetime import date, timedelta

from deniable.errors import CorruptData, StoreUnavailable
from deniable.service.store import Store
from deniable.service.store.base import EPOCH, today

#: Seconds between two looks at the calendar, and between tries while the store cannot be used.
EVERY = 600.0
#: Seconds that the end of the collector waits for a step.
FINISH = 5.0
_LOG = logging.getLogger("deniable.service")


def first_kept(days: int) -> date:
    """The first day to keep, if today and this many days before it are kept."""
    return EPOCH + timedelta(days=max(0, today() - days))


class _Stopped(Exception):
    """The collector ends in the middle of a purge, which goes on at the next start."""


class Retention:
    """The thread that purges, from the start of a collector to its end."""

    def __init__(self, store: Store, days: int) -> None:
        self._store, self._days = store.another(), days
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, name="deniable-retention", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop after the present step, unless that takes too long: it is whole, or nothing."""
        self._end.set()
        self._thread.join(FINISH)
        if not self._thread.is_alive():
            self._store.close()

    def _work(self) -> None:
        done: date | None = None
        self._end.wait(EVERY * secrets.randbelow(1_000) / 1_000)
        while not self._end.is_set():
            before = first_kept(self._days)
            if before != done and self._purged(before):
                done = before
            self._end.wait(EVERY)

    def _purged(self, before: date) -> bool:
        """Whether all was forgotten."""
        try:
            number = self._store.purge(before, progress=self._go_on)
        except _Stopped:
            return False
        except (StoreUnavailable, CorruptData) as error:
            _LOG.error("reports before %s are not all purged: %s", before, error)
            return False
        if number:
            _LOG.warning("%d submissions before %s are only counted from now on", number, before)
        return True

    def _go_on(self, done: int, total: int) -> None:
        if self._end.is_set():
            raise _Stopped
