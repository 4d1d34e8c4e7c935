"""`Coins.choice`, on words."""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable.kernels.jit import inlined

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


@inlined
def bounded(word: Any, size: Any) -> Any:
    """floor(word * size / 2**64) for size < 2**32, exactly as `ByteCoins.choice`."""
    low = ((word & _LOW) * size) >> _HALF
    return ((word >> _HALF) * size + low) >> _HALF
