"""Good bytes made bad: flips, cuts, insertions, copies of chunks, and lengths that lie."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence

from hypothesis import strategies as st


def flip(body: bytearray, rng: random.Random) -> None:
    body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)


def overwrite(body: bytearray, rng: random.Random) -> None:
    body[rng.randrange(len(body))] = rng.randrange(256)


def cut(body: bytearray, rng: random.Random) -> None:
    del body[rng.randrange(len(body)) :]


def insert(body: bytearray, rng: random.Random) -> None:
    place = rng.randrange(len(body))
    body[place:place] = rng.randbytes(rng.randrange(1, 9))


def drop(body: bytearray, rng: random.Random) -> None:
    place = rng.randrange(len(body))
    del body[place : place + rng.randrange(1, 33)]


def repeat(body: bytearray, rng: random.Random) -> None:
    start, size, place = rng.randrange(len(body)), rng.randrange(1, 200), rng.randrange(len(body))
    body[place:place] = body[start : start + size]


def lie(body: bytearray, rng: random.Random) -> None:
    """Another number where a length may stand."""
    place = rng.randrange(0, max(len(body) - 8, 1), 4)
    number = rng.choice([0, 1, 8, 0xFF, 0x7FFF_FFFF, 0xFFFF_FFFF, 1 << 40, (1 << 63) - 1])
    body[place : place + 8] = struct.pack("<Q", number)


KINDS: tuple[Callable[[bytearray, random.Random], None], ...] = (
    flip, overwrite, cut, insert, drop, repeat, lie,
)  # fmt: skip


def mutate(body: bytes, rng: random.Random) -> bytes:
    """The body after one to four mutations."""
    content = bytearray(body)
    for _ in range(rng.randint(1, 4)):
        if content:
            rng.choice(KINDS)(content, rng)
    return bytes(content)


def mutated(good: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Mutations of some good bodies."""
    return st.builds(
        lambda body, seed: mutate(body, random.Random(seed)),
        st.sampled_from(good),
        st.integers(0, 1 << 32),
    )
