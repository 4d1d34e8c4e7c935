"""What a report costs: bits, growth with k, and times as ratios to GRR in the same run.

Times depend on the machine and on what else it does; so a cell is not a function of its settings
alone, and no verdict rests on one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from deniable.mechanisms import GRR, Mechanism
from deniable_papers.cells import Settings, Values
from deniable_papers.survey.oracles import ORACLES, Oracle

#: Reports that are made, and not timed, so that all code is loaded.
WARM = 100
STEPS = ("client", "tally", "decoding")
#: The growth of reports is fitted between these numbers of values.
SMALL, LARGE = 1 << 10, 1 << 16


def simulate(settings: Settings, rng: np.random.Generator) -> Values:
    """Microseconds a report (decoding: a value) of GRR, and the ratios of the mechanism to it."""
    k, n, epsilon = settings["k"], settings["n"], settings["epsilon"]
    values: Any = rng.integers(0, k, n)
    pair = ORACLES[settings["mechanism"]].build(k, epsilon), GRR(k, epsilon)
    for m in pair:
        _steps(m, values[:WARM])
    seconds = np.array([[_steps(m, values) for m in pair] for _ in range(settings["repeats"])])
    ours, plain = seconds.min(axis=0)
    micro = plain * 1e6 / np.array([n, n, k])
    return {
        step: [float(f"{ratio:.4g}"), float(f"{base:.4g}")]
        for step, ratio, base in zip(STEPS, ours / plain, micro, strict=True)
    }


def _steps(m: Mechanism, values: Any) -> list[float]:
    """Seconds to randomise with secure coins, to count, and to decode without bias."""
    reports, client = _timed(lambda: m.privatize(values, threads=1))
    tally, counting = _timed(lambda: m.tally(reports, threads=1))
    _, decoding = _timed(lambda: tally.estimate("unbiased", errors="score"))
    return [client, counting, decoding]


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = perf_counter()
    made = work()
    return made, perf_counter() - start


def growth(oracle: Oracle, epsilon: float) -> float | None:
    """The power of k that the bits of a report follow: 1 for bits of all values, 0.1 for log k.

    None for mechanisms of two values only.
    """
    sizes = (SMALL, LARGE)
    if oracle.along == "width":
        built = [oracle.build(16, epsilon, width=width) for width in sizes]
    elif oracle.suits(SMALL):
        built = [oracle.build(k, epsilon) for k in sizes]
    else:
        return None
    bits = [m.bits_per_report for m in built]
    return math.log(bits[1] / bits[0]) / math.log(LARGE / SMALL)
