"""Apple's count-mean sketches (2017), with hashed cells randomised as bits or as one sign."""

from __future__ import annotations

from deniable.domain import DomainLike
from deniable.mechanisms.base import Counts
from deniable.mechanisms.cohorts import CohortBits, CohortIndices
from deniable.mechanisms.hadamard import walsh_hadamard
from deniable.mechanisms.signs import HRR
from deniable.mechanisms.unary import SUE


class CMS(CohortBits):
    """Count mean sketch: ``cohorts`` hash functions to ``width`` cells, which are bits.

    With s = e^(eps / 2), m = width and K hash functions n Var = (m / (m - 1))^2 (s / (s - 1)^2 + (1
    - f) (1 - 1 / m) / m) + (n sum_{u != v} f_u^2 - (1 - f)) / (K (m - 1)). Apple's published
    settings are 1,024 cells and up to 65,536 hash functions.
    """

    name = "cms"
    paper = "Apple 2017"
    good_for = "huge or open domains with a report of a few bytes; shared hash functions"
    thresholds = ("one", "zero")
    inner_family = SUE
    one: int
    zero: int

    def __init__(
        self,
        domain: DomainLike,
        epsilon: float,
        *,
        cohorts: int | None = None,
        width: int | None = None,
        seed: int = 0,
        one: int | None = None,
        zero: int | None = None,
    ) -> None:
        integers = {"width": width, "cohorts": cohorts, "seed": seed, "one": one, "zero": zero}
        super().__init__(domain, epsilon, **integers)


class HCMS(CohortIndices):
    """Hadamard count mean sketch: of the cells only one sign of a random Hadamard row is sent.

    With c = (e^eps + 1) / (e^eps - 1), m = width and K hash functions n Var = (m / (m - 1))^2 (c^2
    - f - (1 - f) / m^2) + (n sum_{u != v} f_u^2 - (1 - f)) / (K (m - 1)).
    """

    name = "hcms"
    paper = "Apple 2017"
    good_for = "huge or open domains with a report of some bits, at epsilon up to 1"
    inner_family = HRR
    two_valued = True

    def __init__(
        self,
        domain: DomainLike,
        epsilon: float,
        *,
        cohorts: int | None = None,
        width: int | None = None,
        seed: int = 0,
        keep: int | None = None,
    ) -> None:
        super().__init__(domain, epsilon, width=width, cohorts=cohorts, seed=seed, keep=keep)

    def _cell_supports(self, counts: Counts, sizes: Counts) -> Counts:
        """`SignMechanism.supports` of every cohort."""
        contrasts = walsh_hadamard(counts[:, 0::2] - counts[:, 1::2])
        return (sizes + contrasts[:, : self.width]) // 2
