"""Estimates of what was collected so far, for analysts."""

from __future__ import annotations

import sys
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Any

from deniable.collection.questions import Question
from deniable.errors import InvalidArgument
from deniable.estimation import Estimate
from deniable.estimation.methods import methods_for
from deniable.service.store import Store
from deniable.tally import Tally

#: Bytes of estimates that are remembered, those asked for last.
REMEMBERED = 1 << 26
#: Methods that need the reports themselves, unless a report is one index.
_OF_REPORTS = ("likelihood",)


@dataclass(frozen=True)
class Wish:
    """What an analyst wants to know."""

    question: str
    round: int = 1
    method: str | None = None
    confidence: float = 0.95
    simultaneous: bool = False
    candidates: tuple[str, ...] = ()


class Analysis:
    """Estimates from the tallies of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # Where a question is drawn, those who answer it are a sample of the respondents.
        sampled = store.collection.divide == "sampled"
        self._population = "everyone" if sampled else "respondents"
        self._known: OrderedDict[tuple[Wish, int], Estimate] = OrderedDict()
        self._bytes, self._lock = 0, Lock()

    def status(self) -> dict[str, Any]:
        """What is collected, and how much of it there is."""
        collection, counts = self._store.collection, self._store.counts()
        questions = []
        for question in collection.questions:
            mechanism = question.mechanism
            numbers = {r: n for (name, r), (_, n) in counts.items() if name == question.name}
            questions.append(
                {
                    "name": question.name,
                    "ask": question.ask,
                    "kind": question.kind,
                    "mechanism": type(mechanism).__name__,
                    "epsilon": mechanism.once.epsilon,
                    "reports": {str(number): numbers[number] for number in sorted(numbers)},
                    "methods": _methods(question),
                    "candidates": list(question.candidates),
                }
            )
        head = {"title": collection.title, "about": collection.about, "digest": collection.digest}
        spent = {"epsilon": collection.spent, "divide": collection.divide}
        return {**head, **spent, "rounds": collection.rounds, "questions": questions}

    def estimate(self, wish: Wish, most: int | None = None) -> Estimate | None:
        """Frequencies with intervals, perhaps only ``most`` of them; None without reports."""
        question = self._store.collection.question(wish.question)
        tally = self._store.tallies().get((wish.question, wish.round))
        if tally is None or not tally.n:
            return None
        place = (wish, tally.n)
        found = self._known.get(place)
        if found is None:
            found = _estimate(question, tally, wish, self._population)
            self._remember(place, found)
        return found if most is None else found.most_frequent(most)

    def _remember(self, place: tuple[Wish, int], found: Estimate) -> None:
        """Keep it as long as there is room; the oldest are forgotten first."""
        with self._lock:
            if place not in self._known:
                self._known[place] = found
                self._bytes += _size(place[0], found)
            while self._bytes > REMEMBERED:
                (wish, _), gone = self._known.popitem(last=False)
                self._bytes -= _size(wish, gone)


def _size(wish: Wish, found: Estimate) -> int:
    """Bytes of its columns, about, and of the texts that were asked for, before and after `tidy`.

    Other labels are those of the collection.
    """
    columns = found.frequencies, found.standard_errors, found.intervals
    texts = 2 * sum(map(sys.getsizeof, wish.candidates))
    return 4096 + texts + 16 * len(found.labels) + sum(column.nbytes for column in columns)


def _estimate(question: Question, tally: Tally, wish: Wish, population: str) -> Estimate:
    candidates = wish.candidates or question.candidates
    if question.kind != "text":
        if wish.candidates:
            raise InvalidArgument("candidates", wish.candidates, "left out: answers are listed")
    elif not candidates:
        raise InvalidArgument("candidates", candidates, "given: the answers are any text")
    return tally.estimate(
        wish.method,
        confidence=wish.confidence,
        simultaneous=wish.simultaneous,
        population=population,
        candidates=candidates if question.kind == "text" else None,
    )


def _methods(question: Question) -> list[str]:
    """What a tally can be decoded with."""
    mechanism = question.mechanism
    if question.kind == "text":
        mechanism = mechanism.among(["one", "another"])
    index = mechanism.dtype.names is None and mechanism.dtype.subdtype is None
    return [name for name in methods_for(mechanism) if index or name not in _OF_REPORTS]
