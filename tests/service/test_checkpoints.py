"""What was verified is not read again, and what that leaves unseen is known exactly."""

import random
import re
import sqlite3
from datetime import date

import pytest

import damages
from collection_toys import batch, by_region, mark_submission, marks, packed
from deniable.errors import CorruptData, MismatchError
from deniable.service.store import damage, open_store, pieces, sql
from deniable.service.store.checkpoints import Checkpoint

MARKS = marks(4_000)
FIRST, NUMBER = 20_000, 30


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def address(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    return request.getfixturevalue("server").database()


def fill(store, monkeypatch, days):
    """Five submissions and a batch on each day."""
    for day in days:
        monkeypatch.setattr(sql, "today", lambda day=day: day)
        first = 5 * (day - FIRST)
        sent = [mark_submission(MARKS, m, f"{m:032x}") for m in range(first, first + 5)]
        store.add([packed(MARKS, one) for one in sent])
        made = batch(MARKS, 3, seed=day)
        store.add_batch(bytes.fromhex(made.id), made.body, store.count_batch(made.body))


def verified(store, path, monkeypatch=None):
    """What is found, and how many rows were read for it."""
    known, read = Checkpoint.read(path, store.collection.digest), [0]
    found = store.verify(known, progress=lambda done, total: read.append(done))
    if not found:
        known.write(path)
    return found, read[-1]


@pytest.mark.slow
def test_only_new_days_and_a_tenth_of_the_others_are_read(address, tmp_path, monkeypatch):
    store, path = open_store(address, MARKS), tmp_path / "checked"
    fill(store, monkeypatch, range(FIRST, FIRST + NUMBER))
    assert verified(store, path) == ([], 6 * NUMBER)
    fill(store, monkeypatch, range(FIRST + NUMBER, FIRST + NUMBER + 2))
    assert verified(store, path) == ([], 6 * (NUMBER // 10 + 2))
    read = Checkpoint.read(path, MARKS.digest)
    assert read.run == 3
    assert sorted({day.run for day in read.days.values()}) == [1, 2]
    for _ in range(12):
        found, _ = verified(store, path)
        assert found == []
    # Every day was read again within eleven runs.
    read = Checkpoint.read(path, MARKS.digest)
    assert min(day.run for day in read.days.values()) >= read.run - 11
    store.close()


@pytest.mark.slow
def test_days_that_were_purged_are_read_again(address, tmp_path, monkeypatch):
    store, path = open_store(address, MARKS), tmp_path / "checked"
    fill(store, monkeypatch, range(FIRST, FIRST + NUMBER))
    assert verified(store, path)[0] == []
    store.purge(date(2024, 10, 9))  # the first five days
    found, read = verified(store, path)
    assert found == []
    assert read == 6 * (5 + 3)
    store.close()


@pytest.mark.slow
def test_an_interrupted_run_keeps_what_it_verified(address, tmp_path, monkeypatch):
    monkeypatch.setattr(damage, "PASS", 20)
    store, path = open_store(address, MARKS), tmp_path / "checked"
    fill(store, monkeypatch, range(FIRST, FIRST + NUMBER))
    known = Checkpoint(MARKS.digest)

    def stop(done, total):
        assert total == 6 * NUMBER
        if done > 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.verify(known, progress=stop)
    known.write(path)
    assert len(known.days) == 20  # of five passes
    found, read = verified(store, path)
    assert found == []
    assert read == 6 * NUMBER - 5 * (20 - 2)
    store.close()


def test_a_tally_that_is_wrong_is_found_without_reading_its_reports(tmp_path, monkeypatch):
    store, path = open_store(str(tmp_path / "store.db"), MARKS), tmp_path / "checked"
    fill(store, monkeypatch, range(FIRST, FIRST + NUMBER))
    assert verified(store, path)[0] == []
    with sqlite3.connect(store.path) as connection:
        connection.execute("UPDATE tallies SET n = n + 1 WHERE report = 'mark'")
    connection.close()
    before = path.read_bytes()
    assert verified(store, path)[0] == ["mark, round 1: the tally has 241 reports, a recount 240"]
    assert path.read_bytes() == before
    store.close()


@pytest.mark.slow
def test_a_changed_row_of_an_old_day_is_found_when_its_turn_comes(tmp_path, monkeypatch):
    store, path = open_store(str(tmp_path / "store.db"), MARKS), tmp_path / "checked"
    fill(store, monkeypatch, range(FIRST, FIRST + NUMBER))
    assert verified(store, path)[0] == []
    with sqlite3.connect(store.path) as connection:
        last = f"id = (SELECT max(id) FROM submissions WHERE day = {FIRST + NUMBER - 1})"
        connection.execute(f"UPDATE submissions SET body = zeroblob(length(body)) WHERE {last}")
    connection.close()
    runs = 0
    while not (found := verified(store, path)[0]):
        runs += 1
    assert 0 < runs < 10
    assert "submissions: a row of 2024-11-02 is not as it was when it was verified" in found
    store.close()


def test_a_checkpoint_is_for_one_collection_and_whole(tmp_path, monkeypatch):
    store, path = open_store(str(tmp_path / "store.db"), MARKS), tmp_path / "checked"
    fill(store, monkeypatch, [FIRST])
    verified(store, path)
    with pytest.raises(MismatchError, match="another collection"):
        Checkpoint.read(path, by_region().digest)
    content = path.read_bytes()
    path.write_bytes(content[:-20] + b"x" + content[-19:])
    with pytest.raises(CorruptData, match="checkpoint"):
        Checkpoint.read(path, MARKS.digest)
    store.close()


# ---- every damage


#: What a run that trusts all days does not see: another value in a row that is still there.
UNSEEN = re.compile(r"(submissions|batches)\.(id|body): ")


@pytest.mark.slow
def test_what_a_checkpoint_leaves_unseen_is_another_value_in_a_row(tmp_path, monkeypatch):
    """Everything else is found at once: rows gone, doubled or on another day, and all sums.

    `docs/collector.md` says the same in a table.
    """
    monkeypatch.setattr(pieces, "PIECE", 3)
    source = tmp_path / "store.db"
    damages.whole(str(source))
    store = open_store(str(source))
    known = Checkpoint(store.collection.digest)
    assert store.verify(known) == []
    known.write(tmp_path / "checked")
    store.close()
    monkeypatch.setattr(Checkpoint, "trusted", everything)
    unseen, tried = set(), 0
    rng = random.Random(2)
    for name, change in damages.damages(str(source), rng, rows=1):
        if rng.random() < 0.5:  # the others in the test of a whole verification
            continue
        monkeypatch.setattr(damages, "told", lambda copy: told(copy, tmp_path / "checked"))
        said = damages.tried(source, change)
        tried += said is not None
        if said == "":
            unseen.add(name)
    assert tried > 60
    assert unseen
    assert all(UNSEEN.match(name) for name in unseen), unseen


def everything(self, table, there):
    """All days with as many rows as before: none is read again because it is its turn."""
    found = {}
    for day, seen in there.items():
        known = self.days.get((table, day))
        if known is not None and known.seen == seen:
            found[day] = known
    return found


def told(copy, path):
    try:
        store = open_store(str(copy))
        found = store.verify(Checkpoint.read(path, store.collection.digest))
        store.close()
    except ValueError as error:
        found = [str(error)]
    return "; ".join(found)
