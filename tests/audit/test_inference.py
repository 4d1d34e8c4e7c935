"""What a report gives away, against brute force on enumerated channels."""

import math
import re
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import deniable as dn
from deniable.audit.inference import risk as inference
from deniable.audit.inference.bayes_risk import enumerable
from deniable.audit.inference.risk import inference_risk, posterior
from deniable.errors import InvalidArgument
from deniable.mechanisms.frequency import frequency_oracles
from deniable.privacy import exact_channel

FAMILIES = sorted(frequency_oracles())


def small(name, epsilon=1.0):
    family = frequency_oracles()[name]
    return family(family.only_size or 3, epsilon, **family.small_design)


def skewed(k):
    weights = [Fraction(v + 1) for v in range(k)]
    return [w / sum(weights) for w in weights]


def bayes(matrix, prior):
    """Success of the best guess, and the largest posterior of each value, in rational numbers."""
    success, largest = Fraction(0), [Fraction(0)] * len(prior)
    for column in zip(*matrix, strict=True):
        joint = [f * p for f, p in zip(prior, column, strict=True)]
        success += max(joint)
        largest = [max(old, j / sum(joint)) for old, j in zip(largest, joint, strict=True)]
    return success, largest


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_against_brute_force(name):
    for epsilon in (0.5, 3.0):
        m = small(name, epsilon)
        f = skewed(m.domain.size)
        success, largest = bayes(m.channel().matrix, f)
        found = inference_risk(m, [float(x) for x in f])
        bound = math.exp(m.once.epsilon)
        if not enumerable(m):  # many cells for a large epsilon
            assert float(success) <= found.after
            continue
        assert found.after == pytest.approx(float(success), rel=1e-12)
        np.testing.assert_allclose(found.largest, [float(x) for x in largest], rtol=1e-12)
        odds = found.largest / (1 - found.largest)
        prior_odds = found.prior / (1 - found.prior)
        assert np.all(odds <= bound * prior_odds * (1 + 1e-12))
        assert found.before <= found.after * (1 + 1e-12)


