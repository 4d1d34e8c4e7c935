"""From counts or reports to frequencies: what the task of frequencies does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.answers.text import Candidates
from deniable.core.reports import Reports
from deniable.core.tally import Tally
from deniable.errors import InvalidArgument, require_type
from deniable.estimation.estimate import Frequencies, check_population
from deniable.estimation.frequencies.decoded import Decoded, Uncertainty
from deniable.estimation.frequencies.errors.bootstrap import belt, generator_of
from deniable.estimation.frequencies.errors.score import analytic
from deniable.estimation.frequencies.evidence import Counts, Evidence
from deniable.estimation.frequencies.intervals import check_confidence, simultaneous_confidence
from deniable.estimation.frequencies.methods import DEFAULT_METHOD, OF_COHORTS, decode, find_method
from deniable.estimation.frequencies.simplex import project
from deniable.estimation.parts import require_parts

Floats = NDArray[np.float64]

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

    method: str | None = None
    confidence: float = 0.95
    errors: str | None = None
    population: str = "respondents"
    simultaneous: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        find_method(self.name)
        check_confidence(self.confidence)
        _check_errors(self.errors)
        check_population(self.population)
        require_type("simultaneous", self.simultaneous, bool)

    @property
    def name(self) -> str:
        return DEFAULT_METHOD if self.method is None else self.method


def conclude(evidence: Evidence, choices: Choices) -> Frequencies:
    """The estimate that this evidence leads to."""
    name, errors, population = choices.name, choices.errors, choices.population
    level, simultaneous = check_confidence(choices.confidence), choices.simultaneous
    _check_open(evidence, errors)
    decoded = decode(evidence, name, choices.options)
    each = simultaneous_confidence(level, evidence.k) if simultaneous else level
    sampling = population == "everyone"
    found = _uncertainty(evidence, name, decoded, each, sampling, errors, choices.options)
    return Frequencies(
        labels=evidence.domain.labels or tuple(range(evidence.k)),
        frequencies=decoded.frequencies,
        standard_errors=found.standard_errors,
        intervals=_holding(decoded.frequencies, found.intervals, name),
        n=evidence.n,
        method=name,
        confidence=level,
        source="; ".join(str(part.mechanism) for part in evidence.parts),
        errors=found.kind,
        population=population,
        simultaneous=simultaneous,
        certificate=decoded.certificate,
    )


def asked(
    parts: Sequence[Tally | Reports], candidates: Iterable[str] | None
) -> Sequence[Tally | Reports]:
    """The parts, about the candidates where the answers were any text."""
    if candidates is not None:
        listed: Any = Candidates.of(candidates)
        return [part.among(listed) for part in require_parts(parts)]
    for part in require_parts(parts):
        if not part.mechanism.domain.is_listed:
            allowed = "given: the answers were any text, and only candidates can be looked for"
            raise InvalidArgument("candidates", candidates, allowed)
    return parts


def _check_errors(errors: Any) -> None:
    if errors is not None and not (isinstance(errors, str) and errors in ERRORS):
        raise InvalidArgument("errors", errors, f"one of {', '.join(ERRORS)}")


def _check_open(evidence: Evidence, errors: str | None) -> None:
    if evidence.domain.is_open and errors not in (None, *OPEN_ERRORS):
        allowed = f"{' or '.join(OPEN_ERRORS)} for answers that were any text"
        raise InvalidArgument("errors", errors, allowed)


def _uncertainty(
    evidence: Evidence,
    name: str,
    decoded: Decoded,
    confidence: float,
    sampling: bool,
    errors: str | None,
    options: dict[str, Any],
) -> Uncertainty:
    """The errors that were asked for, or those that the method prefers."""
    kind: Any = find_method(name).errors if errors is None else errors
    if kind == "bootstrap":
        return _bootstrapped(evidence, name, decoded, confidence, sampling, options)
    if kind not in OWN:
        return analytic(evidence, confidence, sampling, kind)
    if decoded.own is None or name not in OWN[kind]:
        allowed = " or ".join(map(repr, OWN[kind]))
        raise InvalidArgument("errors", kind, f"used with the method {allowed}")
    return decoded.own(confidence, sampling)


def _holding(f: Floats, intervals: Floats, name: str) -> Floats:
    """Intervals that hold the estimate, cut to 0..1 unless it goes into linear computations.

    The truth is in 0..1, and more room for an estimate beyond never costs coverage.
    """
    low, high = (intervals if name in LINEAR else np.clip(intervals, 0.0, 1.0)).T
    return np.stack([np.minimum(low, f), np.maximum(high, f)], axis=1)


def _bootstrapped(
    evidence: Evidence,
    name: str,
    decoded: Decoded,
    confidence: float,
    sampling: bool,
    options: dict[str, Any],
) -> Uncertainty:
    """A belt of the method on some ten thousand simulated collections of the same size."""
    if len(evidence.parts) > 1 or any(name in methods for methods in OWN.values()):
        allowed = "used with one mechanism, and not with a method that has errors of its own"
        raise InvalidArgument("errors", "bootstrap", allowed)
    mechanism, counts = evidence.parts[0].mechanism, evidence.parts[0].tally.counts

    def again(simulated: Counts) -> Floats:
        tally = Tally.of_counts(mechanism, simulated, evidence.n)
        return decode(Evidence.of([tally]), name, options).frequencies

    found = belt(
        again,
        mechanism,
        evidence.n,
        project(evidence.unbiased),
        confidence=confidence,
        largest=float(decoded.frequencies.max()),
        rng=generator_of(counts),
        sampling=sampling,
    )
    y = decoded.frequencies
    return Uncertainty("bootstrap", found.standard_errors(y), found.intervals(y))
