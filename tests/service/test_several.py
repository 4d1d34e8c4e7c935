"""Three collectors on one PostgreSQL database: whatever dies, each submission is counted once."""

import threading
import time
from contextlib import suppress

import numpy as np
import psycopg
import pytest

from collection_toys import batch, mark_submission, marks, packed, survey
from deniable.errors import StoreUnavailable
from deniable.service.store import Outcome, open_store
from deniable.service.store.pieces import Pieces
from deniable.service.store.seals import seal_kept, seal_of
from several import Several

pytestmark = [pytest.mark.postgres, pytest.mark.crash, pytest.mark.slow]
COUNTED, KNOWN, CONFLICT = Outcome.counted, Outcome.known, Outcome.conflict


def test_three_collectors_lose_nothing_and_count_nothing_twice(server):
    """Kills of collectors and of the database, amid clients that go on at another collector."""
    world = Several.of(server, 1)
    try:
        with world.load():
            for disaster in (world.kill_one, world.crash_database, world.kill_one):
                world.wait_for(60)
                disaster()
            world.wait_for(60)
    finally:
        world.stop()
    world.check()
    assert len(world.acknowledged) == len(world.sent) > 100


def test_a_collector_that_answers_before_the_commit_is_caught(server):
    world = Several.of(server, 2, number=1, plant="early answer")

    def kill_often():
        for _ in range(6):
            with world.load():
                world.wait_for(20)
                world.crash_database()
            world.check()
            for one in world.all:
                one.start()

    try:
        with pytest.raises(AssertionError, match="acknowledged, but lost"):
            kill_often()
    finally:
        world.stop()


def test_two_collectors_that_both_count_one_id_are_caught(server):
    world = Several.of(server, 3, number=2, plant="two count one id")
    try:
        with world.load():
            world.wait_for(80)
    finally:
        world.stop()
    with pytest.raises(AssertionError, match="counted twice"):
        world.check()


# ---- two stores in one process: what happens when

MARKS = marks(64)


def entry(mark, name=None):
    return packed(MARKS, mark_submission(MARKS, mark, f"{mark if name is None else name:032x}"))


@pytest.fixture
def stores(server):
    address = server.database()
    found = [open_store(address, MARKS) for _ in range(3)]
    found[0].packing.warm()
    yield found
    for one in found:
        one.close()


def rows(mark):
    return [(entry(mark)[0], 20_000, entry(mark)[1])]


def tries(store, entries, found):
    try:
        found.append(store.add(entries))
    except StoreUnavailable as error:
        found.append(error)


def test_an_id_that_another_one_is_keeping_is_waited_for(stores):
    """Counted before if that one commits, counted now if it does not."""
    one, other, _ = stores
    for commits, mark in ((True, 1), (False, 2)):
        found = []
        waiting = threading.Thread(
            target=tries, args=(other, [entry(mark), entry(mark + 10)], found)
        )
        with suppress(ZeroDivisionError), one._adding() as (connection, slot):
            one._insert(connection, rows(mark))
            waiting.start()
            time.sleep(0.3)
            assert not found, "it would have to guess"
            if commits:
                counted = Pieces({seal_of("submissions"): seal_kept(rows(mark))})
                for place, tally in one.packing.count([entry(mark)[1]]):
                    counted.add(place, tally)
                one._count(connection, "tallies", counted, slot)
            else:
                raise ZeroDivisionError
        waiting.join()
        assert found == [[KNOWN if commits else COUNTED, COUNTED]]
        assert one.add([entry(mark)]) == [KNOWN]
        assert one.add([entry(mark + 20, name=mark)]) == [CONFLICT]
    assert one.verify() == []


def test_writers_of_the_same_ids_in_other_orders_never_deadlock(stores, server):
    """All ids at once from three sides: PostgreSQL would break a circle after a second."""
    sent = [entry(mark) for mark in range(64)]
    found = []
    rng = np.random.default_rng(1)
    for _ in range(10):
        orders = [[sent[place] for place in rng.permutation(64)] for _ in stores]
        threads = [
            threading.Thread(target=tries, args=(store, order, found))
            for store, order in zip(stores, orders, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert all(isinstance(one, list) for one in found), found
    assert sum(outcome is COUNTED for one in found for outcome in one) == 64
    assert stores[0].verify() == []
    with psycopg.connect(server.address) as connection:
        asked = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        assert connection.execute(asked).fetchone() == (0,)


def test_one_batch_at_two_collectors_at_the_same_moment_is_counted_once(server):
    toys = survey()
    address = server.database()
    stores = [open_store(address, toys) for _ in range(3)]
    stores[0].packing.warm()
    made, another = batch(toys, 200, seed=1), batch(toys, 200, seed=2)
    name, tallies = bytes.fromhex(made.id), stores[0].count_batch(made.body)
    found = []
    threads = [
        threading.Thread(target=lambda s=s: found.append(s.add_batch(name, made.body, tallies)))
        for s in stores
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found, key=str) == [COUNTED, KNOWN, KNOWN]
    assert stores[1].add_batch(name, another.body, stores[0].count_batch(another.body)) == CONFLICT
    assert set(stores[2].numbers().values()) == {200}
    assert stores[0].verify() == []
    for one in stores:
        one.close()


def test_a_purge_waits_for_those_who_add(stores):
    one, other, _ = stores
    one.add([entry(1)])
    found = []
    purging = threading.Thread(target=lambda: found.append(one.purge("2999-01-01")))
    with suppress(ZeroDivisionError), other._adding() as (connection, _):
        other._insert(connection, rows(2))
        purging.start()
        time.sleep(0.3)
        assert not found, "it would miss a row"
        raise ZeroDivisionError
    purging.join()
    assert found == [1]
    assert one.add([entry(1), entry(2)]) == [KNOWN, COUNTED]
    assert one.verify() == []


def test_what_a_server_prefers_does_not_weaken_the_isolation(stores, server):
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute("ALTER ROLE tester SET default_transaction_isolation = 'serializable'")
    try:
        store = open_store(server.address)
        with store._adding() as (connection, _):
            level = connection.execute("SHOW transaction_isolation").fetchone()
        assert level == ("read committed",)
        store.close()
    finally:
        server.do("ALTER ROLE tester RESET default_transaction_isolation")
