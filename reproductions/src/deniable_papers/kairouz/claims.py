"""Sections 4.1-4.3: what follows from the formulas alone, compared with what the text says."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from deniable.mechanisms.frequency import FrequencyOracle, find_oracle
from deniable_papers.kairouz import theory
from deniable_papers.results import Cell, Result, Trial, claimed, compared

PAPER = "kairouz"
LIMIT = "the text states the limit for large k"
#: k of the rows about formulas, and the mechanisms that are compared with the bound.
SIZES = (10, 100, 1000)
BOUND_SIZES = (4, 16, 256, 1024)
BOUND_EPSILONS = tuple(0.5 * step for step in range(1, 17))
NAMES = {"grr": "k-RR", "sue": "k-RAPPOR", "oue": "OUE", "hr": "HR"}


def sample_sizes() -> Iterator[Result]:
    """Section 4.3: how many times more respondents than without privacy, the same for l1 and l2.

    The text gives orders, no digits: at ln k up to half of the last digit is let pass.
    """
    for k in SIZES:
        cell: Cell = {"k": k, "epsilon": "ln k"}
        factor = {name: theory.sample_factor(name, "l2", k, math.log(k)) for name in theory.LOSSES}
        where = "section 4.3, k-RR: n / 4"
        yield compared(PAPER, where, cell, 4.0, factor["k-RR"], 0, 0.5, LIMIT)
        ours = factor["k-RAPPOR"] / math.sqrt(k)
        where = "section 4.3, k-RAPPOR: n / sqrt k"
        yield compared(PAPER, where, cell, 1.0, ours, 0, 0.5, LIMIT)
        small: Cell = {"k": k, "epsilon": 0.01}
        ours = theory.sample_factor("k-RR", "l2", k, 0.01) * 0.01**2 / k**2
        yield compared(PAPER, "section 4.3, k-RR: n eps^2 / k^2", small, 1.0, ours, 0, 0.05)
        ours = theory.sample_factor("k-RAPPOR", "l2", k, 0.01) * 0.01**2 / (4 * k)
        where = "section 4.3, k-RAPPOR: n eps^2 / 4 k"
        yield compared(PAPER, where, small, 1.0, ours, 0, 0.15, LIMIT)


def proposition_5() -> Iterator[Result]:
    """Where k-RR becomes the better one, beside the bound of the proposition."""
    trials = [
        Trial(f"k {k}, epsilon {e:.2f}", theory.rr_l2(p, 1, e) / theory.rappor_l2(p, 1, e) - 1, 0)
        for k in (2, 3, 4, 8, 32, 128, 1024, 4096)
        for e in math.log(max(k / 2, 1.1)) + np.linspace(0, 6, 13)
        for p in (np.full(k, 1 / k), np.where(np.arange(k), 0.0, 1.0))
    ]
    claim = "k-RR has the smaller l2 loss for epsilon >= ln (k / 2)"
    yield claimed(PAPER, "Proposition 5", claim, trials)
    for k in (10, 50, 100, 1000):
        crossing, bound = theory.crossing(k) or 0.0, math.log(k / 2)
        reason = f"the proposition only says at most ln (k / 2) = {bound:.3f}"
        yield compared(PAPER, "Proposition 5, crossing", {"k": k}, None, crossing, reason=reason)


def worst_is_uniform() -> Result:
    """Equations 9 and 13."""
    rng = np.random.default_rng(0)
    trials = []
    for k, epsilon in [(k, e) for k in (2, 8, 64) for e in (0.5, 2.0, 6.0)]:
        for p in [*rng.dirichlet(np.ones(k), 20), *rng.dirichlet(np.full(k, 0.1), 20)]:
            for name, losses in theory.LOSSES.items():
                worst = theory.uniform_loss(name, "l1", k, 1, epsilon)
                value = losses["l1"](p, 1, epsilon) / worst - 1
                trials.append(Trial(f"{name}, k {k}, epsilon {epsilon:g}", value, 1e-12))
    return claimed(PAPER, "equations 9 and 13", "the l1 loss is largest at the uniform p", trials)


def bounds() -> Iterator[Result]:
    """Worst l2 losses over the least that any mechanism can have for large n (Ye and Barg)."""
    where = "bounds, worst l2 loss / minimax"
    for k in BOUND_SIZES:
        for epsilon in BOUND_EPSILONS:
            least = theory.least_l2(k, 1, epsilon)
            for name, label in NAMES.items():
                ours = _worst_l2(find_oracle(name)(k, epsilon)) / least
                cell: Cell = {"mechanism": label, "k": k, "epsilon": epsilon}
                yield compared(PAPER, where, cell, None, ours)


def _worst_l2(m: FrequencyOracle) -> float:
    """The loss at the uniform p: n Var of a fixed population, and the sampling error."""
    return float(m.variance(1).sum()) + theory.sample_l2(m.domain.size, 1)


def formulas() -> Iterator[Result]:
    """All rows that need no simulation."""
    yield from sample_sizes()
    yield from proposition_5()
    yield worst_is_uniform()
    yield from bounds()
