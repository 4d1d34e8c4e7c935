"""The collection: what is asked and how it is randomised, and the digest that names it.

`docs/wire-format.md` specifies the manifest byte for byte. It is the channel: all that reports and
the budget of a device depend on. What people read is elsewhere (`deniable.collection.wording`).
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, reduce
from typing import Any

from deniable.answers.several import Several
from deniable.canonical import canonical, parsed
from deniable.collection.questions import Question, check_name
from deniable.core.domain import Domain
from deniable.core.mechanism import SPEC_VERSION, Mechanism
from deniable.core.registry import check_keys, check_number, check_version, find, from_leaf
from deniable.core.tally import Tally
from deniable.errors import (
    BrokenPromise,
    CorruptData,
    InvalidArgument,
    ManifestRefused,
    Unsupported,
    require_int,
)
from deniable.privacy import check_epsilon
from deniable.privacy.guarantee import CONTEXT, float_above
from deniable.texts import require_id

#: A manifest that is longer is refused before it is read.
MOST_BYTES = 1 << 20
MOST_QUESTIONS = MOST_REPORTS = 256
MOST_ROUNDS = MOST_STEPS = (1 << 16) - 1
MOST_FIELDS, MOST_VALUES, MOST_STRATA = 3, 1000, 1000
#: Branches of all reports together.
MOST_BRANCHES = 8192
#: Bytes of all rows of a submission, words of coins that it takes, and sums of one report.
MOST_ROW_BYTES, MOST_WORDS, MOST_CELLS = 1 << 18, 1 << 17, 1 << 20
_KEYS = {
    "deniable", "epsilon", "unbounded", "rounds", "changes", "fields", "after", "questions",
    "reports",
}  # fmt: skip
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Report:
    """What leaves a device about one question, or about several together."""

    name: str
    of: tuple[str, ...]
    mechanism: Mechanism

    def to_json(self) -> dict[str, Any]:
        """The report as it is published; its domain follows from the questions."""
        return {"name": self.name, "of": list(self.of), "mechanism": self.mechanism.to_leaf()}


@dataclass(frozen=True)
class Field:
    """Something about a respondent that is sent openly, such as a region: it is not protected."""

    name: str
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        check_name(self.name)
        for value in self.values:
            require_id(self.name, value)
        if not 2 <= len(set(self.values)) == len(self.values) <= MOST_VALUES:
            raise InvalidArgument(self.name, self.values, f"2 to {MOST_VALUES} different values")


@dataclass(frozen=True)
class After:
    """The place of a collection that continues another: the first one, the one before, a number."""

    root: str
    parent: str
    step: int

    def __post_init__(self) -> None:
        for name in ("root", "parent"):
            digest = getattr(self, name)
            if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
                raise InvalidArgument(name, digest, "a digest of 64 hexadecimal digits")
        require_int("step", self.step, 2, MOST_STEPS)
        if (self.root == self.parent) != (self.step == 2):
            raise InvalidArgument("parent", self.parent, "the root at step 2, and only there")


@dataclass(frozen=True)
class Asked:
    """Where the answers to a question are counted: in a report, or in one branch of it."""

    report: Report
    mechanism: Mechanism
    place: int | None = None
    #: Which share of the respondents answers it.
    share: float = 1.0

    @property
    def sampled(self) -> bool:
        """Whether only some respondents answer it: those whose devices drew it."""
        return self.share < 1

    def tally(self, counted: Tally) -> Tally:
        """The tally of the question, from that of its report."""
        if self.place is None:
            return counted
        drawn: Any = self.report.mechanism
        found: Tally = drawn.tallies(counted)[self.place]
        return found


@dataclass(frozen=True)
class Collection:
    """Questions to the same people, under one budget.

    ``epsilon`` is what one respondent spends at most, all reports and rounds together, with at
    most ``changes`` changes of each answer that a device remembers; more of them are not reported.
    It is about which answers were given, beside others that stay the same, change, and come back
    when these do. In which rounds a remembered answer was the same, another, or an earlier one
    again is not hidden (see `privacy.MemoisedGuarantee`). Reports that are not remembered count on
    one submission per round.
    """

    questions: tuple[Question, ...]
    reports: tuple[Report, ...]
    epsilon: float
    rounds: int = 1
    changes: int = 0
    fields: tuple[Field, ...] = ()
    after: After | None = None

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        require_int("rounds", self.rounds, 1, MOST_ROUNDS)
        require_int("changes", self.changes, 0, self.rounds - 1)
        if not 1 <= len(self.questions) <= MOST_QUESTIONS:
            raise InvalidArgument("questions", len(self.questions), f"1 to {MOST_QUESTIONS}")
        if not 1 <= len(self.reports) <= MOST_REPORTS:
            raise InvalidArgument("reports", len(self.reports), f"1 to {MOST_REPORTS}")
        if len(self.fields) > MOST_FIELDS or self.strata > MOST_STRATA:
            allowed = f"at most {MOST_FIELDS}, with at most {MOST_STRATA} combinations of values"
            raise InvalidArgument("fields", [field.name for field in self.fields], allowed)
        self._check_names()
        for report in self.reports:
            self._check_report(report)
        self._check_sizes()
        if self.spent > self.epsilon:
            allowed = f"at least {self.spent}, which is what the reports spend"
            raise BrokenPromise("epsilon", self.epsilon, allowed)

    @classmethod
    def split(cls, mechanisms: Mapping[str, Mechanism], epsilon: float, **more: Any) -> Collection:
        """Every question with a report of its own."""
        questions = tuple(Question(name, m.domain) for name, m in mechanisms.items())
        reports = tuple(Report(name, (name,), m) for name, m in mechanisms.items())
        return cls(questions, reports, epsilon, **more)

    # ---- checks

    def _check_names(self) -> None:
        """Names differ; a report about one question has its name, and every question is asked."""
        questions = [question.name for question in self.questions]
        for report in self.reports:
            _check_of(report.name, report.of, questions)
        several = [report.name for report in self.reports if len(report.of) > 1]
        alone = [report.name for report in self.reports if len(report.of) == 1]
        names = [*questions, *several, *(field.name for field in self.fields)]
        if len(set(names)) < len(names) or len(set(alone)) < len(alone):
            raise InvalidArgument("name", names, "different for all questions, reports and fields")
        asked = {name for report in self.reports for name in report.of}
        if missing := [name for name in questions if name not in asked]:
            raise InvalidArgument("reports", missing, "about every question")

    def _check_report(self, report: Report) -> None:
        mechanism = report.mechanism
        if not mechanism.on_devices:
            raise Unsupported("mechanism", mechanism.name, "one for devices, not for comparison")
        if mechanism.domain != self.domain_of(report.of):
            allowed = f"one for the answers to {', '.join(report.of)}"
            raise InvalidArgument(f"{report.name}: mechanism", mechanism, allowed)
        if self.rounds > 1 and len(report.of) > 1:  # one question is drawn, perhaps another
            raise InvalidArgument("rounds", self.rounds, f"1 where {report.name} is drawn")

    def _check_sizes(self) -> None:
        mechanisms = [report.mechanism for report in self.reports]
        found = {
            "branches": (sum(m.places for m in mechanisms if m.parts), MOST_BRANCHES),
            "bytes": (sum(m.dtype.itemsize for m in mechanisms), MOST_ROW_BYTES),
            "coin words": (sum(map(self.words, self.reports)), MOST_WORDS),
            "cells": (max(m.cells for m in mechanisms), MOST_CELLS),
            "bytes of the manifest": (len(self.manifest), MOST_BYTES),
        }
        for name, (size, most) in found.items():
            if size > most:
                raise InvalidArgument("reports", size, f"of at most {most} {name}")

    # ---- what is where

    def domain_of(self, names: Sequence[str]) -> Domain:
        """What is answered by a report about these questions."""
        return _together({name: self.question(name).domain for name in names})

    def question(self, name: str) -> Question:
        """The question with this name."""
        found: Question = _named("question", self.questions, name)
        return found

    def report(self, name: str) -> Report:
        """The report with this name."""
        found: Report = _named("report", self.reports, name)
        return found

    def asked(self, name: str) -> Asked:
        """Where the answers to a question are counted."""
        self.question(name)
        about = [report for report in self.reports if name in report.of]
        # Everybody sends a report of its own; of one that is drawn, only some do.
        report = min(about, key=lambda report: len(report.of))
        if report.of == (name,):
            return Asked(report, report.mechanism)
        drawn: Any = report.mechanism
        place = drawn.place_of(name)
        branch = drawn.branches[place]
        return Asked(report, branch.mechanism, place, drawn.chance(place))

    @cached_property
    def strata(self) -> int:
        """The number of combinations of public values."""
        return math.prod(len(field.values) for field in self.fields)

    def stratum(self, fields: Mapping[str, str]) -> int:
        """The number of a combination of public values; the last field counts fastest."""
        names = [field.name for field in self.fields]
        if not isinstance(fields, Mapping) or set(fields) != set(names):
            raise InvalidArgument("fields", fields, f"a value for each of {names}")
        number = 0
        for field in self.fields:
            value = fields[field.name]
            if value not in field.values:
                raise InvalidArgument(field.name, value, f"one of {', '.join(field.values)}")
            number = number * len(field.values) + field.values.index(value)
        return number

    def fields_of(self, stratum: int) -> dict[str, str]:
        """The public values that `stratum` numbers."""
        found: dict[str, str] = {}
        for field in reversed(self.fields):
            stratum, place = divmod(stratum, len(field.values))
            found[field.name] = field.values[place]
        return found

    # ---- what it costs

    def remembered(self, report: Report) -> bool:
        """Whether it is made from a memo."""
        return self.rounds > 1 and report.mechanism.remembers

    def words(self, report: Report) -> int:
        """The coins of a report: fewer where a device remembers, and one to draw among keys."""
        mechanism: Any = report.mechanism
        if self.remembered(report):
            return 1 + int(mechanism.instant_words)
        return int(mechanism.coin_words)

    @property
    def shows_changes(self) -> bool:
        """Whether it can be seen that an answer changed or came back, though not which ones."""
        return self.changes > 0 and any(map(self.remembered, self.reports))

    def spent_on(self, name: str) -> float:
        """What all reports about one question cost a respondent."""
        return self._spent([r for r in self.reports if name in r.of], self.rounds)

    @cached_property
    def spent(self) -> float:
        """What a respondent spends in all, from the integers of the channels, rounded up."""
        return self.spent_after(self.rounds)

    def spent_after(self, rounds: int) -> float:
        """What a respondent spends at most who answers in so many of the rounds."""
        return self._spent(self.reports, rounds) if rounds else 0.0

    def _spent(self, reports: Iterable[Report], rounds: int) -> float:
        return float_above(reduce(CONTEXT.add, (self._log_spent(r, rounds) for r in reports)))

    def _log_spent(self, report: Report, rounds: int) -> Decimal:
        # What a device keeps is paid for with the first report: others may always follow.
        counted = max(rounds, 2) if self.remembered(report) else rounds
        try:
            return report.mechanism.log_spent(counted, min(self.changes, rounds - 1))
        except InvalidArgument as refused:
            raise refused.at(f"{report.name}: {refused.name}") from None

    # ---- the manifest

    @cached_property
    def manifest(self) -> bytes:
        """The document that is published."""
        after = None if self.after is None else vars(self.after)
        return canonical(
            {
                "deniable": SPEC_VERSION,
                "epsilon": self.epsilon,
                "unbounded": [],
                "rounds": self.rounds,
                "changes": self.changes,
                "fields": [{"name": f.name, "values": list(f.values)} for f in self.fields],
                "after": after,
                "questions": [question.to_json() for question in self.questions],
                "reports": [report.to_json() for report in self.reports],
            }
        )

    @cached_property
    def digest(self) -> str:
        """The name of the collection: every submission carries it."""
        return hashlib.sha256(self.manifest).hexdigest()

    @property
    def root(self) -> str:
        """The digest of the first step, if this is a step of a protocol: else its own."""
        return self.digest if self.after is None else self.after.root

    @classmethod
    def from_manifest(cls, manifest: bytes) -> Collection:
        """The collection that was published as these bytes.

        Refuses (`ManifestRefused`) other formats, what is not known here, and broken promises:
        all that docs/wire-format.md asks a device to check before it answers.
        """
        try:
            found = cls._from_json(_document(manifest))
        except CorruptData as error:
            raise ManifestRefused(str(error)) from error
        except InvalidArgument as error:
            kind = getattr(error, "type", "bad-manifest")
            raise ManifestRefused(f"this manifest is refused: {error}", kind) from error
        if found.manifest != manifest:  # then its digest would name something else
            raise ManifestRefused("this manifest is refused: it is not written as it was made")
        return found

    @classmethod
    def _from_json(cls, data: Mapping[str, Any]) -> Collection:
        _check_shape(data)
        questions = tuple(map(Question.from_json, data["questions"]))
        domains = {question.name: question.domain for question in questions}
        if len(domains) < len(questions):
            names = [question.name for question in questions]
            raise InvalidArgument("questions", names, "with different names")
        reports = tuple(_report(report, domains) for report in data["reports"])
        if data["unbounded"]:
            allowed = "empty: every mechanism that is known here bounds all pairs of answers"
            raise BrokenPromise("unbounded", data["unbounded"], allowed)
        return cls(
            questions,
            reports,
            check_epsilon(data["epsilon"]),
            data["rounds"],
            data["changes"],
            tuple(map(_field, data["fields"])),
            _after(data["after"]),
        )


def _document(manifest: Any) -> Mapping[str, Any]:
    """The keys of a manifest, if it is one of this version."""
    if not isinstance(manifest, (bytes, bytearray)) or len(manifest) > MOST_BYTES:
        raise CorruptData(f"this is not a manifest: it must be at most {MOST_BYTES} bytes")
    data = parsed(bytes(manifest), "manifest")
    if isinstance(data, Mapping):
        check_version(data.get("deniable"))
    check_keys("manifest", data, _KEYS)
    return dict(data)


def _check_shape(data: Mapping[str, Any]) -> None:
    """Refuse other types than those of a manifest, and mechanisms that are not known."""
    check_number("epsilon", data["epsilon"])
    for name in ("fields", "questions", "reports", "unbounded"):
        if not isinstance(data[name], list):
            raise InvalidArgument(name, data[name], "a list")
    if len(data["unbounded"]) > MOST_REPORTS:
        raise InvalidArgument("unbounded", len(data["unbounded"]), f"at most {MOST_REPORTS} names")
    for name in data["unbounded"]:
        check_name(name, "unbounded")
    for report in data["reports"]:
        _check_report(report)


def _check_report(data: Any) -> None:
    """Its keys, and that its mechanism is known: this is said before anything else about it."""
    check_keys("reports", data, {"name", "of", "mechanism"})
    of = data["of"]
    if not isinstance(of, list) or not all(isinstance(name, str) for name in of):
        raise InvalidArgument("of", of, "a list of questions")
    _check_known(data["mechanism"])


def _check_known(leaf: Any) -> None:
    """Refuse mechanisms, also those of branches, that are not known or not for devices."""
    if not isinstance(leaf, Mapping) or "name" not in leaf:
        raise InvalidArgument("mechanism", leaf, "an object with a name")
    family = find(leaf["name"])
    if leaf["name"] != family.name or not family.on_devices:
        raise Unsupported("mechanism", leaf["name"], "one that devices know by this name")
    branches = leaf.get("branches")
    for branch in branches if isinstance(branches, list) else []:
        _check_known(branch.get("mechanism") if isinstance(branch, Mapping) else branch)


def _report(data: Mapping[str, Any], domains: Mapping[str, Domain]) -> Report:
    of = tuple(data["of"])
    _check_of(data["name"], of, list(domains))
    domain = _together({name: domains[name] for name in of})
    try:
        return Report(data["name"], of, from_leaf(domain, data["mechanism"]))
    except InvalidArgument as refused:
        raise refused.at(f"{data['name']}: {refused.name}") from None


def _together(domains: Mapping[str, Domain]) -> Domain:
    """What is answered to some questions: the domain of one, or all of them."""
    return next(iter(domains.values())) if len(domains) == 1 else Several(domains)


def _check_of(name: Any, of: tuple[str, ...], questions: list[str]) -> None:
    """Refuse a report about other questions, or with a name that is not theirs."""
    check_name(name)
    if not of or [question for question in questions if question in of] != list(of):
        allowed = f"some of {', '.join(questions)}, in this order"
        raise InvalidArgument(f"{name}: of", list(of), allowed)
    if (of == (name,)) != (len(of) == 1):
        allowed = "the name of its question, or another if it is about several"
        raise InvalidArgument("name", name, allowed)


def _field(data: Any) -> Field:
    check_keys("fields", data, {"name", "values"})
    if not isinstance(data["values"], list):
        raise InvalidArgument("values", data["values"], "a list of values")
    return Field(data["name"], tuple(data["values"]))


def _after(data: Any) -> After | None:
    if data is None:
        return None
    check_keys("after", data, {"root", "parent", "step"})
    return After(**data)


def _named(noun: str, things: Sequence[Any], name: str) -> Any:
    for thing in things:
        if thing.name == name:
            return thing
    raise InvalidArgument(noun, name, f"one of {', '.join(thing.name for thing in things)}")
