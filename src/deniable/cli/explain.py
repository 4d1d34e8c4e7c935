"""A survey in plain words: what is published, what leaves a device, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from deniable.collection.client import MOST_EPSILON
from deniable.collection.manifest import Collection

#: Which histories of answers an epsilon is about, where devices remember.
ALIKE = "stay the same, change, and come back in the same rounds"


def sentences(collection: Collection) -> list[str]:
    """What a respondent and an ethics board want to know."""
    odds = math.exp(collection.spent)
    found = [
        _division(collection),
        f"One person spends at most epsilon {_short(collection.spent)}. Someone who sees all "
        'that a device sends, and thought "50:50" about two sets of answers beforehand, can be at '
        f"most {100 * odds / (1 + odds):.1f} % sure afterwards"
        + (f", if both {ALIKE}." if collection.shows_changes else "."),
        _sent(collection),
        "The collector publishes how every answer is randomised (the manifest, digest "
        f"{collection.digest[:12]}...) and the wording of the questions.",
    ]
    if collection.epsilon > MOST_EPSILON:
        found.append(
            f"Clients refuse epsilon {_short(collection.epsilon)} unless they are told to allow "
            f"more than {_short(MOST_EPSILON)} (`max_epsilon`). The questionnaire page refuses it."
        )
    return found + ([_rounds(collection)] if collection.rounds > 1 else [])


def _division(collection: Collection) -> str:
    """Who answers what."""
    drawn = [report.of for report in collection.reports if len(report.of) > 1]
    if len(collection.questions) == 1:
        return "There is one question."
    if not drawn:
        return f"Each person answers all {len(collection.questions)} questions."
    parts = [f"one of {_listed(names)}, which their device draws" for names in drawn]
    if len(drawn) < len(collection.reports):
        parts.append("every other question")
    return f"Each person answers {', and '.join(parts)}."


def _sent(collection: Collection) -> str:
    """What leaves the device."""
    size = sum(report.mechanism.dtype.itemsize for report in collection.reports)
    told = (
        f"What leaves the device: {size} {'byte' if size == 1 else 'bytes'} of randomised answers, "
        "a new random number for each submission, the number of the round, and the digest of this "
        "collection. No clock, no address, nothing about the device."
    )
    if collection.fields:
        told += f" Not protected: {_listed([field.name for field in collection.fields])}."
    return told


def _rounds(collection: Collection) -> str:
    kept = [name for r in collection.reports if collection.remembered(r) for name in r.of]
    told = f"The same people are asked {collection.rounds} times. "
    if kept:
        told += (
            f"Devices remember what they drew for {_listed(kept)}: up to {collection.changes} "
            "changes of an answer are reported, and later ones are not. "
        )
    if collection.shows_changes:
        told += "Not hidden: that an answer changed, when, and that an earlier answer came back. "
    if len(kept) < len(collection.questions):
        which = "The other questions are" if kept else "All questions are"
        told += f"{which} answered afresh each time, with a part of the budget."
    return told.strip()


def _listed(names: Sequence[str]) -> str:
    """Names in a sentence."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _short(epsilon: float) -> str:
    return f"{epsilon:.6g}"
