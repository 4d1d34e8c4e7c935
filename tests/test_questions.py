"""One question: edges as doubles, and candidates that a page can show as they are."""

import json

import pytest

import deniable as dn
from deniable.collection.questions import Question, bin_names, check_candidates, check_edges
from deniable.errors import InvalidArgument


def test_edges_are_compared_as_doubles():
    """No double is 2**53 + 1: as in JavaScript, the edge is then 2**53."""
    edges = check_edges([2**53 + 1])
    asked = Question("n", "n?", "number", dn.GRR(bin_names(edges), 1.0), edges)
    published = json.loads(json.dumps(asked.to_json())) | {"edges": [2**53 + 1]}
    assert [Question.from_json(published).index(x) for x in (2**53 - 1, 2**53)] == [0, 1]


def test_exact_edges_are_published_as_they_were_written():
    assert json.dumps(check_edges([-0.5, 0, 5, 7.25, 1e6, 2**60])) == (
        "[-0.5, 0, 5, 7.25, 1000000.0, 1152921504606846976]"
    )


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
