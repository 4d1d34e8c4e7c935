"""Both kinds of store keep the same promises: counted once, on the disk, forgotten on demand."""

import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path

import numpy as np
import pytest

from collection_toys import batch, by_region, mark_submission, marks, packed, submission, survey
from deniable.core.tally import Tally
from deniable.errors import CorruptData, InvalidArgument, MismatchError, StoreUnavailable
from deniable.service.access import new_token
from deniable.service.encoding import Packing
from deniable.service.store import Outcome, open_store
from deniable.service.store.base import hash_token, token_fits
from deniable.service.store.pieces import ROW
from deniable.service.store.seals import minus, seal_of, seal_rows

TOYS = survey()
COUNTED, KNOWN, CONFLICT = Outcome.counted, Outcome.known, Outcome.conflict
TOMORROW = (datetime.now(UTC) + timedelta(days=2)).date()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def address(request, tmp_path):
    """Where a new store can be made."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    return request.getfixturevalue("server").database()


@pytest.fixture
def store(address):
    found = open_store(address, TOYS)
    yield found
    found.close()


def entries(n, seed=1, collection=TOYS):
    rng = np.random.default_rng(seed)
    return [packed(collection, submission(collection, rng)) for _ in range(n)]


def other(entry, among):
    """Another submission with the same id."""
    return entry[0], next(body for _, body in among if body != entry[1])


def counts_of(store):
    return plain(store.tallies())


def plain(tallies):
    return {place: (tally.counts.tolist(), tally.n) for place, tally in tallies.items()}


def expected(bodies, collection=TOYS):
    """Counts by the mechanisms themselves, a report at a time."""
    total = {}
    for body in bodies:
        for place, tally in Packing(collection).count([body]):
            total[place] = total[place].merge(tally) if place in total else tally
    return plain(total)


def add_batch(store, made):
    return store.add_batch(bytes.fromhex(made.id), made.body, store.count_batch(made.body))


# ---- counted once


def test_every_submission_is_counted_once(store):
    sent = entries(50)
    assert store.add(sent) == [COUNTED] * 50
    assert store.add(sent) == [KNOWN] * 50
    assert store.add([sent[0], sent[0]]) == [KNOWN] * 2
    assert counts_of(store) == expected(body for _, body in sent)
    assert store.verify() == []


def test_a_retry_in_the_same_group_is_a_retry(store):
    first, second = entries(2)
    altered = other(first, [second])
    assert store.add([first, first, altered, second]) == [COUNTED, KNOWN, CONFLICT, COUNTED]
    assert counts_of(store) == expected([first[1], second[1]])


def test_an_id_with_other_contents_is_a_conflict_and_changes_nothing(store):
    first, second = entries(2)
    store.add([first])
    before = counts_of(store)
    assert store.add([other(first, [second])]) == [CONFLICT]
    assert counts_of(store) == before
    assert store.verify() == []


def test_batches_are_counted_once_and_conflict_like_submissions(store):
    made, another = batch(TOYS, 300, seed=1), batch(TOYS, 300, seed=2)
    assert add_batch(store, made) == COUNTED
    assert add_batch(store, made) == KNOWN
    name, counts = bytes.fromhex(made.id), store.count_batch(another.body)
    assert store.add_batch(name, another.body, counts) == CONFLICT
    assert set(store.numbers().values()) == {300}
    assert store.verify() == []


def test_nothing_is_an_empty_group(store):
    assert store.add([]) == []
    assert store.numbers() == {}
    assert store.tallies() == {}
    assert store.verify() == []


@pytest.mark.parametrize("divide", ["split", "sampled"])
def test_rounds_and_drawn_questions_are_kept_apart(address, divide):
    collection = survey(divide) if divide == "sampled" else survey(rounds=3)
    store = open_store(address, collection)
    rng = np.random.default_rng(3)
    rounds = [1] if divide == "sampled" else [1, 2, 3]
    sent = [packed(collection, submission(collection, rng, r)) for r in rounds for _ in range(40)]
    store.add(sent)
    add_batch(store, batch(collection, 100))
    assert store.verify() == []
    total = sum(store.numbers().values())
    assert total == (140 if divide == "sampled" else 4 * 220)
    assert {place.round for place in store.numbers()} == set(rounds)
    store.close()


def test_strata_are_kept_apart_and_estimated_together(address):
    collection = by_region()
    store = open_store(address, collection)
    rng, strata = np.random.default_rng(4), [0, 1, 1, 5, 5, 5]
    sent = [submission(collection, rng, fields=collection.fields_of(s)) for s in strata]
    store.add([packed(collection, one) for one in sent])
    add_batch(store, batch(collection, 30, fields=collection.fields_of(2)))
    numbers = {0: 1, 1: 2, 2: 30, 5: 3}
    for report in collection.reports:
        found = {p.stratum: n for p, n in store.numbers().items() if p.report == report.name}
        assert found == numbers
        tallies = [t for p, t in store.tallies().items() if p.report == report.name]
        whole = store.tally(report.name, 1)
        assert whole == reduce(Tally.merge, tallies)
        assert whole.n == 36
    assert store.verify() == []
    store.purge("2999-01-01")
    assert store.purged() == store.numbers()
    assert store.verify() == []
    store.close()


def test_a_question_may_have_any_name(address):
    """Names of questions are also names of columns."""
    from deniable.collection.survey import survey_of

    names = ("head", "body", "id", "round", "n", "report", "cohort")
    asked = [{"name": name, "ask": "?", "kind": "yes/no"} for name in names]
    collection = survey_of({"title": "Names", "epsilon": 4.0, "questions": asked}).collection
    store = open_store(address, collection)
    assert store.add(entries(20, collection=collection)) == [COUNTED] * 20
    assert add_batch(store, batch(collection, 30)) == COUNTED
    assert store.verify() == []
    store.close()


# ---- restarts, several at once


def test_what_was_kept_is_there_after_a_restart(address):
    sent = entries(20)
    store = open_store(address, TOYS)
    store.add(sent)
    made = batch(TOYS, 50)
    add_batch(store, made)
    kept = counts_of(store)
    store.close()
    again = open_store(address)
    assert again.collection.digest == TOYS.digest
    assert counts_of(again) == kept
    assert again.add(sent) == [KNOWN] * 20
    assert add_batch(again, made) == KNOWN
    again.close()


def test_two_stores_at_once_count_everything_once(address):
    """The same submissions through two writers: each is counted by one of them."""
    sent = entries(200)
    found = [[], []]

    def write(which):
        store = open_store(address, TOYS)
        order = np.random.default_rng(which).permutation(len(sent))
        for group in np.array_split(order, 40):
            found[which] += store.add([sent[place] for place in group])
        store.close()

    writers = [threading.Thread(target=write, args=(which,)) for which in (0, 1)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sum(outcome is COUNTED for both in found for outcome in both) == len(sent)
    store = open_store(address)
    assert counts_of(store) == expected(body for _, body in sent)
    assert store.verify() == []
    store.close()


def add_marks(address, first, last):
    """In a process of its own: add marks one by one."""
    store = open_store(address, marks(64))
    store.packing.warm()  # as collectors do: others wait for a transaction that compiles
    for mark in range(int(first), int(last)):
        sent = mark_submission(store.collection, mark, f"{mark:032x}")
        assert store.add([packed(store.collection, sent)]) in ([COUNTED], [KNOWN])


@pytest.mark.slow
def test_processes_that_begin_at_once_share_a_store(address):
    """Three processes make the store, and write marks that overlap: each mark is counted once."""
    here = Path(__file__)
    code = "import sys, test_store; test_store.add_marks(*sys.argv[1:])"
    ranges = [(0, 40), (20, 60), (0, 60)]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, address, str(a), str(b)],
            cwd=here.parent, stderr=subprocess.PIPE,
        )
        for a, b in ranges
    ]  # fmt: skip
    for process in running:
        _, wrong = process.communicate(timeout=120)
        assert process.returncode == 0, wrong.decode()
    store = open_store(address)
    (tally,) = store.tallies().values()
    assert tally.n == 60
    assert tally.counts.tolist() == [1] * 60 + [0] * 4
    assert store.verify() == []
    store.close()


@pytest.mark.slow
def test_a_store_that_is_written_to_verifies(address):
    """A recount while others write sees one state, not a bit of each."""
    store, writing = open_store(address, TOYS), open_store(address, TOYS)
    store.add(entries(2_000, seed=9))
    stop = threading.Event()

    def write():
        for seed in range(100, 2_000):
            if stop.is_set():
                return
            writing.add(entries(3, seed))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert [store.verify() for _ in range(15)] == [[]] * 15
    finally:
        stop.set()
        writer.join()
    store.close()
    writing.close()


# ---- purge


def needles(sent):
    """Bytes that are in a file as long as it holds these submissions."""
    return [body for _, body in sent if len(set(body)) > 3]


def test_a_purge_forgets_reports_but_neither_counts_nor_ids(store):
    sent, made = entries(60), batch(TOYS, 70)
    store.add(sent)
    add_batch(store, made)
    kept = counts_of(store)
    assert store.purge("1999-12-31") == 0
    assert store.purge(TOMORROW) == 61
    assert counts_of(store) == kept
    assert list(store.singles()) == []
    assert list(store.batches()) == []
    assert store.verify() == []
    assert store.add(sent) == [KNOWN] * 60
    assert add_batch(store, made) == KNOWN
    assert counts_of(store) == kept
    more = entries(10, seed=2)
    assert store.add(more) == [COUNTED] * 10
    assert store.verify() == []
    assert store.purge(TOMORROW) == 10
    assert store.verify() == []


def test_only_older_days_are_purged(store, monkeypatch):
    """Also where the clock of the machine jumps."""
    from deniable.service.store import sql

    days = [20_000, 20_003, 19_000, 20_001]
    for seed, day in enumerate(days):
        monkeypatch.setattr(sql, "today", lambda day=day: day)
        store.add(entries(5, seed))
    assert store.purge("2024-10-04") == 5  # day 20,000 is 2024-10-04
    assert store.purge("2024-10-05") == 5
    assert sum(map(len, store.singles())) == 10
    assert store.verify() == []


@pytest.mark.slow
def test_purged_bytes_leave_the_files(address, request, tmp_path):
    """What lies in the tables' files after a purge holds no report of those that were purged."""
    store = open_store(address, TOYS)
    sent, made = entries(400), batch(TOYS, 500)
    store.add(sent)
    add_batch(store, made)
    sought = [*needles(sent)[:50], made.body[-400:-200]]
    folder = tmp_path
    if address.startswith("postgresql"):
        server = request.getfixturevalue("server")
        # As the server does on its own at times: its statistics must not hold any report, either.
        server.do("ANALYZE deniable.submissions, deniable.batches", "CHECKPOINT")
        folder, sought = Path(server.data) / "base", sought[:-1]  # batches are compressed there
    assert all(found_in(folder, sought)), "the test would find nothing in any case"
    store.purge(TOMORROW, rewrite=True)
    if address.startswith("postgresql"):
        server.do("CHECKPOINT")
    assert not any(found_in(folder, sought))
    assert store.verify() == []
    store.close()


