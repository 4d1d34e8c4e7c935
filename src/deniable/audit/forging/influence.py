"""How far forged respondents can move an estimate, whatever they send: a guarantee.

With n genuine reports, m forged ones and N = n + m, the unbiased estimate is the mean of N
contributions (see `alphabets`), so with forgeries it is f' = (n f + m g) / N, where f is that of
the genuine alone and g the mean contribution of the forged. Both f and g lie between the extremes
of one report's contribution, hence |f' - f| = (m / N) |g - f| <= (m / N) (high - low). The same
number bounds how far f' is from what it had been if the m had answered honestly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.arrays import Integers
from deniable.audit.forging.admissible import admissible_reports, listed_oracle
from deniable.errors import InvalidArgument, require_int
from deniable.mechanisms import Mechanism

MOST = 1 << 53


@dataclass(frozen=True)
class Influence:
    """What ``forged`` reports beside ``n`` genuine ones can do to the frequency of the targets.

    ``low`` and ``high`` are the least and the largest contribution of one admissible report to the
    sum of the targets' unbiased frequencies; ``diameter`` is the largest l1 distance between the
    contributions of two (a bound, not always reached, unless ``tight``).
    """

    n: int
    forged: int
    low: float
    high: float
    diameter: float
    tight: bool

    @property
    def share(self) -> float:
        """m / N."""
        return self.forged / (self.n + self.forged)

    @property
    def most(self) -> float:
        """No forgeries move the sum by more, up or down, whatever the genuine reports are."""
        return self.share * (self.high - self.low)

    @property
    def l1(self) -> float:
        """No forgeries move all frequencies together by more, in l1 distance."""
        return self.share * self.diameter

    def gain(self, frequency: float) -> float:
        """The most that forgeries add if the genuine reports alone give the sum ``frequency``.

        Reached by m best reports: (m / N) (high - frequency). In the mean over the coins of the
        genuine respondents, ``frequency`` is their true one.
        """
        return self.share * (self.high - frequency)

    def loss(self, frequency: float) -> float:
        """The most that forgeries take away."""
        return self.share * (frequency - self.low)


def influence(
    mechanism: Mechanism, n: int, forged: int, targets: Iterable[Any] | None = None
) -> Influence:
    """The guaranteed influence of ``forged`` reports on the frequency of ``targets`` together.

    Without targets it is about one value: the one that can be moved most.
    """
    admissible = admissible_reports(mechanism)
    n, forged = require_int("n", n, 0, MOST), require_int("forged", forged, 0, MOST)
    if not n + forged:
        raise InvalidArgument("forged", forged, "at least 1 where nobody is genuine")
    if targets is not None:
        low, high = admissible.extremes(weights_of(mechanism, targets))
    else:
        lows, highs = admissible.ranges()
        low, high = float(lows.min()), float(highs.max())
    return Influence(n, forged, low, high, admissible.diameter(), admissible.tight)


def weights_of(mechanism: Mechanism, targets: Iterable[Any]) -> Integers:
    """1 for the values that a forger wants more frequent, 0 for the others."""
    domain = listed_oracle(mechanism).domain
    places = {label: place for place, label in enumerate(domain.listed)}
    wanted = list(targets)
    for target in wanted:
        if target not in places:
            raise InvalidArgument("targets", target, "answers of the domain")
    if not wanted:
        raise InvalidArgument("targets", targets, "at least one answer of the domain")
    return _indicator(domain.size, [places[target] for target in wanted])


def _indicator(size: int, places: list[int]) -> Integers:
    weights = np.zeros(size, dtype=np.int64)
    weights[places] = 1
    return weights
