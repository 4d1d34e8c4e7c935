"""Domains: what is an answer and what is not."""

import enum
import json
import math
import pickle
import random
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deniable import Bins, Choice, Domain, Number, Several, Text, YesNo
from deniable.answers.text import Candidates, text_code
from deniable.core.domain import SKIPPED, Key, kinds, registering
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


DOMAINS = [Domain(4), Domain(LABELS), Domain(LABELS, "other"), Domain(3, 2), Domain([True, 7]),
           Choice(LABELS, ordered=True, optional=True), Choice(5, optional=True),
           YesNo(), YesNo(optional=True), Bins([5, 6.5]), Bins([0.1], optional=True),
           Text(), Text("none", 64, optional=True), Candidates(["Tea", "coffee"], "none"),
           Number(0, 24), Number(-1.5, 2, 0.25, "refuse", optional=True),
           Several({"a": 3, "b": LABELS, "c": Number(0, 1)})]  # fmt: skip


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_specs_round_trip(domain):
    spec = domain.to_spec()
    for again in (Domain.from_spec(spec), Domain.from_spec(json.loads(json.dumps(spec))),
                  pickle.loads(pickle.dumps(domain))):  # fmt: skip
        assert again == domain
        assert hash(again) == hash(domain)
        assert type(again) is type(domain)
        assert again.to_spec() == spec
    assert sum(domain == other for other in DOMAINS) == 1
    assert spec["kind"] == domain.kind
    assert spec["optional"] is domain.optional
    with pytest.raises(AttributeError):
        domain.optional = True


def choice(**keys):
    return {"kind": "choice", "optional": False, "ordered": False, "other": None, **keys}


def number(**keys):
    keys = {"lo": 0, "hi": 24, "step": None, "outside": "clip", **keys}
    return {"kind": "number", "optional": False, **keys}


@pytest.mark.parametrize(
    "spec",
    [{}, [], None, {"kind": "choice"}, choice(), choice(size="4"), choice(answers="abc"),
     choice(size=True), choice(size=3, answers=[1, 2]), choice(size=3, x=1),
     choice(size=3, optional=1), choice(size=3, ordered=0), choice(answers=["a", "b"], other="c"),
     {"size": 4}, {"labels": ["a", "b"]}, {"text": True}, choice(size=3, kind="choices"),
     {"kind": "yes/no", "optional": False, "answers": ["yes", "no"]},
     {"kind": "number", "optional": False, "edges": [2, 1]}, number(lo=24), number(hi="24"),
     number(step=0), number(step=7), number(step=-1), number(outside="drop"), number(edges=[1]),
     number(lo=-1e16), number(lo=1e15 - 1, hi=1e15), number(hi=True), number(step=2.0**-30),
     {"kind": "text", "optional": False, "fold": "some", "max_bytes": 64},
     {"kind": "text", "optional": False, "fold": "case", "max_bytes": 0},
     {"kind": "text", "optional": False, "fold": "case", "max_bytes": 1025},
     {"kind": "several", "optional": False, "parts": []},
     {"kind": "several", "optional": False, "parts": [choice(size=2)]}],
    ids=json.dumps,
)  # fmt: skip
def test_bad_specs_are_refused(spec):
    with pytest.raises(InvalidArgument):
        Domain.from_spec(spec)


def test_yes_and_no_are_booleans_or_words():
    assert YesNo().encode([True, False, "yes", "no", np.True_]).tolist() == [0, 1, 0, 1, 0]
    for column in (np.array([True, False]), pd.Series([True, False]), pa.array([True, False])):
        assert YesNo().encode(column).tolist() == [0, 1]
    for wrong in (1, 0, None, "Yes", 0.0):
        with pytest.raises(InvalidArgument, match=r"'values\[1\]' must be True or False"):
            YesNo().encode([True, wrong])


