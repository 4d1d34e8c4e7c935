"""Columns of numbers: the doubles of what people answered, who answered nothing, and the unit."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np

from deniable.arrays import Bools, Floats
from deniable.core.domain import Domain, Key, refuse_what_is_no_column, to_list
from deniable.errors import InvalidArgument, Unshown, is_number
from deniable.extras import pyarrow
from deniable.texts import require_text

#: What numbers are numbers of, for people to read: "hours".
UNIT = Key(lambda unit: require_text("unit", unit), wording=True)
#: What to do with missing answers of an optional question, in tables that somebody else filled.
MISSING = ("refuse", "skip")


def as_doubles(values: Any, optional: bool) -> tuple[Floats, Bools]:
    """Finite doubles of a column of numbers, and where None stands for a skip.

    Booleans, texts, infinities and what is not a number are refused by their place. Columns of
    numbers are taken as they are; others are looked at one by one, for a list may mix them.
    """
    refuse_what_is_no_column(values)
    array = np.asarray(values) if _holds_numbers(values) else None
    if array is not None and array.dtype.kind in "iuf":
        doubles = array.astype(np.float64)
        skipped = np.zeros(len(doubles), dtype=np.bool_)
    else:
        answers = to_list(values)
        skipped = np.array([optional and answer is None for answer in answers], dtype=np.bool_)
        found = (0.0 if skip else _double(x) for x, skip in zip(answers, skipped, strict=True))
        doubles = np.fromiter(found, np.float64, len(answers))
    allowed = "a finite number, or None for a skip" if optional else "a finite number"
    refuse_first(~np.isfinite(doubles), allowed, values)
    return doubles, skipped


def refuse_first(wrong: Bools, allowed: str, values: Any) -> None:
    """Refuse the first answer that is wrong by its place; the answer itself is not repeated."""
    if wrong.any():
        place = int(np.argmax(wrong))
        raise InvalidArgument(f"values[{place}]", Unshown(to_list(values)[place]), allowed)


def check_missing(missing: Any) -> str:
    """What to do with missing answers, if it is one of `MISSING`."""
    if not isinstance(missing, str) or missing not in MISSING:
        raise InvalidArgument("missing", missing, f"one of {', '.join(MISSING)}")
    return missing


def gaps_closed(column: Any, domain: Domain, missing: str) -> Any:
    """An Arrow column of answers whose gaps, null and NaN, are null, or a refusal of the first.

    Nobody knows whether a gap in a table is a mistake or somebody who skipped an optional question:
    ``missing="skip"`` says that it is the second.
    """
    if not domain.optional:
        return column
    gaps, arrow = column.is_null(nan_is_null=True), pyarrow()
    if missing == "refuse":
        allowed = 'an answer; missing="skip" takes missing ones for people who skipped the question'
        refuse_first(np.asarray(gaps), allowed, column)
    numbers = arrow.types.is_floating(column.type)
    nothing = arrow.scalar(None, column.type)
    return arrow.compute.if_else(gaps, nothing, column) if numbers else column


def _holds_numbers(values: Any) -> bool:
    """Whether it is an array of one type without gaps; Arrow counts nulls as an attribute."""
    nulls = getattr(values, "null_count", 0)
    return hasattr(values, "__array__") and not (nulls() if callable(nulls) else nulls)


def _double(answer: Any) -> float:
    """The number as a double; what is none becomes NaN, which is refused with its place.

    Tables keep money as decimals, so these are numbers, too.
    """
    try:
        return float(answer) if is_number(answer) or isinstance(answer, Decimal) else math.nan
    except (OverflowError, ValueError):  # too large, or a decimal that signals
        return math.nan
