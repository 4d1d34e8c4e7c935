"""A database that hangs instead of failing, and threads that never come back: answers in time."""

import os
import signal
import socket
import threading
import time
import traceback
from contextlib import contextmanager, suppress

import psycopg
import pytest

from collection_toys import mark_submission, marks, packed
from collectors import Collector
from deniable.errors import InvalidArgument, StoreUnavailable
from deniable.service.store import Outcome, links, open_store
from deniable.service.store.postgres import _LOCK

pytestmark = pytest.mark.network
MARKS = marks(64)
COUNTED, KNOWN = Outcome.counted, Outcome.known
#: Limits that a test can wait for; a connection takes 2 seconds at least.
SHORT = {"CONNECT": 2, "SILENCE": 2, "LOCK": 0.5, "STATEMENT": 1, "IDLE": 0.7}


def sent(mark):
    return mark_submission(MARKS, mark, f"{mark:032x}")


def entry(mark):
    return packed(MARKS, sent(mark))


@pytest.fixture
def store(server, monkeypatch):
    for name, value in SHORT.items():
        monkeypatch.setattr(links, name, value)
    found = open_store(server.database(), MARKS)
    found.packing.warm()  # not amid a transaction
    yield found
    found.close()


@contextmanager
def within(seconds):
    """The machine may be busy: twice the time, and not for ever."""
    start = time.monotonic()
    yield
    assert time.monotonic() - start < 2 * seconds + 1


@contextmanager
def paused(server):
    server.pause()
    try:
        yield
    finally:
        server.resume()


# ---- the store


def test_a_server_that_is_stopped_is_given_up(store, server):
    assert store.add([entry(0)]) == [COUNTED]
    with paused(server):
        with within(2), pytest.raises(StoreUnavailable, match="no answer for 2 seconds"):
            store.add([entry(1)])
        with within(2), pytest.raises(StoreUnavailable, match="timeout"):
            store.add([entry(1)])
        with within(2), pytest.raises(StoreUnavailable, match="timeout"):
            store.tokens()
    assert store.add([entry(0), entry(1), entry(2)])[0] == KNOWN
    (tally,) = store.tallies().values()
    assert (tally.counts[:3].tolist(), tally.n) == ([1, 1, 1], 3)
    assert store.verify() == []


