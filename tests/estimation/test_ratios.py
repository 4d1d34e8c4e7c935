"""Ratios of two estimates that err together, against brute force and against the normal law."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from deniable.errors import TooFew
from deniable.estimation.ratios import (
    CLEAR,
    Residual,
    people_needed,
    ratio_errors,
    ratio_intervals,
    require_enough,
    too_few,
)

Z = 1.96


def cases(number=400):
    """T, N and two variances of T - R N; the second is negative for some R."""
    rng = np.random.default_rng(1)
    top, bottom = rng.uniform(-0.2, 0.6, number), rng.uniform(0.05, 1.0, number)
    errors, correlation = rng.uniform(0.001, 0.05, (2, number)), rng.uniform(-1, 1, number)
    both = correlation * errors.prod(axis=0)
    plain = Residual.of(errors[0] ** 2, both, errors[1] ** 2)
    at_the_test = Residual(
        plain.constant, plain.linear + rng.uniform(0, 0.01, number), -plain.square
    )
    return top, bottom, (plain, at_the_test)


def test_intervals_hold_what_the_condition_accepts():
    top, bottom, variances = cases()
    for v in variances:
        found = ratio_intervals(top, bottom, v, Z)
        clear = bottom**2 > Z**2 * v.square
        assert clear.sum() > 300
        for i in np.flatnonzero(clear):
            one = Residual(v.constant[i], v.linear[i], v.square[i])
            low, high = found[i]
            r = np.concatenate([np.linspace(low - 1, high + 1, 2001), [low - 1e-6, high + 1e-6]])
            accepted = (top[i] - r * bottom[i]) ** 2 <= Z**2 * one.at(r)
            inside = (low < r) & (r < high)
            if one.at(top[i] / bottom[i]) >= 0:
                assert np.array_equal(accepted, inside)
                assert low <= top[i] / bottom[i] <= high
            elif not accepted.any():  # every ratio is rejected: the nearest that is possible
                assert low == high
                assert one.at(low) == pytest.approx(0, abs=1e-12)
            assert np.array_equal(found[i], ratio_intervals(top[i], bottom[i], one, Z))


def test_ratios_that_cannot_be_told_have_their_limits():
    weak = Residual.of(0.01, 0.0, 0.01)
    assert ratio_intervals(0.1, 0.1, weak, Z, (-1.0, 1.0)).tolist() == [-1.0, 1.0]
    assert ratio_intervals(0.1, 0.1, weak, Z).tolist() == [-math.inf, math.inf]
    cut = ratio_intervals([0.9, 0.0], 1.0, Residual.of(0.01, 0.0, 0.0), Z, (0.0, 1.0))
    assert cut[0, 1] == 1.0
    assert cut[1, 0] == 0.0


def test_intervals_cover_as_often_as_they_say():
    """Null hypothesis: T - R N is normal with the variance that was given, so that 95 % cover."""
    runs, ratio, n = 20_000, 0.3, 0.5
    covariance = np.array([[4e-4, 3e-4], [3e-4, 9e-4]])
    drawn = np.random.default_rng(2).multivariate_normal([ratio * n, n], covariance, runs)
    v = Residual.of(covariance[0, 0], covariance[0, 1], covariance[1, 1])
    low, high = ratio_intervals(drawn[:, 0], drawn[:, 1], v, Z).T
    hits = int(np.sum((low <= ratio) & (ratio <= high)))
    assert binom.cdf(hits, runs, 0.95) > 5e-7
    assert binom.sf(hits - 1, runs, 0.95) > 5e-7
    # Five sigma of 20,000 are 2.5 %, and what is not of first order is another 1 %.
    spread = np.std(drawn[:, 0] / drawn[:, 1])
    assert ratio_errors(ratio * n, n, v) == pytest.approx(spread, rel=0.04)


def test_groups_that_are_too_small_are_refused():
    assert CLEAR == 4
    assert norm.sf(CLEAR) == pytest.approx(1 / 31_574, rel=1e-3)
    assert too_few("women", 0.08, 0.02, 5000) == ""
    require_enough("women", 0.08, 0.02, 5000)
    with pytest.raises(TooFew, match=r"too few women to tell: they are 4 % ± 4 points of 5,000"):
        require_enough("women", 0.04, 0.02, 5000)
    # 16 n Var(N) / N^2 = 16 * 5000 * 0.0004 / 0.0016.
    assert people_needed(0.04, 0.02, 5000) == 20_000
    assert too_few("women", 0.04, 0.02, 5000).endswith("about 20,000 would do")
    # Where the share may as well be 0 no number would be honest.
    assert too_few("women", 0.01, 0.02, 5000).endswith("1 % ± 4 points of 5,000 respondents")
    assert "0 % ± 4 points" in too_few("women", -0.01, 0.02, 5000)


def test_hardly_any_reports_are_refused_in_plain_numbers():
    words = "too few people who answered to tell: they are 100 % ± 220 points of 1 respondents"
    assert too_few("people who answered", 1.6, 1.1, 1).startswith(words)
