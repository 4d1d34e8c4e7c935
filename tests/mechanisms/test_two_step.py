"""Longitudinal mechanisms: both epsilons exact, closed forms, what infinitely many reports cost."""

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import chi2

import deniable as dn
from deniable.conformance import FALSE_ALARM
from deniable.conformance.channel import output_counts
from deniable.errors import InvalidArgument
from deniable.mechanisms.two_step.memoised import Longitudinal, Memoised
from deniable.privacy import enumerate_reports, exact_channel
from deniable.privacy.guarantee import log_above
from deniable.randomness import SCALE

CHAINS = [dn.LGRR, dn.LSUE, dn.LOUE, dn.LSOUE, dn.LOSUE, dn.LBLH, dn.LOLH]
BITS = {"one": 3 << 62, "zero": 1 << 62}
UNARY = [dn.LSUE, dn.LOUE, dn.LSOUE, dn.LOSUE]


@pytest.mark.slow
@pytest.mark.parametrize("family", CHAINS)
@given(in_all=st.floats(0.01, 12.0), part=st.floats(0.05, 0.95), k=st.integers(2, 200))
def test_both_epsilons_are_met_and_neither_is_exceeded(family, in_all, part, k):
    a, half = math.exp(in_all), math.exp(in_all / 2)
    limits = {dn.LOUE: (2 * a + 1) / 3, dn.LSOUE: half * (2 * half + 1) / (half + 2)}
    assume(in_all * part < 0.999 * math.log(limits.get(family, a)))
    m = family(k, in_all, in_all * part)
    assert m.guarantee.epsilon <= m.epsilon_inf == m.epsilon == in_all
    assert m.once.epsilon <= m.epsilon_1 == in_all * part
    # Thresholds are multiples of 2**-64, and the smallest are about e^-12 / 200.
    assert m.guarantee.epsilon == pytest.approx(m.epsilon_inf, rel=1e-9)
    assert m.once.epsilon == pytest.approx(m.epsilon_1, rel=1e-9)
    assert m.once == m.guarantee.once
    assert m.guarantee.after(reports=1) == m.once.epsilon


@pytest.mark.parametrize(
    ("k", "in_all", "first", "true_first", "paper", "exact"),
    [
        (5, 2, 1, 0.860, 2.89, 1.94),
        (50, 2, 1, 0.286, 449, 17.2),
        (100, 4, 2, 1.254, 16.2, 2.58),
        (100, 2, 1, 0.166, 3057, 34.1),
        (200, 8, 4, 3.938, 0.0985, 0.0879),
    ],
)
def test_the_papers_lgrr_is_more_private_than_it_says_and_much_worse(
    k, in_all, first, true_first, paper, exact
):
    """The published second step, its true epsilon_1 and n Var at f = 0, beside the exact one."""
    published, ours = dn.LGRR(k, in_all, first, calibration="paper"), dn.LGRR(k, in_all, first)
    assert published.once.epsilon == pytest.approx(true_first, abs=6e-4)
    assert published.guarantee.epsilon == pytest.approx(in_all)
    assert float(published.variance(1, 0.0)) == pytest.approx(paper, rel=5e-3)
    assert float(ours.variance(1, 0.0)) == pytest.approx(exact, rel=5e-3)


@pytest.mark.parametrize(("in_all", "first"), [(2.0, 1.0), (4.0, 2.0), (1.0, 0.4), (6.0, 1.0)])
def test_second_steps_have_their_closed_forms(in_all, first):
    a, b = math.exp(in_all), math.exp(first)
    root_a, root_b = math.sqrt(a), math.sqrt(b)

    def half(linear, constant, product):
        return constant / (linear + math.sqrt(linear**2 - 4 * product * (b - 1) * constant))

    x, y = (root_a * root_b - 1) / (root_a - root_b), (a * b - 1) / (a - b)
    expected = {
        dn.LSUE: 1 / (1 + x),
        dn.LOSUE: 1 / (1 + y),
        dn.LOUE: half(b * (3 * a - 1) - (a + 1), 2 * a + 1 - 3 * b, a),
        dn.LSOUE: half(
            b * (a + 2 * root_a - 1) - (2 * root_a + 1 - a),
            root_a * (2 * root_a + 1) - b * (root_a + 2),
            root_a,
        ),
    }
    for family, zero in expected.items():
        m = family(7, in_all, first)
        assert m.zero / SCALE == pytest.approx(zero, rel=1e-12)
        assert m.one / SCALE == pytest.approx(1 - zero if family.symmetric else 0.5, rel=1e-12)
    for m, outcomes in ((dn.LGRR(9, in_all, first), 9), (dn.LBLH(9, in_all, first), 2)):
        c = 1 + (b - 1) * (a + outcomes - 1) / (a - b)
        assert m.keep / SCALE == pytest.approx((c - 1) / (c - 1 + outcomes), rel=1e-12)


