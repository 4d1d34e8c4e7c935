"""Tests of hypotheses: functions of tallies that return a `TestResult`."""

from deniable.estimation.testing.means import mean_test
from deniable.estimation.testing.planning import sample_size
from deniable.estimation.testing.result import TestResult

__all__ = ["TestResult", "mean_test", "sample_size"]
