"""Tallies of many files: equal to those in memory to the bit, wherever the files are."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.core.reports import Reports
from deniable.engines import LocalEngine, files, tally_files
from deniable.errors import CorruptData, InvalidArgument, MismatchError
from lakes import cut, member, some, write

M = dn.GRR(4, 1.0)


def only(*paths, **choices):
    """The tally of all reports, without the names of the files."""
    found = tally_files(list(paths), **choices)
    assert set(found) == {()}
    return nameless(found[()])


def nameless(tally):
    tally.sources = frozenset()
    return tally


@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("name", dn.mechanisms())
def test_every_mechanism_is_counted_to_the_bit(name, ids, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "PIECE_ROWS", 100)
    reports = some(member(name), ids=ids)
    cut(reports, tmp_path, 120, 0, 233, rows=70)
    assert only(tmp_path).to_bytes() == reports.mechanism.tally(reports).to_bytes()


@pytest.mark.slow
def test_batches_and_row_groups_do_not_matter(tmp_path, monkeypatch):
    reports = some(M, 300, ids=True)
    expected = M.tally(reports)
    for rows in (11, 100, 300):
        path = write(tmp_path / f"{rows}.parquet", reports, rows)
        for batch in (1, 64, 500):
            monkeypatch.setattr(files, "BATCH_ROWS", batch)
            for piece in (1, 50, 1000):
                monkeypatch.setattr(files, "PIECE_ROWS", piece)
                assert only(path, engine=LocalEngine(3)) == expected


def test_batches_have_an_end():
    """However long reports and their counts are."""
    for m in (M, dn.OUE(128, 1.0), dn.OUE(100_000, 1.0), dn.SHE(3000, 1.0), dn.HR(2**20, 1.0)):
        for wanted in (None, 1 << 30):
            rows = files._batch_rows(m, wanted)
            assert 1 <= rows <= max(1, files.MOST_BYTES // m.dtype.itemsize)
    assert files._batch_rows(dn.HR(2**20, 1.0), None) >= 2**20  # counts of 8 MB


def test_pieces_are_all_rows_once(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "PIECE_ROWS", 100)
    places = files.find(cut(some(M, 1000), tmp_path, 130, 0, 301, rows=40))
    found = files.pieces(files.look(places))
    assert [piece.start for piece in found] == [0, *(p.start + p.rows for p in found)][:-1]
    assert sum(piece.rows for piece in found) == 1000
    assert {piece.rows for piece in found if piece.last - piece.first == 3} == {120, 89}


def test_files_without_rows(tmp_path):
    """Engines write such files, and all of them are alike."""
    none, five = some(M, 0), some(M, 5)
    for name in ("a", "b", "c"):
        write(tmp_path / name / "empty.parquet", none)
    assert only(tmp_path) == dn.Tally(M)
    write(tmp_path / "five.parquet", five)
    found = tally_files([tmp_path])[()]
    assert nameless(tally_files([tmp_path / "a"])[()]) == dn.Tally(M)
    assert (found.n, len(found.sources)) == (5, 1)
    found.merge(tally_files([tmp_path / "a"])[()])


def test_folders_and_names(tmp_path):
    reports = some(M, 400)
    for folder in ("", "deep/deeper"):
        write(tmp_path / folder / "part.parquet", reports[: 100 + len(folder)])
    for hidden in ("_temporary/x.parquet", ".x.parquet", "a/_b/x.parquet", "_SUCCESS", "note.txt"):
        path = tmp_path / hidden
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"not Parquet")
    assert only(tmp_path).n == 211
    odd = write(tmp_path / "_given.bin", reports[:7])
    assert only(odd).n == 7  # a file that is named is read, whatever its name
    with pytest.raises(InvalidArgument, match=r"a folder with files that end in \.parquet"):
        tally_files([tmp_path / "a"])
    with pytest.raises(FileNotFoundError, match=r"nothing\.parquet"):
        tally_files([tmp_path / "nothing.parquet"])


def test_an_engine_is_no_name():
    with pytest.raises(InvalidArgument, match="'engine' must be of type Engine"):
        tally_files(["x"], engine="spark")


@pytest.mark.parametrize("given", [[], "x.parquet", [""]])
def test_paths_are_a_list(given):
    with pytest.raises(InvalidArgument, match="a list of files or folders"):
        tally_files(given)


def test_addresses(tmp_path, monkeypatch):
    reports = some(M, 90)
    path = write(tmp_path / "a b" / "part.parquet", reports)
    assert only(path.parent.as_uri()) == only(path.as_uri()) == M.tally(reports)
    monkeypatch.chdir(tmp_path)
    for again in (path.as_uri(), "a b/part.parquet", path.parent):
        with pytest.raises(InvalidArgument, match="one that is given twice would count twice"):
            tally_files([path, again])
    for address in ("nowhere://x/y", "://"):
        with pytest.raises(InvalidArgument, match="an address that Arrow understands"):
            tally_files([address])


def test_keys_of_the_path(tmp_path):
    reports = some(M, 600, ids=True)
    parts = {
        ("north", "1"): reports[:100],
        ("north", "2"): reports[100:250],
        ("s/outh", "1"): reports[250:],
    }
    for (region, week), part in parts.items():
        quoted = region.replace("/", "%2F")
        cut(part, tmp_path / f"week={week}" / f"region={quoted}", 30)
    both = tally_files([tmp_path], by=["region", "week"])
    assert list(both) == sorted(parts)
    assert {group: nameless(tally) for group, tally in both.items()} == {
        group: M.tally(part) for group, part in parts.items()
    }
    regions = tally_files([tmp_path], by=["region"])
    assert nameless(regions[("north",)]) == M.tally(reports[:250])
    assert only(tmp_path) == M.tally(reports)
    # A key above the folder that is given counts, too.
    assert list(tally_files([tmp_path / "week=2"], by=["week"])) == [("2",)]
    for by, told in ((["round"], "has no round="), ("week", "a list of different names")):
        with pytest.raises(InvalidArgument, match=told):
            tally_files([tmp_path], by=by)
    with pytest.raises(InvalidArgument, match="a list of different names"):
        tally_files([tmp_path], by=["week", "week"])


def test_an_empty_group_has_an_empty_tally(tmp_path):
    write(tmp_path / "week=1" / "x.parquet", some(M, 9))
    write(tmp_path / "week=2" / "x.parquet", some(M, 0))
    found = tally_files([tmp_path], by=["week"])
    assert found[("2",)] == dn.Tally(M)


def test_the_mechanism_may_be_given(tmp_path):
    reports = some(M, 50)
    bare = tmp_path / "bare.parquet"
    pq.write_table(reports.to_arrow().replace_schema_metadata(), bare)
    assert only(bare, mechanism=M) == M.tally(reports)
    with pytest.raises(CorruptData, match=r"bare\.parquet: 'mechanism' must be given"):
        tally_files([bare])
    with pytest.raises(MismatchError, match=r"good\.parquet: these belong to different mechanisms"):
        tally_files([write(tmp_path / "good.parquet", reports)], mechanism=dn.GRR(5, 1.0))


def test_foreign_and_damaged_files_are_named(tmp_path):
    reports = some(M, 5000, ids=True)
    good = write(tmp_path / "good.parquet", reports)
    whole = good.read_bytes()

    def refused(data, told, kind=CorruptData):
        bad = tmp_path / "bad.parquet"
        bad.write_bytes(data)
        with pytest.raises(kind, match=told) as caught:
            tally_files([good, bad], duplicates="drop")
        assert "bad.parquet" in str(caught.value)

    refused(b"no Parquet", "is not a Parquet file")
    refused(whole[:-100], "is not a Parquet file")
    refused(b"", "is not a Parquet file")
    other = dn.GRR(5, 1.0)
    refused(write(tmp_path / "x", some(other)).read_bytes(), "different mechanisms", MismatchError)
    for table in (
        pa.table({"people": [1, 2]}),
        reports.to_arrow().drop_columns("report"),
        reports.to_arrow().set_column(0, "report", pa.array([1.5] * 5000)),
        reports.to_arrow().set_column(1, "id", pa.array([1] * 5000)),
    ):
        pq.write_table(table, tmp_path / "x")
        refused((tmp_path / "x").read_bytes(), "'report'|'id'|'mechanism'")


def test_reports_that_nobody_can_make_are_refused(tmp_path):
    data = some(M, 300).data.copy()
    data[250] = 4
    path = write(tmp_path / "forged.parquet", Reports(M, data))
    with pytest.raises(CorruptData, match=r"forged\.parquet: .*0\.\.3"):
        tally_files([path])


def test_missing_values_are_refused(tmp_path):
    table = some(M, 3).to_arrow()
    column = pa.array([0, None, 1], type=table["report"].type)
    path = tmp_path / "holes.parquet"
    pq.write_table(table.set_column(0, "report", column), path)
    with pytest.raises(CorruptData, match=r"holes\.parquet: .*without missing values"):
        tally_files([path])


def test_a_file_that_changes_is_refused(tmp_path):
    path = write(tmp_path / "x.parquet", some(M, 500))
    piece = files.pieces(files.look(files.find([path])))[0]
    write(path, some(M, 500, seed=2))
    with (
        pytest.raises(CorruptData, match=r"x\.parquet: the file changed while it was read"),
        files.reading(piece, M) as batches,
    ):
        next(batches)


@pytest.mark.parametrize("together", [1, 64])
@pytest.mark.slow
def test_many_small_files(together, tmp_path, monkeypatch):
    monkeypatch.setattr("deniable.engines.local.MOST_TOGETHER", together)
    reports = some(M, 400, ids=True)
    cut(reports, tmp_path, *[2] * 150)
    assert only(tmp_path, engine=LocalEngine(2)) == M.tally(reports)


def test_progress_ends_with_all_rows(tmp_path):
    told = []
    cut(some(M, 400, ids=True), tmp_path, *[40] * 9)
    tally_files([tmp_path], progress=lambda *step: told.append(step))
    assert told[-1] == ("counting", 400, 400)
    assert ("comparing ids", 400, 400) in told
