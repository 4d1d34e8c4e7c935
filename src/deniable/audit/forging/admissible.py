"""The reports that a server accepts, as a forger sees them.

Every unbiased estimate here is a mean over reports: n f = sum_i x(y_i), where x(y) is the
estimate from the report y alone, its contribution. So all that forged reports can do is known once
the contributions of all admissible reports are: their extremes, and how far two are apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from deniable.arrays import Data, Floats, Integers
from deniable.errors import InvalidArgument
from deniable.mechanisms import Mechanism
from deniable.mechanisms.frequency import FrequencyOracle, require_oracle

#: Numbers held at once where the contributions of many reports are compared.
BLOCK = 1 << 22


@dataclass(frozen=True)
class Products:
    """The law of the product of a genuine report's scores for two values, whatever the answer:
    its mean, a bound of its variance, and of how far it is from the mean."""

    mean: float
    variance: float
    most: float


class AdmissibleReports:
    """All reports of any mechanism, by enumerating its channel: for small domains.

    ``weights`` are whole numbers, one a value: 1 for the targets of a forger, 0 for the others.
    Forgers get a row of them for each report.
    """

    #: Whether the contributions to two values are uncorrelated in the report of every answer.
    uncorrelated: ClassVar[bool] = False
    #: Whether all listed values are in the same position.
    alike: ClassVar[bool] = False
    #: Whether `diameter` is reached, or only a bound.
    tight = True

    def __init__(self, mechanism: Any) -> None:
        self.mechanism = mechanism

    @cached_property
    def _outputs(self) -> Data:
        data: Data = self.mechanism.pack(self.mechanism.channel().outputs)
        return data

    def extremes(self, weights: Integers) -> tuple[float, float]:
        """The least and the largest weighted sum of contributions that one report can make."""
        sums = self.contributions(self._outputs) @ weights
        return float(sums.min()), float(sums.max())

    def ranges(self) -> tuple[Floats, Floats]:
        """The extremes for every single value; where values are alike, but for the last."""
        k = self.mechanism.domain.size
        values = [0, k - 1] if self.alike else range(k)
        pairs = [self.extremes(np.bincount([value], minlength=k)) for value in values]
        repeats = [k - 1, 1] if self.alike else np.ones(k, dtype=np.int64)
        low, high = (np.repeat(part, repeats) for part in np.array(pairs).T)
        return low, high

    def diameter(self) -> float:
        """The largest l1 distance between the contributions of two reports."""
        x = self.contributions(self._outputs)
        return max(float(np.abs(x - row).sum(axis=1).max()) for row in x)

    def unchecked(self, weights: Integers) -> float:
        """The largest sum that one report could make if nobody looked whether it is admissible."""
        return self.extremes(weights)[1]

    def contributions(self, data: Data) -> Floats:
        """Row i: the estimate from report i alone."""
        m = self.mechanism
        rows = [m.unbiased(m.count(data[i : i + 1]), 1) for i in range(len(data))]
        return np.array(rows).reshape(-1, m.domain.size)

    # ---- forged reports, one for each row of weights

    def any(self, weights: Integers, rng: Generator) -> Data:
        """Uniformly random admissible reports."""
        return self._outputs[rng.integers(0, len(self._outputs), len(weights))]

    def best(self, weights: Integers, rng: Generator) -> Data:
        """Reports with the largest weighted sum, and else as a genuine one would be."""
        sums = weights @ self.contributions(self._outputs).T
        return self._outputs[highest(np.round(sums, 9), rng)]

    def hidden(self, weights: Integers, rng: Generator) -> Data:
        """As large a sum as reports can have that look genuine one by one."""
        allowed = "one of deniable's own: of others it is not known what looks genuine"
        raise InvalidArgument("mechanism", self.mechanism, allowed)

    # ---- what the reports of honest people obey whatever they answer

    def sizes(self, data: Data) -> Integers | None:
        """How much each report supports in all, if that says anything."""
        return None

    def size_law(self) -> Floats:
        """The probability of each size of a genuine report."""
        raise NotImplementedError

    def scores(self, data: Data) -> Floats:
        """Row i: what report i says about each value, as `products` wants it."""
        return self.contributions(data)

    def products(self) -> Products | None:
        """What is known about the products of scores.

        Uncorrelated contributions have the mean 0. With n Var(f_v) = A + B f_v the mean square of
        one is A, or A + B + 1 in a report of the own value; two multiply.
        """
        m, k = self.mechanism, self.mechanism.domain.size
        if not self.uncorrelated:
            return None
        a, b = (float(part[0]) for part in m.variance_line(np.full(k, 1 / k), 1))
        low, high = self.extremes(np.bincount([0], minlength=k))
        return Products(0.0, max(a * a, a * (a + b + 1)), max(high, -low) ** 2)

    def least_means(self) -> Floats:
        """For each value, what a genuine report contributes to it on average, whatever the answer,
        at least: 0, since the estimate is unbiased."""
        return np.zeros(self.mechanism.domain.size)

    def draws(self, data: Data) -> list[float]:
        """P-values of the parts that are drawn whatever the answer."""
        return []


class SupportReports(AdmissibleReports):
    """Reports that support a value or do not: x_v = (s_v - q) / (p - q), s_v = 0 or 1."""

    alike = True

    def supported(self, weights: Integers) -> tuple[Any, Any]:
        """The least and the largest weight that one report supports, for each row of weights."""
        raise NotImplementedError

    def extremes(self, weights: Integers) -> tuple[float, float]:
        low, high = self.supported(weights)
        return self.scaled(float(low), weights), self.scaled(float(high), weights)

    def scaled(self, supported: float, weights: Integers) -> float:
        """The sum of contributions where so much weight is supported."""
        p, q = float(self.mechanism.p), float(self.mechanism.q)
        return (supported - q * float(weights.sum())) / (p - q)

    def diameter(self) -> float:
        """Everything against nothing, where both can be supported."""
        return float(self.mechanism.domain.size / (self.mechanism.p - self.mechanism.q))


def highest(scores: NDArray[Any], rng: Generator) -> Integers:
    """The place of a largest entry of each row, any of them."""
    ties = scores == scores.max(axis=1, keepdims=True)
    return np.asarray(np.argmax(ties * rng.random(scores.shape), axis=1))


def ranks(weights: Integers, rng: Generator) -> Integers:
    """The rank of each entry of a row, from the largest; equal ones in any order."""
    order = np.argsort(-weights - 0.5 * rng.random(weights.shape), axis=1)
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.arange(weights.shape[1])[None, :], axis=1)
    return places


def listed_oracle(mechanism: Any) -> FrequencyOracle:
    """The mechanism, if it counts answers that are listed; else a refusal."""
    oracle = require_oracle(mechanism)
    if not oracle.domain.is_listed:
        allowed = "a mechanism with listed answers: mechanism.among(candidates)"
        raise InvalidArgument("mechanism", mechanism, allowed)
    return oracle


def admissible_reports(mechanism: Mechanism) -> AdmissibleReports:
    """What is known about the reports of a mechanism; of a stranger's, by trying all of them."""
    from deniable.audit.forging.indices import INDICES
    from deniable.audit.forging.rows import ROWS
    from deniable.audit.forging.shared_hashes import COHORTS

    oracle = listed_oracle(mechanism)
    family, known = type(oracle), {**INDICES, **ROWS, **COHORTS}
    if not family.__module__.startswith("deniable."):
        return AdmissibleReports(oracle)
    return next((known[one] for one in family.__mro__ if one in known), AdmissibleReports)(oracle)
