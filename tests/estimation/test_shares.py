"""What is estimated of sets of answers, and how it looks."""

import json

import numpy as np
import pytest

import deniable as dn
from deniable.errors import InvalidArgument

TOOLS = ["phone", "laptop", "tablet", "paper"]


@pytest.fixture(scope="module")
def reports():
    """Half of the people tick phone and laptop, a quarter paper, a quarter nothing."""
    m = dn.SetSelect(dn.Items(TOOLS, 2), 4.0, w=2, tau=2)
    answers = [["laptop", "phone"], ["phone", "laptop"], ["paper"], []] * 2_500
    return m.privatize(answers, np.random.default_rng(6))


def test_shares_are_not_made_to_sum_to_one(reports):
    e = reports.mechanism.estimate(reports)
    assert isinstance(e, dn.Shares)
    assert e.labels == tuple(TOOLS)
    assert np.all(np.abs(e.shares - [0.5, 0.5, 0, 0.25]) < 6 * e.standard_errors)
    assert e.ticks.value == pytest.approx(e.shares.sum()) == pytest.approx(1.25, abs=0.1)
    assert e.about["ticks"] == e.ticks.value
    assert e.remarks[0].startswith("The mean number of answers is 1.2")
    assert e.to_pandas().columns.tolist() == ["value", "share", "standard_error", "low", "high"]
    clipped = reports.mechanism.estimate(reports, "clipped")
    assert clipped.shares.tolist() == np.clip(e.shares, 0, 1).tolist()
    assert np.all(clipped.intervals >= 0)
    wider = reports.mechanism.estimate(reports, simultaneous=True, population="everyone")
    assert np.all(wider.intervals[:, 1] > e.intervals[:, 1])


def test_charts_say_that_several_answers_are_possible(reports):
    e = reports.mechanism.estimate(reports)
    chart = e.chart({"phone": 0.5, "laptop": 0.5, "tablet": 0.0, "paper": 0.25})
    assert "several answers possible" in json.dumps(chart)
    assert "The mean number of answers is" in chart["usermeta"]["caption"]


def test_pairs_that_may_be_chance_are_left_blank(reports):
    e = reports.mechanism.estimate(reports, "pairs")
    assert isinstance(e, dn.Pairs)
    assert len(e.labels) == 6
    row = e.labels.index("phone + laptop")
    share, association = (e.quantities[name] for name in ("share", "association"))
    assert abs(share.values[row] - 0.5) < 6 * share.standard_errors[row]
    assert abs(association.values[row] - 0.25) < 6 * association.standard_errors[row]
    assert row in e.clear
    chart = e.chart(title="Which?")
    drawn = chart["data"]["values"]
    assert len(drawn) == 2 * len(e.clear) < 12
    assert {(one["first"], one["second"]) for one in drawn} >= {(0, 1), (1, 0)}
    assert f"Of 6 pairs, {len(e.clear)} are drawn" in chart["usermeta"]["caption"]
    assert e.at_most(2).answers == tuple(e.answers[place] for place in e.shown(2))


def test_what_cannot_be_asked_is_refused_by_name(reports):
    m = reports.mechanism
    for wrong, name in (({"method": "bayes"}, "method"), ({"share": 1}, "options"),
                        ({"population": "all"}, "population")):  # fmt: skip
        with pytest.raises(InvalidArgument, match=f"'{name}' must be"):
            m.estimate(reports, **wrong)
    one = dn.SetSelect(dn.Items(TOOLS, 2), 1.0, w=1)
    with pytest.raises(InvalidArgument, match="say nothing about pairs"):
        one.estimate(one.privatize([["paper"]] * 9), "pairs")
    other = dn.SetSelect(dn.Items(TOOLS, 1), 1.0)
    with pytest.raises(ValueError, match="different questions"):
        dn.combine([reports, other.privatize([["paper"]])])


def test_check_tells_what_pairs_cost(reports):
    task, m = reports.mechanism.task, reports.mechanism
    paired = dn.SetSelect(m.domain, 1.0, **m.advised(m.domain, 1.0, 1, ("pairs",)))
    told = task.expectation(paired, 5_000).sentence
    assert ", and two that 10 % tick together as 10 % ±" in told
    assert "; without pairs, a single answer would show as 10 % ±" in told
    plain = task.expectation(dn.SetSelect(m.domain, 1.0), 5_000).sentence
    assert "pairs" not in plain
