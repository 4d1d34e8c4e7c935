"""Mechanisms whose respondents share public hash functions, and answers that nobody listed."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

import deniable as dn
from deniable.answers.text import OUTSIDE, Candidates, text_codes
from deniable.conformance import channel, frequencies, large, small
from deniable.conformance.frequencies import two_sided
from deniable.errors import InvalidArgument
from deniable.estimation.frequencies.mle.bloom import _unknown
from deniable.estimation.frequencies.mle.likelihood import loglikelihood, maximise
from deniable.mechanisms.cohorts.base import second_moment
from deniable.mechanisms.cohorts.collisions import Collisions
from deniable.privacy import exact_channel
from deniable.randomness import ByteCoins
from deniable.splitmix import permuted

OPEN = [dn.CMS, dn.HCMS, dn.ORR, dn.ORAPPOR, dn.RAPPOR]
#: A test fails by chance with less than this.
FALSE_ALARM = 1e-7


def moments(parts):
    """What `Collisions` says, from all equally likely ways to give three values their cells.

    ``parts`` are the (ordered) cells of values a, b, c; a is asked about.
    """
    share = Fraction(0)
    square = cross = own = met = Fraction(0)
    for a, b, c in parts:
        b_part, c_part = (Fraction(sum(y in other for y in a), len(a)) for other in (b, c))
        share += b_part
        square += b_part * b_part
        cross += b_part * c_part
        own += len(set(b))
        met += len(set(b) & set(c))
    n = len(parts)
    mean = share / n
    return mean, square / n - mean**2, cross / n - mean**2, own / n, met / n


@pytest.mark.parametrize(("width", "hashes"), [(2, 1), (3, 1), (5, 1), (2, 2), (3, 2), (2, 3)])
def test_collisions_of_hashes_are_those_of_all_hash_functions(width, hashes):
    values = list(product(range(width), repeat=hashes))
    found = Collisions.of_hashes(width, hashes)
    expected = moments(list(product(values, repeat=3)))
    assert (found.share, found.same, found.different, found.own, found.cross) == expected


@pytest.mark.parametrize(("width", "size"), [(2, 3), (2, 4), (3, 4), (2, 5), (3, 6), (7, 5)])
def test_collisions_of_permutations_are_those_of_all_permutations(width, size):
    dealt = [[(place % width,) for place in order[:3]] for order in permutations(range(size))]
    found = Collisions.of_permutation(width, size)
    expected = moments(dealt)
    assert (found.share, found.same, found.different, found.own, found.cross) == expected


def test_six_values_in_three_cells_meet_with_a_fifth_and_not_a_third():
    assert Collisions.of_permutation(3, 6).share == Fraction(1, 5)
    m = dn.ORR(6, 1.0, width=3, cohorts=16)
    q = m.inner.q
    assert m.q == Fraction(1, 5) * m.p + Fraction(4, 5) * q


@pytest.mark.parametrize("size", [2, 3, 4, 5, 8, 16, 100, 1000])
def test_permutations_are_permutations(size):
    for key in (0, 1, 2**64 - 1, 0x0123456789ABCDEF):
        assert sorted(permuted(v, key, size) for v in range(size)) == list(range(size))


@pytest.mark.slow
@pytest.mark.parametrize("family", OPEN)
@pytest.mark.parametrize("listed", [4, 6, 8, 20, 70])
def test_values_meet_as_often_as_the_formula_says(family, listed):
    """Null hypothesis: each pair of values shares a cell with the stated probability (binomial)."""
    design = {"cohorts": 1 << 16, "width": 3, "seed": 7}
    if "hashes" in family.design:
        design["hashes"] = 1
    for perm in (0, 1) if "permuted" in family.design else (0,):
        chosen = {**design, "permuted": perm} if "permuted" in family.design else design
        m = family(listed, 1.0, **chosen)
        cells = m.cell_table()[:, 0]
        for u in range(min(listed, 20)):
            for v in range(u):
                met = int(np.sum(cells[:, u] == cells[:, v]))
                p_value = two_sided(met, m.cohorts, float(m.collisions.share))
                assert p_value > FALSE_ALARM / listed**2, (u, v, met, p_value)


@pytest.mark.parametrize("family", OPEN)
@pytest.mark.parametrize("domain", [40, ["a", "b", "c", "d"]], ids=["integers", "labels"])
def test_the_device_and_the_tables_hash_alike(family, domain):
    m = family(domain, 1.0, cohorts=5, width=7, seed=2)
    table = m.cell_table()
    for value in range(m.domain.size):
        for cohort in range(5):
            assert m.cells_of(value, cohort) == table[cohort, :, value].tolist()


def test_a_label_and_the_same_text_are_hashed_alike():
    """So reports about any text can be asked about candidates."""
    words = ["car", "train"]
    listed = dn.CMS(words, 1.0, cohorts=9, width=7)
    free = dn.CMS(dn.Text(), 1.0, cohorts=9, width=7)
    for cohort in range(9):
        for index, word in enumerate(words):
            code = int(text_codes([word])[0])
            assert listed.cells_of(index, cohort) == free.cells_of(code, cohort)
    assert np.array_equal(free.among(words).codes, listed.codes)


@pytest.mark.parametrize("family", OPEN)
def test_any_text_has_the_declared_epsilon(family):
    """The exact channel of the shipped code for three texts; hash functions without collisions."""
    design = {**family.small_design, "width": 5, "seed": 1}
    m = family(dn.Text(), 1.0, **design)
    codes = m.domain.encode(["a", "b", "\u00e4"]).tolist()
    channel = exact_channel(m.report, codes)
    assert channel.ratio <= m.guarantee.ratio
    assert channel.ratio > m.guarantee.ratio * (1 - Fraction(1, 10**9))


def test_bloom_filters_without_a_common_bit_reach_the_bound():
    """And those with one do not: RAPPOR's 2 h bits are the worst case."""
    for h, family in ((2, dn.RAPPOR), (2, dn.ORAPPOR)):
        m = family(24, 1.0, cohorts=1, width=4, hashes=h)
        sets = [frozenset(m.cells_of(v, 0)) for v in range(24)]
        pairs = [(u, v) for u in range(24) for v in range(u)]
        apart = next(p for p in pairs if len(sets[p[0]] | sets[p[1]]) == 4)
        near = next(p for p in pairs if len(sets[p[0]] & sets[p[1]]) == 1)
        worst, less = (exact_channel(m.report, pair).ratio for pair in (apart, near))
        assert m.guarantee.ratio * (1 - Fraction(1, 10**9)) < worst <= m.guarantee.ratio
        assert less < worst


