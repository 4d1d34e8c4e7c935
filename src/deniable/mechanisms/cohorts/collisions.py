"""What chance does when values share cells: the moments behind the variance of hashed reports."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Collisions:
    """How values meet in ``width`` cells, over the choice of the hash functions.

    ``share`` is the probability that another value sets a given cell of a value, ``same`` the
    variance of the part of the cells of one value that another sets, ``different`` the covariance
    of these parts for two others. A value sets ``own`` cells and shares ``cross`` with another.
    """

    share: Fraction
    both: Fraction
    same: Fraction
    different: Fraction
    own: Fraction
    cross: Fraction

    @classmethod
    def of_hashes(cls, width: int, hashes: int) -> Collisions:
        """Independent uniform cells, ``hashes`` a value; ``both``: two given cells are set."""
        one = (1 - Fraction(1, width)) ** hashes
        share, both = 1 - one, 1 - 2 * one + (1 - Fraction(2, width)) ** hashes
        same = mean_square(share, both, width, hashes) - share**2
        return cls(share, both, same, Fraction(0), width * share, width * share**2)

    @classmethod
    def of_permutation(cls, width: int, size: int) -> Collisions:
        """Values 0..size-1 permuted and dealt out to the cells in turn (one cell a value)."""
        full, extra = divmod(size, width)
        sizes = [full + 1] * extra + [full] * (width - extra)
        share = Fraction(sum(m * (m - 1) for m in sizes), size * (size - 1))
        three = size * (size - 1) * (size - 2) or 1
        both = Fraction(sum(m * (m - 1) * (m - 2) for m in sizes), three)
        return cls(share, both, share - share**2, both - share**2, Fraction(1), share)


def mean_square(one: Fraction, two: Fraction, width: int, hashes: int) -> Fraction:
    """The mean of ((x_1 + ... + x_h) / h)^2 for the bits x of h uniform cells.

    ``one`` is the mean of a bit and ``two`` that of the product of the bits of two cells, which
    are the same cell with probability 1 / width.
    """
    pair = one / width + (1 - Fraction(1, width)) * two
    return (one + (hashes - 1) * pair) / hashes
