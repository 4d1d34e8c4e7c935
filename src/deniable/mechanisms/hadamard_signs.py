"""A random row of a +-1 matrix with orthogonal columns, and one randomised sign of it.

HRR: Cormode, Kulkarni and Srivastava (2018, 2019). S-Hist: Bassily and Smith (2015).
"""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.answers.choice import Listed
from deniable.arrays import Counts
from deniable.core.integers import Design
from deniable.core.mechanism import batches
from deniable.core.registry import register
from deniable.mechanisms.hadamard import MAX_BLOCK, power_of_two, public_permutation, walsh_hadamard
from deniable.mechanisms.index import RandomisedBit
from deniable.randomness import SCALE, Coins, Keystream

#: How many times more rows than needed SHist may have: each costs memory on the device.
MORE = 64


class SignMechanism(RandomisedBit):
    """Each value owns a column c of the Walsh-Hadamard matrix H[j, c] = (-1)^|j & c|.

    The report is a row j, drawn uniformly, and the sign H[j, c] as a bit (1 for -1), kept with
    probability p = e^eps / (e^eps + 1) and flipped otherwise: the index 2 j + bit. It supports the
    values whose sign in row j is the reported one. Two columns agree in exactly half of the rows,
    also where one is column 0 (all +1), so q = 1/2. With b_j the reports of +1 less those of -1 in
    row j, f_v = sum_j b_j H[j, c] / (n (2 p - 1)) is unbiased, with n Var = 1 / (2 p - 1)^2 - f_v.

    As 2 j + bit has an even number of ones in common with 2 c + 1 if the report supports v, this is
    a Hadamard response with one block of twice as many rows, of which values own odd ones only.
    """

    @property
    @abstractmethod
    def rows(self) -> int:
        """The number of rows of the matrix, a power of two."""

    @abstractmethod
    def columns(self, values: Any) -> Any:
        """The column of each value; of one index or an array of them."""

    @property
    def cells(self) -> int:
        return 2 * self.rows

    def report(self, value: int, coins: Coins) -> int:
        row = coins.choice(self.rows)
        odd = (row & int(self.columns(value))).bit_count() & 1
        return 2 * row + (odd if coins.below(self.keep) else 1 - odd)

    @property
    def coin_words(self) -> int:
        return 2

    @property
    def q(self) -> Fraction:
        return Fraction(1, 2)

    @property
    def together(self) -> tuple[Fraction, Fraction]:
        """The signs of two values agree in half of the rows, whatever the own sign is there."""
        return self.p * self.q, self.q**2

    def fill(self, values: NDArray[np.uint32], out: NDArray[Any], keystream: Keystream) -> None:
        from deniable.kernels.hadamard import hadamard_signs

        # The highest bits of a word: `choice` of a power of two.
        shift = np.uint64(SCALE.bit_length() - self.rows.bit_length())
        for some, target, words in batches(values, out, keystream, self.coin_words):
            hadamard_signs(target, self.columns(some), words, shift, np.uint64(self.keep))

    def supports(self, counts: Counts, n: int) -> Counts:
        """n reports, of which as many more support v than do not as its contrast says."""
        balance = counts[0::2] - counts[1::2]
        contrasts = walsh_hadamard(balance[None])[0]
        agreed: Counts = contrasts[self.columns(np.arange(self.domain.size))]
        return (n + agreed) // 2


@register
class HRR(SignMechanism):
    """Hadamard randomised response: value v owns column v of the smallest matrix with k columns.

    The survey of T. Wang et al. (2020) sums the signs of a row where its estimator (46) needs their
    mean, and its variance (47), 4 p (1 - p) / (n (2 p - 1)^2), is that of one value which everybody
    has: at eps = 4 up to 14 times too small. The accuracy is BLH's, not OLH's. Dividing the signs
    of a row by the number of its reports instead of n / rows gives 1 / (2 p - 1)^2 - sum_u f_u^2,
    never worse on average, but is not defined for a row without reports, and so not offered.
    """

    name = "hrr"
    paper = "Cormode et al. 2018"
    good_for = "huge domains at epsilon up to 1: no table on the device, decoding costs k log k"
    automatic = (Listed,)

    @property
    def rows(self) -> int:
        return _enough(self.domain.size)

    def columns(self, values: Any) -> Any:
        return values


@register
class SHist(SignMechanism):
    """The succinct histogram: a random projection to ``b`` dimensions, of which one is reported.

    ``b`` is a power of two of at least k and ``seed`` fixes the public permutation that deals the
    b columns to values (a negative seed: in order). The columns have to be orthogonal for unbiased
    frequencies: with independent signs they are only nearly so. More rows than the fewest possible
    buy nothing and cost bits, and counts on the server.

    With c = 1 / (2 p - 1) = (e^eps + 1) / (e^eps - 1), n Var = c^2 - f_v. Table 4 of the survey of
    T. Wang et al. (2020) has e^eps / (e^eps - 1)^2: less by (e^eps + 1)^2 / e^eps, at least 4.
    """

    name = "shist"
    paper = "Bassily & Smith 2015"
    good_for = "HRR with columns dealt at random"
    b = Design(
        lambda m: m.derive_b(), lambda m: min(MAX_BLOCK, MORE * m.derive_b()), rule=power_of_two
    )
    seed = Design(-1, (1 << 32) - 1, default=0)

    def derive_b(self) -> int:
        """As few rows as there may be."""
        return _enough(self.domain.size)

    @property
    def rows(self) -> int:
        return self.b

    @cached_property
    def _dealt(self) -> NDArray[np.uint32]:
        return public_permutation(self.b, self.seed)[: self.domain.size].astype(np.uint32)

    def columns(self, values: Any) -> Any:
        return self._dealt.take(values)


def _enough(k: int) -> int:
    """The smallest power of two of at least k."""
    return 1 << (k - 1).bit_length()
