"""Basic RAPPOR: one-hot bits that are randomised twice, once for ever and once for every report.

Erlingsson, Pihur and Korolova (2014). A device keeps the row of the permanent step for as long as
its answer stays the same and makes every report from that row, so that even all its reports
together reveal no more than the row does.
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from typing import Any

from deniable.core.domain import DomainLike
from deniable.core.integers import Threshold
from deniable.core.registry import register
from deniable.errors import InvalidArgument, is_number, require_int
from deniable.mechanisms.two_step.bit_chains import ChainedBits
from deniable.mechanisms.unary import Probability, as_threshold, odds
from deniable.privacy import Guarantee, check_epsilon, exp_below, kept_below
from deniable.privacy.guarantee import MAX_EPSILON
from deniable.randomness import SCALE, Coins


@register
class BasicRAPPOR(ChainedBits):
    """A bit is kept with P1 = ``permanent`` / 2**64, else flipped; then reported as 1 with
    probability ``one`` / 2**64 if it is 1 and ``zero`` / 2**64 if it is 0.

    With p = one / 2**64, q = zero / 2**64 a report is a unary encoding with p* = P1 p + (1 - P1) q
    and q* = (1 - P1) p + P1 q: these are the mechanism's ``p`` and ``q``, and ``epsilon`` is what
    one report costs. Reports of one permanent row cost at most ln (P1 / (1 - P1))^2 together:
    ``permanent_guarantee``.

    Give ``epsilon`` and ``epsilon_inf``, of the permanent step (default: 2 epsilon); then the
    second step is symmetric, and one report has the law of SUE. Or give RAPPOR's ``f`` = 2 (1 - P1)
    and the probabilities ``p`` = P(1 | 1) and ``q`` = P(1 | 0) of the second step, which the paper
    names the other way round; epsilon follows. Google's f = 1/2, p = 3/4, q = 1/2 cost 0.537 a
    report and 2.197 in all.

    `report` draws both steps anew; a device that answers again remembers the first.
    """

    name = "basicrappor"
    paper = "Erlingsson et al. 2014"
    good_for = "answers asked for again and again: see permanent_guarantee"
    permanent = Threshold()

    def __init__(
        self,
        domain: DomainLike,
        epsilon: float | None = None,
        *,
        epsilon_inf: float | None = None,
        f: Probability | None = None,
        p: Probability | None = None,
        q: Probability | None = None,
        permanent: int | None = None,
        one: int | None = None,
        zero: int | None = None,
    ) -> None:
        if permanent is None:
            permanent = _permanent(epsilon, epsilon_inf, f)
        if (p is None) != (q is None):
            raise InvalidArgument("p", p, "given together with q")
        if p is not None and one is None and zero is None:
            one, zero = as_threshold("p", p), as_threshold("q", q)
            if not zero < one:
                raise InvalidArgument("p", p, f"above q = {zero / SCALE:.6g} and below 1")
        if epsilon is None:
            epsilon = _epsilon(permanent, one, zero)
        super().__init__(domain, epsilon, permanent=permanent, one=one, zero=zero)

    def _check(self) -> None:
        super()._check()
        self.permanent_guarantee  # noqa: B018 - refuses a bit that is flipped more often than kept

    def derive_zero(self) -> int:
        return SCALE - self.one

    def derive_one(self) -> int:
        """Solve p* = P1 t + (1 - P1)(1 - t) for t, where p* = s / (s + 1), s = e^(eps / 2)."""
        s = exp_below(Fraction(self.epsilon) / 2)
        keep = Fraction(self.permanent, SCALE)
        wanted = s / (s + 1)
        if not wanted < keep:
            most = Guarantee(odds(keep) ** 2).epsilon
            allowed = f"below that of the permanent step, {most:.6g}"
            raise InvalidArgument("epsilon", self.epsilon, allowed)
        return int(SCALE * (wanted - (1 - keep)) / (2 * keep - 1))

    @property
    def permanent_one(self) -> int:
        """A bit that is 1 is kept."""
        return self.permanent

    @property
    def permanent_zero(self) -> int:
        """A bit that is 0 is flipped."""
        return SCALE - self.permanent

    def permanent_row(self, ones: Collection[int], coins: Coins) -> bytes:
        """A coin says whether a bit is kept or flipped."""
        return self.sets.of(
            v for v in range(self.domain.size) if coins.below(self.permanent) == (v in ones)
        )


def _permanent(epsilon: Any, epsilon_inf: Any, f: Any) -> int:
    """The threshold of the permanent step, rounded to more flips."""
    if f is not None:
        if epsilon_inf is not None:
            raise InvalidArgument("f", f, "left out when epsilon_inf is given")
        return SCALE - (as_threshold("f", f) + 1) // 2
    if epsilon is None:
        raise InvalidArgument("epsilon", epsilon, "given unless f, p and q are")
    once = check_epsilon(epsilon)
    in_all = 2 * once if epsilon_inf is None else check_permanent(once, epsilon_inf)
    return kept_below(in_all / 2)


def check_permanent(epsilon: float | None, epsilon_inf: Any) -> float:
    """``epsilon_inf``, if the permanent step can have it where one report costs ``epsilon``."""
    least, most = epsilon or 0.0, 2 * MAX_EPSILON
    if not is_number(epsilon_inf) or not least < epsilon_inf <= most:
        allowed = f"a number above epsilon = {least:g} and at most {most:g}"
        raise InvalidArgument("epsilon_inf", epsilon_inf, allowed)
    return float(epsilon_inf)


def _epsilon(permanent: int, one: int | None, zero: int | None) -> float:
    """What one report costs with these thresholds."""
    if one is None or zero is None:
        raise InvalidArgument("epsilon", None, "given unless f, p and q are")
    thresholds = {"permanent": permanent, "one": one, "zero": zero}
    numbers = (require_int(name, x, 1, SCALE - 1) for name, x in thresholds.items())
    keep, p, q = (Fraction(x, SCALE) for x in numbers)
    ratio = odds(keep * p + (1 - keep) * q) / odds(keep * q + (1 - keep) * p)
    return Guarantee(ratio).epsilon