@pytest.mark.parametrize("name", ["grr", "sue", "oue", "ue"])
@pytest.mark.parametrize("prior", ["uniform", "skewed", "certain"])
def test_large_domains_follow_the_same_law(name, prior, monkeypatch):
    """The formulas for large k, on a k that can be enumerated, against the enumeration."""
    m = dn.mechanism(name, 6, 1.0)
    f = {"uniform": [1 / 6] * 6, "skewed": [0.5, 0.2, 0.1, 0.1, 0.05, 0.05]}.get(prior)
    f = [1.0, 0, 0, 0, 0, 0] if f is None else f
    exact = inference_risk(m, f)
    monkeypatch.setattr("deniable.audit.inference.bayes_risk.BRANCHES", 1)
    assert not enumerable(m)
    found = inference_risk(m, f)
    assert found.exact
    assert found.after == pytest.approx(exact.after, rel=1e-12)
    np.testing.assert_allclose(found.largest, exact.largest, rtol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_bounds_hold_where_nothing_is_enumerated(name, monkeypatch):
    m = small(name)
    f = [float(x) for x in skewed(m.domain.size)]
    exact = inference_risk(m, f)
    monkeypatch.setattr("deniable.audit.inference.bayes_risk.BRANCHES", 1)
    found = inference_risk(m, f)
    assert found.after >= exact.after * (1 - 1e-12)
    assert np.all(found.largest >= exact.largest * (1 - 1e-12))


@pytest.mark.parametrize("name", ["oue", "losue", "ss", "she"])
def test_size_costs_nothing_before_it_is_known_to_be_too_large(name):
    """Up to 200,000 draws a report; a uniform prior stays below what epsilon allows."""
    m = dn.mechanism(name, 100_000, 1.0)
    found = inference_risk(m)
    assert found.before < found.after <= math.exp(m.once.epsilon) * found.before


def test_a_candidate_and_the_rest():
    """Texts outside have no reports to enumerate: the bound of epsilon."""
    m = dn.ORR(dn.Text(), 1.0, cohorts=2, width=4).among(["yes"])
    found = inference_risk(m, [0.5, 0.5])
    assert not found.exact
    assert found.after == pytest.approx(math.e / (1 + math.e))


def test_a_number_is_guessed_to_be_above_another():
    """Against Bayes' rule on the channel: reached where answers lie at the ends, never exceeded."""
    m = dn.DRR(dn.Number(0, 100), 1.0, ell=2, fine=3, shown=2)
    found = inference_risk(m, [0.7, 0.3], above=60)
    assert found.labels == ("at most 60", "above 60")
    assert [line.count("60") for line in found.sentences()] == [0, 0, 1, 1, 0]
    spread = {False: ([50, 60], [61, 70]), True: ([0], [100])}
    for reached, sides in spread.items():
        values = m.domain.encode([*sides[0], *sides[1]]).tolist()
        law = np.array(exact_channel(m.report, values).matrix, dtype=float)
        below, above = np.split(law, [len(sides[0])])
        joint = found.prior[:, None] * np.array([below.mean(axis=0), above.mean(axis=0)])
        largest = (joint / joint.sum(axis=0)).max(axis=1)
        assert np.all(largest <= found.largest * (1 + 1e-9))
        assert joint.max(axis=0).sum() <= found.after
        assert bool(np.allclose(largest, found.largest, rtol=1e-9)) == reached


def test_what_is_guessed_of_numbers():
    optional = dn.DRR(dn.Number(0, 24, optional=True), 1.0)
    assert inference_risk(optional).labels == ("at most 12", "above 12", "(no answer)")
    with pytest.raises(InvalidArgument, match="'above' must be a number of at least 0 and below"):
        inference_risk(optional, above=24)
    with pytest.raises(InvalidArgument, match="'above' must be left out"):
        inference_risk(dn.GRR(3, 1.0), above=2)
    many = inference_risk(dn.DRR(dn.Number(0, 24), 1.0), reports=3)
    assert many.epsilon == pytest.approx(3)


def test_theory_of_randomised_response():
    """A uniform prior: the best guess is the report itself, right with p."""
    for k, epsilon in ((2, 1.0), (5, 0.7), (100_000, 6.0)):
        m = dn.GRR(k, epsilon)
        found = inference_risk(m)
        assert found.after == pytest.approx(float(m.p), rel=1e-9)
        assert found.largest[0] == pytest.approx(float(m.p), rel=1e-9)
    assert inference_risk(dn.BRR(2, 1.0)).coin_flip == pytest.approx(math.e / (1 + math.e))


@pytest.mark.parametrize("name", FAMILIES)
def test_more_epsilon_is_more_risk(name):
    found = [inference_risk(small(name, epsilon)) for epsilon in (0.3, 1.0, 2.5)]
    for less, more in pairwise(found):
        assert less.after <= more.after + 1e-12
        assert np.all(less.largest <= more.largest + 1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_posteriors_are_those_of_the_channel(name, monkeypatch):
    """Every possible report: from the enumerated channel, and from what a report supports."""
    m = small(name)
    f = np.array([float(x) for x in skewed(m.domain.size)])
    channel = m.channel()
    reports = dn.Reports(m, m.pack(channel.outputs))
    joint = np.array(channel.matrix, dtype=np.float64).T * f
    exact = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(posterior(reports, f), exact, rtol=1e-9)
    monkeypatch.setattr("deniable.audit.inference.bayes_risk.BRANCHES", 1)
    if m.two_likelihoods and m.supports(m.count(reports.data[:1]), 1) is not None:
        np.testing.assert_allclose(posterior(reports, f), exact, rtol=1e-6)
    else:
        with pytest.raises(InvalidArgument, match="two likelihoods"):
            posterior(reports, f)


@pytest.mark.parametrize("name", ["lgrr", "lsue", "losue", "dbitflippm"])
def test_several_reports_of_one_draw_stay_below_the_bound(name):
    m = small(name)

    def twice(value, coins):
        begun = m.begin(coins)
        kept = m.memoise(begun, m.key(begun, value), coins)
        return m.instant(begun, kept, coins), m.instant(begun, kept, coins)

    f = skewed(3)
    success, largest = bayes(exact_channel(twice, range(3)).matrix, f)
    found = inference_risk(m, [float(x) for x in f], reports=2)
    assert found.epsilon == m.guarantee.after(reports=2)
    assert float(success) <= found.after * (1 + 1e-12)
    assert np.all([float(x) for x in largest] <= found.largest * (1 + 1e-12))
    for_ever = inference_risk(m, reports=10**6)
    assert for_ever.coin_flip <= math.exp(m.epsilon) / (1 + math.exp(m.epsilon)) * (1 + 1e-12)


def test_fresh_coins_add_up():
    found = inference_risk(dn.GRR(4, 1.0), reports=1000)
    assert found.odds == math.inf
    assert found.after == 1.0
    assert "100 of 100" in " ".join(found.sentences())


@pytest.mark.parametrize("name", ["grr", "oue", "ss", "lgrr"])
def test_who_else_sends_such_a_report(name):
    """Brute force: of all people whose report supports v, the share with another value."""
    m = small(name)
    f = np.array([float(x) for x in skewed(3)])
    channel = m.channel()
    law = np.array(channel.matrix, dtype=np.float64)
    supports = np.array([m.supports(m.count(m.pack([y])), 1) for y in channel.outputs])
    senders = (f[:, None] * law) @ supports
    exact = 1 - np.diag(senders) / senders.sum(axis=0)
    np.testing.assert_allclose(inference_risk(m, f).others, exact, rtol=1e-9)


def numbers(sentence):
    return [float(word.replace(",", "")) for word in re.findall(r"\d[\d,]*(?:\.\d+)?", sentence)]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.7, 9.0, 20.0])
