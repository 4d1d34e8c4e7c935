"""What the reports say about the frequencies: everything that a decoder may look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.domain import Domain
from deniable.errors import InvalidArgument, MismatchError
from deniable.mechanisms import Mechanism
from deniable.reports import Reports
from deniable.tally import Tally

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Part:
    """The reports of one mechanism, counted; the reports themselves if they are at hand."""

    tally: Tally
    reports: Reports | None = None

    @classmethod
    def of(cls, source: Tally | Reports) -> Part:
        if isinstance(source, Reports):
            return cls(Tally(source.mechanism).add(source), source)
        return cls(source)

    @property
    def source(self) -> Tally | Reports:
        """The most that is known."""
        return self.tally if self.reports is None else self.reports

    @property
    def supports(self) -> tuple[Counts, float, float] | None:
        """The supports of each value with p and q, if the mechanism has one p and one q."""
        m = self.tally.mechanism
        counts = m.supports(self.tally.counts, self.tally.n)
        return None if counts is None else (counts, float(m.p), float(m.q))


@dataclass(frozen=True, eq=False)
class Evidence:
    """Reports of one question, of one or several mechanisms and epsilons.

    ``unbiased`` is x = sum_g w_g x_g over the parts g (one a mechanism), with weights that do not
    depend on the reports (inverse variances of samples of a uniform population), so it stays
    unbiased. Its variance is a_v + b_v f_v + between f_v (1 - f_v) for the population of all
    respondents, where between = sum_g w_g^2 / n_g - 1 / n is what chance does when it deals
    respondents to parts; it is 0 for one part. A population that the respondents are a sample of
    adds f (1 - f) / n.
    """

    parts: tuple[Part, ...]
    n: int
    unbiased: Floats
    a: Floats
    b: Floats
    between: float

    @classmethod
    def of(cls, sources: Sequence[Tally | Reports]) -> Evidence:
        parts = tuple(Part.of(source) for source in _merged(sources))
        _check(parts)
        tallies = [part.tally for part in parts]
        w = np.array([1 / _variance(t) for t in tallies])
        w /= w.sum()
        found = [t.mechanism.unbiased(t.counts, t.n) for t in tallies]
        lines = [
            t.mechanism.estimated_line(t.counts, t.n, x)
            for t, x in zip(tallies, found, strict=True)
        ]
        sizes = np.array([t.n for t in tallies])
        return cls(
            parts=parts,
            n=int(sizes.sum()),
            unbiased=sum(wg * x for wg, x in zip(w, found, strict=True)),
            a=sum(wg**2 / n * a for wg, n, (a, _) in zip(w, sizes, lines, strict=True)),
            b=sum(wg**2 / n * b for wg, n, (_, b) in zip(w, sizes, lines, strict=True)),
            between=float(max(0.0, (w**2 / sizes).sum() - 1 / sizes.sum())),
        )

    @property
    def k(self) -> int:
        return self.unbiased.size

    @property
    def domain(self) -> Domain:
        """What was asked about."""
        return self.parts[0].tally.mechanism.domain

    @property
    def sources(self) -> list[Tally | Reports]:
        return [part.source for part in self.parts]

    @cached_property
    def variances(self) -> Floats:
        """The variance of each unbiased frequency, at its own estimate."""
        f = np.clip(self.unbiased, 0.0, 1.0)
        return np.asarray(np.maximum(self.a + self.b * f, 0.0) + self.between * f * (1 - f))


def _variance(tally: Tally) -> float:
    """The average variance of a part as a sample of uniform answers."""
    k = tally.mechanism.domain.size
    return float(np.mean(tally.mechanism.variance(tally.n))) + (1 - 1 / k) / (k * tally.n)


def _merged(sources: Sequence[Tally | Reports]) -> list[Tally | Reports]:
    """Sources of one mechanism and one kind brought together; none may be given twice."""
    groups: dict[tuple[type, Mechanism], list[Any]] = {}
    fingerprints = [s.fingerprint for s in sources if isinstance(s, Tally) and s.fingerprint]
    if len({id(s) for s in sources}) < len(sources) or len({*fingerprints}) < len(fingerprints):
        raise InvalidArgument("parts", sources, "all different: one is there twice")
    for source in sources:
        if not isinstance(source, (Tally, Reports)):
            raise InvalidArgument("parts", source, "tallies or reports")
        groups.setdefault((type(source), source.mechanism), []).append(source)
    return [
        Reports.concatenate(group) if kind is Reports else reduce(Tally.merge, group)
        for (kind, _), group in groups.items()
    ]


def _check(parts: tuple[Part, ...]) -> None:
    if not parts:
        raise InvalidArgument("parts", parts, "at least one tally or column of reports")
    first = parts[0].tally.mechanism.domain
    for part in parts:
        if not part.tally.n:
            raise InvalidArgument("tally", part.tally, "a tally with at least one report")
        if part.tally.mechanism.domain != first:
            other = part.tally.mechanism.domain
            raise MismatchError(f"these are answers to different questions: {first!r}, {other!r}")
