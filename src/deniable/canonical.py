"""Canonical JSON (RFC 8785): the same data has the same bytes in every language.

What is published is hashed as it is served, so a reader parses it, writes it anew, and refuses
other bytes. That rules out keys that stand twice, odd escapes, -0, 1e400 and trailing bytes.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping
from typing import Any

from deniable.errors import CorruptData, InvalidArgument

#: Integers up to here are exact in every JSON reader.
MOST_INTEGER = (1 << 53) - 1


def canonical(data: Any) -> bytes:
    """The bytes of JSON data: keys sorted, no blanks, numbers as ECMAScript writes them."""
    try:
        return _written(data).encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument("data", data, "text that UTF-8 can carry") from error


def parsed(data: bytes, noun: str) -> Any:
    """The JSON data that these bytes are the canonical form of."""
    try:
        text = data.decode()
        found = json.loads(text, parse_int=_number, parse_constant=_refuse_constant)
        again = canonical(found)
    except (ValueError, RecursionError) as error:
        raise CorruptData(f"this is not a {noun}: {error}") from error
    if again != data:
        raise CorruptData(f"this is not a {noun}: it is not written in canonical JSON (RFC 8785)")
    return found


def _number(digits: str) -> int | float:
    """An integer, or the double that JavaScript reads."""
    number = int(digits)
    return number if abs(number) <= MOST_INTEGER else float(digits)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _written(data: Any) -> str:
    if isinstance(data, str):
        return json.dumps(data, ensure_ascii=False)
    if data is None or isinstance(data, bool):
        return json.dumps(data)
    if isinstance(data, int):
        return _integer(data)
    if isinstance(data, float):
        return _double(data)
    if isinstance(data, Mapping):
        # In JavaScript's order, that of UTF-16.
        keys = sorted(data, key=lambda key: str(key).encode("utf-16-be", "surrogatepass"))
        return "{" + ",".join(f"{_key(key)}:{_written(data[key])}" for key in keys) + "}"
    if isinstance(data, (list, tuple)):
        return "[" + ",".join(map(_written, data)) + "]"
    raise InvalidArgument("data", data, "JSON")


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise InvalidArgument("key", key, "text")
    return json.dumps(key, ensure_ascii=False)


def _integer(number: int) -> str:
    if abs(number) <= MOST_INTEGER:
        return str(number)
    if abs(number) > sys.float_info.max or float(number) != number:
        raise InvalidArgument("data", number, "an integer below 2**53, or one that is a double")
    return _double(float(number))


def _double(number: float) -> str:
    """As ``Number.prototype.toString`` writes it, from the same shortest digits."""
    if not math.isfinite(number):
        raise InvalidArgument("data", number, "a finite number")
    if number == 0:
        return "0"
    found = re.fullmatch(r"(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?", repr(number))
    assert found is not None
    sign, whole, part, exponent = found.groups(default="")
    point = len(whole) + int(exponent or 0)
    digits = (whole + part).rstrip("0")
    point -= len(digits) - len(digits := digits.lstrip("0"))
    return sign + _placed(digits, point)


def _placed(digits: str, point: int) -> str:
    """The digits with a decimal point after the first ``point`` of them, or with an exponent."""
    if len(digits) <= point <= 21:
        return digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    power = f"e{point - 1:+d}"
    return f"{digits[0]}.{digits[1:]}{power}" if len(digits) > 1 else f"{digits}{power}"