def found_in(folder, sought):
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return [any(needle in content for content in files) for needle in sought]


@pytest.mark.slow
def test_a_purge_that_a_reader_hinders_says_so(tmp_path, monkeypatch):
    """The old bytes stay in SQLite's log as long as somebody reads them: no success is claimed."""
    from deniable.service.store import sqlite

    monkeypatch.setattr(sqlite, "PATIENCE", 0.2)
    store = open_store(str(tmp_path / "store.db"), TOYS)
    store.add(entries(50))
    reading = store.singles()
    next(reading)
    with pytest.raises(StoreUnavailable, match="purge"):
        store.purge(TOMORROW)
    reading.close()
    assert store.verify() == []
    assert store.purge(TOMORROW) == 0
    assert not any(found_in(tmp_path, needles(entries(50))))
    store.close()


@pytest.mark.parametrize("before", ["yesterday", "2026-13-01", None, 20_000, datetime.now(UTC)])
def test_a_purge_needs_a_day(store, before):
    with pytest.raises(InvalidArgument, match="a day, such as"):
        store.purge(before)


# ---- verify


def test_verify_finds_a_tally_that_was_tampered_with(store, address, request):
    store.add(entries(30))
    assert store.verify() == []
    change = "UPDATE tallies SET n = n + 1 WHERE report = 'ever'"
    if address.startswith("postgresql"):
        request.getfixturevalue("server").do("SET search_path = deniable", change)
    else:
        with sqlite3.connect(address) as connection:
            connection.execute(change)
        connection.close()
    assert store.verify() == ["ever, round 1: the tally has 31 reports, a recount 30"]


