"""Texts that people typed: one answer, however it was spelt.

``tidy`` gives the same result as the function of this name in the JavaScript client, so that
devices and analysts hash the same bytes (docs/wire-format.md).
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias
from unicodedata import normalize

Fold: TypeAlias = Literal["case", "none"]

#: Python's ``\\s`` and ``strip``, and JavaScript's, each know other blanks: so they are listed.
_BLANKS = re.compile(
    "[\u0009-\u000d\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+"
)


def tidy(text: str, fold: Fold = "case") -> str:
    """NFC, folded if ``fold`` is "case"; runs of blanks are one blank, and none at the ends.

    Folding is upper case and then lower case, so that "Straße" and "STRASSE" are one answer.
    """
    tidied = normalize("NFC", text)
    if fold == "case":
        tidied = normalize("NFC", tidied.upper().lower())
    return _BLANKS.sub(" ", tidied).strip(" ")
