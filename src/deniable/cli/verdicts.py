"""Whether a question can work with the people it will have, and what would make it work.

What to expect of a number of reports is the task's business (`core.task.Expectation`). Here it is
about a survey: some questions are answered by a share of the respondents only, and designs change
with the epsilon of the survey and with the number of its respondents.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from deniable.collection.client import MOST_EPSILON
from deniable.collection.manifest import Asked, Collection
from deniable.collection.questions import Question
from deniable.collection.recommend import AUTO
from deniable.core.mechanism import Mechanism
from deniable.core.task import MOST_PEOPLE, Expectation, find_task, two_digits
from deniable.errors import InvalidArgument

#: Epsilons are proposed in such steps.
STEP = 0.25
#: Designs that are tried until one is good.
TRIES = 10

#: The mechanism of a question by its name, with another ``epsilon`` or other ``respondents``.
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
        return told if _good(expected) else f"{told} {needed}"

    @property
    def _terms(self) -> str:
        epsilon = f"epsilon {self.collection.spent_on(self.question.name):.4g}"
        if self.collection.rounds > 1:
            return f"{self.people:,} people in each round, {epsilon} for all rounds"
        return f"{self.people:,} people, {epsilon}"

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
    return Verdict(collection, question, people, found, more, epsilon, wishes)


def _wishes(asked: Asked, people: int, design: Callable[..., Mechanism]) -> tuple[Wish, ...]:
    """The same question with each purpose that its answers can have, if there are several."""
    purposes = type(asked.mechanism.domain).purposes
    if len(purposes) < 2:
        return ()
    free: dict[str, Any] = {"mechanism": AUTO, "design": {}}
    return tuple(
        _wish(words, design({**free, **keys}), asked, people) for words, keys in purposes.items()
    )


def _wish(words: str, mechanism: Mechanism, asked: Asked, people: int) -> Wish:
    n = answering(asked, people)
    expectations = {
        name: find_task(name).expectation(mechanism, n, sampled=asked.sampled)
        for name in mechanism.tasks
    }
    return Wish(words, mechanism, mechanism == asked.mechanism, expectations)


def _expected(asked: Asked, people: int, mechanism: Mechanism) -> Expectation:
    """What to expect of a question if it were asked with this mechanism."""
    n = answering(asked, people)
    return mechanism.task.expectation(mechanism, n, sampled=asked.sampled)


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