class TwoHashes(dn.RAPPOR):
    """As published: every law's member has Bloom filters of two hash functions."""

    hashes_to_try = (2,)
    small_design = {"cohorts": 2, "width": 4, "hashes": 2, "seed": 3}


@pytest.mark.slow
@pytest.mark.parametrize(
    "law", [
        channel.fixed_coins,
        channel.bulk_channel,
        frequencies.exact_moments,
        frequencies.simulated_errors,
    ],
    ids=lambda law: law.__name__,
)  # fmt: skip
def test_bloom_filters_obey_the_laws_of_the_channel(law):
    assert all(m.hashes == 2 for m in (*small(TwoHashes), *large(TwoHashes)))
    law(TwoHashes)


def test_rappor_with_googles_settings():
    m = dn.RAPPOR(dn.Text(), f=0.5, p=0.75, q=0.5, hashes=2, width=128, cohorts=64)
    one = dn.BasicRAPPOR(4, f=0.5, p=0.75, q=0.5)
    assert m.p == one.p == Fraction(11, 16)
    assert m.guarantee.ratio == one.guarantee.ratio**2
    assert m.permanent_guarantee.epsilon == pytest.approx(4 * np.log(3))
    assert m.epsilon == pytest.approx(2 * 0.5368, abs=1e-3)


def test_enough_cells_and_one_cohort_make_randomised_response():
    m, plain = dn.ORR(9, 1.0, cohorts=1, width=9), dn.GRR(9, 1.0)
    assert (m.p, m.q) == (plain.p, plain.q)
    f = np.random.default_rng(1).dirichlet(np.ones(9))
    assert m.variance(100, f) == pytest.approx(plain.variance(100, f))
    assert np.allclose(m.response(), np.eye(9))


@pytest.mark.parametrize("size", [16, 64, 256])
@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0])
def test_dealt_out_orr_is_as_good_as_subset_selection(size, epsilon):
    """Kairouz et al., section 5.4: at least as good as k-RR and k-RAPPOR at every epsilon."""
    advice = dn.ORR.suggest(epsilon, 10**5, 1 / size, size)
    found = dn.ORR(size, epsilon, **advice).variance(10**5).mean()
    best, grr, sue = (f(size, epsilon).variance(10**5).mean() for f in (dn.SS, dn.GRR, dn.SUE))
    assert found <= 1.05 * best
    assert found <= 1.0001 * min(grr, sue)


