"""The one way to an estimate: methods, their options, and errors of every kind."""

import numpy as np
import pytest

import deniable as dn
from deniable.errors import InvalidArgument, MismatchError
from deniable.estimation import METHODS
from deniable.estimation.frequencies.ibu import iterate, pure_channel, water_filling
from deniable.estimation.frequencies.methods import OF_COHORTS

FOR_ALL = [name for name in METHODS if name not in OF_COHORTS]
K, N = 12, 4_000
SHARES = np.arange(K, 0, -1) / np.arange(1, K + 1).sum()
ANSWERS = np.repeat(np.arange(K), np.rint(SHARES * N).astype(int))


@pytest.fixture(scope="module")
def reports():
    return dn.OUE(K, 1.0).privatize(ANSWERS, np.random.default_rng(3))


@pytest.fixture(scope="module")
def tally(reports):
    return reports.mechanism.tally(reports)


def test_the_default_is_bayes_and_says_what_it_is(tally):
    e = tally.estimate()
    assert (e.method, e.errors, e.population, e.simultaneous) == (
        "bayes",
        "score",
        "respondents",
        False,
    )
    assert e.about["errors"] == "score"
    assert "95 % score intervals about respondents" in e.table().caption.plain


@pytest.mark.parametrize("name", FOR_ALL)
def test_every_method_has_errors_of_a_stated_kind(reports, name):
    e = reports.mechanism.estimate(reports, name)
    assert e.errors == ("information" if name == "likelihood" else "score")
    assert (e.certificate is not None) == (name == "likelihood")


@pytest.mark.slow
@pytest.mark.parametrize("errors", ["score", "exact", "bootstrap"])
def test_errors_can_be_chosen(tally, errors):
    e = tally.estimate("projected", errors=errors)
    assert e.errors == errors
    assert np.all(e.intervals[:, 0] <= e.frequencies)
    assert np.all(e.intervals[:, 1] >= e.frequencies)


def test_the_posterior_belongs_to_bayes(tally):
    narrow, wide = (tally.estimate(errors=errors) for errors in ("posterior", "score"))
    assert narrow.errors == "posterior"
    assert narrow.standard_errors.sum() < wide.standard_errors.sum()
    for name, errors in (("projected", "posterior"), ("bayes", "information")):
        with pytest.raises(InvalidArgument, match="'errors' must be used with the method"):
            tally.estimate(name, errors=errors)


@pytest.mark.parametrize("errors", ["score", "exact", "posterior"])
def test_everyone_is_harder_to_know_than_the_respondents(tally, errors):
    ours = tally.estimate(errors=errors)
    all_people = tally.estimate(errors=errors, population="everyone")
    assert np.ptp(all_people.intervals, axis=1).sum() > np.ptp(ours.intervals, axis=1).sum()
    assert np.all(all_people.standard_errors >= ours.standard_errors)
    assert all_people.population == "everyone"


@pytest.mark.parametrize("method", ["unbiased", "bayes", "likelihood"])
def test_simultaneous_intervals_are_wider(reports, method):
    one, all_of_them = (
        dn.combine([reports], method, simultaneous=simultaneous) for simultaneous in (False, True)
    )
    assert np.all(np.ptp(all_of_them.intervals, axis=1) >= np.ptp(one.intervals, axis=1))
    assert np.ptp(all_of_them.intervals) > np.ptp(one.intervals)


@pytest.mark.slow
def test_a_bootstrap_of_the_same_tally_is_the_same(tally):
    first, second = (tally.estimate("ibu", errors="bootstrap") for _ in range(2))
    assert first.to_json() == second.to_json()


def test_ibu_is_the_closed_form_and_the_iteration_is_an_option(tally):
    m = tally.mechanism
    p, q = float(m.p), float(m.q)
    limit = water_filling(tally.counts, p, q)
    assert tally.estimate("ibu").frequencies == pytest.approx(limit, abs=1e-12)
    paper = tally.estimate("ibu", iterations=25, rule="mae").frequencies
    expected = iterate(tally.counts, pure_channel(K, p, q), iterations=25, rule="mae").frequencies
    assert np.array_equal(paper, expected)
    assert np.abs(paper - limit).max() > 1e-3


