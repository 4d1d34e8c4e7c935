"""The tasks of sets of answers: the share of people who ticked each answer, and each pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from deniable.arrays import Floats
from deniable.core.domain import Label
from deniable.core.mechanism import Mechanism
from deniable.core.stored import Source
from deniable.core.task import (
    SKIPPED_SHARE,
    Expectation,
    Task,
    people_needed,
    register_task,
)
from deniable.errors import InvalidArgument, require_type
from deniable.estimation.estimate import (
    Estimate,
    Quantity,
    Skipped,
    check_population,
    points,
)
from deniable.estimation.frequencies.errors.exact import exact_intervals
from deniable.estimation.frequencies.intervals import (
    analytic_kind,
    check_confidence,
    simultaneous_confidence,
    two_sided_z,
)
from deniable.estimation.numbers.statistic import Statistic
from deniable.estimation.ratios import Residual, ratio_errors, ratio_intervals, require_enough
from deniable.estimation.shares.estimate import WORDS, Pairs, Shares
from deniable.estimation.shares.evidence import Pooled, require_items
from deniable.mechanisms.items.base import usual_shares

#: Decoders of shares; that of pairs.
UNBIASED, CLIPPED, PAIRS = "unbiased", "clipped", "pairs"
CONFIDENCE = 0.95
#: What `Shares.ticks` is called.
TICKS = "mean number of answers"
#: Errors are told for an answer that this share of people ticks; see `frequencies.task`.
SHARE = 0.1
GOOD, HOPELESS = SHARE / 2, SHARE
#: An error that is smaller by this factor without pairs is told.
PRICE = 0.98


@dataclass(frozen=True)
class Wanted:
    """What the caller of `deniable.combine` wants."""

    confidence: float
    population: str
    simultaneous: bool

    def z(self, rows: int) -> float:
        """The z of each of several intervals."""
        return two_sided_z(self.level(rows))

    def level(self, rows: int) -> float:
        """The confidence of each of several intervals."""
        if not self.simultaneous:
            return self.confidence
        return simultaneous_confidence(self.confidence, rows)

    @property
    def everyone(self) -> bool:
        return self.population == "everyone"


class SharesTask(Task):
    """The share of people who ticked each answer.

    "unbiased" shares may lie beyond 0 and 1 if there are few reports, as their intervals may;
    "clipped" ones are moved to the nearer end. They are never made to sum to 1. The method
    "pairs" has a row for each pair of answers, where reports tell of pairs.
    """

    name = "shares"
    default = UNBIASED

    def methods(self, mechanism: Mechanism) -> list[str]:
        items = require_items(mechanism)
        pairs = [PAIRS] if items.paired and not items.domain.optional else []
        return [UNBIASED, CLIPPED, *pairs]

    def estimate(
        self,
        parts: Sequence[Source],
        method: str | None = None,
        *,
        confidence: float = CONFIDENCE,
        population: str = "respondents",
        simultaneous: bool = False,
        **options: Any,
    ) -> Estimate:
        """Shares with score intervals, exact ones of few reports, and Fieller's beside skips.

        Parts of several mechanisms are weighted by their inverse variances.
        """
        name = UNBIASED if method is None else method
        if not isinstance(name, str) or name not in (UNBIASED, CLIPPED, PAIRS):
            allowed = f"one of {UNBIASED}, {CLIPPED}, {PAIRS} for shares"
            raise InvalidArgument("method", method, allowed)
        if options:
            allowed = "confidence, population or simultaneous for shares"
            raise InvalidArgument("options", sorted(options), allowed)
        require_type("simultaneous", simultaneous, bool)
        level = check_confidence(confidence)
        wanted = Wanted(level, check_population(population), simultaneous)
        evidence = Pooled.of(parts, wanted.everyone)
        about: dict[str, Any] = {
            "n": evidence.n,
            "method": name,
            "confidence": level,
            "source": "; ".join(str(part.mechanism) for part in evidence.parts),
            "population": population,
            "simultaneous": simultaneous,
        }
        if name == PAIRS:
            return _pairs(evidence, wanted, about)
        decode = _among_answered if evidence.domain.optional else _of_all
        return decode(evidence, wanted, name == CLIPPED, about)

    def error(  # type: ignore[override]  # these are all that may be guessed
        self,
        mechanism: Mechanism,
        n: int,
        *,
        share: float | None = None,
        sampled: bool = False,
        skipped: float | None = None,
    ) -> float:
        """That of an answer with this ``share``, or with the usual one that designs are made for.

        Where the respondents are ``sampled``, that adds f (1 - f) / n.
        """
        planned = Pooled.planned(mechanism, n, sampled)
        domain = planned.domain
        f = usual_shares(domain.items, domain.at_most)[0] if share is None else share
        if domain.optional:
            skips = SKIPPED_SHARE if skipped is None else skipped
            shares = np.full(len(domain.names), f * (1 - skips))
            return float(ratio_errors(shares, 1 - skips, planned.residual(skips))[0])
        return math.sqrt(float(planned.variances(np.full(domain.items, f))[0]))

    def half_width(
        self,
        mechanism: Mechanism,
        n: int,
        *,
        sampled: bool = False,
        skipped: float | None = None,
    ) -> float:
        found = self.error(mechanism, n, share=SHARE, sampled=sampled, skipped=skipped)
        return two_sided_z(CONFIDENCE) * found

    def expectation(
        self,
        mechanism: Mechanism,
        n: int,
        *,
        sampled: bool = False,
        skipped: float | None = None,
    ) -> Expectation:
        """That of a single answer; of a pair, too, where reports tell of pairs."""
        width = partial(self.half_width, mechanism, sampled=sampled, skipped=skipped)
        found, percent = width(n), f"{100 * SHARE:.0f} %"
        people = "those who answer" if mechanism.domain.optional else "people"
        sentence = f"An answer that {percent} of {people} tick will show as {percent} "
        sentence += points(found)
        if PAIRS in self.methods(mechanism):
            pair = two_sided_z(CONFIDENCE) * PAIR_SHARES.error(mechanism, n, share=SHARE)
            sentence += f", and two that {percent} tick together as {percent} {points(pair)}"
            plain = self.half_width(mechanism.over(mechanism.domain), n, sampled=sampled)
            if plain < PRICE * found:
                sentence += (
                    f"; without pairs, a single answer would show as {percent} {points(plain)}"
                )
        return Expectation(
            half_width=found,
            good=GOOD,
            hopeless=HOPELESS,
            people_needed=people_needed(width, n, GOOD),
            sentence=sentence,
            error=points(found),
            target=points(GOOD),
        )


class PairsTask(SharesTask):
    """The share of people who ticked both answers of a pair: what a design may be chosen for."""

    name = "pairs"

    def error(  # type: ignore[override]
        self,
        mechanism: Mechanism,
        n: int,
        *,
        share: float | None = None,
        sampled: bool = False,
        skipped: float | None = None,
    ) -> float:
        """That of a pair with this share, of two answers with twice the share each."""
        items = require_items(mechanism)
        if not items.paired:
            return math.inf
        f, both = usual_shares(items.domain.items, items.domain.at_most)
        if share is not None:
            f, both = 2 * share, share
        _, asked = items.asked
        spread = (1 / asked - 1 + sampled) * both * (1 - both)
        variance = float(items.law.pair_variance(both, 2 * (f - both))) / asked + spread
        return math.sqrt(variance / n)


def _shares(
    evidence: Pooled,
    values: Floats,
    deviations: Floats,
    intervals: Floats,
    clipped: bool,
    about: dict[str, Any],
) -> Shares:
    """The estimate; clipped intervals hold the estimate as well."""
    if clipped:
        values, intervals = np.clip(values, 0.0, 1.0), np.clip(intervals, 0.0, 1.0)
    ends = (np.minimum(intervals[:, 0], values), np.maximum(intervals[:, 1], values))
    one = Quantity(values, deviations, np.stack(ends, axis=1), True, (0.0, 1.0), WORDS)
    return Shares(labels=tuple(evidence.domain.names), quantities={"share": one}, **about)


def _of_all(evidence: Pooled, wanted: Wanted, clipped: bool, about: dict[str, Any]) -> Shares:
    """Shares of all respondents, where nobody could skip the question."""
    x = evidence.unbiased
    errors = np.sqrt(evidence.variances(np.clip(x, 0.0, 1.0)))
    kind, intervals = _intervals(evidence, x, wanted)
    ticks, error = float(x.sum()), math.sqrt(evidence.ticks_variance(x))
    half = two_sided_z(wanted.confidence) * error
    found = Statistic(TICKS, ticks, error, (ticks - half, ticks + half))
    about |= {"errors": kind, "ticks": found}
    return _shares(evidence, x, errors, intervals, clipped, about)


def _intervals(evidence: Pooled, x: Floats, wanted: Wanted) -> tuple[str, Floats]:
    """Exact intervals where the normal law of counts is not safe, else score intervals."""
    level, (first, *others) = wanted.level(len(x)), evidence.parts
    law, least = first.law, int(first.asked.min())
    if not others and analytic_kind(least, law.p, law.q, level) == "exact":
        # Those who were asked about an answer are a sample, unless all were.
        sampling = wanted.everyone or least < first.n
        found = np.empty((len(x), 2))
        for n in np.unique(first.asked).tolist():
            rows = first.asked == n
            c = first.supporting[rows]
            found[rows] = exact_intervals(c, n, law.p, law.q, level, sampling=sampling)
        return "exact", found
    a, b = evidence.line
    variance = Residual(a, b + evidence.spread, -evidence.spread)
    return "score", ratio_intervals(x, 1.0, variance, wanted.z(len(x)))


def _among_answered(
    evidence: Pooled, wanted: Wanted, clipped: bool, about: dict[str, Any]
) -> Shares:
    """Shares of those who did not skip: x_v / N with N = 1 - x_s, and Fieller's intervals."""
    x, skips = evidence.unbiased[:-1], float(evidence.unbiased[-1])
    answered, skipped = 1 - skips, min(max(skips, 0.0), 1.0)
    error = math.sqrt(float(evidence.variances(np.full(len(x) + 1, skipped))[-1]))
    require_enough("people who answered", answered, error, evidence.n)
    residual = evidence.residual(skipped)
    errors = ratio_errors(np.clip(x, 0.0, answered), answered, residual)
    intervals = ratio_intervals(x, answered, residual, wanted.z(len(x)))
    ticks, (c, d) = float(x.sum()), evidence.covariance_line(skipped)
    both = -(len(x) * c + d * ticks)
    whole = Residual.of(evidence.ticks_variance(x), both, error**2)
    z = two_sided_z(wanted.confidence)
    low, high = ratio_intervals(ticks, answered, whole, z).tolist()
    mean = ticks / answered
    spread = float(ratio_errors(ticks, answered, whole))
    ends = (max(skips - z * error, 0.0), min(skips + z * error, 1.0))
    about |= {
        "errors": "score",
        "ticks": Statistic(TICKS, mean, spread, (low, high)),
        "skipped": Skipped(skipped, error, (min(ends[0], skipped), max(ends[1], skipped))),
    }
    return _shares(evidence, x / answered, errors, intervals, clipped, about)


