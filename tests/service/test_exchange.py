"""Exports by day and question: each adds what is new, and what is imported counts once."""

import json
import os
import subprocess
import sys
from datetime import date, timedelta

import pyarrow.dataset
import pyarrow.parquet
import pytest

from collection_toys import batch, mark_submission, marks, packed
from deniable.core.reports import Reports
from deniable.engines import tally_files
from deniable.errors import CorruptData, InvalidArgument
from deniable.service import parquet as exchange
from deniable.service.parquet import export, import_folder
from deniable.service.store import open_store, sql

MARKS = marks(4_000)
#: The day of the first submissions, and the one of the last.
FIRST, LAST = 20_000, 20_003
DAYS = [date(2024, 10, 4) + timedelta(days=n) for n in range(LAST - FIRST + 1)]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def address(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    return request.getfixturevalue("server").database()


@pytest.fixture
def on(monkeypatch):
    """Let stores and exports believe that it is another day."""

    def change(day):
        for module in (sql, exchange):
            monkeypatch.setattr(module, "today", lambda: day)

    return change


def entry(mark):
    return packed(MARKS, mark_submission(MARKS, mark, f"{mark * 7919 % 2**32:032x}"))


def fill(store, on, days=range(FIRST, LAST + 1)):
    """Ten submissions and a batch of five on each day."""
    for day in days:
        on(day)
        store.add([entry(10 * (day - FIRST) + i) for i in range(10)])
        made = batch(MARKS, 5, seed=day)
        store.add_batch(bytes.fromhex(made.id), made.body, store.count_batch(made.body))


def plain(store):
    return {place: (tally.counts.tolist(), tally.n) for place, tally in store.tallies().items()}


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.parquet")}


def test_days_are_folders_that_engines_read(address, on, tmp_path):
    store = open_store(address, MARKS)
    fill(store, on)
    found = export(store, tmp_path / "out")
    assert found.written == dict.fromkeys(DAYS[:-1], 15)  # the last one is not over
    names = {f"question=mark/round=1/day={day}/part-0.parquet" for day in DAYS[:-1]}
    assert {str(name) for name in files(tmp_path / "out")} == names
    table = pyarrow.dataset.dataset(tmp_path / "out", partitioning="hive").to_table()
    assert set(table.column_names) == {"report", "question", "round", "day"}
    assert table.num_rows == 45
    tallies = tally_files([tmp_path / "out"], by=["question", "day"])
    assert {group: tally.n for group, tally in tallies.items()} == {
        ("mark", str(day)): 15 for day in DAYS[:-1]
    }
    store.close()


@pytest.mark.slow
def test_an_export_adds_what_is_new(address, on, tmp_path):
    """And days are the same, however often they are exported, and to whichever folder."""
    store, folder = open_store(address, MARKS), tmp_path / "out"
    fill(store, on, range(FIRST, FIRST + 2))
    assert list(export(store, folder, unfinished=True).written) == DAYS[:2]
    before = files(folder)
    store.add([entry(3_000)])
    on(FIRST + 2)
    assert export(store, folder).written == {DAYS[1]: 16}
    fill(store, on, [FIRST + 2])
    on(LAST)
    found = export(store, folder)
    assert (list(found.written), found.known) == ([DAYS[2]], 2)
    after = files(folder)
    changed = {name for name in before if after[name] != before[name]}
    assert {name.parent.name for name in changed} == {f"day={DAYS[1]}"}
    assert export(store, folder).written == {}
    export(store, tmp_path / "again")
    assert files(tmp_path / "again") == after
    store.close()


def test_days_that_were_purged_are_not_exported(address, on, tmp_path):
    """Nor do they go from an export that has them."""
    store, folder = open_store(address, MARKS), tmp_path / "out"
    fill(store, on)
    export(store, folder)
    before = files(folder)
    store.purge(DAYS[1])
    found = export(store, tmp_path / "later")
    assert list(found.written) == DAYS[1:-1]
    assert found.purged_before == DAYS[1]
    assert export(store, folder).written == {}
    assert files(folder) == before
    store.close()


KILLED = """
import os, sys
from pathlib import Path
from deniable.service import parquet as exchange
from deniable.service.store import open_store
exchange.PASS, moment, calls = 1, int(sys.argv[3]), []
replace = Path.replace
def deadly(self, target):
    calls.append(self)
    if len(calls) == moment:
        os.kill(os.getpid(), 9)
    return replace(self, target)
Path.replace = deadly
exchange.export(open_store(sys.argv[1]), Path(sys.argv[2]))
"""


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs kill")
def test_an_export_that_was_killed_goes_on(tmp_path, on):
    """Before a file has its name, and before its day has its note."""
    path, folder = str(tmp_path / "store.db"), tmp_path / "out"
    store = open_store(path, MARKS)
    fill(store, on)
    for moment in (4, 3):  # the manifest, a file, its note, the next file; then a file and its note
        command = [sys.executable, "-c", KILLED, path, str(folder), str(moment)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == -9, done.stderr
        for name, content in files(folder).items():
            if not name.name.startswith("."):
                pyarrow.parquet.read_table(pyarrow.BufferReader(content))
    on(LAST + 1)
    found = export(store, folder)
    assert 0 < found.known < 4
    assert len(found.written) + found.known == 4
    export(store, tmp_path / "whole")
    assert files(folder) == files(tmp_path / "whole")
    store.close()


# ---- imports


@pytest.mark.slow
def test_an_import_adds_the_new_days(address, on, tmp_path):
    store, folder = open_store(address, MARKS), tmp_path / "out"
    target = open_store(str(tmp_path / "target.db"), MARKS)
    fill(store, on, range(FIRST, FIRST + 2))
    on(FIRST + 2)
    export(store, folder)
    assert import_folder(target, folder) == 30
    fill(store, on, range(FIRST + 2, LAST + 1))
    on(LAST + 1)
    export(store, folder)
    assert import_folder(target, folder) == 30
    assert import_folder(target, folder) == 0
    assert plain(target) == plain(store)
    assert target.verify() == []
    store.close()
    target.close()


def test_a_day_that_grew_is_not_counted_twice(tmp_path, on):
    """Half of a day was imported: the whole of it is refused."""
    store, folder = open_store(str(tmp_path / "store.db"), MARKS), tmp_path / "out"
    target = open_store(str(tmp_path / "target.db"), MARKS)
    fill(store, on, range(FIRST, FIRST + 2))
    export(store, folder, unfinished=True)
    assert import_folder(target, folder) == 30
    before = plain(target)
    store.add([entry(3_000)])
    on(LAST)
    export(store, folder)
    with pytest.raises(InvalidArgument, match="holds other reports"):
        import_folder(target, folder)
    assert plain(target) == before
    store.close()
    target.close()


def test_a_store_that_also_collects_refuses_new_days(tmp_path, on):
    store, folder = open_store(str(tmp_path / "store.db"), MARKS), tmp_path / "out"
    target = open_store(str(tmp_path / "target.db"), MARKS)
    fill(store, on, [FIRST])
    on(LAST)
    export(store, folder)
    assert import_folder(target, folder) == 15
    target.add([entry(3_001)])
    assert import_folder(target, folder) == 0
    fill(store, on, [FIRST + 1])
    on(LAST)
    export(store, folder)
    with pytest.raises(InvalidArgument, match="holds other reports"):
        import_folder(target, folder)
    assert import_folder(target, folder, add=True) == 15
    store.close()
    target.close()


def shorter(folder, note):
    """A file that lost a row."""
    (file,) = folder.rglob("part-0.parquet")
    reports = Reports.from_parquet(file)
    reports[:-1].to_parquet(file)


def elsewhere(folder, note):
    """A note about a file outside of the export."""
    words = json.loads(note.read_bytes())
    words["files"] = {"../" + name: rows for name, rows in words["files"].items()}
    note.write_text(json.dumps(words))


def nonsense(folder, note):
    note.write_text("[1]")


def missing(folder, note):
    (file,) = folder.rglob("part-0.parquet")
    file.unlink()


@pytest.mark.parametrize("damage", [shorter, elsewhere, nonsense, missing])
def test_a_damaged_export_counts_nothing(tmp_path, on, damage):
    store, folder = open_store(str(tmp_path / "store.db"), MARKS), tmp_path / "out"
    fill(store, on, [FIRST])
    on(LAST)
    export(store, folder)
    damage(folder, folder / "_days" / f"{DAYS[0]}.json")
    target = open_store(str(tmp_path / "target.db"), MARKS)
    with pytest.raises((CorruptData, FileNotFoundError)):
        import_folder(target, folder)
    assert target.numbers() == {}
    store.close()
    target.close()


def test_days_are_not_replaced_by_fewer_reports(tmp_path, on):
    """The folder may hold the only reports that another store has not purged."""
    north, south = (open_store(str(tmp_path / name), MARKS) for name in ("north.db", "south.db"))
    on(FIRST)
    north.add([entry(mark) for mark in range(10)])
    south.add([entry(mark) for mark in range(10, 19)])
    on(LAST)
    export(north, tmp_path / "out")
    before = files(tmp_path / "out")
    with pytest.raises(InvalidArgument, match=f"which has less of {DAYS[0]}"):
        export(south, tmp_path / "out")
    assert files(tmp_path / "out") == before
    north.close()
    south.close()


def test_an_export_of_another_collection_is_left_alone(tmp_path):
    folder = tmp_path / "out"
    export(open_store(str(tmp_path / "one.db"), MARKS), folder)
    with pytest.raises(ValueError, match="the export of another collection"):
        export(open_store(str(tmp_path / "two.db"), marks(5)), folder)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").write_text("x")
    with pytest.raises(InvalidArgument, match="empty, a new one, or an export"):
        export(open_store(str(tmp_path / "one.db")), tmp_path / "full")
