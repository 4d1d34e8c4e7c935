"""Texts that people type: one answer however it is spelt, on every path to a hash."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import deniable as dn
from deniable.answers.text import OUTSIDE, Candidates, check_candidates, text_code
from deniable.collection.bulk import privatized
from deniable.collection.manifest import Collection, Report
from deniable.collection.questions import Question
from deniable.errors import InvalidArgument
from deniable.texts import tidy
from places import VECTORS as FOLDER

VECTORS = json.loads((FOLDER / "kinds" / "text.json").read_text())
TYPED = [case.get("answer") for case in VECTORS["bad"]]
BLANK = [text for text in TYPED if isinstance(text, str) and not tidy(text)]
SPELLINGS = ["ibuprofen ", " Ibuprofen", "IBUPROFEN", "\u00a0ibuprofen", "\u3000Ibuprofen\ufeff"]
SURROGATE = "\ud800"

#: Characters that tidying changes, also together, and any others.
lively = st.sampled_from("aA\u00df\u0130\u0131\u03a3\u03c3\u03c2 \u0301\u0345\u3000\u0085")
typed = st.text(st.one_of(st.characters(exclude_categories=["Cs"]), lively))


@pytest.mark.parametrize("blank", BLANK)
def test_blanks_are_no_answer_and_no_candidate(blank):
    assert len(BLANK) == 4
    with pytest.raises(InvalidArgument, match="more than blanks") as refusal:
        dn.Text().encode(["tea", blank])
    assert refusal.value.name == "values[1]"
    with pytest.raises(InvalidArgument, match="more than blanks") as refusal:
        Candidates(["tea", blank])
    assert refusal.value.name == "candidates[1]"


@given(typed)
def test_tidying_twice_changes_nothing(text):
    """But for the two characters that docs/wire-format.md names."""
    assume("\u1e9e" not in text and "\ufeff" not in text)
    for fold in ("case", "none"):
        assert tidy(tidy(text, fold), fold) == tidy(text, fold)


def test_where_tidying_twice_is_not_tidying_once():
    assert tidy("STRA\u1e9eE") == "stra\u00dfe"
    assert tidy("stra\u00dfe") == "strasse"
    assert tidy("A\ufeff\u03c3") == "a \u03c2"
    assert tidy("a \u03c2") == "a \u03c3"


@pytest.mark.slow
@given(st.lists(typed.filter(tidy), max_size=8))
def test_many_are_encoded_as_each_alone(texts):
    """Lists, object arrays and Arrow columns, with repetitions, as one answer at a time."""
    twice = [*texts, *texts]
    alone = [int(dn.Text().encode([text])[0]) for text in twice]
    assert alone == [text_code(tidy(text)) for text in twice]
    for column in (twice, np.array(twice, dtype=object), pa.array(twice, pa.string())):
        assert dn.Text().encode(column).tolist() == alone


def test_a_partners_table_is_tidied_like_answers():
    m = dn.ORR(dn.Text(), 32.0, cohorts=1, width=256)  # keeps all but one cell in 10**11
    asked = Question("drug", m.domain)
    table = pa.table({"drug": [*SPELLINGS, "aspirin"] * 400})
    collection = Collection((asked,), (Report("drug", ("drug",), m),), 32.0)
    (batch,) = privatized(collection, table, 1, 10_000, "refuse")
    sent = pa.ipc.open_stream(batch.body).read_all().column("drug").to_pylist()
    cells = {row["report"] for row in sent}
    assert cells == {m.cells_of(asked.index(text), 0)[0] for text in ("ibuprofen", "aspirin")}


def test_what_was_answered_is_found_however_it_is_spelt():
    m = dn.ORR(dn.Text(), 8.0, cohorts=64, width=4096)
    reports = m.privatize(SPELLINGS * 400, np.random.default_rng(1))
    for candidate in SPELLINGS:
        found = m.tally(reports).estimate("unbiased", candidates=[candidate, "Aspirin"])
        assert found.labels == (candidate, "Aspirin", OUTSIDE)
        assert found.frequencies[0] > 0.9
        assert reports.among([candidate]).mechanism.domain.texts == ("ibuprofen",)


@pytest.mark.parametrize(
    "pair", [["Tea", "tea "], ["caf\u00e9", "cafe\u0301"], ["tea", "(Anything  else)"]]
)
@pytest.mark.parametrize("check", [Candidates, dn.ORR(dn.Text(), 1.0).among, check_candidates])
def test_two_spellings_of_one_answer_are_refused_by_name(check, pair):
    pair = [text.strip() for text in pair] if check is check_candidates else pair
    with pytest.raises(InvalidArgument, match="different answers") as refusal:
        check(["coffee", *pair])
    assert refusal.value.value in (pair, [OUTSIDE, pair[1]])


@pytest.mark.parametrize(
    "wrong", [SURROGATE, "a" + SURROGATE, 7, None, b"tea", ["tea"], float("nan")]
)
def test_what_is_no_text_is_refused_with_its_place(wrong):
    with pytest.raises(InvalidArgument, match="UTF-8") as refusal:
        dn.Text().encode(["tea", "tea", wrong])
    assert refusal.value.name == "values[2]"
    with pytest.raises(InvalidArgument, match="UTF-8"):
        Candidates(["tea", wrong])


def test_listed_answers_are_hashed_as_they_are():
    """Their labels are names that the survey gave, and nobody typed them."""
    listed = dn.CMS(["Car ", "car"], 1.0, cohorts=4, width=8)
    assert listed.codes.tolist() == [text_code("Car "), text_code("car")]
