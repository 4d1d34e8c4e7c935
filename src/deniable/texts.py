"""Texts that people typed: one answer, however it was spelt.

``tidy`` gives the same result as the function of this name in the JavaScript client, so that
devices and analysts hash the same bytes (docs/wire-format.md).
"""

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias
from unicodedata import category, normalize

from deniable.errors import InvalidArgument

Fold: TypeAlias = Literal["case", "none"]

#: The longest stable name of an answer, in code points.
MOST_ID = 100

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


def require_text(name: str, value: Any, *, empty: bool = False, lines: bool = False) -> str:
    """Refuse what people could not read; where ``lines`` are allowed, they end in a line feed."""
    readable = isinstance(value, str) and value == value.encode(errors="ignore").decode()
    if not readable or not (empty or value.strip()):
        raise InvalidArgument(name, value, "text")
    if has_controls(value.replace("\n", "") if lines else value):
        kind = "text" if lines else "text on one line"
        raise InvalidArgument(name, value, f"{kind} without control characters")
    return str(value)


def has_controls(text: str) -> bool:
    """Whether a text could steer a terminal: arrow keys, line ends, escape sequences."""
    return any(category(character) == "Cc" for character in text)


def require_id(name: str, value: Any) -> str:
    """Refuse what cannot be the stable name of an answer: reports, exports and hashes use it."""
    require_text(name, value)
    if len(value) > MOST_ID or tidy(value, "none") != value:
        allowed = f"text of at most {MOST_ID} characters (NFC, single blanks, none at the ends)"
        raise InvalidArgument(name, value, allowed)
    return str(value)