def _pairs(evidence: Pooled, wanted: Wanted, about: dict[str, Any]) -> Pairs:
    """Shares of pairs, and the association f_uv - f_u f_v, from the reports about both answers.

    A share is the mean of what reports score (`Law.scores`). The error of an association is to
    first order: that of the score of both, less f_v times that of u and f_u times that of v. It is
    that about everyone, which is larger than that about the respondents.
    """
    known = evidence.pairs()
    names = evidence.domain.names
    f, both = usual_shares(evidence.domain.items, evidence.domain.at_most)
    laws = [part.law for part in evidence.parts]
    w = np.array(
        [
            part.n * part.mechanism.asked[1] / float(law.pair_variance(both, 2 * (f - both)))
            for part, law in zip(evidence.parts, laws, strict=True)
        ]
    )
    w /= w.sum()
    shares = [_outcomes(one) for one in known]
    scores = [_scores(law) for law in laws]
    groups = list(zip(w, shares, scores, known, strict=True))
    # Rows: of both, of u, of v.
    x = sum(wg * (score @ share) for wg, share, score, _ in groups)
    f_u, f_v = (np.clip(one, 0.0, 1.0) for one in x[1:])
    f_uv = np.clip(x[0], np.maximum(f_u + f_v - 1, 0.0), np.minimum(f_u, f_v))
    less = 0.0 if wanted.everyone else 1 / evidence.n
    variances = sum(
        wg**2 / one.asked * (law.pair_variance(f_uv, f_u + f_v - 2 * f_uv) + f_uv * (1 - f_uv))
        for (wg, _, _, one), law in zip(groups, laws, strict=True)
    )
    errors = np.sqrt(np.maximum(variances - less * f_uv * (1 - f_uv), 0.0))
    influence = np.stack([np.ones_like(f_u), -f_v, -f_u])
    states = np.stack([f_uv, f_u - f_uv, f_v - f_uv, 1 - f_u - f_v + f_uv])
    delta = np.sqrt(
        sum(
            wg**2 / one.asked * _variance(law.outcomes().T @ states, score.T @ influence)
            for (wg, _, score, one), law in zip(groups, laws, strict=True)
        )
    )
    found = {
        "share": Quantity(x[0], errors, _normal(x[0], errors, wanted), True, (0.0, 1.0), WORDS),
        "association": _association(x[0] - x[1] * x[2], delta, wanted),
    }
    pairs = list(combinations(names, 2))
    return Pairs(
        labels=tuple(_together(*pair) for pair in pairs),
        answers=tuple(pairs),
        quantities=found,
        errors="normal",
        **about,
    )


