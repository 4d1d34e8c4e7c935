"""Sets of answers: how people write them, and the integers that stand for them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deniable import Items
from deniable.errors import InvalidArgument

TOOLS = ["phone", "laptop", "paper"]
ONES = {"phone": [1, 0, 1], "laptop": [0, 0, 1], "paper": [0, 0, 0]}
#: {phone}, the empty set, {phone, laptop}, of at most two.
ENCODED = [(0, 3), (3, 4), (0, 1)]


def lists():
    sets = [["phone"], [], ["laptop", "phone"]]
    yield sets
    yield [("phone",), set(), frozenset({"laptop", "phone"})]
    yield [np.array(one) for one in (["phone"], [], ["phone", "laptop"])]
    yield pd.Series(sets)
    yield pl.Series(sets)
    yield pa.array(sets)


def tables():
    yield ONES
    yield pd.DataFrame(ONES)
    yield pd.DataFrame(ONES).astype(bool)
    yield pd.DataFrame(ONES)[["paper", "phone", "laptop"]]
    yield pl.DataFrame(ONES)
    yield pa.table(ONES)
    yield np.array([ONES[tool] for tool in TOOLS]).T


@pytest.mark.parametrize("column", [*lists(), *tables()], ids=lambda x: type(x).__name__)
def test_sets_are_lists_or_a_column_of_zeros_and_ones_for_each_answer(column):
    assert Items(TOOLS, 2).encode(column).tolist() == ENCODED


def test_places_take_the_type_that_holds_them():
    assert Items(3).encode([[2, 0, 1], []]).tolist() == [(0, 1, 2), (3, 4, 5)]
    wide = Items(300, 2)
    assert wide.encode([[299]]).tolist() == [(299, 300)]
    assert wide.encode([]).tolist() == []
    assert wide.dtype.itemsize == 4


def test_a_skip_is_a_set_of_its_own():
    domain = Items(TOOLS, 2, optional=True)
    assert domain.items == 4
    assert domain.encode([None, [], ["paper"]]).tolist() == [(3, 4), (4, 5), (2, 4)]
    assert domain.skip == (3, 4)
    assert [domain.answer(value) for value in domain.encode([None, [], ["paper"]]).tolist()] == [
        None,
        [],
        ["paper"],
    ]
    gaps = {"phone": [1, None], "laptop": [0, None], "paper": [1, None]}
    frame = pd.DataFrame(gaps)
    nullable = [frame.astype("Int64"), frame.astype("boolean"), frame.astype(object)]
    for table in (gaps, frame, *nullable, pl.DataFrame(gaps), pa.table(gaps)):
        assert domain.encode(table).tolist() == [(0, 2), (3, 4)]


def test_every_set_is_a_value():
    domain = Items(5, 3, optional=True)
    values = domain.values(1000)
    assert len(set(values)) == len(values) == 27
    again = domain.encode([domain.answer(value) for value in values])
    assert again.tolist() == list(values)
    assert domain.values(26) == ()


@pytest.mark.parametrize(
    ("column", "name", "allowed"),
    [
        ("phone", "values", "a list or array"),
        (["phone"], r"values\[0\]", "a list of answers, which may be empty"),
        ([["phone"], None], r"values\[1\]", "a list of answers, which may be empty"),
        ([["pen"]], r"values\[0\]", "a list of some of"),
        ([["phone", None]], r"values\[0\]", "a list of some of"),
        ([[float("nan")]], r"values\[0\]", "a list of some of"),
        ([[["phone"]]], r"values\[0\]", "a list of"),
        ([{"phone": 1}], r"values\[0\]", "a list of answers"),
        ([[], ["phone", "phone"]], r"values\[1\]", "different answers"),
        ([[], TOOLS], r"values\[1\]", "at most 2 answers"),
        ({"phone": [1], "laptop": [0]}, "values", "missing: .'paper'"),
        ({**ONES, "pen": [0, 0, 0]}, "values", "unknown: .'pen'"),
        ({**ONES, "paper": [0, 2, 0]}, r"values\['paper'\]", "zeros and ones"),
        ({**ONES, "paper": ["0", "1", "0"]}, r"values\['paper'\]", "zeros and ones"),
        ({**ONES, "paper": pd.Series([np.ones(2), [0], 0])}, r"values\['paper'\]", "zeros and"),
        ({**ONES, "paper": [0, None, 0]}, r"values\[1\]", "a row of zeros and ones"),
        ({**ONES, "paper": [0, 0]}, "values", "the same length"),
        (np.zeros((3, 4)), "values", "a table of 3 columns"),
        (7, "values", "a list or array"),
    ],
    ids=str,
)
def test_what_is_no_set_is_refused_by_name(column, name, allowed):
    with pytest.raises(InvalidArgument, match=f"{name}.* must be .*{allowed}"):
        Items(TOOLS, 2).encode(column)


@pytest.mark.parametrize(
    ("answers", "at_most"),
    [(1, None), (3, 0), (3, 4), (3, True), (3, 2.0), (1025, None), ("ab", 1)],
)
def test_bad_lists_are_refused(answers, at_most):
    with pytest.raises(InvalidArgument):
        Items(answers, at_most)


def test_a_survey_wants_pairs_only_if_it_says_so():
    assert Items.wanted({"answers": TOOLS}) == ("shares",)
    assert Items.wanted({"answers": TOOLS, "pairs": True}) == ("pairs", "shares")
    with pytest.raises(InvalidArgument, match="true or false"):
        Items.wanted({"pairs": "yes"})
