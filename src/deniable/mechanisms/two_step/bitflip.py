"""Microsoft's d-bit flipping: a device is asked about w of the k values, and answers w bits.

Ding, Kulkarni and Yekhanin (2017), also written wBitFlip; with a memo, dBitFlipPM.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Counts, Floats
from deniable.core.domain import DomainLike
from deniable.core.integers import Design, Threshold
from deniable.core.layout import Bits, Record, exact_sum
from deniable.core.mechanism import batches
from deniable.core.registry import register
from deniable.errors import InvalidArgument
from deniable.mechanisms.frequency import Line, Supports
from deniable.mechanisms.packed import PackedMechanism, has_bit, unpacked
from deniable.mechanisms.two_step.memoised import MemoisedSupports
from deniable.mechanisms.unary import odds
from deniable.privacy import Guarantee, KeptBit, MemoisedGuarantee, kept_below
from deniable.randomness import SCALE, Coins, Keystream

#: Values that a device is asked about unless the caller says otherwise.
USUAL_WIDTH = 4


@register
class DBitFlip(PackedMechanism, Supports):
    """A report (asked, yes): two sets of values, the ``w`` asked about and those answered with yes.

    The asked ones are any w of the k, whatever the answer. Each is answered rightly with p = s / (s
    + 1), s = e^(eps / 2); two values differ in at most two of the bits, so that is exactly
    epsilon-LDP. With w = 1 they differ in one, and s = e^eps. With Y_v yeses of A_v that were asked
    about v, f_v = (k / (n w)) (Y_v - q A_v) / (p - q), q = 1 - p; n Var = (k / w) p q / (p - q)^2 +
    (k / w - 1) f_v. With w = k it is SUE.
    """

    name = "dbitflip"
    paper = "Ding et al. 2017"
    good_for = "comparison with Microsoft's telemetry"
    w = Design(1, lambda m: m.domain.size)
    keep = Threshold()

    def derive_w(self) -> int:
        return min(USUAL_WIDTH, self.domain.size)

    def derive_keep(self) -> int:
        return kept_below(Fraction(self.epsilon) / self.differing)

    @property
    def differing(self) -> int:
        """How many bits of a report two values differ in at most."""
        return min(2, self.w)

    def report(self, value: int, coins: Coins) -> tuple[bytes, bytes]:
        asked = self.ask(coins)
        return asked, self.flip(asked, value, coins)

    def ask(self, coins: Coins) -> bytes:
        """Any w of the values, by a partial Fisher-Yates shuffle: w words."""
        values = list(range(self.domain.size))
        for i in range(self.w):
            j = i + coins.choice(len(values) - i)
            values[i], values[j] = values[j], values[i]
        return self.sets.of(values[: self.w])

    def flip(self, asked: bytes, value: int, coins: Coins) -> bytes:
        """The answers to what was asked: w words."""
        return self.sets.of(
            v
            for v in range(self.domain.size)
            if has_bit(asked, v) and coins.below(self.keep) == (v == value)
        )

    @property
    def coin_words(self) -> int:
        return 2 * self.w

    @cached_property
    def layout(self) -> Record:
        asked = Bits(self.domain.size, self.w)
        return Record({"asked": asked, "yes": self.sets}, (_answered, _all_answered))

    @cached_property
    def guarantee(self) -> Guarantee:
        ratio = odds(Fraction(self.keep, SCALE))
        return Guarantee(max(ratio, 1 / ratio) ** self.differing)

    @property
    def p(self) -> Fraction:
        return Fraction(self.w * self.keep, self.domain.size * SCALE)

    @property
    def q(self) -> Fraction:
        return Fraction(self.w * (SCALE - self.keep), self.domain.size * SCALE)

    # ---- counts: how often each value was asked about, and then how often with a yes

    @property
    def cells(self) -> int:
        return 2 * self.domain.size

    def count(self, data: NDArray[Any]) -> Counts:
        return self.layout.count_parts(data)

    def possible_counts(self, counts: Counts, n: int) -> bool:
        asked, yes = counts.reshape(2, -1)
        inside = np.all((yes >= 0) & (yes <= asked) & (asked <= n))
        return bool(inside) and exact_sum(asked) == n * self.w

    def told(self, data: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
        """-1 if a device was not asked about a value, else the bit that it answered."""
        asked, yes = (
            unpacked(data[name], self.domain.size)[:, values] for name in ("asked", "yes")
        )
        return np.where(asked, yes.astype(np.int8), np.int8(-1))

    def supports(self, counts: Counts, n: int) -> None:
        """None: a report says nothing about values that it was not asked about."""

    def unbiased(self, counts: Counts, n: int) -> Floats:
        asked, yes = counts.reshape(2, -1)
        return np.asarray((yes - self.flipped * asked) * self.gain / n)

    @property
    def flipped(self) -> float:
        """The probability that a question is answered wrongly, q of a bit."""
        return 1 - self.keep / SCALE

    @property
    def gain(self) -> float:
        """k / (w (p - q))."""
        return float(Fraction(self.domain.size * SCALE, self.w * (2 * self.keep - SCALE)))

    def variance_line(self, f: Floats, n: int) -> Line:
        share = self.domain.size / self.w
        a = self.flipped * (1 - self.flipped) * self.gain**2 / share
        return Line(np.full(f.shape, a), np.full(f.shape, share - 1))

    def fill(self, values: NDArray[np.uint32], out: NDArray[Any], keystream: Keystream) -> None:
        asked = self._asked_rows(len(values), keystream)
        out["asked"][: len(values)] = asked
        out["yes"][: len(values)] = self._yes_rows(asked, values, keystream)

    def _asked_rows(self, n: int, keystream: Keystream) -> NDArray[np.uint8]:
        """Sets of w values that prefer none: value 0 is in with w / k, to 2**-64."""
        from deniable.kernels.bits import clear_padding
        from deniable.kernels.subset import fill_subsets

        k, zeros = self.domain.size, np.zeros(n, dtype=np.uint32)
        asked = self.empty_rows(n)
        if self.w == k:
            asked[:] = 255
            clear_padding(asked, k)
            return asked[:n]
        share = np.uint64(self.w * SCALE // k)
        for some, rows, words in batches(zeros, asked, keystream, 1):
            fill_subsets(rows, some, k, self.w, words < share, keystream)
        return asked[:n]

    def _yes_rows(
        self, asked: NDArray[np.uint8], keys: NDArray[Any], keystream: Keystream
    ) -> NDArray[np.uint8]:
        """Bits of all values, of which those that are asked about are told.

        The key k stands for a value that is not asked about: then the bit of 0 is like all others.
        """
        from deniable.kernels.bits import fill_unary

        yes, k = self.empty_rows(len(keys)), self.domain.size
        for some, rows, words in batches(keys, yes, keystream, 1):
            inside = some < k
            own = (words < np.uint64(self.keep)) == inside
            ones = np.where(inside, some, 0).astype(np.uint32)
            fill_unary(rows, ones[None, :], k, own[None, :], SCALE - self.keep, keystream)
        return yes[: len(keys)] & asked


_ASKED_ONLY = "answers to what is asked only"


def _answered(parts: Sequence[bytes]) -> str | None:
    asked, yes = (int.from_bytes(part, "little") for part in parts)
    return _ASKED_ONLY if yes & ~asked else None


def _all_answered(parts: Sequence[NDArray[Any]]) -> str | None:
    asked, yes = parts
    return _ASKED_ONLY if np.any(yes & ~asked) else None


@register
class DBitFlipPM(MemoisedSupports, DBitFlip):
    """DBitFlip with permanent memoisation: the questions are drawn once, the answers once a key.

    All values that a device is not asked about have one key, so that most changes of the answer
    show in nothing. But the reports of a key are all the same: they
    can be told apart from those of most others, and so be followed.
    """

    name = "dbitflippm"
    key_is_value = False
    good_for = "comparison with Microsoft's telemetry; reports can be followed"

    @classmethod
    def repeated(cls, domain: DomainLike, epsilon_inf: float, first: float | None = None) -> Self:
        if first is not None:
            raise InvalidArgument("epsilon_1", first, "left out: all reports are the same")
        return cls(domain, epsilon_inf)

    def begin(self, coins: Coins) -> bytes:
        return self.ask(coins)

    def key(self, begun: bytes, value: int) -> int:
        """The value, or k if it is not asked about."""
        return value if has_bit(begun, value) else self.domain.size

    def memoise(self, begun: bytes, key: int, coins: Coins) -> bytes:
        return self.flip(begun, key, coins)

    def instant(self, begun: bytes, kept: bytes, coins: Coins) -> tuple[bytes, bytes]:
        return begun, kept

    @property
    def begin_words(self) -> int:
        return self.w

    @property
    def memoise_words(self) -> int:
        return self.w

    @property
    def instant_words(self) -> int:
        return 0

    @property
    def permanent_p(self) -> Fraction:
        return self.p

    @property
    def permanent_q(self) -> Fraction:
        return self.q

    @cached_property
    def permanent_guarantee(self) -> MemoisedGuarantee:
        """One report tells all that is kept.

        The key of what is not asked about differs from others in one bit only, so that w + 1 keys
        tell no more than w of them; a single asked value and the rest are two.
        """
        kept = Fraction(self.keep, SCALE)
        if not 2 * kept > 1:
            self._refuse_thresholds("such that a bit is kept more often than flipped")
        return MemoisedGuarantee.of(
            (KeptBit(kept, 1 - kept, None),) * self.differing, max(2, self.w)
        )

    @property
    def guarantee(self) -> MemoisedGuarantee:
        return self.permanent_guarantee

    def repeated_line(self, f: Floats) -> Line:
        """The second report says what the first did."""
        return self.variance_line(f, 1)

    def begin_all(self, n: int, keystream: Keystream) -> NDArray[Any]:
        return self._asked_rows(n, keystream)

    def keys_of(self, begun: NDArray[Any], values: NDArray[Any]) -> NDArray[np.uint64]:
        bytes_ = begun[np.arange(len(values)), values >> 3]
        asked = bytes_ >> (values & 7).astype(np.uint8) & 1
        return np.where(asked, values, self.domain.size).astype(np.uint64)

    def memoise_all(
        self, begun: NDArray[Any], keys: NDArray[np.uint64], keystream: Keystream
    ) -> NDArray[Any]:
        return self._yes_rows(begun, keys, keystream)

    def instant_all(
        self, begun: NDArray[Any], kept: NDArray[Any], keystream: Keystream
    ) -> NDArray[Any]:
        out = np.empty(len(kept), dtype=self.dtype)
        out["asked"], out["yes"] = begun, kept
        return out
