"""Counts in, numbers with error bars out."""

import importlib
import pkgutil
from importlib.util import find_spec

from deniable.estimation.combine import combine
from deniable.estimation.estimate import Estimate, Frequencies, Quantity
from deniable.estimation.frequencies.methods import METHODS
from deniable.estimation.frequencies.task import FREQUENCIES
from deniable.estimation.numbers.estimate import Numbers
from deniable.estimation.numbers.task import DISTRIBUTIONS, MEANS
from deniable.estimation.shares.estimate import Pairs, Shares

__all__ = [
    "DISTRIBUTIONS",
    "FREQUENCIES",
    "MEANS",
    "METHODS",
    "Estimate",
    "Frequencies",
    "Numbers",
    "Pairs",
    "Quantity",
    "Shares",
    "combine",
]

# Every folder with a `task` registers it: a new one needs no line here.
for _folder in pkgutil.iter_modules(__path__):
    if _folder.ispkg and find_spec(f"{__name__}.{_folder.name}.task"):
        importlib.import_module(f"{__name__}.{_folder.name}.task")
