"""Faults of clients, networks, disks and processes: nothing is lost, nothing is counted twice."""

import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

from collection_toys import mark_submission, marks
from collectors import Collector
from deniable.service.store import open_store
from faults import World, operations

pytestmark = [
    pytest.mark.crash,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs kill and file limits"),
]


@pytest.mark.parametrize("seed", [1, 2])
def test_random_faults(tmp_path, seed):
    rng = random.Random(seed)
    world = World.begin(tmp_path, seed)
    try:
        world.run(operations(rng, 9))
        world.run(["replay", "submit"])
    finally:
        world.check()
    assert len(world.acknowledged) > 10


def test_random_faults_of_a_database(tmp_path, server):
    """The same with PostgreSQL, which crashes, too."""
    world = World.begin(tmp_path, 5, database=server)
    try:
        world.run(operations(random.Random(5), 8, server=True))
        world.run(["kill", "database crash", "clock jump", "second writer", "replay", "submit"])
    finally:
        world.check()
    assert len(world.acknowledged) > 10


ALONE = ["drop the answer", "full disk", "kill", "second writer", "clock jump"]


@pytest.mark.parametrize("name", ALONE)
def test_each_fault_alone(tmp_path, name):
    """The shortest list around each fault, with retries after it."""
    world = World.begin(tmp_path, 3)
    world.run(["submit", name, "replay", "replay", "submit"])
    world.check()
    assert len(world.acknowledged) >= 2


def test_the_world_sees_a_collector_that_answers_too_early(tmp_path):
    """The test of the test: kills lose what was acknowledged before it was kept."""
    world = World.begin(tmp_path, 4, plant="early answer")

    def kill_often():
        for _ in range(8):
            world.run(["kill"])
            world.check()
            world.collector.start()

    with pytest.raises(AssertionError, match="acknowledged, but lost"):
        kill_often()


# ---- synced before it is answered

CALLS = "fsync,fdatasync,sendto,write,writev,sendmsg,pwrite64"
#: Syncs take 0.3 s: who does not wait for them is early for certain.
SLOW = ("-e", "inject=fsync,fdatasync:delay_enter=300000")


def trace(folder, **options):
    """The system calls of a collector during one submission, in the order of their ends."""
    path, log = folder / "marks.db", folder / "trace"
    collection = marks(100)
    open_store(str(path), collection).close()
    with Collector(str(path), **options) as collector:
        first = mark_submission(collection, 0, f"{0:032x}").to_json()
        assert collector.post(first) == 201
        wait_for_commit(path)  # which must not pass for that of the second
        tracing = subprocess.Popen(
            ["strace", "-f", "-y", "-e", f"trace={CALLS}", *SLOW, "-o", log,
             "-p", str(collector.pid)],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert "attached" in tracing.stderr.readline()
        time.sleep(0.2)
        second = mark_submission(collection, 1, f"{1:032x}").to_json()
        assert collector.post(second) == 201
        time.sleep(0.2)
        tracing.send_signal(signal.SIGINT)
        tracing.communicate(timeout=30)
    return log.read_text().splitlines()


def wait_for_commit(path):
    store = open_store(str(path))
    for _ in range(600):
        if store.numbers():
            break
        time.sleep(0.05)
    store.close()


def synced_first(lines):
    """Whether the log of the store was written, then synced, and only then 201 was sent."""
    written = synced = None
    unfinished = {}
    for place, line in enumerate(lines):
        thread = line.split()[0]
        if "<unfinished" in line:
            unfinished[thread] = line
        whole = unfinished.pop(thread, "") + line if "resumed>" in line else line
        if re.search(r"pwrite64\(\d+<[^>]*-wal>", whole):
            written = place
        if re.search(r"f(data)?sync\(\d+<[^>]*-wal>", whole) and "<unfinished" not in line:
            synced = place
        if re.search(r"(send|write)\w*\(\d+<[^>]*>.*HTTP/1\.1 201", whole):
            return written is not None and synced is not None and written < synced < place
    raise AssertionError("no answer was seen:\n" + "\n".join(lines))


needs_strace = pytest.mark.skipif(
    shutil.which("strace") is None, reason="strace is not installed: the order of calls is unseen"
)


@needs_strace
def test_a_submission_is_synced_before_it_is_answered(tmp_path):
    """kill -9 leaves the page cache, so it cannot tell whether anything was synced: this can."""
    assert synced_first(trace(tmp_path))


@needs_strace
@pytest.mark.parametrize("bug", ["no sync", "early answer"])
def test_the_check_of_syncs_finds_planted_bugs(tmp_path, bug):
    assert not synced_first(trace(tmp_path, plant=bug))
