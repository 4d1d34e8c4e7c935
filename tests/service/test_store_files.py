"""The files of a store: who may read them, what happens when they go away, and their copies."""

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from collection_toys import (
    batch,
    by_region,
    mark_submission,
    marks,
    packed,
    submission,
    survey,
)
from collectors import Collector
from deniable.core.reports import Reports
from deniable.errors import CorruptData, InvalidArgument, StoreUnavailable
from deniable.service import parquet as exchange
from deniable.service.access import new_token
from deniable.service.parquet import export, import_folder
from deniable.service.store import Outcome, open_store
from deniable.service.store.base import EPOCH, today
from deniable.service.store.copies import new_copy

pytestmark = pytest.mark.skipif(os.name != "posix", reason="names and modes of POSIX")
MARKS = marks(64)
DAY = EPOCH + timedelta(days=today())
COUNTED, KNOWN = Outcome.counted, Outcome.known


def entry(mark):
    return packed(MARKS, mark_submission(MARKS, mark, f"{mark:032x}"))


def counted(store):
    """The marks that were counted, each once."""
    (tally,) = store.tallies().values()
    assert tally.counts.max() == 1
    assert tally.n == tally.counts.sum()
    return tally.counts.nonzero()[0].tolist()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def store(path):
    """A store with five marks, most of them only in its log."""
    found = open_store(str(path), MARKS)
    assert found.add([entry(mark) for mark in range(5)]) == [COUNTED] * 5
    yield found
    found.close()


# ---- files that go away below a running collector


def delete(path, end=""):
    Path(f"{path}{end}").unlink()


def rename(path, end=""):
    Path(f"{path}{end}").rename(f"{path}{end}.away")


def replace(path, end=""):
    """By a copy that is the same to the last bit."""
    file = Path(f"{path}{end}")
    shutil.copy2(file, f"{file}.copy")
    Path(f"{file}.copy").replace(file)


def link(path, end=""):
    rename(path, end)
    Path(f"{path}{end}").symlink_to(f"{path}{end}.away")


def delete_all(path):
    for end in ("", "-wal", "-shm"):
        delete(path, end)


def delete_folder(path):
    path.parent.rename(path.parent.with_name("gone"))


WAYS = {
    f"{way.__name__}{end}": (lambda path, way=way, end=end: way(path, end))
    for way in (delete, rename, replace, link)
    for end in ("", "-wal", "-shm")
} | {"delete all": delete_all, "move the folder": delete_folder}


def listed(folder):
    return sorted(os.walk(folder))


@pytest.mark.parametrize("way", WAYS)
def test_a_store_that_lost_a_file_takes_and_says_nothing(tmp_path, way):
    """And it makes no file in the place of the lost one."""
    path = tmp_path / "in" / "store.db"
    path.parent.mkdir()
    store = open_store(str(path), MARKS)
    store.add([entry(0)])
    WAYS[way](path)
    there = listed(tmp_path)
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="deleted, renamed or replaced"):
            store.add([entry(1)])
    for read in (store.tallies, store.numbers, store.tokens, lambda: new_token(store, "ann")):
        with pytest.raises(StoreUnavailable):
            read()
    assert listed(tmp_path) == there
    store.close()


@pytest.mark.parametrize("way", [delete, rename, replace])
def test_a_file_that_goes_away_at_the_moment_of_a_commit(store, path, way, monkeypatch):
    """Between the look and the commit there is time: it is looked again before the answer."""
    look, looks = store._require_same, []

    def then_lose():
        look()
        looks.append(1)
        if len(looks) == 1:
            way(path)

    monkeypatch.setattr(store, "_require_same", then_lose)
    with pytest.raises(StoreUnavailable, match="deleted, renamed or replaced"):
        store.add([entry(9)])
    assert len(looks) == 1


def test_a_file_that_comes_back_is_used_after_a_restart(store, path):
    """Not before: somebody else may have used the log in the meantime."""
    rename(path)
    with pytest.raises(StoreUnavailable):
        store.add([entry(5)])
    Path(f"{path}.away").rename(path)
    with pytest.raises(StoreUnavailable, match="start it again"):
        store.add([entry(5)])
    store.close()
    again = open_store(str(path), MARKS)
    assert again.add([entry(mark) for mark in range(6)]) == [KNOWN] * 5 + [COUNTED]
    assert counted(again) == [0, 1, 2, 3, 4, 5]
    assert again.verify() == []
    again.close()