def test_verify_finds_counts_that_were_moved(tmp_path):
    store = open_store(str(tmp_path / "s.db"), TOYS)
    store.add(entries(30))
    with sqlite3.connect(store.path) as connection:
        ((counts,),) = connection.execute("SELECT counts FROM tallies WHERE report = 'way'")
        moved = np.frombuffer(counts, "<i8")[::-1].tobytes()
        assert moved != counts
        connection.execute("UPDATE tallies SET counts = ? WHERE report = 'way'", [moved])
    connection.close()
    assert store.verify() == ["way, round 1: the tally of 30 reports differs from a recount"]
    store.close()


def test_verify_finds_a_lost_submission_and_a_lost_tally(tmp_path):
    store = open_store(str(tmp_path / "s.db"), TOYS)
    store.add(entries(30))
    with sqlite3.connect(store.path) as connection:
        connection.execute("DELETE FROM tallies WHERE report = 'pets'")
    connection.close()
    assert store.verify() == ["pets, round 1: the tally has 0 reports, a recount 30"]
    with sqlite3.connect(store.path) as connection:
        connection.execute("DELETE FROM submissions WHERE id = (SELECT min(id) FROM submissions)")
    connection.close()
    found = store.verify()
    assert found[0] == "submissions: there are 29 rows, 30 were kept"
    assert all("a recount 29" in text for text in found[1:])
    assert len(found) == 5
    store.close()


