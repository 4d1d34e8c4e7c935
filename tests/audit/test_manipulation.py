"""Forged respondents: what they can do at most, what they do, and what shows it."""

import io
import json
import sys
from itertools import chain, combinations, product

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import binom

import deniable as dn
from deniable.audit.forging.admissible import AdmissibleReports, admissible_reports
from deniable.audit.forging.attacks import (
    ATTACKS,
    maximal_gain,
    random_report,
    random_value,
    stealthy_gain,
)
from deniable.audit.forging.defences import DEFENCES, recovered, robust_intervals, without_suspects
from deniable.audit.forging.detection import detect
from deniable.audit.forging.influence import influence
from deniable.audit.forging.suite import manipulation_report
from deniable.audit.forging.tails import bernstein, binomial_pvalue, chernoff
from deniable.cli import main
from deniable.errors import InvalidArgument
from deniable.mechanisms.frequency import frequency_oracles
from twins import TWINS

FAMILIES = [family for name, family in frequency_oracles().items() if name not in TWINS]
SIGMAS = 6.0


def member(family, size, epsilon=1.0, **design):
    return family(family.only_size or size, epsilon, **design)


def small(family, size=3, epsilon=1.0):
    return member(family, size, epsilon, **family.small_design)


def subsets(labels):
    labels = list(labels)
    return chain.from_iterable(combinations(labels, r) for r in range(1, len(labels) + 1))


