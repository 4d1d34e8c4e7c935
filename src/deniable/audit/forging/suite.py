"""The standing suite: every attack against every defence, beside the guaranteed bound."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from deniable.arrays import Bools, Floats, Integers
from deniable.audit.forging.admissible import admissible_reports, listed_oracle
from deniable.audit.forging.attacks import ATTACKS, Attack
from deniable.audit.forging.defences import DEFENCES, GUARANTEED, robust_intervals
from deniable.audit.forging.detection import detect
from deniable.audit.forging.influence import influence, weights_of
from deniable.audit.forging.result import (
    MALFORMED,
    NOBODY,
    ROBUST,
    UNDEFENDED,
    VALIDATION,
    Attempt,
    Manipulation,
)
from deniable.core.domain import Domain
from deniable.core.mechanism import Labelled, as_floats
from deniable.core.reports import Reports
from deniable.errors import InvalidArgument, require_int
from deniable.mechanisms import Mechanism
from deniable.mechanisms.frequency import FrequencyOracle
from deniable.randomness import require_generator


def manipulation_report(
    mechanism: Mechanism,
    n: int,
    forged: int,
    targets: Iterable[Any],
    *,
    rng: Generator,
    frequencies: Labelled | None = None,
    runs: int = 20,
    level: float = 0.01,
) -> Manipulation:
    """Every attack against every defence, averaged over ``runs`` simulated collections.

    n genuine people have answers of these ``frequencies`` (default: all alike), and ``forged``
    more attack. "gain": how much more frequent the targets come out than from the genuine reports
    alone, without a defence; "gain_after": with it; "bound": no admissible reports gain more;
    "detected": how often `detect` raises the alarm (if nobody forges: falsely); "covered": how
    often the interval of a target, widened for so many forgers, holds its true frequency.
    """
    suite = Suite.of(
        mechanism,
        n=n,
        forged=forged,
        targets=targets,
        frequencies=frequencies,
        runs=runs,
        level=level,
        rng=rng,
    )
    return suite.report(suite.steps())


@dataclass(frozen=True)
class Suite:
    """What `manipulation_report` does, one collection at a time."""

    case: _Case
    runs: int
    level: float
    rng: Generator

    @classmethod
    def of(
        cls,
        mechanism: Mechanism,
        *,
        n: int,
        forged: int,
        targets: Iterable[Any],
        frequencies: Any,
        runs: int,
        level: float,
        rng: Generator,
    ) -> Suite:
        case = _Case.of(mechanism, n, forged, targets, frequencies)
        require_generator(rng)
        return cls(case, require_int("runs", runs, 1, 1 << 20), level, rng)

    def __len__(self) -> int:
        """The number of collections."""
        return (1 + len(ATTACKS)) * self.runs

    def steps(self) -> Iterator[tuple[str, _Run]]:
        """All collections, one after the other."""
        for name, attack in {NOBODY: None, **ATTACKS}.items():
            for _ in range(self.runs):
                yield name, self.case.run(attack, self.level, self.rng)

    def report(self, steps: Iterable[tuple[str, _Run]]) -> Manipulation:
        """The averages of all steps."""
        case, found = self.case, defaultdict[str, list[_Run]](list)
        for name, run in steps:
            found[name].append(run)
        attempts = [case.malformed()]
        for name, some in found.items():
            attempts += _summary(name, some)
        return Manipulation(
            subject=str(case.mechanism),
            n=len(case.values),
            forged=case.forged,
            targets=tuple(case.targets),
            truth=float(case.truth.sum()),
            runs=self.runs,
            level=self.level,
            attempts=tuple(attempts),
        )


@dataclass(frozen=True)
class _Case:
    """Who answers what, and who wants what."""

    mechanism: FrequencyOracle
    values: Integers
    forged: int
    targets: list[Any]
    wanted: Bools

    @classmethod
    def of(
        cls, mechanism: Mechanism, n: int, forged: int, targets: Iterable[Any], frequencies: Any
    ) -> _Case:
        m = listed_oracle(mechanism)
        wanted = weights_of(m, targets) > 0
        values = _population(m.domain, require_int("n", n, 1, 1 << 40), frequencies)
        labels = [m.domain.label(int(place)) for place in np.flatnonzero(wanted)]
        return cls(m, values, require_int("forged", forged, 1, 1 << 40), labels, wanted)

    @property
    def truth(self) -> Floats:
        """The true frequencies of the targets."""
        counts = np.bincount(self.values, minlength=self.mechanism.domain.size)
        return np.asarray(counts / len(self.values))[self.wanted]

    def malformed(self) -> Attempt:
        """What reports that no device can make would gain if they were counted: they are not."""
        bound = influence(self.mechanism, len(self.values), self.forged, self.targets)
        most = admissible_reports(self.mechanism).unchecked(self.wanted.astype(np.int64))
        truth = float(self.truth.sum())
        gain, known = bound.share * (most - truth), bound.gain(truth)
        return Attempt(MALFORMED, VALIDATION, GUARANTEED, gain, 0.0, known, 1.0, None)

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


def _population(domain: Domain, n: int, frequencies: Any) -> Integers:
    """n values with shares as near to the frequencies as whole people allow."""
    k = domain.size
    given = np.full(k, 1 / k) if frequencies is None else frequencies
    f = as_floats("frequencies", given, domain.listed)
    if f.shape != (k,) or np.any(f < 0) or not np.isclose(f.sum(), 1):
        raise InvalidArgument("frequencies", frequencies, f"{k} of at least 0 that sum to 1")
    edges = np.rint(np.cumsum(f) * n).astype(np.int64)
    return np.repeat(np.arange(k), np.diff(edges, prepend=0))


def _summary(attack: str, runs: list[_Run]) -> list[Attempt]:
    gains = {name: float(np.mean([run.gains[name] for run in runs])) for name in DEFENCES}
    bound, alarm, held = (
        float(np.mean([getattr(run, name) for run in runs])) for name in ("bound", "alarm", "held")
    )
    ways = [(name, DEFENCES[name].label, after, None) for name, after in gains.items()]
    return [
        Attempt(attack, defence, label, gains[UNDEFENDED], after, bound, alarm, covered)
        for defence, label, after, covered in [*ways, (ROBUST, GUARANTEED, None, held)]
    ]