def test_hadamard_with_several_blocks_has_an_ibu_too():
    m = dn.HR(20, 3.0, block=4)
    reports = m.privatize(np.arange(500) % 7, np.random.default_rng(1))
    assert m.supports(m.tally(reports).counts, 500) is None
    ours, exact = (m.tally(reports).estimate(name).frequencies for name in ("ibu", "likelihood"))
    assert np.array_equal(ours, exact)


def test_calibrate_takes_a_prior(tally):
    known = tally.estimate("calibrate", prior=([0.0, 0.1], [0.5, 0.5])).frequencies
    assert np.all((known >= 0) & (known <= 0.1))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"method": "base-cut", "false_positives": 0}, "'false_positives' must be a positive"),
        ({"method": "ibu", "rule": "odd"}, "'rule' must be one of max_abs"),
        ({"errors": "bootstrap"}, "'errors' must be used with one mechanism, and not with a"),
        ({"errors": np.array(["score"])}, "'errors' must be one of score"),
        ({"method": "magic"}, "'method' must be one of bayes"),
        ({"method": ["ibu"]}, "'method' must be one of bayes"),
        ({"errors": "magic"}, "'errors' must be one of score, exact, bootstrap"),
        ({"population": "world"}, "'population' must be one of respondents, everyone"),
        ({"simultaneous": 1}, "'simultaneous'"),
        ({"iterations": 5}, "options of 'bayes': none"),
        ({"method": "ibu", "steps": 5}, "options of 'ibu': iterations, tolerance, start, rule"),
        ({"method": "ibu", "iterations": 0}, "'iterations'"),
        ({"method": "likelihood"}, "reports: the counts of OUE do not determine its likelihood"),
        ({"confidence": 1.0}, "'confidence'"),
    ],
)
def test_bad_choices_are_refused(tally, choices, message):
    with pytest.raises(InvalidArgument, match=message):
        tally.estimate(**choices)


def test_exact_errors_need_one_p_and_one_q():
    m = dn.HR(20, 3.0, block=4)
    tally = m.tally(m.privatize([1, 2, 3]))
    with pytest.raises(InvalidArgument, match="with one p and q"):
        tally.estimate(errors="exact")


def test_what_cannot_be_combined_is_refused(tally):
    with pytest.raises(InvalidArgument, match="at least one tally"):
        dn.combine([])
    with pytest.raises(InvalidArgument, match="a list of tallies or reports"):
        dn.combine(tally)
    with pytest.raises(InvalidArgument, match="at least one report"):
        dn.combine([tally, dn.GRR(K, 1.0).tally()])
    with pytest.raises(MismatchError, match="different questions"):
        dn.combine([tally, dn.GRR(3, 1.0).tally(dn.GRR(3, 1.0).privatize([0]))])
    with pytest.raises(InvalidArgument, match="'parts' must be tallies or reports"):
        dn.combine([tally, "tally"])
    with pytest.raises(InvalidArgument, match="one is there twice"):
        dn.combine([tally, tally])
    identified = dn.GRR(K, 1.0).privatize([1, 2]).with_ids()
    twice = [dn.GRR(K, 1.0).tally(identified) for _ in range(2)]
    with pytest.raises(InvalidArgument, match="one is there twice"):
        dn.combine(twice)
    other = dn.GRR(K, 1.0).tally(identified)
    with pytest.raises(InvalidArgument, match="used with one mechanism"):
        dn.combine([tally, other], "projected", errors="bootstrap")
    with pytest.raises(InvalidArgument, match="left out, but for one mechanism"):
        dn.combine([tally, other], "ibu", iterations=5)


def test_an_estimate_of_one_report_is_an_estimate():
    for m in (dn.GRR(5, 1.0), dn.OUE(5, 1.0), dn.OLH(5, 1.0), dn.HR(5, 1.0), dn.SS(5, 1.0)):
        for name in FOR_ALL:
            e = m.estimate(m.privatize([2], np.random.default_rng(1)), name)
            assert np.isfinite(e.frequencies).all()
            assert np.isfinite(e.intervals).all()
