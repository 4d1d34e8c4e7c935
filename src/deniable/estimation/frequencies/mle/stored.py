"""The likelihood of reports that are not held: every evaluation is a pass over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.arrays import Floats, Indices
from deniable.core.reports import Reports
from deniable.core.stored import Pass, StoredReports
from deniable.estimation.frequencies.mle.shared import cohort_sample, term_of_reports
from deniable.estimation.frequencies.mle.supports import LikelihoodTerm, SeenGram, Subsample, Sums
from deniable.mechanisms.cohorts.base import CohortBits
from deniable.mechanisms.frequency import FrequencyOracle, require_oracle


class StoredTerm(LikelihoodTerm):
    """The sums of the terms that some reports at a time are; none of them is kept."""

    def __init__(self, mechanism: FrequencyOracle, reports: StoredReports) -> None:
        none = term_of_reports(mechanism, np.empty(0, dtype=mechanism.dtype), 0)
        self.tally = reports.tally()
        super().__init__(mechanism, self.tally.n, none.gain)
        self.reports = reports

    def sums(self, f: Floats, threads: int | None, *, squares: bool) -> Sums:
        return self.reports.pass_over(SumsPass(f, squares))

    def moments(self, f: Floats, values: Indices, sample: Subsample, start: int = 0) -> SeenGram:
        return self.reports.pass_over(GramPass(f, values, sample))

    def sample(self, most: int) -> Subsample:
        mechanism = self.mechanism
        if not isinstance(mechanism, CohortBits) or mechanism.hashes > 1:
            return super().sample(most)
        sizes = self.tally.counts.reshape(mechanism.cohorts, -1)[:, 0]
        return cohort_sample(np.flatnonzero(sizes).tolist(), self.n, most)


@dataclass(frozen=True, eq=False)
class SumsPass(Pass[Sums]):
    """`LikelihoodTerm.sums` of all reports."""

    f: Floats
    squares: bool

    def read(self, reports: Reports, start: int) -> Sums:
        return _term(reports).sums(self.f, 1, squares=self.squares)

    def merge(self, one: Sums, other: Sums) -> Sums:
        return Sums(one.totals + other.totals, one.by_value + other.by_value)


@dataclass(frozen=True, eq=False)
class GramPass(Pass[SeenGram]):
    """`LikelihoodTerm.moments` of all reports."""

    f: Floats
    values: Indices
    sample: Subsample

    def read(self, reports: Reports, start: int) -> SeenGram:
        return _term(reports).moments(self.f, self.values, self.sample, start)

    def merge(self, one: SeenGram, other: SeenGram) -> SeenGram:
        return SeenGram(one.seen + other.seen, one.gram.plus(other.gram))


def _term(reports: Reports) -> LikelihoodTerm:
    return term_of_reports(require_oracle(reports.mechanism), reports.data, 0)
