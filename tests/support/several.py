"""Several collectors on one database, clients that try another one, and disasters in between.

The law is that of `faults.World`: every mark that was acknowledged is counted once, and no other
one twice.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

from collectors import Collector
from faults import World
from postgres import Postgres

#: Clients at the same time; of their submissions, one in so many goes to two at the same moment.
CLIENTS, TWINS = 6, 3
#: How often a client tries anew, and seconds between.
TRIES, AGAIN = 200, 0.05


@dataclass
class Several(World):
    """A world with more than one collector."""

    others: list[Collector] = field(default_factory=list)
    #: Submissions that a client gave up.
    given_up: list[int] = field(default_factory=list)
    #: How often each mark was answered with 201.
    counted: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, database: Postgres, seed: int, number: int = 3, size: int = 20_000,
           **options: object) -> Several:  # fmt: skip
        """An empty store, and collectors that serve it."""
        found = cls.begin(Path(), seed, size, database, **options)
        assert isinstance(found, Several)
        found.others = [Collector(found.store, **options) for _ in range(number - 1)]
        return found

    @property
    def all(self) -> list[Collector]:
        return [self.collector, *self.others]

    def _try(self, mark: int, body: bytes) -> None:
        """Send to any collector, and to any again, until one has it."""
        rng = random.Random(mark)
        for _ in range(TRIES):
            try:
                status = rng.choice(self.all).post(body)
            except (OSError, HTTPException):
                status = 0
            with self.lock:
                if status in (200, 201):
                    self.acknowledged.add(mark)
                    self.counted[mark] = self.counted.get(mark, 0) + (status == 201)
                    return
                if status not in (0, 429, 503):
                    self.surprises.append(f"mark {mark} was answered with {status}")
            time.sleep(AGAIN)
        self.given_up.append(mark)

    def _client(self, stop: threading.Event) -> None:
        while not stop.is_set():
            mark, body = self.fresh()
            if mark % TWINS:
                self._try(mark, body)
            else:
                self._together([threading.Thread(target=self._twin, args=(mark, body, place))
                                for place in range(2)])  # fmt: skip

    def _twin(self, mark: int, body: bytes, place: int) -> None:
        """One of two that send the same at the same moment, each to a collector of its own."""
        try:
            status = self.all[(mark + place) % len(self.all)].post(body)
        except (OSError, HTTPException):
            status = 0
        with self.lock:
            if status == 201:
                self.counted[mark] = self.counted.get(mark, 0) + 1
            if status in (200, 201):
                self.acknowledged.add(mark)
                return
        self._try(mark, body)

    @contextmanager
    def load(self) -> Iterator[None]:
        """Clients send as long as this lasts, and finish what they began."""
        stop = threading.Event()
        threads = [threading.Thread(target=self._client, args=(stop,)) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    def wait_for(self, more: int, seconds: float = 60.0) -> None:
        """Until so many more submissions were acknowledged."""
        wanted, deadline = len(self.acknowledged) + more, time.monotonic() + seconds
        while len(self.acknowledged) < wanted:
            assert time.monotonic() < deadline, "the collectors take nothing any more"
            time.sleep(0.01)

    def kill_one(self) -> None:
        """SIGKILL to one of the collectors, and a new one at its port."""
        victim = self.rng.choice(self.all)
        victim.kill()
        victim.start()

    def crash_database(self) -> None:
        """All processes of the database are gone at once."""
        assert self.database is not None
        self.database.crash()
        self.database.start()

    def stop(self) -> None:
        for one in self.all:
            one.stop()

    def check(self) -> None:
        for one in self.others:
            one.stop()
        super().check()
        twice = [mark for mark, times in self.counted.items() if times > 1]
        assert not twice, f"two collectors said that they counted: {twice}"
        assert not self.given_up, f"nobody took {self.given_up}"
