"""Whether a question can work with the people it will have, and what would make it work.

The measure is half the 95 % interval of an answer that 10 % of people give, in one round, from the
variances of the mechanisms. Up to `GOOD` a question is good. From `HOPELESS` on the interval
reaches 0 %: such an answer cannot be told from one that nobody gives.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from deniable.collection.client import MOST_EPSILON
from deniable.collection.manifest import Collection
from deniable.collection.questions import Question
from deniable.errors import InvalidArgument
from deniable.studio.surveys import SHARE, half_width

GOOD, HOPELESS = SHARE / 2, SHARE
#: More people than this are not proposed.
MOST_PEOPLE = 10**9
#: Epsilons are proposed in such steps.
STEP = 0.25
#: Designs that are tried until one is good.
TRIES = 10

#: A question by its name, as it would be asked with another ``epsilon`` or other ``respondents``.
Redesign = Callable[..., Question]


@dataclass(frozen=True)
class Verdict:
    """What to expect of a question; needs are None where the question is good or nothing helps."""

    collection: Collection
    question: Question
    people: int
    error: float
    people_needed: int | None
    epsilon_needed: float | None

    @property
    def word(self) -> str:
        if self.error <= GOOD:
            return "good"
        return "rough" if self.error < HOPELESS else "too few people"

    def to_row(self) -> dict[str, Any]:
        """The verdict as data."""
        needs = {"people_needed": self.people_needed, "epsilon_needed": self.epsilon_needed}
        return {"verdict": self.word, **needs}

    @property
    def hopeless(self) -> bool:
        return self.error >= HOPELESS

    @property
    def sentence(self) -> str:
        """The verdict as a person would say it."""
        shown = _points(self.error)
        if self.hopeless:
            found = f"With {self.people:,} respondents the error is ± {shown}."
            needed = f"You need {self._needed}."
        else:
            found = (
                f"An answer that {100 * SHARE:.0f} % of people give will show as "
                f"{100 * SHARE:.0f} % ± {shown} ({self._terms})."
            )
            needed = f"For ± {_points(GOOD)} you need {self._needed}."
        told = f"{self.question.name}: {self.word}. {found}"
        return told if self.error <= GOOD else f"{told} {needed}"

    @property
    def _terms(self) -> str:
        epsilon = f"epsilon {self.collection.spent_on(self.question):.4g}"
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
    """A verdict for each question; without ``redesign`` no epsilon is proposed."""
    return [_verdict(collection, question, people, redesign) for question in collection.questions]


def _verdict(
    collection: Collection, question: Question, people: int, redesign: Redesign | None
) -> Verdict:
    error = half_width(collection, question, people)
    more, epsilon = None, None
    if error > GOOD:
        more = _people_needed(partial(half_width, collection, question), people)
    if error > GOOD and redesign is not None:
        asked = partial(redesign, question.name)
        epsilon = _epsilon_needed(lambda e: half_width(collection, asked(epsilon=e), people))
        if question.kind == "text":
            designed = partial(_designed_error, collection, asked)
            more = _people_designed_for(designed, people, error)
    return Verdict(collection, question, people, error, more, epsilon)


def _designed_error(collection: Collection, asked: Redesign, people: int) -> float:
    """The error of a question that is designed for as many people as answer it."""
    return half_width(collection, asked(respondents=people), people)


def _people_needed(error: Callable[[int], float], people: int) -> int | None:
    """The fewest that make a question good, with two digits, if there are enough in the world."""
    if error(MOST_PEOPLE) > GOOD:
        return None
    enough = bisect_left(range(MOST_PEOPLE), True, lo=people, key=lambda n: error(n) <= GOOD)
    return _two_digits(enough)


def _people_designed_for(error: Callable[[int], float], people: int, found: float) -> int | None:
    """Enough people to make a question good whose design depends on how many are expected.

    Its error shrinks roughly with the root of their number, in steps.
    """
    for _ in range(TRIES):
        people = _two_digits(math.ceil(people * (found / GOOD) ** 2))
        if people > MOST_PEOPLE:
            return None
        found = error(people)
        if found <= GOOD:
            return people
    return None


def _two_digits(number: int) -> int:
    """A number rounded up."""
    digit: int = 10 ** (max(2, len(str(number))) - 2)
    return -(-number // digit) * digit


def _epsilon_needed(error: Callable[[float], float]) -> float | None:
    """The smallest epsilon of the whole survey that makes a question good, in steps of `STEP`.

    None above what clients accept unless they are told otherwise: that protects hardly anybody.
    """

    def good(step: int) -> bool:
        try:
            return error(STEP * step) <= GOOD
        except InvalidArgument:  # what else the survey fixes does not go with it
            return False

    steps = range(1, int(MOST_EPSILON / STEP) + 1)
    place = bisect_left(steps, True, key=good)
    return STEP * steps[place] if place < len(steps) else None


def _points(share: float) -> str:
    """An error in words: two digits, all of a large one."""
    points = 100 * share
    return f"{points:.0f} points" if points >= 9.95 else f"{points:.2g} points"
