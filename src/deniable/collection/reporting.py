"""From answers to rows: what a device computes, a pure function of the answers and the coins.

Nothing here draws randomness of its own, and nothing needs a compiled kernel.
"""

from __future__ import annotations

from collections.abc import Collection as Names
from collections.abc import Iterator, Mapping
from typing import Any

from deniable.collection.manifest import Collection, Report
from deniable.device.memo import Memo
from deniable.errors import InvalidArgument, Unshown
from deniable.randomness import WORD_BYTES, ByteCoins, Coins

#: The encoded answer to each question.
Values = dict[str, Any]


def encoded(
    collection: Collection, answers: Mapping[str, Any], asked: Names[str] | None = None
) -> Values:
    """The encoded answers; refuses before any coin is drawn.

    Only the questions that were ``asked`` need an answer (all, unless given).
    """
    names = [question.name for question in collection.questions]
    if not isinstance(answers, Mapping):
        raise InvalidArgument("answers", Unshown(answers), "a mapping from questions to answers")
    if unknown := [name for name in answers if name not in names]:
        raise InvalidArgument("answers", unknown, f"for the questions {', '.join(names)}")
    needed = names if asked is None else asked
    if missing := [name for name in names if name in needed and name not in answers]:
        raise InvalidArgument("answers", missing, "complete: these questions have no answer")
    return {
        name: collection.question(name).index(answers[name]) for name in names if name in answers
    }


def coin_words(collection: Collection) -> int:
    """The words that one submission draws, whatever the answers."""
    return sum(map(collection.words, collection.reports))


def drawn(collection: Collection, coins: bytes) -> list[str]:
    """The questions whose answers a submission with these coins depends on, in their order."""
    needed: set[str] = set()
    for report, part in _parts(collection, coins):
        needed.update(report.mechanism.asks(report.of, ByteCoins(part)))
    return [question.name for question in collection.questions if question.name in needed]


def redrawn(collection: Collection, coins: bytes, fresh: bytes) -> bytes:
    """Fresh coins that draw the same questions: of ``coins`` only the places are kept."""
    pairs = zip(_parts(collection, coins), _parts(collection, fresh), strict=True)
    return b"".join(
        new if report.mechanism.places == 1 else old[:WORD_BYTES] + new[WORD_BYTES:]
        for (report, old), (_, new) in pairs
    )


def _parts(collection: Collection, coins: bytes) -> Iterator[tuple[Report, bytes]]:
    """Each report with its own coins."""
    start = 0
    for report in collection.reports:
        end = start + WORD_BYTES * collection.words(report)
        yield report, coins[start:end]
        start = end


def respond(
    collection: Collection,
    values: Values,
    coins: Coins,
    memos: Mapping[str, Memo],
    *,
    record: bool = True,
) -> dict[str, bytes]:
    """The rows of one submission; ``memos`` of the reports that are remembered.

    Questions that these coins do not draw (see `drawn`) need no value. Without ``record`` the rows
    are a preview: no memo notes a key.
    """
    rows = {}
    for report in collection.reports:
        value = tuple(values.get(name) for name in report.of)
        one: Any = value[0] if len(value) == 1 else value
        if collection.remembered(report):
            made = memos[report.name].report_always(one, coins, record=record)
        else:
            made = report.mechanism.report(one, coins)
        rows[report.name] = report.mechanism.layout.row(made)
    return rows