@pytest.mark.parametrize(
    ("family", "like"),
    [(dn.LGRR, dn.GRR), (dn.LSUE, dn.SUE), (dn.LOSUE, dn.OUE), (dn.LOLH, dn.OLH)],
)
def test_a_first_report_is_that_of_a_one_time_mechanism(family, like):
    m, once = family(30, 3.0, 1.2), like(30, 1.2)
    assert float(m.p) == pytest.approx(float(once.p), rel=1e-12)
    assert float(m.q) == pytest.approx(float(once.q), rel=1e-12)
    assert m.variance(1, 0.1) == pytest.approx(once.variance(1, 0.1), rel=1e-9)


def direct(m, reports):
    """The largest ratio of ``reports`` reports in exact arithmetic, by the published formulas."""
    if isinstance(m, tuple(UNARY)):
        names, t = ("permanent_one", "permanent_zero", "one", "zero"), reports
        p1, q1, p2, q2 = (Fraction(getattr(m, name), SCALE) for name in names)
        yes = (p1 * p2**t + (1 - p1) * q2**t) / (q1 * p2**t + (1 - q1) * q2**t)
        no = (q1 * (1 - p2) ** t + (1 - q1) * (1 - q2) ** t) / (
            p1 * (1 - p2) ** t + (1 - p1) * (1 - q2) ** t
        )
        return yes * no
    bit = m.guarantee.kept_bits[0]
    r = bit.odds**reports
    return (bit.own * r + 1 - bit.own) / (bit.other * r + 1 - bit.other)


@pytest.mark.parametrize("family", CHAINS)
@pytest.mark.parametrize("reports", [1, 2, 5, 40])
def test_epsilon_after_some_reports_is_exact(family, reports):
    m = family(6, 3.0, 0.7)
    assert m.guarantee.after(reports=reports) == log_above(direct(m, reports))


def test_published_course_of_losue():
    g = dn.LOSUE(10, 4.0, 2.0).guarantee
    assert [round(g.after(reports=t), 2) for t in (1, 2)] == [2.0, 3.44]
    assert g.after(reports=5) == pytest.approx(3.999, abs=5e-4)


@pytest.mark.parametrize("family", CHAINS)
def test_reports_never_cost_less_and_never_more_than_the_limit(family):
    g = family(12, 2.0, 0.3).guarantee
    course = [g.after(reports=t) for t in (1, 2, 3, 10, 100, 10**4, 10**9, 10**15, None)]
    assert course == sorted(course)
    assert course[-1] == g.epsilon == g.after()
    assert course[-2] == pytest.approx(g.epsilon, rel=1e-15)


