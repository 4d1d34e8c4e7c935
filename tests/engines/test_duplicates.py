"""Reports that would count twice: copies of files, ids that come again, files of two tallies."""

import numpy as np
import pytest

import deniable as dn
from deniable.core.reports import Reports
from deniable.engines import LocalEngine, duplicates, tally_files
from deniable.errors import InvalidArgument, MismatchError
from lakes import cut, some, write

M = dn.GRR(4, 1.0)


def counted(*paths, **choices):
    return tally_files(list(paths), **choices)[()]


def test_copies_are_refused_or_counted_once(tmp_path):
    reports = some(M, 500)
    cut(reports, tmp_path, 200)
    once = counted(tmp_path)
    copy = tmp_path / "copy" / "of.parquet"
    copy.parent.mkdir()
    copy.write_bytes((tmp_path / "part-000.parquet").read_bytes())
    with pytest.raises(MismatchError, match=r"part-000\.parquet is a copy of .*of\.parquet"):
        counted(tmp_path)
    assert counted(tmp_path, duplicates="drop") == once


def test_files_that_agree_in_the_samples_only_are_no_copies(tmp_path, monkeypatch):
    """What the fingerprint looks at may be alike; then all bytes are compared."""
    monkeypatch.setattr("deniable.core.reports.SAMPLE", 1)
    one, other = some(M, 500, seed=1), some(M, 500, seed=2)
    cut(one, tmp_path / "a")
    cut(other, tmp_path / "b")
    assert (
        counted(tmp_path).counts.tolist() == (M.tally(one).counts + M.tally(other).counts).tolist()
    )


def test_ids_that_come_again(tmp_path, monkeypatch):
    """Within a file, across files, more than twice; the first one in the order of rows counts."""
    monkeypatch.setattr(duplicates, "MOST_IDS", 64)  # several passes
    reports = some(M, 400, ids=True)
    ids = reports.ids.copy()
    ids[150] = ids[20]
    ids[[301, 399]] = ids[60]
    ids[0, :15], ids[1, :15], ids[0, 15], ids[1, 15] = 0, 0, 1, 2  # nearly the same
    again = Reports(M, reports.data, ids)
    cut(again, tmp_path, 100, 100, rows=30)
    with pytest.raises(MismatchError, match=r"3 reports have ids .* row 50 of .*part-001\.parquet"):
        counted(tmp_path)
    kept = np.delete(np.arange(400), [150, 301, 399])
    expected = M.tally(Reports(M, reports.data[kept], ids[kept]))
    found = counted(tmp_path, duplicates="drop")
    found.sources = frozenset()
    assert found == expected


def test_ids_are_compared_whatever_the_passes(tmp_path, monkeypatch):
    reports = some(M, 300, ids=True)
    again = Reports.concatenate([reports[:250], reports[:50]])
    cut(again, tmp_path, 100, 90)
    found = []
    for most in (1, 10, 100, 1000):
        monkeypatch.setattr(duplicates, "MOST_IDS", most)
        if most > 1:
            found.append(counted(tmp_path, duplicates="drop", engine=LocalEngine(2)))
    assert all(one == found[0] for one in found)
    assert found[0].n == 250


def test_ids_of_some_files(tmp_path):
    """Reports without ids cannot be told apart: all of them count."""
    named, bare = some(M, 100, seed=1, ids=True), some(M, 100, seed=2)
    write(tmp_path / "a.parquet", named)
    write(tmp_path / "b.parquet", bare)
    write(tmp_path / "c.parquet", Reports.concatenate([named, named])[150:])
    with pytest.raises(MismatchError, match=r"50 reports have ids .* row 0 of .*c\.parquet"):
        counted(tmp_path)
    found = counted(tmp_path, duplicates="drop")
    found.sources = frozenset()
    assert found == M.tally(named).merge(M.tally(bare))


def test_a_file_of_which_all_reports_are_there_already(tmp_path):
    reports = some(M, 100, ids=True)
    write(tmp_path / "a.parquet", reports, 100)
    write(tmp_path / "b.parquet", reports, 7)  # no copy byte for byte
    assert counted(tmp_path, duplicates="drop").n == 100


def test_ids_that_are_not_random_are_spread(tmp_path):
    """Such as those that begin with the time: each pass holds about as many."""
    ids = np.zeros((4096, 16), dtype=np.uint8)
    ids[:, 12:] = np.arange(4096, dtype=">u4")[:, None].view(np.uint8)
    for column in (ids, ids[:, ::-1].copy()):
        lots = np.bincount(duplicates._hashed(column) // duplicates.LOTS % 16, minlength=16)
        assert lots.max() < 512


def test_the_rule_is_known():
    with pytest.raises(InvalidArgument, match="refuse or drop"):
        tally_files(["x"], duplicates="keep")


def test_tallies_that_share_a_file_do_not_merge(tmp_path):
    reports = some(M, 300)
    paths = cut(reports, tmp_path, 100, 100)
    one, other = counted(*paths[:2]), counted(*paths[1:])
    with pytest.raises(MismatchError, match="1 file was counted before"):
        one.merge(other)
    with pytest.raises(MismatchError, match="1 file is in two of the parts"):
        dn.combine([one, other])
    kept = dn.Tally.from_bytes(one.to_bytes())
    assert kept.sources == one.sources
    with pytest.raises(MismatchError, match="1 file was counted before"):
        kept.merge(other)
    third = counted(paths[2])
    both = kept.merge(third)
    assert (both.n, both.sources) == (300, one.sources | third.sources)


def test_a_tally_about_one_question_names_its_files(tmp_path):
    m = dn.Joint.of_questions({"a": dn.GRR(3, 1.0), "b": dn.GRR(4, 1.0)})
    tally = counted(write(tmp_path / "x.parquet", some(m)))
    assert m.about("a", tally).sources == tally.sources


def test_reports_remember_the_file_that_they_were_read_from(tmp_path):
    path = write(tmp_path / "x.parquet", some(M, 100))
    tally, reports = counted(path), Reports.from_parquet(path)
    with path.open("rb") as opened:
        assert Reports.from_parquet(opened).sources == reports.sources == tally.sources
    for more in (tally, Reports.from_parquet(path), M.tally(reports)):
        with pytest.raises(MismatchError, match="1 file is in two of the parts"):
            dn.combine([reports, more])
    with pytest.raises(MismatchError, match="1 file was counted before"):
        tally.add(reports)
    assert tally == counted(path)
    halves = M.tally(reports[:50]).add(reports[50:])
    assert halves.counts.tolist() == tally.counts.tolist()
