"""n Var of a value that nobody has, measured over many collections of real reports."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from deniable.mechanisms.frequency import FrequencyOracle
from deniable_papers.cells import Settings, Values
from deniable_papers.survey.oracles import ORACLES

Floats = NDArray[np.float64]
#: Respondents of a collection. n Var does not depend on it, but where hash functions are shared.
ALONE, SHARED = 512, 20_480
#: Reports that are made at once.
BATCH = 1 << 16


def simulate(settings: Settings, rng: np.random.Generator) -> Values:
    """The mean of n (f - 0)^2 over the unused values and the runs, its error, and our formula."""
    oracle = ORACLES[settings["mechanism"]]
    m = oracle.build(settings["k"], settings["epsilon"])
    histogram = population(m)
    n, unused = int(histogram.sum()), histogram == 0
    runs = [n * float(np.mean(f[unused] ** 2)) for f in _frequencies(settings, m, histogram, rng)]
    formula = n * float(np.mean(m.variance(n, histogram / n)[unused]))
    return {
        "mean": float(f"{np.mean(runs):.8g}"),
        "error": float(f"{np.std(runs, ddof=1) / len(runs) ** 0.5:.6g}"),
        "formula": float(f"{formula:.10g}"),
        "published": None if oracle.published is None else oracle.published(m, m.epsilon_1),
        "n": n,
    }


def population(m: FrequencyOracle) -> NDArray[np.int64]:
    """Every other value is nobody's; all others are equally frequent."""
    k = m.domain.size
    used = k - k // 2
    n = ALONE if m.independent_supports else SHARED
    return np.where(np.arange(k) % 2, max(1, n // used), 0)


def _frequencies(
    settings: Settings, m: FrequencyOracle, histogram: NDArray[np.int64], rng: np.random.Generator
) -> Iterator[Floats]:
    """The unbiased frequencies of each run."""
    n = int(histogram.sum())
    if m.independent_supports:
        for counts in _collections(m, histogram, settings["runs"], rng):
            yield m.unbiased(counts, n)
        return
    design = {name: getattr(m, name) for name in m.design}
    for _ in range(settings["runs"]):
        # The variance is over the choice of the hash functions, too.
        seed = int(rng.integers(1 << 32))
        fresh = type(m)(m.domain, m.epsilon, **{**design, "seed": seed})
        yield fresh.unbiased(fresh.simulate(histogram, rng), n)


def _collections(
    m: FrequencyOracle, histogram: NDArray[np.int64], runs: int, rng: np.random.Generator
) -> Iterator[NDArray[np.int64]]:
    """Counts of collections, whose reports are made in one go."""
    values = np.repeat(np.arange(histogram.size), histogram)
    most = max(1, BATCH // len(values))
    for start in range(0, runs, most):
        some = min(most, runs - start)
        reports = m.privatize(np.tile(values, some), rng, threads=1)
        for one in range(some):
            yield m.count(reports.data[one * len(values) : (one + 1) * len(values)])