def test_a_host_that_swallows_everything_is_given_up(store):
    """As behind a firewall: it takes the connection, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as hole:
        address = f"postgresql://me:hush@127.0.0.1:{hole.getsockname()[1]}/x"
        with within(2), pytest.raises(StoreUnavailable, match="cannot be used now") as refused:
            open_store(address)
    assert "hush" not in "".join(traceback.format_exception(refused.value))


def test_a_lock_that_another_session_holds_is_waited_for_no_longer_than_stated(store, server):
    store.add([entry(0)])
    with psycopg.connect(server.address, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        with within(1), pytest.raises(StoreUnavailable, match="lock timeout"):
            store.add([entry(1)])
        assert len(open_store(server.address).numbers()) == 1, "readers need no lock"
        other.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
        assert store.add([entry(1)]) == [COUNTED]


def test_a_collector_that_is_stopped_amid_a_transaction_does_not_stop_others(
    store, server, monkeypatch
):
    """The server ends its session, and it learns that when it goes on: nothing was kept."""
    other = open_store(server.address)
    with monkeypatch.context() as patient:
        for name in ("SILENCE", "LOCK", "STATEMENT"):
            patient.setattr(links, name, 20)
        other.add([entry(0)])
    with pytest.raises(StoreUnavailable, match="idle-in-transaction"):
        stopped(store, other)
    assert store.tokens() == {}
    assert store.add([entry(1), entry(2)]) == [KNOWN, COUNTED]
    assert store.verify() == []
    other.close()


def stopped(store, other):
    """A transaction that does not go on, while another one waits for its lock."""
    with store._transaction() as connection:
        connection.execute("INSERT INTO tokens VALUES ('x', 'y')")
        with within(1):
            assert other.add([entry(1)]) == [COUNTED]


@pytest.mark.parametrize("name", ["fsync", "full_page_writes"])
def test_a_server_that_ceases_to_sync_is_noticed(store, server, name):
    """Whether it was told while it ran, or started anew with it."""
    assert store.add([entry(0)]) == [COUNTED]
    try:
        server.configure(name, "off")
        with pytest.raises(StoreUnavailable, match=f"does not sync what it commits: {name} is off"):
            store.add([entry(1)])
        server.stop()
        server.start()
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                store.add([entry(1)])
        with pytest.raises(StoreUnavailable, match="does not sync"):
            store.add([entry(1)])
    finally:
        server.configure(name, None)
    assert store.add([entry(1)]) == [COUNTED]


# ---- the collector

CONSTANTS = {f"store.links.{name}": value for name, value in SHORT.items()} | {
    "store.links.IDLE": 10, "writer.PATIENCE": 3, "writer.FINISH": 1, "run.GRACE": 1, "run.END": 4,
    "access.FRESH": 0,
}  # fmt: skip


def status_of(collector, path, found):
    with suppress(OSError):
        found.append(collector.ask("GET", path)[0])


def test_a_collector_lives_while_its_database_hangs(server):
    """An unauthenticated question does not hold up others; submissions are answered; it ends."""
    address = server.database()
    open_store(address, MARKS).close()
    collector = Collector(address, constants=CONSTANTS)
    try:
        assert collector.post(sent(0).to_json()) == 201
        with paused(server):
            found = []
            asking = [
                threading.Thread(target=status_of, args=(collector, "/v2/status", found))
                for _ in range(60)
            ]
            for thread in asking:
                thread.start()
            with within(0.5):
                assert collector.ask("GET", "/v2/manifest")[0] == 200
            with within(3):
                assert collector.post(sent(1).to_json()) == 503
            for thread in asking:
                thread.join()
            assert found == [503] * 60
            assert collector.ask("GET", "/v2/health")[0] == 503
        assert collector.post(sent(0).to_json()) == 200
        assert collector.post(sent(1).to_json()) in (200, 201)
        assert collector.ask("GET", "/v2/health")[0] == 200
        server.pause()
        with within(4):
            ended(collector)
    finally:
        server.resume()
        collector.stop()


def ended(collector):
    os.kill(collector.pid, signal.SIGTERM)
    return collector.process.wait(60)


def test_a_thread_that_never_comes_back_cannot_keep_a_collector(tmp_path):
    path = str(tmp_path / "store.db")
    open_store(path, MARKS).close()
    limits = {"writer.PATIENCE": 1, "writer.FINISH": 60, "run.GRACE": 1, "run.END": 2}
    collector = Collector(path, plant="a store that hangs", constants=limits)
    with within(1):
        assert collector.post(sent(0).to_json()) == 503
    with within(0.5):  # the others need not wait
        assert collector.post(sent(1).to_json()) == 503
    with within(2):
        ended(collector)
    assert "did not answer within 1 seconds" in collector.stop()[1]


# ---- addresses that cannot be read

BROKEN = [
    "postgresql://me:hush hush@127.0.0.1:1/x y:hush@z",
    "postgresql://me:hush/hush@127.0.0.1:1/x",
    "postgresql://me:hush@hush@127.0.0.1:1/x",
    "postgresql://me:hush",
    "postgresql://me:hush/x",
    "postgresql://me:hush%zz@127.0.0.1:1/x",
    "postgresql://me:hush@127.0.0.1:hush/x",
    "postgresql://me:hush@[127.0.0.1:1/x",
    "postgresql://me@127.0.0.1:1/x?password=hush=hush",
    "postgresql://me@127.0.0.1:1/x?password=hush&nonsense=1",
    "postgresql://me@127.0.0.1:1/x?password=hush%zz",
    "postgres://me:hush?@hush@127.0.0.1:1/x",
    "Postgresql://me:hush@127.0.0.1:1/x",
    "postgressql://me:hush@127.0.0.1/x",
    "postgresql:/me:hush@127.0.0.1/x",
    "postgresql:me:hush@127.0.0.1/x",
    " postgresql://me:hush@127.0.0.1/x",
    "mysql://me:hush@127.0.0.1/x",
    "me:hush@127.0.0.1/x",
    "host=127.0.0.1 user=me password=hush",
]
#: These are sound; but nobody answers there, or no such thing is allowed.
DEAD = [
    "postgresql://me:hush?hush@127.0.0.1:1/x",
    "postgresql://me:hush%20hush@127.0.0.1:1/x",
    "postgresql://me:hu%73h@127.0.0.1:1,127.0.0.1:2/x",
    "postgresql://127.0.0.1:1/x?user=me&password=hush",
    "postgresql://me@127.0.0.1:1/x?password=hush&sslmode=hush",
]


@pytest.mark.parametrize("collection", [None, MARKS])
@pytest.mark.parametrize("address", BROKEN + DEAD)
def test_no_address_shows_its_password(address, collection, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((InvalidArgument, StoreUnavailable)) as refused:
        open_store(address, collection)
    text = "".join(traceback.format_exception(refused.value))
    shown = text.replace(address, "") + repr(refused.value) + repr(vars(refused.value))
    assert "hush" not in shown.replace("open_store(address", "")
    assert isinstance(refused.value, InvalidArgument) == (address in BROKEN)
    assert list(tmp_path.iterdir()) == [], "an address is no name of a file"


def test_the_command_shows_no_password_either():
    from command import run

    for command in (["verify-store"], ["token"], ["backup"]):
        rest = ["copy.db"] if command == ["backup"] else []
        done = run(*command, BROKEN[1], *rest, code=2)
        assert "hush" not in done.stdout + done.stderr
        assert "postgresql://user:password@host:5432/database" in done.stderr
