"""Expected losses (Propositions 3 and 4), where they cross (5), and what nobody can do better.

Respondents are drawn from p, so the losses hold the sampling error, too. k-RR is `GRR` and
k-RAPPOR is `SUE`; both with the unbiased ("empirical") estimate. l2 stands for the squared l2 loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def rr_l2(p: ArrayLike, n: int, epsilon: float) -> float:
    """Proposition 3: (1 - sum p^2) / n + (k - 1) (k + 2 (e^eps - 1)) / (n (e^eps - 1)^2)."""
    p, gain = np.asarray(p), math.expm1(epsilon)
    return float(1 - p @ p + (p.size - 1) * (p.size + 2 * gain) / gain**2) / n


def rr_l1(p: ArrayLike, n: int, epsilon: float) -> float:
    """Proposition 3, for large n: the sum of sqrt(2 Var / pi)."""
    p, gain = np.asarray(p), math.expm1(epsilon)
    return _l1((gain * p + 1) * (gain * (1 - p) + p.size - 1) / gain**2, n)


def rappor_l2(p: ArrayLike, n: int, epsilon: float) -> float:
    """Proposition 4: (1 - sum p^2) / n + k s / (n (s - 1)^2), s = e^(eps / 2)."""
    p, gain = np.asarray(p), math.expm1(epsilon / 2)
    return float(1 - p @ p + p.size * (gain + 1) / gain**2) / n


def rappor_l1(p: ArrayLike, n: int, epsilon: float) -> float:
    """Proposition 4, for large n: the sum of sqrt(2 Var / pi)."""
    p, gain = np.asarray(p), math.expm1(epsilon / 2)
    return _l1((gain * p + 1) * (gain * (1 - p) + 1) / gain**2, n)


def _l1(variances: Floats, n: int) -> float:
    """The mean of |x| is sqrt(2 Var / pi) for a normal x."""
    return float(np.sqrt(2 * variances / (math.pi * n)).sum())


LOSSES: dict[str, dict[str, Callable[[ArrayLike, int, float], float]]] = {
    "k-RR": {"l1": rr_l1, "l2": rr_l2},
    "k-RAPPOR": {"l1": rappor_l1, "l2": rappor_l2},
}


def sample_l2(k: int, n: int) -> float:
    """Without privacy, at worst (uniform p): (1 - 1 / k) / n."""
    return (1 - 1 / k) / n


def sample_l1(k: int, n: int) -> float:
    """Without privacy, at worst, for large n: sqrt(2 (k - 1) / (pi n))."""
    return math.sqrt(2 * (k - 1) / (math.pi * n))


SAMPLE = {"l1": sample_l1, "l2": sample_l2}


def uniform_loss(mechanism: str, loss: str, k: int, n: int, epsilon: float) -> float:
    """Equations 8, 9, 12, 13: the loss at the worst p, which is uniform."""
    return LOSSES[mechanism][loss](np.full(k, 1 / k), n, epsilon)


def sample_factor(mechanism: str, loss: str, k: int, epsilon: float) -> float:
    """How many times more respondents are needed than without privacy, at worst."""
    ratio = uniform_loss(mechanism, loss, k, 1, epsilon) / SAMPLE[loss](k, 1)
    return ratio if loss == "l2" else ratio**2


def crossing(k: int, loss: str = "l2") -> float | None:
    """The epsilon from which on k-RR's worst loss is the smaller one; None if it always is.

    In l2 the difference of the two does not depend on p. Proposition 5: at most ln (k / 2).
    """
    from scipy.optimize import brentq

    def excess(epsilon: float) -> float:
        losses = [uniform_loss(name, loss, k, 1, epsilon) for name in LOSSES]
        return losses[0] / losses[1] - 1

    low = 1e-3
    return float(brentq(excess, low, 40.0)) if excess(low) > 0 else None


def least_l2(k: int, n: int, epsilon: float) -> float:
    """The minimax l2 loss of all mechanisms and estimates, for large n.

    (k - 1)^2 / (n k (e^eps - 1)^2) min_d (d e^eps + k - d)^2 / (d (k - d)): the loss of subset
    selection with d values, which Ye and Barg (arXiv 1708.00059) show to be the least for every k
    and epsilon.
    """
    return k * _least_variance(k, epsilon) / n


def least_l1(k: int, n: int, epsilon: float) -> float:
    """The same for l1 (Ye and Barg, arXiv 1810.07283)."""
    return k * math.sqrt(2 * _least_variance(k, epsilon) / (math.pi * n))


def _least_variance(k: int, epsilon: float) -> float:
    e, d = math.exp(epsilon), np.arange(1, k)
    return float(np.min((d * e + k - d) ** 2 / (d * (k - d)))) * ((k - 1) / (k * (e - 1))) ** 2


LEAST = {"l1": least_l1, "l2": least_l2}


def rate_l2(k: int, n: int, epsilon: float) -> float:
    """Proposition 1 (epsilon <= 1) but for its constants: no mechanism is of a lower order."""
    effective = n * epsilon**2
    return min(1.0, 1 / math.sqrt(effective), k / effective)


def rate_l1(k: int, n: int, epsilon: float) -> float:
    """Proposition 1 (epsilon <= 1) but for its constants."""
    return min(1.0, k / math.sqrt(n * epsilon**2))
