"""Least squares from normal equations: with a known sum, and where nothing may be negative."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats

#: A column is lost if this little of it is left when the others have explained what they can.
SINGULAR = 1e-9
#: Exchanges of many columns that may fail before they are exchanged one by one.
PATIENCE = 3


class Singular(ArithmeticError):
    """Some columns cannot be told apart."""


def inverse(gram: Floats) -> Floats:
    """The inverse of a positive definite matrix."""
    from scipy.linalg import LinAlgError, cho_solve, cholesky

    try:
        factor = cholesky(gram, lower=True)
    except LinAlgError:
        raise Singular from None
    if np.any(np.diag(factor) ** 2 < SINGULAR * np.diag(gram)):
        raise Singular
    return np.asarray(cho_solve((factor, True), np.eye(len(gram))))


def summing_to_one(gram: Floats, linear: Floats) -> tuple[Floats, Floats]:
    """The minimum of f'Gf / 2 - l'f where f sums to 1, and the diagonal of its covariance.

    With u = G^-1 1 it is x + u (1 - sum x) / sum u for x = G^-1 l; the covariance of noise of
    variance 1 is G^-1 - u u' / sum u.
    """
    inverted = inverse(gram)
    x, u = inverted @ linear, inverted.sum(axis=1)
    return x + u * ((1 - x.sum()) / u.sum()), np.diag(inverted) - u**2 / u.sum()


def non_negative(
    gram: Floats,
    linear: Floats,
    *,
    sum_to_one: bool = False,
    start: NDArray[np.bool_] | None = None,
) -> Floats:
    """The minimum of f'Gf / 2 - l'f where f >= 0 (and sums to 1), for a positive definite G.

    Block principal pivoting (Kim & Park 2011): solve for the columns in use, then exchange all
    that are negative in f or in its gradient; where that does not get better, only the last one,
    which ends after finitely many steps. ``start`` guesses which columns will be in use.
    """
    size = linear.size
    if start is not None:
        used = start.copy()
    else:
        used = np.ones(size, dtype=bool) if sum_to_one else linear > 0
    fewest, patience = size + 1, PATIENCE
    slack = 1e-12 * float(np.abs(linear).max(initial=1.0))
    for _ in range(100 + 20 * size):
        f, gradient = _stationary(gram, linear, used, sum_to_one)
        wrong = np.where(used, f < 0, gradient < -slack)
        if not wrong.any():
            return f
        count = int(np.count_nonzero(wrong))
        patience = PATIENCE if count < fewest else patience - 1
        fewest = min(fewest, count)
        if patience < 0:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        used ^= wrong
    raise Singular


def _stationary(
    gram: Floats, linear: Floats, used: NDArray[np.bool_], sum_to_one: bool
) -> tuple[Floats, Floats]:
    """The minimum with f = 0 outside ``used``, and the gradient there (less the multiplier)."""
    from scipy.linalg import LinAlgError, solve

    f = np.zeros(linear.size)
    if not used.any():
        return f, np.full(linear.size, -np.inf) if sum_to_one else -linear
    sides = np.stack([linear[used], np.ones(np.count_nonzero(used))], axis=1)
    try:
        x, u = solve(gram[np.ix_(used, used)], sides, assume_a="pos").T
    except LinAlgError:
        raise Singular from None
    multiplier = (1 - x.sum()) / u.sum() if sum_to_one else 0.0
    f[used] = x + multiplier * u
    return f, gram[:, used] @ f[used] - linear - multiplier
