"""A survey in plain words: what leaves a device, what it costs, and what error to expect."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from deniable.collection.client import MOST_EPSILON
from deniable.collection.manifest import Collection
from deniable.collection.questions import Question
from deniable.estimation.intervals import two_sided_z

#: Errors are told for an answer that this share of the respondents gives.
SHARE = 0.1
CONFIDENCE = 0.95
#: Which histories of answers an epsilon is about, where devices remember.
ALIKE = "stay the same, change, and come back in the same rounds"


def sentences(collection: Collection) -> list[str]:
    """What a respondent and an ethics board want to know."""
    sizes = [question.mechanism.dtype.itemsize for question in collection.questions]
    sampled = collection.divide == "sampled"
    size = max(sizes) if sampled else sum(sizes)
    odds = math.exp(collection.spent)
    found = [
        _division(collection),
        f"One person spends at most epsilon {_short(collection.spent)}. Someone who sees all "
        'that a device sends, and thought "50:50" about two sets of answers beforehand, can be at '
        f"most {100 * odds / (1 + odds):.1f} % sure afterwards"
        + (f", if both {ALIKE}." if collection.shows_changes else "."),
        f"What leaves the device: {'at most ' if sampled else ''}{size} "
        f"{'byte' if size == 1 else 'bytes'} of randomised answers, a new random number for each "
        "submission, the number of the round, and the digest of this collection "
        f"({collection.digest[:12]}...). No clock, no address, nothing about the device.",
    ]
    if collection.epsilon > MOST_EPSILON:
        found.append(
            f"Clients refuse epsilon {_short(collection.epsilon)} unless they are told to allow "
            f"more than {_short(MOST_EPSILON)} (`max_epsilon`). The questionnaire page refuses it."
        )
    return found + ([_rounds(collection)] if collection.rounds > 1 else [])


def _division(collection: Collection) -> str:
    number = len(collection.questions)
    if number == 1:
        return "There is one question."
    if collection.divide == "sampled":
        return f"Everybody answers one of {number} questions, which their device draws."
    return f"Everybody answers all of {number} questions."


def _rounds(collection: Collection) -> str:
    kept = [question.name for question in collection.questions if collection.remembered(question)]
    told = f"The same people are asked {collection.rounds} times. "
    if kept:
        told += (
            f"Devices remember what they drew for {', '.join(kept)}: up to {collection.changes} "
            "changes of an answer are reported, and later ones are not. "
        )
    if collection.shows_changes:
        told += "Not hidden: that an answer changed, when, and that an earlier answer came back. "
    if len(kept) < len(collection.questions):
        which = "The other questions are" if kept else "All questions are"
        told += f"{which} answered afresh each time, with a part of the budget."
    return told.strip()


def expectations(collection: Collection, respondents: int) -> list[dict[str, Any]]:
    """A row for each question: how it is asked, what it costs, the error to expect in one round."""
    return [
        {
            "question": question.name,
            "kind": question.kind,
            "values": "any" if question.kind == "text" else question.mechanism.domain.size,
            "mechanism": type(question.mechanism).__name__,
            "epsilon": collection.spent_on(question),
            "bytes": question.mechanism.dtype.itemsize,
            "reports": _asked(collection, respondents),
            "error": half_width(collection, question, respondents),
        }
        for question in collection.questions
    ]


def _asked(collection: Collection, respondents: int) -> int:
    """How many answer each question in one round."""
    sampled = collection.divide == "sampled"
    return max(1, respondents // len(collection.questions)) if sampled else respondents


def half_width(collection: Collection, question: Question, respondents: int) -> float:
    """Half of the 95 % interval of an answer that one of ten gives, in one round.

    Where a question is drawn, those who answer it are a sample: that adds f (1 - f) / n. The error
    of a text is that beside one other answer that all others give: no answers disturb it more.
    """
    mechanism, n = question.mechanism, _asked(collection, respondents)
    if question.kind == "text":
        mechanism = mechanism.among(["one", "another"])
        variance = float(mechanism.variance(n, [SHARE, 1 - SHARE, 0.0])[0])
    else:
        variance = float(np.max(mechanism.variance(n, SHARE)))
    drawn = SHARE * (1 - SHARE) / n if collection.divide == "sampled" else 0.0
    return two_sided_z(CONFIDENCE) * math.sqrt(variance + drawn)


def _short(epsilon: float) -> str:
    return f"{epsilon:.6g}"