# ---- what a store refuses


def test_a_store_belongs_to_one_collection(address):
    open_store(address, TOYS).close()
    with pytest.raises(MismatchError, match="a survey that changed needs a store of its own"):
        open_store(address, survey(rounds=2))
    open_store(address, TOYS).close()


def test_a_store_must_be_there_unless_it_is_made(address):
    with pytest.raises(InvalidArgument, match="store"):
        open_store(address)
    assert not Path(address).exists()


def test_tables_of_the_future_are_not_touched(address, request):
    open_store(address, TOYS).close()
    change = "UPDATE collection SET version = 4"
    if address.startswith("postgresql"):
        request.getfixturevalue("server").do("SET search_path = deniable", change)
    else:
        with sqlite3.connect(address) as connection:
            connection.execute(change)
        connection.close()
    with pytest.raises(MismatchError, match=r"version 4 of the tables.* a later release"):
        open_store(address, TOYS)
    with pytest.raises(MismatchError, match="version 4 of the tables"):
        open_store(address, upgrade=True)


def downgrade(store):
    """Tables as version 2 had them: tallies without slots, and no note of purges."""
    with store._transaction() as connection:
        (row,) = store._run(connection, "SELECT * FROM collection").fetchall()
        for seal in (minus(seal_rows([row])), seal_rows([(2, *row[1:])])):
            store._count(connection, "tallies", {seal_of("collection"): seal})
        store._run(connection, "UPDATE collection SET version = 2")
        for name in ("tallies", "purged"):
            kept = store._run(connection, f"SELECT {ROW} FROM {name} WHERE slot = 0").fetchall()
            store._run(connection, f"DROP TABLE {name}")
            store._run(connection, "DROP TABLE IF EXISTS purges")
            sort = "BYTEA" if "postgres" in store.place else "BLOB"
            columns = "report TEXT, round INTEGER, stratum INTEGER, piece INTEGER, "
            columns += f"n BIGINT NOT NULL, counts {sort} NOT NULL"
            key = "PRIMARY KEY (report, round, stratum, piece)"
            store._run(connection, f"CREATE TABLE {name} ({columns}, {key})")
            for one in [row for row in kept if row[0] != "purges"]:
                store._run(connection, f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?, ?)", one)


