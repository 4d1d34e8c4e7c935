"""What people read: titles, questions and answers in words, apart from the channel.

Reports and budgets do not depend on it, so it may be corrected while a collection runs. It is
served as one document with all languages, so that nobody sees which of them is read.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from deniable.canonical import canonical, parsed
from deniable.collection.manifest import Collection
from deniable.core.mechanism import SPEC_VERSION
from deniable.core.registry import check_version
from deniable.errors import CorruptData, InvalidArgument, MismatchError
from deniable.texts import require_text, tidy

MOST_BYTES = 1 << 20
#: The language of a survey that names none.
LANGUAGE = "en"
_TAG = re.compile("[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")


@dataclass(frozen=True)
class Wording:
    """A question or a public field in words; what is missing is shown as its name or its id."""

    ask: str = ""
    answers: tuple[str, ...] = ()
    #: What a number is a number of: "hours".
    unit: str = ""

    def __post_init__(self) -> None:
        require_text("ask", self.ask, empty=True)
        require_text("unit", self.unit, empty=True)
        for answer in self.answers:
            require_text("answers", answer)

    def to_json(self, name: str) -> dict[str, Any]:
        given = {"ask": self.ask, "answers": list(self.answers), "unit": self.unit}
        return {"name": name, **{key: value for key, value in given.items() if value}}


@dataclass(frozen=True)
class Language:
    """All that people read in one language."""

    title: str = ""
    about: str = ""
    questions: Mapping[str, Wording] = field(default_factory=dict)
    fields: Mapping[str, Wording] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_text("title", self.title, empty=True)
        require_text("about", self.about, empty=True, lines=True)

    def to_json(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "about": self.about,
            "questions": [one.to_json(name) for name, one in self.questions.items()],
            "fields": [one.to_json(name) for name, one in self.fields.items()],
        }


#: What forms and tables call a skip, tidied.
SKIPS = ("(no answer)", "no answer", "rather not say", "i would rather not answer")


@dataclass(frozen=True)
class Texts:
    """The wordings of one collection, and the candidates that analysts look for first."""

    #: The digest of the manifest.
    collection: str
    languages: Mapping[str, Language]
    candidates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def plain(cls, collection: Collection) -> Texts:
        """No wordings: names and ids are shown."""
        return cls(collection.digest, {LANGUAGE: Language()})

    def check(self, collection: Collection) -> Texts:
        """Refuse wordings that do not fit the collection; returns them."""
        if self.collection != collection.digest:
            raise MismatchError(f"these texts belong to collection {self.collection}")
        ids = {question.name: question.domain.ids for question in collection.questions}
        values = {one.name: one.values for one in collection.fields}
        for tag, language in self.languages.items():
            if not _TAG.fullmatch(tag):
                raise InvalidArgument("texts", tag, 'a language tag, such as "en" or "pt-BR"')
            for known, given in ((ids, language.questions), (values, language.fields)):
                for name, wording in given.items():
                    _check_wording(tag, name, wording, known)
            for question in collection.questions:
                if question.domain.optional:
                    labels = language.questions.get(question.name, Wording()).answers
                    _refuse_skips(question.name, labels or question.domain.ids)
        if len(self.document) > MOST_BYTES:
            allowed = f"at most {MOST_BYTES} bytes together"
            raise InvalidArgument("texts", len(self.document), allowed)
        return self

    @property
    def first(self) -> Language:
        """The language of the survey itself."""
        return next(iter(self.languages.values()))

    @property
    def title(self) -> str:
        return self.first.title or f"Collection {self.collection[:12]}"

    @property
    def about(self) -> str:
        return self.first.about

    def ask(self, question: str) -> str:
        """The question in words, or its name."""
        return self.wording(question).ask or question

    def wording(self, question: str) -> Wording:
        """The words of a question in the first language, as far as there are any."""
        return self.first.questions.get(question, Wording())

    @cached_property
    def document(self) -> bytes:
        """The document that is served."""
        return canonical(
            {
                "deniable": SPEC_VERSION,
                "collection": self.collection,
                "languages": {tag: one.to_json() for tag, one in self.languages.items()},
                "candidates": {name: list(texts) for name, texts in self.candidates.items()},
            }
        )

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the document."""
        return hashlib.sha256(self.document).hexdigest()

    @classmethod
    def from_document(cls, document: bytes) -> Texts:
        """The texts of a document; keys that are not known are ignored, so that it can grow."""
        if not isinstance(document, (bytes, bytearray)) or len(document) > MOST_BYTES:
            raise CorruptData(f"these are not texts: they must be at most {MOST_BYTES} bytes")
        data = parsed(bytes(document), "document of texts")
        try:
            check_version(data["deniable"])
            tags = sorted(data["languages"], key=lambda tag: (tag != LANGUAGE, tag))
            languages = {tag: _language(data["languages"][tag]) for tag in tags}
            candidates = {name: _listed(some) for name, some in data["candidates"].items()}
            found = cls(require_text("collection", data["collection"]), languages, candidates)
        except (InvalidArgument, LookupError, TypeError, AttributeError) as error:
            raise CorruptData(f"these are not texts: {error}") from error
        if not languages:
            raise CorruptData("these are not texts: there is no language")
        vars(found)["document"] = bytes(document)
        return found


def _language(data: Mapping[str, Any]) -> Language:
    questions, fields = _wordings(data.get("questions", [])), _wordings(data.get("fields", []))
    return Language(data.get("title", ""), data.get("about", ""), questions, fields)


def _wordings(listed: Sequence[Mapping[str, Any]]) -> dict[str, Wording]:
    return {
        one["name"]: Wording(
            one.get("ask", ""), _listed(one.get("answers", [])), one.get("unit", "")
        )
        for one in listed
    }


def _listed(texts: Any) -> tuple[str, ...]:
    if not isinstance(texts, list):
        raise InvalidArgument("texts", texts, "a list")
    return tuple(require_text("texts", text) for text in texts)


def _check_wording(
    tag: str, name: str, wording: Wording, known: Mapping[str, Sequence[str]]
) -> None:
    if name not in known:
        raise InvalidArgument(f"texts.{tag}", name, f"one of {', '.join(known)}")
    if wording.answers and len(wording.answers) != len(known[name]):
        allowed = f"{len(known[name])} texts, in the order of the answers"
        raise InvalidArgument(f"texts.{tag}.{name}", list(wording.answers), allowed)


def _refuse_skips(name: str, labels: Sequence[str]) -> None:
    """Refuse answers that read like a skip, where people may skip the question besides."""
    for label in labels:
        if tidy(label, "case") in SKIPS:
            allowed = "other answers: this one reads like a skip, which the form offers anyway"
            raise InvalidArgument(f"{name}: answers", label, allowed)
