"""Mechanisms of two steps: one draw that a device keeps for ever, and one for every report.

Whatever is drawn for the reports, all of them together reveal no more than what was kept
(Erlingsson et al. 2014); that is the larger epsilon, epsilon_inf. A single report passed both
steps and costs less, epsilon_1.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats
from deniable.core.domain import DomainLike
from deniable.core.mechanism import Mechanism
from deniable.errors import BrokenPromise, InvalidArgument
from deniable.mechanisms.frequency import Line, Supports, support_line
from deniable.privacy import Guarantee, MemoisedGuarantee, check_epsilon, exp_below
from deniable.privacy.guarantee import log_above
from deniable.randomness import WORD_BYTES, ByteCoins, Coins, Keystream

CALIBRATIONS = ("exact", "paper")


class Memoised(Mechanism):
    """A device calls `begin` once, `memoise` once a `key`, and `instant` for every report.

    Each is a pure function of what it is given, and draws as many words as its property says.
    `report` and `privatize` do all three with fresh coins: they make first reports. Whoever answers
    again needs a memo (`FileMemo`; `Panel` in simulations), or every report costs `once` again.
    """

    remembers = True

    def begin(self, coins: Coins) -> Any:
        """What a device draws before it looks at any answer: nothing, a hash function, a cohort."""
        return ()

    def key(self, begun: Any, value: int) -> int:
        """What is kept for the value is kept under this number: the value itself, or its cell."""
        return value

    @abstractmethod
    def memoise(self, begun: Any, key: int, coins: Coins) -> Any:
        """The permanent draw for a key."""

    @abstractmethod
    def instant(self, begun: Any, kept: Any, coins: Coins) -> Any:
        """A report made from what is kept."""

    @property
    def begin_words(self) -> int:
        """The words that `begin` draws."""
        return 0

    @property
    @abstractmethod
    def memoise_words(self) -> int:
        """The words that `memoise` draws."""

    @property
    @abstractmethod
    def instant_words(self) -> int:
        """The words that `instant` draws."""

    @property
    @abstractmethod
    def permanent_guarantee(self) -> MemoisedGuarantee:
        """What all reports of one key cost, and how the first ones get there."""

    @classmethod
    def repeated(cls, domain: DomainLike, epsilon_inf: float, first: float | None = None) -> Self:
        """The member with these epsilons of all reports and of the ``first`` (default: half)."""
        made: Any = cls
        member: Self = made(
            domain, epsilon_inf / 2 if first is None else first, epsilon_inf=epsilon_inf
        )
        return member

    # ---- what follows

    @property
    def epsilon_inf(self) -> float:
        """Epsilon of all reports of one answer."""
        return self.permanent_guarantee.epsilon

    @cached_property
    def once(self) -> Guarantee:
        return self.permanent_guarantee.once

    @property
    def lasting(self) -> MemoisedGuarantee:
        return self.permanent_guarantee

    def log_spent(self, rounds: int, changes: int) -> Decimal:
        if rounds < 2:
            return super().log_spent(rounds, changes)
        if changes and not self.key_is_value:
            raise BrokenPromise(
                "mechanism",
                self.name,
                "one with a permanent draw for each answer if answers may change (in this one "
                "answers share a draw, and whether they do shows in the reports): set "
                "changes = 0, or use another mechanism, such as auto",
            )
        return self.permanent_guarantee.log_always(rounds, min(changes, rounds - 1))

    def report(self, value: int, coins: Coins) -> Any:
        begun = self.begin(coins)
        return self.instant(begun, self.memoise(begun, self.key(begun, value), coins), coins)

    @property
    def coin_words(self) -> int:
        return self.begin_words + self.memoise_words + self.instant_words

    # ---- many devices at once; families override these with kernels

    def begin_all(self, n: int, keystream: Keystream) -> NDArray[Any]:
        """What n devices begin with: one row each."""
        if not self.begin_words:
            return np.empty((n, 0), dtype=np.uint8)
        coins = _coins(n, self.begin_words, keystream)
        return np.fromiter((self.begin(some) for some in coins), dtype=object)

    def keys_of(self, begun: NDArray[Any], values: NDArray[Any]) -> NDArray[np.uint64]:
        """The keys of many values."""
        return values.astype(np.uint64)

    def memoise_all(
        self, begun: NDArray[Any], keys: NDArray[np.uint64], keystream: Keystream
    ) -> NDArray[Any]:
        """Permanent draws of many devices."""
        coins = _coins(len(keys), self.memoise_words, keystream)
        rows = zip(begun, keys.tolist(), coins, strict=True)
        return np.fromiter((self.memoise(*row) for row in rows), dtype=object)

    def instant_all(
        self, begun: NDArray[Any], kept: NDArray[Any], keystream: Keystream
    ) -> NDArray[Any]:
        """A column of reports, one of each device."""
        coins = _coins(len(kept), self.instant_words, keystream)
        return self.pack([self.instant(*row) for row in zip(begun, kept, coins, strict=True)])


class MemoisedSupports(Memoised, Supports):
    """What is kept supports some values and not others, and so do the reports made from it."""

    @property
    @abstractmethod
    def permanent_p(self) -> Fraction:
        """The probability that what is kept supports its own value."""

    @property
    @abstractmethod
    def permanent_q(self) -> Fraction:
        """The probability that what is kept supports a given other value."""

    def repeated_line(self, f: Floats) -> Line:
        """Two reports made from one draw share its noise, and nothing else."""
        return support_line(self.permanent_p, self.permanent_q, f)


class Longitudinal(Memoised):
    """Two targets: ``epsilon_inf`` for all reports of an answer, ``epsilon_1`` for one.

    Both are met exactly, up to the rounding of the thresholds. ``epsilon_1`` is half of
    ``epsilon_inf`` unless given. With ``calibration="paper"`` the second step is that of Arcolezi
    et al. (2023), which for k-RR and local hashing spends less than epsilon_1: `once` says what.
    """

    budgets = ("epsilon_inf", "epsilon_1")

    def __init__(
        self,
        domain: DomainLike,
        epsilon_inf: float,
        epsilon_1: float | None = None,
        *,
        calibration: str = "exact",
        **integers: int | None,
    ) -> None:
        in_all = check_epsilon(epsilon_inf, "epsilon_inf")
        first = in_all / 2 if epsilon_1 is None else check_epsilon(epsilon_1, "epsilon_1")
        if not first < in_all:
            raise InvalidArgument("epsilon_1", epsilon_1, f"below epsilon_inf = {in_all:.12g}")
        if calibration not in CALIBRATIONS:
            raise InvalidArgument("calibration", calibration, f"one of {', '.join(CALIBRATIONS)}")
        vars(self).update(_epsilon_1=first, _calibration=calibration)
        super().__init__(domain, in_all, **integers)

    def _check(self) -> None:
        super()._check()
        first = self.epsilon_1
        if self.once.ratio > exp_below(first):
            found = f"these give {self.once.epsilon}"
            self._refuse_thresholds(f"such that epsilon_1 = {first} holds ({found})")

    @property
    def epsilon_inf(self) -> float:
        """The target for all reports of one answer."""
        return self.epsilon

    @property
    def epsilon_1(self) -> float:
        first: float = vars(self)["_epsilon_1"]
        return first

    @property
    def exact(self) -> bool:
        """Whether the second step is calibrated exactly, unless its thresholds were given."""
        return bool(vars(self)["_calibration"] == "exact")

    def over(self, domain: DomainLike, **integers: int) -> Self:
        calibration = vars(self)["_calibration"]
        return type(self)(domain, self.epsilon, self.epsilon_1, calibration=calibration, **integers)

    @classmethod
    def repeated(cls, domain: DomainLike, epsilon_inf: float, first: float | None = None) -> Self:
        return cls(domain, epsilon_inf, first)

    def _check_feasible(self, most: Fraction) -> None:
        """Refuse an epsilon_1 that even the sharpest second step, with ratio ``most``, misses."""
        if most < exp_below(self.epsilon_1):
            allowed = f"below {log_above(most):.12g} where epsilon_inf = {self.epsilon_inf:.12g}"
            raise InvalidArgument("epsilon_1", self.epsilon_1, allowed)

    @property
    def guarantee(self) -> MemoisedGuarantee:
        """What all reports cost; ``guarantee.after(reports=5)`` what five do."""
        return self.permanent_guarantee

    def __str__(self) -> str:
        told = super().__str__()
        wasted = self.epsilon_1 - self.once.epsilon > 1e-6 * self.epsilon_1
        return f"{told} (really {self.once.epsilon:.3g})" if wasted else told


def require_memoised(mechanism: Any) -> Memoised:
    """The mechanism, if devices keep a draw for it; else a refusal."""
    if not isinstance(mechanism, Memoised):
        raise InvalidArgument("mechanism", mechanism, "one of two steps, such as LGRR")
    return mechanism


def _coins(n: int, words: int, keystream: Keystream) -> Iterable[ByteCoins]:
    return (ByteCoins(keystream.bytes(words * WORD_BYTES)) for _ in range(n))
