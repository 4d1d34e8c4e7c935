"""Mechanisms for sets of answers: exact channels, designs, variances and counts."""

import numpy as np
import pytest
from scipy.stats import chi2

import deniable as dn
from deniable.audit.exact.verify import one_report
from deniable.collection.recommend import Requirements
from deniable.core.task import find_task
from deniable.errors import BrokenPromise, InvalidArgument, TooFew
from deniable.mechanisms.items.base import usual_shares
from deniable.randomness import SCALE, ByteCoins

DESIGNS = [(w, tau) for w in (1, 2, 3) for tau in (1, 2) if tau <= w]


@pytest.mark.slow
@pytest.mark.parametrize("m", [1, 2, 3])
def test_the_exact_epsilon_is_all_of_epsilon(m):
    """Of the shipped code, over all sets and all reports."""
    for w, tau in DESIGNS:
        if tau > m:
            continue
        for epsilon in (0.5, 1.0, 2.0, 4.0):
            found = one_report(dn.SetSelect(dn.Items(5, m), epsilon, w=w, tau=tau))
            assert found.method == "enumerated"
            assert found.verdict == "ok", found.words
            assert epsilon - 1e-9 <= found.worst.epsilon <= epsilon, found.words


def test_the_example_of_the_specification():
    tools = dn.Items(["phone", "laptop", "tablet", "desktop", "paper"], 3)
    m = dn.SetSelect(tools, 1.0)
    assert (m.w, m.tau, m.one, m.zero) == (1, 1, 3811785494975100900, 1402277517756849783)
    (value,) = tools.encode([["laptop", "paper"]]).tolist()
    coins = ByteCoins(bytes.fromhex("917d90f9f5b4e7c654bca54b".rjust(16, "0")[-16:]))
    assert m.layout.row(m.report(value, coins)).hex() == "02"
    assert m.layout.refusal(bytes([6])) is not None


#: k, m, epsilon; n Var of a share and w of JointBits; the same of SetSelect, and its (w, tau).
TABLE = [
    (10, 3, 1, 10.35, 1, 7.07, (1, 1)),
    (10, 3, 2, 2.57, 2, 1.32, (1, 1)),
    (10, 3, 4, 0.565, 3, 0.387, (2, 2)),
    (10, 5, 1, 10.9, 1, 10.5, (1, 1)),
    (10, 5, 4, 0.705, 3, 0.656, (2, 2)),
    (20, 3, 1, 19.7, 1, 9.14, (2, 1)),
    (20, 3, 2, 4.74, 2, 1.41, (1, 1)),
    (20, 10, 0.5, 81.9, 1, 97.4, (1, 1)),
    (20, 10, 2, 5.80, 2, 5.62, (1, 1)),
    (50, 5, 1, 48.4, 1, 17.2, (3, 1)),
    (50, 50, 2, 16.3, 2, 32.4, (2, 2)),
    (100, 5, 0.5, 394, 1, 86.0, (7, 1)),
    (100, 5, 2, 20.5, 1, 3.23, (2, 1)),
    (100, 5, 4, 3.13, 2, 0.278, (1, 1)),
    (100, 100, 4, 10.3, 4, 20.7, (4, 4)),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]}-{row[1]}-{row[2]}")
@pytest.mark.slow
def test_designs_and_variances_are_those_of_the_specification(row):
    k, most, epsilon, of_bits, w, of_sets, design = row
    shares = find_task("shares")
    bits, sets = (family(dn.Items(k, most), epsilon) for family in (dn.JointBits, dn.SetSelect))
    assert bits.w == w
    assert (sets.w, sets.tau) == design
    assert shares.error(bits, 1) ** 2 == pytest.approx(of_bits, rel=0.005)
    assert shares.error(sets, 1) ** 2 == pytest.approx(of_sets, rel=0.005)
    chosen = Requirements(dn.Items(k, most), epsilon, 1000, tasks=("shares",)).choose()
    best = min((of_bits, "jointbits"), (of_sets, "setselect"))
    assert chosen.name == best[1] or max(of_bits, of_sets) < 1.02 * min(of_bits, of_sets)


