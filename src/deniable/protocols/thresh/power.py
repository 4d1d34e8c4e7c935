"""How many people a vote needs, and which changes it notices."""

from __future__ import annotations

import numpy as np

from deniable.errors import InvalidArgument
from deniable.protocols.thresh.plan import MAX_USERS, Thresh


def yes_share(plan: Thresh, before: float, after: float, epoch: int = 1) -> float:
    """The share who mean yes when everybody's mean went from ``before`` to ``after``.

    P(|X - Y| >= gap) with X = Bin(l, before) and Y = Bin(l, after), for people with votes left.
    """
    from scipy.stats import binom

    size, gap = plan.samples, plan.gap(epoch)
    x = np.arange(size + 1)
    far = binom.sf(x + gap - 1, size, after) + binom.cdf(x - gap, size, after)
    return float(binom.pmf(x, size, before) @ far)


def detection(plan: Thresh, yes: float, epoch: int = 1, n: int | None = None) -> float:
    """The probability that an epoch in which this share means yes leads to an update."""
    from scipy.stats import binom

    people = plan.n if n is None else n
    return float(binom.sf(plan.quorum(epoch, people), people, plan.yes_rate(yes)))


def users_needed(plan: Thresh, yes: float, power: float = 0.95, epoch: int = 1) -> int:
    """With how many people a share of yes leads to an update with probability ``power``."""
    if yes <= plan.chance(epoch):
        raise InvalidArgument("yes", yes, f"above that of chance, {plan.chance(epoch):.3g}")
    low, high = 0, 1
    while detection(plan, yes, epoch, high) < power:
        low, high = high, 2 * high
        if high > MAX_USERS:
            raise InvalidArgument("yes", yes, "a share that 2**40 people can tell from chance")
    while high - low > 1:
        middle = (low + high) // 2
        heard = detection(plan, yes, epoch, middle) >= power
        low, high = (low, middle) if heard else (middle, high)
    return high
