"""`deniable serve --workers`: workers die and are replaced under load, and nothing is lost."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from collection_toys import mark_submission, marks
from collectors import JSON, SOURCES
from deniable.service.access import new_token
from deniable.service.metrics import CELLS, Metrics
from deniable.service.store import open_store
from deniable.service.workers import Supervisor, _Worker

MARKS = marks(20_000)


def test_counters_of_workers_add_up():
    cells = [0] * (3 * len(CELLS))
    rows = [Metrics(cells, row) for row in range(3)]
    for row, times in zip(rows, (1, 2, 4), strict=True):
        for _ in range(times):
            row.count("deniable_refusals_total", "type", "busy")
    for row in rows:
        assert 'deniable_refusals_total{type="busy"} 7\n' in row.text({})


class Toy:
    """A process that lives or not, and does nothing."""

    sentinel = pid = 0
    exitcode = None

    def is_alive(self):
        return self.exitcode is None

    def join(self):
        pass

    def terminate(self):
        self.exitcode = 0


@pytest.fixture
def supervisor(monkeypatch):
    """One of two toys."""
    found = Supervisor(None, None, 2)
    monkeypatch.setattr(found, "_start", lambda: _Worker(Toy(), found._context.Pipe()[0], 0))
    found._workers = [found._start(), found._start()]
    return found


def test_a_renewal_amid_a_renewal_replaces_all(supervisor):
    """Also the one that was starting: it may have read the software and the survey before."""
    before = [*supervisor._workers]
    supervisor._renewing = True
    supervisor._tend(True)
    before.append(supervisor._successor)
    supervisor._renewing = True
    for _ in range(12):
        for worker in supervisor._all():
            worker.listens = True
        supervisor._tend(True)
    assert len(supervisor._all()) == 2
    assert not set(map(id, before)) & set(map(id, supervisor._workers))


def test_a_worker_may_die_while_its_successor_starts(supervisor):
    """The successor takes its place, and the renewal goes on."""
    before, supervisor._renewing = list(supervisor._workers), True
    supervisor._tend(True)
    for worker in before:
        successor, worker.listens, worker.process.exitcode = supervisor._successor, True, -9
        supervisor._tend(True)
        assert worker not in supervisor._workers
        assert successor in supervisor._workers
    for worker in supervisor._all():
        worker.listens = True
    supervisor._tend(True)
    assert len(supervisor._all()) == 2


class Served:
    """The command in a process of its own, and clients that send marks until one was taken."""

    def __init__(self, folder, *options):
        self.manifest = folder / "marks.json"
        self.manifest.write_bytes(MARKS.manifest)
        self.store = str(folder / "marks.db")
        command = [sys.executable, "-m", "deniable", "serve", str(self.manifest), "--port", "0"]
        self.process = subprocess.Popen(
            [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(SOURCES)},
        )  # fmt: skip
        line = ""
        while "API" not in line:
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read()
        self.port = int(re.search(r":(\d+)/v2", line)[1])
        self.acknowledged, self.surprises, self.next = set(), [], 0
        self.lock = threading.Lock()

    def ask(self, method="GET", path="/v2/health", body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def workers(self):
        """The ids of its workers, without other helpers of the interpreter."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        found = set()
        for pid in map(int, children.read_text().split()):
            with suppress(OSError):  # it ended in the meantime
                if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.add(pid)
        return found

    def client(self, stop):
        while not stop.is_set():
            with self.lock:
                mark, self.next = self.next, self.next + 1
            body = mark_submission(MARKS, mark, f"{mark:032x}").to_json()
            while mark not in self.acknowledged:
                try:
                    status, _ = self.ask("POST", "/v2/submissions", body, **{"Content-Type": JSON})
                except (OSError, http.client.HTTPException):
                    status = 503  # to send the same again is always right
                with self.lock:
                    if status in (200, 201):
                        self.acknowledged.add(mark)
                    elif status not in (429, 503):
                        self.surprises.append(status)
                        return

    def until(self, done, seconds=60):
        deadline = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < deadline, "it takes too long"
            time.sleep(0.05)

    def more(self, number):
        wanted = len(self.acknowledged) + number
        self.until(lambda: len(self.acknowledged) >= wanted)

    def stop(self):
        self.process.terminate()
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


@pytest.mark.crash
@pytest.mark.slow
def test_workers_are_replaced_under_load_and_nothing_is_lost(tmp_path):
    """One is killed; all are renewed; a renewal that cannot work changes nothing; all end."""
    served = Served(tmp_path, "--workers", "2")
    stop = threading.Event()
    clients = [threading.Thread(target=served.client, args=(stop,)) for _ in range(4)]
    try:
        for client in clients:
            client.start()
        served.more(50)
        before = served.workers()
        assert len(before) == 2
        os.kill(min(before), signal.SIGKILL)
        served.until(lambda: len(served.workers() - {min(before)}) == 2)
        before = served.workers()
        os.kill(served.process.pid, signal.SIGHUP)
        served.until(lambda: len(served.workers()) == 2 and not served.workers() & before)
        served.more(50)
        before = served.workers()
        served.manifest.write_text("{}")
        os.kill(served.process.pid, signal.SIGHUP)
        served.until(lambda: len(served.workers()) == 3)
        served.until(lambda: served.workers() == before)
        served.more(50)
        stop.set()
        for client in clients:
            client.join()
        store = open_store(served.store)
        token = new_token(store, "ann")
        time.sleep(1.1)  # until the workers look at the tokens again
        told = served.ask(path="/v2/metrics", Authorization=f"Bearer {token}")[1].decode()
        counted = re.search(r'submissions_total\{outcome="counted"\} (\d+)', told)
    finally:
        stop.set()
        code, out, err = served.stop()
    assert code == 0
    assert out.endswith("stopped\n")
    assert len(re.findall(r"worker \d+ \(signal 9\) ended; another one starts", err)) == 1
    assert len(re.findall("takes over from", err)) == 2
    assert "did not start; the others go on as they are" in err
    (tally,) = store.tallies().values()
    marked = sorted(served.acknowledged)
    assert tally.counts[marked].tolist() == [1] * len(marked)
    assert tally.n == len(marked), "what was never acknowledged was sent until it was"
    assert store.verify() == []
    assert not served.surprises
    # The killed worker may have kept a group, of all clients at most, and not yet said so.
    assert 0 <= tally.n - int(counted[1]) <= len(clients)
    store.close()


@pytest.mark.crash
@pytest.mark.slow
def test_workers_end_with_their_parent(tmp_path):
    """And by no SIGHUP or SIGINT of a terminal, also before they can do anything about it."""
    served = Served(tmp_path, "--workers", "2")
    os.kill(served.process.pid, signal.SIGHUP)
    served.until(served.workers)
    for pid in served.workers():
        os.kill(pid, signal.SIGHUP)
        os.kill(pid, signal.SIGINT)
    assert served.ask()[0] == 200
    workers = served.workers()
    served.process.kill()
    served.process.communicate(timeout=60)
    served.until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


@pytest.mark.network
@pytest.mark.slow
def test_workers_that_cannot_start_end_the_command(tmp_path):
    served = Served(tmp_path, "--workers", "2")
    served.manifest.write_text(json.dumps({}))  # before the workers read it
    _, err = served.process.communicate(timeout=60)
    assert served.process.returncode == 1
    assert "did not start" in err
    assert "deniable: " in err
    assert "Traceback" not in err, "they are tried again every second: a log must not fill a disk"