def test_pairs_have_designs_of_their_own():
    """n Var of a pair at most as the specification has it."""
    pairs, domain = find_task("pairs"), dn.Items(20, 3)
    for epsilon, most in ((1.0, 23.5), (2.0, 3.7), (4.0, 0.205)):
        m = Requirements(domain, epsilon, 1000, tasks=("pairs", "shares")).choose()
        assert m.name == "setselect"
        assert m.paired
        assert pairs.error(m, 1) ** 2 <= most
    free = Requirements(dn.Items(20), 2.0, 1000, tasks=("pairs", "shares")).choose()
    assert free.paired
    # One answer tells nothing about pairs.
    assert pairs.error(dn.SetSelect(domain, 2.0, w=1), 1000) == float("inf")
    assert not dn.SetSelect(dn.Items(20, 1), 2.0, w=2).paired


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "most", "epsilon"),
    [
        (dn.SetSelect, 3, 1.0),
        (dn.SetSelect, 3, 2.0),
        (dn.SetSelect, 3, 4.0),
        (dn.JointBits, 20, 2.0),
    ],
)
def test_squared_errors_are_as_the_formula_says(family, most, epsilon):
    """Of 20 answers, where half of the people tick as many as they may.

    Null hypothesis: errors are normal with the variance of the formula, so that the squares of 50
    collections are chi-square; for the worst of 20 answers that fails once in a million times.
    """
    runs, n, k = 50, 8_000, 20
    rng, m = np.random.default_rng(8), family(dn.Items(k, most), epsilon)
    ticked = np.zeros((n, k), dtype=np.uint8)
    chosen = np.argsort(rng.random((n // 2, k)), axis=1)[:, : min(most, 10)]
    np.put_along_axis(ticked[: n // 2], chosen, 1, axis=1)
    f = ticked.mean(axis=0)
    asked, _ = m.asked
    expected = m.law.variance(f) / asked + (1 / asked - 1) * f * (1 - f)
    reports = m.privatize(np.tile(ticked, (runs, 1)), rng)
    found = [m.estimate(reports[i : i + n]).shares for i in range(0, runs * n, n)]
    squares = n * np.sum((np.array(found) - f) ** 2, axis=0) / expected
    p_values = 2 * np.minimum(chi2.cdf(squares, runs), chi2.sf(squares, runs))
    assert p_values.min() > 1e-6 / k


def test_integers_that_say_more_are_refused():
    domain = dn.Items(5, 3)
    for design in ({"w": 1, "tau": 1}, {"w": 3, "tau": 2}):
        m = dn.SetSelect(domain, 1.0, **design)
        for one, zero in ((m.one + (1 << 40), m.zero), (1, SCALE - 1), (1, 1), (SCALE - 1, 1)):
            with pytest.raises(BrokenPromise):
                dn.SetSelect(domain, 1.0, **design, one=one, zero=zero)
    with pytest.raises(BrokenPromise, match="sum to"):
        dn.SetSelect(domain, 2.0, w=3, tau=2, one=m.one, zero=m.zero - 1)
    for design in ({"w": 8}, {"w": 2, "tau": 3}, {"w": 6, "tau": 1}, {"w": 0}):
        with pytest.raises(InvalidArgument):
            dn.SetSelect(domain, 1.0, **design)


def test_overlaps_that_are_too_rare_are_refused_and_never_chosen():
    with pytest.raises(InvalidArgument, match="'w' must be another size"):
        dn.SetSelect(dn.Items(40, 24, optional=True), 2.0**-20, w=27)
    for epsilon in (2.0**-20, 0.01, 24.0):
        for most in (1, 5, 40):
            m = dn.SetSelect(dn.Items(40, most), epsilon)
            assert epsilon * (1 - 1e-6) < m.guarantee.epsilon <= epsilon


@pytest.mark.parametrize(
    "m",
    [
        dn.SetSelect(dn.Items(6, 3), 1.0, w=1),
        dn.SetSelect(dn.Items(6, 3), 2.0, w=3),
        dn.JointBits(dn.Items(6), 4.0, w=3),
    ],
    ids=repr,
)
def test_counts_that_no_reports_have_are_known(m):
    reports = m.privatize([[0, 1], [2], []] * 300, np.random.default_rng(2))
    tally = m.tally(reports)
    assert m.possible_counts(tally.counts, tally.n)
    for cell in range(m.cells):
        for more in (1, -1):
            changed = tally.counts.copy()
            changed[cell] += more
            if m.possible_counts(changed, tally.n):
                # One more or less of a pair is possible; much is not.
                changed[cell] += more * 10 * tally.n
                assert not m.possible_counts(changed, tally.n)


def test_few_reports_about_some_answers_are_refused():
    m = dn.JointBits(dn.Items(200), 1.0)
    with pytest.raises(TooFew, match="no report is about"):
        m.estimate(m.privatize([[1]] * 3))


def test_parts_of_both_mechanisms_are_one_estimate():
    domain, rng = dn.Items(["a", "b", "c", "d"]), np.random.default_rng(4)
    answers = [["a", "b"], ["a"], []] * 4_000
    parts = [
        m.privatize(answers, rng) for m in (dn.JointBits(domain, 4.0), dn.SetSelect(domain, 2.0))
    ]
    e = dn.combine(parts, population="everyone")
    assert e.n == 24_000
    assert np.all(np.abs(e.shares - [2 / 3, 1 / 3, 0, 0]) < 6 * e.standard_errors)
    single = dn.combine(parts[:1], population="everyone")
    assert np.all(e.standard_errors < single.standard_errors)
    assert abs(e.ticks.value - 1) < 6 * e.ticks.standard_error
    assert e.ticks.value == pytest.approx(e.shares.sum())


def test_people_who_answer_too_rarely_are_not_told_about():
    m = dn.SetSelect(dn.Items(4, 2, optional=True), 1.0)
    with pytest.raises(TooFew, match="people who answered"):
        m.estimate(m.privatize([None] * 500, np.random.default_rng(1)))


def test_errors_of_shares_below_zero_are_those_of_zero():
    """Reports that nobody made say nothing about how they vary."""
    m, n = dn.SetSelect(dn.Items(5, 3, optional=True), 4.0, w=1), 100
    e = m.estimate(m.privatize([[0], None, [], []] * (n // 4), np.random.default_rng(1)))
    below = e.shares < 0
    assert below.sum() >= 2
    error = np.sqrt(m.law.variance(0) / n) / (1 - e.skipped.share)
    assert e.standard_errors[below] == pytest.approx(error)


def test_reports_that_look_alike_leave_the_mean_number_of_ticks_an_error():
    """Where all tick one answer, hardly any report says "none of these", and often none does."""
    m, n = dn.SetSelect(dn.Items(3, 1), 4.0, w=1), 20
    none = 1 - m.law.p - 2 * m.law.q
    least = np.sqrt(none * (1 - none) / n) / (m.law.p - m.law.q)
    reports = m.privatize([[0]] * 20 * n, np.random.default_rng(1))
    found = [m.estimate(reports[i : i + n]).ticks for i in range(0, 20 * n, n)]
    assert min(ticks.standard_error for ticks in found) >= least * (1 - 1e-9)


def test_shares_that_designs_are_made_for():
    assert usual_shares(10, 3) == (0.15, pytest.approx(0.15 * 2 / 9))


def test_reports_of_very_many_items_are_refused():
    with pytest.raises(InvalidArgument, match=r"'w' must be an integer of 1\.\.512"):
        dn.SetSelect(dn.Items(600, at_most=2), 1.0, w=513, tau=1)
