"""Forged respondents: what they can do at most, what they do, and what shows it."""

from itertools import chain, combinations, product

import numpy as np
import pytest

import deniable as dn
from deniable.audit.alphabets import Alphabet, alphabet_of
from deniable.audit.forging import (
    ATTACKS,
    maximal_gain,
    random_report,
    random_value,
    stealthy_gain,
)
from deniable.audit.influence import influence
from deniable.errors import InvalidArgument

FAMILIES = list(dn.mechanisms().values())
SIGMAS = 6.0


def member(family, size, epsilon=1.0, **design):
    return family(family.only_size or size, epsilon, **design)


def small(family, size=3, epsilon=1.0):
    return member(family, size, epsilon, **family.small_design)


def subsets(labels):
    labels = list(labels)
    return chain.from_iterable(combinations(labels, r) for r in range(1, len(labels) + 1))


def patterns(dtype, limit=8):
    """Every byte of a report; of wider numbers those up to a limit."""
    if dtype.names:
        return product(*(patterns(dtype[name], limit) for name in dtype.names))
    if dtype.subdtype is not None:
        width = dtype.shape[0]
        bytes_ = range(256) if width == 1 else range(limit)
        return (bytes(row) for row in product(bytes_, repeat=width))
    return range(limit)


def accepted(m):
    """The contribution of every report that the server's validation accepts, and the reports."""
    found, reports = [], []
    for pattern in patterns(m.dtype):
        data = m.pack([pattern])
        try:
            counts = m.count(data)
        except InvalidArgument:
            continue
        found.append(m.unbiased(counts, 1))
        reports.append(pattern)
    return np.array(found), reports


def diameter(x):
    return max(np.abs(x - row).sum(axis=1).max() for row in x)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_bound_is_the_maximum_over_all_admissible_reports(family):
    """By trying all bytes: what the server accepts is what devices make, and nothing beats it."""
    m = small(family)
    x, reports = accepted(m)
    assert set(reports) == set(m.channel().outputs)
    for targets in subsets(range(m.domain.size)):
        bound = influence(m, 90, 10, targets)
        sums = x[:, list(targets)].sum(axis=1)
        assert bound.high == pytest.approx(sums.max(), rel=1e-12)
        assert bound.low == pytest.approx(sums.min(), rel=1e-12)
        assert bound.most == pytest.approx(0.1 * (sums.max() - sums.min()))
    one = influence(m, 90, 10)
    assert one.high == pytest.approx(x.max(), rel=1e-12)
    assert one.low == pytest.approx(x.min(), rel=1e-12)
    if one.tight:
        assert one.diameter == pytest.approx(diameter(x), rel=1e-12)
    else:
        assert one.diameter >= diameter(x) - 1e-12


@pytest.mark.parametrize("family", FAMILIES)
def test_closed_forms_are_what_enumeration_finds(family):
    m = small(family, 5, 3.0)
    closed, tried = alphabet_of(m), Alphabet(m)
    for targets in subsets(range(m.domain.size)):
        weights = np.zeros(m.domain.size, dtype=np.int64)
        weights[list(targets)] = 1
        assert closed.extremes(weights) == pytest.approx(tried.extremes(weights), rel=1e-12)
        assert closed.unchecked(weights) >= closed.extremes(weights)[1] - 1e-12
    assert closed.diameter() >= tried.diameter() - 1e-9
    assert not closed.tight or closed.diameter() == pytest.approx(tried.diameter())
    np.testing.assert_allclose(
        closed.contributions(tried._outputs), Alphabet.contributions(closed, tried._outputs)
    )


def test_several_blocks_and_several_hash_functions():
    some = [
        dn.HR(9, 1.0, block=4),
        dn.HR(7, 2.0, block=2, seed=5),
        dn.ORAPPOR(6, 1.0, cohorts=3, width=4, hashes=2),
        dn.RAPPOR(4, 1.0, cohorts=2, width=3, hashes=2),
        dn.SHist(5, 1.0, b=16),
        dn.SHE(2, 1.0, steps=2, reach=2),
        dn.DBitFlip(5, 1.0, w=1),
        dn.DBitFlip(5, 1.0, w=2),
        dn.ORR(8, 1.0, cohorts=3, width=4, permuted=0),
    ]
    for m in some:
        x = Alphabet(m).contributions(Alphabet(m)._outputs)
        for targets in subsets(range(m.domain.size)):
            sums = x[:, list(targets)].sum(axis=1)
            bound = influence(m, 9, 1, targets)
            assert (bound.low, bound.high) == pytest.approx((sums.min(), sums.max()), rel=1e-9)
        assert bound.diameter >= diameter(x) - 1e-9
        assert not bound.tight or bound.diameter == pytest.approx(diameter(x))


