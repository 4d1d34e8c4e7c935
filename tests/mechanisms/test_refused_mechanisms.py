"""What is about frequencies refuses mechanisms that have none, by name; what is not takes them."""

import numpy as np
import pytest

import deniable as dn
from deniable.audit.forging.attacks import ATTACKS
from deniable.audit.forging.defences import recovered, robust_intervals, without_suspects
from deniable.audit.forging.detection import detect
from deniable.audit.forging.suite import manipulation_report
from deniable.audit.inference.histories import answer_loglikelihoods
from deniable.audit.inference.risk import posterior
from deniable.audit.shuffling.shuffled import CONDITIONS
from deniable.cli.budgets import lasting_of
from deniable.core.registry import find
from deniable.device.memo import MemoryMemo
from deniable.errors import InvalidArgument
from deniable.mechanisms.frequency import find_oracle, frequency_oracles

OTHERS = sorted(set(dn.mechanisms()) - set(frequency_oracles()))


def member(name):
    family = find(name)
    return family.example(next(family.small_domains()), 1.0)


def answers(m, n=20):
    sample = m.domain.sample()
    return [m.domain.answer(sample[i % len(sample)]) for i in range(n)]


def rounds(m):
    found = dn.Rounds(m)
    for label in (1, 2):
        found.add(label, m.privatize(answers(m), np.random.default_rng(label)))
    return found


def coins():
    return np.random.default_rng(1)


ABOUT_FREQUENCIES = {
    "inference_risk": lambda m, reports: dn.inference_risk(m),
    "posterior": lambda m, reports: posterior(reports),
    "influence": lambda m, reports: dn.influence(m, 10, 1),
    "manipulation_report": lambda m, reports: manipulation_report(m, 9, 1, [0], rng=coins()),
    "detect": lambda m, reports: detect(reports),
    "robust_intervals": lambda m, reports: robust_intervals(m.tally(reports), 1),
    "recovered": lambda m, reports: recovered(m.tally(reports), 1),
    "without_suspects": lambda m, reports: without_suspects(reports),
    "Rounds.estimate": lambda m, reports: rounds(m).estimate(),
    "Rounds.pooled": lambda m, reports: rounds(m).pooled(),
    "Rounds.changes": lambda m, reports: rounds(m).changes(),
    "find_oracle": lambda m, reports: find_oracle(m.name),
    "Panel": lambda m, reports: dn.Panel(m, 5),
    "MemoryMemo": lambda m, reports: MemoryMemo(m, "any"),
    "answer_loglikelihoods": lambda m, reports: answer_loglikelihoods([reports]),
    "lasting_of": lambda m, reports: lasting_of(m.name, 4, 2.0, None),
    **{
        name: lambda m, reports, attack=attack: attack(m, 5, [0], coins())
        for name, attack in ATTACKS.items()
    },
}


def test_there_are_others():
    assert {"drr", "joint"} <= set(OTHERS)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("call", ABOUT_FREQUENCIES)
def test_what_has_no_frequencies_is_refused_by_name(name, call):
    m = member(name)
    reports = m.privatize(answers(m), coins())
    with pytest.raises(InvalidArgument, match="'mechanism' must be") as refused:
        ABOUT_FREQUENCIES[call](m, reports)
    assert refused.value.name == "mechanism"


@pytest.mark.parametrize("name", OTHERS)
def test_what_needs_only_the_channel_takes_every_mechanism(name):
    m = member(name)
    assert dn.verify(m).ok
    found = dn.shuffled(m, honest=1_000, delta=1e-6, conditions=CONDITIONS)
    assert found.analysis == "any mechanism"
    assert found.local_epsilon == m.once.epsilon
