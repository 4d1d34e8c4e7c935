"""The questions that `deniable init` asks to write a survey."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import typer

from deniable.collection.questions import KINDS, check_edges
from deniable.errors import InvalidArgument
from deniable.privacy import check_epsilon


def interview() -> dict[str, Any]:
    """A survey, question by question."""
    survey: dict[str, Any] = {"title": typer.prompt("Title of the survey")}
    survey["epsilon"] = _asked(
        "Epsilon of one person, all questions together", "2.0", lambda t: check_epsilon(float(t))
    )
    survey["respondents"] = _asked("Expected respondents", "10000", int)
    questions: list[dict[str, Any]] = []
    while not questions or typer.confirm("Another question?"):
        questions.append(_question({one["name"] for one in questions}))
    if len(questions) > 1 and typer.confirm(
        "Ask everybody only one of them (drawn by the device)?"
    ):
        survey["divide"] = "sampled"
    rounds = _asked("How often will the same people be asked?", "1", int)
    if rounds > 1:
        survey["rounds"] = rounds
        survey["changes"] = _asked("Changes of an answer to report at most", "1", int)
    return {**survey, "questions": questions}


def _question(taken: set[str]) -> dict[str, Any]:
    ask = typer.prompt("The question, as people will read it")
    name = _name(ask, taken)
    kind = _asked(f"Kind ({', '.join(KINDS)})", "choice", _kind)
    found: dict[str, Any] = {"name": name, "ask": ask, "kind": kind}
    if kind == "choice":
        found["answers"] = _asked("Answers, with commas between", None, _list)
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
    words = re.findall("[a-z]{4,}", ask.lower())
    name = words[-1][:28] if words else "question"
    return name if name not in taken else f"{name}_{len(taken) + 1}"


def _kind(text: str) -> str:
    if text not in KINDS:
        raise InvalidArgument("kind", text, f"one of {', '.join(KINDS)}")
    return text


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _edges(text: str) -> list[float]:
    numbers = [float(part) for part in _list(text)]
    return [int(edge) if edge.is_integer() else edge for edge in check_edges(numbers)]
