"""Forged reports of cohorts: the forger chooses the cohort and forges the inner report.

A value is supported as far as its cells are, so what counts for a cell is the weight of the values
that have it, and the inner admissible knows the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.random import Generator

from deniable.arrays import Data, Floats, Integers
from deniable.audit.forging.admissible import (
    BLOCK,
    AdmissibleReports,
    SupportReports,
    admissible_reports,
)
from deniable.audit.forging.tails import binomial_pvalue
from deniable.mechanisms.cohorts.base import CohortMechanism


class CohortReports(SupportReports):
    """What the mechanisms of cohorts have in common; candidates among any text included.

    What is outside of the candidates is 1 less all of them, so its weight counts against theirs.
    """

    def __init__(self, mechanism: Any) -> None:
        super().__init__(mechanism)
        self.inner: Any = admissible_reports(mechanism.inner)
        #: Two cells of the most weight may have values in common.
        self.tight = not mechanism.inner.direct

    def _listed(self, weights: Integers) -> tuple[Integers, Any]:
        """The weights of the listed values, and what is left if all of them have none."""
        if not self.mechanism.is_open:
            return weights, 0
        outside = weights[..., -1:]
        return weights[..., :-1] - outside, outside[..., 0]

    def _masses(self, listed: Integers) -> Iterator[tuple[Integers, Integers]]:
        """Some cohorts, and the weights of their cells."""
        m = self.mechanism
        step = max(1, BLOCK // m.width)
        for start in range(0, m.cohorts, step):
            some = np.arange(start, min(start + step, m.cohorts))
            yield some, m.masses_of_cells(listed, some)

    def extremes(self, weights: Integers) -> tuple[float, float]:
        listed, outside = self._listed(weights)
        parts = [self.inner.supported(masses) for _, masses in self._masses(listed)]
        low = min(float(part[0].min()) for part in parts) / self.mechanism.hashes
        high = max(float(part[1].max()) for part in parts) / self.mechanism.hashes
        return tuple(self.scaled(x, listed) + float(outside) for x in (low, high))  # type: ignore[return-value]

    def diameter(self) -> float:
        """All values against none; or, where a report supports one cell, two of the fullest."""
        m = self.mechanism
        changed = m.codes.size
        if not self.tight:
            ones = np.ones(m.codes.size, dtype=np.int64)
            fullest = max(int(masses.max()) for _, masses in self._masses(ones))
            changed = min(changed, 2 * fullest)
        return float((1 + m.is_open) * changed / (m.p - m.q))

    def any(self, weights: Integers, rng: Generator) -> Data:
        cohorts = self._drawn(len(weights), rng)
        cells = np.zeros((len(weights), self.mechanism.width), dtype=np.int64)
        return self._reports(cohorts, self.inner.any(cells, rng))

    def best(self, weights: Integers, rng: Generator) -> Data:
        """A cohort in which one report can support most, any of them."""
        listed = self._listed(weights[0])[0]
        highs = np.concatenate([self.inner.supported(x)[1] for _, x in self._masses(listed)])
        fitting = np.flatnonzero(highs == highs.max())
        cohorts = fitting[rng.integers(0, len(fitting), len(weights))]
        masses = self.mechanism.masses_of_cells(listed, cohorts)
        return self._reports(cohorts, self.inner.best(masses, rng))

    def hidden(self, weights: Integers, rng: Generator) -> Data:
        """The cohort is drawn as it should be."""
        cohorts = self._drawn(len(weights), rng)
        masses = self.mechanism.masses_of_cells(self._listed(weights[0])[0], cohorts)
        return self._reports(cohorts, self.inner.hidden(masses, rng))

    def _drawn(self, count: int, rng: Generator) -> Integers:
        return rng.integers(0, self.mechanism.cohorts, count)

    def _reports(self, cohorts: Integers, inner: Data) -> Data:
        data = np.empty(len(cohorts), dtype=self.mechanism.dtype)
        data["cohort"], data["report"] = cohorts, inner
        return data

    def contributions(self, data: Data) -> Any:
        return AdmissibleReports.contributions(self, data)

    def sizes(self, data: Data) -> Integers | None:
        """Those of the inner reports; a filter of several hash functions has no simple law."""
        found: Integers | None = self.inner.sizes(data["report"])
        return found if self.mechanism.hashes == 1 else None

    def size_law(self) -> Any:
        return self.inner.size_law()

    def least_means(self) -> Floats:
        """The estimate is unbiased only over the choice of the hash functions. With given ones a
        value is supported with the inner q at least, however seldom it collides; nothing is known
        about what is outside of the candidates."""
        m = self.mechanism
        means = np.full(m.domain.size, float((m.inner.q - m.q) / (m.p - m.q)))
        if m.is_open:
            means[-1] = -np.inf
        return means

    def draws(self, data: Data) -> list[float]:
        counts = np.bincount(data["cohort"], minlength=self.mechanism.cohorts)
        chance = 1 / self.mechanism.cohorts
        own = [binomial_pvalue(counts, len(data), chance)] if chance < 1 else []
        return [*own, *self.inner.draws(data["report"])]


COHORTS: dict[type, type[AdmissibleReports]] = {CohortMechanism: CohortReports}
