"""Histogram encodings: the figures of the papers' review, exact tables, and bad input."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deniable as dn
from deniable.conformance import LawBroken
from deniable.conformance.channel import bulk_channel
from deniable.core.reports import Reports
from deniable.errors import InvalidArgument
from deniable.kernels import histogram as kernels
from deniable.mechanisms.discrete_laplace import clamped_laplace
from deniable.privacy import exp_below
from deniable.randomness import SCALE, ByteCoins, Keystream

epsilons = st.floats(2.0**-20, 32.0)


@pytest.mark.parametrize(
    ("epsilon", "theta", "true"),
    [(0.5, 0.562, 0.472), (1.0, 0.619, 0.896), (2.0, 0.710, 1.636), (4.0, 0.816, 2.859)],
)
def test_the_has_its_known_threshold_and_true_epsilon(epsilon, theta, true):
    m = dn.THE(100_000, epsilon)
    assert m.theta / 1024 == pytest.approx(theta, abs=1e-3)
    assert m.epsilon == epsilon
    assert m.guarantee.epsilon == pytest.approx(true, abs=5e-4)


def test_the_variance_of_the():
    assert float(dn.THE(100_000, 1.0).variance(1, 0.0)) == pytest.approx(4.81, abs=5e-3)
    assert float(dn.THE(100_000, 4.0).variance(1, 0.0)) == pytest.approx(0.285, abs=5e-4)


@given(epsilons, st.integers(2, 5000))
def test_the_suggested_theta_is_not_worse_than_its_neighbours(epsilon, k):
    best = dn.THE(k, epsilon)
    for theta in (best.theta - 1, best.theta + 1):
        if 512 <= theta <= 1024:
            other = dn.THE(k, epsilon, theta=theta).variance(1)[0]
            assert best.variance(1)[0] <= other * (1 + 1e-9)


@given(epsilons, st.integers(512, 1024))
def test_the_bits_never_cost_more_than_their_noise(epsilon, theta):
    m = dn.THE(4, epsilon, theta=theta)
    t = theta / 1024
    assert m.guarantee.epsilon <= epsilon
    assert float(m.p) == pytest.approx(1 - math.exp(epsilon * (t - 1) / 2) / 2, rel=1e-12)
    assert float(m.q) == pytest.approx(math.exp(-epsilon * t / 2) / 2, rel=1e-9)


def design(epsilon):
    return st.integers(1, 16).flatmap(
        lambda steps: st.tuples(st.just(steps), st.integers(0, dn.SHE.most_reach(epsilon, steps)))
    )


@given(st.data(), epsilons)
def test_she_keeps_epsilon_tightly_for_every_lattice(data, epsilon):
    steps, reach = data.draw(design(epsilon))
    m = dn.SHE(4, epsilon, steps=steps, reach=reach)
    assert sum(m.weights) == SCALE
    assert min(m.weights) >= 1
    assert len(m.weights) == 2 * reach + steps + 1 <= 256
    assert m.guarantee.ratio <= exp_below(epsilon)
    # The best pair of weights is tight to one unit of its smaller one.
    rarest = SCALE * math.exp(-epsilon / 2) * min(1.0, epsilon / steps) / 16
    assert m.guarantee.epsilon >= epsilon * (1 - 1e-12) - 4 / rarest - 1e-15


def test_the_weights_are_those_of_clamped_laplace_noise():
    epsilon, steps, reach = 2.0, 3, 4
    a = math.exp(-epsilon / (2 * steps))
    found = np.array(dn.SHE(3, epsilon, steps=steps, reach=reach).weights) / SCALE
    y = np.arange(-reach, steps + reach + 1)
    expected = a ** np.abs(y) * (1 - a) / (1 + a)
    expected[[0, -1]] /= 1 - a
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(("steps", "reach"), [(1, 0), (1, 3), (2, 0), (2, 2), (3, 1), (6, 2)])
def test_the_weights_are_those_that_the_formats_page_states(steps, reach):
    """In fractions, so that another implementation can be checked against the same page."""
    m = dn.SHE(2, 1.5, steps=steps, reach=reach)
    a, end, w = Fraction(m.decay, SCALE), steps + reach, {}
    for y in range(-reach, end + 1):
        if 2 * y > steps and 2 * y != steps + 1:
            tail = 1 if y == end else 1 - a
            w[y] = math.floor(SCALE * a**y * tail / (1 + a))
            own = w[y] / a**steps if y >= steps else SCALE * a ** (steps - y) * (1 - a) / (1 + a)
            w[steps - y] = math.floor(own)
    left = SCALE - sum(w.values())
    far = left if steps % 2 == 0 else math.ceil(left * a / (1 + a))
    w |= {steps // 2: left - far, (steps + 1) // 2: far}
    assert m.weights == tuple(w[y] for y in sorted(w))


@pytest.mark.parametrize(("steps", "reach"), [(2, 0), (2, 1), (3, 1), (4, 2)])
def test_the_channel_of_finer_lattices_keeps_its_ratio(steps, reach):
    m = dn.SHE(3, 2.0, steps=steps, reach=reach)
    assert m.channel().ratio == m.guarantee.ratio <= exp_below(2.0)


def test_without_reach_she_is_sue():
    she, sue = dn.SHE(5, 1.0, reach=0), dn.SUE(5, 1.0)
    assert abs(she.weights[0] - sue.one) <= 2
    np.testing.assert_allclose(she.variance(1), sue.variance(1), rtol=1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_lattice_noise_has_less_variance_than_continuous_noise(epsilon):
    whole = 1 / (2 * math.sinh(epsilon / 4) ** 2)
    assert whole < 8 / epsilon**2
    variance = float(dn.SHE(5, epsilon).variance(1)[0])
    assert variance == pytest.approx(whole, rel=1e-6)
    finer = float(dn.SHE(5, epsilon, steps=2).variance(1)[0])
    assert whole < finer < 8 / epsilon**2


def test_she_is_unbiased_however_hard_it_clamps():
    """Exactly, in fractions: mean reports decode to 1 for the own value and 0 for others."""
    for steps, reach in ((1, 0), (1, 2), (2, 1), (5, 3)):
        m = dn.SHE(4, 1.0, steps=steps, reach=reach)
        means = [
            sum(Fraction(w * y, SCALE) for y, w in enumerate(weights))
            for weights in (m.weights, m.weights[::-1])
        ]
        for mean, expected in zip(means, (0, 1), strict=True):
            assert (mean - m.moment(1)) / m.gap == expected


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: dn.THE(5, 1.0, theta=511), "theta"),
        (lambda: dn.THE(5, 1.0, theta=1025), "theta"),
        (lambda: dn.THE(5, 1.0, theta=0.6), "theta"),
        (lambda: dn.THE(5, 1.0, one=1 << 62, zero=1 << 62), "thresholds"),
        (lambda: dn.SHE(5, 1.0, steps=0), "steps"),
        (lambda: dn.SHE(5, 1.0, steps=17), "steps"),
        (lambda: dn.SHE(5, 1.0, reach=-1), "reach"),
        (lambda: dn.SHE(5, 1.0, reach=128), "reach"),
        (lambda: dn.SHE(5, 8.0, reach=10), "reach"),
        (lambda: dn.SHE(5, "one", reach=10), "epsilon"),
        (lambda: dn.SHE(5, 1.0, decay=1), "thresholds"),
        (lambda: dn.SHE(5, 1.0, decay=0), "decay"),
        (lambda: dn.SHE(5, 1.0, decay=SCALE), "decay"),
        (lambda: dn.SHE(5, 1.0, decay=1 << 63), "thresholds"),
        (lambda: dn.SHE(5, 1.0, reach=0, decay=SCALE - 1), "thresholds"),
    ],
)
def test_bad_designs_are_refused(make, name):
    with pytest.raises(InvalidArgument) as refusal:
        make()
    assert refusal.value.name == name


def test_she_has_no_supports_and_says_so():
    m = dn.SHE(6, 1.0)
    reports = m.privatize(np.arange(400) % 6, np.random.default_rng(1))
    tally = m.tally(reports)
    for name in ("p", "q"):
        assert not hasattr(m, name)
    with pytest.raises(InvalidArgument, match="SHE has no supports") as refusal:
        tally.estimate("ibu")
    assert refusal.value.name == "method"
    with pytest.raises(InvalidArgument, match="'parts' must be reports of a family"):
        m.estimate(reports, "likelihood")
    with pytest.raises(InvalidArgument, match="'errors' must be used with one tally of supports"):
        tally.estimate("unbiased", errors="exact")
    with pytest.raises(InvalidArgument, match="SHE has no supports"):
        dn.combine([tally, dn.OUE(6, 1.0).tally(dn.OUE(6, 1.0).privatize([0, 1]))], "ibu")


def test_a_byte_that_no_report_has_is_refused_wherever_it_is():
    m = dn.SHE(13, 4.0)
    rows = m.privatize(np.arange(100) % 13, np.random.default_rng(1)).data
    for row, column in ((0, 0), (50, 6), (99, 12)):
        for byte, allowed in ((m.last, True), (m.last + 1, False), (255, False)):
            data = rows.copy()
            data[row, column] = byte
            if allowed:
                m.tally(Reports(m, data))
            else:
                with pytest.raises(InvalidArgument, match=f"bytes of 0..{m.last}"):
                    m.tally(Reports(m, data))


@pytest.mark.parametrize("width", [1, 3, 8, 13, 16, 100, 1024])
@pytest.mark.parametrize("rows", [1, 7, 5000])
def test_byte_sums(width, rows):
    data = np.random.default_rng(1).integers(0, 256, (rows, width), dtype=np.uint8)
    sums, fits = kernels.byte_sums(data, 255)
    np.testing.assert_array_equal(sums, data.sum(axis=0, dtype=np.int64))
    assert fits
    assert not kernels.byte_sums(data, int(data.max()) - 1)[1]
    full = np.full((rows, width), 255, dtype=np.uint8)
    assert set(kernels.byte_sums(full, 255)[0].tolist()) == {255 * rows}


class Recorded(Keystream):
    """A keystream that remembers the words it gave."""

    def __init__(self):
        super().__init__(bytes(32))
        self.given = []

    def words(self, count):
        found = super().words(count).copy()
        self.given.append(found)
        return found


def test_bulk_draws_are_those_of_pick():
    """The 16 digits of a draw, then 48 more where these leave it open: `pick` of that number."""
    m = dn.SHE(5, 0.4)
    rows, values = np.empty((8_000, 5), np.uint8), np.zeros(8_000, np.uint32)
    stream = Recorded()
    kernels.fill_histograms(rows, values, m._edges, stream)
    rows[:, 0] = m.last - rows[:, 0]
    guide, _ = kernels.guide_table(m._edges)
    settled = 0
    for block in range(0, rows.size, kernels.SPAN):
        out = rows.reshape(-1)[block : block + kernels.SPAN]
        digits = stream.given.pop(0).view("<u2")[: out.size].tolist()
        more = iter(stream.given.pop(0).tolist())
        for digit, byte in zip(digits, out.tolist(), strict=True):
            is_open = guide[digit] >= kernels.OPEN
            settled += is_open
            number = digit << 48 | (next(more) >> 16 if is_open else 12345)
            assert ByteCoins(number.to_bytes(8, "little")).pick(m._edges) == byte
        assert not list(more)
    assert settled > 50


def test_open_digits_are_settled_at_their_edge():
    edges = (5 << 48 | 7, 5 << 48 | 9, 6 << 48)
    guide, table = kernels.guide_table(edges)
    assert guide[4:7].tolist() == [0, kernels.OPEN, 3]
    for rest, expected in ((0, 0), (6, 0), (7, 1), (8, 1), (9, 2), ((1 << 48) - 1, 2)):
        out, digits = np.array([0], np.uint8), np.array([5], np.uint16)
        words = np.array([rest << 16], np.uint64)
        kernels._settle_draws(out, digits, np.array([0]), words, table)
        assert out[0] == expected


class NotMirroredInBulk(dn.SHE):
    """Every cell gets the noise of a value that is not the own."""

    def fill(self, values, out, keystream):
        kernels.fill_histograms(out, values[:0], self._edges, keystream)


class KeepsTheRemainder(dn.SHE):
    """What rounding leaves over is given to the byte 0, whose mirror image is the rarest."""

    @property
    def weights(self):
        first, second, *others = clamped_laplace(self.decay, self.steps, self.reach)
        return first + 1000, second - 1000, *others


def test_the_laws_catch_bugs_of_histograms():
    with pytest.raises(LawBroken, match="p-value"):
        bulk_channel(NotMirroredInBulk)
    with pytest.raises(InvalidArgument, match="such that epsilon"):
        KeepsTheRemainder(4, 1.0)