def test_bins_count_the_edges_that_are_at_most_the_number():
    bins = Bins([5, 6.5, 8])
    numbers = [4.9, 5, 6.4, 6.5, 7, 8, 1e300, -0.0]
    expected = [0, 1, 1, 2, 2, 3, 3, 0]
    for column in (numbers, np.array(numbers), pd.Series(numbers), pl.Series(numbers),
                   pa.array(numbers), pa.chunked_array([numbers[:3], numbers[3:]])):  # fmt: skip
        assert bins.encode(column).tolist() == expected
    assert bins.encode([4, 5, 8, Fraction(13, 2), np.float32(6.5)]).tolist() == [0, 1, 3, 2, 2]
    assert bins.labels == ("below 5", "5 to 6.5", "6.5 to 8", "8 or more")
    money = [Decimal("4.99"), Decimal("6.50"), Decimal(8)]
    for column in (money, np.array(money), pd.Series(money), pl.Series(money), pa.array(money)):
        assert bins.encode(column).tolist() == [0, 2, 3]


def encoded_one_by_one(domain, x):
    """The prescribed order, in Python's doubles."""
    a = min(max(x, domain.lo), domain.hi)
    if domain.step is not None:
        a = domain.lo + math.floor((a - domain.lo) / domain.step + 0.5) * domain.step
    v = math.floor((a - domain.lo) / (domain.hi - domain.lo) * 4294967296 + 0.5)
    return min(v, 1 << 32)


@pytest.mark.parametrize(
    "domain",
    [Number(0, 24), Number(0, 24, 0.25), Number(-1e6, 0.1), Number(-2, 3, 1), Number(0.1, 0.7, 0.1),
     Number(1e15 - 2**31, 1e15), Number(0, 1, 1.0000000005)],
    ids=repr,
)  # fmt: skip
def test_numbers_are_encoded_in_the_prescribed_order(domain):
    rng, width = random.Random(17), domain.hi - domain.lo
    column = [domain.lo, domain.hi, -0.0, 0, domain.lo - 1, domain.hi + 1, 1e308, -1e308, 5e-324]
    column += [domain.lo + width * rng.uniform(-0.1, 1.1) for _ in range(2000)]
    column += [domain.lo + (i + 0.5) * (domain.step or width / 64) for i in range(64)]
    found = domain.encode(column)
    assert found.tolist() == [encoded_one_by_one(domain, float(x)) for x in column]
    assert found.dtype == domain.dtype
    assert found.max() == 1 << 32
    assert found.min() == 0
    np.testing.assert_array_equal(found, domain.encode(np.array(column)))
    np.testing.assert_array_equal(found, domain.encode(pa.array([float(x) for x in column])))


PRIVATE = ["tell nobody", 123456.75, True, None, math.nan, math.inf, 10**400, [1.5], b"x",
           Decimal("inf"), Decimal("nan"), Decimal("1e400")]  # fmt: skip


@pytest.mark.parametrize("domain", [Number(0, 24), Bins([5, 6])], ids=repr)
@pytest.mark.parametrize("wrong", [x for x in PRIVATE if x != 123456.75], ids=repr)
def test_what_is_no_number_is_refused_and_not_repeated(domain, wrong):
    with pytest.raises(InvalidArgument, match=r"'values\[2\]' must be a finite number") as refusal:
        domain.encode([1, 2.5, wrong])
    assert "tell nobody" not in str(refusal.value)
    assert not isinstance(refusal.value.value, str)


def test_a_decimal_that_signals_is_no_number():
    with pytest.raises(InvalidArgument, match="must be a finite number"):
        Number(0, 24).encode([Decimal("sNaN")])


def test_numbers_beyond_a_strict_range_are_refused_and_not_repeated():
    strict = Number(0, 24, outside="refuse")
    assert strict.encode([0, 24]).tolist() == [0, 1 << 32]
    for column in ([0.5, 123456.75], np.array([0.5, 123456.75])):
        with pytest.raises(InvalidArgument, match="from 0 to 24") as refusal:
            strict.encode(column)
        assert refusal.value.name == "values[1]"
        assert "123456" not in str(refusal.value)


