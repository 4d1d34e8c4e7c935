"""Questions that may be skipped: estimates are about those who answered."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy.stats import beta, binom, chi2

import deniable as dn
from deniable.core.domain import SKIPPED
from deniable.core.tally import Tally
from deniable.errors import InvalidArgument, TooFew
from deniable.estimation import METHODS, combine
from deniable.estimation.frequencies.methods import methods_for
from deniable.privacy import exact_channel, exp_below
from deniable.randomness import draw_key
from deniable.rounds.rounds import Rounds

#: A test fails by chance with at most this probability.
CHANCE = 1e-7
ANSWERS = ["never", "rarely", "weekly", "daily", "more"]
#: Of those who answer.
SHARES = np.array([0.4, 0.3, 0.2, 0.09, 0.01])


def asked(name, epsilon, **design):
    return dn.mechanism(name, dn.Choice(ANSWERS, optional=True), epsilon, **design)


def people(n, skipped, shares=SHARES):
    """How many of n give each answer, and how many none."""
    found = np.rint(np.append(shares * (1 - skipped), skipped) * n).astype(int)
    found[0] += n - found.sum()
    return found


def collected(m, n=20_000, skipped=0.2, seed=1):
    counts = m.simulate(people(n, skipped), np.random.default_rng(seed))
    return Tally.of_counts(m, counts, n)


def test_rows_are_the_answers_and_skips_stand_beside_them():
    tally = collected(asked("grr", 2.0))
    x = tally.mechanism.unbiased(tally.counts, tally.n)
    e = tally.estimate("unbiased")
    assert e.labels == tuple(ANSWERS)
    assert np.allclose(e.frequencies, x[:-1] / (1 - x[-1]), rtol=1e-12)
    assert e.skipped.share == pytest.approx(x[-1])
    low, high = e.skipped.interval
    assert low < 0.2 < high
    assert high - low == pytest.approx(2 * 1.96 * e.skipped.standard_error, rel=0.01)
    assert e.about["skipped"] == e.skipped.share
    assert e.interval_words == "95 % score intervals about respondents who answered"
    assert (
        e.skipped_words
        == "20.6 % ± 0.89 points skipped this question; figures are about those who answered."
    )
    required = dn.GRR(ANSWERS, 2.0)
    plain = Tally.of_counts(
        required, required.simulate(people(99, 0)[:-1], np.random.default_rng(1)), 99
    )
    assert plain.estimate().skipped is None
    assert "skipped" not in plain.estimate().about
    assert not plain.estimate().skipped_words


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("skipped", [0.0, 0.2])
def test_intervals_cover_the_shares_among_those_who_answered(epsilon, skipped):
    """Null hypothesis: each covers with a probability of 0.93 to 0.97."""
    runs, n, m = 400, 2_000, asked("grr", epsilon)
    histogram, rng = people(n, skipped), np.random.default_rng(7)
    truth = {"respondents": histogram[:-1] / histogram[:-1].sum(), "everyone": SHARES}
    for population, shares in truth.items():
        hits = np.zeros(len(ANSWERS) + 1)
        for _ in range(runs):
            drawn = histogram
            if population == "everyone":
                drawn = rng.multinomial(n, np.append(SHARES * (1 - skipped), skipped))
            e = Tally.of_counts(m, m.simulate(drawn, rng), n).estimate(
                "unbiased", population=population
            )
            low, high = np.vstack([e.intervals, e.skipped.interval]).T
            true = np.append(shares, skipped)
            hits += (low <= true) & (true <= high)
        few, many = binom.cdf(hits, runs, 0.93), binom.sf(hits - 1, runs, 0.97)
        assert min(few.min(), many.min()) > CHANCE, (population, hits / runs)


def test_every_decoder_is_conditioned_on_answering():
    for name in ("grr", "oue"):
        tally = collected(asked(name, 1.0), n=2_000)
        for method in (
            one for one in methods_for(tally.mechanism) if one != "likelihood" or name == "grr"
        ):
            e = tally.estimate(method)
            assert e.labels == tuple(ANSWERS)
            assert e.errors == "score"
            assert np.all(
                (e.intervals[:, 0] <= e.frequencies) & (e.frequencies <= e.intervals[:, 1])
            )
            if METHODS[method].feasible:
                assert e.frequencies.min() >= 0
                assert e.frequencies.sum() == pytest.approx(1)
            low, high = e.skipped.interval
            assert low <= e.skipped.share <= high


def test_several_mechanisms_are_combined():
    parts = [collected(asked("grr", 3.0)), collected(asked("ss", 1.0), seed=2)]
    both = combine(parts, "unbiased", population="everyone")
    one = parts[0].estimate("unbiased", population="everyone")
    assert both.n == 40_000
    assert np.all(both.standard_errors[:4] < one.standard_errors[:4])
    assert np.all(np.abs(both.frequencies - SHARES) < 5 * both.standard_errors)


def test_candidates_are_looked_for_among_those_who_answered():
    m = dn.ORR(dn.Text(optional=True), 3.0, cohorts=256, width=8)
    texts = ["tea"] * 6_000 + ["coffee"] * 3_000 + ["water"] * 1_000 + [None] * 5_000
    tally = m.tally(m.privatize(texts, np.random.default_rng(4)))
    for method in ("unbiased", "bayes", "least-squares"):
        e = tally.estimate(method, candidates=["tea", "coffee"])
        assert e.labels == ("tea", "coffee", "(anything else)")
        assert np.all(np.abs(e.frequencies - [0.6, 0.3, 0.1]) < 5 * e.standard_errors)
        assert abs(e.skipped.share - 1 / 3) < 5 * e.skipped.standard_error
    among = tally.among(["tea"])
    assert Tally.from_bytes(among.to_bytes()) == among
    assert among.mechanism.domain.labels == ("tea", SKIPPED, "(anything else)")
    with pytest.raises(InvalidArgument, match="another text: this one stands for a skip"):
        tally.estimate(candidates=["tea", SKIPPED])


def test_too_few_who_answered_are_refused():
    tally = collected(asked("grr", 1.0), n=2_000, skipped=0.97)
    with pytest.raises(TooFew, match="too few people who answered to tell: they are"):
        tally.estimate()
    assert collected(asked("grr", 1.0), n=2_000, skipped=0.5).estimate().n == 2_000


#: What asks about everybody, by name.
REFUSED = {
    "exact": lambda t: t.estimate(errors="exact"),
    "bootstrap": lambda t: t.estimate(errors="bootstrap"),
    "posterior": lambda t: t.estimate("bayes", errors="posterior"),
    "information": lambda t: t.estimate("likelihood", errors="information"),
    "regression": lambda t: t.estimate(errors="regression"),
    "the same respondents": lambda t: rounds(t).pooled(),
    "changes": lambda t: rounds(t).changes(),
}  # fmt: skip
#: What works, and gives estimates that know about skips.
WORKING = {
    "one tally": lambda t: [t.estimate()],
    "combine": lambda t: [combine([t, collected(asked("ss", 1.0), n=900)])],
    "simultaneous": lambda t: [t.estimate(simultaneous=True)],
    "everyone": lambda t: [t.estimate(population="everyone")],
    "series": lambda t: rounds(t).estimate().estimates,
    "fresh respondents": lambda t: [rounds(t).pooled(respondents="fresh")],
    "part": lambda t: [t.estimate().part([0, 2])],
}


def rounds(tally):
    return Rounds(tally.mechanism).add(1, tally).add(2, collected(tally.mechanism, seed=9))


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_about_those_who_answered_is_refused_by_name(name):
    with pytest.raises(InvalidArgument, match="skip"):
        REFUSED[name](collected(asked("grr", 1.0), n=900))


@pytest.mark.parametrize("name", WORKING)
def test_what_is_about_those_who_answered(name):
    for e in WORKING[name](collected(asked("grr", 1.0), n=900)):
        assert e.skipped is not None
        assert SKIPPED not in e.labels
        assert e.skipped_words in " ".join(e.chart()["description"].split())
        assert "who answered" in e.to_json() or "skipped" in e.to_json()
        assert "(no answer)" not in e.to_csv()
        assert e.table() is not None


# ---- numbers

#: Beta, from 0 to 1, with mean 0.35 and standard deviation 0.2.
NUMBERS = beta.ppf((np.arange(4_000) + 0.5) / 4_000, 1.640625, 3.046875)


def numbers(epsilon, **design):
    return dn.DRR(dn.Number(0, 1, optional=True), epsilon, **design)


@pytest.mark.parametrize(("epsilon", "ell"), [(0.5, 1), (1.0, 2), (2.0, 2), (4.0, 3)])
def test_the_cell_of_a_skip_costs_no_more_than_it_promises_and_biases_nothing(epsilon, ell):
    """The exact channel: the likelihood ratio, and the means of the scores of S and N."""
    m = numbers(epsilon, ell=ell, fine=3)
    values = [0, 1, 1 << 30, 3 << 29, 1 << 32, m.domain.skip]
    channel = exact_channel(m.report, values)
    laws = np.array(channel.matrix, dtype=object)
    ratio = max(max(row) / min(row) for row in laws.T)
    assert exp_below(epsilon) * (1 - Fraction(1, 10**8)) <= ratio <= exp_below(epsilon)
    cells = [report >> m.shown for report in channel.outputs]
    for value, law in zip(values, laws, strict=True):
        skipped = value == m.domain.skip
        mean = sum(m.exact_scores[c] * w for c, w in zip(cells, law, strict=True))
        share = sum(m.exact_answers[c] * w for c, w in zip(cells, law, strict=True))
        assert mean == (0 if skipped else m.told(value))
        assert share == (not skipped)


def simulated_means(m, n, skipped, runs, seed):
    """Estimates of samples of everyone, from counts with the exact law of reports."""
    strata, share = 1 << m.shown, float(m.share)
    offsets = (np.arange(strata) + 0.5) / strata
    own = np.floor(m.ell * NUMBERS[:, None] + offsets).astype(int)
    kept = np.stack([(own == cell).mean(axis=0) for cell in range(m.ell + 1)])
    law = np.vstack([(1 - skipped) * kept, np.full(strata, skipped)])
    law = (share * law + (1 - share) / m.outcomes).ravel() / strata
    for counts in np.random.default_rng(seed).multinomial(n, law / law.sum(), runs):
        yield Tally.of_counts(m, counts, n).estimate(population="everyone")


@pytest.mark.slow
def test_a_mean_among_those_who_answered_errs_as_the_specification_says():
    """Its sixth line: epsilon 1, ell 2, a fifth skips, n = 10,000, 1000 runs."""
    runs, n = 1_000, 10_000
    m, truth, hits, square = numbers(1.0), NUMBERS.mean(), 0, 0.0
    assert m.ell == 2
    for e in simulated_means(m, n, 0.2, runs, seed=6):
        low, high = e.mean_interval
        hits += low <= truth <= high
        square += (2 * (e.mean - truth)) ** 2
        assert abs(e.skipped.share - 0.2) < 6 * e.skipped.standard_error
    assert 0.77 < n * square / runs / 7.744 < 1.28
    assert 0.87 <= hits / runs <= 0.997
    planned = 4 * n * m.variance_among(NUMBERS, n, 0.2, sampled=True)
    assert planned == pytest.approx(7.744, rel=0.02)


@pytest.mark.slow
def test_intervals_cover_the_mean_of_the_respondents_who_answered():
    """Null hypothesis: each covers with a probability of 0.925 to 0.985; floors make some wide."""
    runs, n = 160, 1_000
    for epsilon, skipped in ((0.5, 0.0), (1.0, 0.2), (4.0, 0.4)):
        m = numbers(epsilon)
        for x in (NUMBERS[::4], np.where(np.arange(n) < 0.92 * n, 0.0, 1.0)):
            answers = [None if i % 10 < 10 * skipped else one for i, one in enumerate(x)]
            truth = np.mean([one for one in answers if one is not None])
            coded = np.tile(m.domain.encode(answers), runs)
            data = m.randomise(coded, draw_key(np.random.default_rng(8)), 1)
            hits = 0
            for start in range(0, runs * n, n):
                e = Tally.of_counts(m, m.count(data[start : start + n]), n).estimate()
                low, high = e.mean_interval
                hits += low <= truth <= high
            words = (epsilon, skipped, hits / runs)
            assert binom.cdf(hits, runs, 0.925) > CHANCE, words
            assert binom.sf(hits - 1, runs, 0.985) > CHANCE, words


def test_means_have_a_skipped_share_and_can_be_combined():
    answers = [None if i % 4 == 0 else 20 + i % 30 for i in range(8_000)]
    domain, rng = dn.Number(0, 100, optional=True), np.random.default_rng(2)
    parts = [m.tally(m.privatize(answers, rng)) for m in (dn.DRR(domain, 1.0), dn.DRR(domain, 3.0))]
    one, both = parts[0].estimate(), combine(parts)
    for e in (one, both, parts[1].estimate(population="everyone", simultaneous=True)):
        assert abs(e.mean - np.mean([x for x in answers if x is not None])) < 5 * e.standard_error
        assert abs(e.skipped.share - 0.25) < 5 * e.skipped.standard_error
        assert e.skipped_words in e.chart()["description"]
        assert e.about["skipped"] == e.skipped.share
    assert both.standard_error < one.standard_error
    assert both.skipped.standard_error < one.skipped.standard_error
    assert one.interval_words == "95 % ratio intervals about respondents who answered"


def test_means_of_too_few_who_answered_are_refused():
    for n in (1, 2, 20, 200):
        m = numbers(1.0)
        with pytest.raises(TooFew, match="people who answered"):
            m.tally(m.privatize([None] * n, np.random.default_rng(n))).estimate()
    m = numbers(4.0)
    assert m.tally(m.privatize([0.5] * 50, np.random.default_rng(1))).estimate().skipped.share < 0.3


# ---- distributions


@pytest.mark.slow
def test_the_distribution_is_that_of_those_who_answered():
    """Null hypothesis: each pointwise interval covers with a probability of 0.92 at least."""
    runs, n, skipped = 60, 4_000, 0.25
    m = dn.HH(dn.Number(0, 1, optional=True), 2.0, bins=16)
    answers = [None if i % 4 == 3 else one for i, one in enumerate(NUMBERS)]
    answered = np.array([one for one in answers if one is not None])
    truth = np.array([(answered < edge).mean() for edge in np.arange(1, 16) / 16])
    coded, rng = m.domain.encode(answers), np.random.default_rng(12)
    hits, skips, squares = np.zeros(16), 0, 0.0
    for _ in range(runs):
        counts = m.count(m.randomise(coded, draw_key(rng), 1))
        e = Tally.of_counts(m, counts, n).estimate("unbiased")
        low, high = np.array(e.distribution.band)[:, 1:-1]
        means = e.mean_interval
        hits += np.append((low <= truth) & (truth <= high), means[0] <= answered.mean() <= means[1])
        skips += e.skipped.interval[0] <= skipped <= e.skipped.interval[1]
        squares += (e.mean - answered.mean()) ** 2
    assert binom.cdf(np.append(hits, skips), runs, 0.92).min() > CHANCE, hits / runs
    planned = m.variance_among(NUMBERS, n, skipped)
    assert chi2.cdf(squares / planned, runs) > CHANCE
    assert chi2.sf(squares / planned / 1.1, runs) > CHANCE  # numbers are rounded to bins


def test_quantiles_and_densities_are_those_of_people_who_answered():
    m = dn.HH(dn.Number(0, 100, optional=True), 4.0, bins=16)
    people = [None if i % 3 == 0 else 20 + i % 40 for i in range(6_000)]
    e = m.tally(m.privatize(people, np.random.default_rng(3))).estimate()
    answered = [one for one in people if one is not None]
    assert abs(e.skipped.share - 1 / 3) < 5 * e.skipped.standard_error
    low, high = e.median.interval
    assert low <= np.median(answered) <= high
    assert e.density.shares.sum() == pytest.approx(1)
    share = e.range(25, 50)
    assert share.interval[0] <= np.mean([25 <= x < 50 for x in answered]) <= share.interval[1]
    assert e.interval_words == "95 % ratio intervals about respondents who answered"
    nobody = m.tally(m.privatize([None] * 3_000, np.random.default_rng(3)))
    with pytest.raises(TooFew, match="people who answered"):
        nobody.estimate()
    width = [m.task.half_width(m, 10_000, skipped=share) for share in (0.0, 0.2)]
    required = dn.HH(dn.Number(0, 100), 4.0, bins=16)
    assert required.task.half_width(required, 10_000) < width[0] < width[1]


# ---- the price

few, many, number = partial(dn.Choice, 5), partial(dn.Choice, 20), partial(dn.Number, 0, 1)


@pytest.mark.parametrize(
    ("asked", "mechanism", "factors"),
    [
        (dn.YesNo, "grr", {0.5: (1.43, 2.16), 1: (1.35, 1.98), 2: (1.26, 1.80), 4: (1.22, 1.71)}),
        (few, "ss", {0.5: (1.07, 1.66)}),
        (few, "grr", {2: (1.13, 1.63), 4: (1.10, 1.55)}),
        (many, "ss", {0.5: (1.00, 1.56), 1: (1.00, 1.56), 2: (1.01, 1.56)}),
        (many, "grr", {4: (1.03, 1.47)}),
        (number, "drr", {0.5: (1.41, 2.13), 1: (1.25, 1.90), 2: (1.15, 1.70)}),
    ],
)  # fmt: skip
def test_the_option_to_skip_has_its_price(asked, mechanism, factors):
    """n Var over that without the option, if nobody skips and if a fifth does: the table."""
    n, domain = 10**6, asked(optional=True)
    guess = {}
    if domain.is_listed:
        guess = {"share": 0.3 if domain.size == 3 else 1 / (domain.size - 1)}
    for epsilon, expected in factors.items():
        required, optional = (
            dn.mechanism(mechanism, asked(optional=option), epsilon) for option in (False, True)
        )
        without = required.task.error(required, n, skipped=0.0, **guess)
        for skipped, factor in zip((0.0, 0.2), expected, strict=True):
            found = optional.task.error(optional, n, skipped=skipped, **guess) / without
            assert found**2 == pytest.approx(factor, rel=0.025)