def test_with_many_cohorts_orr_is_local_hashing():
    e, k = np.e, 4
    m = dn.ORR(dn.Text(), 1.0, cohorts=1 << 16, width=k).among(["a", "b"])
    (variance, *_), _ = m.variance_line(np.array([0.0, 0.0, 1e-9]), 1)
    assert variance == pytest.approx((e + k - 1) ** 2 / ((k - 1) * (e - 1) ** 2), rel=1e-4)


def test_the_variance_of_cms_does_not_vanish():
    m = dn.CMS(1000, 1.0, cohorts=64, width=128)
    f = np.zeros(1000)
    f[:2] = 0.5
    floor = 0.5 / (64 * 127)
    assert m.variance(10**15, f)[500] == pytest.approx(floor, rel=1e-3)
    s = np.exp(0.5)
    alone = (128 / 127) ** 2 * (s / (s - 1) ** 2 + (1 - 1 / 128) / 128)
    assert m.variance(1, np.zeros(1000))[5] == pytest.approx(alone - 1 / (64 * 127), rel=1e-6)


@pytest.mark.parametrize("family", OPEN)
def test_the_second_moment_is_found_in_the_cells(family):
    """Null hypothesis: the estimate is within 5 % of sum f^2; noise is far below at n = 10^6."""
    rng = np.random.default_rng(4)
    m = family(50, 3.0, cohorts=256, width=64)
    values = np.minimum(rng.geometric(0.3, 1_000_000) - 1, 49)
    truth = np.sum((np.bincount(values) / values.size) ** 2)
    assert second_moment(m, m.tally(m.privatize(values, rng)).counts) == pytest.approx(truth, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("family", OPEN)
def test_more_hash_functions_never_help(family):
    """Kairouz et al. found h = 1 by simulation; the formula of the variance says the same."""
    for epsilon in (0.5, 1.0, 2.0, 4.0, 6.0):
        for n in (1_000, 1_000_000):
            assert family.suggest(epsilon, n).get("hashes", 1) == 1


def test_the_best_number_of_cells_of_orr_grows_with_epsilon():
    widths = [dn.ORR.suggest(e, 10**6, 0.01)["width"] for e in (0.5, 1.0, 2.0, 3.0, 4.0)]
    assert widths == sorted(widths)
    assert widths[0] <= 3 <= widths[2] <= 11 <= widths[4]


@pytest.mark.parametrize("family", OPEN)
def test_advice_is_about_the_best_of_its_neighbours(family):
    """What is suggested has nearly the least variance among other widths with as many cells."""
    f, n = np.array([0.0, *[0.05] * 20]), 50_000
    advice = family.suggest(2.0, n, 0.05, size=21)
    m = family(21, 2.0, **advice)
    here = m.variance(n, f)[0]
    for factor in (0.25, 0.5, 2, 4):
        width = max(2, int(advice["width"] * factor))
        cohorts = max(1, int(advice["cohorts"] * advice["width"] / width))
        other = family(21, 2.0, **{**advice, "width": width, "cohorts": min(cohorts, 1 << 16)})
        assert here < 1.12 * other.variance(n, f)[0]


def people(rng, n=20_000):
    """Zipf's law on 300 words, of which the candidates are the first 60."""
    shape = 1 / np.arange(1, 301)
    values = rng.choice(300, n, p=shape / shape.sum())
    shares = np.bincount(values, minlength=300) / n
    return values, np.append(shares[:60], shares[60:].sum())


WORDS = [f"word {i}" for i in range(300)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "design"),
    [
        (dn.ORR, {"cohorts": 64, "width": 16}),
        (dn.CMS, {"cohorts": 16, "width": 64}),
        (dn.HCMS, {"cohorts": 64, "width": 64}),
        (dn.RAPPOR, {"cohorts": 64, "width": 64, "hashes": 2}),
    ],
    ids=lambda thing: getattr(thing, "__name__", ""),
)
def test_candidates_and_the_outside_are_covered(family, design):
    """With a quarter of the answers outside, over redrawn hash functions.

    Null hypotheses: 95 % intervals of some candidates and of the outside cover with at least 0.92;
    those of all candidates on average with 0.94 to 0.96 (six standard errors of the runs' means).
    """
    from scipy.stats import binom

    rng = np.random.default_rng(8)
    values, truth = people(rng)
    codes, listed, runs = text_codes(WORDS), Candidates(WORDS[:60]), 200
    hits, shares = np.zeros(61, dtype=int), []
    for seed in range(runs):
        m = family(dn.Text(), 2.0, seed=seed, **design)
        reports = dn.Reports(m, m.randomise(codes[values], rng.bytes(32), 1))
        low, high = m.tally(reports).estimate("unbiased", candidates=listed).intervals.T
        covered = (low <= truth) & (truth <= high)
        hits += covered
        shares.append(covered[:60].mean())
    for place in (0, 1, 20, 59, 60):
        assert binom.cdf(hits[place], runs, 0.92) > FALSE_ALARM, (place, hits[place])
    assert abs(np.mean(shares) - 0.95) < 0.01 + 6 * np.std(shares) / np.sqrt(runs)