def test_long_texts_are_refused_and_not_repeated():
    short = Text(max_bytes=6)
    assert short.encode(["  Müsli "]).tolist() == [text_code("müsli")]
    for wrong in ("secret!", "MÜSLIX", "", "\ud800", 7, None):
        with pytest.raises(InvalidArgument, match="text") as refusal:
            short.encode(["tea", wrong])
        assert refusal.value.name == "values[1]"
        assert "secret" not in str(refusal.value)
        assert "X" not in str(refusal.value)
    with pytest.raises(InvalidArgument, match="at most 6 bytes"):
        short.encode(["secret!"])


def test_case_counts_where_it_is_not_folded():
    plain = Text("none")
    assert plain.encode(["Tea", " tea"]).tolist() == [text_code("Tea"), text_code("tea")]
    assert plain.about(["Tea", "tea"]).texts == ("Tea", "tea")
    with pytest.raises(InvalidArgument, match="different answers"):
        Text().about(["Tea", "tea"])


def test_a_skip_is_one_more_value():
    skips = {
        Choice(LABELS, optional=True): ("train", [1, 3]),
        Choice(3, optional=True): (2, [2, 3]),
        YesNo(optional=True): (False, [1, 2]),
        Bins([5], optional=True): (5, [1, 2]),
        Number(0, 1, optional=True): (0.5, [1 << 31, (1 << 32) + 1]),
        Text(optional=True): ("tea", [text_code("tea"), text_code(b"\xff")]),
    }
    for domain, (answer, expected) in skips.items():
        assert domain.encode([answer, None]).tolist() == expected
        assert domain.skip == expected[1]
        if domain.is_listed:
            assert domain.size == expected[1] + 1
            assert domain.label(domain.skip) == SKIPPED
        needed = Domain.from_spec({**domain.to_spec(), "optional": False})
        assert needed.skip is None
        with pytest.raises(InvalidArgument):
            needed.encode([answer, None])
    assert Number(0, 4, optional=True).encode(pa.array([4, None])).tolist()[1] == (1 << 32) + 1
    with pytest.raises(InvalidArgument, match="stands for a skip"):
        Choice(["a", SKIPPED], optional=True)


