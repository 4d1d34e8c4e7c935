"""Kinds of answers, one file each: they register themselves in `deniable.core.domain`."""

from __future__ import annotations

from deniable.answers.choice import Bins, Choice, Listed, YesNo
from deniable.answers.number import Number
from deniable.answers.several import Several
from deniable.answers.text import OUTSIDE, Candidates, Text

__all__ = [
    "OUTSIDE",
    "Bins",
    "Candidates",
    "Choice",
    "Listed",
    "Number",
    "Several",
    "Text",
    "YesNo",
]