@pytest.mark.slow
@pytest.mark.parametrize("family", OPEN)
@pytest.mark.parametrize("method", ["unbiased", "bayes", "projected", "normalized", "likelihood"])
def test_methods_know_the_outside(family, method):
    rng = np.random.default_rng(5)
    values, truth = people(rng)
    m = family(
        dn.Text(), 4.0, cohorts=64, width=32, **({"hashes": 1} if family is dn.RAPPOR else {})
    )
    reports = m.privatize([WORDS[v] for v in values], rng)
    e = m.estimate(reports, method, candidates=WORDS[:60])
    assert e.labels == (*WORDS[:60], OUTSIDE)
    for place in (0, -1):
        error = 6 * m.estimate(reports, "unbiased", candidates=WORDS[:60]).standard_errors[place]
        assert e.frequencies[place] == pytest.approx(truth[place], abs=error)


@pytest.mark.slow
def test_an_outside_that_is_ignored_biases_every_candidate():
    """Least likely values of a list that should hold all answers get what is not on the list."""
    rng = np.random.default_rng(6)
    values, truth = people(rng, 200_000)
    m = dn.ORR(dn.Text(), 4.0, cohorts=256, width=8)
    reports = m.privatize([WORDS[v] for v in values], rng)
    honest = m.estimate(reports, "likelihood", candidates=WORDS[:60]).frequencies
    closed = dn.ORR(WORDS[:60], 4.0, cohorts=256, width=8, permuted=0)
    denied = closed.estimate(dn.Reports(closed, reports.data), "likelihood").frequencies
    errors = [np.mean((f[:60] - truth[:60]) ** 2) for f in (honest, denied)]
    assert errors[0] < errors[1] / 3


@pytest.mark.parametrize("family", OPEN)
def test_the_likelihood_is_that_of_the_exact_channel(family):
    """For listed answers: differences of log-likelihoods, from the enumerated channel."""
    hashes = {"hashes": 2} if "hashes" in family.design else {}
    m = family(4, 2.0, cohorts=2, width=3, seed=5, **hashes)
    rng = np.random.default_rng(9)
    reports = m.privatize(rng.integers(0, 4, 40), rng)
    channel = m.channel()
    place = {output: j for j, output in enumerate(channel.outputs)}
    law = np.array(channel.matrix, dtype=float)[:, [place[y] for y in reports]]
    f, g = rng.dirichlet(np.ones(4), 2)
    expected = np.mean(np.log(f @ law) - np.log(g @ law))
    found = loglikelihood([reports], f) - loglikelihood([reports], g)
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("width", "hashes"), [(2, 1), (3, 2), (4, 3), (2, 4)])
def test_an_unknown_answer_has_the_mean_of_all_filters(width, hashes):
    ratios = np.array([0.4, 1.7])
    filters = [set(cells) for cells in product(range(width), repeat=hashes)]
    for ones in range(width + 1):
        weights = [np.prod([ratios[int(cell < ones)] for cell in cells]) for cells in filters]
        assert _unknown(width, hashes, ratios)[ones] == pytest.approx(np.mean(weights))


@pytest.mark.slow
def test_the_likelihood_with_an_outside_has_its_maximum_where_it_says():
    rng = np.random.default_rng(10)
    values, _ = people(rng)
    for family in (dn.ORR, dn.HCMS, dn.CMS, dn.RAPPOR):
        m = family(dn.Text(), 3.0, cohorts=32, width=16)
        asked = m.privatize([WORDS[v] for v in values], rng).among(WORDS[:60])
        best = maximise([asked])
        assert best.certificate < 1e-8
        for f in rng.dirichlet(np.ones(61), 20):
            mixed = 0.99 * best.frequencies + 0.01 * f
            assert loglikelihood([asked], mixed) <= best.loglikelihood + 1e-12


