"""Kinds of answers, one file each: they register themselves in `deniable.core.domain`."""

from __future__ import annotations

import importlib
import pkgutil

from deniable.answers.choice import Bins, Choice, Listed, YesNo
from deniable.answers.items import Items
from deniable.answers.number import Number
from deniable.answers.several import Several
from deniable.answers.text import OUTSIDE, Candidates, Text

__all__ = [
    "OUTSIDE",
    "Bins",
    "Candidates",
    "Choice",
    "Items",
    "Listed",
    "Number",
    "Several",
    "Text",
    "YesNo",
]

# Every file of this folder registers its kinds: a new one needs no line here.
for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
