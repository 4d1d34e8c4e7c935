"""Old reports become counts, a step at a time; nothing is lost or counted twice on the way."""

import os
import subprocess
import sys
import threading
import time
from datetime import timedelta

import numpy as np
import pytest

from collection_toys import batch, mark_submission, marks, packed, submission, survey
from collectors import Collector
from deniable.answers import Items
from deniable.audit.black_box.everything import usual_domain
from deniable.collection.manifest import Collection
from deniable.core.domain import Domain
from deniable.errors import InvalidArgument
from deniable.mechanisms import mechanisms
from deniable.service.analysis import Analysis, EstimateQuery, queries_of
from deniable.service.retention import first_kept
from deniable.service.store import Outcome, open_store, purging
from deniable.service.store.base import EPOCH, today

pytestmark = pytest.mark.slow
TOYS, MARKS = survey(), marks(4_000)
COUNTED, KNOWN = Outcome.counted, Outcome.known
TOMORROW = EPOCH + timedelta(days=today() + 1)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def address(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    return request.getfixturevalue("server").database()


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch):
    monkeypatch.setattr(purging, "STEP", 7)
    monkeypatch.setattr(purging, "READ", 30)
    monkeypatch.setattr(purging, "PAUSE", 0)


def entry(mark):
    return packed(MARKS, mark_submission(MARKS, mark, f"{mark * 2**110:032x}"))


def filled(address, number=100):
    store = open_store(address, MARKS)
    assert store.add([entry(mark) for mark in range(number)]) == [COUNTED] * number
    made = batch(MARKS, 50)
    assert store.add_batch(bytes.fromhex(made.id), made.body, store.count_batch(made.body))
    return store


def left(store):
    return sum(map(len, store.singles())) + len(list(store.batches()))


def plain(store):
    return {place: (tally.counts.tolist(), tally.n) for place, tally in store.tallies().items()}


# ---- estimates


def collections():
    """One that asks a question by each mechanism that devices run; drawn questions are joint."""
    for name, family in mechanisms().items():
        if family.on_devices and name != "joint":
            domain = usual_domain(family, 3)
            if domain.is_listed:
                domain = Domain(["a", "b", "c"][: domain.size])
            if isinstance(domain, Items):
                domain = Items(["a", "b", "c"])
            yield pytest.param(Collection.split({"q": family.example(domain, 1.0)}, 8.0), id=name)
    yield pytest.param(survey("sampled"), id="joint")


@pytest.mark.parametrize("collection", list(collections()))
def test_estimates_are_the_same_to_the_bit(tmp_path, collection):
    """By every method that needs counts, of every mechanism that devices run."""
    store = open_store(str(tmp_path / "store.db"), collection)
    made = batch(collection, 400)
    store.add_batch(bytes.fromhex(made.id), made.body, store.count_batch(made.body))
    rng = np.random.default_rng(2)
    store.add([packed(collection, submission(collection, rng)) for _ in range(20)])
    before = estimates(store)
    assert store.purge(TOMORROW) == 21
    assert left(store) == 0
    assert estimates(store) == before
    assert store.verify() == []
    store.close()


def estimates(store):
    found = {}
    for question in store.collection.questions:
        asked = store.collection.asked(question.name)
        tally = asked.tally(store.tally(asked.report.name, 1))
        task, queries = tally.mechanism.task, queries_of(asked)
        given = {name: ("a", "b") for name, query in queries.items() if query.needed}
        for method in task.methods(tally.mechanism):
            found[question.name, method] = tally.estimate(method, **given).to_json()
    return found


# ---- steps


def test_respondents_have_their_turn_between_steps(address):
    """What they send meanwhile is counted, a retry is known, and the tallies are always right."""
    store, writing = filled(address), open_store(address)
    steps, seen = [], []

    def between(done, total):
        steps.append((done, total))
        fresh = mark_submission(MARKS, 1_000, f"{len(steps):032x}")
        assert writing.add([packed(MARKS, fresh), entry(5)]) == [COUNTED, KNOWN]
        seen.append(store.verify())

    day = EPOCH + timedelta(days=today())
    assert store.purge(day, progress=between) == 0
    assert steps == [(0, 0)]
    assert store.purged_before() is None
    store.purge(TOMORROW, progress=between)
    assert len(steps) > 100 / 7
    assert steps[1] == (0, 102)  # which counts the one that was sent above
    assert all(one[0] <= one[1] for one in steps)
    assert seen == [[]] * len(steps)
    assert store.purged_before() == TOMORROW
    (tally,) = store.tallies().values()
    assert tally.n == 150 + len(steps)
    store.close()
    writing.close()