def test_answers_of_several_questions_are_records():
    several = Several({"a": LABELS, "b": Number(0, 1), "c": YesNo(optional=True)})
    columns = {"a": ["car", "other"], "b": [1.0, 0.5], "c": [None, True]}
    expected = [(0, 1 << 32, 2), (2, 1 << 31, 0)]
    rows = [{name: column[i] for name, column in columns.items()} for i in range(2)]
    for given in (columns, rows, pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
        assert several.encode(given).tolist() == expected
    assert several.encode([]).tolist() == []
    for wrong, name in (([{"a": "car"}], "values"), ({**columns, "b": [1]}, "values"),
                        ({**columns, "b": [1, None]}, r"b: values\[1\]"), ("car", "values"),
                        ([1], "values")):  # fmt: skip
        with pytest.raises(InvalidArgument, match=name):
            several.encode(wrong)


def test_domains_say_what_may_be_answered():
    words = [domain.words() for domain in DOMAINS]
    assert words[1] == "3 answers"
    assert "numbers from 0 to 24" in words
    assert "any text" in words
    for domain in DOMAINS:
        for value in domain.sample():
            assert np.array([value], dtype=domain.dtype).tolist() == [value]


@pytest.mark.parametrize(
    "small",
    [small for kind in kinds().values() for form in kind.forms for small in form.smalls()],
    ids=lambda small: f"{type(small).__name__}, {small}",
)
def test_every_kind_knows_its_own_answers(small):
    """A new kind is judged by this: its spec is itself, and answers are those of their values."""
    assert Domain.from_spec(json.loads(json.dumps(small.to_spec()))) == small
    assert any(type(small) is form for form in kinds()[small.kind].forms)
    for value in (*small.sample(), *([] if small.skip is None else [small.skip])):
        again = small.encode([small.answer(value)])[0].item()
        assert again == value, f"{small.answer(value)!r} is encoded as {again}"


def test_a_kind_can_be_known_for_a_while():
    class Dice(Domain, registered=False):
        kind = "dice"
        spec_keys = (("sides",),)
        keys = {"sides": Key(int, needed=True)}

        def __init__(self, sides, optional=False):
            self._freeze(sides=sides, optional=optional)

        def to_spec(self):
            return {"kind": "dice", "optional": False, "sides": self.sides}

    assert "dice" not in kinds()
    with registering(Dice):
        assert Domain.from_spec(Dice(6).to_spec()) == Dice(6)
        assert pickle.loads(pickle.dumps(Dice(6))) == Dice(6) != Dice(8)
        assert Domain.from_table({"kind": "dice", "name": "x", "sides": "6"}) == Dice(6)
        with pytest.raises(InvalidArgument, match="'dice' needs sides"):
            Domain.from_table({"kind": "dice"})
    assert "dice" not in kinds()
    with pytest.raises(InvalidArgument, match="'kind' must be one of"):
        Domain.from_spec(Dice(6).to_spec())


def test_survey_tables_have_the_keys_of_their_kind():
    tables = {
        Choice(LABELS, "other"): {"kind": "choice", "answers": LABELS, "other": "other"},
        YesNo(): {"kind": "yes/no"},
        Bins([5, 6.5]): {"kind": "number", "edges": [5, 6.5]},
        Number(0, 24, 0.5): {"kind": "number", "lo": 0, "hi": 24, "step": 0.5},
        Text(max_bytes=64): {"kind": "text", "candidates": ["tea"], "max_bytes": 64},
    }
    for domain, table in tables.items():
        assert Domain.from_table({"name": "q", "ask": "?", **table}) == domain
    for wrong in ({"kind": "number"}, {"kind": "number", "edges": [1], "lo": 0, "hi": 3},
                  {"kind": "number", "lo": 0}, {"kind": "choice"}, {"kind": "several"}, {},
                  {"kind": "choice", "answers": ["a", "a"]},
                  {"kind": "number", "lo": 0, "hi": 1, "outside": "x"}):  # fmt: skip
        with pytest.raises(InvalidArgument):
            Domain.from_table(wrong)


def test_only_stable_ids_are_published():
    for good in (
        Domain(LABELS),
        YesNo(),
        Bins([1]),
        Text(),
        Number(0, 1),
        Domain(["ü" * 100, "b"]),
    ):
        good.require_publishable()
    for wrong in (Domain(3), Domain([1, 2]), Domain([True, False]), Domain([" a", "b"]),
                  Domain(["a  b", "b"]), Domain(["a\x1b", "b"]), Domain(["u" * 101, "b"]),
                  Domain(["u\u0308", "b"]), Domain(["", "b"]), Candidates(["tea"])):  # fmt: skip
        with pytest.raises(InvalidArgument):
            wrong.require_publishable()


@pytest.mark.slow
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


def test_an_edge_of_minus_zero_is_zero():
    """Names of ranges are hashed, and canonical JSON writes both as 0."""
    assert Bins([-0.0, 5]) == Bins([0, 5])
    assert Bins([-0.0, 5]).labels[0] == "below 0"


@pytest.mark.parametrize("domain", [Number(0, 10), Bins([5]), Choice(4, optional=True)], ids=repr)
@pytest.mark.parametrize("kind", ["m8[ns]", "M8[ns]"])
def test_times_are_no_numbers(domain, kind):
    with pytest.raises(InvalidArgument, match="values"):
        domain.encode(np.array([3], dtype=kind))
