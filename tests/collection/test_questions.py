"""One question: edges as doubles, and candidates that a page can show as they are."""

import pytest

from deniable.answers import Bins, Choice, Number, Text, YesNo
from deniable.answers.choice import check_edges
from deniable.answers.text import check_candidates
from deniable.canonical import canonical
from deniable.collection.questions import Question
from deniable.errors import InvalidArgument


def test_edges_are_compared_as_doubles():
    """No double is 2**53 + 1: as in JavaScript, the edge is then 2**53."""
    asked = Question("n", Bins(check_edges([2**53 + 1])))
    published = asked.to_json() | {"edges": [2**53 + 1]}
    for question in (asked, Question.from_json(published)):
        assert [question.index(x) for x in (2**53 - 1, 2**53)] == [0, 1]


def test_exact_edges_are_published_as_they_were_written():
    edges = Bins([-0.5, 0, 5, 7.25, 1e6, 2**60]).to_spec()["edges"]
    assert canonical(edges) == b"[-0.5,0,5,7.25,1000000,1152921504606847000]"


@pytest.mark.parametrize(
    "edges",
    [[10**400], [-(10**400), 1], [float("nan")], [float("inf")], [True], ["1"], [], "12", None],
)
def test_edges_that_are_no_finite_numbers_are_refused(edges):
    with pytest.raises(InvalidArgument, match="finite numbers"):
        check_edges(edges)


@pytest.mark.parametrize("text", ["x\ny", "x\ry", " padded", "padded ", "x\n", "", " "])
def test_candidates_that_a_line_cannot_show_are_refused(text):
    with pytest.raises(InvalidArgument, match="one line"):
        check_candidates(["tea", text])


def test_other_candidates_stay_as_they_are():
    texts = ("two words", "=cmd()", "Ünïcode 🙂")
    assert check_candidates(texts) == texts


# ---- names and kinds


@pytest.mark.parametrize("name", ["", "Way", "2way", "way-2", "é", "w" * 33, "way\n", None, 5])
def test_names_are_small_letters(name):
    with pytest.raises(InvalidArgument, match="lower-case letters"):
        Question(name, YesNo())


@pytest.mark.parametrize(
    "domain",
    [
        YesNo(),
        Choice(["a", "b"], "b", ordered=True, optional=True),
        Bins([5, 6.5]),
        Number(0, 24, 0.25, "refuse", optional=True),
        Text("none", 64),
    ],
)
def test_a_question_is_published_with_its_kind(domain):
    asked = Question("q", domain)
    assert asked.to_json() == {"name": "q", **domain.to_spec()}
    assert Question.from_json(asked.to_json()) == asked
    for bad in ({}, [], domain.to_spec(), {**asked.to_json(), "ask": "?"}):
        with pytest.raises(InvalidArgument):
            Question.from_json(bad)


def test_answers_that_are_not_shown():
    for domain in (YesNo(), Choice(["a", "b"]), Bins([5]), Number(0, 1, None, "refuse"), Text()):
        for answer in ("s3cret" * 300, ["s3cret"], {"s3cret": 1}):
            with pytest.raises(InvalidArgument, match="'q' must be") as refused:
                Question("q", domain).index(answer)
            assert "s3cret" not in str(refused.value)
