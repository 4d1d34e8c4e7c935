"""Basic RAPPOR: what one report costs, what all cost, and both steps on the device."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deniable as dn
from deniable.errors import InvalidArgument
from deniable.kernels import bits
from deniable.privacy import enumerate_reports
from deniable.randomness import SCALE, Keystream


def test_googles_settings_cost_what_they_cost():
    m = dn.BasicRAPPOR(8, f=0.5, p=0.75, q=0.5)
    assert (m.p, m.q) == (Fraction(11, 16), Fraction(9, 16))
    assert m.guarantee.ratio == Fraction(77, 45)
    assert m.epsilon == pytest.approx(0.537, abs=5e-4)
    assert m.permanent_guarantee.ratio == 9
    assert m.permanent_guarantee.epsilon == pytest.approx(2.197, abs=5e-4)
    assert float(m.variance(1, 0.0)) == 15.75


@given(st.floats(2.0**-20, 32.0), st.floats(1.001, 8.0))
def test_one_report_is_sue_and_neither_epsilon_is_exceeded(epsilon, times):
    in_all = min(64.0, times * epsilon)
    m = dn.BasicRAPPOR(4, epsilon, epsilon_inf=in_all)
    assert m.guarantee.epsilon <= epsilon
    assert m.permanent_guarantee.epsilon <= in_all
    assert m.one + m.zero == SCALE
    coarse = math.exp(in_all / 2) / 2**56
    assert m.permanent_guarantee.epsilon >= in_all - coarse - 1e-9 * in_all
    assert float(m.p) == pytest.approx(float(dn.SUE(4, epsilon).p), rel=1e-12)


def test_all_reports_of_a_row_reveal_what_the_row_reveals():
    """The permanent row, enumerated: its exact ratio is the permanent guarantee."""
    m = dn.BasicRAPPOR(3, 1.0)
    laws = [enumerate_reports(m.permanent_row, (value,)) for value in range(3)]
    ratios = [laws[u][row] / laws[v][row] for row in laws[0] for u in range(3) for v in range(3)]
    assert max(ratios) == m.permanent_guarantee.ratio
    assert m.permanent_guarantee.epsilon <= 2.0


def test_the_default_permanent_step_is_twice_epsilon():
    assert dn.BasicRAPPOR(5, 1.0) == dn.BasicRAPPOR(5, 1.0, epsilon_inf=2.0)
    assert dn.BasicRAPPOR(5, 1.0) != dn.BasicRAPPOR(5, 1.0, epsilon_inf=3.0)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({}, "epsilon"),
        ({"f": 0.5}, "epsilon"),
        ({"p": 0.75, "q": 0.5}, "epsilon"),
        ({"epsilon": 1.0, "epsilon_inf": 1.0}, "epsilon_inf"),
        ({"epsilon": 1.0, "epsilon_inf": 0.5}, "epsilon_inf"),
        ({"epsilon": 1.0, "epsilon_inf": 65.0}, "epsilon_inf"),
        ({"epsilon": 1.0, "epsilon_inf": math.nan}, "epsilon_inf"),
        ({"epsilon": 1.0, "epsilon_inf": "2"}, "epsilon_inf"),
        ({"epsilon": 0.5, "epsilon_inf": True}, "epsilon_inf"),
        ({"permanent": "much", "one": 1 << 63, "zero": 1 << 62}, "permanent"),
        ({"permanent": 3 << 62, "one": 1 << 63, "zero": None}, "epsilon"),
        ({"epsilon": 1.0, "epsilon_inf": 2.0, "f": 0.5}, "f"),
        ({"epsilon": 1.0, "f": 0.9}, "epsilon"),
        ({"f": 0.5, "p": 0.75}, "p"),
        ({"f": 0.5, "p": 0.5, "q": 0.5}, "p"),
        ({"f": 0.5, "p": 0.5, "q": 0.75}, "p"),
        ({"f": 0.5, "p": 1.0, "q": 0.5}, "p"),
        ({"f": 0.0, "p": 0.75, "q": 0.5}, "f"),
        ({"f": 1.0, "p": 0.75, "q": 0.5}, "f"),
        ({"epsilon": 0.5, "f": 0.5, "p": 0.75, "q": 0.5}, "thresholds"),
        ({"epsilon": 1.0, "permanent": 1 << 62, "one": 1 << 62, "zero": 1 << 63}, "thresholds"),
        ({"epsilon": 1.0, "permanent": SCALE, "one": 1 << 63, "zero": 1 << 62}, "permanent"),
    ],
)
def test_what_no_rappor_has_is_refused(arguments, name):
    with pytest.raises(InvalidArgument) as refusal:
        dn.BasicRAPPOR(5, **arguments)
    assert refusal.value.name == name


def test_the_feasible_range_is_named():
    with pytest.raises(InvalidArgument, match="above epsilon = 1 and at most 64"):
        dn.BasicRAPPOR(5, 1.0, epsilon_inf=0.7)
    with pytest.raises(InvalidArgument, match=r"below that of the permanent step, 0\.401"):
        dn.BasicRAPPOR(5, 1.0, f=0.9)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [(6, 0, True), (7, 4, True), (7, 5, False), (7, 6, False), (8, 0, False)],
)
def test_the_last_64_digits_decide_when_all_before_are_equal(first, second, expected):
    """Threshold 7 with the tail 5: below it lie 0..6 and, of 7, the tails 0..4."""
    out, places, lanes = (np.array([x], np.uint64) for x in (0, 0, 1 << 9))
    words = np.array([first << bits.PLANES, second], dtype=np.uint64)
    left = bits._settle(out, places.astype(np.int64), lanes, 1, words, np.uint64(7), np.uint64(5))
    assert left == 0
    assert int(out[0]) == (1 << 9) * expected


def test_a_threshold_that_is_all_tail_is_settled():
    """Eight equal digits and nothing but a tail below them: still a coin, not always 0."""

    class Zeros(Keystream):
        def lend(self, at_least):
            return np.zeros(bits.SPAN * bits.PLANES + 200, dtype=np.uint64)

        def use(self, count):
            pass

    out = np.zeros(1, dtype=np.uint64)
    bits.fill_bernoulli(out, 0, Zeros(bytes(32)), 1)
    assert int(out[0]) == SCALE - 1
