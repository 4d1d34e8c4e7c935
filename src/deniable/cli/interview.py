"""The questions that `deniable init` asks to write a survey."""

from __future__ import annotations

import contextlib
import math
import re
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from deniable.collection.manifest import MOST_ROUNDS
from deniable.collection.questions import check_name
from deniable.collection.survey import Survey, survey_of
from deniable.core.domain import Domain, Key, Kind, survey_kinds
from deniable.errors import InvalidArgument, shorten
from deniable.privacy import check_epsilon
from deniable.texts import require_text, tidy

with contextlib.suppress(ImportError):  # where it is missing, lines cannot be edited
    import readline  # noqa: F401

#: Words of a question that say nothing about it.
_COMMON = {"are", "day", "did", "does", "for", "had", "has", "have", "how", "last", "least", "many",
           "month", "most", "much", "often", "the", "was", "week", "were", "what", "when", "where",
           "which", "who", "why", "with", "year", "you", "your"}  # fmt: skip


def interview() -> tuple[dict[str, Any], Survey]:
    """What the file of a survey says, question by question, and the survey.

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
        if (found := _tried(whole)) is not None:
            return whole, found


def _tried(data: dict[str, Any]) -> Survey | None:
    """The survey of a file, or None after saying what is wrong with it."""
    try:
        return survey_of(data)
    except ValueError as error:
        _refuse(error)
        return None


def _repeated(questions: int) -> dict[str, Any]:
    """Who is asked what, and how often."""
    if questions > 1 and agreed("Ask each person only one question, drawn by the device?"):
        return {"divide": "sampled"}
    rounds = _asked("How many times will you ask the same people?", "1", _whole(1, MOST_ROUNDS))
    if rounds == 1:
        return {}
    words = "How many changes of an answer may one person report?"
    return {"rounds": rounds, "changes": _asked(words, "1", _whole(0, rounds - 1))}


def summary(survey: Survey, respondents: int, verdicts: Sequence[str]) -> str:
    """What will be written, to be read before it is."""
    collection, texts = survey.collection, survey.texts
    lines = [f"\n{texts.title}", f"  {respondents:,} people. {certainty(collection.epsilon)}"]
    for number, question in enumerate(collection.questions, 1):
        domain = question.domain
        listed = domain.listed if domain.is_listed else texts.candidates.get(question.name, ())
        lines.append(f"  {number}. {texts.ask(question.name)} ({question.name}, {domain.words()})")
        lines += [f"       {answer}" for answer in listed]
    if any(collection.asked(question.name).sampled for question in collection.questions):
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
    kinds = survey_kinds()
    chosen = _one_of("kind", list(kinds))
    kind = kinds[_asked(f"Kind of answer ({', '.join(kinds)})", next(iter(kinds)), chosen)]
    form, known = _form(kind)
    while True:
        keys = {key: _key(key, about) for key, about in form.keys.items() if _wanted(about)}
        given = {key: value for key, value in keys.items() if value is not None}
        found = {"name": name, "ask": ask, "kind": kind.name, **given, **known}
        try:
            kind.from_table(found)
            return found
        except ValueError as error:
            _refuse(error)


def _form(kind: Kind) -> tuple[type[Domain], Mapping[str, Any]]:
    """Which of the forms of a kind is meant, and the keys that say so; most kinds have one."""
    pairs = [(form, *one) for form in kind.surveyed for one in form.purposes.items()]
    forms = {word: (form, purpose.keys) for form, word, purpose in pairs}
    if len(forms) == 1:
        return next(iter(forms.values()))
    for _, word, purpose in pairs:
        print(f"  {word}: {purpose.about}")
    words = f"What do you want to know ({', '.join(forms)})"
    return forms[_asked(words, None, _one_of("the answer", list(forms)))]


def _wanted(key: Key) -> bool:
    """Whether it is asked for; the file may have more."""
    return bool(key.prompt) or key.needed


def _key(name: str, key: Key) -> Any:
    """The value of one key of a question."""
    if key.about:
        print(key.about)
    words = key.prompt or name
    return _list(words, key) if key.lines else _asked(words, None, _reader(key))


def _reader(key: Key) -> Callable[[str], Any]:
    """Reads a typed line as a survey file writes it, if the file may say so."""

    def read(text: str) -> Any:
        value = key.parse(text)
        if value is not None:
            key.read(value)
        return value

    return read


def _list(words: str, key: Key) -> list[str]:
    """Texts that differ when tidied, one per line; a list that is pasted has several lines."""
    print(f"{words}, one per line. An empty line ends the list.")
    found: dict[str, str] = {}
    while True:
        text = input(f"  {len(found) + 1}: ")
        try:
            if not text.strip():
                key.read([*found.values()])
                return [*found.values()]
            for line in filter(None, map(str.strip, text.splitlines())):
                entry = key.parse(line)
                if tidy(line, key.fold) in found:
                    raise InvalidArgument("an answer", line, "listed only once")
                found[tidy(line, key.fold)] = entry
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
    return _one_of("the answer", ("yes", "no"))(text) == "yes"


def _one_of(name: str, words: Sequence[str]) -> Callable[[str], str]:
    """Reads one of some words, or the beginning of only one."""

    def read(text: str) -> str:
        typed = text.lower()
        fitting = [typed] if typed in words else [w for w in words if typed and w.startswith(typed)]
        if len(fitting) != 1:
            raise InvalidArgument(name, text, f"one of {', '.join(words)}")
        return fitting[0]

    return read


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
