"""The task of most mechanisms: which share of the respondents gave each answer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from deniable.core.mechanism import Mechanism
from deniable.core.stored import Source
from deniable.core.task import (
    SKIPPED_SHARE,
    Expectation,
    Query,
    Task,
    people_needed,
    register_task,
)
from deniable.estimation.estimate import Frequencies, points
from deniable.estimation.frequencies.answered import planned_variances
from deniable.estimation.frequencies.estimator import Choices, asked, estimate_from
from deniable.estimation.frequencies.evidence import Evidence
from deniable.estimation.frequencies.intervals import two_sided_z
from deniable.estimation.frequencies.methods import DEFAULT_METHOD, methods_for, methods_of_counts
from deniable.mechanisms.frequency import FrequencyOracle, require_oracle

#: Errors are told for an answer that this share of the respondents gives. If half its 95 % interval
#: is as wide, it reaches 0: such an answer cannot be told from one that nobody gives.
SHARE = 0.1
CONFIDENCE = 0.95
GOOD, HOPELESS = SHARE / 2, SHARE
#: What is looked for among any texts when an error is predicted.
_TEXTS = ("one", "another")


def _takes_text(mechanism: Mechanism) -> bool:
    """Whether answers are any text: nobody listed them."""
    return not mechanism.domain.is_listed


class FrequencyTask(Task):
    """Frequencies of listed answers, or of candidates among answers that were any text."""

    name = "frequencies"
    default = DEFAULT_METHOD
    queries = {
        "candidates": Query("Look for", "texts", several=True, needed=True, suits=_takes_text)
    }

    def methods(self, mechanism: Mechanism) -> list[str]:
        return methods_of_counts(_asked(mechanism))

    def methods_of_reports(self, mechanism: Mechanism) -> list[str]:
        counts = self.methods(mechanism)
        return [name for name in methods_for(_asked(mechanism)) if name not in counts]

    def estimate(
        self,
        parts: Sequence[Source],
        method: str | None = None,
        *,
        candidates: Iterable[str] | None = None,
        **choices: Any,
    ) -> Frequencies:
        wanted = Choices.of(method, choices)
        return estimate_from(Evidence.of(asked(parts, candidates)), wanted)

    def error(  # type: ignore[override]  # these are all that may be guessed
        self,
        mechanism: Mechanism,
        n: int,
        *,
        share: float | None = None,
        sampled: bool = False,
        skipped: float | None = None,
    ) -> float:
        """That of an answer that a ``share`` gives, by default as many as give any other.

        The error of a text with a share is that beside one other answer that all others give: no
        answers disturb it more. Where the respondents are ``sampled``, that adds f (1 - f) / n.
        """
        if mechanism.domain.optional:
            skips = SKIPPED_SHARE if skipped is None else skipped
            return math.sqrt(_variance_among(mechanism, n, share, skips, sampled))
        drawn = (share or 0.0) * (1 - (share or 0.0)) / n if sampled else 0.0
        return math.sqrt(_variance(mechanism, n, share) + drawn)

    def half_width(
        self,
        mechanism: Mechanism,
        n: int,
        *,
        sampled: bool = False,
        skipped: float | None = None,
    ) -> float:
        guess: dict[str, Any] = {"share": SHARE, "sampled": sampled, "skipped": skipped}
        return two_sided_z(CONFIDENCE) * self.error(mechanism, n, **guess)

    def expectation(
        self,
        mechanism: Mechanism,
        n: int,
        *,
        sampled: bool = False,
        skipped: float | None = None,
    ) -> Expectation:
        width = partial(self.half_width, mechanism, sampled=sampled, skipped=skipped)
        found, percent = width(n), f"{100 * SHARE:.0f} %"
        people = "those who answer" if mechanism.domain.optional else "people"
        return Expectation(
            half_width=found,
            good=GOOD,
            hopeless=HOPELESS,
            people_needed=people_needed(width, n, GOOD),
            sentence=f"An answer that {percent} of {people} give will show as {percent} "
            f"{points(found)}",
            error=points(found),
            target=points(GOOD),
        )


def _asked(mechanism: Mechanism) -> FrequencyOracle:
    """The mechanism, about some candidates where answers are any text."""
    oracle = require_oracle(mechanism)
    return oracle.among(_TEXTS) if _takes_text(oracle) else oracle


def _variance(mechanism: Mechanism, n: int, share: float | None) -> float:
    """Of a frequency among all respondents."""
    about, text = _asked(mechanism), _takes_text(mechanism)
    if share is None:
        return float(np.max(about.variance(n, [0.0] * 3 if text else 1 / about.domain.size)))
    if text:
        return float(about.variance(n, [share, 1 - share, 0.0])[0])
    return float(np.max(about.variance(n, share)))


def _variance_among(
    mechanism: Mechanism, n: int, share: float | None, skipped: float, sampled: bool
) -> float:
    """Of a share of those who answer a question that some skip; guesses are as `_variance` has."""
    about, text = _asked(mechanism), _takes_text(mechanism)
    skip = about.domain.skip
    assert skip is not None
    answers = np.delete(np.arange(about.domain.size), skip)
    f = np.zeros(about.domain.size)
    if share is None:
        f[answers] = 0.0 if text else 1 / len(answers)
    else:
        others = answers[1:2] if text else answers[1:]
        f[answers[0]], f[others] = share, (1 - share) / len(others)
    f *= 1 - skipped
    f[skip] = skipped
    found = planned_variances(about, n, f, sampled=sampled)
    return float(np.max(found) if share is None else found[0])


FREQUENCIES = register_task(FrequencyTask())
