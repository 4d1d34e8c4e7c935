"""Answers that nobody listed in advance: O-RR and O-RAPPOR (Kairouz et al. 2016)."""

from __future__ import annotations

from deniable.domain import DomainLike
from deniable.mechanisms.cohorts import CohortIndices
from deniable.mechanisms.direct import GRR


class ORR(CohortIndices):
    """k-ary randomised response on the cell of a value, k = width.

    A report (cohort, cell) has probability e^eps / (C (e^eps + k - 1)) if the cell is that of the
    value, else 1 / (C (e^eps + k - 1)). With very many cohorts it is local hashing with g = k: n
    Var = (e^eps + k - 1)^2 / ((k - 1) (e^eps - 1)^2) at f = 0, least at k = e^eps + 1; fewer
    cohorts call for more cells. Answers that are listed are dealt out by permutations, which
    collide less often than hashes: with P = sum_y m_y (m_y - 1) / (S (S - 1)) for cells of m_y
    of the S values.
    """

    name = "orr"
    paper = "Kairouz et al. 2016"
    good_for = "text that nobody listed in advance: a report of some bits"
    design = ("cohorts", "width", "seed", "permuted")
    inner_family = GRR
    two_valued = True

    def __init__(
        self,
        domain: DomainLike,
        epsilon: float,
        *,
        cohorts: int | None = None,
        width: int | None = None,
        seed: int = 0,
        permuted: int | None = None,
        keep: int | None = None,
    ) -> None:
        integers = {"cohorts": cohorts, "width": width, "seed": seed, "permuted": permuted}
        super().__init__(domain, epsilon, **integers, keep=keep)

    def _derive(self, name: str) -> int:
        return int(not self._is_open) if name == "permuted" else super()._derive(name)