def law_of_history(m, begun, keys):
    """The exact law of one report of each key in turn; each key is drawn once."""

    def reports(_, coins):
        kept = {key: m.memoise(begun, key, coins) for key in dict.fromkeys(keys)}
        return tuple(m.instant(begun, kept[key], coins) for key in keys)

    return enumerate_reports(reports, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("m", "begun", "keys"),
    [
        (dn.LGRR(3, 1.5), (), range(3)),
        (dn.LOSUE(2, 1.5), (), range(2)),
        (dn.LOUE(2, 1.5), (), range(2)),
        (dn.LBLH(9, 1.5), (1, 2, 3), range(2)),
        (dn.LOLH(9, 1.5, g=3), (1, 2, 3), range(3)),
        (dn.DBitFlipPM(4, 1.5, w=1), b"\x04", (2, 4)),
        (dn.DBitFlipPM(4, 1.5, w=2), b"\x05", (0, 2, 4)),
        (dn.DBitFlipPM(3, 1.5, w=3), b"\x07", (0, 1, 2)),
    ],
    ids=str,
)
def test_new_keys_cost_what_is_stated(m, begun, keys):
    """All pairs of histories whose reports are made from the same draws, enumerated."""
    for count in range(1, len(keys) + 1):
        laws = [law_of_history(m, begun, history) for history in permutations(keys, count)]
        ratios = (a[y] / b[y] for a in laws for b in laws for y in a)
        assert log_above(max(ratios)) == m.guarantee.after(reports=1, changes=count - 1)
    assert m.guarantee.after(changes=10**6) == m.guarantee.after(changes=len(keys) - 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("m", "begun", "histories"),
    [
        (dn.LGRR(2, 1.0, 0.9), (), ((0,) * 6, (0, 0, 0, 1, 1, 1))),
        (dn.LGRR(3, 0.5, 0.45), (), ((0, 1, 0), (1, 0, 2))),
        (dn.LBLH(9, 1.0, 0.9), (1, 2, 3), ((0, 0, 0, 0), (0, 0, 1, 1))),
    ],
    ids=str,
)
def test_which_reports_share_a_draw_is_not_protected(m, begun, histories):
    """That a key changed, or came back: more than 1.5 times what two changes cost."""
    one, other = (law_of_history(m, begun, keys) for keys in histories)
    found = max(max(one[y] / other[y], other[y] / one[y]) for y in one)
    assert log_above(found) > 1.5 * m.guarantee.after(changes=2)


def test_without_a_memo_everything_adds_up():
    g = dn.GRR(5, 0.5).guarantee
    assert g.after(reports=10) == pytest.approx(5.0)
    assert g.after(reports=10, changes=1) == pytest.approx(10.0)
    assert g.after() == math.inf


@pytest.mark.parametrize(("reports", "changes", "name"), [
    (0, 0, "reports"), (1.5, 0, "reports"), (True, 0, "reports"), (1, -1, "changes"),
    (1, None, "changes"),
])  # fmt: skip
def test_what_no_history_has_is_refused(reports, changes, name):
    for m in (dn.LGRR(4, 1.0), dn.GRR(4, 1.0)):
        with pytest.raises(InvalidArgument) as refusal:
            m.guarantee.after(reports, changes)
        assert refusal.value.name == name


def test_infeasible_pairs_name_the_range():
    with pytest.raises(InvalidArgument, match="'epsilon_1' must be below epsilon_inf = 2"):
        dn.LGRR(5, 2.0, 2.0)
    limits = {
        dn.LOUE: math.log((2 * math.exp(2) + 1) / 3),
        dn.LSOUE: math.log(math.e * (2 * math.e + 1) / (math.e + 2)),
    }
    for family, limit in limits.items():
        with pytest.raises(InvalidArgument, match=f"below {limit:.5f}"):
            family(5, 2.0, limit + 1e-6)
        assert family(5, 2.0, limit - 1e-6).once.epsilon <= limit


@pytest.mark.parametrize(
    ("family", "arguments", "name"),
    [
        (dn.LGRR, {"epsilon_inf": "2"}, "epsilon_inf"),
        (dn.LGRR, {"epsilon_inf": 33.0}, "epsilon_inf"),
        (dn.LGRR, {"epsilon_inf": 2.0, "epsilon_1": 0.0}, "epsilon_1"),
        (dn.LGRR, {"epsilon_inf": 2.0, "calibration": "best"}, "calibration"),
        (dn.LBLH, {"epsilon_inf": 2.0, "g": 3}, "g"),
        (dn.LOLH, {"epsilon_inf": 2.0, "modulus": 4}, "modulus"),
        (dn.LGRR, {"epsilon_inf": 2.0, "keep": SCALE - 1}, "thresholds"),
        (dn.LSUE, {"epsilon_inf": 2.0, "permanent_zero": SCALE - 1}, "epsilon_1"),
        (dn.LSUE, {"epsilon_inf": 2.0, "permanent_zero": SCALE - 1, **BITS}, "thresholds"),
        (dn.LSUE, {"epsilon_inf": 2.0, "zero": 1}, "thresholds"),
        (dn.DBitFlip, {"epsilon": 2.0, "w": 6}, "w"),
        (dn.DBitFlipPM, {"epsilon": 2.0, "w": 0}, "w"),
    ],
)
def test_what_no_chain_has_is_refused(family, arguments, name):
    with pytest.raises(InvalidArgument) as refusal:
        family(5, **arguments)
    assert refusal.value.name == name


