"""Estimates of what was collected so far, for analysts."""

from __future__ import annotations

import sys
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from deniable.collection.manifest import Asked
from deniable.core.task import Query
from deniable.errors import InvalidArgument
from deniable.estimation import Estimate
from deniable.service.responses import WRITERS
from deniable.service.store import Store
from deniable.views import chart
from deniable.views.charts import DRAWN

#: The format of a chart, and all formats of an estimate.
CHART = "chart"
FORMATS = (*WRITERS, CHART)
#: Bytes of estimates that are remembered, those asked for last.
REMEMBERED = 1 << 26


@dataclass(frozen=True)
class EstimateQuery:
    """What an analyst asks for."""

    question: str
    round: int = 1
    method: str | None = None
    confidence: float = 0.95
    simultaneous: bool = False
    #: What the task of the question may be asked (`Task.queries`), by name, as it was written.
    choices: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes of the texts that were asked for, about."""
        return sum(sys.getsizeof(text) for _, texts in self.choices for text in texts)


class Analysis:
    """Estimates from the tallies of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        collection, texts = store.collection, store.texts
        self._asked = {q.name: collection.asked(q.name) for q in collection.questions}
        self._queries = {name: queries_of(asked) for name, asked in self._asked.items()}
        #: Choices that a survey makes for analysts who make none.
        self._usual = {name: {"candidates": some} for name, some in texts.candidates.items()}
        self._known: OrderedDict[tuple[EstimateQuery, int], Estimate] = OrderedDict()
        self._bytes, self._lock = 0, Lock()
        self._about = {
            "title": texts.title,
            "about": texts.about,
            "digest": collection.digest,
            "epsilon": collection.spent,
            "rounds": collection.rounds,
        }
        self._described = [self._describe(name) for name in self._asked]

    def _describe(self, name: str) -> dict[str, Any]:
        """What a page needs to know about a question, but for the number of reports."""
        asked, usual = self._asked[name], self._usual.get(name, {})
        mechanism = asked.mechanism
        queries = {
            query: {**told.to_json(), "usual": list(usual.get(query, ()))}
            for query, told in self._queries[name].items()
        }
        return {
            "name": name,
            "ask": self._store.texts.ask(name),
            "kind": mechanism.domain.kind,
            "mechanism": type(mechanism).__name__,
            "epsilon": mechanism.once.epsilon,
            "report": asked.report.name,
            "share": asked.share,
            "methods": mechanism.task.methods(mechanism),
            "methods_of_exports": mechanism.task.methods_of_reports(mechanism),
            "method": mechanism.task.default,
            "queries": queries,
        }

    def status(self) -> dict[str, Any]:
        """What is collected, and how many reports there are of each kind and round.

        Methods that need the reports themselves work on exports, as long as no report is gone.
        """
        purged = self._store.purged_before()
        counted: dict[str, Counter[int]] = {}
        for place, n in self._store.numbers().items():
            counted.setdefault(place.report, Counter())[place.round] += n
        questions = [
            {**known, "reports": {str(r): n for r, n in counted.get(known["report"], {}).items()}}
            for known in self._described
        ]
        if purged is not None:
            questions = [{**known, "methods_of_exports": []} for known in questions]
        since = None if purged is None else str(purged)
        return {**self._about, "only_counted_before": since, "questions": questions}

    def estimate(self, query: EstimateQuery, most: int | None = None) -> Estimate | None:
        """Numbers with intervals, perhaps only ``most`` of them; None without reports."""
        found = self._estimate(query)
        return found if found is None or most is None else found.at_most(most)

    def chart(
        self, query: EstimateQuery, most: int | None = None, view: str | None = None
    ) -> dict[str, Any] | None:
        """The same as a chart (Vega-Lite), in the words that people read; ``view`` names one."""
        found, name = self._estimate(query), query.question
        if found is None:
            return None
        if view is not None and view not in found.views:
            allowed = f"one of {', '.join(found.views)}" if found.views else "left out here"
            raise InvalidArgument("view", view, allowed)
        words = self._store.texts.wording(name).answers
        shown: dict[Any, str] = dict(
            zip(self._store.collection.question(name).domain.ids, words, strict=False)
        )
        found = replace(found, labels=tuple(shown.get(label, label) for label in found.labels))
        title, chosen = self._store.texts.ask(name), {} if view is None else {"kind": view}
        drawn = chart(found, title=title, most=min(most or DRAWN, DRAWN), **chosen)
        return {**drawn, "usermeta": {**drawn["usermeta"], "views": list(found.views)}}

    def _estimate(self, query: EstimateQuery) -> Estimate | None:
        asked = self._store.collection.asked(query.question)
        tally = asked.tally(self._store.tally(asked.report.name, query.round))
        if not tally.n:
            return None
        place = (query, tally.n)
        found = self._known.get(place)
        if found is None:
            self._require_counts_suffice(query.method, asked)
            found = tally.estimate(
                query.method,
                confidence=query.confidence,
                simultaneous=query.simultaneous,
                # Where a question is drawn, those who answer it are a sample of the respondents.
                population="everyone" if asked.sampled else "respondents",
                **self._choices(query),
            ).measured(self._store.texts.wording(query.question).unit)
            self._remember(place, found)
        return found

    def _require_counts_suffice(self, method: str | None, asked: Asked) -> None:
        """Refuse methods that need the reports themselves: a collector estimates from counts."""
        task = asked.mechanism.task
        if method in task.methods_of_reports(asked.mechanism):
            purged = self._store.purged_before()
            needed = f"{method} needs all reports, and reports before {purged} are only counted"
            if purged is None:
                needed = f"{method} needs the reports: see `deniable export`"
            allowed = f"one of {', '.join(task.methods(asked.mechanism))} ({needed})"
            raise InvalidArgument("method", method, allowed)

    def _choices(self, query: EstimateQuery) -> dict[str, Any]:
        """What the task is asked, or what the survey would ask; refuses what it cannot be."""
        known = self._queries[query.question]
        given: Mapping[str, Sequence[str]] = {
            **self._usual.get(query.question, {}),
            **dict(query.choices),
        }
        if unknown := set(dict(query.choices)) - set(known):
            raise InvalidArgument(min(unknown), given[min(unknown)], "left out for this question")
        for name, told in known.items():
            if told.needed and not given.get(name):
                raise InvalidArgument(name, [], f"given ({told.label}: {told.hint})")
        return {name: known[name].parse(name, given[name]) for name in known if given.get(name)}

    def _remember(self, place: tuple[EstimateQuery, int], found: Estimate) -> None:
        """Keep it as long as there is room; the oldest are forgotten first."""
        with self._lock:
            if place not in self._known:
                self._known[place] = found
                self._bytes += _size(place[0], found)
            while self._bytes > REMEMBERED:
                (query, _), gone = self._known.popitem(last=False)
                self._bytes -= _size(query, gone)


def queries_of(asked: Asked) -> dict[str, Query]:
    """What the answers to a question may be asked."""
    return asked.mechanism.task.queries_of(asked.mechanism)


def _size(query: EstimateQuery, found: Estimate) -> int:
    """Bytes of its columns, about, and of the texts that were asked for, before and after `tidy`.

    Other labels are those of the collection.
    """
    return 4096 + 2 * query.nbytes + found.nbytes
