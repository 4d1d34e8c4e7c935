"""Answers that nobody listed: O-RR and O-RAPPOR (Kairouz et al. 2016), and RAPPOR itself."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

import numpy as np

from deniable.answers.text import Text
from deniable.arrays import Floats
from deniable.core.domain import DomainLike
from deniable.core.integers import Design, Threshold
from deniable.core.registry import register
from deniable.errors import require_int
from deniable.mechanisms.cohorts.base import CohortBits, CohortIndices, listed_once, share_of
from deniable.mechanisms.cohorts.public_hashes import LIMITS
from deniable.mechanisms.frequency import Line
from deniable.mechanisms.randomised_response import GRR
from deniable.mechanisms.two_step.memoised import MemoisedSupports
from deniable.mechanisms.two_step.rappor import BasicRAPPOR, check_permanent
from deniable.mechanisms.unary import SUE, Probability
from deniable.privacy import Guarantee, MemoisedGuarantee, check_epsilon
from deniable.randomness import Coins


@register
class ORR(CohortIndices):
    """k-ary randomised response on the cell of a value, k = width.

    A report (cohort, cell) has probability e^eps / (C (e^eps + k - 1)) if the cell is that of the
    value, else 1 / (C (e^eps + k - 1)). With very many cohorts it is local hashing with g = k: n
    Var = (e^eps + k - 1)^2 / ((k - 1) (e^eps - 1)^2) at f = 0, least at k = e^eps + 1; fewer
    cohorts call for more cells. Answers that are listed are dealt out by permutations, which
    collide less often than hashes: with P = sum_y m_y (m_y - 1) / (S (S - 1)) for cells of m_y
    of the S values. With many cohorts that has the variance of subset selection, the least there
    is, in a report of some bits.
    """

    name = "orr"
    paper = "Kairouz et al. 2016"
    good_for = "text that nobody listed in advance: a report of some bits"
    automatic = (Text,)
    inner_family = GRR
    permutes_lists = True
    two_likelihoods = True
    permuted = Design(0, 1, rule=listed_once)

    def derive_permuted(self) -> int:
        return int(not self.is_open)


@register
class ORAPPOR(CohortBits):
    """Symmetric unary encoding of the cells of a value: O-RAPPOR, without a permanent step.

    With h hash functions each bit is kept with s / (s + 1), s = e^(eps / (2 h)): the noise grows
    with h much faster than a Bloom filter gains by it, so h = 1 is best at every epsilon (as
    Kairouz et al. found by simulation; see `suggest`). Then n Var is about s / (s - 1)^2 + 1 /
    width, and what collisions of cohorts add.
    """

    name = "orappor"
    paper = "Kairouz et al. 2016"
    good_for = "comparison with ORR"
    inner_family = SUE
    hashes_to_try = (1, 2, 4)
    hashes = Design(*LIMITS["hashes"], default=1)
    permuted = Design(0, 1, default=0, rule=listed_once)


@register
class RAPPOR(MemoisedSupports, CohortBits):
    """Bloom filters of ``hashes`` hash functions, each bit randomised as in `BasicRAPPOR`.

    ``epsilon`` is what one report costs, ``permanent_guarantee`` what any number of reports made
    from one permanent row reveal at most: RAPPOR's 2 h ln ((1 - f / 2) / (f / 2)). Both are
    reached by values whose filters have no bit in common. Give ``epsilon`` and ``epsilon_inf``
    (default: 2 epsilon), or RAPPOR's ``f`` and the probabilities ``p`` = P(1 | 1) and ``q`` = P(1 |
    0) of its second step (which the paper names the other way round); epsilon follows. RAPPOR
    itself used 2 hash functions; more than one only adds noise, as in `ORAPPOR`.
    """

    name = "rappor"
    paper = "Erlingsson et al. 2014"
    good_for = "text that nobody listed, asked for again and again: see permanent_guarantee"
    automatic = (Text,)
    inner_family = BasicRAPPOR
    hashes_to_try = (1, 2, 4)
    hashes = Design(*LIMITS["hashes"], default=1)
    permanent = Threshold()

    def __init__(
        self,
        domain: DomainLike,
        epsilon: float | None = None,
        *,
        cohorts: int | None = None,
        width: int | None = None,
        hashes: int = 1,
        seed: int = 0,
        epsilon_inf: float | None = None,
        f: Probability | None = None,
        p: Probability | None = None,
        q: Probability | None = None,
        permanent: int | None = None,
        one: int | None = None,
        zero: int | None = None,
    ) -> None:
        h = require_int("hashes", hashes, *LIMITS["hashes"])
        given = {"permanent": permanent, "one": one, "zero": zero}
        once = None if epsilon is None else share_of(check_epsilon(epsilon), h)
        if p is not None and q is not None and f is not None:
            once = None  # epsilon follows from these, and is compared with the one given
        in_all = None
        if epsilon_inf is not None:
            in_all = check_permanent(epsilon, epsilon_inf) / h
        bits = BasicRAPPOR(2, once, epsilon_inf=in_all, f=f, p=p, q=q, **given)
        if epsilon is None:
            epsilon = Guarantee(bits.guarantee.ratio**h).epsilon
        integers = {"width": width, "hashes": hashes, "cohorts": cohorts, "seed": seed}
        thresholds = {name: getattr(bits, name) for name in self.thresholds}
        super().__init__(domain, epsilon, **integers, **thresholds)

    def begin(self, coins: Coins) -> int:
        """The cohort."""
        return coins.choice(self.cohorts)

    def memoise(self, begun: int, key: int, coins: Coins) -> bytes:
        row: bytes = self.inner.permanent_row(self.cells_of(key, begun), coins)
        return row

    def instant(self, begun: int, kept: bytes, coins: Coins) -> tuple[int, bytes]:
        return begun, self.inner.reported_row(kept, coins)

    @property
    def begin_words(self) -> int:
        return 1

    @property
    def memoise_words(self) -> int:
        return self.width

    @property
    def instant_words(self) -> int:
        return self.width

    @property
    def permanent_p(self) -> Fraction:
        p: Fraction = self.inner.permanent_p
        return p

    @property
    def permanent_q(self) -> Fraction:
        q: Fraction = self.inner.permanent_q
        return q + self.collisions.share * (self.permanent_p - q)

    def repeated_line(self, f: Floats) -> Line:
        """The variance of the permanent step alone, of devices that keep their cohort, too."""
        p, q = self.inner.permanent_p, self.inner.permanent_q
        own, other = self.moments_of(p, q)[:2]
        line = Line(np.full(f.shape, other), np.full(f.shape, own - other))
        return self._with_outside(line, f)

    @cached_property
    def permanent_guarantee(self) -> MemoisedGuarantee:
        """Two filters without a common bit differ in ``hashes`` bits each."""
        bits: MemoisedGuarantee = self.inner.permanent_guarantee
        keys = 1 << 64 if self.is_open else self.domain.size
        return MemoisedGuarantee.of(bits.kept_bits * self.hashes, keys)
