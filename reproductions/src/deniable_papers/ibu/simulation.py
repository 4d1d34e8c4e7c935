"""A cell: all mechanisms on the same respondents, with losses of every decoder in every run.

Counts of reports have their exact law; the Iterative Bayesian Update takes O(k) a step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.estimation.frequencies.bayes import posterior
from deniable.estimation.frequencies.ibu import water_filling
from deniable.estimation.frequencies.simplex import clip_and_normalize, project
from deniable.kernels.jit import kernel
from deniable.mechanisms import SS
from deniable_papers.cells import Settings, Values
from deniable_papers.ibu.designs import MECHANISMS, ONE_TIME, Design, design, settings_of
from deniable_papers.ibu.populations import histograms

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
#: Frequencies by decoder, one row a run (the learnt ones only of the first runs).
Decoded = dict[str, Floats]
LOSSES = {"MSE": np.square, "MAE": np.abs}
#: The paper's limits.
ITERATIONS, TOLERANCE = 10_000, 1e-12


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


def _updates(designs: list[Design], counts: list[Counts]) -> list[Floats]:
    """10^4 steps of IBU, of all collections at once."""
    runs = len(counts[0])
    p, q = (np.repeat([one.update[i] for one in designs], runs) for i in (0, 1))
    found = iterate_all(np.concatenate(counts).astype(np.float64), p, q)
    return np.split(found, len(designs))


def count_all(one: Design, histograms: Counts, epsilon: float, rng: np.random.Generator) -> Counts:
    """How many reports support each value: a row for each row of respondents.

    Direct (k-RR): Bin(h_v, p - q) respondents keep their value, and all others report a uniform
    one. Bits: Bin(h_v, p) + Bin(n - h_v, q), each on its own; so are the supports of hashed
    reports, if hashing is ideal. Subsets are drawn.
    """
    n = histograms.sum(axis=1, keepdims=True)
    k = histograms.shape[1]
    if one.law == "subset" and one.omega > 1:
        m = SS(k, epsilon, omega=one.omega)
        return np.array([m.simulate(row, rng) for row in histograms])
    if one.law == "bits":
        own = rng.binomial(histograms, one.p)
        return np.asarray(own + rng.binomial(n - histograms, one.q))
    kept = rng.binomial(histograms, one.p - one.q)
    others = (n - kept.sum(axis=1, keepdims=True))[:, 0]
    return np.asarray(kept + rng.multinomial(others, np.full(k, 1 / k)))


def iterate_all(
    counts: Floats,
    p: Floats,
    q: Floats,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
) -> Floats:
    """`iterate` of `frequencies.ibu` from uniform, a row for each row of counts and its p and q.

    With p on the diagonal and q off it, r = q / (p - q) and shares c of the counts, a step is
    f_v <- f_v (w_v + r sum_u w_u) with w_v = c_v / (f_v + r). A row ends when no frequency changes
    by the tolerance ("max_abs").
    """
    shares = counts / counts.sum(axis=1, keepdims=True)
    f = np.full(counts.shape, 1.0 / counts.shape[1])
    _step_all(f, shares, q / (p - q), iterations, tolerance)
    return f


@kernel
def _step_all(f: Floats, c: Floats, r: Floats, iterations: int, tolerance: float) -> None:
    """Update each row of f in place until no entry changes by the tolerance.

    Four partial sums, because the compiler may not reorder a single one.
    """
    k = f.shape[1]
    whole = k // 4 * 4
    w = np.empty(k)
    for i in range(len(f)):
        for _ in range(iterations):
            for v in range(k):
                w[v] = c[i, v] / (f[i, v] + r[i])
            s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
            for v in range(0, whole, 4):
                s0 += w[v]
                s1 += w[v + 1]
                s2 += w[v + 2]
                s3 += w[v + 3]
            for v in range(whole, k):
                s0 += w[v]
            rest = r[i] * ((s0 + s1) + (s2 + s3))
            going = False
            for v in range(k):
                new = f[i, v] * (w[v] + rest)
                going |= abs(new - f[i, v]) >= tolerance
                f[i, v] = new
            if not going:
                break


def _decode(one: Design, counts: Counts, n: int, learned: int) -> Decoded:
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