def test_what_was_asked_survives_as_bytes():
    m = dn.CMS(dn.Text(), 2.0, cohorts=32, width=16)
    asked = m.tally(m.privatize(["a", "b", "c"] * 100, np.random.default_rng(1))).among(["a", "b"])
    again = dn.Tally.from_bytes(asked.to_bytes())
    assert again == asked
    assert again.mechanism == asked.mechanism == dn.from_spec(asked.mechanism.to_spec())
    assert np.array_equal(again.estimate().frequencies, asked.estimate().frequencies)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["unbiased", "bayes", "likelihood", "least-squares", "nnls"])
def test_a_frequent_answer_that_nobody_listed_does_not_spoil_intervals(method):
    """One unknown answer has 60 %. Null hypothesis: intervals cover with at least 0.88, each."""
    from scipy.stats import binom

    rng, runs, n = np.random.default_rng(12), 150, 4000
    answers = ["hidden"] * 2400 + ["a"] * 1200 + ["b"] * 400
    truth, hits = np.array([0.3, 0.1, 0.0, 0.6]), np.zeros(4, dtype=int)
    for seed in range(runs):
        m = dn.ORR(dn.Text(), 3.0, cohorts=32, width=8, seed=seed)
        e = m.tally(m.privatize(answers, rng)).estimate(method, candidates=["a", "b", "absent"])
        low, high = e.intervals.T
        hits += (low <= truth) & (truth <= high)
        assert np.all(e.standard_errors > 0)
    assert e.n == n
    assert binom.cdf(hits.min(), runs, 0.88) > FALSE_ALARM, hits


def test_the_outside_of_one_candidate_is_as_uncertain_as_the_candidate():
    """Also when nobody happens to collide with it."""
    for seed in range(20):
        m = dn.CMS(dn.Text(), 4.0, cohorts=16, width=64, seed=seed)
        tally = m.tally(m.privatize(["hidden"] * 6000 + ["a"] * 4000, np.random.default_rng(seed)))
        errors = tally.estimate("unbiased", candidates=["a"]).standard_errors
        assert errors[1] >= errors[0] * (1 - 1e-9)


def test_collisions_never_take_more_variance_away_than_there_is():
    """The second moment may come out too small; errors must stay positive."""
    rng = np.random.default_rng(4)
    for seed in range(10):
        m = dn.RAPPOR(4, 6.0, cohorts=16, width=8, hashes=2, seed=seed)
        values = np.repeat(np.arange(4), [16_000, 2_000, 1_000, 1_000])
        e = m.tally(m.privatize(values, rng)).estimate()
        assert np.all(e.standard_errors > 0)
        assert e.frequencies[0] == pytest.approx(0.8, abs=0.1)


@pytest.mark.slow
def test_the_default_sees_a_frequent_value_among_noisier_ones():
    """Its own collisions are few, those of the others many: errors as the formula says, or less."""
    counts, errors = np.array([18_000, 1_000, 500, 500]), []
    values = np.repeat(np.arange(4), counts)
    for seed in range(30):
        m = dn.RAPPOR(4, 6.0, cohorts=64, width=32, hashes=2, seed=seed)
        e = m.tally(m.privatize(values, np.random.default_rng(seed))).estimate()
        errors.append(e.frequencies[0] - 0.9)
    predicted = m.variance(20_000, counts / 20_000)[0]
    # Null hypothesis: no worse than unbiased; a chi-square with 30 degrees exceeds 2.9 times so.
    assert np.mean(np.square(errors)) < 2.9 * predicted


def test_cohorts_suit_a_width_that_the_caller_fixed():
    """What they share is about a tenth of the noise for n = 20,000 and sum f^2 = 0.05."""
    for family, width in ((dn.CMS, 4), (dn.CMS, 16), (dn.HCMS, 2), (dn.ORR, 4)):
        m = family(dn.Text(), 4.0, width=width)
        _, noise, same, _ = m.moments
        assert 20_000 * 0.05 * same / m.cohorts < 0.101 * noise


def test_epsilon_may_be_as_small_as_anywhere():
    for family in OPEN:
        assert family(10, 2.0**-20).guarantee.ratio > 1


