"""Discrete Laplace noise as integer weights: the law of SHE, exactly."""

from __future__ import annotations

from functools import lru_cache

from deniable.randomness import SCALE


@lru_cache(maxsize=64)
def clamped_laplace(decay: int, steps: int, reach: int) -> tuple[int, ...]:
    """Weights W(y), y = -B..L+B, out of 2**64, of Z with P(Z = z) ~ a^|z|, clamped to that range.

    a = ``decay`` / 2**64, L = ``steps``, B = ``reach``; P(Z = z) = a^|z| (1 - a) / (1 + a), and the
    ends hold their tails. The noise around L has the weights W(L - y), so no pair of weights
    matters to privacy but (L - y, y), and for every y > L / 2 we want W(L - y) <= W(y) a^-L:

    - from y = L on the far weight W(y) is rounded down, then the near one is W(y) a^-L, rounded
      down;
    - between 0 and L the ratio of the two is a^-(2 y - L), far enough from a^-L to round freely;
    - the middle takes what is left, at least what it should have since all was rounded down: for
      even L it is y = L / 2, alone; for odd L a pair in the ratio 1 / a, the far one rounded up.
    """
    end = steps + reach
    weights = dict.fromkeys(range(-reach, end + 1), 0)
    for y in range(steps // 2 + 1, end + 1):
        if 2 * y == steps + 1:
            continue
        weights[y] = _weight(decay, y, y == end)
        near = steps - y
        tight = y >= steps
        weights[near] = (
            (weights[y] << 64 * steps) // decay**steps if tight else _weight(decay, near, False)
        )
    left = SCALE - sum(weights.values())
    middle = (steps + 1) // 2
    weights[middle] = left if steps % 2 == 0 else -(-left * decay // (SCALE + decay))
    if steps % 2:
        weights[middle - 1] = left - weights[middle]
    return tuple(weights.values())


def _weight(decay: int, y: int, is_end: bool) -> int:
    """2**64 P(Z = y), or 2**64 P(Z >= y) at the end, rounded down; y > 0."""
    share = SCALE if is_end else SCALE - decay
    power: int = decay**y
    return power * share // ((SCALE + decay) << 64 * (y - 1))
