"""The collection: what is asked, how the budget is divided, and the digest that names it.

`docs/wire-format.md` specifies the manifest byte for byte.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, reduce
from typing import Any

from deniable.collection.questions import Question, require_text
from deniable.errors import CorruptData, InvalidArgument, require_int
from deniable.mechanisms.memoised import Memoised
from deniable.mechanisms.questionnaire import MODES, Questionnaire
from deniable.privacy import Guarantee, Lasting, check_epsilon
from deniable.privacy.guarantee import CONTEXT, float_above

VERSION = 1
MOST_QUESTIONS = 256
MOST_ROUNDS = (1 << 16) - 1
#: A manifest that is longer is refused before it is read.
MOST_BYTES = 1 << 24
_KEYS = ("deniable", "title", "about", "epsilon", "divide", "rounds", "changes", "questions")


@dataclass(frozen=True)
class Collection:
    """Questions to the same people, under one budget.

    ``epsilon`` is what one respondent spends at most, all questions and rounds together, with at
    most ``changes`` changes of each answer that a device remembers; more of them are not reported.
    It is about which answers were given, beside others that stay the same, change, and come back
    when these do. In which rounds a remembered answer was the same, another, or an earlier one
    again is not hidden (see `privacy.Lasting`). Questions that are not remembered count on one
    submission a round.
    """

    title: str
    questions: tuple[Question, ...]
    epsilon: float
    divide: str = "split"
    rounds: int = 1
    changes: int = 0
    about: str = ""

    def __post_init__(self) -> None:
        require_text("title", self.title)
        require_text("about", self.about, empty=True, lines=True)
        check_epsilon(self.epsilon)
        if self.divide not in MODES:
            raise InvalidArgument("divide", self.divide, f"one of {', '.join(MODES)}")
        require_int("rounds", self.rounds, 1, MOST_ROUNDS)
        require_int("changes", self.changes, 0, self.rounds - 1)
        names = [question.name for question in self.questions]
        if not 1 <= len(names) <= MOST_QUESTIONS or len(set(names)) != len(names):
            allowed = f"1 to {MOST_QUESTIONS} with different names"
            raise InvalidArgument("questions", names, allowed)
        if self.rounds > 1 and self.divide == "sampled":
            raise InvalidArgument("divide", self.divide, "split if there is more than one round")
        self._check_keys()
        if self.spent > self.epsilon:
            allowed = f"at least {self.spent}, which is what the questions spend"
            raise InvalidArgument("epsilon", self.epsilon, allowed)

    def _check_keys(self) -> None:
        """Refuse mechanisms whose epsilon does not hold where answers change."""
        for question in filter(self.remembered, self.questions):
            mechanism: Any = question.mechanism
            if self.changes and not mechanism.key_is_value:
                raise InvalidArgument(
                    f"{question.name}: mechanism",
                    mechanism.name,
                    "one with a permanent draw for each answer if answers may change (in this one "
                    "answers share a draw, and whether they do shows in the reports): set "
                    "changes = 0, or use another mechanism, such as lgrr, losue or auto",
                )

    def question(self, name: str) -> Question:
        """The question with this name."""
        for question in self.questions:
            if question.name == name:
                return question
        raise InvalidArgument("question", name, f"one of {', '.join(self.questionnaire.questions)}")

    @cached_property
    def questionnaire(self) -> Questionnaire:
        """The channel of one submission with fresh coins."""
        return Questionnaire({q.name: q.mechanism for q in self.questions}, self.divide)

    def remembered(self, question: Question) -> bool:
        """Whether its reports are made from a memo."""
        return self.rounds > 1 and isinstance(question.mechanism, Memoised)

    @property
    def shows_changes(self) -> bool:
        """Whether it can be seen that an answer changed or came back, though not which ones."""
        return self.changes > 0 and any(map(self.remembered, self.questions))

    def spent_on(self, question: Question) -> float:
        """What all reports of one question cost a respondent."""
        return float_above(self._log_spent(question, self.rounds))

    @cached_property
    def spent(self) -> float:
        """What a respondent spends in all, from the integers of the channels, rounded up."""
        return self.spent_after(self.rounds)

    def spent_after(self, rounds: int) -> float:
        """What a respondent spends at most who answers in so many of the rounds."""
        if not rounds:
            return 0.0
        logs = [self._log_spent(question, rounds) for question in self.questions]
        return float_above(max(logs) if self.divide == "sampled" else reduce(CONTEXT.add, logs))

    def _log_spent(self, question: Question, rounds: int) -> Decimal:
        if not self.remembered(question):
            once: Guarantee = question.mechanism.once
            return once.log_after(rounds, 0)
        mechanism: Any = question.mechanism
        kept: Lasting = mechanism.permanent_guarantee
        return kept.log_always(rounds, min(self.changes, rounds - 1))

    # ---- the manifest

    @cached_property
    def manifest(self) -> bytes:
        """The document that is published."""
        data = {
            "deniable": VERSION,
            "title": self.title,
            "about": self.about,
            "epsilon": self.epsilon,
            "divide": self.divide,
            "rounds": self.rounds,
            "changes": self.changes,
            "questions": [question.to_json() for question in self.questions],
        }
        return json.dumps(
            data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        ).encode()

    @cached_property
    def digest(self) -> str:
        """The name of the collection: every submission carries it."""
        return hashlib.sha256(self.manifest).hexdigest()

    @classmethod
    def from_manifest(cls, manifest: bytes) -> Collection:
        """The collection that was published as these bytes; refuses one that breaks its promise.

        The bytes are kept as they are, for their digest names the collection.
        """
        data = _parsed(manifest)
        if type(data["deniable"]) is not int or data["deniable"] != VERSION:
            raise InvalidArgument("deniable", data["deniable"], f"the version {VERSION}")
        if not isinstance(data["questions"], list):
            raise InvalidArgument("questions", data["questions"], "a list of questions")
        if type(data["epsilon"]) not in (int, float):
            raise InvalidArgument("epsilon", data["epsilon"], "a number")
        questions = tuple(Question.from_json(question) for question in data["questions"])
        plain = {name: data[name] for name in ("divide", "rounds", "changes", "about")}
        found = cls(data["title"], questions, check_epsilon(data["epsilon"]), **plain)
        vars(found)["manifest"] = bytes(manifest)
        return found


def _parsed(manifest: bytes) -> Mapping[str, Any]:
    if not isinstance(manifest, (bytes, bytearray)) or len(manifest) > MOST_BYTES:
        raise InvalidArgument("manifest", manifest, f"at most {MOST_BYTES} bytes")
    try:
        data = json.loads(manifest.decode())
    except (ValueError, RecursionError) as error:
        raise CorruptData(f"this is not a manifest: {error}") from error
    if not isinstance(data, Mapping) or set(data) != set(_KEYS):
        raise CorruptData(f"this is not a manifest: its keys must be {', '.join(_KEYS)}")
    return data
