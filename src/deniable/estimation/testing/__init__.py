"""Tests of hypotheses: functions of tallies that return a `TestResult`."""

from deniable.estimation.testing.result import TestResult

__all__ = ["TestResult"]
