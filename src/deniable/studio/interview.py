"""The questions that `deniable init` asks to write a survey."""

from __future__ import annotations

import contextlib
import math
import re
import sys
import unicodedata
from collections.abc import Callable
from typing import Any

from deniable.collection.manifest import MOST_ROUNDS, Collection
from deniable.collection.questions import (
    KINDS,
    bin_names,
    check_candidates,
    check_edges,
    check_name,
    require_text,
)
from deniable.errors import InvalidArgument, require_int
from deniable.privacy import check_epsilon

with contextlib.suppress(ImportError):  # where it is missing, lines cannot be edited
    import readline  # noqa: F401

#: Words of a question that say nothing about it.
_COMMON = {"are", "did", "does", "for", "had", "has", "have", "how", "last", "many", "much",
           "often", "the", "was", "were", "what", "when", "where", "which", "who", "why", "with",
           "you", "your"}  # fmt: skip


def interview() -> dict[str, Any]:
    """A survey, question by question."""
    survey: dict[str, Any] = {"title": _asked("Title of the survey", None, _text)}
    survey["respondents"] = _asked("How many people do you expect?", "10000", _whole(1, 1 << 40))
    print(
        "\nEpsilon limits how much one person's answers reveal, all questions together. "
        f"Values from 1 to 4 are common.\n{certainty(1)}"
    )
    survey["epsilon"] = _asked("Epsilon", "2", lambda text: check_epsilon(_number(text)))
    questions: list[dict[str, Any]] = []
    while not questions or agreed("Another question?"):
        print(f"\nQuestion {len(questions) + 1}")
        questions.append(_question({one["name"] for one in questions}))
        print()
    if len(questions) > 1 and agreed("Ask each person only one question, drawn by the device?"):
        return {**survey, "divide": "sampled", "questions": questions}
    return {**survey, **_rounds(), "questions": questions}


def _rounds() -> dict[str, int]:
    rounds = _asked("How often will you ask the same people?", "1", _whole(1, MOST_ROUNDS))
    if rounds == 1:
        return {}
    words = "How many changes of an answer may one person report?"
    return {"rounds": rounds, "changes": _asked(words, "1", _whole(0, rounds - 1))}


def summary(survey: dict[str, Any], collection: Collection, verdicts: list[str]) -> str:
    """What will be written, to be read before it is."""
    lines = [
        f"\n{survey['title']}",
        f"  {survey['respondents']:,} people. {certainty(collection.epsilon)}",
    ]
    for number, one in enumerate(survey["questions"], 1):
        groups = bin_names(one["edges"]) if "edges" in one else ()
        listed = one.get("answers") or one.get("candidates") or groups
        lines.append(f"  {number}. {one['ask']} ({one['name']}, {one['kind']})")
        lines += [f"       {answer}" for answer in listed]
    if survey.get("divide") == "sampled":
        lines.append("  Each person answers one of the questions, drawn by the device.")
    if collection.rounds > 1:
        changes = f"{collection.changes} {'change' if collection.changes == 1 else 'changes'}"
        lines.append(f"  The same people are asked {collection.rounds} times, with {changes}.")
    return "\n".join([*lines, *(f"  {verdict}" for verdict in verdicts)])


def certainty(epsilon: float) -> str:
    """What epsilon means, in one sentence."""
    sure = 100 / (1 + math.exp(-epsilon))
    shown = f"{sure:.0f}" if sure < 99 else f"{sure:.6g}"
    return (
        f"With epsilon {epsilon:g}, someone who sees a person's report and thought "
        f'"50:50" beforehand can be at most {shown} % sure afterwards.'
    )


def _question(taken: set[str]) -> dict[str, Any]:
    ask = _asked("The question, as people will read it", None, _text)
    name = _asked("Short name, for tables and files", suggestion(ask, taken), _name(taken))
    kind = _asked(f"Kind of answer ({', '.join(KINDS)})", "choice", _kind)
    found: dict[str, Any] = {"name": name, "ask": ask, "kind": kind}
    if kind == "choice":
        found["answers"] = _list("Answers", 2, _text)
    elif kind == "number":
        print("Numbers are counted in groups, such as below 15, 15 to 30, 30 or more.")
        found["edges"] = _asked("Limits of the groups, ascending (such as 15 30)", None, _edges)
    elif kind == "text":
        found["candidates"] = _list("Answers to look for (more can be added later)", 0, _candidate)
    return found


def _list(words: str, least: int, read: Callable[[str], str]) -> list[str]:
    """Different texts, one per line; a list that is pasted has several lines."""
    print(f"{words}, one per line. An empty line ends the list.")
    found: list[str] = []
    while True:
        text = input(f"  {len(found) + 1}: ")
        try:
            if not text.strip():
                if len(found) >= least:
                    return found
                raise InvalidArgument("the list", found, f"at least {least} answers long")
            for line in filter(None, map(str.strip, text.splitlines())):
                if line in found:
                    raise InvalidArgument("an answer", line, "listed only once")
                found.append(read(line))
        except ValueError as error:
            _refuse(error)


def _asked(words: str, default: str | None, read: Callable[[str], Any]) -> Any:
    """Ask until the answer can be used."""
    shown = words if default is None else f"{words} [{default}]"
    while True:
        text = input(f"{shown}{'' if shown.endswith('?') else ':'} ").strip()
        try:
            return read(text or default or "")
        except ValueError as error:
            _refuse(error)


def agreed(words: str, *, default: bool = False) -> bool:
    return bool(_asked(words, "yes" if default else "no", _yes))


def _refuse(error: ValueError) -> None:
    print(error, file=sys.stderr)


def suggestion(ask: str, taken: set[str]) -> str:
    """A name for a question: its last long word that says something."""
    plain = unicodedata.normalize("NFKD", ask.lower()).encode("ascii", "ignore").decode()
    words = [word for word in re.findall("[a-z]{3,}", plain) if word not in _COMMON]
    name = words[-1][:28] if words else "question"
    return name if name not in taken else f"{name}_{len(taken) + 1}"


def _name(taken: set[str]) -> Callable[[str], str]:
    """Reads a name that no other question has."""

    def read(text: str) -> str:
        if text in taken:
            raise InvalidArgument("the name", text, "another than those of the other questions")
        return check_name(text, "the name")

    return read


def _text(text: str) -> str:
    return require_text("the answer", text)


def _candidate(text: str) -> str:
    return check_candidates([text])[0]


def _yes(text: str) -> bool:
    for word in ("yes", "no"):
        if text and word.startswith(text.lower()):
            return word == "yes"
    raise InvalidArgument("the answer", text, "yes or no")


def _kind(text: str) -> str:
    """A kind, or the beginning of one."""
    fitting = [kind for kind in KINDS if text and kind.startswith(text.lower())]
    if len(fitting) != 1:
        raise InvalidArgument("kind", text, f"one of {', '.join(KINDS)}")
    return fitting[0]


def _edges(text: str) -> list[float]:
    numbers = [_number(part) for part in text.replace(",", " ").split()]
    return [int(edge) if edge.is_integer() else edge for edge in check_edges(numbers)]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidArgument("the answer", text, "a number") from None


def _whole(low: int, high: int) -> Callable[[str], int]:
    """Reads an integer of a range; thousands may be apart, as in 10,000."""

    def read(text: str) -> int:
        digits = re.sub(r"(?<=\d)[, _'](?=\d{3}(\D|$))", "", text)
        return require_int("the answer", int(digits) if digits.isdecimal() else text, low, high)

    return read
