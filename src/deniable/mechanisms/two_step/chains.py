"""Chains of randomised response: L-GRR, and L-BLH and L-OLH, which hash the value first.

Arcolezi et al. (2022, 2023). In the form "keep it, or draw from all" two steps chain simply: with
shares t1 and t2 a report holds on to the value with t1 t2, and else is any of all. So a first
report is k-RR with the share t1 t2, and the share that belongs to epsilon_1 fixes t2.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.answers.choice import Listed
from deniable.core.integers import Threshold
from deniable.core.layout import Index
from deniable.core.mechanism import batches, mixture_keep, mixture_ratio, mixture_share
from deniable.core.registry import register
from deniable.mechanisms.local_hashing import MAX_CELLS, OLH, LocalHashing
from deniable.mechanisms.randomised_response import GRR
from deniable.mechanisms.two_step.memoised import Longitudinal, MemoisedSupports
from deniable.privacy import KeptBit, MemoisedGuarantee, exp_below
from deniable.randomness import SCALE, Coins, Keystream


class RandomisedChain(Longitudinal):
    """k-RR twice on K ``outcomes``, with t1 = permanent_keep / 2**64 and t2 = keep / 2**64.

    With a = e^eps_inf and b = e^eps_1 the second step has the ratio c = 1 + (b - 1)(a + K - 1) / (a
    - b), and t reports of one key the ratio (a c^t + K - 1) / (c^t + a + K - 2). The paper has c =
    (a b - 1) / (a - b), which is right for K = 2 only and else costs less than epsilon_1.
    """

    permanent_keep = Threshold()
    keep = Threshold()

    @property
    def outcomes(self) -> int:
        """K, what both steps choose from."""
        return self.domain.size

    def derive_permanent_keep(self) -> int:
        return mixture_keep(self.epsilon_inf, self.outcomes)

    def derive_keep(self) -> int:
        self._check_feasible(mixture_ratio(self.permanent_share, self.outcomes))
        a, b = exp_below(self.epsilon_inf), exp_below(self.epsilon_1)
        if self.exact:
            return int(SCALE * mixture_share(b, self.outcomes) / self.permanent_share)
        return int(SCALE * mixture_share((a * b - 1) / (a - b), self.outcomes))

    def memoise(self, begun: Any, key: int, coins: Coins) -> int:
        return self._step(key, self.permanent_keep, coins)

    def _step(self, index: int, keep: int, coins: Coins) -> int:
        drawn = coins.choice(self.outcomes)
        return index if coins.below(keep) else drawn

    @property
    def memoise_words(self) -> int:
        return 2

    @property
    def instant_words(self) -> int:
        return 2

    @property
    def permanent_share(self) -> Fraction:
        """t1."""
        return Fraction(self.permanent_keep, SCALE)

    @property
    def share(self) -> Fraction:
        """t1 t2, the share of a first report."""
        return self.permanent_share * Fraction(self.keep, SCALE)

    @property
    def permanent_p(self) -> Fraction:
        return self.permanent_share + (1 - self.permanent_share) / self.outcomes

    @property
    def permanent_q(self) -> Fraction:
        return (1 - self.permanent_share) / self.outcomes

    @cached_property
    def permanent_guarantee(self) -> MemoisedGuarantee:
        """The worst reports all say the one outcome that draws give least often."""
        least = Fraction(SCALE // self.outcomes, SCALE)
        other = (1 - self.permanent_share) * least
        odds = mixture_ratio(Fraction(self.keep, SCALE), self.outcomes)
        return MemoisedGuarantee.of(
            (KeptBit(self.permanent_share + other, other, odds),), self.outcomes
        )

    def memoise_all(
        self, begun: NDArray[Any], keys: NDArray[np.uint64], keystream: Keystream
    ) -> NDArray[Any]:
        return self._steps(keys, self.permanent_keep, keystream)

    def _steps(self, indices: NDArray[Any], keep: int, keystream: Keystream) -> NDArray[Any]:
        """One step of many indices."""
        from deniable.kernels.direct import keep_or_draw

        out = np.empty(len(indices), dtype=Index(self.outcomes).dtype)
        size = np.uint64(self.outcomes)
        for some, target, words in batches(indices, out, keystream, 2):
            keep_or_draw(target, some, words, size, np.uint64(keep))
        return out


@register
class LGRR(RandomisedChain, MemoisedSupports, GRR):
    """Generalised randomised response twice; a first report is exactly GRR(epsilon_1)."""

    name = "lgrr"
    paper = "Arcolezi et al. 2022"
    good_for = "few values, asked for again and again"
    automatic = (Listed,)

    def instant(self, begun: Any, kept: int, coins: Coins) -> int:
        return self._step(kept, self.keep, coins)

    def fill(self, values: NDArray[Any], out: NDArray[Any], keystream: Keystream) -> None:
        kept = self._steps(values, self.permanent_keep, keystream)
        out[: len(values)] = self._steps(kept, self.keep, keystream)

    def instant_all(
        self, begun: NDArray[Any], kept: NDArray[Any], keystream: Keystream
    ) -> NDArray[Any]:
        return self._steps(kept, self.keep, keystream)


class HashedChain(RandomisedChain, MemoisedSupports, LocalHashing):
    """A hash function for ever, and k-RR twice on the g cells it hashes to.

    What is kept is kept by cell: however often the answer changes, a device draws at most g times.
    """

    key_is_value = False
    begin = LocalHashing.begin
    key = LocalHashing.key
    keys_of = LocalHashing.keys_of

    @property
    def begin_words(self) -> int:
        return 3

    @property
    def outcomes(self) -> int:
        return self.g

    @property
    def permanent_q(self) -> Fraction:
        share = self.permanent_share
        return share * self.collide + (1 - share) / self.g

    def instant(
        self, begun: tuple[int, int, int], kept: int, coins: Coins
    ) -> tuple[int, int, int, int]:
        return *begun, self._step(kept, self.keep, coins)

    def fill(self, values: NDArray[Any], out: NDArray[Any], keystream: Keystream) -> None:
        self.fill_hashed(values, out, self.permanent_keep, keystream)
        kept = np.ascontiguousarray(out["y"][: len(values)])
        out["y"][: len(values)] = self._steps(kept, self.keep, keystream)

    def begin_all(self, n: int, keystream: Keystream) -> NDArray[Any]:
        """Hash functions; the cells beside them belong to no answer and are not used."""
        begun = np.empty(n, dtype=self.dtype)
        self.fill_hashed(np.zeros(n, dtype=np.uint32), begun, self.permanent_keep, keystream)
        return begun

    def instant_all(
        self, begun: NDArray[Any], kept: NDArray[Any], keystream: Keystream
    ) -> NDArray[Any]:
        out = begun.copy()
        out["y"] = self._steps(kept, self.keep, keystream)
        return out


@register
class LBLH(HashedChain):
    """Two cells: however often the answer changes, a device draws at most twice."""

    name = "lblh"
    paper = "Arcolezi et al. 2023"
    good_for = "comparison with LOLH: never more than two draws are kept"
    most_cells = 2

    def derive_g(self) -> int:
        return 2


@register
class LOLH(HashedChain):
    """The cells that suit a first report best; that report is exactly OLH(epsilon_1).

    The paper chooses g for its own second step: 1 + max(1, floor((1 - a^2 + sqrt(a^4 - 14 a^2 + 12
    a b (1 - a b) + 12 a^3 b + 1)) / (6 (a - b)))).
    """

    name = "lolh"
    paper = "Arcolezi et al. 2023"
    good_for = "huge domains, asked for again and again"
    automatic = (Listed,)

    def derive_g(self) -> int:
        if self.exact:
            return min(OLH.suggest_g(self.domain.size, self.epsilon_1), self.modulus)
        cells = _paper_cells(exp_below(self.epsilon_inf), exp_below(self.epsilon_1))
        return min(cells, self.modulus, MAX_CELLS)


def _paper_cells(a: Fraction, b: Fraction) -> int:
    inside = a**4 - 14 * a**2 + 12 * a * b * (1 - a * b) + 12 * a**3 * b + 1
    scale = 1 << 64
    root = Fraction(isqrt(max(0, int(inside * scale**2))), scale)
    return 1 + max(1, int((1 - a**2 + root) / (6 * (a - b))))
