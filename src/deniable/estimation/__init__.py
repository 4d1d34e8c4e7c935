"""Counts in, numbers with error bars out."""

from deniable.estimation.combine import combine
from deniable.estimation.estimate import Estimate, Frequencies, Numbers, Quantity
from deniable.estimation.frequencies.task import FREQUENCIES
from deniable.estimation.methods import METHODS
from deniable.estimation.numbers.task import MEAN

__all__ = [
    "FREQUENCIES",
    "MEAN",
    "METHODS",
    "Estimate",
    "Frequencies",
    "Numbers",
    "Quantity",
    "combine",
]
