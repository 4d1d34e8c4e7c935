"""Coins: every random decision of the package comes from here, and from nowhere else.

A report is a pure function of a value and random bytes. The function that makes it draws through
three primitives only, `Coins.below`, `Coins.choice` and `Coins.pick`; each eats one 64-bit
little-endian word, so the number of bytes never depends on the value, and any language can replay a
report byte for byte.

Many reports at once read an AES-256-CTR keystream. Its key is drawn from the kernel for every call,
so there is no generator state that a fork could copy or two threads could share, and a kernel
that cannot deliver raises before any report exists. Only a caller who passes a NumPy ``Generator``
gets a key from elsewhere: that is a simulation.
"""

from __future__ import annotations

import hmac
import os
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.random import Generator

#: The scale of every probability: a threshold T stands for T / 2**64.
SCALE = 1 << 64
WORD_BYTES = 8
KEY_BYTES = 32
#: Words handed out at once; 512 KiB stay in the second-level cache.
BLOCK_WORDS = 1 << 16

Words = NDArray[np.uint64]


class Coins(Protocol):
    """What a mechanism may draw."""

    def below(self, threshold: int) -> bool:
        """True with probability exactly ``threshold / 2**64``."""

    def choice(self, size: int) -> int:
        """An index of ``0..size-1``; index i has weight `choice_weight(i, size)` out of 2**64."""

    def pick(self, edges: Sequence[int]) -> int:
        """An index of ``0..len(edges)``; the edges, in ascending order, cut 2**64 into weights."""


class ByteCoins:
    """Coins read from given bytes, one 64-bit little-endian word a draw.

    Running out raises, and so does `finish` when bytes are left: a report that uses another
    number of words than its mechanism declares never leaves.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def _word(self) -> int:
        start, self._position = self._position, self._position + WORD_BYTES
        if self._position > len(self._data):
            raise RuntimeError(f"the coins ran out after {len(self._data)} bytes")
        return int.from_bytes(self._data[start : self._position], "little")

    def below(self, threshold: int) -> bool:
        return self._word() < threshold

    def choice(self, size: int) -> int:
        return self._word() * size >> 64

    def pick(self, edges: Sequence[int]) -> int:
        return bisect_right(edges, self._word())

    def finish(self) -> None:
        """Check that every byte was used."""
        if self._position != len(self._data):
            raise RuntimeError(f"only {self._position} of {len(self._data)} random bytes were used")


def choice_weight(index: int, size: int) -> int:
    """How many of the 2**64 words give ``index``: those w with index = floor(w * size / 2**64).

    It is floor(2**64 / size) or one more; all weights are equal when size is a power of two.
    """
    return -(-(index + 1) * SCALE // size) + (-index * SCALE // size)


def require_generator(rng: object) -> None:
    """Refuse what cannot drive a simulation."""
    if not isinstance(rng, np.random.Generator):
        raise InvalidArgument("rng", rng, "a numpy.random.Generator")


def draw_key(rng: Generator | None) -> bytes:
    """A fresh keystream key: from the kernel, or from the caller's generator in a simulation."""
    if rng is None:
        return os.urandom(KEY_BYTES)
    if not isinstance(rng, np.random.Generator):
        raise InvalidArgument("rng", rng, "None (secure coins) or a numpy.random.Generator")
    return rng.bytes(KEY_BYTES)


def derived_key(secret: bytes, *parts: str | bytes) -> bytes:
    """The key that belongs to some parts: HMAC-SHA256, under ``secret``, of them and their lengths.

    Without the secret, keys of different parts look like fresh ones.
    """
    encoded = [part.encode() if isinstance(part, str) else part for part in parts]
    message = b"".join(len(part).to_bytes(8, "big") + part for part in encoded)
    return hmac.digest(secret, message, "sha256")


class Keystream:
    """The words of AES-256-CTR under ``key``; every ``index`` is a stream of its own.

    Work is cut into chunks, and chunk i reads stream i: results do not depend on how many threads
    shared the work.
    """

    def __init__(self, key: bytes, index: int = 0) -> None:
        self._key = key
        self._buffer = np.empty(BLOCK_WORDS, dtype="<u8")
        self.seek(index)

    def seek(self, index: int) -> None:
        """Go to the start of stream ``index``."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        counter = index.to_bytes(8, "big") + bytes(8)
        self._cipher = Cipher(algorithms.AES256(self._key), modes.CTR(counter)).encryptor()
        self._start = BLOCK_WORDS

    def bytes(self, count: int) -> bytes:
        """The next ``count`` bytes of the stream."""
        return self._cipher.update(bytes(count))

    def words(self, count: int) -> Words:
        """The next ``count`` words (at most `BLOCK_WORDS`), valid until the next call."""
        view = self.lend(count)[:count]
        self.use(count)
        return view

    def lend(self, at_least: int) -> Words:
        """Some unused words, ``at_least`` so many (at most `BLOCK_WORDS`). Follow with `use`."""
        if at_least > BLOCK_WORDS:
            raise ValueError(f"at most {BLOCK_WORDS} words at once; got {at_least}")
        left = BLOCK_WORDS - self._start
        if left < at_least:
            self._buffer[:left] = self._buffer[self._start :].copy()
            fresh = self._buffer[left:]
            self._cipher.update_into(_ZEROS[: fresh.nbytes], fresh.view(np.uint8).data)
            self._start = 0
        return self._buffer[self._start :]

    def use(self, count: int) -> None:
        """Declare the first ``count`` of the words lent last as used."""
        if count > BLOCK_WORDS - self._start:
            raise RuntimeError(f"{count} words were used, more than were lent")
        self._start += count


_ZEROS = memoryview(bytes(BLOCK_WORDS * WORD_BYTES))