@pytest.mark.parametrize("k", [2, 7, 5_000])
def test_words_never_understate(k, epsilon):
    found = inference_risk(dn.GRR(k, epsilon))
    before, after, most, coin, others = found.sentences()
    right, of = numbers(before)[:2]
    assert right / of <= found.before * (1 + 1e-9)
    right, of = numbers(after)[:2]
    assert right / of >= found.after - 1e-9
    assert numbers(most)[0] / 100 >= found.largest.max() - 1e-9
    assert numbers(coin)[0] / 100 >= found.coin_flip - 1e-9
    assert numbers(others)[-2] / numbers(others)[-1] <= found.others.max() + 1e-9


def test_the_words_of_a_yes_no_question():
    said = inference_risk(dn.BRR(["yes", "no"], 1.0), [0.4, 0.6]).sentences()
    assert "guesses right 60 of 100 times" in said[0]
    assert "at most 74 of 100 times" in said[1]
    assert "nobody can be more than 73.2 % sure" in said[3]


@pytest.mark.slow
def test_tables_and_charts():
    found = inference_risk(dn.OUE(["car", "train", "other"], 1.0), [0.5, 0.3, 0.2])
    assert [row["value"] for row in found.rows()] == ["car", "train", "other"]
    assert found.table().row_count == 3
    assert found.plot().to_dict()["layer"]
    many = inference_risk(dn.GRR(1_000, 1.0))
    assert many.table().row_count == inference.SHOWN


def test_bad_input_is_refused():
    m = dn.GRR(3, 1.0)
    for wrong in ([0.5, 0.5], [0.5, 0.6, -0.1], [1, 1, 1], "uniform"):
        with pytest.raises(InvalidArgument, match="prior"):
            inference_risk(m, wrong)
    with pytest.raises(InvalidArgument, match="reports"):
        inference_risk(m, reports=0)
    with pytest.raises(InvalidArgument, match="mechanism"):
        inference_risk(1.0)
    with pytest.raises(InvalidArgument, match="candidates"):
        inference_risk(dn.ORR(dn.Text(), 1.0))
