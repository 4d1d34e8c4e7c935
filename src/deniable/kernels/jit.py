"""How a kernel is compiled: without the interpreter lock, cached on disk where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile ``function`` at its first call."""
    try:
        compiled: Any = numba.njit(nogil=True, error_model="numpy", cache=True)(function)
    except RuntimeError:  # nowhere to keep a cache: compile anew in every process
        compiled = numba.njit(nogil=True, error_model="numpy")(function)
    return cast(Function, compiled)


def inlined(function: Function) -> Function:
    """Compile ``function`` into each kernel that calls it."""
    compiled: Any = numba.njit(inline="always", error_model="numpy")(function)
    return cast(Function, compiled)
