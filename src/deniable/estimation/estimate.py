"""An estimate: numbers that know how wrong they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from deniable.arrays import Floats
from deniable.core.domain import Label
from deniable.core.mechanism import Labelled, as_floats
from deniable.errors import InvalidArgument, require_int
from deniable.exports import SHOWN, Exports, column

if TYPE_CHECKING:
    from deniable.estimation.frequencies.ordered import Middle, Ordered
    from deniable.estimation.numbers.statistic import Statistic

#: Whom the numbers are about: the people who answered, or those they are a sample of.
POPULATIONS = ("respondents", "everyone")
#: How far outside its range a truth may be that was computed.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Quantity:
    """One number for each label, with a standard error and an interval (low, high)."""

    values: Floats
    standard_errors: Floats
    #: One row (low, high) a label.
    intervals: Floats
    #: Whether the numbers are shares, which people read as percentages.
    share: bool = False
    #: The range that the truth lies in, if it is known; charts show all of it but for shares.
    limits: tuple[float, float] | None = None
    #: What the numbers are, where their name does not say it.
    words: str = ""

    def part(self, rows: Sequence[int]) -> Quantity:
        """The same for some labels."""
        places = list(rows)
        return replace(
            self,
            values=self.values[places],
            standard_errors=self.standard_errors[places],
            intervals=self.intervals[places],
        )

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + self.standard_errors.nbytes + self.intervals.nbytes


@dataclass(frozen=True)
class Skipped:
    """Which share of the respondents did not answer an optional question."""

    share: float
    standard_error: float
    #: (low, high).
    interval: tuple[float, float]

    @property
    def words(self) -> str:
        """18 % ± 2.1 points, the larger half of the interval; 18.2 % ± 0.35 points."""
        low, high = self.interval
        error = max(high - self.share, self.share - low)
        digits = max(0, math.ceil(-math.log10(100 * error))) if error else 2
        return f"{100 * self.share:.{digits}f} % {points(error)}"

    @property
    def about(self) -> dict[str, float]:
        """The numbers by name."""
        low, high = self.interval
        return {
            "skipped": self.share,
            "skipped_standard_error": self.standard_error,
            "skipped_low": low,
            "skipped_high": high,
        }


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Estimate(Exports):
    """Rows with one or several quantities; every export follows from these.

    ``errors`` says of which kind standard errors and intervals are. They are about ``population``:
    the respondents themselves, or everyone they are a sample of. Of a question that may be skipped,
    all numbers are about those who answered, and ``skipped`` says how many did not.
    """

    #: What the labels are called in exports, and what the numbers are in words.
    heading: ClassVar[str] = "value"
    noun: ClassVar[str] = "estimates"
    #: The title of a chart of which nobody said what was asked.
    title: ClassVar[str] = "Estimates"
    chosen: ClassVar[str] = "largest"

    labels: tuple[Label, ...]
    quantities: Mapping[str, Quantity]
    n: int
    method: str
    confidence: float
    #: The mechanism it came from, in words.
    source: str
    errors: str
    population: str = "respondents"
    #: Whether the intervals hold for all rows together, or for each.
    simultaneous: bool = False
    #: Who did not answer, with an interval of the same confidence; None if everybody had to.
    skipped: Skipped | None = None

    def columns(self) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {self.heading: column(self.labels)}
        for name, quantity in self.quantities.items():
            before = "" if len(self.quantities) == 1 else f"{name}_"
            found |= {
                name: quantity.values.tolist(),
                f"{before}standard_error": quantity.standard_errors.tolist(),
                f"{before}low": quantity.intervals[:, 0].tolist(),
                f"{before}high": quantity.intervals[:, 1].tolist(),
            }
        return found

    @property
    def about(self) -> dict[str, Any]:
        """What the numbers are."""
        return {
            "n": self.n,
            "method": self.method,
            "confidence": self.confidence,
            "errors": self.errors,
            "population": self.population,
            "simultaneous": self.simultaneous,
            "mechanism": self.source,
            **({} if self.skipped is None else self.skipped.about),
        }

    @property
    def people(self) -> str:
        """Whom the numbers are about, in words."""
        return self.population if self.skipped is None else f"{self.population} who answered"

    @property
    def skipped_words(self) -> str:
        """How many did not answer, in a sentence; empty if everybody had to."""
        if self.skipped is None:
            return ""
        found = f"{self.skipped.words} skipped this question"
        return f"{found}; figures are about those who answered."

    @property
    def remarks(self) -> list[str]:
        """What stands below charts and tables, in sentences: numbers that are about all rows."""
        return [self.skipped_words] if self.skipped_words else []

    @property
    def interval_words(self) -> str:
        """What the intervals are, in words."""
        together = "simultaneous " if self.simultaneous else ""
        return f"{self.level} {together}{self.errors} intervals about {self.people}"

    @property
    def level(self) -> str:
        """The confidence in words."""
        return f"{100 * self.confidence:.6g} %"

    @property
    def views(self) -> tuple[str, ...]:
        """The charts that there are (``kind``), the first unless one is named; none: only one."""
        return ()

    def measured(self, unit: str) -> Self:
        """The same, with the unit of the answers in the words that say what the numbers are."""
        return self

    def shown(self, most: int = SHOWN) -> list[int]:
        """The rows to show to a person: all in order, or the largest of very many."""
        if len(self.labels) <= most:
            return list(range(len(self.labels)))
        first = next(iter(self.quantities.values()))
        order: list[int] = np.argsort(-first.values, kind="stable")[:most].tolist()
        return order

    def at_most(self, most: int) -> Self:
        """The same numbers, of at most so many rows: those that are `shown`."""
        return self.part(self.shown(require_int("most", most, 1, 1 << 62)))

    def part(self, rows: slice | Sequence[int]) -> Self:
        """The same numbers, of some rows."""
        places = range(len(self.labels))[rows] if isinstance(rows, slice) else rows
        if list(places) == list(range(len(self.labels))):
            return self
        labels = tuple(self.labels[place] for place in places)
        return self._of(labels, {name: one.part(places) for name, one in self.quantities.items()})

    def _of(self, labels: tuple[Label, ...], quantities: Mapping[str, Quantity]) -> Self:
        return replace(self, labels=labels, quantities=quantities)

    @property
    def nbytes(self) -> int:
        """The memory that the numbers take, about."""
        return 16 * len(self.labels) + sum(one.nbytes for one in self.quantities.values())

    def aligned(self, truth: Labelled) -> Floats:
        """The true numbers (of a simulation) of the first quantity, in the order of the labels."""
        values = np.atleast_1d(as_floats("truth", truth, self.labels))
        if values.shape != (len(self.labels),):
            raise InvalidArgument("truth", truth, f"{len(self.labels)} numbers")
        return values

    def __str__(self) -> str:
        reports = "1 report" if self.n == 1 else f"{self.n} reports"
        return f"{self.method} {self.noun} of {reports}, {self.source}"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Frequencies(Estimate):
    """Which share of the respondents gave each answer.

    ``errors`` are of the unbiased frequencies ("score" and "exact"), or of the method
    ("posterior", "information", "regression" and "bootstrap").
    """

    noun = "frequencies"
    title = "Estimated shares"
    chosen = "most frequent"

    quantities: Mapping[str, Quantity] = field(init=False)
    frequencies: Floats
    standard_errors: Floats
    #: One row (low, high) a value.
    intervals: Floats
    #: For maximum likelihood: an upper bound on the gap to the true maximum, per report.
    certificate: float | None = None
    #: What is known of the answers in their order, if they have one.
    order: Ordered | None = None

    def __post_init__(self) -> None:
        one = Quantity(self.frequencies, self.standard_errors, self.intervals, True, (0.0, 1.0))
        object.__setattr__(self, "quantities", {"frequency": one})

    @property
    def about(self) -> dict[str, Any]:
        """What the numbers are."""
        known = super().about
        return known if self.certificate is None else {**known, "certificate": self.certificate}

    def cumulative(self) -> Estimate:
        """The share of the answers up to each one, where they have an order."""
        values, errors, intervals = self._ordered.cumulative
        one = Quantity(values, errors, intervals, True, (0.0, 1.0), "share up to this answer")
        return Estimate(
            labels=self._ordered.labels,
            quantities={"cumulative": one},
            n=self.n,
            method=self.method,
            confidence=self.confidence,
            source=self.source,
            errors="score",
            population=self.population,
            simultaneous=self.simultaneous,
            skipped=self.skipped,
        )

    def range(self, first: Label, last: Label) -> Statistic:
        """The share of the answers from ``first`` to ``last``, where they have an order."""
        labels = self._ordered.labels
        for name, answer in (("first", first), ("last", last)):
            if answer not in labels:
                raise InvalidArgument(name, answer, f"one of {', '.join(map(str, labels))}")
        places = labels.index(first), labels.index(last)
        if places[0] > places[1]:
            raise InvalidArgument("last", last, f"no answer before {first}")
        return self._ordered.between(*places)

    @property
    def median(self) -> Middle:
        """The first answer up to which there is half of all, where answers have an order."""
        return self._ordered.middle()

    @property
    def remarks(self) -> list[str]:
        if self.order is None:
            return super().remarks
        answer, (first, last) = self.median
        ends = "holds no other answer" if first == last else f"is from {first} to {last}"
        found = f"{answer}; its {self.level} interval {ends}"
        return [f"The median answer is {found}.", *super().remarks]

    @property
    def _ordered(self) -> Ordered:
        if self.order is None:
            allowed = "one whose answers have an order: ordered = true, or a number with edges"
            raise InvalidArgument("question", f"{self.noun} of {self.source}", allowed)
        return self.order

    def most_frequent(self, most: int) -> Self:
        """The same numbers, of at most so many values: the most frequent ones."""
        return self.at_most(most)

    def _of(self, labels: tuple[Label, ...], quantities: Mapping[str, Quantity]) -> Self:
        (one,) = quantities.values()
        return replace(
            self,
            labels=labels,
            frequencies=one.values,
            standard_errors=one.standard_errors,
            intervals=one.intervals,
        )

    def aligned(self, truth: Labelled) -> Floats:
        values = as_floats("truth", truth, self.labels)
        if values.shape != self.frequencies.shape:
            raise InvalidArgument("truth", truth, f"{len(self.labels)} frequencies")
        return check_truth(truth, values)


def check_population(population: Any) -> str:
    """The population, if it is one."""
    if not (isinstance(population, str) and population in POPULATIONS):
        raise InvalidArgument("population", population, f"one of {', '.join(POPULATIONS)}")
    return population


def check_truth(truth: Labelled, values: Floats) -> Floats:
    """The ``values`` of a truth, if they are frequencies; counts would be drawn off the chart."""
    if not np.all((values >= -ROUNDING) & (values <= 1 + ROUNDING)):
        raise InvalidArgument("truth", truth, "frequencies from 0 to 1, none missing, no counts")
    return values


def points(share: float) -> str:
    """An error of a share in words: two digits, all of a large one."""
    points = 100 * share
    return f"± {points:.0f} points" if points >= 9.95 else f"± {points:.2g} points"
