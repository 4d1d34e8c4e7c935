"""Optional dependencies, imported when first needed, with a message that says what to install."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any

from deniable.errors import MissingExtra


def _load(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(module, extra) from error


def pyarrow() -> Any:
    return _load("pyarrow", "data")


def pandas() -> Any:
    return _load("pandas", "data")


def altair() -> Any:
    """Altair, with its renderer for files at hand."""
    _load("vl_convert", "plot")
    return _load("altair", "plot")


def psycopg() -> Any:
    return _load("psycopg", "postgres")


def pyspark(module: str) -> Any:
    """A module of PySpark, or of what comes with it."""
    return _load(module, "spark")


def papers() -> Any:
    """The command of the package that runs papers again."""
    return _load("deniable_papers.command", "papers")


def service() -> None:
    """Refuse to go on without everything that a collector needs; nothing is loaded yet."""
    for module in ("starlette", "uvicorn", "httptools", "msgspec", "pyarrow"):
        if find_spec(module) is None:
            raise MissingExtra(module, "serve")
