"""What a decoder may look at, which is all that the reports say, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from deniable.arrays import Counts, Floats
from deniable.core.domain import Domain
from deniable.core.reports import Reports
from deniable.core.stored import Source, StoredReports
from deniable.core.tally import Tally
from deniable.estimation.frequencies.simplex import project
from deniable.estimation.parts import about_one_question, tally_of
from deniable.mechanisms.frequency import FrequencyOracle, Line, require_oracle


@dataclass(frozen=True, eq=False)
class Part:
    """The reports of one mechanism, counted; the reports themselves if they are at hand."""

    mechanism: FrequencyOracle
    tally: Tally
    reports: Reports | StoredReports | None = None

    @classmethod
    def of(cls, source: Source) -> Part:
        mechanism = require_oracle(source.mechanism)
        reports = None if isinstance(source, Tally) else source
        return cls(mechanism, tally_of(source), reports)

    @property
    def source(self) -> Source:
        """The most that is known."""
        return self.tally if self.reports is None else self.reports

    def covariances(self, f: Floats, value: int) -> Floats:
        """`FrequencyOracle.covariances` of as many reports."""
        return self.mechanism.covariances(f, self.tally.n, value)

    @property
    def supports(self) -> tuple[Counts, float, float] | None:
        """The supports of each value with p and q, if the mechanism has one p and one q."""
        m: Any = self.mechanism  # one that has supports has p and q
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
    line: Line
    between: float
    #: What each part weighs.
    weights: Floats

    @classmethod
    def of(cls, sources: Sequence[Source]) -> Evidence:
        parts = tuple(Part.of(source) for source in about_one_question(sources))
        w = _weights(parts)
        found = [part.mechanism.unbiased(part.tally.counts, part.tally.n) for part in parts]
        lines = [
            part.mechanism.estimated_line(part.tally.counts, part.tally.n, x)
            for part, x in zip(parts, found, strict=True)
        ]
        sizes = np.array([part.tally.n for part in parts])
        return cls(
            parts=parts,
            n=int(sizes.sum()),
            unbiased=sum(wg * x for wg, x in zip(w, found, strict=True)),
            line=Line(
                sum(wg**2 / n * one.a for wg, n, one in zip(w, sizes, lines, strict=True)),
                sum(wg**2 / n * one.b for wg, n, one in zip(w, sizes, lines, strict=True)),
            ),
            between=float(max(0.0, (w**2 / sizes).sum() - 1 / sizes.sum())),
            weights=w,
        )

    @property
    def k(self) -> int:
        return self.unbiased.size

    @property
    def domain(self) -> Domain:
        """What was asked about."""
        return self.parts[0].mechanism.domain

    @property
    def sources(self) -> list[Source]:
        return [part.source for part in self.parts]

    @cached_property
    def variances(self) -> Floats:
        """The variance of each unbiased frequency, at its own estimate."""
        return self.variances_about(sampling=False)

    def variances_about(self, *, sampling: bool) -> Floats:
        """The same about the respondents, or, with ``sampling``, about everyone."""
        f = np.clip(self.unbiased, 0.0, 1.0)
        chance = self.chance(sampling=sampling)
        return np.asarray(np.maximum(self.line.at(f), 0.0) + chance * f * (1 - f))

    def chance(self, *, sampling: bool) -> float:
        """What times f (1 - f) is the chance that chooses respondents, for parts or as a sample."""
        return self.between + sampling / self.n

    def covariances(self, value: int) -> Floats:
        """Those of each unbiased frequency with that of one value, but for `chance`."""
        f = np.clip(self.unbiased, 0.0, 1.0)
        parts = zip(self.weights, self.parts, strict=True)
        return np.asarray(sum(w**2 / p.tally.n * p.covariances(f, value) for w, p in parts))

    def sum_variances(self, weights: Floats) -> Floats:
        """The variance of weighted sums of the unbiased frequencies, row by row of ``weights``.

        But for `chance`, and where frequencies are as likely as any that sum to 1.
        """
        f, parts = project(self.unbiased), zip(self.weights, self.parts, strict=True)
        return np.asarray(
            sum(w**2 / p.tally.n * (p.mechanism.sum_variances(weights) @ f) for w, p in parts)
        )


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """The errors of an estimate: what kind they are, standard errors, rows (low, high)."""

    kind: str
    standard_errors: Floats
    intervals: Floats


@dataclass(frozen=True, eq=False)
class Decoded:
    """Frequencies, and their errors where a decoder knows more than the unbiased ones tell.

    ``own(confidence, sampling)`` makes those errors; ``sampling`` says that the respondents are a
    sample of the population that is asked about.
    """

    frequencies: Floats
    own: Callable[[float, bool], Uncertainty] | None = None
    #: How much larger the log-likelihood of a report could be at most.
    certificate: float | None = None


def _weights(parts: Sequence[Part]) -> Floats:
    """How much each part weighs: by its inverse variance."""
    w = np.array([1 / _variance(part) for part in parts] if len(parts) > 1 else [1.0])
    return np.asarray(w / w.sum())


def _variance(part: Part) -> float:
    """The average variance of a part as a sample of uniform answers."""
    k, n = part.mechanism.domain.size, part.tally.n
    return float(np.mean(part.mechanism.variance(n))) + (1 - 1 / k) / (k * n)
