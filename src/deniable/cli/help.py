"""Help without the types of Python: switches take no value, and lists are of texts or numbers."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand, TyperGroup

_WORDS = {"str": "text", "int": "number", "float": "number", "Path": "path"}
#: Such as <int>, <int range> and <list[int]>.
_TYPE = re.compile(r"<(?:list\[)?(\w+)(?: range)?\]?>")


class PlainCommand(TyperCommand):
    """A command whose help shows what a stranger would call the values."""

    def get_params(self, ctx: Any) -> list[Any]:
        return [_plain(param) for param in super().get_params(ctx)]


class PlainGroup(TyperGroup):
    """The same of all commands together."""

    def get_params(self, ctx: Any) -> list[Any]:
        return [_plain(param) for param in super().get_params(ctx)]


def _plain(param: Any) -> Any:
    # A parameter of our own class cannot be had, and a metavar renames arguments.
    vars(param)["display_type_rich"] = lambda ctx: _shown(param, ctx)
    return param


def _shown(param: Any, ctx: Any) -> str:
    if getattr(param, "is_flag", False):
        return ""
    shown = str(param.display_type(ctx))
    found = _TYPE.fullmatch(shown)
    return f"<{_WORDS.get(found[1], found[1])}>" if found else shown
