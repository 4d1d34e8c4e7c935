"""Whether a question can work with the people it will have, and what would make it work.

What to expect of a number of reports is the task's business (`core.task.Expectation`). Here it is
about a survey: some questions are answered by a share of the respondents only, and designs change
with the epsilon of the survey and with the number of its respondents.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from deniable.collection.client import MOST_EPSILON
from deniable.collection.manifest import Asked, Collection
from deniable.collection.questions import Question
from deniable.collection.recommend import AUTO
from deniable.core.domain import OPTIONAL
from deniable.core.mechanism import Mechanism
from deniable.core.task import MOST_PEOPLE, Expectation, find_task, two_digits
from deniable.errors import InvalidArgument

#: Epsilons are proposed in such steps.
STEP = 0.25
#: Designs that are tried until one is good.
TRIES = 10
#: Where a question may be skipped, it is judged as if a fifth of the respondents did.
FIFTH = 0.2

#: The mechanism of a question by its name, with other keys, another ``epsilon`` or other
#: ``respondents``.
Redesign = Callable[..., Mechanism]


@dataclass(frozen=True)
class Wish:
    """What is wanted of the answers to a question (`Domain.purposes`), and what that tells."""

    words: str
    mechanism: Mechanism
    #: Whether the survey asks for it.
    chosen: bool
    #: What to expect of everything that the mechanism can tell, by task.
    expectations: Mapping[str, Expectation]


@dataclass(frozen=True)
class Price:
    """What to expect of a question that may be skipped, beside the same one that may not be."""

    #: If nobody skips it, and if a fifth of the respondents do.
    nobody: Expectation
    fifth: Expectation
    #: If nobody may skip it; None if no survey file says how it would be asked.
    required: Expectation | None

    @property
    def sentence(self) -> str:
        """The price as a person would say it."""
        found = f"{self.nobody.error} if nobody skips it and {self.fifth.error} if a fifth do"
        if self.required is None:
            return f"The error is {found}."
        factors = " and ".join(
            f"{(one.half_width / self.required.half_width) ** 2:.2f}"
            for one in (self.nobody, self.fifth)
        )
        return (
            f"The error is {found}. It would be {self.required.error} if nobody could skip it. "
            f"For the error without skipping, you need {factors} times as many people."
        )


@dataclass(frozen=True)
class Verdict:
    """What to expect of a question; needs are None where the question is good or nothing helps."""

    collection: Collection
    question: Question
    people: int
    expectation: Expectation
    people_needed: int | None
    epsilon_needed: float | None
    #: What else the same answers can be asked for, if there is a choice.
    wishes: tuple[Wish, ...] = ()
    #: What it costs that people may skip it, if they may.
    price: Price | None = None

    @property
    def hopeless(self) -> bool:
        """Whether the result would tell next to nothing."""
        return self.expectation.half_width >= self.expectation.hopeless

    def to_row(self) -> dict[str, Any]:
        """How the question is asked, what it costs, and what to expect of one round, as data."""
        asked = self.collection.asked(self.question.name)
        return {
            "question": self.question.name,
            "kind": self.question.domain.kind,
            "answers": self.question.domain.words(),
            "mechanism": type(asked.mechanism).__name__,
            "epsilon": self.collection.spent_on(self.question.name),
            "bytes": asked.report.mechanism.dtype.itemsize,
            "reports": answering(asked, self.people),
            "error": self.expectation.half_width,
            "verdict": self.expectation.verdict,
            "people_needed": self.people_needed,
            "epsilon_needed": self.epsilon_needed,
            "error_if_nobody_skips": self.price and self.price.nobody.half_width,
            "error_if_not_optional": self.price
            and self.price.required
            and self.price.required.half_width,
            **({"wishes": self.wished} if self.wishes else {}),
        }

    @property
    def wished(self) -> list[dict[str, Any]]:
        """A row for each wish, with the errors of all that some mechanism tells."""
        tasks = dict.fromkeys(task for one in self.wishes for task in one.expectations)
        return [
            {
                "wanted": f"{one.words} (as asked)" if one.chosen else one.words,
                "mechanism": type(one.mechanism).__name__,
                **{t: one.expectations[t].error if t in one.expectations else "-" for t in tasks},
            }
            for one in self.wishes
        ]

    @property
    def sentence(self) -> str:
        """The verdict as a person would say it."""
        expected = self.expectation
        if self.hopeless:
            found = f"With {self.people:,} respondents the error is {expected.error}."
            needed = f"You need {self._needed}."
        else:
            found = f"{expected.sentence} ({self._terms})."
            needed = f"For {expected.target} you need {self._needed}."
        told = f"{self.question.name}: {expected.verdict}. {found}"
        told = told if _good(expected) else f"{told} {needed}"
        return told if self.price is None else f"{told} {self.price.sentence}"

    @property
    def _terms(self) -> str:
        epsilon = f"epsilon {self.collection.spent_on(self.question.name):.4g}"
        people = f"{self.people:,} people"
        if self.collection.rounds > 1:
            people, epsilon = f"{people} in each round", f"{epsilon} for all rounds"
        skipping = " of whom a fifth skip it," if self.price else ""
        return f"{people},{skipping} {epsilon}"

    @property
    def _needed(self) -> str:
        several = len(self.collection.questions) > 1
        ways = []
        if self.people_needed is not None:
            ways.append(f"about {self.people_needed:,} people")
        if self.epsilon_needed is not None:
            whole = " for the whole survey" if several else ""
            ways.append(f"epsilon {self.epsilon_needed:g}{whole}")
        if several:
            ways.append("fewer questions")
        return ", or ".join(ways) or "another question: more people will not be enough"


def verdicts(
    collection: Collection, people: int, redesign: Redesign | None = None
) -> list[Verdict]:
    """A verdict for each question; without ``redesign`` no other design is proposed."""
    return [_verdict(collection, question, people, redesign) for question in collection.questions]


def answering(asked: Asked, people: int) -> int:
    """How many of the respondents answer a question in one round."""
    return max(1, round(people * asked.share))


def _verdict(
    collection: Collection, question: Question, people: int, redesign: Redesign | None
) -> Verdict:
    asked = collection.asked(question.name)
    found = _expected(asked, people, asked.mechanism)
    more = _everybody(asked, found.people_needed)
    epsilon = None
    if redesign is not None and not _good(found):
        design = partial(redesign, question.name)
        epsilon = _epsilon_needed(lambda e: _expected(asked, people, design(epsilon=e)))
        if more is None or design(respondents=more) != asked.mechanism:
            more = _people_designed_for(asked, design, people, found)
    wishes = () if redesign is None else _wishes(asked, people, partial(redesign, question.name))
    price = None
    if question.domain.optional:
        nobody = _expected(asked, people, asked.mechanism, skipped=0.0)
        price = Price(nobody, found, _required(asked, question, people, redesign))
    return Verdict(collection, question, people, found, more, epsilon, wishes, price)


def _required(
    asked: Asked, question: Question, people: int, redesign: Redesign | None
) -> Expectation | None:
    """What to expect if nobody could skip the question."""
    if redesign is None:
        return None
    other = redesign(question.name, {OPTIONAL: False})
    task = asked.mechanism.task  # the same error, also where the other is chosen for a mean
    return task.expectation(other, answering(asked, people), sampled=asked.sampled, skipped=0.0)


def _wishes(asked: Asked, people: int, design: Callable[..., Mechanism]) -> tuple[Wish, ...]:
    """The same question with each purpose that its answers can have, if there are several.

    Purposes that the same mechanism serves are one wish.
    """
    purposes = type(asked.mechanism.domain).purposes
    found: dict[Mechanism, list[str]] = {}
    for word, purpose in purposes.items() if len(purposes) > 1 else ():
        with suppress(InvalidArgument):  # nothing estimates that of these answers
            mechanism = design({"mechanism": AUTO, "design": {}, **purpose.keys})
            found.setdefault(mechanism, []).append(word)
    return tuple(_wish(", ".join(words), m, asked, people) for m, words in found.items())


def _wish(words: str, mechanism: Mechanism, asked: Asked, people: int) -> Wish:
    n = answering(asked, people)
    expectations = {
        name: find_task(name).expectation(mechanism, n, sampled=asked.sampled)
        for name in mechanism.tasks_for(mechanism.domain)
    }
    told = {name: one for name, one in expectations.items() if math.isfinite(one.half_width)}
    return Wish(words, mechanism, mechanism == asked.mechanism, told)


def _expected(
    asked: Asked, people: int, mechanism: Mechanism, skipped: float | None = None
) -> Expectation:
    """What to expect of a question if it were asked with this mechanism."""
    if mechanism.domain.optional and skipped is None:
        skipped = FIFTH
    n, sampled = answering(asked, people), asked.sampled
    return mechanism.task.expectation(mechanism, n, sampled=sampled, skipped=skipped)


def _good(expected: Expectation) -> bool:
    return expected.half_width <= expected.good


def _everybody(asked: Asked, needed: int | None) -> int | None:
    """How many respondents there are if this many of them have to answer a question."""
    if needed is None:
        return None
    people = two_digits(math.ceil(needed / asked.share))
    return people if people <= MOST_PEOPLE else None


def _people_designed_for(
    asked: Asked, design: Redesign, people: int, found: Expectation
) -> int | None:
    """Enough people to make a question good whose design depends on how many are expected.

    Its error shrinks roughly with the root of their number, in steps.
    """
    for _ in range(TRIES):
        people = two_digits(math.ceil(people * (found.half_width / found.good) ** 2))
        if people > MOST_PEOPLE:
            return None
        found = _expected(asked, people, design(respondents=people))
        if _good(found):
            return people
    return None


def _epsilon_needed(expected: Callable[[float], Expectation]) -> float | None:
    """The smallest epsilon of the whole survey that makes a question good, in steps of `STEP`.

    None above what clients accept unless they are told otherwise: that protects hardly anybody.
    """

    def good(step: int) -> bool:
        try:
            return _good(expected(STEP * step))
        except InvalidArgument:  # what else the survey fixes does not go with it
            return False

    steps = range(1, int(MOST_EPSILON / STEP) + 1)
    place = bisect_left(steps, True, key=good)
    return STEP * steps[place] if place < len(steps) else None