def test_a_lost_log_is_written_to_the_file_when_the_store_is_closed(store, path):
    """What only the log held is not lost, as long as the collector ends by itself."""
    delete(path, "-wal")
    with pytest.raises(StoreUnavailable):
        store.add([entry(5)])
    store.close()
    again = open_store(str(path))
    assert counted(again) == [0, 1, 2, 3, 4]
    assert again.verify() == []
    again.close()


def test_other_processes_may_come_and_go(store, path):
    """Commands that read, write, purge and back up leave the files what they are."""
    for mark in range(10, 13):
        other = open_store(str(path), MARKS)
        assert other.add([entry(mark)]) == [COUNTED]
        other.close()
        assert open_store(str(path)).verify() == []
        assert store.add([entry(mark), entry(mark + 10)]) == [KNOWN, COUNTED]
    other = open_store(str(path))
    other.purge("2999-01-01")
    other.close()
    store.backup(str(path.with_name("copy")))
    assert store.add([entry(30)]) == [COUNTED]
    assert store.verify() == []


def health(collector):
    return collector.ask("GET", "/v2/health")[0]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["delete", "replace"])
def test_a_collector_says_that_its_store_is_gone(path, way):
    """503 for submissions and for whoever watches, and a line for the operator."""
    open_store(str(path), MARKS).close()
    bodies = [mark_submission(MARKS, mark, f"{mark:032x}").to_json() for mark in range(9)]
    with Collector(str(path), constants={"access.FRESH": 0}) as collector:
        assert [collector.post(body) for body in bodies[:3]] == [201] * 3
        assert health(collector) == 200
        WAYS[way](path)
        assert [collector.post(body) for body in bodies] == [503] * 9
        assert health(collector) == 503
        _, told = collector.stop()
    assert "deleted, renamed or replaced while in use" in told
    assert path.exists() == (way != "delete")


# ---- readers


def test_whoever_reads_changes_nothing(store, path):
    """A backup stays one file, and the same."""
    copy = path.with_name("copy.db")
    store.backup(str(copy))
    before, listing = copy.read_bytes(), listed(path.parent)
    reading = open_store(str(copy))
    assert reading.verify() == []
    assert counted(reading) == [0, 1, 2, 3, 4]
    assert reading.tokens() == {}
    reading.close()
    assert copy.read_bytes() == before
    assert listed(path.parent) == listing


READER = """
import os, sys
sys.path.insert(0, sys.argv[2])
from deniable.errors import StoreUnavailable
from deniable.service.store import open_store
import test_store_files as toys
entry = toys.entry(7)
if os.getuid() == 0:
    open_store(sys.argv[1]).verify()  # loads all it needs while this may read everything
    os.setgroups([])
    os.setresuid(65534, 65534, 65534)
store = open_store(sys.argv[1])
assert store.verify() == [], store.verify()
assert toys.counted(store) == [0, 1, 2, 3, 4]
try:
    store.add([entry])
except StoreUnavailable as error:
    print("read,", "readonly" in str(error) or "unable to open" in str(error))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["store", "backup"])
def test_a_store_that_may_only_be_read_can_be_read(store, path, kind):
    """A file without rights to write, in a folder without."""
    folder = Path(tempfile.mkdtemp())  # above those of tests there are folders of the tester alone
    file = folder / "kept.db"
    if kind == "backup":
        store.backup(str(file))
    else:
        store.close()
        shutil.copy(path, file)
    file.chmod(0o444)
    folder.chmod(0o555)
    try:
        command = [sys.executable, "-c", READER, str(file), str(Path(__file__).parent)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        names = [one.name for one in folder.iterdir()]
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)
    assert done.stdout == "read, True\n", done.stderr
    assert names == ["kept.db"]


# ---- modes and links


@pytest.mark.parametrize("umask", [0, 0o022, 0o277])
def test_every_file_is_for_its_owner_only(tmp_path, umask):
    before = os.umask(umask)
    try:
        store = open_store(str(tmp_path / "store.db"), MARKS)
        store.add([entry(0)])
        with new_copy(tmp_path / "copy.db"):
            parts = {file.name for file in tmp_path.glob("copy.db.part-*")}
            assert parts
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
        export(store, tmp_path / "out", unfinished=True)
    finally:
        os.umask(before)
    modes |= {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.rglob("*.*")}
    store.close()
    exported = {"_manifest.json", f"{DAY}.json", "part-0.parquet"}
    names = {"store.db", "store.db-wal", "store.db-shm", "copy.db", *parts, *exported}
    assert modes == dict.fromkeys(names, 0o600)


@pytest.mark.parametrize("target", ["there", "nowhere"])
def test_no_link_is_followed(store, path, target, tmp_path):
    victim = tmp_path / "victim"
    if target == "there":
        victim.write_bytes(b"precious")
    linked = tmp_path / "linked.db"
    linked.symlink_to(victim)
    for task in (
        lambda: open_store(str(linked), MARKS),
        lambda: open_store(str(linked)),
        lambda: store.backup(str(linked)),
    ):
        with pytest.raises(InvalidArgument, match="not a symbolic link"):
            task()
    other = tmp_path / "other.db"
    open_store(str(other), MARKS).close()
    for log in (f"{other}-wal", f"{other}-shm"):
        Path(log).symlink_to(victim)
        with suppress(CorruptData, StoreUnavailable):  # the link is refused, or removed
            open_store(str(other), MARKS).add([entry(0)])
        Path(log).unlink(missing_ok=True)
    assert victim.exists() == (target == "there")
    assert target == "nowhere" or victim.read_bytes() == b"precious"


# ---- backups that are killed

KILLED = """
import os, sys
from deniable.service.store import copies, open_store, sqlite
moment, count = int(sys.argv[3]), 0
def die(*_):
    global count
    count += 1
    if count == moment:
        os.kill(os.getpid(), 9)
