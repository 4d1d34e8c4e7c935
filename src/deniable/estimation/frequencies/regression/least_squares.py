"""Least squares on the cells of all cohorts, free and without negative frequencies.

The mean of a value's cells ("unbiased") takes other values for noise that evens out over the hash
functions. The regression knows where the other candidates collide and takes them out; only values
that nobody listed are noise still.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable.arrays import Floats
from deniable.errors import InvalidArgument
from deniable.estimation.frequencies.evidence import Decoded, Evidence
from deniable.estimation.frequencies.regression.normal import CohortTable
from deniable.estimation.frequencies.regression.spread import Spread
from deniable.estimation.frequencies.solvers import (
    Singular,
    non_negative,
    summing_to_one,
)

#: Unknowns whose dense normal equations are solved: some seconds and 128 MB a matrix.
MOST = 4096
#: Unknowns up to which they are solved to help another method.
QUICK = 1024


def least_squares(evidence: Evidence) -> Decoded:
    """The minimum of sum_jy N_j (X_jy - sum_s f_s D_jys)^2 where f (with the outside) sums to 1."""
    found = _Regression(evidence, "least-squares")
    return Decoded(found.spread.x, found.spread.errors(found.cells.mechanism))


def nnls(evidence: Evidence) -> Decoded:
    """The same where nothing is negative, so a distribution.

    It is the projection of least squares onto the distributions that knows the covariance; a
    Euclidean one (Kairouz et al. 2016) does not. The intervals are those of least squares.
    """
    found = _Regression(evidence, "nnls")
    errors = found.spread.errors(found.cells.mechanism)
    return Decoded(non_negative(found.gram, found.linear, sum_to_one=True), errors)


def sharper_cells(evidence: Evidence) -> tuple[Floats, Floats] | None:
    """Least squares and its variances, where it can be had quickly: less noise than `unbiased`."""
    if evidence.k > QUICK:
        return None
    try:
        found = _Regression(evidence, "least-squares")
    except InvalidArgument:
        return None
    return found.spread.x, found.spread.deviations(found.cells.mechanism, False) ** 2


class _Regression:
    """The normal equations of all answers with the outside, and their solution.

    The outside has a column of zeros, as everything is centred. As f sums to 1, tau (sum f - 1)^2
    may be added to the squares; it makes the matrix regular. tau = n / width is that of columns
    that are not centred, for one hash function.
    """

    def __init__(self, evidence: Evidence, method: str) -> None:
        self.cells = cohort_cells(evidence, method)
        m, k = self.cells.mechanism, evidence.k
        if k > MOST:
            allowed = f"'lasso' or 'unbiased' for more than {MOST - 1} candidates (there are {k})"
            raise InvalidArgument("method", method, allowed)
        if self.cells.dimensions < k:
            raise indistinct(method, self.cells, k)
        normal = self.cells.normal(np.arange(m.codes.size))
        outside, tau = k - m.codes.size, evidence.n / m.width
        self.gram = np.pad(normal.gram, (0, outside)) + tau
        self.linear = np.pad(normal.linear, (0, outside)) + tau
        try:
            x, unit = summing_to_one(self.gram, self.linear)
        except Singular:
            raise indistinct(method, self.cells, k) from None
        noise, freedom = normal.noise(x[: m.codes.size], k - 1), normal.dimensions - k + 1
        self.spread = Spread(x, unit, noise, freedom, own_part(x, outside), evidence.n)


def own_part(x: Floats, outside: int) -> Floats:
    """`Spread.own` of frequencies, of which the last is the outside (if there is one)."""
    f = np.clip(x, 0.0, 1.0)
    return np.concatenate([f[: f.size - outside], 1 - f[f.size - outside :]])


def cohort_cells(evidence: Evidence, method: str) -> CohortTable:
    """The cells of the only part, if it has any."""
    tallies = [part.tally for part in evidence.parts]
    m: Any = tallies[0].mechanism
    if len(tallies) > 1 or evidence.parts[0].mechanism.independent_supports:
        names = ", ".join(sorted({tally.mechanism.name for tally in tallies}))
        allowed = "used with the reports of one mechanism with cohorts, such as CMS, HCMS or ORR"
        raise InvalidArgument("method", f"{method} ({names})", allowed)
    return CohortTable(m, tallies[0].counts)


def indistinct(method: str, cells: CohortTable, k: int) -> InvalidArgument:
    """The refusal of answers whose cells are too much alike."""
    others = "'unbiased'" if method == "lasso" else "'lasso' or 'unbiased'"
    cohorts, width = cells.sizes.size, cells.mechanism.width
    allowed = (
        f"{others}, or asked about fewer candidates: {k} answers cannot be told apart by the"
        f" cells of {cohorts} cohorts with reports, {width} a cohort"
    )
    return InvalidArgument("method", method, allowed)
