"""Columns of reports: Arrow in and out, and what is refused on the way in."""

import json

import numpy as np
import polars
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.reports import Reports
from deniable.errors import CorruptData, InvalidArgument, MismatchError

M = dn.OUE(12, 1.0)
REPORTS = M.privatize(np.arange(40) % 12, np.random.default_rng(1))


def test_arrow_types_are_compact():
    types = {
        "brr": "uint8",
        "grr": "uint8",
        "oue": "fixed_size_binary[2]",
        "olh": "struct<a: uint32, b: uint32, c: uint32, y: uint8>",
        "hr": "uint8",
        "she": "fixed_size_binary[12]",
    }
    for name, expected in types.items():
        m = dn.mechanism(name, 2 if name == "brr" else 12, 1.0)
        assert str(m.privatize([0, 1]).to_arrow()["report"].type) == expected


def test_chunked_and_sliced_tables_are_read():
    table = pa.concat_tables([REPORTS[:7].to_arrow(), REPORTS[7:].to_arrow()])
    assert list(Reports.from_arrow(table)) == list(REPORTS)
    assert list(Reports.from_arrow(table.slice(3, 9))) == list(REPORTS[3:12])
    assert len(Reports.from_arrow(table.slice(0, 0))) == 0


def test_a_table_without_a_spec_needs_a_mechanism():
    bare = REPORTS.to_arrow().replace_schema_metadata(None)
    assert list(Reports.from_arrow(bare, M)) == list(REPORTS)
    with pytest.raises(InvalidArgument, match="'mechanism' must be given"):
        Reports.from_arrow(bare)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2], pa.int64()),
        pa.array([b"ab", None], pa.binary(2)),
        pa.array([b"abc", b"abc"], pa.binary(3)),
        pa.array(["ab", "cd"]),
    ],
    ids=str,
)
def test_foreign_columns_are_refused(column):
    with pytest.raises(CorruptData, match="column 'report' must be fixed_size_binary"):
        Reports.from_arrow(pa.table({"report": column}), M)


WIDER = [dn.GRR(9, 1.0), dn.OUE(9, 1.0), dn.OLH(9, 1.0)]


@pytest.mark.parametrize("m", WIDER, ids=repr)
def test_what_another_program_wrote_again_is_read(m, tmp_path):
    """Polars has no bytes of a fixed number; others have no unsigned integers."""
    reports = m.privatize([1, 5, 8] * 10, rng=np.random.default_rng(3)).with_ids()
    table = reports.to_arrow()
    polars.from_arrow(table).write_parquet(tmp_path / "polars.parquet")
    for found in (
        Reports.from_parquet(tmp_path / "polars.parquet", m),
        Reports.from_arrow(pa.table([widened(c) for c in table.columns], table.column_names), m),
    ):
        assert np.array_equal(found.data, reports.data)
        assert np.array_equal(found.ids, reports.ids)


def widened(column):
    kinds = {pa.uint8(): pa.int64(), pa.uint16(): pa.int64(), pa.uint32(): pa.int64()}
    kinds |= {pa.uint64(): pa.decimal128(20, 0)}

    def wider(kind):
        if pa.types.is_struct(kind):
            return pa.struct([(field.name, wider(field.type)) for field in kind])
        return pa.binary() if pa.types.is_fixed_size_binary(kind) else kinds[kind]

    return column.cast(wider(column.type))


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array([1, 256], pa.int16()), "holds no uint8"),
        (pa.array([1, -1], pa.int16()), "holds no uint8"),
        (pa.array([1, None], pa.int16()), "without missing values"),
        (pa.array([1.0, 2.0]), "must be uint8"),
        (pa.array(["1", "2"]), "must be uint8"),
        (pa.array([True, False]), "must be uint8"),
    ],
    ids=str,
)
def test_what_does_not_fit_a_report_is_refused(column, words):
    with pytest.raises(CorruptData, match=f"column 'report' .*{words}"):
        Reports.from_arrow(pa.table({"report": column}), dn.GRR(9, 1.0))


