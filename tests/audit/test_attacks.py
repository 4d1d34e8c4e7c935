"""The most powerful attacks: no more than epsilon_inf with a memo, nearly everything without."""

import math

import numpy as np
import pytest
from scipy.stats import binom

import deniable as dn
from deniable.audit.inference.histories import answer_loglikelihoods, link_loglikelihoods
from deniable.errors import InvalidArgument, MismatchError
from deniable.privacy import exact_channel
from deniable.rounds.panel import Panel

FALSE_ALARM = 1e-7
CHAINS = [dn.LGRR, dn.LSUE, dn.LOUE, dn.LSOUE, dn.LOSUE, dn.LBLH, dn.LOLH]


@pytest.mark.slow
@pytest.mark.parametrize("family", [*CHAINS, dn.DBitFlipPM])
def test_likelihoods_are_those_of_the_enumerated_channel(family):
    """Differences of log-likelihoods between answers, for every pair of reports of one device."""
    m = family(3, 1.3, **family.small_design)

    def twice(value, coins):
        begun = m.begin(coins)
        kept = m.memoise(begun, m.key(begun, value), coins)
        return m.instant(begun, kept, coins), m.instant(begun, kept, coins)

    channel = exact_channel(twice, range(3))
    rounds = [
        dn.Reports(m, m.pack([pair[number] for pair in channel.outputs])) for number in range(2)
    ]
    found = answer_loglikelihoods(rounds)
    exact = np.log(np.array(channel.matrix, dtype=np.float64)).T
    np.testing.assert_allclose(found - found[:, :1], exact - exact[:, :1], atol=1e-9)


def attacked(m, reports, n, rng, memo=True):
    """How often the likelihood-ratio attack tells apart two equally likely answers.

    Without a memo reports are independent, and their log-likelihoods add up.
    """
    truth = rng.integers(0, 2, n)
    panel = Panel(m, n, rng)
    rounds = [panel.privatize(truth) if memo else m.privatize(truth, rng) for _ in range(reports)]
    parts = [rounds] if memo else [[part] for part in rounds]
    scores = sum(answer_loglikelihoods(part) for part in parts)
    guess = np.where(
        scores[:, 0] == scores[:, 1], rng.integers(0, 2, n), scores[:, 1] > scores[:, 0]
    )
    return int((guess == truth).sum())


@pytest.mark.slow
@pytest.mark.parametrize("family", [dn.LGRR, dn.LSUE, dn.LOSUE, dn.LOUE, dn.LSOUE])
def test_averaging_many_reports_reveals_no_more_than_epsilon_inf(family):
    """Null hypothesis: success is at most e^eps / (1 + e^eps), after 300 reports a person.

    The control has no memo: both steps are drawn anew, and the attack nearly always wins.
    """
    m, n, rng = family(8, 1.0), 20_000, np.random.default_rng(1)
    most = math.exp(1.0) / (1 + math.exp(1.0))
    wins = attacked(m, 300, n, rng)
    assert binom.sf(wins - 1, n, most) > FALSE_ALARM
    control = attacked(m, 300, 2_000, rng, memo=False)
    assert binom.cdf(control, 2_000, 0.99) > FALSE_ALARM
    assert binom.sf(control - 1, 2_000, most) < FALSE_ALARM


@pytest.mark.slow
def test_the_attack_on_lgrr_reaches_its_bound():
    """Two answers: the kept one is right with exactly e^eps / (1 + e^eps); so is the attacker."""
    m, n, rng = dn.LGRR(2, 1.0, 0.8), 40_000, np.random.default_rng(2)
    wins = attacked(m, 200, n, rng)
    p = math.exp(1.0) / (1 + math.exp(1.0))
    assert min(binom.cdf(wins, n, p), binom.sf(wins - 1, n, p)) > FALSE_ALARM


def test_one_report_reveals_no_more_than_epsilon_1():
    """Null hypothesis: success is at most e^eps_1 / (1 + e^eps_1) after one report."""
    for family in CHAINS:
        m, n = family(8, 2.0, 0.5), 20_000
        wins = attacked(m, 1, n, np.random.default_rng(3))
        assert binom.sf(wins - 1, n, math.exp(0.5) / (1 + math.exp(0.5))) > FALSE_ALARM


def linked(m, reports, n, rng):
    """How often the same respondent scores higher than another one: the area under the curve."""
    f = np.full(m.domain.size, 1 / m.domain.size)
    panel, values = Panel(m, n, rng), rng.integers(0, m.domain.size, n)
    earlier = [panel.privatize(values) for _ in range(reports)]
    later = [panel.privatize(values) for _ in range(reports)]
    same = link_loglikelihoods(earlier, later, f)
    others = [dn.Reports(m, np.roll(part.data, 1, axis=0)) for part in later]
    other = link_loglikelihoods(earlier, others, f)
    return float(np.mean((same > other) + 0.5 * (same == other)))


@pytest.mark.slow
def test_memoised_reports_can_be_followed():
    """Rows of bits are followed ever better; hash functions and asked bits give a device away.

    Standard errors are below 0.008, and the bounds ten of them away from what was measured.
    """
    rng = np.random.default_rng(4)
    few, many = (linked(dn.LOSUE(16, 2.0), reports, 4_000, rng) for reports in (1, 40))
    assert 0.6 < few < 0.85
    assert many > 0.95
    assert linked(dn.LOLH(100, 2.0), 1, 2_000, rng) == 1.0
    assert linked(dn.DBitFlipPM(100, 2.0, w=20), 1, 2_000, rng) == 1.0


def test_what_cannot_be_attacked_together_is_refused():
    m, other = dn.LGRR(4, 2.0), dn.LGRR(5, 2.0)
    reports = m.privatize([0, 1, 2])
    with pytest.raises(InvalidArgument, match="rounds"):
        answer_loglikelihoods([])
    with pytest.raises(InvalidArgument, match="3 reports in every round"):
        answer_loglikelihoods([reports, reports[:2]])
    with pytest.raises(MismatchError):
        link_loglikelihoods([reports], [other.privatize([0, 1, 2])], np.full(4, 0.25))
    with pytest.raises(InvalidArgument, match="longitudinal"):
        answer_loglikelihoods([dn.GRR(4, 1.0).privatize([0])])