plain = copies._exclusive
def traced(part):
    connection = plain(part)
    connection.set_progress_handler(die, 10)
    return connection
copies._exclusive = traced
if moment == 0:
    copies._name = lambda *_: os.kill(os.getpid(), 9)
open_store(sys.argv[1]).backup(sys.argv[2])
"""


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("moment", [0, 1, 40])
def test_a_backup_that_was_killed_does_not_block_the_next(store, path, moment):
    """Before it got its name, at its beginning, and amid its second half."""
    target = path.with_name("copy.db")
    command = [sys.executable, "-c", KILLED, str(path), str(target), str(moment)]
    assert subprocess.run(command, check=False).returncode == -9
    assert not target.exists()
    (left, *_) = path.parent.glob("copy.db.part-*")
    store.backup(str(target))
    assert not left.exists()
    assert list(path.parent.glob("copy.db?*")) == []
    copy = open_store(str(target))
    assert counted(copy) == [0, 1, 2, 3, 4]
    assert copy.verify() == []


def test_a_backup_beside_the_log_of_another_file_is_not_touched(store, path):
    """As if it took the place of a store whose collector was killed, or still ran."""
    copy = path.with_name("copy.db")
    store.backup(str(copy))
    whole = copy.read_bytes()
    store.add([entry(mark) for mark in range(5, 9)])
    for end in ("-wal", "-shm"):
        shutil.copy(f"{path}{end}", f"{copy}{end}")
    for collection in (None, MARKS):
        with pytest.raises(CorruptData, match="log of another file"):
            open_store(str(copy), collection)
    assert copy.read_bytes() == whole
    for end in ("-wal", "-shm"):
        Path(f"{copy}{end}").unlink()
    found = open_store(str(copy), MARKS)
    assert found.verify() == []
    assert found.add([entry(4), entry(5)]) == [KNOWN, COUNTED]
    assert open_store(str(copy)).verify() == []  # now it has a log of its own
    found.close()


def test_a_backup_that_still_runs_is_left_alone(store, path):
    target = path.with_name("copy.db")
    with pytest.raises(InvalidArgument, match="does not exist yet"):
        two_at_once(store, target)
    assert list(path.parent.glob("copy.db?*")) == []
    assert open_store(str(target)).verify() == []


def two_at_once(store, target):
    """A second backup amid a first one, which then finds its name taken."""
    with new_copy(target):
        (running, *_) = sorted(target.parent.glob("copy.db.part-*"))
        store.backup(str(target))
        assert running.exists()


def test_a_disk_without_hard_links_takes_backups(store, path, monkeypatch):
    def none(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", none)
    store.backup(str(path.with_name("copy.db")))
    assert [file.name for file in path.parent.glob("copy*")] == ["copy.db"]
    with sqlite3.connect(path.with_name("copy.db")) as connection:
        assert connection.execute("SELECT count(*) FROM submissions").fetchone() == (5,)
    connection.close()


# ---- imports


def exported(tmp_path, monkeypatch):
    """An export that is imported in six pieces."""
    monkeypatch.setattr("deniable.service.parquet.ROWS", 10)
    source = open_store(str(tmp_path / "source.db"), MARKS)
    source.add([entry(mark) for mark in range(56)])
    made = batch(MARKS, 4)
    source.add_batch(bytes.fromhex(made.id), made.body, source.count_batch(made.body))
    export(source, tmp_path / "out", unfinished=True)
    found = plain(source)
    source.close()
    return tmp_path / "out", found


@pytest.mark.parametrize("collection", [by_region(), survey("sampled"), survey(rounds=3)])
def test_an_export_has_every_report_round_and_stratum(tmp_path, collection):
    source, rng = open_store(str(tmp_path / "source.db"), collection), np.random.default_rng(2)
    places = [
        (number, stratum)
        for number in range(1, collection.rounds + 1)
        for stratum in range(0, collection.strata, 2)
    ]
    sent = [submission(collection, rng, r, collection.fields_of(s)) for r, s in places * 4]
    source.add([packed(collection, one) for one in sent])
    written = export(source, tmp_path / "out", unfinished=True)
    assert len(list(tmp_path.rglob("part-0.parquet"))) == len(places) * len(collection.reports)
    target = open_store(str(tmp_path / "target.db"), collection)
    assert import_folder(target, tmp_path / "out") == sum(written.written.values())
    assert target.tallies() == source.tallies()
    assert target.verify() == []
    for store in (source, target):
        store.close()


def plain(store):
    return {place: (tally.counts.tolist(), tally.n) for place, tally in store.tallies().items()}


def test_an_import_with_a_bad_piece_counts_nothing(tmp_path, monkeypatch):
    """The last of six pieces has a report that no device makes."""
    folder, whole = exported(tmp_path, monkeypatch)
    (file,) = folder.rglob("part-0.parquet")
    good, mechanism = file.read_bytes(), MARKS.reports[0].mechanism
    rows = Reports.from_parquet(file, mechanism).data.copy()
    rows[-1] = 64
    pyarrow.parquet.write_table(Reports(mechanism, rows).to_arrow(), file)
    store = open_store(str(tmp_path / "target.db"), MARKS)
    with pytest.raises(ValueError, match=r"0\.\.63"):
        import_folder(store, folder)
    assert store.numbers() == {}
    assert list(store.batches()) == []
    file.write_bytes(good)
    assert import_folder(store, folder) == 60
    assert import_folder(store, folder) == 0
    assert plain(store) == whole
    assert store.verify() == []
    store.close()


def test_an_import_of_files_that_change_counts_nothing(tmp_path, monkeypatch):
    folder, _ = exported(tmp_path, monkeypatch)
    store = open_store(str(tmp_path / "target.db"), MARKS)
    batches, calls = exchange._batches, []

    def fewer(*arguments):
        calls.append(arguments)
        found = list(batches(*arguments))
        return iter(found[:-1] if len(calls) == 2 else found)

    monkeypatch.setattr(exchange, "_batches", fewer)
    with pytest.raises(CorruptData, match="changed while they were read"):
        import_folder(store, folder)
    assert store.numbers() == {}
    store.close()


IMPORT = """
import os, sys
from pathlib import Path
from deniable.service import parquet as exchange
from deniable.service.store import open_store
from deniable.service.store.sql import SQLStore
exchange.ROWS, keep, kept = 10, SQLStore._add_batch, []
def killed(*arguments):
    kept.append(keep(*arguments))
    if len(kept) == 4:
        os.kill(os.getpid(), 9)
    return kept[-1]
SQLStore._add_batch = killed
exchange.import_folder(open_store(sys.argv[1]), Path(sys.argv[2]))
"""


@pytest.mark.slow
def test_an_import_that_was_killed_counted_nothing_and_can_be_repeated(tmp_path, monkeypatch):
    folder, whole = exported(tmp_path, monkeypatch)
    target = str(tmp_path / "target.db")
    open_store(target, MARKS).close()
    command = [sys.executable, "-c", IMPORT, target, str(folder)]
    assert subprocess.run(command, check=False).returncode == -9
    store = open_store(target)
    assert store.numbers() == {}
    assert import_folder(store, folder) == 60
    assert plain(store) == whole
    assert store.verify() == []
    store.close()
