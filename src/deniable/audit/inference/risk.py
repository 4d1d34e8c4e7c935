"""What a report gives away about the person who sent it, in numbers and in plain words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from deniable.arrays import Floats
from deniable.audit.inference.bayes_risk import bounded, guessing, posteriors, raised
from deniable.core.domain import Label
from deniable.core.mechanism import Labelled, as_floats
from deniable.core.reports import Reports
from deniable.errors import InvalidArgument, require_int, require_type
from deniable.exports import SHOWN, Exports, column
from deniable.mechanisms import Mechanism
from deniable.mechanisms.frequency import FrequencyOracle, oracle_of, require_oracle
from deniable.privacy.guarantee import MOST_REPORTS

#: Numbers computed with doubles are right to this much, which no rounding goes by.
NOISE = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class InferenceRisk(Exports):
    """The risk of one person with the prior ``prior``, who sends ``reports`` reports.

    ``before`` and ``after`` are the best guesser's success without and with the reports; both know
    the prior, the mechanism, and who sent what. ``largest`` is the posterior of each value after
    the report that points to it most. Where not ``exact`` these are upper bounds.
    """

    chosen: ClassVar[str] = "riskiest"

    labels: tuple[Label, ...]
    prior: Floats
    epsilon: float
    reports: int
    before: float
    after: float
    largest: Floats
    exact: bool
    #: Of those whose report supports a value, the share with another value; None if not known.
    others: Floats | None
    source: str
    #: Whether sentences are about every label; else they are about the one most at risk.
    few: bool = False

    @property
    def odds(self) -> float:
        """By what factor the reports can raise the odds of a value, at most: e^epsilon."""
        return _odds(self.epsilon)

    @property
    def coin_flip(self) -> float:
        """How sure anybody can be about a yes/no question that was a coin flip before."""
        return float(raised(self.odds, np.array([0.5]))[0])

    def sentences(self) -> list[str]:
        """The risk for readers who know no statistics.

        What reports add is rounded up: "before" down, "after" up, those who share a report down.
        """
        seen = "the report" if self.reports == 1 else f"{self.reports:,} reports"
        most, base = int(np.argmax(self.largest)), _base(self.before)
        said = [
            "Before: someone who knows the statistics, and nothing about the person, guesses right "
            f"{_of(self.before, base, up=False)} times.",
            f"After seeing {seen}: at most {_of(self.after, base, up=True)} times.",
            *(
                f"Whatever {seen} may say, nobody can be more than "
                f"{_percent(self.largest[place])} sure that the answer is {self.labels[place]!r}; "
                f"before: {_percent(self.prior[place], up=False)}."
                for place in (range(len(self.labels)) if self.few else [most])
            ),
            f"About a yes/no question that was a coin flip before, nobody can be more than "
            f"{_percent(self.coin_flip)} sure.",
        ]
        if self.others is not None:
            said.append(
                f"Of the people whose report points to {self.labels[most]!r}, at least "
                f"{_of(float(self.others[most]), 100, up=False)} have another answer."
            )
        return said

    def columns(self) -> dict[str, list[Any]]:
        """For each value: before, at most after, and who else sends such a report."""
        return {
            "value": column(self.labels),
            "before": self.prior.tolist(),
            "at most after": self.largest.tolist(),
            "others with such a report": (
                [None] * len(self.labels) if self.others is None else self.others.tolist()
            ),
        }

    @property
    def about(self) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "reports": self.reports,
            "before": self.before,
            "after": self.after,
            "exact": self.exact,
            "mechanism": self.source,
        }

    @property
    def interval_words(self) -> str:
        return "exact" if self.exact else "upper bounds"

    def shown(self, most: int = SHOWN) -> list[int]:
        """All values in order, or the riskiest of very many."""
        if len(self.labels) <= most:
            return list(range(len(self.labels)))
        order: list[int] = np.argsort(-self.largest, kind="stable")[:most].tolist()
        return order

    def __str__(self) -> str:
        seen = "one report" if self.reports == 1 else f"{self.reports:,} reports"
        return f"what {seen} can give away, {self.source}"


def inference_risk(
    mechanism: Mechanism,
    prior: Labelled | None = None,
    *,
    above: float | None = None,
    reports: int = 1,
) -> InferenceRisk:
    """The risk of a person who sends ``reports`` reports about one unchanged answer.

    ``prior`` are the frequencies that an attacker knows (default: uniform). Of a number the
    attacker guesses whether it is ``above`` another one (default: the middle of the range), and
    ``prior`` are the shares that are not, and that are. What is said of numbers, and of more than
    one report, is bounded by the exact epsilon after that many: of the memoised draw, or of fresh
    coins.
    """
    require_type("mechanism", mechanism, Mechanism)
    times = require_int("reports", reports, 1, MOST_REPORTS)
    labels = mechanism.domain.guesses(above)
    f = _prior(prior, labels)
    epsilon = mechanism.guarantee.after(reports=times)
    oracle = oracle_of(mechanism) if times == 1 else None
    found = bounded(_odds(epsilon), f) if oracle is None else guessing(oracle, f)
    return InferenceRisk(
        labels=tuple(labels),
        prior=f,
        epsilon=epsilon,
        reports=times,
        before=float(f.max()),
        after=found.success,
        largest=found.largest,
        exact=found.exact,
        others=None if oracle is None else _others(oracle, f),
        source=str(mechanism),
        few=not mechanism.domain.is_listed,
    )


def posterior(reports: Reports, prior: Labelled | None = None) -> Floats:
    """Row i: how probable every value is after report i alone, for one who knows the prior."""
    require_type("reports", reports, Reports)
    labels = require_oracle(reports.mechanism).domain.listed
    return posteriors(reports, _prior(prior, labels))


def _odds(epsilon: float) -> float:
    """e^epsilon, as far as doubles go."""
    return math.exp(epsilon) if epsilon < 700 else math.inf


def _others(mechanism: FrequencyOracle, f: Floats) -> Floats | None:
    """q (1 - f) / (p f + q (1 - f)), where every other value supports this one with the same q."""
    if not mechanism.two_likelihoods or not mechanism.independent_supports:
        return None
    if mechanism.chances is None:
        return None
    p, q = map(float, mechanism.chances)
    share: Floats = q * (1 - f) / (p * f + q * (1 - f))
    return share


def _prior(prior: Labelled | None, labels: Sequence[Label]) -> Floats:
    k = len(labels)
    if prior is None:
        return np.full(k, 1 / k)
    f = as_floats("prior", prior, labels)
    if f.shape != (k,) or not np.all(f >= 0) or not math.isclose(f.sum(), 1, abs_tol=1e-6):
        raise InvalidArgument("prior", prior, f"{k} frequencies that sum to 1")
    normalised: Floats = f / f.sum()
    return normalised


def _base(share: float) -> int:
    """Of how many to speak, such that a share is at least ten of them."""
    base = 100
    while share * base < 10 and base < 10**9:
        base *= 10
    return base


def _of(share: float, base: int, *, up: bool) -> str:
    """A share as "47 of 100"; of more where that would be all of them."""
    whole = math.ceil(share * base - NOISE) if up else math.floor(share * base + NOISE)
    if whole >= base and share < 1 - NOISE:
        return _of(share, 10 * base, up=up)
    return f"{min(whole, base):,} of {base:,}"


def _percent(share: float, digits: int = 1, *, up: bool = True) -> str:
    """A percentage, rounded up or down, with two digits that count at least.

    With more where it would become certainty.
    """
    if 0 < share < 10 ** -(digits + 1):
        return _percent(share, digits + 1, up=up)
    scaled = share * 10 ** (digits + 2)
    whole = (math.ceil(scaled - NOISE) if up else math.floor(scaled + NOISE)) / 10**digits
    if whole >= 100 and share < 1 - NOISE:
        return _percent(share, digits + 1, up=up)
    return f"{min(whole, 100):.12g} %"


def cell_words(name: str, cell: Any) -> str:
    """A cell of `InferenceRisk.rows` in words, rounded to the side of more risk."""
    if name == "value":
        return str(cell)
    if name.startswith("others"):
        return _of(cell, 100, up=False)
    return _percent(cell, up=name != "before")
