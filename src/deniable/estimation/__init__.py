"""Counts in, numbers with error bars out."""

from deniable.estimation.estimate import Estimate
from deniable.estimation.estimator import combine
from deniable.estimation.methods import METHODS

__all__ = ["METHODS", "Estimate", "combine"]