def test_tables_of_the_version_before_are_upgraded_in_one_explicit_step(address):
    store = open_store(address, TOYS)
    sent = entries(30)
    with store._transaction() as connection:  # as a writer that is alone does it
        store._adding = lambda: nullcontext((connection, 0))
        store.add(sent)
    del store._adding
    store.purge(TOMORROW)
    kept = counts_of(store)
    downgrade(store)
    # A collector that still runs writes nothing more, and answers 503.
    with pytest.raises((StoreUnavailable, CorruptData)):
        store.add(entries(1, seed=2))
    store.close()
    for asked in (None, TOYS):
        with pytest.raises(MismatchError, match=r"version 2 of the tables.*`deniable upgrade`"):
            open_store(address, asked)
    for _ in range(2):  # the second time changes nothing
        again = open_store(address, upgrade=True)
        assert again.verify() == []
        assert counts_of(again) == kept
        assert again.purged_before() == TOMORROW - timedelta(days=1)  # the day after the last one
        assert again.add(sent) == [KNOWN] * 30
        again.close()


@pytest.mark.postgres
def test_an_upgrade_takes_as_long_as_it_needs(server, monkeypatch):
    """It looks at every row, for which a statement of a collector has no time."""
    store = open_store(server.database(), TOYS)
    downgrade(store)
    store.close()
    monkeypatch.setattr("deniable.service.store.links.STATEMENT", 0.001)
    open_store(server.address, upgrade=True).close()
    monkeypatch.undo()
    assert open_store(server.address).verify() == []


@pytest.mark.parametrize(
    "contents", [b"", b"not a database" * 500, b"SQLite format 3\0" + b"\1" * 4080]
)
def test_a_file_that_is_no_store_is_left_alone(tmp_path, contents):
    file = tmp_path / "file"
    file.write_bytes(contents)
    with pytest.raises(CorruptData):
        open_store(str(file))
    assert file.read_bytes() == contents


def test_the_database_of_another_program_is_left_alone(tmp_path):
    file = tmp_path / "other.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE things (a)")
    connection.close()
    before = file.read_bytes()
    for collection in (None, TOYS):
        with pytest.raises(CorruptData, match="no store"):
            open_store(str(file), collection)
    assert file.read_bytes() == before


@pytest.mark.slow
def test_a_damaged_file_is_never_counted_on(tmp_path):
    """Random bytes over a part of the file: refused, or everything is still right."""
    rng = np.random.default_rng(5)
    original = tmp_path / "store.db"
    store = open_store(str(original), TOYS)
    store.add(entries(500))
    right = counts_of(store)
    store.close()
    whole, refused = original.read_bytes(), 0
    for _ in range(40):
        file = tmp_path / "damaged.db"
        content = bytearray(whole)
        start = int(rng.integers(len(content) - 600))
        content[start : start + 600] = rng.bytes(600)
        file.write_bytes(content)
        try:
            damaged = open_store(str(file))
            differences = damaged.verify()
            damaged.close()
            assert differences or counts_of(open_store(str(file))) == right
        except (CorruptData, InvalidArgument, MismatchError):
            refused += 1
        for path in tmp_path.glob("damaged.db*"):
            path.unlink()
    assert refused


def test_a_folder_that_is_missing_is_no_damage(tmp_path):
    with pytest.raises(StoreUnavailable):
        open_store(str(tmp_path / "none" / "store.db"), TOYS)


# ---- backups


