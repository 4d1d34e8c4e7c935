"""What sums mean: a task turns the counts of a mechanism into numbers with errors.

A mechanism says which vector of integers its reports add up to. What is estimated from such sums,
what may be asked of them afterwards and what error to expect is a task's business. Mechanisms name
their tasks, so nothing in the core imports estimators: this registry is the one hook from the core
to `deniable.estimation`, which is loaded on first use.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from deniable.errors import InvalidArgument

if TYPE_CHECKING:
    from deniable.core.mechanism import Mechanism
    from deniable.core.stored import Source
    from deniable.estimation import Estimate

#: The share of the respondents who skip an optional question, where nobody says another.
SKIPPED_SHARE = 0.1
#: More people than this are not proposed.
MOST_PEOPLE = 10**9

TASKS: dict[str, Task] = {}
AnyTask = TypeVar("AnyTask", bound="Task")


@dataclass(frozen=True)
class Query:
    """Something that may be asked afterwards, such as which texts to look for.

    Its name is a keyword of `Task.estimate`, a parameter of the HTTP API (repeated, if there may be
    ``several`` values), an option of the command line and a control of the dashboard.
    """

    #: What a person is asked for, and how to write it.
    label: str
    hint: str = ""
    several: bool = False
    #: Whether nothing can be estimated without it.
    needed: bool = False
    #: One value from text; raises ValueError for what is none.
    read: Callable[[str], Any] = str
    #: The mechanisms whose sums can be asked.
    suits: Callable[[Mechanism], bool] = lambda mechanism: True

    def parse(self, name: str, texts: Sequence[str]) -> Any:
        """The choice that some texts stand for."""
        if not self.several and len(texts) != 1:
            raise InvalidArgument(name, list(texts), "given once")
        try:
            values = tuple(self.read(text) for text in texts)
        except ValueError:
            raise InvalidArgument(name, list(texts), self.hint or "another value") from None
        return values if self.several else values[0]

    def to_json(self) -> dict[str, Any]:
        """What a page needs to show a control."""
        words = {"label": self.label, "hint": self.hint}
        return {**words, "several": self.several, "needed": self.needed}


@dataclass(frozen=True)
class Expectation:
    """What to expect of some number of reports; widths are in the unit of the result."""

    #: Half of the 95 % interval.
    half_width: float
    #: Up to ``good`` a question is good; from ``hopeless`` on it tells next to nothing.
    good: float
    hopeless: float
    #: How many people make the question good; None if it is, or if no number of people does.
    people_needed: int | None
    #: What a result will look like: "An answer that ... will show as 10 % ± 1.8 points".
    sentence: str
    #: The error, and one that is good: "± 1.8 points".
    error: str
    target: str

    @property
    def verdict(self) -> str:
        """``good``, ``rough`` or ``too few people``."""
        if self.half_width <= self.good:
            return "good"
        return "rough" if self.half_width < self.hopeless else "too few people"


class Task(ABC):
    """What is estimated from sums, and how well that can be known beforehand."""

    #: Name in the registry and in `Mechanism.tasks`, e.g. "frequencies".
    name: ClassVar[str]
    #: The method that is used unless another is asked for.
    default: ClassVar[str]
    #: What may be asked afterwards, by name; see `queries_of`.
    queries: ClassVar[Mapping[str, Query]] = {}

    @abstractmethod
    def methods(self, mechanism: Mechanism) -> list[str]:
        """The decoders that a tally of this mechanism can be given. Run by the analyst."""

    def methods_of_reports(self, mechanism: Mechanism) -> list[str]:
        """The decoders that need the reports themselves, besides `methods`. Run by the analyst."""
        return []

    @abstractmethod
    def estimate(
        self, parts: Sequence[Source], method: str | None = None, **choices: Any
    ) -> Estimate:
        """The numbers that all reports of one question lead to, with their errors.

        Run by the analyst.
        """

    @abstractmethod
    def error(self, mechanism: Mechanism, n: int, **guess: Any) -> float:
        """The standard error to expect of n reports, in the unit of the result.

        Mechanisms for one question are compared by it; a ``guess`` says more about the answers.
        Run by the analyst, before anybody is asked.
        """

    @abstractmethod
    def half_width(
        self, mechanism: Mechanism, n: int, *, sampled: bool = False, skipped: float | None = None
    ) -> float:
        """Half of the 95 % interval to expect of n reports; guesses are as in `expectation`.

        Run by the analyst, before anybody is asked.
        """

    @abstractmethod
    def expectation(
        self, mechanism: Mechanism, n: int, *, sampled: bool = False, skipped: float | None = None
    ) -> Expectation:
        """What a person should expect of n reports before anybody is asked.

        Where the n respondents are ``sampled`` from all, because their devices draw one of several
        questions, that adds to the error. Where the question may be skipped, the error is that
        among those who answer if a share of ``skipped`` do not (None: `SKIPPED_SHARE`). Of another
        question, 0 asks for an error that can be compared with it. Run by the analyst, before
        anybody is asked.
        """

    def sample_size(
        self,
        mechanism: Mechanism,
        difference: float,
        *,
        power: float,
        confidence: float,
        alternative: str,
        **plan: Any,
    ) -> int:
        """How many respondents a test of what is estimated needs: see `deniable.sample_size`.

        A ``plan`` says what is expected of the answers. Refused by tasks without a test. Run by the
        analyst, before anybody is asked.
        """
        raise InvalidArgument(
            "mechanism", mechanism, f"one for a task with a test, not {self.name}"
        )

    def queries_of(self, mechanism: Mechanism) -> dict[str, Query]:
        """The queries that make sense for the sums of this mechanism. Run by the analyst."""
        return {name: query for name, query in self.queries.items() if query.suits(mechanism)}


def register_task(task: AnyTask) -> AnyTask:
    """Make a task known by its name."""
    if not isinstance(task, Task):
        raise InvalidArgument("task", task, "a Task")
    if TASKS.setdefault(task.name, task) is not task:
        raise InvalidArgument("name", task.name, "new; there is a task of this name")
    return task


def unregister_task(name: str) -> None:
    """Forget a task, for example one that only a test needs."""
    TASKS.pop(name, None)


def find_task(name: str) -> Task:
    """The task of this name; those of deniable register themselves when their package is loaded."""
    if name not in TASKS:
        importlib.import_module("deniable.estimation")
    if name not in TASKS:
        raise InvalidArgument("task", name, f"one of {', '.join(TASKS)}")
    return TASKS[name]


def people_needed(half_width: Callable[[int], float], people: int, good: float) -> int | None:
    """The fewest people, from ``people`` on, with a good half width; two digits, rounded up.

    None if there are not enough people in the world, or if ``people`` suffice.
    """
    if half_width(people) <= good or half_width(MOST_PEOPLE) > good:
        return None
    enough = bisect_left(range(MOST_PEOPLE), True, lo=people, key=lambda n: half_width(n) <= good)
    return two_digits(enough)


def two_digits(number: int) -> int:
    """A whole number rounded up to two digits."""
    digit: int = 10 ** (max(2, len(str(number))) - 2)
    return -(-number // digit) * digit
