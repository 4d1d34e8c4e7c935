"""A cell of the map: losses of mechanisms and decoders on the same respondents.

The loss of a frequency is the squared error about the respondents, averaged over the values, plus
f (1 - f) / n, which is what they, as a sample, do not know about everyone. The error of the
unbiased frequencies has a known mean (`FrequencyOracle.variance`): what chance did to it tells what
chance did to the other decoders (control variate, with the slope of a regression over the runs).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.core.tally import Tally
from deniable.estimation.frequencies.evidence import Evidence
from deniable.estimation.frequencies.methods import decode
from deniable.mechanisms.frequency import FrequencyOracle, find_oracle
from deniable.populations import geometric, step, uniform, zipf
from deniable_papers.cells import Settings, Values

Floats = NDArray[np.float64]
#: From the simplest. Left out: what is never the best by variance (SUE, BLH, THE, SHE, ...).
MECHANISMS = ("grr", "hrr", "hr", "oue", "ss", "olh")
DECODERS = ("unbiased", "normalized", "projected", "ibu", "bayes")
#: Who answers what, from flat to a few values that have nearly everything. Geometric has the mean
#: k / 5. In a sparse one a sixteenth of the values, but at least one, shares 95 %.
DISTRIBUTIONS: dict[str, Callable[[int], Floats]] = {
    "flat": uniform,
    "geometric": lambda k: geometric(k, k / (k + 5)),
    "zipf": lambda k: zipf(k, 1.2),
    "sparse": lambda k: step(k, max(1, k // 16), rest=0.05),
}


def simulate(settings: Settings, rng: np.random.Generator) -> Values:
    """[loss, its error, l1 loss] by mechanism and decoder; the l1 loss of the uniform guess."""
    k, n, runs = settings["k"], settings["n"], settings["runs"]
    p = DISTRIBUTIONS[settings["distribution"]](k)
    histograms = [rng.multinomial(n, rng.permutation(p)) for _ in range(runs)]
    sampling = float(np.mean([np.mean(h / n * (1 - h / n)) for h in histograms])) / n
    found: dict[str, Any] = {}
    for name in MECHANISMS:
        m = find_oracle(name)(k, settings["epsilon"])
        squares, absolute, known = _runs(m, histograms, rng)
        found[name] = {
            decoder: [_short(x) for x in (*_adjusted(y, squares[:, 0] - known, sampling), l1)]
            for decoder, y, l1 in zip(DECODERS, squares.T, absolute.mean(axis=0), strict=True)
        }
    uniform = float(np.mean([np.abs(h / n - 1 / k).sum() for h in histograms]))
    return {"losses": found, "uniform": _short(uniform)}


def _runs(
    m: FrequencyOracle, histograms: list[NDArray[np.int64]], rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Mean squared and summed absolute errors, runs x decoders, and the unbiased one's formula."""
    squares, absolute, known = [], [], []
    for histogram in histograms:
        n = int(histogram.sum())
        truth = histogram / n
        evidence = Evidence.of([Tally.of_counts(m, m.simulate(histogram, rng), n)])
        errors = [decode(evidence, name, {}).frequencies - truth for name in DECODERS]
        squares.append([float(np.mean(error**2)) for error in errors])
        absolute.append([float(np.abs(error).sum()) for error in errors])
        known.append(float(np.mean(m.variance(n, truth))))
    return np.array(squares), np.array(absolute), np.array(known)


def _adjusted(y: Floats, control: Floats, sampling: float) -> tuple[float, float]:
    """The mean of y by its regression on a control of mean 0, and the error of that mean."""
    spread = control - control.mean()
    slope = float(spread @ y / (spread @ spread))
    mean, left = float(np.mean(y - slope * control)), y - y.mean() - slope * spread
    if mean <= 0:
        mean, left = float(y.mean()), y - y.mean()
    error = float(left @ left / (max(1, len(y) - 2) * len(y))) ** 0.5
    return mean + sampling, error


def _short(value: float) -> float:
    return float(f"{value:.5g}")