def test_foreign_tables_and_files_are_refused(tmp_path):
    with pytest.raises(CorruptData, match="must have one column 'report'"):
        Reports.from_arrow(pa.table({"x": [1]}), M)
    with pytest.raises(MismatchError, match="different mechanisms"):
        Reports.from_arrow(REPORTS.to_arrow(), dn.OUE(12, 2.0))
    broken = REPORTS.to_arrow().replace_schema_metadata({b"deniable.mechanism": b"{"})
    with pytest.raises(CorruptData, match="this is not a spec"):
        Reports.from_arrow(broken)
    spaced = json.dumps(M.to_spec()).encode()
    with pytest.raises(CorruptData, match="not written in canonical JSON"):
        Reports.from_arrow(broken.replace_schema_metadata({b"deniable.mechanism": spaced}))
    file = tmp_path / "x.parquet"
    file.write_bytes(b"nothing")
    with pytest.raises(CorruptData, match="is not a Parquet file"):
        Reports.from_parquet(file)
    kind = dn.OLH(9, 1.0).privatize([0]).to_arrow()["report"].type
    nulls = pa.array([{"a": None, "b": 1, "c": 1, "y": 1}], kind)
    with pytest.raises(CorruptData, match="field 'a'"):
        Reports.from_arrow(pa.table({"report": nulls}), dn.OLH(9, 1.0))


def test_broken_tables_are_refused(tmp_path):
    twice = pa.Table.from_arrays([REPORTS.to_arrow()["report"]] * 2, names=["report"] * 2)
    with pytest.raises(CorruptData, match="must have one column"):
        Reports.from_arrow(twice, M)
    for wrong in (None, REPORTS.to_arrow().to_batches()[0]):
        with pytest.raises(InvalidArgument, match="'table' must be of type Table"):
            Reports.from_arrow(wrong, M)
    file = tmp_path / "x.parquet"
    REPORTS.to_parquet(file)
    good = file.read_bytes()
    rng = np.random.default_rng(5)
    for _ in range(200):  # whatever byte is wrong, the refusal is ours
        bad = bytearray(good)
        bad[rng.integers(len(bad))] ^= 1 << rng.integers(8)
        file.write_bytes(bad)
        try:
            M.tally(Reports.from_parquet(file, M))
        except (CorruptData, InvalidArgument, MismatchError):
            continue
    with pytest.raises(FileNotFoundError):
        Reports.from_parquet(tmp_path / "nothing.parquet")


def test_arrays_of_another_shape_are_refused():
    for wrong in ([1, 2], np.ma.masked_array(REPORTS.data), np.uint8(3), None):
        with pytest.raises(InvalidArgument, match="'data' must be a NumPy column"):
            Reports(M, wrong)
    with pytest.raises(InvalidArgument, match="'mechanism'"):
        Reports(None, REPORTS.data)
    with pytest.raises(InvalidArgument, match="'data'"):
        Reports(M, np.zeros(4, dtype=np.uint8))
    with pytest.raises(InvalidArgument, match="'ids'"):
        Reports(M, REPORTS.data, np.zeros((3, 16), dtype=np.uint8))
    with pytest.raises(InvalidArgument, match="'rows'"):
        REPORTS[0]


def test_concatenation():
    both = Reports.concatenate([REPORTS, REPORTS[:5]])
    assert len(both) == 45
    assert both.ids is None
    assert Reports.concatenate([REPORTS.with_ids(), REPORTS.with_ids()]).ids.shape == (80, 16)
    with pytest.raises(MismatchError):
        Reports.concatenate([REPORTS, dn.GRR(12, 1.0).privatize([0])])
    with pytest.raises(InvalidArgument):
        Reports.concatenate([])


def test_fingerprints_do_not_depend_on_order_and_show_double_counting():
    reports = REPORTS.with_ids()
    forward, backward = M.tally(reports), M.tally(reports[::-1])
    assert forward.fingerprint == backward.fingerprint != 0
    assert forward.identified == 40
    twice = M.tally(Reports.concatenate([reports, reports[:1], reports[:1]]))
    assert twice.fingerprint != forward.fingerprint
    assert M.tally(REPORTS).fingerprint == 0


@pytest.mark.parametrize("family", [dn.GRR, dn.OUE, dn.OLH, dn.DBitFlip, dn.RAPPOR])
def test_single_reports_become_a_column(family):
    m = family(9, 2.0)
    reports = m.privatize(range(9), np.random.default_rng(1))
    again = dn.Reports.of(m, list(reports))
    assert again.data.tobytes() == reports.data.tobytes()
    assert len(dn.Reports.of(m, [])) == 0


@pytest.mark.parametrize("wrong", [["car"], [None], [300], [-1], [b"\x00", b"\x00\x01"], 5])
def test_what_is_no_report_does_not_become_one(wrong):
    for m in (dn.GRR(9, 2.0), dn.OUE(20, 1.0)):
        with pytest.raises(InvalidArgument, match="reports"):
            dn.Reports.of(m, wrong)
