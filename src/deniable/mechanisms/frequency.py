"""Frequency oracles: mechanisms whose counts say how often each answer was given.

`FrequencyOracle` is what the decoders of frequencies ask of a mechanism; `Supports` derives it from
two probabilities, p and q, for reports that support some values and not others.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from deniable.answers.choice import Listed
from deniable.arrays import Counts, Floats
from deniable.core.domain import Domain, in_order
from deniable.core.mechanism import Labelled, Mechanism, as_floats
from deniable.core.registry import find, mechanisms
from deniable.errors import InvalidArgument, require_int
from deniable.privacy import Channel, exact_channel
from deniable.randomness import draw_key, require_generator

if TYPE_CHECKING:
    from numpy.random import Generator


class Line(NamedTuple):
    """A variance that is a line in the value's own frequency f, one for each value: a + b f."""

    a: Floats
    b: Floats

    def at(self, f: Floats) -> Floats:
        """The variances of values with these frequencies."""
        return np.asarray(self.a + self.b * f)

    def over(self, n: int) -> Line:
        """Both parts divided by n."""
        return Line(self.a / n, self.b / n)


class FrequencyOracle(Mechanism):
    """A mechanism with unbiased frequencies of its answers, and their variance."""

    takes: ClassVar[tuple[type[Domain], ...]] = (Listed,)
    tasks = ("frequencies",)
    #: The only number of answers that the family allows, if there is one.
    only_size: ClassVar[int | None] = None
    #: Whether a report is `once.ratio` times as likely under each value that it supports as under
    #: each other: then the exact likelihood of reports is known.
    two_likelihoods: ClassVar[bool] = False
    #: Whether counts say as much about the likelihood as the reports themselves.
    counts_suffice: ClassVar[bool] = False
    #: Whether a report is one of the answers, and supports that one only.
    direct: ClassVar[bool] = False
    #: Whether a report is a set of values, each of which is a coin of its own.
    bitwise: ClassVar[bool] = False
    #: Whether a count of supports is a sum of independent coins. It is not where respondents share
    #: hash functions: then frequencies are unbiased, and variances hold, over the choice of these.
    independent_supports: ClassVar[bool] = True

    @property
    def known_likelihood(self) -> bool:
        """Whether the exact likelihood of reports is known."""
        return self.two_likelihoods

    @classmethod
    def unsuited(cls, domain: Domain) -> str | None:
        other = isinstance(domain, Listed) and cls.only_size not in (None, domain.size)
        return f"{cls.only_size} answers for {cls.__name__}" if other else super().unsuited(domain)

    # ---- what a family says

    @abstractmethod
    def unbiased(self, counts: Counts, n: int) -> Floats:
        """Unbiased frequencies."""

    @abstractmethod
    def variance_line(self, f: Floats, n: int) -> Line:
        """n Var(f_v) = a_v + b_v f_v for n people with frequencies f."""

    def supports(self, counts: Counts, n: int) -> Counts | None:
        """How many reports support each value, with p and q; None without a single p and q."""
        return None

    @property
    def chances(self) -> tuple[Fraction, Fraction] | None:
        """(p, q): how likely a report supports its own value, and a given other; if single."""
        return None

    @property
    def blanket(self) -> Fraction | None:
        """Of reports that are answers: the least probability of each, whatever the own answer."""
        return None

    def told(self, data: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
        """Row i: what report i says about each of the values, as a number.

        It is the unbiased frequency from that report alone, computed once for equal ones; families
        say something simpler.
        """
        known, where = np.unique(data, return_inverse=True)
        rows = [self.unbiased(self.count(known[i : i + 1]), 1)[values] for i in range(len(known))]
        return np.asarray(np.round(np.array(rows), 6)[where.reshape(-1)])

    def sum_variances(self, weights: Floats) -> Floats:
        """Var(sum_v w_v s_v | x): row by row of weights w, for each answer x of a respondent.

        s_v is the unbiased frequency of v from one report. As respondents are independent,
        n Var(sum_v w_v f_v) is the mean of these over all of them: `sum_variances` @ f.
        """
        allowed = "one of which it is known how the errors of two answers depend on each other"
        raise InvalidArgument("mechanism", self, allowed)

    # ---- what follows

    def channel(self) -> Channel:
        return exact_channel(self.report, range(self.domain.size))

    def response(self) -> Floats:
        """Row u: the mean of `unbiased` when all answer u. The identity, but for shared hashes."""
        return np.eye(self.domain.size)

    def repeated_line(self, f: Floats) -> Line:
        """n Cov = a_v + b_v f_v for the unbiased frequencies of two rounds.

        In both the same n people give the same answers. Zero where every report has fresh coins.
        """
        return Line(np.zeros(f.shape), np.zeros(f.shape))

    def covariances(self, f: Floats, n: int, value: int) -> Floats:
        """n Cov(f_v, f_value) of the unbiased frequencies of n people with frequencies f.

        For v = value that is n Var. The largest that they can be (Cauchy and Schwarz), unless a
        family knows what they are.
        """
        variances = np.maximum(self.variance_line(f, n).at(f), 0.0)
        return np.asarray(np.sqrt(variances * variances[value]))

    def estimated_line(self, counts: Counts, n: int, unbiased: Floats | None = None) -> Line:
        """`variance_line` of an unknown population, from its counts.

        ``unbiased`` is what `unbiased` says, for callers who know it already: it may take long.
        """
        f = self.unbiased(counts, n) if unbiased is None else unbiased
        return self.variance_line(np.clip(f, 0.0, 1.0), n)

    def variance(self, n: int, f: Labelled | None = None) -> Floats:
        """The variance of each unbiased frequency from n reports of a fixed population.

        ``f`` holds the true frequencies (default: uniform); a single number stands for a
        value with that frequency while the others share the rest equally.
        """
        n = require_int("n", n, 1, 1 << 62)
        k = self.domain.size
        frequencies = self._frequencies(np.full(k, 1 / k) if f is None else f)
        one = frequencies.ndim == 0
        line = self.variance_at if one else self.variance_line
        return np.asarray(line(frequencies, n).at(frequencies) / n)

    def variance_at(self, f: Floats, n: int) -> Line:
        """`variance_line` of one value with frequency f while the others share the rest equally."""
        return self.variance_line(f, n)

    def _frequencies(self, f: Labelled) -> Floats:
        k = self.domain.size
        given = as_floats("f", f, self.domain.listed)
        fits = given.shape in ((), (k,)) and np.all(given >= 0) and given.sum() <= 1 + 1e-9
        if not fits:
            raise InvalidArgument("f", f, f"a number of 0..1 or {k} that sum to at most 1")
        return given

    def simulate(self, histogram: Labelled, rng: Generator) -> Counts:
        """Random counts of the reports of a population with ``histogram[v]`` respondents of v.

        The law is that of `tally` on their reports; families draw it without making any.
        """
        if self.domain.is_open and self.domain.is_listed:
            raise InvalidArgument("domain", self.domain, "any text or a list: candidates are asked")
        counts = np.asarray(in_order("histogram", histogram, self.domain.listed))
        whole = counts.shape == (self.domain.size,) and counts.dtype.kind in "iu"
        if not whole or np.any(counts < 0) or counts.astype(np.float64).sum() > 2**53:
            allowed = f"{self.domain.size} integers of at least 0 that sum to at most 2**53"
            raise InvalidArgument("histogram", histogram, allowed)
        require_generator(rng)
        return self.simulated_counts(counts.astype(np.int64), rng)

    def simulated_counts(self, histogram: Counts, rng: Generator) -> Counts:
        """`simulate`, by making and counting reports; families override it where they can."""
        indices = np.repeat(np.arange(self.domain.size, dtype=np.uint32), histogram)
        return self.count(self.randomise(indices, draw_key(rng), 1))

    def among(self, candidates: Iterable[str]) -> Self:
        """The same mechanism for any text, asked about some texts and everything else together."""
        integers = {name: getattr(self, name) for name in (*self.design, *self.thresholds)}
        return type(self)(self.domain.about(candidates), self.epsilon, **integers)


class Supports(FrequencyOracle):
    """Reports that support a value with probability p if it is the respondent's own, else with q.

    With c_v reports that support v, f_v = (c_v / n - q) / (p - q) is unbiased, and n Var(f_v) =
    q (1 - q) / (p - q)^2 + f_v (1 - p - q) / (p - q).
    """

    @property
    @abstractmethod
    def p(self) -> Fraction:
        """The probability that a report supports its own value, p*."""

    @property
    @abstractmethod
    def q(self) -> Fraction:
        """The probability that a report supports a given other value, q*."""

    @property
    def chances(self) -> tuple[Fraction, Fraction] | None:
        return self.p, self.q

    def _check(self) -> None:
        super()._check()
        if self.p <= self.q:
            self._refuse_thresholds("such that a report supports its own value more than others")

    def supports(self, counts: Counts, n: int) -> Counts | None:
        return counts

    def unbiased(self, counts: Counts, n: int) -> Floats:
        supports, (q, gap) = np.asarray(self.supports(counts, n)), self._gap
        return (supports / n - q) / gap

    @cached_property
    def _gap(self) -> tuple[float, float]:
        """q and p - q: fractions are slow."""
        return float(self.q), float(self.p - self.q)

    def variance_line(self, f: Floats, n: int) -> Line:
        return support_line(self.p, self.q, f)

    @property
    def together(self) -> tuple[Fraction, Fraction] | None:
        """How likely a report supports two given values: the own and another one, or two others.

        None where that is not known, or depends on which values they are.
        """
        return (Fraction(0), Fraction(0)) if self.direct else None

    def covariances(self, f: Floats, n: int, value: int) -> Floats:
        """((f_v + f_w) (p_vw - p q) + (1 - f_v - f_w) (q_vw - q^2)) / (p - q)^2 for w = value.

        p_vw and q_vw are the two probabilities of `together`.
        """
        if self.together is None:
            return super().covariances(f, n, value)
        p, q, (own, other) = self.p, self.q, self.together
        either, scale = f + f[value], (p - q) ** 2
        found = either * float((own - p * q) / scale) + (1 - either) * float((other - q**2) / scale)
        found[value] = self.variance_line(f, n).at(f)[value]
        return np.asarray(found)

    def sum_variances(self, weights: Floats) -> Floats:
        """With c = Cov(s_u, s_v | x) where x is u or v, and d where it is neither (`together`)."""
        if self.together is None:
            return super().sum_variances(weights)
        p, q, (own, other) = self.p, self.q, self.together
        c, d = float((own - p * q) / (p - q) ** 2), float((other - q**2) / (p - q) ** 2)
        line, squares = self.variance_line(np.zeros(1), 1), weights**2
        whole, total = (rows.sum(axis=1, keepdims=True) for rows in (weights, squares))
        alone = line.a * total + line.b * squares
        pairs = d * (whole**2 - total) + 2 * (c - d) * (weights * whole - squares)
        return np.asarray(alone + pairs)


def support_line(p: Fraction, q: Fraction, f: Floats) -> Line:
    """`FrequencyOracle.variance_line` of supports with probabilities p and q."""
    a = float(q * (1 - q) / (p - q) ** 2)
    b = float((1 - p - q) / (p - q))
    return Line(np.full(f.shape, a), np.full(f.shape, b))


def frequency_oracles() -> dict[str, type[FrequencyOracle]]:
    """All registered mechanisms that count answers, by name."""
    families = mechanisms().items()
    return {name: family for name, family in families if issubclass(family, FrequencyOracle)}


def find_oracle(name: str) -> type[FrequencyOracle]:
    """The family of this name, if it counts answers; else a refusal."""
    family = find(name)
    if not issubclass(family, FrequencyOracle):
        raise InvalidArgument("mechanism", name, "one that estimates frequencies of answers")
    return family


def oracle_of(mechanism: Any) -> FrequencyOracle | None:
    """The mechanism, if it counts answers."""
    return mechanism if isinstance(mechanism, FrequencyOracle) else None


def require_oracle(mechanism: Any) -> FrequencyOracle:
    """The mechanism, if it counts answers; else a refusal."""
    if (oracle := oracle_of(mechanism)) is None:
        raise InvalidArgument("mechanism", mechanism, "one that estimates frequencies of answers")
    return oracle