def _outcomes(one: Any) -> Floats:
    """The shares of reports that support none, only u, only v, both (rows), for each pair."""
    first, second = one.first - one.both, one.second - one.both
    none = one.asked - first - second - one.both
    return np.asarray(np.stack([none, first, second, one.both]) / one.asked)


def _scores(law: Any) -> Floats:
    """What each outcome scores for both, for u and for v (rows)."""
    low, high = np.array([-law.q, 1 - law.q]) / (law.p - law.q)
    return np.array([law.scores[[0, 1, 1, 2]], [low, high, low, high], [low, low, high, high]])


def _variance(law: Floats, values: Floats) -> Floats:
    """That of values with these probabilities (rows), for each pair."""
    return np.asarray(np.sum(law * values**2, axis=0) - np.sum(law * values, axis=0) ** 2)


def _association(values: Floats, errors: Floats, wanted: Wanted) -> Quantity:
    words = "association: share of both, less the product of both shares"
    return Quantity(values, errors, _normal(values, errors, wanted), words=words)


def _normal(values: Floats, errors: Floats, wanted: Wanted) -> Floats:
    half = wanted.z(len(values)) * errors
    return np.stack([values - half, values + half], axis=1)


def _together(one: Label, other: Label) -> str:
    return f"{one} + {other}"


SHARES = register_task(SharesTask())
PAIR_SHARES = register_task(PairsTask())
