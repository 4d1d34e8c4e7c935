"""Questions that may be skipped: estimates are about those who answered."""

import numpy as np
import pytest
from scipy.stats import binom

import deniable as dn
from deniable.core.domain import SKIPPED
from deniable.core.tally import Tally
from deniable.errors import InvalidArgument, TooFew
from deniable.estimation import METHODS, combine
from deniable.estimation.frequencies.methods import methods_for
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
    runs, n, m = 600, 2_000, asked("grr", epsilon)
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
