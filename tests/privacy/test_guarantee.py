"""Epsilon, exactly: directed rounding, enumeration, and what users may ask for."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deniable as dn
from deniable.errors import InvalidArgument
from deniable.privacy import Guarantee, enumerate_reports, exact_channel, exp_below
from deniable.randomness import SCALE

epsilons = st.floats(2.0**-20, 32.0)


@pytest.mark.slow
@given(epsilons)
def test_exp_is_rounded_down_and_log_up(epsilon):
    below = exp_below(epsilon)
    assert float(below) == pytest.approx(math.exp(epsilon), rel=1e-15)
    assert Guarantee(below).epsilon == epsilon
    assert Guarantee(below * Fraction(10**40 + 1, 10**40)).epsilon > epsilon


@given(epsilons, st.sampled_from(["grr", "sue", "oue", "ss", "olh", "hr"]), st.integers(2, 5000))
def test_the_guarantee_never_exceeds_epsilon_and_is_tight(epsilon, name, k):
    m = dn.mechanism(name, k, epsilon)
    assert m.guarantee.epsilon <= epsilon
    # A threshold is a multiple of 2**-64; where a probability is small that costs more.
    coarse = math.exp(epsilon) * k * k / 2**60
    assert m.guarantee.epsilon >= epsilon - coarse - 1e-9 * epsilon


@pytest.mark.parametrize(
    "epsilon", [0, -1, 1e-9, 33, math.nan, math.inf, "one", None, [1], True, 10**400]
)
def test_bad_epsilons_are_refused(epsilon):
    with pytest.raises(
        InvalidArgument, match=r"'epsilon' must be a number between 0.000001 and 32"
    ):
        dn.GRR(4, epsilon)


def test_enumeration_gives_exact_fractions():
    def report(value, coins):
        return value if coins.below(SCALE // 4) else coins.choice(2)

    law = enumerate_reports(report, 1)
    assert law == {1: Fraction(1, 4) + Fraction(3, 8), 0: Fraction(3, 8)}


def test_a_report_that_rules_a_value_out_has_no_finite_ratio():
    assert exact_channel(lambda value, coins: value, range(2)).ratio is None


def test_unary_encoding_states_the_true_epsilon_of_given_probabilities():
    m = dn.UE(5, p=0.75, q=0.5)
    assert m.guarantee.ratio == 3
    assert m.epsilon == pytest.approx(math.log(3))
    assert (m.p, m.q) == (Fraction(3, 4), Fraction(1, 2))
    odd = dn.UE(4, p=Fraction(1, 3), q=0.1)
    assert odd.guarantee.ratio == odd.channel().ratio


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"p": 0.5, "q": 0.5}, "p"),
        ({"p": 0.2, "q": 0.5}, "p"),
        ({"p": 1.0, "q": 0.5}, "p"),
        ({"p": 0.5, "q": 0.0}, "q"),
        ({"p": math.nan, "q": 0.1}, "p"),
        ({"p": 0.5}, "epsilon"),
        ({"epsilon": 0.1, "p": 0.75, "q": 0.5}, "thresholds"),
        ({"epsilon": 1.0, "p": 0.2, "q": 0.5}, "thresholds"),
    ],
)
def test_impossible_probabilities_are_refused(arguments, name):
    with pytest.raises(InvalidArgument) as refusal:
        dn.UE(5, **arguments)
    assert refusal.value.name == name


def with_thresholds(m, **thresholds):
    spec = m.to_spec()
    return {**spec, "mechanism": {**spec["mechanism"], "thresholds": thresholds}}


@pytest.mark.parametrize(
    "make",
    [
        lambda: dn.BRR(2, 1.0, keep=1),
        lambda: dn.OUE(2, 1.0, one=1, zero=SCALE - 1),
        lambda: dn.SUE(2, 1.0, one=1 << 60, zero=SCALE - (1 << 60)),
        lambda: dn.SS(4, 1.0, omega=2, keep=1),
        lambda: dn.from_spec(with_thresholds(dn.BRR(2, 1.0), keep="1")),
        lambda: dn.OUE(4, 1.0, one=1 << 62, zero=1 << 62),
        lambda: dn.BRR(2, 1.0, keep=1 << 63),
        lambda: dn.OUE(2, 1.0, one=(1 << 62) - 1, zero=1 << 62),
    ],
)
def test_inverted_or_empty_channels_are_refused(make):
    with pytest.raises(InvalidArgument, match="'thresholds' must be such that"):
        make()


def test_a_ratio_below_one_is_no_guarantee():
    with pytest.raises(InvalidArgument, match="'ratio'"):
        Guarantee(Fraction(1, 2))


def test_numpy_integers_are_integers():
    assert dn.SS(10, 1.0, omega=np.int64(3)) == dn.SS(10, 1.0, omega=3)
    assert dn.HR(10, 1.0, block=np.int64(4), seed=np.uint8(5)) == dn.HR(10, 1.0, block=4, seed=5)
    assert dn.OLH(10, 1.0, g=np.int64(3)) == dn.OLH(10, 1.0, g=3)
    assert type(dn.GRR(4, 1.0, keep=np.uint64(100)).keep) is int


def test_a_channel_too_large_to_enumerate_is_refused(monkeypatch):
    from deniable.privacy import enumeration

    monkeypatch.setattr(enumeration, "MAX_BRANCHES", 1000)
    with pytest.raises(InvalidArgument, match="a function of at most 1,000 branches"):
        dn.OUE(40, 1.0).channel()


def test_subsets_of_too_many_values_for_so_little_epsilon():
    with pytest.raises(InvalidArgument, match="'epsilon' must be larger for subsets of"):
        dn.SS(2**23, 2.0**-20)


def test_design_integers_are_checked():
    for make, name in (
        (lambda: dn.SS(5, 1.0, omega=5), "omega"),
        (lambda: dn.SS(5, 1.0, omega=0), "omega"),
        (lambda: dn.OLH(5, 1.0, g=1), "g"),
        (lambda: dn.OLH(5, 1.0, modulus=6), "modulus"),
        (lambda: dn.OLH(9, 1.0, modulus=7), "modulus"),
        (lambda: dn.BLH(5, 1.0, g=3), "g"),
        (lambda: dn.HR(5, 1.0, block=6), "block"),
        (lambda: dn.HR(5, 1.0, seed=-2), "seed"),
        (lambda: dn.HR(5, 1.0, seed=2**32), "seed"),
        (lambda: dn.UE(5, 1.0, one="a"), "one"),
        (lambda: dn.BRR(3, 1.0), "domain"),
        (lambda: dn.GRR(3, 1.0, keep=SCALE), "keep"),
    ):
        with pytest.raises(InvalidArgument) as refusal:
            make()
        assert refusal.value.name == name
