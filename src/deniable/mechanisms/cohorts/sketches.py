"""Apple's count-mean sketches (2017), with hashed cells randomised as bits or as one sign."""

from __future__ import annotations

from deniable.answers.text import Text
from deniable.arrays import Counts
from deniable.core.registry import register
from deniable.mechanisms.cohorts.base import CohortBits, CohortIndices
from deniable.mechanisms.hadamard import walsh_hadamard
from deniable.mechanisms.hadamard_signs import HRR
from deniable.mechanisms.unary import SUE


@register
class CMS(CohortBits):
    """Count mean sketch: ``cohorts`` hash functions to ``width`` cells, which are bits.

    With s = e^(eps / 2), m = width and K hash functions n Var = (m / (m - 1))^2 (s / (s - 1)^2 + (1
    - f) (1 - 1 / m) / m) + (n sum_{u != v} f_u^2 - (1 - f)) / (K (m - 1)). Apple's published
    settings are 1,024 cells and up to 65,536 hash functions.
    """

    name = "cms"
    paper = "Apple 2017"
    good_for = "huge or open domains with a report of a few bytes; shared hash functions"
    inner_family = SUE


@register
class HCMS(CohortIndices):
    """Hadamard count mean sketch: of the cells only one sign of a random Hadamard row is sent.

    With c = (e^eps + 1) / (e^eps - 1), m = width and K hash functions n Var = (m / (m - 1))^2 (c^2
    - f - (1 - f) / m^2) + (n sum_{u != v} f_u^2 - (1 - f)) / (K (m - 1)).
    """

    name = "hcms"
    paper = "Apple 2017"
    good_for = "huge or open domains with a report of some bits, at epsilon up to 1"
    automatic = (Text,)
    inner_family = HRR
    two_likelihoods = True

    def _cell_supports(self, counts: Counts, sizes: Counts) -> Counts:
        """`SignMechanism.supports` of every cohort."""
        contrasts = walsh_hadamard(counts[:, 0::2] - counts[:, 1::2])
        return (sizes + contrasts[:, : self.width]) // 2
