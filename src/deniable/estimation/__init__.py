"""Counts in, numbers with error bars out."""

from deniable.estimation.estimate import Estimate
from deniable.estimation.methods import METHODS, estimate

__all__ = ["METHODS", "Estimate", "estimate"]
