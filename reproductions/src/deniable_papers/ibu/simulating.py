"""A cell: all mechanisms on the same respondents, with losses of every decoder in every run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.estimation.frequencies.bayes import posterior
from deniable.estimation.frequencies.ibu import water_filling
from deniable.estimation.frequencies.simplex import clip_and_normalize, project
from deniable_papers.cells import Settings, Values
from deniable_papers.ibu.counting import count_all
from deniable_papers.ibu.designs import MECHANISMS, ONE_TIME, Design, design, settings_of
from deniable_papers.ibu.iterating import iterate_all
from deniable_papers.ibu.populations import histograms

Floats = NDArray[np.float64]
#: Frequencies by decoder, one row a run (the learnt ones only of the first runs).
Decoded = dict[str, Floats]
LOSSES = {"MSE": np.square, "MAE": np.abs}


def simulate(settings: Settings, rng: np.random.Generator) -> Values:
    """By mechanism and setting, and by metric, what `_summary` says of each decoder."""
    people = histograms(settings, rng)
    truth = people / settings["n"]
    epsilon, k = settings["epsilon"], settings["k"]
    keys = [(name, setting) for name in MECHANISMS for setting in settings_of(name)]
    designs = [design(setting, name, k, epsilon) for name, setting in keys]
    counts = [count_all(one, people, epsilon, rng) for one in designs]
    updates = _updates(designs, counts)
    values: Values = {}
    for (name, setting), one, c, update in zip(keys, designs, counts, updates, strict=True):
        learned = settings["learned"] if setting == "corrected" and name in ONE_TIME else 0
        decoded = {"update": update, **_decode(one, c, settings["n"], learned)}
        values[f"{name} {setting}"] = _summary(decoded, truth)
    return values


def _updates(designs: list[Design], counts: list[NDArray[np.int64]]) -> list[Floats]:
    """10^4 steps of IBU, of all collections at once."""
    runs = len(counts[0])
    p, q = (np.repeat([one.update[i] for one in designs], runs) for i in (0, 1))
    found = iterate_all(np.concatenate(counts).astype(np.float64), p, q)
    return np.split(found, len(designs))


def _decode(one: Design, counts: NDArray[np.int64], n: int, learned: int) -> Decoded:
    """What needs no iteration: matrix inversion, the limit of IBU, projection, and `bayes`."""
    p, q = one.inverse
    unbiased = (counts / n - q) / (p - q)
    decoded = {
        "inverse": np.array([clip_and_normalize(x) for x in unbiased]),
        "limit": np.array([water_filling(c, *one.update) for c in counts]),
        "projected": np.array([project(x) for x in unbiased]),
    }
    if learned:
        decoded["bayes"] = np.array([_learnt(one, x, n) for x in unbiased[:learned]])
    return decoded


def _learnt(one: Design, unbiased: Floats, n: int) -> Floats:
    """The default decoder of this library, from counts alone: Var = (a + b f) / n."""
    p, q = one.inverse
    a, b = q * (1 - q) / (p - q) ** 2, (1 - p - q) / (p - q)
    shape = unbiased.shape
    return posterior(unbiased, np.full(shape, a / n), np.full(shape, b / n)).frequencies


def _summary(decoded: Decoded, truth: Floats) -> Values:
    """By metric and decoder: the mean loss with its relative error, the logarithm of its ratio to
    the inverse's with its error, and the gain over the inverse in each run, 0 if it is a loss."""
    summary: Values = {}
    for metric, loss in LOSSES.items():
        losses = {name: loss(f - truth[: len(f)]).mean(axis=1) for name, f in decoded.items()}
        summary[metric] = {
            name: _compared(some, losses["inverse"][: len(some)]) for name, some in losses.items()
        }
    return summary


def _compared(losses: Floats, inverse: Floats) -> Values:
    mean, base = losses.mean(), inverse.mean()
    own = losses / mean
    spreads = np.std([own, own - inverse / base], axis=1, ddof=1) / len(losses) ** 0.5
    gains = np.maximum(1 - losses / inverse, 0.0)
    return {
        "loss": [_short(mean), _short(spreads[0])],
        "log": [_short(np.log(mean / base)), _short(spreads[1])],
        "gains": [round(float(gain), 5) for gain in gains],
    }


def _short(value: float) -> float:
    return float(f"{value:.6g}")