def test_two_purges_at_once_forget_everything_once(address):
    store = filled(address, 300)
    before = plain(store)
    others = [store.another() for _ in range(2)]
    numbers = []
    threads = [
        threading.Thread(target=lambda one=one: numbers.append(one.purge(TOMORROW)))
        for one in others
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(numbers) == 301
    assert left(store) == 0
    assert plain(store) == before
    assert store.purged() == store.numbers()
    assert store.verify() == []
    for one in (store, *others):
        one.close()


def test_a_day_that_is_far_ahead_forgets_no_day_to_come(address):
    """A purge says since when reports are only counted; later ones are there, and are exported."""
    store = filled(address)
    assert store.purge("2999-01-01") == 101
    assert store.purged_before() == TOMORROW
    assert store.purge("2999-01-01") == 0
    store.close()


KILLED = """
import os, sys
from datetime import date
from deniable.service.store import open_store, purging
from deniable.service.store.sql import SQLStore
purging.STEP, purging.PAUSE, moment, calls = 7, 0, int(sys.argv[2]), []
def deadly(task):
    def run(*given):
        calls.append(task)
        if len(calls) == moment:
            os.kill(os.getpid(), 9)
        return task(*given)
    return run
purging._emptied = deadly(purging._emptied)
SQLStore._count = classmethod(deadly(SQLStore._count.__func__))
def careless(store, table, before, rows):
    "Delete first, and count in another transaction."
    with store._transaction() as connection:
        purging._emptied(store, connection, table, [name for name, _, _ in rows])
    sound(store, table, before, rows)
def twice(store, table, before, rows):
    "Count first, and delete in another transaction."
    emptied = purging._emptied
    purging._emptied = lambda *given: len(given[3])
    sound(store, table, before, rows)
    with store._transaction() as connection:
        emptied(store, connection, table, [name for name, _, _ in rows])
    purging._emptied = emptied
sound = purging._step
if len(sys.argv) > 3:
    purging._step = {"careless": careless, "twice": twice}[sys.argv[3]]
open_store(sys.argv[1]).purge("2999-01-01")
"""


def killed(address, moment, *plant):
    command = [sys.executable, "-c", KILLED, address, str(moment), *plant]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr


needs_kill = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs kill")


@needs_kill
@pytest.mark.crash
def test_a_purge_that_was_killed_goes_on(address):
    """Killed in its third step, between two statements: two steps are done, and no half."""
    store = filled(address)
    before = plain(store)
    killed(address, 9)
    assert store.verify() == []
    assert plain(store) == before
    assert left(store) == 101 - 2 * 7
    assert store.purge(TOMORROW) == 101 - 2 * 7
    assert store.verify() == []
    assert plain(store) == before
    assert store.purged() == store.numbers()
    assert store.add([entry(mark) for mark in range(100)]) == [KNOWN] * 100
    assert plain(store) == before
    store.close()


@needs_kill
@pytest.mark.crash
@pytest.mark.parametrize(("plant", "moment"), [("careless", 2), ("twice", 4)])
def test_a_step_that_is_no_transaction_is_caught(tmp_path, plant, moment):
    """The test of the test: half a step loses its reports, or counts them twice."""
    address = str(tmp_path / "store.db")
    filled(address).close()
    killed(address, moment, plant)
    store = open_store(address)
    assert store.verify() != []
    store.close()


# ---- a collector that forgets by itself


@pytest.mark.network
def test_a_collector_forgets_every_day(address):
    """After 31 days, of which it keeps 30; what is sent meanwhile counts, and a retry does not."""
    store = filled(address)
    bodies = [mark_submission(MARKS, m, f"{m * 2**110:032x}").to_json() for m in (3, 2_000)]
    constants = {"retention.EVERY": 0.05}
    with Collector(address, keep_days=30, days=31, constants=constants) as collector:
        assert [collector.post(body) for body in bodies] == [200, 201]
        deadline = time.monotonic() + 20
        while left(store) > 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert [collector.post(body) for body in bodies] == [200, 200]
    assert left(store) == 1
    assert store.purged_before() == TOMORROW
    (tally,) = store.tallies().values()
    assert tally.n == 151
    assert store.verify() == []
    store.close()


def test_days_are_kept_besides_today():
    assert first_kept(1) == EPOCH + timedelta(days=today() - 1)
    assert first_kept(10**20) == EPOCH


def test_a_purge_needs_a_real_day(address):
    store = open_store(address, TOYS)
    with pytest.raises(InvalidArgument, match="a day, such as"):
        store.purge("soon")
    store.close()


# ---- what analysts are told


def test_analysts_are_told_since_when_reports_are_only_counted(address):
    """Methods that need the reports are offered, on exports, as long as all are there."""
    store = open_store(address, TOYS)
    made = batch(TOYS, 300)
    store.add_batch(bytes.fromhex(made.id), made.body, store.count_batch(made.body))
    analysis = Analysis(store)
    before = analysis.status()
    offered = {known["name"]: known["methods_of_exports"] for known in before["questions"]}
    assert before["only_counted_before"] is None
    assert offered["pets"] == ["likelihood"]
    assert offered["way"] == []  # counts are enough for it
    with pytest.raises(InvalidArgument, match="see `deniable export`"):
        analysis.estimate(EstimateQuery("pets", method="likelihood"))
    store.purge(TOMORROW)
    after = analysis.status()
    assert after["only_counted_before"] == str(TOMORROW)
    assert all(known["methods_of_exports"] == [] for known in after["questions"])
    assert [q["methods"] for q in after["questions"]] == [q["methods"] for q in before["questions"]]
    with pytest.raises(InvalidArgument, match=f"reports before {TOMORROW} are only counted"):
        analysis.estimate(EstimateQuery("pets", method="likelihood"))
    assert analysis.estimate(EstimateQuery("way", method="likelihood")).n == 300
    store.close()
