"""How a table can be printed."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    """How a command prints its table."""

    table = "table"
    json = "json"
    csv = "csv"
