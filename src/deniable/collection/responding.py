"""From answers to rows: what a device computes, a pure function of the answers and the coins.

Nothing here draws randomness of its own, and nothing needs a compiled kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deniable.collection.manifest import Collection
from deniable.errors import InvalidArgument
from deniable.longitudinal.memo import Memo
from deniable.mechanisms import Mechanism
from deniable.randomness import Coins


def indices(collection: Collection, answers: Mapping[str, Any]) -> list[int]:
    """The index of each answer, in the order of the questions; refuses before any coin is drawn."""
    names = [question.name for question in collection.questions]
    if not isinstance(answers, Mapping):
        raise InvalidArgument("answers", answers, "a mapping from questions to answers")
    if unknown := [name for name in answers if name not in names]:
        raise InvalidArgument("answers", unknown, f"for the questions {', '.join(names)}")
    if missing := [name for name in names if name not in answers]:
        raise InvalidArgument("answers", missing, "complete: these questions have no answer")
    return [question.index(answers[question.name]) for question in collection.questions]


def coin_words(collection: Collection) -> int:
    """The words that one submission draws, whatever the answers."""
    if not any(map(collection.remembered, collection.questions)):
        return collection.questionnaire.coin_words
    words = 0
    for question in collection.questions:
        m: Any = question.mechanism
        words += 1 + m.instant_words if collection.remembered(question) else m.coin_words
    return words


def respond(
    collection: Collection,
    values: list[int],
    coins: Coins,
    memos: Mapping[str, Memo],
    *,
    record: bool = True,
) -> dict[str, bytes]:
    """The rows of one submission; ``memos`` of the questions that are remembered.

    Without ``record`` they are a preview: no memo notes a key.
    """
    if collection.divide == "sampled":
        place, report = collection.questionnaire.report(values, coins)
        asked = collection.questions[place]
        return {asked.name: row(asked.mechanism, report)}
    rows = {}
    for question, value in zip(collection.questions, values, strict=True):
        if collection.remembered(question):
            report = memos[question.name].report_always(value, coins, record=record)
        else:
            report = question.mechanism.report(value, coins)
        rows[question.name] = row(question.mechanism, report)
    return rows


def row(m: Mechanism, report: Any) -> bytes:
    """The bytes of a report in a column."""
    return m.pack([report]).tobytes()