@pytest.mark.parametrize("family", [f for f in FAMILIES if f.takes_text])
def test_any_text_with_candidates(family):
    """What is outside of the candidates can be moved, too."""
    m = family(dn.Text(), 1.0, **family.small_design).among(["a", "b", "c"])
    x, _ = accepted(m)
    for targets in subsets(range(m.domain.size)):
        sums = x[:, list(targets)].sum(axis=1)
        bound = influence(m, 9, 1, [m.domain.labels[i] for i in targets])
        assert (bound.low, bound.high) == pytest.approx((sums.min(), sums.max()), rel=1e-9)
        forged = maximal_gain(m, 5, [m.domain.labels[i] for i in targets], np.random.default_rng(1))
        total = m.unbiased(m.count(forged.data), 5)[list(targets)].sum()
        assert total == pytest.approx(bound.high)
    assert influence(m, 9, 1).diameter >= diameter(x) - 1e-9
    with pytest.raises(InvalidArgument, match="among"):
        influence(family(dn.Text(), 1.0), 9, 1, ["a"])


class Parity(dn.GRR):
    """A mechanism that the house does not know: k-RR whose reports are sent twice as large."""

    name = "parity"

    @property
    def cells(self):
        return 2 * self.domain.size

    def report(self, value, coins):
        return 2 * super().report(value, coins)

    def count(self, data):
        if np.any(data % 2):
            raise InvalidArgument("reports", "an odd number", "even numbers")
        return super().count(data)

    def supports(self, counts, n):
        return counts[::2]


def test_a_mechanism_of_others_is_enumerated():
    m, known = Parity(4, 1.0), dn.GRR(4, 1.0)
    mine, theirs = influence(m, 90, 10, [1, 2]), influence(known, 90, 10, [1, 2])
    assert mine.most == pytest.approx(theirs.most)
    assert mine.l1 == pytest.approx(theirs.l1)
    assert influence(m, 90, 10).high == pytest.approx(influence(known, 90, 10).high)
    rng = np.random.default_rng(1)
    forged = maximal_gain(m, 50, [1, 2], rng)
    assert m.unbiased(m.count(forged.data), 50)[[1, 2]].sum() == pytest.approx(mine.high)
    assert m.count(random_report(m, 50, [1], rng).data).sum() == 50
    assert m.count(random_value(m, 20, [1], rng).data).sum() == 20
    with pytest.raises(InvalidArgument, match="house"):
        stealthy_gain(m, 5, [1], rng)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", [16, 100])
def test_forgeries_are_admissible_and_the_best_ones_reach_the_bound(family, size):
    """Every attack passes validation; none moves more than the bound; one reaches it."""
    m, rng = member(family, size), np.random.default_rng(2)
    k = m.domain.size
    genuine = m.count(m.privatize(rng.integers(0, k, 900), rng).data)
    for targets in ([k - 1], list(range(min(k, 7)))):
        bound = influence(m, 900, 100, targets)
        before = m.unbiased(genuine, 900)
        for name, attack in ATTACKS.items():
            counts = genuine + m.count(attack(m, 100, targets, rng).data)
            moved = m.unbiased(counts, 1000) - before
            gain = moved[targets].sum()
            assert abs(gain) <= bound.most + 1e-9
            assert np.abs(moved).sum() <= bound.l1 + 1e-9
            assert gain <= bound.gain(before[targets].sum()) + 1e-9
            assert -gain <= bound.loss(before[targets].sum()) + 1e-9
            if name == "maximal gain":
                assert gain == pytest.approx(bound.gain(before[targets].sum()))


@pytest.mark.parametrize("family", FAMILIES)
def test_honest_randomisation_of_a_target_moves_by_its_share_alone(family):
    """Null hypothesis: forged answers that are randomised honestly add 1 - f a head, no more.

    The mean contribution is 1 with the variance of the mechanism; over the choice of the hash
    functions for cohorts, so these get many. Six sigmas: 2e-9.
    """
    design = {"cohorts": 4096} if "cohorts" in family.design else {}
    m, n = member(family, 12, 1.0, **design), 20_000
    forged = random_value(m, n, [1], np.random.default_rng(3))
    f = m.unbiased(m.count(forged.data), n)[1]
    truth = np.eye(m.domain.size)[1]
    assert abs(f - 1) < SIGMAS * np.sqrt(m.variance(n, truth)[1])


def test_what_forgers_ask_for_is_checked():
    m, rng = dn.OUE(["a", "b", "c"], 1.0), np.random.default_rng(4)
    assert len(maximal_gain(m, 0, ["a"], rng)) == 0
    with pytest.raises(InvalidArgument, match="targets"):
        maximal_gain(m, 5, ["d"], rng)
    with pytest.raises(InvalidArgument, match="targets"):
        influence(m, 5, 5, [])
    with pytest.raises(InvalidArgument, match="forged"):
        influence(m, 0, 0, ["a"])
    with pytest.raises(InvalidArgument, match="rng"):
        maximal_gain(m, 5, ["a"], 7)
    with pytest.raises(InvalidArgument, match="mechanism"):
        influence("oue", 5, 5)
