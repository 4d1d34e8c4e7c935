"""The operating system's randomness, replaced by a stream that a test can read."""

from __future__ import annotations

import os
import random
import secrets
import time
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np

from deniable.randomness import Keystream

#: Whatever else coins or ids could be made of.
CLOCKS = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns",
          "process_time", "process_time_ns")  # fmt: skip
SOURCES: list[tuple[Any, str]] = [
    (os, "getrandom"), (uuid, "uuid1"), (uuid, "uuid4"), (uuid, "getnode"),
    (secrets, "token_bytes"), (secrets, "token_hex"), (secrets, "randbits"), (secrets, "choice"),
    (random, "random"), (random, "getrandbits"), (random, "randbytes"), (random, "Random"),
    (random, "SystemRandom"), (np.random, "default_rng"), (np.random, "bytes"),
    (np.random, "random"), (np.random, "randint"),
]  # fmt: skip


class Recorded:
    """Random bytes that are known, in the pieces in which they were asked for."""

    def __init__(self, key: bytes = b"\7" * 32) -> None:
        self._stream = Keystream(key)
        self.pieces: list[bytes] = []
        #: What is made of the bytes before they are given away.
        self.change: Callable[[int, bytes], bytes] = lambda number, piece: piece

    def urandom(self, count: int) -> bytes:
        piece = self.change(len(self.pieces), self._stream.bytes(count))
        self.pieces.append(piece)
        return piece

    def taken(self) -> list[bytes]:
        """The pieces since the last call."""
        found, self.pieces = self.pieces, []
        return found


def record(monkeypatch: Any, *, clock: int | None = None, key: bytes = b"\7" * 32) -> Recorded:
    """Replace all randomness from here on; clocks stand still at ``clock``, or are refused."""
    recorded = Recorded(key)
    monkeypatch.setattr(os, "urandom", recorded.urandom)
    for place, name in SOURCES:
        if hasattr(place, name):
            monkeypatch.setattr(place, name, _refusing(name))
    for name in CLOCKS:
        still = _refusing(name) if clock is None else _standing(clock, name.endswith("_ns"))
        monkeypatch.setattr(time, name, still)
    return recorded


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(*given: Any, **named: Any) -> Any:
        raise AssertionError(f"{name} was asked on the way to a report")

    return refuse


def _standing(clock: int, nanoseconds: bool) -> Callable[[], float]:
    return lambda: clock * 10**9 if nanoseconds else float(clock)
