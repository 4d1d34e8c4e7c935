"""Tasks: what sums mean, known by name."""

import math

import pytest

import deniable as dn
from deniable.core.task import (
    MOST_PEOPLE,
    Expectation,
    Query,
    Task,
    find_task,
    people_needed,
    register_task,
    two_digits,
    unregister_task,
)
from deniable.errors import InvalidArgument
from deniable.estimation import FREQUENCIES, MEANS, METHODS
from deniable.mechanisms.frequency import frequency_oracles


class Nothing(Task):
    name = "nothing"
    default = "none"

    def methods(self, mechanism):
        return ["none"]

    def estimate(self, parts, method=None, **choices):
        raise NotImplementedError

    def error(self, mechanism, n, **guess):
        return 0.0

    def half_width(self, mechanism, n, *, sampled=False, skipped=None):
        return 0.0

    def expectation(self, mechanism, n, *, sampled=False, skipped=None):
        raise NotImplementedError


def test_tasks_are_known_by_their_names():
    task = register_task(Nothing())
    try:
        assert find_task("nothing") is task
        with pytest.raises(InvalidArgument, match="new"):
            register_task(Nothing())
        assert register_task(task) is task
    finally:
        unregister_task("nothing")
    with pytest.raises(InvalidArgument, match="one of frequencies, mean"):
        find_task("nothing")
    with pytest.raises(InvalidArgument, match="a Task"):
        register_task(Nothing)


@pytest.mark.parametrize("name", dn.mechanisms())
def test_every_mechanism_has_tasks_that_are_known(name):
    family = dn.mechanisms()[name]
    assert [find_task(task).name for task in family.tasks] == list(family.tasks)


def test_queries_suit_some_mechanisms_only():
    listed, text = dn.GRR(4, 1.0), dn.CMS(dn.Text(), 1.0)
    assert FREQUENCIES.queries_of(listed) == {}
    assert list(FREQUENCIES.queries_of(text)) == ["candidates"]
    assert MEANS.queries_of(dn.Duchi(dn.Number(0, 1), 1.0)) == {}


def test_queries_are_read_from_text():
    many = Query("Look for", "one text per line", several=True, needed=True)
    assert many.parse("candidates", ["a", "b"]) == ("a", "b")
    assert many.to_json() == {
        "label": "Look for",
        "hint": "one text per line",
        "several": True,
        "needed": True,
    }
    one = Query("Below", "a number", read=float)
    assert one.parse("below", ["2.5"]) == 2.5
    with pytest.raises(InvalidArgument, match="a number"):
        one.parse("below", ["x"])
    with pytest.raises(InvalidArgument, match="given once"):
        one.parse("below", ["1", "2"])


@pytest.mark.parametrize(("width", "verdict"), [(1, "good"), (1.5, "rough"), (2, "too few people")])
def test_verdicts(width, verdict):
    found = Expectation(width, 1, 2, None, "", "", "")
    assert found.verdict == verdict


def test_how_many_people_are_needed():
    def width(n):
        return 1 / math.sqrt(n)

    assert people_needed(width, 100, 0.1) is None
    assert people_needed(width, 50, 0.1) == 100
    assert people_needed(width, 50, 0.03) == 1_200
    assert people_needed(width, 50, 0.5 / math.sqrt(MOST_PEOPLE)) is None
    assert [two_digits(n) for n in (7, 99, 101, 1_234)] == [7, 99, 110, 1_300]


@pytest.mark.parametrize("name", ["orr", "hcms", "grr", "brr", "hr", "hrr", "shist"])
def test_a_tally_whose_counts_suffice_offers_the_likelihood(name):
    family = frequency_oracles()[name]
    m = family(dn.Text(), 2.0) if name in ("orr", "hcms") else family(2, 2.0)
    assert "likelihood" in FREQUENCIES.methods(m)


@pytest.mark.slow
@pytest.mark.parametrize("name", frequency_oracles())
def test_methods_that_a_tally_offers_decode_it(name):
    family = frequency_oracles()[name]
    m = family(family.only_size or 3, 2.0)
    tally = m.tally(m.privatize([0, 1, 1, 0] * 50))
    offered = FREQUENCIES.methods(m)
    assert FREQUENCIES.default in offered
    for method in set(METHODS) - {"calibrate"}:
        if method in offered:
            assert tally.estimate(method).method == method
        else:
            with pytest.raises(InvalidArgument):
                tally.estimate(method)
