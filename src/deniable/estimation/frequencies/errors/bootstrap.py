"""Intervals for any decoder, by simulating the channel: a Neyman belt.

Estimates that respect 0 <= f and sum 1 pile up at 0, where neither the normal law nor the plain
bootstrap holds. Here the test is inverted instead: for levels t of the true frequency the law of
the decoded estimate Y is simulated, t accepts the estimates between lower(t) and upper(t), and the
interval of an estimate y is {t: lower(t) <= y <= upper(t)}. The law of Y depends on the other
values' frequencies only weakly; they are plugged in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from deniable.arrays import Counts, Floats
from deniable.core.domain import Label
from deniable.core.mechanism import as_floats
from deniable.errors import InvalidArgument, require_int
from deniable.estimation.frequencies.intervals import check_confidence, two_sided_z
from deniable.mechanisms.frequency import FrequencyOracle

if TYPE_CHECKING:
    from numpy.random import Generator

Decoder = Callable[[Counts], Floats]

#: Levels near 0, where estimates pile up, and levels from there to the largest estimate.
DENSE, SPARSE = 12, 10
#: Runs a level: at least so many, and so many beyond each limit.
LEAST_RUNS, RUNS_BEYOND = 400, 4


@dataclass(frozen=True, eq=False)
class Belt:
    """What a decoder makes of a value, by its true frequency; all arrays have one entry a level."""

    levels: Floats
    #: The estimates that a level accepts.
    lower: Floats
    upper: Floats
    means: Floats
    deviations: Floats

    def intervals(self, y: Floats) -> Floats:
        """Rows (low, high) of the true frequencies that accept each estimate."""
        high = _last_accepting(self.levels, self.lower, y)
        mirrored = _last_accepting(1 - self.levels[::-1], 1 - self.upper[::-1], 1 - y)
        return np.stack([np.minimum(1 - mirrored, high), high], axis=1)

    def standard_errors(self, y: Floats) -> Floats:
        """The standard deviation of the decoder at the level whose mean is each estimate."""
        return np.interp(self._levels_of(y), self.levels, self.deviations)

    def _levels_of(self, y: Floats) -> Floats:
        return np.interp(y, np.maximum.accumulate(self.means), self.levels)


def _last_accepting(levels: Floats, lower: Floats, y: Floats) -> Floats:
    """The largest t with lower(t) <= y: lines between the levels, 1 beyond the last.

    Where estimates pile up at 0, lower is 0 and leaves it between two levels, as a line that comes
    from below: the line through the two levels that follow says where.
    """
    t, least = levels, np.minimum.accumulate(lower[::-1])[::-1]
    edge = int(np.searchsorted(least, 0.0, side="right"))
    if 0 < edge < len(t) - 1 and least[edge + 1] > least[edge]:
        slope = (t[edge + 1] - t[edge]) / (least[edge + 1] - least[edge])
        kink = np.clip(t[edge] - slope * least[edge], t[edge - 1], t[edge])
        t, least = np.insert(t, edge, kink), np.insert(least, edge, 0.0)
    last = np.searchsorted(least, y, side="right") - 1
    here, there = np.maximum(last, 0), np.minimum(last + 1, len(t) - 1)
    rise = np.where(there > here, least[there] - least[here], 1.0)
    part = np.clip((y - least[here]) / rise, 0.0, 1.0)
    found = t[here] + part * (t[there] - t[here])
    return np.where(last == len(t) - 1, 1.0, found)


def belt(
    decode: Decoder,
    mechanism: FrequencyOracle,
    n: int,
    plugin: Floats,
    *,
    confidence: float = 0.95,
    largest: float | None = None,
    runs: int | None = None,
    rng: Generator | None = None,
    sampling: bool = False,
) -> Belt:
    """The belt of a decoder, which must treat all values alike, for n reports.

    ``plugin`` holds feasible frequencies (not negative, sum 1) of the population; ``largest`` is
    the largest estimate that will be looked up (default: that of the plug-in). ``sampling`` says
    that the respondents are a sample of the population and not the population itself.

    A level accepts y if (1 + runs with Y <= y) / (1 + runs) exceeds (1 - confidence) / 2, and
    likewise from above: a Monte Carlo test, whose level holds for any number of runs if the
    plug-in is right. By default the coins depend on the plug-in alone, so that the same tally
    always has the same intervals.
    """
    n = require_int("n", n, 1, 1 << 53)
    tail = (1 - check_confidence(confidence)) / 2
    runs = max(LEAST_RUNS, round(RUNS_BEYOND / tail)) if runs is None else runs
    runs = require_int("runs", runs, int(np.ceil(1 / tail)) - 1, 1 << 40)
    plugin = _distribution(plugin, mechanism.domain.listed)
    rng = generator_of(fixed_population(plugin, n)) if rng is None else rng
    simulation = _Simulation(decode, mechanism, n, plugin, runs, rng, sampling)
    top = float(plugin.max()) if largest is None else float(largest)
    return simulation.belt(two_sided_z(confidence), tail, top)


def generator_of(counts: ArrayLike) -> Generator:
    """A generator that is seeded with the SHA-256 of integer counts."""
    data = np.asarray(counts, dtype="<i8").tobytes()
    return np.random.default_rng(int.from_bytes(hashlib.sha256(data).digest(), "big"))


@dataclass(frozen=True, eq=False)
class _Simulation:
    """Everything that the levels of a belt share."""

    decode: Decoder
    mechanism: FrequencyOracle
    n: int
    plugin: Floats
    runs: int
    rng: Generator
    sampling: bool

    def belt(self, z: float, tail: float, largest: float) -> Belt:
        """Levels from 0 until one of them no longer accepts the largest estimate, or 1."""
        rank = int(tail * (self.runs + 1))
        outcomes: dict[float, Floats] = {}
        for level in self._levels(z, largest):
            outcomes[level] = np.sort(self._outcomes(level))
            if level > largest and outcomes[level][rank - 1] > largest:
                break
        sorted_runs = np.array(list(outcomes.values()))
        return Belt(
            levels=np.array(list(outcomes)),
            lower=sorted_runs[:, rank - 1],
            upper=sorted_runs[:, -rank],
            means=sorted_runs.mean(axis=1),
            deviations=sorted_runs.std(axis=1, ddof=1),
        )

    def _levels(self, z: float, largest: float) -> list[float]:
        """Multiples of 1/n: steps of half a deviation near 0, then ever longer ones, up to 1."""
        deviation = self._deviation(0.0)
        near = deviation * np.linspace(0.0, z + 3, DENSE)
        far = max(largest + (z + 2) * self._deviation(min(largest, 1.0)), 2 * near[-1])
        middle = np.geomspace(near[-1], far, SPARSE)
        beyond = far * 1.5 ** np.arange(1, 1 + int(np.log(1 / far) / np.log(1.5) + 2) * (far < 1))
        wanted = np.concatenate([near, middle, beyond, [1.0]])
        whole = np.unique(np.rint(np.minimum(wanted, 1.0) * self.n))
        return [float(level) for level in whole / self.n]

    def _deviation(self, t: float) -> float:
        variance = float(self.mechanism.variance(self.n, t))
        return float(np.sqrt(variance + self.sampling * t * (1 - t) / self.n))

    def _outcomes(self, level: float) -> Floats:
        """Decoded estimates of one value that has frequency ``level``, one a run."""
        value = int(np.argmin(np.abs(self.plugin - level)))
        frequencies = with_frequency(self.plugin, value, level)
        population = fixed_population(frequencies, self.n, value)
        result = np.empty(self.runs)
        for run in range(self.runs):
            if self.sampling:
                population = self.rng.multinomial(self.n, frequencies)
            result[run] = self.decode(self.mechanism.simulate(population, self.rng))[value]
        return result


def with_frequency(f: Floats, value: int, t: float) -> Floats:
    """``f`` with f[value] = t and the others rescaled to 1 - t (equal, if they are all 0)."""
    others = f.copy()
    others[value] = 0.0
    if not others.sum():
        others = np.ones_like(f)
        others[value] = 0.0
    result: Floats = others * ((1 - t) / others.sum())
    result[value] = t
    return result


def fixed_population(f: Floats, n: int, value: int = 0) -> Counts:
    """n respondents with nearly the frequencies f: f[value] is met best, then by largest rest."""
    exact = f * n
    counts = np.floor(exact).astype(np.int64)
    counts[value] = round(float(exact[value]))
    rests = exact - counts
    rests[value] = -np.inf
    missing = n - int(counts.sum())
    order = np.argsort(-rests, kind="stable")
    counts[order[:missing]] += 1
    return counts


def _distribution(f: Floats, labels: Sequence[Label]) -> Floats:
    given, k = as_floats("plugin", f, labels), len(labels)
    fits = given.shape == (k,) and np.all(given >= 0) and abs(given.sum() - 1) < 1e-6
    if not fits:
        raise InvalidArgument("plugin", f, f"{k} frequencies of at least 0 that sum to 1")
    return np.asarray(given / given.sum())
