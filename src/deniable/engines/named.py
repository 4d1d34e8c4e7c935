"""Engines by name."""

from __future__ import annotations

from collections.abc import Callable

from deniable.engines.base import Engine
from deniable.engines.local import LocalEngine
from deniable.errors import InvalidArgument


def _local(master: str | None) -> Engine:
    if master is not None:
        raise InvalidArgument("master", master, "left out with the engine 'local'")
    return LocalEngine()


def _spark(master: str | None) -> Engine:
    from deniable.engines.spark import SparkEngine

    return SparkEngine(master)


_ENGINES: dict[str, Callable[[str | None], Engine]] = {"local": _local, "spark": _spark}


def engine_named(name: str, master: str | None = None) -> Engine:
    """The engine of this name; ``master`` is the address of the cluster, where there is one."""
    if name not in _ENGINES:
        raise InvalidArgument("engine", name, f"one of {', '.join(_ENGINES)}")
    return _ENGINES[name](master)
