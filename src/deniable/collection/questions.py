"""One question of a collection, and how an answer becomes the index of a value."""

from __future__ import annotations

import itertools
import math
import re
import sys
import unicodedata
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.domain import Candidates, Domain, Text
from deniable.errors import InvalidArgument, is_number
from deniable.mechanisms import Mechanism, from_spec

KINDS = ("choice", "yes/no", "number", "text")
YES_NO = ("yes", "no")
NAME = re.compile("[a-z][a-z0-9_]{0,31}")
MOST_EDGES = 1000
#: The largest number that a double can be.
MOST_NUMBER = int(sys.float_info.max)


@dataclass(frozen=True)
class Question:
    """A name for programs, words for people, and the mechanism that randomises the answers.

    ``edges`` cut the numbers of a "number" into bins; ``candidates`` are what analysts look for
    among the answers of a "text".
    """

    name: str
    ask: str
    kind: str
    mechanism: Mechanism
    edges: tuple[float, ...] = ()
    candidates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_name(self.name)
        require_text("ask", self.ask)
        labels = self.mechanism.domain.labels or ()
        if any(isinstance(label, str) and has_controls(label) for label in labels):
            raise InvalidArgument("answers", labels, "texts of one line, no control characters")
        if not self._fits():
            allowed = f"one for the answers of a question of kind {self.kind!r}"
            raise InvalidArgument("mechanism", self.mechanism, allowed)

    def _fits(self) -> bool:
        domain = self.mechanism.domain
        if self.kind == "choice":
            return type(domain) is Domain and domain.labels is not None
        return domain == domain_of(self.kind, self.edges)

    def label(self, answer: Any) -> Any:
        """What `Domain.encode` takes for an answer; refuses what is none, naming the question."""
        if isinstance(answer, np.generic):
            answer = answer.item()
        if self.kind == "yes/no" and isinstance(answer, bool):
            return YES_NO[0] if answer else YES_NO[1]
        if self.kind == "number":
            if not is_number(answer) or abs(answer) > MOST_NUMBER or math.isnan(answer):
                raise InvalidArgument(self.name, answer, "a finite number")
            return bin_names(self.edges)[bisect_right(self.edges, float(answer))]
        if self.kind == "choice" and not isinstance(answer, (str, int)):
            raise InvalidArgument(self.name, answer, "a text, an integer or a boolean")
        return answer

    def index(self, answer: Any) -> int:
        """The index of an answer's value."""
        try:
            return int(self.mechanism.domain.encode([self.label(answer)])[0])
        except InvalidArgument as refused:
            raise InvalidArgument(self.name, answer, refused.allowed) from None

    def to_json(self) -> dict[str, Any]:
        """The question as it is published."""
        extra: dict[str, Any] = {}
        if self.kind == "number":
            extra["edges"] = list(self.edges)
        if self.kind == "text":
            extra["candidates"] = list(self.candidates)
        words = {"name": self.name, "ask": self.ask, "kind": self.kind}
        return {**words, **extra, "mechanism": self.mechanism.to_spec()}

    @classmethod
    def from_json(cls, data: Any) -> Question:
        """The question that `to_json` described."""
        kind = data.get("kind") if isinstance(data, Mapping) else None
        extra = {"number": {"edges"}, "text": {"candidates"}}.get(str(kind), set())
        keys = {"name", "ask", "kind", "mechanism", *extra}
        if not isinstance(data, Mapping) or set(data) != keys:
            raise InvalidArgument("question", data, f"an object with the keys {sorted(keys)}")
        return cls(
            data["name"],
            data["ask"],
            data["kind"],
            from_spec(data["mechanism"]),
            check_edges(data["edges"]) if "edges" in data else (),
            check_candidates(data["candidates"]) if "candidates" in data else (),
        )


def domain_of(kind: str, edges: Sequence[float] = ()) -> Domain:
    """The values that answers of a kind can have, where they need no list."""
    if kind == "yes/no":
        return Domain(YES_NO)
    if kind == "number":
        return Domain(bin_names(edges))
    if kind == "text":
        return Text()
    raise InvalidArgument("kind", kind, f"one of {', '.join(KINDS)}")


def bin_names(edges: Sequence[float]) -> list[str]:
    """The bins in words: numbers below the first edge, between two, from the last on."""
    words = [f"{edge:.12g}" for edge in edges]
    between = [f"{low} to {high}" for low, high in itertools.pairwise(words)]
    return [f"below {words[0]}", *between, f"{words[-1]} or more"]


def check_name(name: Any, place: str = "name") -> str:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        allowed = "1 to 32 small letters, digits and _, the first a letter"
        raise InvalidArgument(place, name, allowed)
    return name


def check_edges(edges: Any) -> tuple[float, ...]:
    """Finite numbers that ascend, also when they are written with 12 digits.

    Answers meet them as doubles, so an integer that no double holds becomes the nearest one.
    """
    numbers = isinstance(edges, Sequence) and all(type(edge) in (int, float) for edge in edges)
    finite = numbers and all(abs(edge) <= MOST_NUMBER for edge in edges)
    if not finite or not 1 <= len(edges) <= MOST_EDGES:
        raise InvalidArgument("edges", edges, f"1 to {MOST_EDGES} finite numbers")
    pairs = itertools.pairwise(edges)
    if not all(low < high and f"{low:.12g}" != f"{high:.12g}" for low, high in pairs):
        raise InvalidArgument("edges", edges, "ascending, and different in their first 12 digits")
    return tuple(edge if edge == float(edge) else float(edge) for edge in edges)


def check_candidates(candidates: Any) -> tuple[str, ...]:
    """Different texts, each on one line without blanks around it, or none."""
    texts = isinstance(candidates, Sequence) and not isinstance(candidates, str)
    if not texts or not all(isinstance(text, str) for text in candidates):
        raise InvalidArgument("candidates", candidates, "a list of texts")
    if not all(text == text.strip() and len(text.splitlines()) == 1 for text in candidates):
        raise InvalidArgument("candidates", candidates, "texts of one line, no blanks around them")
    if any(map(has_controls, candidates)):
        raise InvalidArgument("candidates", candidates, "texts without control characters")
    if candidates:
        Candidates(candidates)  # refuses two spellings of one answer
    return tuple(candidates)


def require_text(name: str, value: Any, *, empty: bool = False, lines: bool = False) -> str:
    """Refuse what people could not read; where ``lines`` are allowed, they end in a line feed."""
    readable = isinstance(value, str) and value == value.encode(errors="ignore").decode()
    if not readable or not (empty or value.strip()):
        raise InvalidArgument(name, value, "text")
    if has_controls(value.replace("\n", "") if lines else value):
        kind = "text" if lines else "text on one line"
        raise InvalidArgument(name, value, f"{kind} without control characters")
    return str(value)


def has_controls(text: str) -> bool:
    """Whether a text could steer a terminal: arrow keys, line ends, escape sequences."""
    return any(unicodedata.category(character) == "Cc" for character in text)
