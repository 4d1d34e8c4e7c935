"""How far an estimate is from the truth of a simulation.

Both are lists of frequencies in the same order, or have labels (an estimate, a pandas Series, a
mapping) and are aligned by them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from deniable.arrays import Floats
from deniable.core.domain import own_labels
from deniable.core.mechanism import Labelled, as_floats
from deniable.errors import InvalidArgument, require_int
from deniable.estimation.estimate import Frequencies

Given: TypeAlias = Labelled | Frequencies


def mse(truth: Given, estimate: Given) -> float:
    """Mean squared error, (1 / k) sum (f - g)^2."""
    return float(np.mean(np.square(_errors(truth, estimate))))


def mae(truth: Given, estimate: Given) -> float:
    """Mean absolute error, (1 / k) sum |f - g|."""
    return float(np.mean(np.abs(_errors(truth, estimate))))


def l1(truth: Given, estimate: Given) -> float:
    """sum |f - g|; for distributions twice their total variation distance."""
    return float(np.sum(np.abs(_errors(truth, estimate))))


def l2(truth: Given, estimate: Given) -> float:
    """sqrt(sum (f - g)^2)."""
    return float(np.linalg.norm(_errors(truth, estimate)))


def l_infinity(truth: Given, estimate: Given) -> float:
    """The largest error, max |f - g|."""
    return float(np.max(np.abs(_errors(truth, estimate))))


def kl(truth: Given, estimate: Given, base: float = math.e) -> float:
    """Kullback-Leibler divergence of the truth f from the estimate g, sum f log(f / g).

    In nats (``base`` e). A value with f = 0 adds 0; one with f > 0 and g = 0 makes it infinite.
    """
    f, g = _distributions(truth, estimate)
    return _relative_entropy(f, g) / _log(base)


def jensen_shannon(truth: Given, estimate: Given, base: float = 2.0) -> float:
    """Jensen-Shannon divergence, (KL(f, m) + KL(g, m)) / 2 with m = (f + g) / 2.

    In bits (``base`` 2), where it is at most 1; always finite.
    """
    f, g = _distributions(truth, estimate)
    # Twice each argument: half of the smallest float is 0.
    both = _relative_entropy(2.0 * f, f + g) + _relative_entropy(2.0 * g, f + g)
    return both / (4.0 * _log(base))


def jensen_shannon_distance(truth: Given, estimate: Given, base: float = 2.0) -> float:
    """The square root of `jensen_shannon`, which is a metric."""
    return math.sqrt(jensen_shannon(truth, estimate, base))


def chi_square(truth: Given, estimate: Given) -> float:
    """Chi-square divergence of the truth f from the estimate g, sum (f - g)^2 / g.

    A value with f = g = 0 adds 0; one with f > 0 and g = 0 makes it infinite.
    """
    f, g = _distributions(truth, estimate)
    if np.any(f[g == 0] > 0):
        return math.inf
    return float(np.sum((f - g)[g > 0] ** 2 / g[g > 0]))


def top_k_recall(truth: Given, estimate: Given, k: int = 10) -> float:
    """The share of the k most frequent values that are among the k largest estimates.

    Of values with equal frequencies, in either list, those that come first in the domain count as
    larger. All values are taken if there are fewer than k.
    """
    f, g = _pair(truth, estimate)
    k = min(require_int("k", k, 1, 1 << 62), f.size)
    top, found = (np.argsort(-x, kind="stable")[:k] for x in (f, g))
    return float(np.intersect1d(top, found).size / k)


def utility_gain(reference: float, error: float) -> float:
    """How much smaller, in percent, an error is than that of a reference decoder.

    100 max((reference - error) / reference, 0): no gain is 0, as in Arcolezi et al. (DBSec 2023).
    A reference without error cannot be gained upon: 0.
    """
    for name, value in (("reference", reference), ("error", error)):
        if not isinstance(value, (int, float)) or not 0 <= value < math.inf:
            raise InvalidArgument(name, value, "a finite error that is not negative")
    return 100.0 * max((reference - error) / reference, 0.0) if reference > 0 else 0.0


#: By name; smaller is better, except for the recall.
METRICS: dict[str, Callable[[Given, Given], float]] = {
    "mse": mse,
    "mae": mae,
    "l1": l1,
    "l2": l2,
    "l_infinity": l_infinity,
    "kl": kl,
    "jensen_shannon": jensen_shannon,
    "jensen_shannon_distance": jensen_shannon_distance,
    "chi_square": chi_square,
    "top_k_recall": top_k_recall,
}


def _pair(truth: Given, estimate: Given) -> tuple[Floats, Floats]:
    """Both as numbers in one order: by their labels if both have some, else by position."""
    left, right = _beside(truth, estimate), _beside(estimate, truth)
    labels = own_labels(right) if own_labels(left) is not None else None
    f, g = as_floats("truth", left, labels), as_floats("estimate", right, labels)
    if f.ndim != 1 or not f.size or not np.all(np.isfinite(f)):
        raise InvalidArgument("truth", truth, "a list of finite frequencies")
    if g.shape != f.shape or not np.all(np.isfinite(g)):
        raise InvalidArgument("estimate", estimate, f"{f.size} finite frequencies")
    return f, g


def _beside(one: Given, other: Given) -> Any:
    """What an estimate is beside another: with its labels, but not beside a plain list."""
    if not isinstance(one, Frequencies):
        return one
    if not isinstance(other, Frequencies) and own_labels(other) is None:
        return one.frequencies
    return dict(zip(one.labels, one.frequencies, strict=True))


def _errors(truth: Given, estimate: Given) -> Floats:
    f, g = _pair(truth, estimate)
    return f - g


def _distributions(truth: Given, estimate: Given) -> tuple[Floats, Floats]:
    f, g = _pair(truth, estimate)
    for name, given, x in (("truth", truth, f), ("estimate", estimate, g)):
        if np.any(x < 0) or abs(x.sum() - 1.0) > 1e-6:
            raise InvalidArgument(name, given, "frequencies that are not negative and sum to 1")
    return f, g


def _relative_entropy(f: Floats, g: Floats) -> float:
    held = f > 0
    if np.any(g[held] == 0):
        return math.inf
    # Rounding must not make a divergence negative, and its root not a number.
    return max(0.0, float(np.sum(f[held] * np.log(f[held] / g[held]))))


def _log(base: float) -> float:
    if not isinstance(base, (int, float)) or not 1 < base < math.inf:
        raise InvalidArgument("base", base, "a finite number above 1")
    return math.log(base)
