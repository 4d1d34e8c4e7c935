"""The systems by the names of their papers: what each is in the library, and what is published."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import deniable as dn
from deniable.arrays import Counts, Floats
from deniable.core.drawn import Branch
from deniable.estimation.frequencies.simplex import project
from deniable.estimation.numbers.density import ems, penalised
from deniable.mechanisms import Mechanism
from deniable.mechanisms.numbers import Binned, NumberMechanism
from deniable.mechanisms.numbers.least_squares import plausible

#: Where the survey has a system that it does not have.
SINCE = "not in the survey"
OURS = "ours"


@dataclass(frozen=True)
class System:
    """A mechanism for the mean of a number."""

    section: str
    family: type[NumberMechanism]
    #: n Var of the worst v of -1..1, as printed.
    published: Callable[[float], float] | None = None

    def build(self, epsilon: float) -> NumberMechanism:
        """The member for numbers of 0..1."""
        return self.family(dn.Number(0, 1), epsilon)


def _duchi(epsilon: float) -> float:
    return 1 / math.tanh(epsilon / 2) ** 2


def _piecewise(epsilon: float) -> float:
    s = math.exp(epsilon / 2)
    return 4 * s / (3 * (s - 1) ** 2)


def _hybrid(epsilon: float) -> float:
    s = math.exp(epsilon / 2)
    mixed = (s + 3) / (3 * s * (s - 1)) + _duchi(epsilon) / s
    return mixed if epsilon > 0.61 else _duchi(epsilon)


def _telemetry(epsilon: float) -> float:
    """r^2 e / (e - 1)^2 + v (r - v) for v of 0..r, four times that for r = 1."""
    e = math.exp(epsilon)
    return 4 * (e / (e - 1) ** 2 + 1 / 4)


MEANS = {
    "Laplace": System("4.1", dn.Laplace, lambda epsilon: 8 / epsilon**2),
    "Duchi et al.": System("4.1", dn.Duchi, _duchi),
    "Harmony": System("4.1", dn.Duchi, _duchi),
    "PM": System("4.1", dn.PM, _piecewise),
    "HM": System("4.1", dn.HM, _hybrid),
    "1BitMean": System("4.2", dn.Duchi, _telemetry),
    "SW": System("3.5", dn.SW),
    "PM-SUB": System(SINCE, dn.PMSub),
    "PM-OPT": System(SINCE, dn.Window),
    "DRR": System(OURS, dn.DRR),
}


class Distribution(NamedTuple):
    """A mechanism for the distribution of a number in steps, and how its reports are decoded."""

    section: str
    build: Callable[[dn.Number, float], NumberMechanism]
    decode: Callable[[Any, Counts, int], Floats]


def _levels(domain: dn.Number, epsilon: float, **design: int) -> dn.HH:
    """All levels by OLH, as in the text."""
    m = dn.HH(domain, epsilon)
    oracles = [dn.OLH(branch.mechanism.domain, epsilon, **design) for branch in m.branches]
    pairs = zip(m.branches, oracles, strict=True)
    branches = [Branch(branch.weight, branch.of, oracle) for branch, oracle in pairs]
    return dn.HH(domain, epsilon, branches=branches)


def _flat(domain: dn.Number, epsilon: float) -> dn.HH:
    """One level with all answers, by the oracle with the least variance."""
    return dn.HH(domain, epsilon, fan_out=dn.HH(domain, epsilon).bins)


def _reports_steps(domain: dn.Number, epsilon: float) -> dn.DRR:
    """As many cells as a square wave of this epsilon is wide."""
    window = dn.SW(domain, epsilon)
    return dn.DRR(domain, epsilon, ell=max(1, round(window.steps / window.width)))


def _least_squares(m: Binned, counts: Counts, n: int) -> Floats:
    """Unbiased shares, with the closest cumulative ones that rise from 0 to 1."""
    return plausible(m.solved.shares([level.z for level in m.observed(counts, n)]))


def _projected(m: Binned, counts: Counts, n: int) -> Floats:
    (level,) = m.observed(counts, n)
    return project(level.z)


def _smooth(m: Any, counts: Counts, n: int) -> Floats:
    return penalised(m.observed_bins(counts, n, binning(m.domain)))


def _ems(m: Any, counts: Counts, n: int) -> Floats:
    return ems(m.observed_bins(counts, n, binning(m.domain)))


def binning(domain: dn.Number) -> Any:
    """A bin for each answer."""
    return dn.HH(domain, 1.0).binning


DISTRIBUTIONS = {
    "discretised, projected": Distribution("3.5", _flat, _projected),
    "SW with EMS": Distribution("3.5", dn.SW, _ems),
    "hierarchy of OLH": Distribution("3.4", _levels, _least_squares),
    "HaarHRR": Distribution("3.4", dn.Haar, _least_squares),
    "HH, least squares": Distribution(OURS, dn.HH, _least_squares),
    "HH, penalised likelihood": Distribution(OURS, dn.HH, _smooth),
    "SW, penalised likelihood": Distribution(OURS, dn.SW, _smooth),
    "DRR, penalised likelihood": Distribution(OURS, _reports_steps, _smooth),
}

#: (system, section, what is missing): nothing that we found determines these.
MISSING = (
    ("SEM, CSEM", "3.4", "the size of the subset and the probability of each subset"),
    ("SAFARI", "3.4", "how the riffle independent model and its smaller domain are chosen"),
    ("voting: weighted sampling", "3.4", "the randomiser of the sampled candidate"),
    ("voting: additive mechanism", "3.4", "the probability of each subset, and its size"),
    ("local d-privacy (Gu et al.)", "3.4", "which perturbation probabilities the equations have"),
    ("alpha-point rounding", "4.2", "what is memoised for each threshold; LDRR is our reading"),
)


def small(name: str, epsilon: float) -> Mechanism:
    """A member of a system whose channel can be enumerated."""
    domain = dn.Number(0, 3, 1)
    if name == "hierarchy of OLH":
        return _levels(domain, epsilon, **dn.OLH.small_design)
    known = name in MEANS
    m = MEANS[name].build(epsilon) if known else DISTRIBUTIONS[name].build(domain, epsilon)
    return m.over(m.domain, **m.small_design)


def exact_epsilon(m: Mechanism) -> float:
    """The largest log ratio of two probabilities of a report, by running the shipped code."""
    from deniable.privacy import exact_channel

    values = m.domain.sample()
    ratio = exact_channel(m.report, values).ratio
    return math.inf if ratio is None else float(np.log(float(ratio)))
