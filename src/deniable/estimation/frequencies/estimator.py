"""From counts or reports to frequencies: what the task of frequencies does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deniable.answers.text import Candidates
from deniable.arrays import Counts, Floats
from deniable.core.stored import Source
from deniable.core.tally import Tally
from deniable.errors import InvalidArgument, require_type
from deniable.estimation.estimate import Frequencies, check_population
from deniable.estimation.frequencies.answered import Shares, among_answered
from deniable.estimation.frequencies.errors.bootstrap import belt, generator_of
from deniable.estimation.frequencies.errors.score import analytic
from deniable.estimation.frequencies.evidence import Decoded, Evidence, Uncertainty
from deniable.estimation.frequencies.intervals import check_confidence, simultaneous_confidence
from deniable.estimation.frequencies.methods import DEFAULT_METHOD, OF_COHORTS, decode, find_method
from deniable.estimation.frequencies.ordered import Ordered
from deniable.estimation.frequencies.simplex import project
from deniable.estimation.parts import require_parts

#: Kinds of errors that only some methods have, and all kinds.
OWN = {"posterior": ("bayes",), "information": ("likelihood",), "regression": OF_COHORTS}
ERRORS = ("score", "exact", "bootstrap", *OWN)
#: Methods that are linear in the counts.
LINEAR = ("unbiased", "least-squares")
#: Errors of answers that were any text: an unknown one may be frequent, and fits no other model.
OPEN_ERRORS = ("score", "regression")


@dataclass(frozen=True)
class Choices:
    """What the caller of `deniable.combine` wants, checked before any work is done."""

    method: str = DEFAULT_METHOD
    confidence: float = 0.95
    #: The kind of errors; None: those that the method prefers.
    errors: str | None = None
    population: str = "respondents"
    simultaneous: bool = False
    #: Options of the method.
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, method: str | None, given: Mapping[str, Any]) -> Choices:
        """The choices among the keywords that a caller gave; all others are for the method."""
        named = ("confidence", "errors", "population", "simultaneous")
        chosen = {name: given[name] for name in named if name in given}
        options = {name: value for name, value in given.items() if name not in named}
        return cls(DEFAULT_METHOD if method is None else method, **chosen, options=options)

    def __post_init__(self) -> None:
        find_method(self.method)
        object.__setattr__(self, "confidence", check_confidence(self.confidence))
        if self.errors is not None and not (isinstance(self.errors, str) and self.errors in ERRORS):
            raise InvalidArgument("errors", self.errors, f"one of {', '.join(ERRORS)}")
        check_population(self.population)
        require_type("simultaneous", self.simultaneous, bool)

    @property
    def sampling(self) -> bool:
        """Whether the respondents are a sample of the population that is asked about."""
        return self.population == "everyone"

    def confidence_each(self, k: int) -> float:
        """The confidence of each of k intervals."""
        if not self.simultaneous:
            return self.confidence
        return simultaneous_confidence(self.confidence, k)


def estimate_from(evidence: Evidence, choices: Choices) -> Frequencies:
    """The estimate that this evidence leads to."""
    _check_open(evidence, choices.errors)
    decoded = decode(evidence, choices.method, choices.options)
    found = _shares(evidence, decoded, choices)
    return Frequencies(
        labels=evidence.domain.answered,
        frequencies=found.values,
        standard_errors=found.errors.standard_errors,
        intervals=_containing(found.values, found.errors.intervals, choices.method),
        n=evidence.n,
        method=choices.method,
        confidence=choices.confidence,
        source="; ".join(str(part.mechanism) for part in evidence.parts),
        errors=found.errors.kind,
        population=choices.population,
        simultaneous=choices.simultaneous,
        skipped=found.skipped,
        certificate=decoded.certificate,
        order=_order(evidence, found.values, choices),
    )


def _order(evidence: Evidence, frequencies: Floats, choices: Choices) -> Ordered | None:
    """What is known of the answers in their order, if they have one."""
    if not evidence.domain.is_ordered:
        return None
    each = choices.confidence_each(max(1, len(frequencies) - 1))
    return Ordered(evidence, frequencies, each, choices.simultaneous, choices.sampling)


def _shares(evidence: Evidence, decoded: Decoded, choices: Choices) -> Shares:
    """Those of everybody, or of those who answered where the question may be skipped."""
    if not evidence.domain.optional:
        return Shares(decoded.frequencies, _uncertainty(evidence, decoded, choices))
    if choices.errors not in (None, "score"):
        allowed = "'score' where a question may be skipped: no others are about who answered"
        raise InvalidArgument("errors", choices.errors, allowed)
    each = choices.confidence_each(evidence.k - 1)
    return among_answered(evidence, decoded, each, choices.confidence, sampling=choices.sampling)


def asked(parts: Sequence[Source], candidates: Iterable[str] | None) -> Sequence[Source]:
    """The parts, about the candidates where the answers were any text."""
    if candidates is not None:
        listed: Any = Candidates.of(candidates)
        return [part.among(listed) for part in require_parts(parts)]
    for part in require_parts(parts):
        if not part.mechanism.domain.is_listed:
            allowed = "given: the answers were any text, and only candidates can be looked for"
            raise InvalidArgument("candidates", candidates, allowed)
    return parts


def _check_open(evidence: Evidence, errors: str | None) -> None:
    if evidence.domain.is_open and errors not in (None, *OPEN_ERRORS):
        allowed = f"{' or '.join(OPEN_ERRORS)} for answers that were any text"
        raise InvalidArgument("errors", errors, allowed)


def _uncertainty(evidence: Evidence, decoded: Decoded, choices: Choices) -> Uncertainty:
    """The errors that were asked for, or those that the method prefers."""
    kind: Any = choices.errors or find_method(choices.method).errors
    if kind == "bootstrap":
        return _bootstrapped(evidence, decoded, choices)
    confidence = choices.confidence_each(evidence.k)
    if kind not in OWN:
        return analytic(evidence, confidence, choices.sampling, kind)
    if decoded.own is None or choices.method not in OWN[kind]:
        allowed = " or ".join(map(repr, OWN[kind]))
        raise InvalidArgument("errors", kind, f"used with the method {allowed}")
    return decoded.own(confidence, choices.sampling)


def _containing(f: Floats, intervals: Floats, method: str) -> Floats:
    """Intervals that contain the estimate, cut to 0..1 unless it goes into linear computations.

    The truth is in 0..1, and more room for an estimate beyond never costs coverage.
    """
    low, high = (intervals if method in LINEAR else np.clip(intervals, 0.0, 1.0)).T
    return np.stack([np.minimum(low, f), np.maximum(high, f)], axis=1)


def _bootstrapped(evidence: Evidence, decoded: Decoded, choices: Choices) -> Uncertainty:
    """A belt of the method on some ten thousand simulated collections of the same size."""
    if len(evidence.parts) > 1 or any(choices.method in methods for methods in OWN.values()):
        allowed = "used with one mechanism, and not with a method that has errors of its own"
        raise InvalidArgument("errors", "bootstrap", allowed)
    mechanism, counts = evidence.parts[0].mechanism, evidence.parts[0].tally.counts

    def again(simulated: Counts) -> Floats:
        tally = Tally.of_counts(mechanism, simulated, evidence.n)
        return decode(Evidence.of([tally]), choices.method, choices.options).frequencies

    found = belt(
        again,
        mechanism,
        evidence.n,
        project(evidence.unbiased),
        confidence=choices.confidence_each(evidence.k),
        largest=float(decoded.frequencies.max()),
        rng=generator_of(counts),
        sampling=choices.sampling,
    )
    y = decoded.frequencies
    return Uncertainty("bootstrap", found.standard_errors(y), found.intervals(y))
