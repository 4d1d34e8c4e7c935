"""Which width, how many hash functions and how many cohorts: the advice behind `suggest`."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import product

from deniable.answers.text import Text
from deniable.mechanisms.cohorts.base import CohortMechanism
from deniable.mechanisms.cohorts.public_hashes import LIMITS
from deniable.privacy.guarantee import MIN_EPSILON

#: Widths to choose from, and how large a tally may become.
WIDTHS = (2, 3, 4, 5, 6, 8, 11, *(1 << j for j in range(4, 13)))
MOST_CELLS = 1 << 18
#: Fewer would not show how much cohorts differ.
FEWEST_COHORTS = 16


@lru_cache(maxsize=256)
def suggested(
    family: type[CohortMechanism],
    epsilon: float,
    n: int,
    second_moment: float,
    size: int | None,
    width: int | None,
    hashes: int | None,
) -> tuple[tuple[str, int], ...]:
    """`CohortMechanism.suggest`."""
    found = []
    several = [h for h in family.hashes_to_try if epsilon / h >= MIN_EPSILON]
    widths = (width,) if width else _widths(family, size)
    for h, w in product((hashes,) if hashes else several, widths):
        given = {"width": w, "hashes": h}
        design = {name: given[name] for name in family.design if name in given}
        m = family(size or Text(), epsilon, cohorts=1, seed=0, **design)
        f = 0.0 if size is None else 1 / size
        own, other, same, different = m.moments
        alone = other + (own - other) * f
        shared = n * (same * second_moment + different * ((1 - f) ** 2 - second_moment))
        most = min(LIMITS["cohorts"][1], MOST_CELLS // w)
        enough = 1 << math.ceil(math.log2(max(FEWEST_COHORTS, 10 * shared / alone)))
        variance = alone + max(0.0, shared) / most
        found.append((variance, m.bits_per_report, {**design, "cohorts": min(most, enough)}))
    least = min(variance for variance, _, _ in found)
    good = [row for row in found if row[0] <= 1.03 * least]
    return tuple(min(good, key=lambda row: row[1])[2].items())


def _widths(family: type[CohortMechanism], size: int | None) -> tuple[int, ...]:
    """The widths to compare; values that are dealt out need no more cells than there are values."""
    if size is None or not family.permutes_lists:
        return WIDTHS
    return (*(width for width in WIDTHS if width < size), min(size, WIDTHS[-1]))
