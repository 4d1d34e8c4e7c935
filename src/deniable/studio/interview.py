"""The questions that `deniable init` asks to write a survey."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import typer

from deniable.collection.manifest import MOST_ROUNDS
from deniable.collection.questions import KINDS, check_edges, require_text
from deniable.errors import InvalidArgument, require_int
from deniable.privacy import check_epsilon


def interview() -> dict[str, Any]:
    """A survey, question by question."""
    survey: dict[str, Any] = {"title": _asked("Title of the survey", None, _text)}
    survey["epsilon"] = _asked(
        "Epsilon of one person, all questions together", "2.0", lambda t: check_epsilon(_number(t))
    )
    survey["respondents"] = _asked("Expected respondents", "10000", _whole(1, 1 << 40))
    questions: list[dict[str, Any]] = []
    while not questions or typer.confirm("Another question?"):
        questions.append(_question({one["name"] for one in questions}))
    several = len(questions) > 1
    if several and typer.confirm("Ask everybody only one of them, drawn by the device?"):
        survey["divide"] = "sampled"
        return {**survey, "questions": questions}
    rounds = _asked("How often will the same people be asked?", "1", _whole(1, MOST_ROUNDS))
    if rounds > 1:
        survey["rounds"] = rounds
        words = "Changes of an answer to report at most"
        survey["changes"] = _asked(words, "1", _whole(0, rounds - 1))
    return {**survey, "questions": questions}


def _question(taken: set[str]) -> dict[str, Any]:
    ask = _asked("The question, as people will read it", None, _text)
    name = _name(ask, taken)
    kind = _asked(f"Kind ({', '.join(KINDS)})", "choice", _kind)
    found: dict[str, Any] = {"name": name, "ask": ask, "kind": kind}
    if kind == "choice":
        found["answers"] = _asked("Answers, with commas between", None, _answers)
    elif kind == "number":
        found["edges"] = _asked("Edges of the bins, ascending, with commas between", None, _edges)
    elif kind == "text":
        found["candidates"] = _asked("Answers to look for, with commas between", "", _list)
    return found


def _asked(words: str, default: str | None, read: Callable[[str], Any]) -> Any:
    """Ask until the answer can be used."""
    while True:
        text = typer.prompt(words, default=default)
        try:
            return read(text)
        except ValueError as error:
            typer.secho(str(error), fg="red", err=True)


def _name(ask: str, taken: set[str]) -> str:
    """A name for programs, from the last long word of the question."""
    words = re.findall("[a-z]{3,}", ask.lower())
    name = words[-1][:28] if words else "question"
    return name if name not in taken else f"{name}_{len(taken) + 1}"


def _text(text: str) -> str:
    return require_text("the answer", text)


def _kind(text: str) -> str:
    """A kind, or the beginning of one."""
    fitting = [kind for kind in KINDS if text and kind.startswith(text.lower())]
    if len(fitting) != 1:
        raise InvalidArgument("kind", text, f"one of {', '.join(KINDS)}")
    return fitting[0]


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _answers(text: str) -> list[str]:
    found = _list(text)
    if len(found) < 2 or len(set(found)) != len(found):
        raise InvalidArgument("answers", found, "at least two, all different")
    return found


def _edges(text: str) -> list[float]:
    numbers = [_number(part) for part in _list(text)]
    return [int(edge) if edge.is_integer() else edge for edge in check_edges(numbers)]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidArgument("the answer", text, "a number") from None


def _whole(low: int, high: int) -> Callable[[str], int]:
    """Reads an integer of a range."""
    return lambda text: require_int(
        "the answer", int(text) if text.isdecimal() else text, low, high
    )