def test_epsilon_1_is_half_unless_given():
    assert dn.LOSUE(5, 2.0) == dn.LOSUE(5, 2.0, 1.0) == dn.mechanism("losue", 5, 2.0, epsilon_1=1.0)
    assert dn.LOSUE(5, 2.0) != dn.LOSUE(5, 2.0, 0.9)
    assert str(dn.LOSUE(5, 2.0)) == "LOSUE, k = 5, epsilon_inf = 2, epsilon_1 = 1"
    assert repr(dn.LGRR(5, 2.0)).endswith("epsilon_inf=2.0, epsilon_1=1.0)")
    assert set(dn.LGRR(5, 2.0).to_leaf()) >= {"epsilon_inf", "epsilon_1"}


def test_the_papers_calibration_survives_as_thresholds():
    m = dn.LOLH(100, 4.0, 2.0, calibration="paper")
    assert (m.g, dn.LOLH(100, 4.0, 2.0).g) == (6, 8)
    assert dn.from_spec(m.to_spec()) == m
    assert m.once.epsilon < 2.0
    assert dn.LSUE(9, 2.0, calibration="paper") == dn.LSUE(9, 2.0)


@pytest.mark.slow
@pytest.mark.parametrize("w", [1, 2, 3, 5])
def test_any_number_of_questions_spends_epsilon_exactly(w):
    """One question alone differs in one bit, so its coin may be sharper."""
    for family in (dn.DBitFlip, dn.DBitFlipPM):
        m = family(5, 1.0, w=w)
        assert m.channel().ratio == m.once.ratio
        assert m.guarantee.epsilon == pytest.approx(1.0, rel=1e-12)
    s = math.exp(1.0 if w == 1 else 0.5)
    assert float(m.variance(1, 0.0)) == pytest.approx(5 / w * s / (s - 1) ** 2)


def test_all_questions_asked_is_sue():
    m, sue = dn.DBitFlip(6, 1.0, w=6), dn.SUE(6, 1.0)
    assert m.keep == sue.one
    assert m.variance(1, 0.3) == pytest.approx(sue.variance(1, 0.3))


@pytest.mark.slow
def test_bulk_asks_every_set_and_flips_as_it_says():
    """Chi-square over all (asked, yes) of small designs, w below and above half: p > 1e-9."""
    for w in (1, 3, 4, 5):
        m = dn.DBitFlipPM(5, 2.0, w=w)
        channel, n = m.channel(), 200_000
        found = output_counts(m, channel, m.privatize(np.full(n, 4), np.random.default_rng(w)))
        expected = n * np.array(channel.matrix[4], dtype=np.float64)
        statistic = float(((found - expected) ** 2 / expected).sum())
        assert chi2.sf(statistic, expected.size - 1) > FALSE_ALARM


def test_the_memo_is_what_the_issue_of_the_guarantee_is():
    """All reports together: the kept draw, enumerated, for a device asked again and again."""
    for family in (dn.LGRR, dn.LOSUE, dn.LOLH, dn.DBitFlipPM):
        m = family(3, 1.5, **family.small_design)
        assert isinstance(m, Memoised)

        def kept(value, coins, m=m):
            begun = m.begin(coins)
            return begun, m.memoise(begun, m.key(begun, value), coins)

        assert exact_channel(kept, range(3)).ratio == m.guarantee.ratio


def test_only_chains_are_longitudinal():
    found = {f.__name__ for f in dn.mechanisms().values() if issubclass(f, Longitudinal)}
    assert found == {f.__name__ for f in [*CHAINS, dn.LDRR]}
