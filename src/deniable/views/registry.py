"""One view of many classes of results."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar

from deniable.errors import InvalidArgument

Function = TypeVar("Function", bound=Callable[..., Any])
#: The packages whose results have views, each in a module of its name.
PACKAGES = ("audit", "estimation", "privacy", "rounds")


class View:
    """A function of a result, by its class: ``@chart.register(Frequencies)``."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._known: dict[type, Callable[..., Any]] = {}

    def register(self, kind: type) -> Callable[[Function], Function]:
        """Say how results of a class, and of classes that come from it, look."""

        def known(function: Function) -> Function:
            self._known[kind] = function
            return function

        return known

    def unregister(self, kind: type) -> None:
        """Forget what `register` was told."""
        self._known.pop(kind, None)

    def __call__(self, result: Any, *given: Any, **choices: Any) -> Any:
        for kind in type(result).__mro__:
            _load(kind)
            if kind in self._known:
                return self._known[kind](result, *given, **choices)
        raise InvalidArgument("result", type(result).__name__, f"something that has a {self.name}")


def _load(kind: type) -> None:
    top, _, rest = kind.__module__.partition(".")
    package = rest.partition(".")[0]
    if top == "deniable" and package in PACKAGES:
        importlib.import_module(f"deniable.views.{package}")
