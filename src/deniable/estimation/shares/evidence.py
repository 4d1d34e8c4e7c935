"""The unbiased shares of all reports about one question, and how they err, alone and together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.answers.items import Items
from deniable.arrays import Counts, Floats
from deniable.core.mechanism import Mechanism
from deniable.core.stored import Source
from deniable.errors import InvalidArgument, TooFew
from deniable.estimation.parts import about_one_question, tally_of
from deniable.estimation.ratios import Residual
from deniable.mechanisms.items import ItemMechanism, Law
from deniable.mechanisms.items.base import PairsSupported, usual_shares


@dataclass(frozen=True, eq=False)
class Reported:
    """What the n reports of one mechanism say; ``asked`` of them are about each item."""

    mechanism: ItemMechanism
    n: int
    counts: Counts
    supporting: Counts
    asked: Counts | Floats

    @classmethod
    def of(cls, source: Source) -> Reported:
        mechanism, tally = require_items(source.mechanism), tally_of(source)
        found = mechanism.supported(tally.counts, tally.n)
        if found.asked.min() == 0:
            words = (
                "an answer that no report is about: each is about a few answers, drawn at random"
            )
            raise TooFew(f"too few reports to tell: there is {words}")
        return cls(mechanism, tally.n, tally.counts, *found)

    @classmethod
    def planned(cls, mechanism: ItemMechanism, n: int) -> Reported:
        """What n reports can be expected to be about; nobody knows yet what they say."""
        unknown = np.zeros(mechanism.domain.items, dtype=np.int64)
        return cls(mechanism, n, unknown, unknown, np.full(len(unknown), n * mechanism.asked[0]))

    @property
    def law(self) -> Law:
        return self.mechanism.law

    @property
    def unbiased(self) -> Floats:
        """(supporting / asked - q) / (p - q)."""
        found = self.supporting / self.asked - self.law.q
        return np.asarray(found / (self.law.p - self.law.q))

    @property
    def variance(self) -> float:
        """That of a share, of a sample of people with the usual shares: what it is weighted by."""
        domain = self.mechanism.domain
        f, _ = usual_shares(domain.items, domain.at_most)
        asked, _ = self.mechanism.asked
        return float(self.law.variance(f) + f * (1 - f)) / (self.n * asked)

    @property
    def together(self) -> float:
        """How often two items err together: the reports about both, of those about either."""
        one, two = self.mechanism.asked
        return two / (one**2 * self.n)

    def ticks_variance(self, f: Floats) -> float:
        """The variance of the sum of the shares of all answers, as a sample of everyone.

        With y_v whether a report supports v: that of the sum of y_v over the answers it is about.
        How often two are supported together is counted, or can be at most what it is if those who
        tick any answers tick as many as they may. Few reports may all look alike: it is never less
        than what the reports of people with so many ticks vary by.
        """
        p, q = self.law.p, self.law.q
        chance = q + (p - q) * f
        asked = self.asked[: len(f)]
        alone = float(np.sum(chance * (1 - chance) / asked))
        apart = float(chance.sum() ** 2 - np.sum(chance**2))
        found = alone + self.together * (self._both(f) - apart)
        return max(found, self._noise(f), 0.0) / (p - q) ** 2

    def _noise(self, f: Floats) -> float:
        """What the sum of y_v varies by at least, if people tick as many answers as f sums to.

        It is quadratic in the number of ticks of a person: so its mean over people is least where
        all tick as many, or where each ticks none or as many as they may.
        """
        p, q, law = self.law.p, self.law.q, self.law
        k, m = len(f), self.mechanism.domain.at_most
        each = float(np.mean(1 / self.asked[:k]))

        def varies(t: float) -> float:
            alone = t * p * (1 - p) + (k - t) * q * (1 - q)
            both = t * (t - 1) * (law.p2 - p**2) + 2 * t * (k - t) * (law.p1 - p * q)
            none = (k - t) * (k - t - 1) * (law.p0 - q**2)
            return each * alone + self.together * (both + none)

        t = min(max(float(f.sum()), 0.0), float(m))
        return min(varies(t), (1 - t / m) * varies(0) + t / m * varies(m))

    def _both(self, f: Floats) -> float:
        """How likely a report about u and v supports both, summed over ordered pairs of answers."""
        pairs, law = self.mechanism.pairs_supported(self.counts, self.n), self.law
        if pairs is not None and pairs.asked.min(initial=1) > 0:
            return float(2 * np.sum(pairs.both / pairs.asked))
        k, m = len(f), self.mechanism.domain.at_most
        ticks = min(max(float(f.sum()), 0.0), float(m))
        curvature = law.p2 - 2 * law.p1 + law.p0
        most = max(curvature * (square - ticks) for square in (ticks**2, m * ticks))
        return k * (k - 1) * law.p0 + 2 * (k - 1) * (law.p1 - law.p0) * ticks + most


@dataclass(frozen=True, eq=False)
class Pooled:
    """Reports of one question, of one or several mechanisms and epsilons.

    ``unbiased`` is x = sum_g w_g x_g over the parts, with weights that do not depend on answers.
    Its variance is a + b f + ``spread`` f (1 - f) about the population that is asked for.
    """

    parts: tuple[Reported, ...]
    weights: Floats
    n: int
    everyone: bool

    @classmethod
    def of(cls, sources: Sequence[Source], everyone: bool) -> Pooled:
        parts = tuple(Reported.of(source) for source in about_one_question(sources))
        w = np.array([1 / part.variance for part in parts])
        return cls(parts, w / w.sum(), sum(part.n for part in parts), everyone)

    @classmethod
    def planned(cls, mechanism: Mechanism, n: int, everyone: bool) -> Pooled:
        """The errors of n reports, before there are any."""
        reports = Reported.planned(require_items(mechanism), n)
        return cls((reports,), np.ones(1), n, everyone)

    @property
    def domain(self) -> Items:
        return self.parts[0].mechanism.domain

    @property
    def unbiased(self) -> Floats:
        pairs = zip(self.weights, self.parts, strict=True)
        return np.asarray(sum(w * part.unbiased for w, part in pairs))

    def _summed(self, values: Sequence[Floats | float]) -> Floats:
        """Sums of w_g^2 times a value of each part."""
        return np.asarray(sum(w**2 * x for w, x in zip(self.weights, values, strict=True)))

    @property
    def line(self) -> tuple[Floats, Floats]:
        """a and b."""
        a, end = (
            self._summed([part.law.variance(f) / part.asked for part in self.parts])
            for f in (0.0, 1.0)
        )
        return a, end - a

    @property
    def _known(self) -> float:
        """What is taken off the variance for samples about the respondents themselves."""
        return 0.0 if self.everyone else 1 / self.n

    @property
    def spread(self) -> Floats:
        """How much of f (1 - f) is added because not everyone was asked about an item."""
        found = self._summed([1 / part.asked for part in self.parts]) - self._known
        return np.asarray(np.maximum(found, 0.0))

    def variances(self, f: Floats) -> Floats:
        """The variance of each share, if the shares are f."""
        a, b = self.line
        return np.asarray(a + b * f + self.spread * f * (1 - f))

    def covariance_line(self, other: float) -> tuple[float, float]:
        """c and d: the covariance c + d f of two shares, f and ``other``, that exclude each other.

        Nobody has both items: so everybody's f and ``other`` have the covariance - f other.
        """
        found = [part.together * part.law.covariance([other, other + 1]) for part in self.parts]
        c, end = self._summed(found)
        both = float(self._summed([part.together for part in self.parts])) - self._known
        return float(c), float(end - c) - both * other

    def residual(self, skipped: float) -> Residual:
        """Var(x_v - R N) with N = 1 - x_s, for a share R of those who answered.

        Var(x_v) and Cov(x_v, x_s) are lines in f_v = R N, but for the spread of x_v.
        """
        answered, (a, b), spread = 1 - skipped, self.line, self.spread[:-1]
        own = float(self.variances(np.full(len(a), skipped))[-1])
        c, d = self.covariance_line(skipped)
        return Residual(
            a[:-1],
            (b[:-1] + spread) * answered + 2 * c,
            own + 2 * d * answered - spread * answered**2,
        )

    def ticks_variance(self, f: Floats) -> float:
        """The variance of the sum of shares f; about respondents it is smaller, by at most 1 / 4
        of the square of the most answers that may be ticked, over n."""
        return float(self._summed([part.ticks_variance(f) for part in self.parts]))

    def pairs(self) -> Sequence[PairsSupported]:
        """What each part says about pairs; else a refusal."""
        found = [part.mechanism.pairs_supported(part.counts, part.n) for part in self.parts]
        if self.domain.optional:
            allowed = "one that nobody may skip: pairs of those who answered are not estimated"
            raise InvalidArgument("question", self.domain, allowed)
        known = [pairs for pairs in found if pairs is not None]
        if len(known) < len(found):
            allowed = "left out: these reports say nothing about pairs of answers (pairs = true)"
            raise InvalidArgument("method", "pairs", allowed)
        if any(pairs.asked.min(initial=1) == 0 for pairs in known):
            raise TooFew("too few reports to tell: there are two answers that no report is about")
        return known


def require_items(mechanism: Mechanism) -> ItemMechanism:
    """The mechanism, if it is for sets of answers; else a refusal."""
    if not isinstance(mechanism, ItemMechanism):
        raise InvalidArgument("mechanism", mechanism, "one that estimates shares of answers")
    return mechanism
