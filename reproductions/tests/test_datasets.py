"""Loaders of public data, on tiny files of the same formats; on the copies where they are."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from deniable.errors import CorruptData, InvalidArgument
from deniable_papers.datasets import SOURCES, load
from places import SHARED

ADULT = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male,"
    " 2174, 0, 40, United-States, <=50K\n"
    "50, ?, 83311, Bachelors, 13, Married-civ-spouse, Exec-managerial, Husband, Black, Male,"
    " 0, 0, 9, United-States, >50K\n"
)


def test_adult_as_downloaded(tmp_path):
    (tmp_path / "adult.data").write_text(ADULT + "\n")
    data = load("adult", tmp_path)
    assert (data.n, data.column("workclass").labels) == (2, ("?", "State-gov"))
    assert data.column("hours_per_week").labels == ("9", "40")
    assert data.column("hours_per_week").codes.tolist() == [1, 0]
    assert data.column("race").frequencies.tolist() == [0.5, 0.5]
    assert "2 rows (NOT the published file" in data.note
    with pytest.raises(InvalidArgument, match="'column' must be one of age, workclass"):
        data.column("colour")


def test_the_test_file_has_a_remark_and_dots(tmp_path):
    lines = "".join(line + ".\n" for line in ADULT.splitlines())
    (tmp_path / "adult.test").write_text("|1x3 Cross validator\n" + lines + "\n")
    data = load("adult-test", tmp_path)
    assert data.column("income").labels == ("<=50K", ">50K")
    assert data.n == 2


def test_australian_as_downloaded(tmp_path):
    text = "1 22.08 11.46 2 4 4 1.585 0 0 0 1 2 100 1213 0\n"
    (tmp_path / "australian.dat").write_text(text + text.replace("11.46 2", "7 3"))
    data = load("australian", tmp_path)
    assert data.column("A4").labels == ("2", "3")
    assert data.column("A3").histogram.tolist() == [1, 1]
    assert "no checksum is known" in data.note


def test_census_and_acs_have_headers(tmp_path):
    (tmp_path / "USCensus1990.data.txt").write_text("caseid,dAge,iSex\n10000,5,0\n10001,6,1\n")
    assert load("census1990", tmp_path).column("dAge").labels == ("5", "6")
    (tmp_path / "psam_p01.csv").write_text("RT,ST,PINCP\nP,1,20000\nP,1,\n")
    (tmp_path / "psam_p02.csv").write_text("RT,ST,PINCP\nP,2,100\n")
    data = load("acs-income", tmp_path)
    assert data.column("PINCP").labels == ("100", "20000", "")
    assert data.column("ST").histogram.tolist() == [2, 1]
    (tmp_path / "psam_p02.csv").write_text("RT,PINCP\nP,100\n")
    with pytest.raises(CorruptData, match="the columns differ"):
        load("acs-income", tmp_path)


def test_parquet_copies_read_like_the_text(tmp_path):
    table = pa.table({"A2": [22.08, 7.0], "A4": [2, None]})
    parquet.write_table(table, tmp_path / "australian.parquet")
    data = load("australian", tmp_path)
    assert data.column("A2").labels == ("7", "22.08")
    assert data.column("A4").labels == ("2", "")
    assert "Parquet copy" in data.note


def test_what_is_missing_or_broken_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"Download adult.data from the page 'Adult' of"):
        load("adult", tmp_path)
    with pytest.raises(InvalidArgument, match="one of adult, adult-test, australian"):
        load("iris", tmp_path)
    (tmp_path / "adult.data").write_text("39, State-gov\n")
    with pytest.raises(CorruptData, match="row 1 has 2 of 15 entries"):
        load("adult", tmp_path)
    (tmp_path / "adult.data").write_bytes(b"39, \xff\xfe\n")
    with pytest.raises(CorruptData, match=r"adult\.data is no text as it should be"):
        load("adult", tmp_path)
    (tmp_path / "adult.data").write_text("\n")
    with pytest.raises(CorruptData, match="no rows"):
        load("adult", tmp_path)


@pytest.mark.skipif(not SHARED.exists(), reason="the copies of the data are not beside the project")
@pytest.mark.parametrize(
    ("name", "n", "column", "size"),
    [
        ("adult", 32_561, "native_country", 42),
        ("australian", 690, "A5", 14),
        ("census1990", 50_000, "POB", 189),
        ("acs-income", 100_000, "stabbr", 20),
    ],
)
def test_the_copies_are_what_they_say(name, n, column, size):
    data = load(name, SHARED)
    assert (data.n, data.column(column).size) == (n, size)
    assert "NOT" not in data.note
    assert data.column(column).frequencies.sum() == pytest.approx(1)


@pytest.mark.skipif(not SHARED.exists(), reason="the copies of the data are not beside the project")
def test_the_original_adult_file_is_known_by_its_checksum(tmp_path):
    """Written as UCI has it, the copy is UCI's file to the byte."""
    table = parquet.read_table(SHARED / "adult_train.parquet")
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    text = "".join(", ".join(map(str, row)) + "\n" for row in rows) + "\n"
    (tmp_path / "adult.data").write_text(text, newline="")
    data, copy = load("adult", tmp_path), load("adult", SHARED)
    assert data.note == "UCI Adult, training file, 32,561 rows"
    for name, column in copy.columns.items():
        assert column.labels == data.columns[name].labels
        assert np.array_equal(column.codes, data.columns[name].codes)


def test_checksums_are_of_the_right_shape():
    for source in SOURCES.values():
        for file in source.files:
            assert file.sha256 is None or len(bytes.fromhex(file.sha256)) == 32
