"""The standing suite: every attack against every defence, beside the guaranteed bound."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from deniable.audit.alphabets import alphabet_of
from deniable.audit.defences import DEFENCES, GUARANTEED, robust_intervals
from deniable.audit.detection import detect
from deniable.audit.forging import ATTACKS, Attack
from deniable.audit.influence import influence, weights_of
from deniable.errors import InvalidArgument, require_int
from deniable.mechanisms import Mechanism
from deniable.mechanisms.base import as_floats
from deniable.randomness import require_generator
from deniable.reports import Reports

Floats = NDArray[np.float64]
Row = dict[str, Any]
NOBODY, MALFORMED = "nobody forges", "malformed report"


def manipulation_report(
    mechanism: Mechanism,
    n: int,
    forged: int,
    targets: Iterable[Any],
    *,
    rng: Generator,
    frequencies: ArrayLike | None = None,
    runs: int = 20,
    level: float = 0.01,
) -> list[Row]:
    """A row for each attack and defence, averaged over ``runs`` simulated collections.

    n genuine people have answers of these ``frequencies`` (default: all alike), and ``forged``
    more attack. "gain": how much more frequent the targets come out than from the genuine reports
    alone, without a defence; "gain after": with it; "bound": no admissible reports gain more;
    "detected": how often `detect` raises the alarm (if nobody forges: falsely); "covered": how
    often the interval of a target, widened for so many forgers, holds its true frequency.
    """
    case = _Case.of(mechanism, n, forged, targets, frequencies)
    runs = require_int("runs", runs, 1, 1 << 20)
    require_generator(rng)
    rows = [case.malformed()]
    for name, attack in {NOBODY: None, **ATTACKS}.items():
        rows += _summary(name, [case.run(attack, level, rng) for _ in range(runs)])
    return rows


@dataclass(frozen=True)
class _Case:
    """Who answers what, and who wants what."""

    mechanism: Mechanism
    values: NDArray[np.int64]
    forged: int
    targets: list[Any]
    wanted: NDArray[np.bool_]

    @classmethod
    def of(
        cls, mechanism: Mechanism, n: int, forged: int, targets: Iterable[Any], frequencies: Any
    ) -> _Case:
        wanted = weights_of(mechanism, targets) > 0
        values = _population(mechanism.domain.size, require_int("n", n, 1, 1 << 40), frequencies)
        labels = [mechanism.domain.label(int(place)) for place in np.flatnonzero(wanted)]
        return cls(mechanism, values, require_int("forged", forged, 1, 1 << 40), labels, wanted)

    @property
    def truth(self) -> Floats:
        """The true frequencies of the targets."""
        counts = np.bincount(self.values, minlength=self.mechanism.domain.size)
        return np.asarray(counts / len(self.values))[self.wanted]

    def malformed(self) -> Row:
        """What reports that no device can make would gain if they were counted: they are not."""
        bound = influence(self.mechanism, len(self.values), self.forged, self.targets)
        most = alphabet_of(self.mechanism).unchecked(self.wanted.astype(np.int64))
        truth = float(self.truth.sum())
        row = {"attack": MALFORMED, "defence": "validation", "label": GUARANTEED}
        numbers = {"gain": bound.share * (most - truth), "gain_after": 0.0}
        return row | numbers | {"bound": bound.gain(truth), "detected": 1.0, "covered": None}

    def run(self, attack: Attack | None, level: float, rng: Generator) -> _Run:
        """One collection."""
        m, labels = self.mechanism, self.mechanism.domain.labels
        answers = self.values if labels is None else [labels[v] for v in self.values]
        reports, forged = m.privatize(answers, rng), 0
        alone = float(m.unbiased(m.count(reports.data), len(reports))[self.wanted].sum())
        bound = 0.0
        if attack is not None:
            forged = self.forged
            bound = influence(m, len(reports), forged, self.targets).gain(alone)
            fake = attack(m, forged, self.targets, rng)
            reports = Reports.concatenate([reports, fake])
        gains = {
            name: float(way.frequencies(reports, forged, self.targets)[self.wanted].sum()) - alone
            for name, way in DEFENCES.items()
        }
        low, high = robust_intervals(m.tally(reports), forged)[self.wanted].T
        held = float(np.mean((low <= self.truth) & (self.truth <= high)))
        return _Run(gains, bound, float(detect(reports, level).alarm), held)


@dataclass(frozen=True)
class _Run:
    """What each defence leaves, the bound, the alarm, and how many robust intervals hold."""

    gains: dict[str, float]
    bound: float
    alarm: float
    held: float


def _population(k: int, n: int, frequencies: Any) -> NDArray[np.int64]:
    """n values with shares as near to the frequencies as whole people allow."""
    f = np.full(k, 1 / k) if frequencies is None else as_floats("frequencies", frequencies)
    if f.shape != (k,) or np.any(f < 0) or not np.isclose(f.sum(), 1):
        raise InvalidArgument("frequencies", frequencies, f"{k} of at least 0 that sum to 1")
    edges = np.rint(np.cumsum(f) * n).astype(np.int64)
    return np.repeat(np.arange(k), np.diff(edges, prepend=0))


def _summary(attack: str, runs: list[_Run]) -> list[Row]:
    gains = {name: float(np.mean([run.gains[name] for run in runs])) for name in DEFENCES}
    bound, alarm, held = (
        float(np.mean([getattr(run, name) for run in runs])) for name in ("bound", "alarm", "held")
    )
    ways: list[Row] = [
        {"defence": name, "label": DEFENCES[name].label, "gain_after": gain, "covered": None}
        for name, gain in gains.items()
    ]
    robust = {"defence": "robust interval", "label": GUARANTEED, "gain_after": None}
    ways.append(robust | {"covered": held})
    return [
        {
            "attack": attack,
            "defence": way["defence"],
            "label": way["label"],
            "gain": gains["none"],
            "gain_after": way["gain_after"],
            "bound": bound,
            "detected": alarm,
            "covered": way["covered"],
        }
        for way in ways
    ]
