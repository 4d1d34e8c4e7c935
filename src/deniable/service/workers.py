"""Several processes behind one socket: `deniable serve --workers`.

The parent binds the socket, starts workers and replaces those that die; it answers no request
itself. Connections wait in the one socket until any worker takes them, so none is lost with a
worker. SIGTERM lets all of them finish. SIGHUP replaces them one after the other by new
interpreters, with whatever software and survey are there now; a worker ends after its successor
listens. If that one does not start, the old ones stay. Workers end when their parent is gone.
"""

from __future__ import annotations

import logging
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from deniable.collection.survey import read_survey
from deniable.service.app import Settings, create_app
from deniable.service.metrics import CELLS, Metrics
from deniable.service.run import END, serve
from deniable.service.store import open_store

#: Seconds between looks at signals, and before a worker that could not start is tried again.
LOOK, PAUSE = 0.2, 1.0
#: Connections that one worker takes in before another may.
NEWCOMERS = 4
_LOG = logging.getLogger("deniable.service")


@dataclass(frozen=True)
class Assignment:
    """What every worker does."""

    store: str
    survey: str
    settings: Settings
    connections: int


@dataclass(eq=False)
class _Worker:
    process: SpawnProcess
    #: It says once that it listens. The worker ends when the other end is gone.
    lifeline: Connection
    #: Its row of the counters.
    row: int
    listens: bool = False

    def look(self) -> None:
        """Whether it listens by now."""
        with suppress(EOFError, OSError):
            if not self.listens and self.lifeline.poll():
                self.listens = bool(self.lifeline.recv())

    def close(self) -> None:
        self.process.join()
        self.lifeline.close()

    def __str__(self) -> str:
        code = self.process.exitcode
        how = "" if code is None else f" (signal {-code})" if code < 0 else f" (exit code {code})"
        return f"worker {self.process.pid}{how}"


def work(
    job: Assignment, listening: socket.socket, lifeline: Connection, cells: Any, row: int
) -> None:
    """A worker, from its first line to its last."""
    try:
        store = open_store(job.store, read_survey(job.survey))
    except (ValueError, ImportError, OSError) as error:  # one line, as the command says it
        raise SystemExit(f"deniable: {error}") from None
    store.packing.warm()
    app = create_app(store, job.settings, Metrics(cells, row))
    with suppress(KeyboardInterrupt):
        serve(app, listening, connections=job.connections, parent=lifeline, backlog=NEWCOMERS)


@contextmanager
def _signals_held() -> Iterator[None]:
    """SIGHUP and SIGINT wait. A process that starts here holds them back for ever.

    A terminal sends both to all processes, and a worker cannot handle them before its first line.
    They are for the parent, which ends its workers by SIGTERM.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    held = [signal.SIGHUP, signal.SIGINT]
    resource_tracker.ensure_running()  # at its start, it lets SIGINT through
    signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, held)


class Supervisor:
    """The parent."""

    def __init__(self, job: Assignment, listening: socket.socket, number: int) -> None:
        self._job, self._listening, self._number = job, listening, number
        self._context = get_context("spawn")
        #: A row of counters for each process; while one is replaced, there are two.
        self._cells = self._context.RawArray("q", 2 * number * len(CELLS))
        self._workers: list[_Worker] = []
        #: Workers that are to be replaced; the successor of the first, and whoever it replaced.
        self._old: list[_Worker] = []
        self._successor: _Worker | None = None
        self._leaving: _Worker | None = None
        self._ending = self._renewing = False

    def run(self) -> bool:
        """Serve until a signal ends it; says whether it ever listened."""
        with self._signals():
            self._workers = [self._start() for _ in range(self._number)]
            began = False
            try:
                while not self._ending:
                    self._wait()
                    began = began or any(worker.listens for worker in self._workers)
                    if not self._tend(began):
                        return False
                return True
            finally:
                self._end()

    def _tend(self, began: bool) -> bool:
        """Replace who died, and go on with a renewal; says whether there is any sense in it."""
        for worker in [one for one in self._all() if not one.process.is_alive()]:
            worker.close()
            if worker is self._leaving:
                self._leaving = None
            elif worker is self._successor:
                _LOG.error("%s did not start; the others go on as they are", worker)
                self._successor, self._old = None, []
            elif not began:
                _LOG.error("%s did not start", worker)
                self._workers.remove(worker)
                return False
            else:
                _LOG.error("%s ended; another one starts", worker)
                if not worker.listens:
                    time.sleep(PAUSE)
                self._put(self._heir(worker), worker)
        self._renew()
        return True

    def _renew(self) -> None:
        """The next step of replacing all workers."""
        if self._renewing and self._successor is None:  # one that starts may read what was before
            self._renewing, self._old = False, list(self._workers)
        if self._successor is not None and self._successor.listens:
            self._leaving, successor = self._old.pop(0), self._successor
            self._put(successor, self._leaving)
            self._successor = None
            self._leaving.process.terminate()
            _LOG.warning("%s takes over from %s", successor, self._leaving)
        elif self._old and self._successor is None and self._leaving is None:
            self._successor = self._start()

    def _heir(self, worker: _Worker) -> _Worker:
        """Who follows a worker that died: its successor, if that starts already."""
        if self._successor is None or self._old[0] is not worker:
            return self._start()
        found, self._successor = self._successor, None
        return found

    def _put(self, worker: _Worker, before: _Worker) -> None:
        """A worker in the place of another."""
        self._workers[self._workers.index(before)] = worker
        if before in self._old:
            self._old.remove(before)

    def _all(self) -> list[_Worker]:
        others = (self._successor, self._leaving)
        return [*self._workers, *(one for one in others if one is not None)]

    def _start(self) -> _Worker:
        taken = {worker.row for worker in self._all()}
        row = next(row for row in range(2 * self._number) if row not in taken)
        ours, theirs = self._context.Pipe()
        arguments = (self._job, self._listening, theirs, self._cells, row)
        process = self._context.Process(target=work, args=arguments, daemon=True)
        with _signals_held():
            process.start()
        theirs.close()
        return _Worker(process, ours, row)

    def _wait(self) -> None:
        """Until somebody says or does something, or it is time to look for signals."""
        wait([one.process.sentinel for one in self._all()], LOOK)
        for worker in self._all():
            worker.look()

    def _end(self) -> None:
        """Let all finish what they are doing, and no longer than `serve` does."""
        self._listening.close()
        for worker in self._all():
            worker.process.terminate()
        deadline = time.monotonic() + END + 1
        for worker in self._all():
            worker.process.join(max(0.0, deadline - time.monotonic()))
            worker.process.kill()
            worker.close()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        def end(*_: object) -> None:
            self._ending = True

        def renew(*_: object) -> None:
            self._renewing = True

        wanted: dict[str, Any] = {"SIGTERM": end, "SIGINT": end, "SIGHUP": renew}
        known = {getattr(signal, name): do for name, do in wanted.items() if hasattr(signal, name)}
        before = {number: signal.signal(number, do) for number, do in known.items()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
