"""A panel has the law of devices that remember."""

import numpy as np
import pytest
from scipy.stats import chi2

import deniable as dn
from deniable.conformance import FALSE_ALARM
from deniable.errors import InvalidArgument
from deniable.mechanisms.two_step.memoised import MemoisedSupports
from deniable.privacy import exact_channel
from deniable.rounds.panel import Panel

FAMILIES = [f for f in dn.mechanisms().values() if issubclass(f, MemoisedSupports)]


def remembered(m, history):
    """The reports of one device that gives these answers in turn."""

    def reports(value, coins):
        begun, memo, out = m.begin(coins), {}, []
        for answer in history(value):
            key = m.key(begun, answer)
            if key not in memo:
                memo[key] = m.memoise(begun, key, coins)
            out.append(m.instant(begun, memo[key], coins))
        return tuple(out)

    return reports


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_two_rounds_follow_the_exact_law_of_a_device(family):
    """Chi-square over pairs of reports, from the enumerated law; p > 1e-9.

    Half of the people keep their answer, half change it: both laws are tested.
    """
    small = {**family.small_design, "width": 2} if family is dn.RAPPOR else family.small_design
    m, n = family(2, 1.5, **small), 40_000
    panel = Panel(m, n, np.random.default_rng(1))
    stays = np.arange(n) % 2 == 0
    first, second = (
        list(panel.privatize(values)) for values in (np.zeros(n, int), np.where(stays, 0, 1))
    )
    pairs = np.empty(n, dtype=object)
    pairs[:] = list(zip(first, second, strict=True))
    for group, history in ((stays, lambda v: (v, v)), (~stays, lambda v: (v, 1 - v))):
        channel = exact_channel(remembered(m, history), [0])
        places = {output: i for i, output in enumerate(channel.outputs)}
        found = np.bincount([places[pair] for pair in pairs[group]], minlength=len(places))
        expected = np.array(channel.matrix[0], dtype=np.float64) * found.sum()
        statistic = float(((found - expected) ** 2 / expected).sum())
        assert chi2.sf(statistic, len(places) - 1) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_old_answers_come_back(family):
    """A device that returns to an answer pays nothing new, and each key is drawn once."""
    m = family(20, 2.0)
    panel = Panel(m, 500, np.random.default_rng(2))
    answers = [np.full(500, v) for v in (3, 7, 3, 7, 11, 3)]
    for values in answers:
        panel.privatize(values)
    keys = {int(panel.keys_used.max())}
    assert keys <= {1, 2, 3}
    assert panel.keys_used.max() <= m.permanent_guarantee.keys


def test_what_is_kept_stays_the_same():
    """DBitFlipPM reports what it keeps: equal reports whenever the answer is equal."""
    m = dn.DBitFlipPM(20, 2.0, w=5)
    panel = Panel(m, 1000, np.random.default_rng(3))
    rounds = [panel.privatize(np.full(1000, v)).data.tobytes() for v in (3, 7, 3, 9, 7)]
    assert rounds[0] == rounds[2]
    assert rounds[1] == rounds[4]
    assert len(set(rounds)) == 3


def test_some_may_answer_and_others_not():
    m = dn.LGRR(4, 2.0)
    panel = Panel(m, 10, np.random.default_rng(4))
    assert len(panel.privatize([1, 2, 3], who=[0, 5, 9])) == 3
    assert panel.keys_used.tolist() == [1, 0, 0, 0, 0, 1, 0, 0, 0, 1]


def test_a_panel_is_reproducible_only_on_request():
    m = dn.LOSUE(30, 2.0)
    same = [Panel(m, 200, np.random.default_rng(5)).privatize(np.zeros(200, int)) for _ in "ab"]
    assert same[0].data.tobytes() == same[1].data.tobytes()
    fresh = [Panel(m, 200).privatize(np.zeros(200, int)).data.tobytes() for _ in "ab"]
    assert fresh[0] != fresh[1]


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"values": [0, 1]}, "values"),
        ({"values": [0, 1], "who": [0, 0]}, "who"),
        ({"values": [0, 1], "who": [0, 3]}, "who"),
        ({"values": [0, 1], "who": [-1, 0]}, "who"),
        ({"values": [0], "who": [0.5]}, "who"),
        ({"values": [9, 0, 0]}, "value"),
    ],
)
def test_bad_rounds_are_refused(arguments, name):
    panel = Panel(dn.LGRR(4, 2.0), 3, np.random.default_rng(6))
    with pytest.raises(InvalidArgument) as refusal:
        panel.privatize(**arguments)
    assert refusal.value.name.startswith(name)
    assert not panel.keys_used.any()


def test_only_mechanisms_that_remember_have_a_panel():
    with pytest.raises(InvalidArgument, match="of two steps"):
        Panel(dn.GRR(4, 1.0), 3)
    with pytest.raises(InvalidArgument, match="'n'"):
        Panel(dn.LGRR(4, 1.0), 0)
