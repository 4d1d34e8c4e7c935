"""Faults as data: random lists of operations against a collector in a process of its own.

Every submission carries a mark that no other has, so that a count of 2 proves double counting and
a count of 0 a loss. After each list: what was acknowledged is counted once, what was not is counted
once at most, and the tallies are what the reports add up to.
"""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

from collection_toys import mark_submission, marks, packed
from collectors import Collector, request_bytes
from deniable.collection.manifest import Collection
from deniable.errors import StoreUnavailable
from deniable.service.store import Outcome, open_store
from postgres import Postgres

#: What can happen, and how often.
OPERATIONS = {
    "submit": 10,
    "burst": 4,
    "replay": 4,
    "drop the answer": 4,
    "half a request": 1,
    "second writer": 2,
    "full disk": 1,
    "restart": 1,
    "clock jump": 1,
    "kill": 2,
}
#: What happens to a database server, and what only to a file.
SERVER, FILE = {"database crash": 2}, ("full disk",)
#: Submissions of a burst, over so many connections.
BURST, CONNECTIONS = 40, 8


def operations(rng: random.Random, length: int, *, server: bool = False) -> list[str]:
    """A random list."""
    weights = dict(OPERATIONS)
    if server:
        weights = {name: n for name, n in {**weights, **SERVER}.items() if name not in FILE}
    return rng.choices(list(weights), list(weights.values()), k=length)


@dataclass
class World:
    """A collector, its store, and what clients know about their submissions."""

    store: str
    collection: Collection
    rng: random.Random
    collector: Collector
    next_mark: int = 0
    #: Submissions by mark, and the marks that were acknowledged.
    sent: dict[int, bytes] = field(default_factory=dict)
    acknowledged: set[int] = field(default_factory=set)
    #: Answers that no fault explains.
    surprises: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    #: The server of the database, if it is one.
    database: Postgres | None = None

    @classmethod
    def begin(
        cls,
        folder: Path,
        seed: int,
        size: int = 10_000,
        database: Postgres | None = None,
        **options: object,
    ) -> World:
        """An empty store of ``size`` marks, and a collector that serves it."""
        store = str(folder / "marks.db") if database is None else database.database()
        collection = marks(size)
        open_store(store, collection).close()
        collector = Collector(store, **options)
        return cls(store, collection, random.Random(seed), collector, database=database)

    def run(self, names: list[str]) -> None:
        for name in names:
            getattr(self, "_" + name.replace(" ", "_"))()

    def fresh(self) -> tuple[int, bytes]:
        """A mark that was never sent, and the request that carries it."""
        with self.lock:
            mark, self.next_mark = self.next_mark, self.next_mark + 1
        name = random.Random(mark).randbytes(16).hex()
        body = mark_submission(self.collection, mark, name).to_json()
        self.sent[mark] = body
        return mark, body

    def _try(self, mark: int, body: bytes) -> None:
        """Send; whatever happens to the collector, remember only what it said."""
        try:
            status = self.collector.post(body)
        except (OSError, HTTPException):  # also an answer that was cut in the middle
            return
        if status in (200, 201):
            with self.lock:
                self.acknowledged.add(mark)
        elif status != 503:
            self.surprises.append(f"mark {mark} was answered with {status}")

    # ---- operations

    def _submit(self) -> None:
        self._try(*self.fresh())

    def _burst(self) -> None:
        self._together(self._threads())

    def _threads(self) -> list[threading.Thread]:
        def some() -> None:
            for _ in range(BURST // CONNECTIONS):
                self._submit()

        return [threading.Thread(target=some) for _ in range(CONNECTIONS)]

    @staticmethod
    def _together(threads: list[threading.Thread]) -> None:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _replay(self) -> None:
        """Old submissions again, whatever became of them."""
        for mark in self.rng.sample(sorted(self.sent), min(10, len(self.sent))):
            self._try(mark, self.sent[mark])

    def _drop_the_answer(self) -> None:
        """The client goes away as soon as it has sent, with a reset: nobody hears the answer."""
        _, body = self.fresh()
        self._raw(request_bytes(body))

    def _half_a_request(self) -> None:
        _, body = self.fresh()
        data = request_bytes(body)
        self._raw(data[: self.rng.randrange(len(data))])

    def _raw(self, data: bytes) -> None:
        try:
            with socket.create_connection(("127.0.0.1", self.collector.port), 10) as connection:
                reset = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                connection.sendall(data)
        except OSError:
            return

    def _second_writer(self) -> None:
        """Another process of the operator writes to the same store, new marks and old ones."""
        old = self.rng.sample(sorted(self.sent), min(5, len(self.sent)))
        bodies = [(mark, self.sent[mark]) for mark in old] + [self.fresh() for _ in range(5)]
        threads = self._threads()
        for thread in threads:
            thread.start()
        store = open_store(self.store)
        for mark, body in bodies:
            name = random.Random(mark).randbytes(16).hex()
            entry = packed(self.collection, mark_submission(self.collection, mark, name))
            assert self.sent[mark] == body
            try:
                if store.add([entry]) in ([Outcome.counted], [Outcome.known]):
                    with self.lock:
                        self.acknowledged.add(mark)
            except StoreUnavailable:
                continue
        store.close()
        for thread in threads:
            thread.join()

    def _full_disk(self) -> None:
        """No file can grow for a while; answers are 503, or are kept."""
        self.collector.stop()
        size = Path(self.store).stat().st_size + self.rng.choice([0, 1 << 16, 1 << 20])
        self.collector.options["file_bytes"] = size
        self.collector.start()
        self._burst()
        del self.collector.options["file_bytes"]
        self.collector.kill()
        self.collector.start()

    def _restart(self) -> None:
        self.collector.stop()
        self.collector.start()

    def _clock_jump(self) -> None:
        """From now on the collector lives on another day, and knows the submissions of all."""
        self.collector.stop()
        self.collector.options["days"] = self.rng.choice([-10_000, -1, 1, 10_000])
        self.collector.start()
        self._replay()

    def _kill(self) -> None:
        """kill -9 of the collector."""
        self._amid_a_burst(self.collector.kill)
        self.collector.start()

    def _database_crash(self) -> None:
        """kill -9 of the database; the collector stays, and finds the database again."""
        assert self.database is not None
        self._amid_a_burst(self.database.crash)
        self.database.start()

    def _amid_a_burst(self, disaster: Callable[[], None]) -> None:
        """It strikes after a random while."""
        self._submit()  # a cold collector would always be struck before its first commit
        threads = self._threads()
        for thread in threads:
            thread.start()
        pause = threading.Event()
        pause.wait(self.rng.random() * 0.1)
        disaster()
        for thread in threads:
            thread.join()

    # ---- the law

    def check(self) -> None:
        """Stop the collector, and look at what it kept."""
        self.collector.stop()
        store = open_store(self.store)
        counts = [0] * self.next_mark
        for tally in store.tallies().values():
            counts = tally.counts[: self.next_mark].tolist()
            assert not tally.counts[self.next_mark :].any(), "marks that nobody sent"
        lost = [mark for mark in self.acknowledged if counts[mark] == 0]
        doubled = [mark for mark, count in enumerate(counts) if count > 1]
        differences = store.verify()
        store.close()
        assert not self.surprises, self.surprises
        assert not lost, f"acknowledged, but lost: {lost}"
        assert not doubled, f"counted twice: {doubled}"
        assert not differences, f"tallies differ from a recount: {differences}"
