"""Which tool takes which mechanism: what a tool cannot judge it refuses by name.

Tools look at mechanisms or reports from outside: audits, attacks, devices, series and tests. What
works for mechanisms of frequencies is tested elsewhere, tool by tool.
"""

import numpy as np
import pytest

import deniable as dn
from deniable.audit.black_box.empirical import audit_mechanism
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


def hidden(m):
    return dn.shuffled(m, honest=1_000, delta=1e-6, conditions=CONDITIONS)


def coins():
    return np.random.default_rng(1)


TOOLS = {
    "verify": lambda m, reports: dn.verify(m).ok,
    "audit_mechanism": lambda m, reports: audit_mechanism(m, n=200, rng=coins()),
    "shuffled": lambda m, reports: hidden(m).local_epsilon == m.once.epsilon,
    "inference_risk": lambda m, reports: dn.inference_risk(m).sentences(),
    "posterior": lambda m, reports: posterior(reports),
    "answer_loglikelihoods": lambda m, reports: answer_loglikelihoods([reports]),
    "influence": lambda m, reports: dn.influence(m, 10, 1),
    "manipulation_report": lambda m, reports: manipulation_report(m, 9, 1, [0], rng=coins()),
    "detect": lambda m, reports: detect(reports),
    "robust_intervals": lambda m, reports: robust_intervals(m.tally(reports), 1),
    "recovered": lambda m, reports: recovered(m.tally(reports), 1),
    "without_suspects": lambda m, reports: without_suspects(reports),
    **{
        name: lambda m, reports, attack=attack: attack(m, 5, [0], coins())
        for name, attack in ATTACKS.items()
    },
    "Rounds.estimate": lambda m, reports: rounds(m).estimate(),
    "Rounds.pooled": lambda m, reports: rounds(m).pooled(),
    "Rounds.changes": lambda m, reports: rounds(m).changes(),
    "find_oracle": lambda m, reports: find_oracle(m.name),
    "Panel": lambda m, reports: dn.Panel(m, 5),
    "MemoryMemo": lambda m, reports: MemoryMemo(m, "any"),
    "lasting_of": lambda m, reports: lasting_of(m.name, 4, 2.0, None),
    "mean_test": lambda m, reports: dn.mean_test(reports, 0.5),
    "sample_size": lambda m, reports: dn.sample_size(m, 0.1),
}
#: What takes every mechanism, by its channel alone.
OF_CHANNELS = {"verify", "audit_mechanism", "shuffled"}
OF_SETS = OF_CHANNELS | {"inference_risk", "Rounds.estimate"}
OF_NUMBERS = OF_SETS | {"mean_test", "sample_size"}
#: The tools that take a mechanism whose first task is this; "" has none. New tasks say theirs here.
TAKEN = {"mean": OF_NUMBERS, "distribution": OF_NUMBERS, "shares": OF_SETS, "": OF_CHANNELS}
OF_MEMORY = {"Panel", "MemoryMemo"}


def taken(family):
    """The tools that take a mechanism without frequencies."""
    first = family.tasks[0] if family.tasks else ""
    return TAKEN[first] | (OF_MEMORY if family.remembers else set())


def test_there_are_others():
    assert {"drr", "joint"} <= set(OTHERS)


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_a_tool_takes_a_mechanism_or_refuses_it_by_name(name):
    m = member(name)
    reports = m.privatize(answers(m, 50), coins())
    for tool, call in TOOLS.items():
        if tool in taken(type(m)):
            assert call(m, reports), tool
            continue
        with pytest.raises(InvalidArgument, match="'mechanism' must be") as refused:
            call(m, reports)
        assert refused.value.name == "mechanism", tool


@pytest.mark.parametrize("name", sorted(frequency_oracles()))
def test_tools_of_means_refuse_frequencies_by_name(name):
    m = member(name)
    for tool in ("mean_test", "sample_size"):
        with pytest.raises(InvalidArgument, match="'mechanism' must be"):
            TOOLS[tool](m, m.privatize(answers(m, 2), coins()))