def test_seed_and_others_may_be_left_to_the_mechanism():
    assert dn.CMS(10, 1.0, seed=None) == dn.CMS(10, 1.0)
    assert dn.ORAPPOR(10, 1.0, permuted=None) == dn.ORAPPOR(10, 1.0)
    assert dn.RAPPOR(10, 1.0, seed=None) == dn.RAPPOR(10, 1.0)


def test_collections_of_text_combine_and_merge():
    rng = np.random.default_rng(11)
    values, truth = people(rng, 40_000)
    answers = [WORDS[v] for v in values]
    m = dn.ORR(dn.Text(), 2.0, cohorts=128, width=8)
    other = dn.CMS(dn.Text(), 2.0, cohorts=128, width=32)
    halves = [
        m.tally(m.privatize(part, rng)) for part in (answers[:10_000], answers[10_000:20_000])
    ]
    merged = halves[0].merge(halves[1])
    again = dn.Tally.from_bytes(merged.to_bytes())
    assert again == merged
    both = dn.combine([again, other.tally(other.privatize(answers[20_000:], rng))],
                      "unbiased", candidates=WORDS[:60])  # fmt: skip
    assert both.n == 40_000
    alone = merged.estimate("unbiased", candidates=WORDS[:60])
    assert both.standard_errors[5] < alone.standard_errors[5]
    assert both.frequencies[0] == pytest.approx(truth[0], abs=6 * both.standard_errors[0])


def refusal(name, action, *given, **named):
    with pytest.raises(InvalidArgument) as found:
        action(*given, **named)
    assert found.value.name == name, found.value


def test_what_is_wrong_is_named():
    m = dn.ORR(dn.Text(), 1.0, cohorts=16, width=4)
    tally = m.tally(m.privatize(["a", "b"] * 20, np.random.default_rng(1)))
    for family in (dn.GRR, dn.OUE, dn.OLH, dn.HR, dn.SS, dn.SHE):
        refusal("domain", family, dn.Text(), 1.0)
    refusal("candidates", tally.estimate)
    refusal("candidates", tally.estimate, candidates=[])
    refusal("candidates", tally.estimate, candidates="word")
    refusal("candidates", tally.estimate, candidates=["a", "a"])
    refusal("candidates", tally.estimate, candidates=["a", OUTSIDE])
    refusal("candidates[1]", tally.estimate, candidates=["a", 7])
    refusal("candidates", dn.GRR(3, 1.0).tally().estimate, candidates=["a"])
    refusal("values[1]", m.privatize, ["a", 3])
    refusal("values[0]", m.privatize, ["\ud800"])
    refusal("values", m.privatize, "abc")
    refusal("domain", m.variance, 10)
    refusal("permuted", dn.ORR, dn.Text(), 1.0, permuted=1)
    refusal("permuted", dn.ORAPPOR, 9, 1.0, permuted=1, hashes=2)
    refusal("cohorts", dn.CMS, 9, 1.0, cohorts=0)
    refusal("width", dn.CMS, 9, 1.0, width=1)
    refusal("hashes", dn.RAPPOR, 9, 1.0, hashes=17)
    refusal("seed", dn.HCMS, 9, 1.0, seed=-1)
    refusal("epsilon_inf", dn.RAPPOR, 9, 1.0, epsilon_inf=0.5)
    refusal("n", dn.ORR.suggest, 1.0, 0)
    refusal("second_moment", dn.ORR.suggest, 1.0, 10, 0)
    refusal("size", dn.ORR.suggest, 1.0, 10, 0.1, 1)
    bloom = dn.RAPPOR(9, 1.0, hashes=2)
    refusal("method", bloom.tally(bloom.privatize([1])).estimate, "ibu")
    asked = tally.among(["a", "b"])
    for kind in ("bootstrap", "posterior", "information", "exact"):
        refusal("errors", asked.estimate, errors=kind)
    refusal("domain", asked.mechanism.privatize, ["a"])
    refusal("domain", asked.mechanism.simulate, [1, 2, 3], np.random.default_rng(1))
    refusal("value", asked.mechanism.report, 2, ByteCoins(bytes(64)))


@pytest.mark.parametrize("family", OPEN)
def test_padding_and_indices_out_of_range_are_refused(family):
    m = family(9, 1.0, cohorts=3, width=5)
    reports = m.privatize([1] * 40, np.random.default_rng(2))
    for field in ("cohort", "report"):
        data = reports.data.copy()
        data[field][7] = 255
        refusal("reports", m.tally, dn.Reports(m, data))