@pytest.mark.slow
def test_a_backup_while_others_write_is_a_whole_store(tmp_path):
    store = open_store(str(tmp_path / "store.db"), TOYS)
    store.add(entries(100, seed=50))
    stop = threading.Event()

    def write():
        writing = open_store(str(tmp_path / "store.db"))
        for seed in range(100, 5_000):
            if stop.is_set():
                break
            writing.add(entries(2, seed))
        writing.close()

    writer = threading.Thread(target=write)
    writer.start()
    for number in range(5):
        store.backup(str(tmp_path / f"copy{number}.db"))
        time.sleep(0.02)
    stop.set()
    writer.join()
    sizes = []
    for number in range(5):
        copy = open_store(str(tmp_path / f"copy{number}.db"))
        assert copy.verify() == []
        assert copy.add(entries(100, seed=50)) == [KNOWN] * 100
        sizes.append(copy.tally("ever", 1).n)
        copy.close()
    assert sizes == sorted(sizes)
    assert sizes[0] >= 100
    store.close()


def test_a_backup_replaces_nothing(store, tmp_path, address):
    (tmp_path / "there").write_bytes(b"precious")
    with pytest.raises(InvalidArgument, match="pg_dump" if "postgresql" in address else "exist"):
        store.backup(str(tmp_path / "there"))
    assert (tmp_path / "there").read_bytes() == b"precious"


@pytest.mark.slow
def test_a_backup_that_fails_leaves_no_half_copy(tmp_path):
    store = open_store(str(tmp_path / "store.db"), TOYS)
    store.add(entries(2_000))
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path / "store.db"), str(tmp_path / "copy.db")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "refused\n", done.stderr
    assert sorted(path.name for path in tmp_path.glob("copy*")) == []
    store.close()


FULL_DISK = """
import resource, sys
from deniable.service.store import open_store
from deniable.errors import StoreUnavailable
store = open_store(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    store.backup(sys.argv[2])
except StoreUnavailable:
    print("refused")
"""


# ---- tokens


def test_tokens_are_kept_as_hashes(store, address):
    token = new_token(store, "ada")
    assert store.tokens() == {"ada": hash_token(token)}
    assert token_fits(token, store.tokens().values())
    assert not token_fits("", store.tokens().values())
    assert not token_fits(token + "x", store.tokens().values())
    with pytest.raises(InvalidArgument, match="name"):
        new_token(store, "ada")
    assert store.tokens() == {"ada": hash_token(token)}
    again = open_store(address)
    assert token_fits(token, again.tokens().values())
    again.close()
    assert store.remove_token("ada")
    assert not store.remove_token("ada")
    assert store.tokens() == {}


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\0b", None, 5])
def test_a_token_has_a_name_that_can_be_printed(store, name):
    with pytest.raises(InvalidArgument, match="name"):
        new_token(store, name)


# ---- PostgreSQL


@pytest.mark.slow
def test_a_server_that_does_not_sync_is_refused(server):
    address = server.database()
    open_store(address, TOYS).close()
    try:
        server.configure("fsync", "off")
        with pytest.raises(StoreUnavailable, match="does not sync"):
            open_store(address)
    finally:
        server.configure("fsync", None)
    open_store(address).close()


@pytest.mark.slow
def test_a_server_that_comes_back_is_used_again(server):
    store = open_store(server.database(), TOYS)
    sent = entries(30)
    assert store.add(sent[:10]) == [COUNTED] * 10
    server.stop()
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            store.add(sent[10:20])
    with pytest.raises(StoreUnavailable):
        store.tallies()
    server.start()
    assert store.add(sent) == [KNOWN] * 10 + [COUNTED] * 20
    server.stop()
    server.start()  # the connection broke while nobody looked
    with pytest.raises(StoreUnavailable):
        store.add(sent)
    assert store.add(sent) == [KNOWN] * 30
    assert store.verify() == []
    store.close()


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:hush@127.0.0.1:1/x",
        "postgresql://127.0.0.1:1/x?user=me&password=hush",
    ],
)
def test_an_unreachable_server_is_named_without_its_password(address):
    with pytest.raises(StoreUnavailable, match="cannot be used now") as refused:
        open_store(address, TOYS)
    assert "hush" not in str(refused.value)
