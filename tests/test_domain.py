"""Domains: what is an answer and what is not."""

import enum
from hashlib import sha256

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deniable import Domain, Text
from deniable.errors import InvalidArgument

LABELS = ["car", "train", "other"]


@pytest.mark.parametrize("answers", [1, 0, -3, True, 2.5, "abc", [], ["a"], ["a", "a"], [1, True],
                                     [None, "a"], [0.5, 1.5], None, 2**40, [1, "1"], [1 << 60, 2],
                                     ["\ud800", "a"], {"a", "b"}, {"a": 1, "b": 2},
                                     np.array(3), pd.DataFrame({"a": [1]})],
                         ids=lambda answers: type(answers).__name__)  # fmt: skip
def test_bad_domains_are_refused(answers):
    with pytest.raises(InvalidArgument, match="'domain' must be"):
        Domain(answers)


@pytest.mark.parametrize(
    "column",
    [
        ["train", "car"],
        ("train", "car"),
        np.array(["train", "car"]),
        np.array(["train", "car"], dtype=object),
        pd.Series(["train", "car"]),
        pd.Series(["train", "car"], dtype="category"),
        pl.Series(["train", "car"]),
        pa.array(["train", "car"]),
        pa.chunked_array([["train"], ["car"]]),
        iter(["train", "car"]),
    ],
    ids=lambda column: type(column).__name__,
)
def test_labels_are_found_in_any_column(column):
    assert Domain(LABELS).encode(column).tolist() == [1, 0]


@pytest.mark.parametrize("column", [[2, 0], np.array([2, 0]), np.array([2, 0], np.uint8),
                                    pd.Series([2, 0]), pl.Series([2, 0]), pa.array([2, 0])],
                         ids=lambda column: type(column).__name__)  # fmt: skip
def test_integers_are_taken_from_any_column(column):
    assert Domain(3).encode(column).tolist() == [2, 0]


def test_booleans_answer_a_question_with_two_values():
    assert Domain(2).encode([True, False]).tolist() == [1, 0]
    assert Domain([True, False]).encode([True, False]).tolist() == [0, 1]


def test_errors_name_position_value_and_what_is_allowed():
    with pytest.raises(
        InvalidArgument, match=r"'values\[1\]' must be one of .*'other'\]; got 'bus'"
    ):
        Domain(LABELS).encode(["car", "bus"])
    with pytest.raises(InvalidArgument, match=r"'values\[2\]' must be an integer of 0..4; got 5"):
        Domain(5).encode([0, 1, 5])
    with pytest.raises(InvalidArgument, match="one-dimensional array of integers"):
        Domain(5).encode(np.array([1.0, np.nan]))
    with pytest.raises(InvalidArgument, match="'values' must be a list or array"):
        Domain(LABELS).encode("car")


def test_other_takes_what_is_unknown():
    domain = Domain(LABELS, other="other")
    assert domain.encode(["bus", "car", 7]).tolist() == [2, 0, 2]
    assert Domain(5, other=4).encode([0, 9, -1]).tolist() == [0, 4, 4]
    assert Domain(1000, other=999).encode(np.array([-1, 3], np.int8)).tolist() == [999, 3]
    with pytest.raises(InvalidArgument, match="'other' must be one of the answers"):
        Domain(LABELS, other="bus")
    with pytest.raises(InvalidArgument, match="'other'"):
        Domain(5, other=True)


@pytest.mark.parametrize("missing", [None, float("nan"), ["list"], 2.5, pa.scalar("car")], ids=str)
def test_what_is_missing_is_not_an_unknown_answer(missing):
    with pytest.raises(InvalidArgument, match=r"'values\[1\]'"):
        Domain(LABELS, other="other").encode(["car", missing])


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"car": ["car", "train"]}),
        pl.DataFrame({"car": ["car", "train"]}),
        pa.table({"car": ["car", "train"]}),
        {"car": 1, "train": 2},
        {"car", "train"},
        np.array("car"),
        np.array([["car", "train"]]),
        np.ma.masked_array(["car", "train"], [0, 1]),
    ],
    ids=lambda table: type(table).__name__,
)
def test_what_is_no_column_is_refused(table):
    for domain in (Domain(LABELS), Domain(LABELS, other="other"), Domain(3)):
        with pytest.raises(InvalidArgument, match="'values' must be a list or array"):
            domain.encode(table)


def test_labels_become_plain_python_values():
    class Colour(str, enum.Enum):  # noqa: UP042
        RED = "red"
        BLUE = "blue"

    assert Domain(list(Colour)) == Domain(["red", "blue"])
    assert Domain(list(Colour)).encode([Colour.BLUE]).tolist() == [1]
    assert Domain([np.str_("a"), "b"]) == Domain(["a", "b"])
    assert Domain(np.array([3, 5])) == Domain([3, 5])
    assert Domain(pd.Series(["a", "b"])) == Domain(["a", "b"])


def test_an_empty_column_is_a_column():
    assert len(Domain(3).encode([])) == 0
    assert len(Domain(LABELS).encode([])) == 0


def test_domains_are_values():
    assert Domain(LABELS) == Domain(tuple(LABELS))
    assert hash(Domain(3)) == hash(Domain(3))
    assert Domain([0, 1]) != Domain([False, True])
    assert Domain(3) != Domain([0, 1, 2])
    domain = Domain(3)
    with pytest.raises(AttributeError):
        domain.size = 4
    with pytest.raises(AttributeError):
        del domain.size
    with pytest.raises(InvalidArgument, match="'index' must be an integer"):
        domain.label(3)


@pytest.mark.parametrize(
    "domain", [Domain(4), Domain(LABELS), Domain(LABELS, "other"), Domain(3, 2)]
)
def test_specs_round_trip(domain):
    assert Domain.from_spec(domain.to_spec()) == domain


@pytest.mark.parametrize("spec", [{}, {"size": "4"}, {"labels": "abc"}, {"size": True}, [], None,
                                  {"size": 3, "labels": [1, 2]}, {"size": 3, "x": 1}])  # fmt: skip
def test_bad_specs_are_refused(spec):
    with pytest.raises(InvalidArgument):
        Domain.from_spec(spec)


@pytest.mark.parametrize("size", [65, 257, 300, 1000, 70_000])
def test_every_answer_of_many_has_an_index_of_its_own(size):
    """Past a byte, and past two: what is encoded is the place in the list, and nothing else."""
    labels = [f"a{i}" for i in range(size)]
    order = np.arange(size)
    for domain, answers in ((Domain(labels), labels), (Domain(size), order.tolist())):
        for column in (answers, np.array(answers), pd.Series(answers)):
            np.testing.assert_array_equal(domain.encode(column), order)
        np.testing.assert_array_equal(domain.encode(answers[::-1]), order[::-1])
        assert [domain.label(i) for i in (0, 64, size - 1)] == [answers[i] for i in (0, 64, -1)]
    extra = Domain(labels, other=labels[-1]).encode([*labels, "never heard of"])
    np.testing.assert_array_equal(extra, [*order, size - 1])


def test_texts_have_codes_of_64_bits():
    """As docs/formats.md says it; every byte of the code tells texts apart."""
    texts = [f"word {i}" for i in range(3000)]
    expected = [int.from_bytes(sha256(text.encode()).digest()[:8], "little") for text in texts]
    assert Text().encode(texts).tolist() == expected
