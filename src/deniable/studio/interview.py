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
from deniable.collection.survey import check_answers, survey_of
from deniable.errors import InvalidArgument, shorten
from deniable.privacy import check_epsilon
from deniable.texts import Fold, tidy

with contextlib.suppress(ImportError):  # where it is missing, lines cannot be edited
    import readline  # noqa: F401

#: Words of a question that say nothing about it.
_COMMON = {"are", "did", "does", "for", "had", "has", "have", "how", "last", "many", "much",
           "often", "the", "was", "were", "what", "when", "where", "which", "who", "why", "with",
           "you", "your"}  # fmt: skip


def interview() -> tuple[dict[str, Any], Collection]:
    """A survey, question by question, and its collection.

    Every answer is tried at once: nobody learns at the end that all of them were in vain.
    """
    survey: dict[str, Any] = {"title": _asked("Title of the survey", None, _text)}
    survey["respondents"] = _asked("How many people do you expect?", "10000", _whole(1, 1 << 40))
    print(
        "\nEpsilon limits how much one person's answers reveal, all questions together. "
        f"Values from 1 to 4 are common.\n{certainty(1)}"
    )
    survey["epsilon"] = _asked("Epsilon", "2", lambda text: check_epsilon(_number(text)))
    survey["questions"] = []
    while not survey["questions"] or agreed("Another question?"):
        print(f"\nQuestion {len(survey['questions']) + 1}")
        one = _question({known["name"] for known in survey["questions"]})
        longer = {**survey, "questions": [*survey["questions"], one]}
        if _tried(longer) is not None:
            survey = longer
        print()
    while True:
        whole = {**survey, **_repeated(len(survey["questions"]))}
        if (collection := _tried(whole)) is not None:
            return whole, collection


def _tried(survey: dict[str, Any]) -> Collection | None:
    """The collection of a survey, or None after saying what is wrong with it."""
    try:
        return survey_of(survey)
    except ValueError as error:
        _refuse(error)
        return None


def _repeated(questions: int) -> dict[str, Any]:
    """Who is asked what, and how often."""
    if questions > 1 and agreed("Ask each person only one question, drawn by the device?"):
        return {"divide": "sampled"}
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
    return (
        f"With epsilon {epsilon:g}, someone who sees a person's report and thought "
        f'"50:50" beforehand can be {_sure(epsilon)} sure afterwards.'
    )


def _sure(epsilon: float) -> str:
    sure = 100 / (1 + math.exp(-epsilon))
    if sure > 99.99:
        return "almost 100 %"
    return f"at most {sure:.0f} %" if sure < 99 else f"at most {sure:.4g} %"


def _question(taken: set[str]) -> dict[str, Any]:
    ask = _asked("The question, as people will read it", None, _text)
    name = _asked("Short name, for tables and files", suggestion(ask, taken), _name(taken))
    kind = _asked(f"Kind of answer ({', '.join(KINDS)})", "choice", _kind)
    found: dict[str, Any] = {"name": name, "ask": ask, "kind": kind}
    if kind == "choice":
        found["answers"] = _list("Answers", 2, check_answers, "none")
    elif kind == "number":
        print("Numbers are counted in groups, such as below 15, 15 to 30, 30 or more.")
        found["edges"] = _asked("Limits of the groups, ascending (such as 15 30)", None, _edges)
    elif kind == "text":
        words = "Answers to look for (more can be added later)"
        found["candidates"] = _list(words, 0, check_candidates, "case")
    return found


def _list(words: str, least: int, check: Callable[[list[str]], Any], fold: Fold) -> list[str]:
    """Texts that differ when tidied, one per line; a list that is pasted has several lines."""
    print(f"{words}, one per line. An empty line ends the list.")
    found: dict[str, str] = {}
    while True:
        text = input(f"  {len(found) + 1}: ")
        try:
            if not text.strip():
                if len(found) >= least:
                    return [*found.values()]
                raise InvalidArgument("the list", [*found.values()], f"at least {least} answers")
            for line in filter(None, map(str.strip, text.splitlines())):
                check([line])
                if tidy(line, fold) in found:
                    raise InvalidArgument("an answer", line, "listed only once")
                found[tidy(line, fold)] = line
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
    """Say what is wrong with an answer."""
    words = str(error)
    if isinstance(error, InvalidArgument):
        words = f"{error.name} must be {error.allowed} (got {shorten(error.value)})."
    print(f"{words[:1].upper()}{words[1:]}", file=sys.stderr)


def suggestion(ask: str, taken: set[str]) -> str:
    """A name for a question: its last long word that says something."""
    plain = unicodedata.normalize("NFKD", ask.casefold()).encode("ascii", "ignore").decode()
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
        if not digits.isdecimal() or not low <= int(digits) <= high:
            allowed = f"a whole number from {low:,} to {high:,}"
            raise InvalidArgument("the answer", text, allowed)
        return int(digits)

    return read