def patterns(dtype, limit=8):
    """All bytes of a report up to a limit that is far from what devices send."""
    if dtype.names:
        return product(*(patterns(dtype[name], limit) for name in dtype.names))
    if dtype.subdtype is not None:
        width = dtype.shape[0]
        bytes_ = range(64) if width == 1 else range(limit)
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
    """By trying bytes: what the server accepts is what devices make, and nothing beats it."""
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


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_closed_forms_are_what_enumeration_finds(family):
    m = small(family, 5, 3.0)
    closed, tried = admissible_reports(m), AdmissibleReports(m)
    for targets in subsets(range(m.domain.size)):
        weights = np.zeros(m.domain.size, dtype=np.int64)
        weights[list(targets)] = 1
        assert closed.extremes(weights) == pytest.approx(tried.extremes(weights), rel=1e-12)
        assert closed.unchecked(weights) >= closed.extremes(weights)[1] - 1e-12
    assert closed.diameter() >= tried.diameter() - 1e-9
    assert not closed.tight or closed.diameter() == pytest.approx(tried.diameter())
    np.testing.assert_allclose(
        closed.contributions(tried._outputs),
        AdmissibleReports.contributions(closed, tried._outputs),
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
        x = AdmissibleReports(m).contributions(AdmissibleReports(m)._outputs)
        for targets in subsets(range(m.domain.size)):
            sums = x[:, list(targets)].sum(axis=1)
            bound = influence(m, 9, 1, targets)
            assert (bound.low, bound.high) == pytest.approx((sums.min(), sums.max()), rel=1e-9)
        assert bound.diameter >= diameter(x) - 1e-9
        assert not bound.tight or bound.diameter == pytest.approx(diameter(x))


@pytest.mark.parametrize("family", [f for f in FAMILIES if dn.Text in f.takes])
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
    """A mechanism that deniable does not know: k-RR whose reports are sent twice as large."""

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
    with pytest.raises(InvalidArgument, match="own"):
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


# ---- the published gains


@pytest.mark.parametrize("family", [dn.GRR, dn.OUE, dn.OLH])
@pytest.mark.parametrize("attack", ["random value", "random report", "maximal gain"])
def test_gains_are_the_published_ones(family, attack):
    """Null hypothesis: the mean gain is that of the closed forms for the share b of forgers.

    r of d values are targets, with the true frequency F; e = exp(eps). A random value gains
    b (1 - F) everywhere. A random report gains b (r / d - F) with GRR, b (r - F) with OUE and -b F
    with OLH; the maximal gain is b (1 - F) + b (d - r) / (e - 1) with GRR and b (2 r - F) +
    2 b r / (e - 1) with OUE, and with OLH where g = e + 1. Here e = 3, so that g = 4 is that.
    Variances: that of the genuine, times b^2, and of the forged, times (b / m)^2 m; six sigmas.
    """
    d, r, n, m = 20, 4, 40_000, 4_000
    design = {"g": 4} if family is dn.OLH else {}
    mechanism, rng = family(d, np.log(3.0), **design), np.random.default_rng(5)
    values = rng.integers(0, d, n)
    targets, b, e = list(range(r)), m / (n + m), 3.0
    truth = np.isin(values, targets).mean()
    most = {"grr": 1 + (d - r) / (e - 1)}.get(family.name, 2 * r + 2 * r / (e - 1))
    any_ = {"grr": r / d, "oue": r, "olh": 0.0}[family.name]
    mean = {"random value": 1.0, "random report": any_, "maximal gain": most}[attack]
    genuine = mechanism.privatize(values, rng)
    forged = ATTACKS[attack](mechanism, m, targets, rng)
    before = mechanism.unbiased(mechanism.count(genuine.data), n)[targets].sum()
    both = mechanism.count(genuine.data) + mechanism.count(forged.data)
    gain = mechanism.unbiased(both, n + m)[targets].sum() - before
    x = admissible_reports(mechanism).contributions
    spread = [x(part.data)[:, targets].sum(axis=1).std() for part in (genuine, forged)]
    deviation = b * np.hypot(spread[0] / np.sqrt(n), spread[1] / np.sqrt(m))
    assert abs(gain - b * (mean - truth)) < SIGMAS * deviation + 1e-9


@pytest.mark.parametrize("r", [1, 2, 5])
@pytest.mark.parametrize("e", [2, 3, 9])
def test_unary_encodings_beat_k_rr_beyond_the_published_size(r, e):
    """Cao et al.: the maximal gain with OUE and OLH is below that with GRR for d > (2 r - 1)
    (e - 1) + 3 r values, and for no fewer. For OLH g = e + 1 is a whole number here."""
    border = (2 * r - 1) * (e - 1) + 3 * r
    targets = list(range(r))
    for d in (border - 1, border + 1):
        some = (dn.GRR(d, np.log(e)), dn.OUE(d, np.log(e)), dn.OLH(d, np.log(e), g=e + 1))
        direct, unary, hashed = (influence(m, 90, 10, targets).high for m in some)
        assert (direct > unary) == (direct > hashed) == (d > border)


@pytest.mark.parametrize("name", ["grr", "oue", "olh", "sue", "ss", "blh"])
def test_gains_follow_the_published_sum_of_supports(name):
    """Cao et al.: the gain is S / ((n + m) (p - q)) - c, where S is how often the forged reports
    support targets, in all, and c = m (F (p - q) + r q) / ((n + m) (p - q)). An identity, if F is
    what the genuine reports give."""
    mechanism, rng, n, m = dn.mechanism(name, 12, 1.0), np.random.default_rng(20), 800, 70
    targets, p, q = [2, 5, 6], float(mechanism.p), float(mechanism.q)
    genuine = mechanism.count(mechanism.privatize(rng.integers(0, 12, n), rng).data)
    before = mechanism.unbiased(genuine, n)[targets].sum()
    for attack in ATTACKS.values():
        forged = attack(mechanism, m, targets, rng).data
        after = mechanism.unbiased(genuine + mechanism.count(forged), n + m)[targets].sum()
        shares = admissible_reports(mechanism).contributions(forged)[:, targets]
        supports = float((shares > 0).sum())
        c = m * (before * (p - q) + len(targets) * q) / ((n + m) * (p - q))
        assert after - before == pytest.approx(supports / ((n + m) * (p - q)) - c, abs=1e-9)


# ---- what shows it


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_the_laws_of_genuine_reports_are_exact(family):
    """For every answer: the law of sizes, and the mean and spread of products of scores."""
    equal = {"g": 5, "modulus": 5} if "modulus" in family.design else {}
    if family is dn.SS:
        equal = {"omega": 3}
    try:
        m = member(family, 5 if equal else 3, 1.0, **(family.small_design | equal))
    except InvalidArgument:  # two cells only: they are never of equal size
        m = small(family)
        equal = None
    admissible, channel = admissible_reports(m), m.channel()
    data, law = m.pack(channel.outputs), np.array(channel.matrix, dtype=np.float64)
    sizes = admissible.sizes(data)
    if sizes is not None:
        for row in law:
            found = np.bincount(sizes, row, minlength=len(admissible.size_law()))
            np.testing.assert_allclose(found, admissible.size_law(), atol=1e-12)
    products = admissible.products()
    assert family is not dn.SS or products is not None
    if products is not None and equal is not None:
        x = admissible.scores(data)
        for u, v in combinations(range(m.domain.size), 2):
            off = x[:, u] * x[:, v] - products.mean
            np.testing.assert_allclose(law @ off, 0.0, atol=1e-9)
            assert np.max(law @ off**2) <= products.variance * (1 + 1e-9)
            assert np.abs(off).max() <= products.most * (1 + 1e-9)


#: Values, respondents and collections: few and many, and fewer respondents than values.
GENUINE = [(12, 3, 30), (12, 60, 30), (200, 40, 20), (12, 3_000, 4)]


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_genuine_reports_raise_few_alarms(family):
    """Null hypothesis: at most one alarm in 20 genuine collections, however large.

    All collections of a family are independent, so their alarms are at most binomial. Over all
    families a failure has a probability below 28e-9.
    """
    rng, alarms, runs = np.random.default_rng(6), 0, 0
    for size, n, times in GENUINE:
        m = member(family, size)
        values = np.minimum(rng.geometric(0.3, n), m.domain.size) - 1
        alarms += sum(detect(m.privatize(values, rng), 0.05).alarm for _ in range(times))
        runs += times
    assert binom.sf(alarms - 1, runs, 0.05) > 1e-9


@pytest.mark.slow
def test_few_reports_with_rare_large_contributions_raise_few_alarms():
    """The same where row 0 is rare and moves the total by hundreds: a normal law is far off.

    It had 23 alarms in 300 collections at level 1 %. 15 or more of 300 have a probability
    below 1e-6 under the null hypothesis.
    """
    m, rng, runs = dn.HRR(255, 1.0), np.random.default_rng(17), 300
    values = rng.integers(0, 255, 25)
    alarms = sum(detect(m.privatize(values, rng)).alarm for _ in range(runs))
    assert binom.sf(alarms - 1, runs, 0.01) > 1e-6


def test_sums_stay_below_their_tails():
    """By all outcomes: no bound is below the probability that it bounds."""
    for n, q in ((1, 0.3), (7, 0.1), (40, 0.5), (200, 0.02)):
        i = np.arange(n + 1)
        exact, bound = binom.cdf(i, n, q), chernoff(i / n, np.full(n + 1, q), n)
        assert np.all(exact <= bound * (1 + 1e-12) + (i >= n * q))
        above = bernstein(i - n * q, n * q * (1 - q), max(q, 1 - q))
        assert np.all(binom.sf(i - 1, n, q) <= above * (1 + 1e-12))
        p_values = np.array([binomial_pvalue([c], n, q) for c in i])
        for level in p_values:
            rejected = float(binom.pmf(i, n, q)[p_values <= level].sum())
            assert rejected <= level * (1 + 1e-9) + 1e-300


#: Reports that support one value, or one block: nothing to look at but negative frequencies.
SILENT = (dn.BRR, dn.GRR, dn.LGRR, dn.HR)


@pytest.mark.slow
def test_the_published_attack_is_seen_where_reports_say_more_than_one_value():
    """Null hypothesis: 600 beside 4,000 who forge for 5 of 20 values are seen in 999 of 1,000
    collections; 5 misses of 144 have a probability below 1e-6."""
    rng, runs, missed = np.random.default_rng(7), 6, []
    loud = [family for family in FAMILIES if family not in SILENT]
    for family in loud:
        m = member(family, 20)
        for _ in range(runs):
            genuine = m.privatize(rng.integers(0, 20, 4_000), rng)
            forged = maximal_gain(m, 600, [3, 4, 5, 6, 7], rng)
            found = detect(dn.Reports.concatenate([genuine, forged]))
            missed += [] if found.alarm else [(family, found)]
    assert binom.sf(len(missed) - 1, runs * len(loud), 1e-3) > 1e-6, missed


@pytest.mark.slow
def test_sizes_of_random_reports_are_seen():
    """The same for reports that have any bits: 4 misses of 48 have a probability below 1e-6."""
    rng, missed = np.random.default_rng(18), []
    for name in ("oue", "ue", "the", "she", "cms", "orappor", "rappor", "losue"):
        m = dn.mechanism(name, 20, 1.0)
        for _ in range(6):
            genuine = m.privatize(rng.integers(0, 20, 4_000), rng)
            found = detect(dn.Reports.concatenate([genuine, random_report(m, 600, [3], rng)]))
            missed += [] if found.alarm else [(name, found)]
    assert binom.sf(len(missed) - 1, 48, 1e-3) > 1e-6, missed


def test_detection_says_what_was_left_out():
    """Nothing but negative frequencies can show forged reports of single values."""
    rng = np.random.default_rng(19)
    for family in SILENT:
        found = detect(member(family, 20).privatize([0, 1], rng))
        assert set(found.p_values) == {"negative"}
        assert found.left_out == ("sizes", "draws", "total", "pairs")
        assert "left out: sizes, draws, total, pairs" in str(found)
    m = dn.DBitFlip(6, 1.0)
    found = detect(dn.Reports.concatenate([m.privatize([1] * 900, rng)] * 2), 0.05)
    assert found.left_out == ()
    m = dn.OUE(20, 1.0)
    found = detect(maximal_gain(m, 900, [1, 2, 3], rng))
    assert found.suspects == (1, 2, 3)
    assert found.words.startswith("somebody forges: the least p-value is")


def test_detection_checks_its_arguments():
    m = dn.GRR(3, 1.0)
    with pytest.raises(InvalidArgument, match="level"):
        detect(m.privatize([0, 1]), 2.0)
    with pytest.raises(InvalidArgument, match="reports"):
        detect(m.privatize([]))


# ---- what helps


@pytest.mark.parametrize("family", FAMILIES)
def test_robust_intervals_hold_what_the_genuine_say(family):
    """Certain, not probable: for every attack the genuine estimate lies inside, with any noise."""
    m, rng = member(family, 10), np.random.default_rng(8)
    genuine = m.privatize(rng.integers(0, m.domain.size, 2_000), rng)
    alone = np.clip(m.unbiased(m.count(genuine.data), 2_000), 0, 1)
    for attack in ATTACKS.values():
        forged = attack(m, 200, [1], rng)
        tally = m.tally(dn.Reports.concatenate([genuine, forged]))
        for number in (200, 300):
            low, high = robust_intervals(tally, number, 1e-9).T
            assert np.all((low <= alone + 1e-6) & (alone - 1e-6 <= high))


@pytest.mark.slow
def test_robust_intervals_cover_the_truth_under_the_worst_attack():
    """Null hypothesis: intervals of 95 % hold the truth of a target in at least 94 %.

    The forgers use all of the widening, so what is left is the noise of the genuine; score
    intervals are nominal to within 1 % at these n.
    """
    m, rng, runs = dn.OUE(8, 1.0), np.random.default_rng(9), 200
    values = np.repeat(np.arange(8), 250)
    held = 0
    for _ in range(runs):
        genuine = m.privatize(values, rng)
        tally = m.tally(dn.Reports.concatenate([genuine, maximal_gain(m, 100, [2], rng)]))
        low, high = robust_intervals(tally, 100)[2]
        held += low <= 1 / 8 <= high
    assert binom.cdf(held, runs, 0.94) > 1e-6


def test_recovery_takes_back_what_it_guesses_right():
    """Of GRR the maximal gain is known but for which target each forger chose."""
    m, rng = dn.GRR(10, 2.0), np.random.default_rng(10)
    genuine = m.privatize(np.repeat(np.arange(10), 2_000), rng)
    forged = maximal_gain(m, 2_000, [0, 1], rng)
    tally = m.tally(dn.Reports.concatenate([genuine, forged]))
    alone = m.unbiased(m.count(genuine.data), len(genuine))
    assert recovered(tally, 2_000, [0, 1])[:2].sum() == pytest.approx(alone[:2].sum(), abs=1e-9)
    assert recovered(tally, 2_000).sum() == pytest.approx(1)
    with pytest.raises(InvalidArgument, match="forged"):
        recovered(tally, tally.n)


def test_dropping_suspects_drops_forgeries_first():
    m, rng = dn.OUE(20, 1.0), np.random.default_rng(11)
    genuine = m.privatize(rng.integers(0, 20, 20_000), rng)
    forged = maximal_gain(m, 1_500, list(range(6)), rng)
    kept = without_suspects(dn.Reports.concatenate([genuine, forged]))
    assert len(kept) <= 20_000
    assert len(kept) > 19_000
    assert without_suspects(genuine) is genuine


# ---- the suite


@pytest.fixture(scope="module")
def report():
    m, rng = dn.SS(["a", "b", "c", "d", "e"], 1.0, omega=1), np.random.default_rng(12)
    return manipulation_report(m, 2_000, 200, ["b", "c"], rng=rng, runs=3)


def test_the_suite_has_a_row_for_each_attack_and_defence(report):
    rows = report.rows()
    assert len(rows) == 1 + (1 + len(ATTACKS)) * (1 + len(DEFENCES))
    assert {row["label"] for row in rows} == {"none", "heuristic", "guaranteed"}
    assert all(row["gain"] <= row["bound"] + 1e-9 for row in rows[1:])
    assert rows[0]["gain"] > rows[0]["bound"]  # a set of two where one is allowed
    assert rows[0]["gain_after"] == 0.0
    best = next(row for row in rows if row["attack"] == "maximal gain")
    assert best["gain"] == pytest.approx(best["bound"])
    m, rng = dn.SS(["a", "b", "c", "d", "e"], 1.0, omega=1), np.random.default_rng(12)
    with pytest.raises(InvalidArgument, match="set of another size"):
        m.count(dn.OUE(5, 1.0).pack([b"\x06"]))
    with pytest.raises(InvalidArgument, match="frequencies"):
        manipulation_report(m, 9, 1, ["a"], rng=rng, frequencies=[1.0])
    with pytest.raises(InvalidArgument, match="runs"):
        manipulation_report(m, 9, 1, ["a"], rng=rng, runs=0)


def test_the_suite_says_the_most_important_thing(report):
    assert report.attacks == list(ATTACKS)
    assert report.strongest.attack == "maximal gain"
    assert (report.truth, report.targets) == (0.4, ("b", "c"))
    assert report.words.startswith("200 forgers beside 2,000 genuine respondents add at most ")
    assert f"(maximal gain) adds {report.strongest.bound:.3g} " in report.words
    assert f"defence ({report.best_defence.defence}) leaves " in report.words
    assert repr(report) == str(report)
    assert report.interval_words == "means of 3 simulated collections"


@pytest.mark.slow
def test_the_suite_has_every_way_out(report, tmp_path):
    found = json.loads(report.to_json())
    assert found["words"] == report.words
    assert found["attempts"] == report.rows()
    assert report.to_csv().splitlines()[0].startswith("attack,defence,label,gain,gain_after,bound")
    assert list(report.to_pandas()["attack"]) == report.columns()["attack"]
    assert report.to_arrow().num_rows == len(report.rows())
    assert "maximal gain" in report._repr_html_()
    assert report.save(tmp_path / "chart.svg").read_text().count("bound") >= len(ATTACKS)
    console = Console(width=80, file=io.StringIO())
    console.print(report.table())
    lines = console.file.getvalue().splitlines()
    assert all(len(line) <= 80 for line in lines)
    held = next(line for line in lines if "guaranteed" in line)
    assert held.count("%") == 1 + len(ATTACKS)
    drawn = json.dumps(report.plot().to_dict())
    for name, defence in DEFENCES.items():
        assert defence.label == "none" or f"{name} ({defence.label})" in drawn
    assert "robust interval (guaranteed)" in drawn


def command(monkeypatch, capsys, *arguments, code=0):
    monkeypatch.setattr(sys, "argv", ["deniable", "manipulate", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == code
    return capsys.readouterr()[bool(code)]


@pytest.mark.slow
def test_the_command(monkeypatch, capsys, tmp_path):
    given = ["oue", "-k", 6, "-n", 500, "--forged", 50, "-v", 2, "-v", 3, "--runs", 2, "--seed", 1]
    found = json.loads(command(monkeypatch, capsys, *given, "-f", "json"))
    assert (found["n"], found["forged"], found["targets"]) == (500, 50, [2, 3])
    assert found == json.loads(command(monkeypatch, capsys, *given, "-f", "json"))
    text = command(monkeypatch, capsys, *given, "-f", "csv", "-c", tmp_path / "chart.png")
    assert len(text.splitlines()) == 1 + len(found["attempts"])
    assert (tmp_path / "chart.png").stat().st_size > 10_000
    small = ["brr", "-n", 100, "--runs", 1]
    assert "5 forgers beside 100 genuine" in command(monkeypatch, capsys, *small)
    assert "targets" in command(monkeypatch, capsys, "oue", "-k", 4, "-v", 4, code=2)
    assert "level" in command(monkeypatch, capsys, *small, "--level", 1.5, code=2)
