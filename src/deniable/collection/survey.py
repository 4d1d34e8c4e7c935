"""The file that a statistician writes (TOML), and the collection that follows from it."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deniable.collection.choosing import AUTO, Terms
from deniable.collection.manifest import Collection
from deniable.collection.questions import (
    Question,
    check_candidates,
    check_edges,
    check_name,
    domain_of,
    require_text,
)
from deniable.domain import Domain
from deniable.errors import CorruptData, InvalidArgument, is_number, require_int
from deniable.privacy import check_epsilon, split
from deniable.texts import tidy

#: Respondents that mechanisms are chosen for, unless the file says otherwise.
RESPONDENTS = 10_000
_SURVEY = {"title", "about", "epsilon", "divide", "respondents", "rounds", "changes", "questions"}
_QUESTION = {"name", "ask", "kind", "mechanism", "weight", "epsilon_1", "design"}
_OF_KIND = {
    "choice": {"answers", "other"},
    "yes/no": set[str](),
    "number": {"edges"},
    "text": {"candidates"},
}


def read_survey(path: str | Path) -> Collection:
    """The collection of a TOML file, or of a published manifest (JSON)."""
    data = read_source(path)
    return Collection.from_manifest(data) if isinstance(data, bytes) else survey_of(data)


def read_source(path: str | Path) -> dict[str, Any] | bytes:
    """What a survey (TOML) says, or the bytes of a published manifest (JSON)."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InvalidArgument("survey", str(path), f"a file that can be read ({error})") from error
    if content.lstrip()[:1] == b"{":
        return content
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except ValueError as error:  # also numbers of thousands of digits
        raise CorruptData(f"{path} is not TOML: {error}") from error


def survey_of(data: Mapping[str, Any]) -> Collection:
    """The collection that a survey describes: the budget divided, the mechanisms chosen."""
    _check_keys("survey", data, _SURVEY, {"title", "epsilon", "questions"})
    shared = _shared(data)
    divide = data.get("divide", "split")
    listed = _listed(data["questions"])
    epsilons = _divided(data["epsilon"], divide, listed)
    questions = tuple(_question(one, epsilons[one["name"]], shared) for one in listed)
    about, epsilon = data.get("about", ""), float(data["epsilon"])
    rounds, changes = shared["rounds"], shared["changes"]
    return Collection(data["title"], questions, epsilon, divide, rounds, changes, about)


def question_of(data: Mapping[str, Any], name: str, **changed: Any) -> Question:
    """One question of a survey, as it would be asked if other things of the survey changed."""
    data = {**data, **changed}
    listed = _listed(data["questions"])
    epsilons = _divided(data["epsilon"], data.get("divide", "split"), listed)
    one = next(question for question in listed if question["name"] == name)
    return _question(one, epsilons[name], _shared(data))


def _shared(data: Mapping[str, Any]) -> dict[str, int]:
    """Who is expected, and how often: the same for all questions."""
    rounds = require_int("rounds", data.get("rounds", 1), 1, 65_535)
    if rounds == 1 and "changes" in data:
        raise InvalidArgument("changes", data["changes"], "left out if there is one round")
    if rounds > 1 and "changes" not in data:
        allowed = "given if there are rounds: how many changes of an answer are reported at most"
        raise InvalidArgument("changes", None, allowed)
    return {
        "respondents": require_int("respondents", data.get("respondents", RESPONDENTS), 1, 1 << 40),
        "rounds": rounds,
        "changes": require_int("changes", data.get("changes", 0), 0, rounds - 1),
    }


def _listed(questions: Any) -> list[Mapping[str, Any]]:
    """The tables of the questions, with the right keys and different names."""
    if not isinstance(questions, list) or not questions:
        raise InvalidArgument("questions", questions, "at least one table [[questions]]")
    for number, one in enumerate(questions, 1):
        place = f"questions[{number}]"
        kind = one.get("kind") if isinstance(one, Mapping) else None
        if not isinstance(kind, str) or kind not in _OF_KIND:
            raise InvalidArgument(f"{place}.kind", kind, f"one of {', '.join(_OF_KIND)}")
        needed = {"name", "ask", "kind", *(_OF_KIND[kind] - {"other"})}
        _check_keys(place, one, _QUESTION | _OF_KIND[kind], needed)
        check_name(one["name"], f"{place}.name")
    names = [one["name"] for one in questions]
    if len(set(names)) != len(names):
        raise InvalidArgument("questions", names, "questions with different names")
    return questions


def _divided(epsilon: Any, divide: Any, listed: list[Mapping[str, Any]]) -> dict[str, float]:
    """The budget of each question: parts in proportion to the weights, or the whole."""
    whole = check_epsilon(epsilon)
    if divide == "split":
        weights = {one["name"]: one.get("weight", 1) for one in listed}
        for name, weight in weights.items():
            if not is_number(weight) or not 0 < weight < math.inf:
                raise InvalidArgument(f"{name}: weight", weight, "a number above 0")
        return split(whole, weights)
    for one in listed:
        if "weight" in one:
            raise InvalidArgument("weight", one["weight"], "left out unless the budget is split")
    return {one["name"]: whole for one in listed}


def _question(one: Mapping[str, Any], epsilon: float, shared: Mapping[str, int]) -> Question:
    name = one["name"]
    try:
        edges = check_edges(one["edges"]) if "edges" in one else ()
        candidates = check_candidates(one["candidates"]) if "candidates" in one else ()
        domain = _domain(one, edges)
        design = _design(one.get("design", {}))
        terms = Terms(domain, epsilon, epsilon_1=one.get("epsilon_1"), design=design, **shared)
        wanted = one.get("mechanism", AUTO)
        if wanted == AUTO and design:
            raise InvalidArgument("design", design, "left out where the mechanism is chosen")
        mechanism = terms.choose() if wanted == AUTO else terms.build(wanted)
        return Question(name, one["ask"], one["kind"], mechanism, edges, candidates)
    except InvalidArgument as refused:
        raise InvalidArgument(f"{name}: {refused.name}", refused.value, refused.allowed) from None


def _domain(one: Mapping[str, Any], edges: tuple[float, ...]) -> Domain:
    if one["kind"] != "choice":
        return domain_of(one["kind"], edges)
    answers = one["answers"]
    texts = isinstance(answers, list) and all(isinstance(answer, str) for answer in answers)
    if not texts or len(set(answers)) < 2:
        raise InvalidArgument("answers", answers, "a list of at least two different texts")
    check_answers(answers)
    return Domain(answers, one.get("other"))


def check_answers(answers: Sequence[str]) -> None:
    """Refuse what respondents could not read, or could not tell apart."""
    seen = set()
    for answer in answers:
        require_text("an answer", answer)
        if answer != answer.strip():
            raise InvalidArgument("an answer", answer, "text without blanks around it")
        if (looks := tidy(answer, "none")) in seen:
            raise InvalidArgument("an answer", answer, "listed only once")
        seen.add(looks)


def _design(design: Any) -> dict[str, int]:
    if not isinstance(design, Mapping) or not all(type(v) is int for v in design.values()):
        raise InvalidArgument("design", design, "a table of integers")
    return dict(design)


def _check_keys(name: str, data: Any, allowed: set[str], needed: set[str]) -> None:
    if not isinstance(data, Mapping):
        raise InvalidArgument(name, data, "a table")
    if unknown := set(data) - allowed:
        raise InvalidArgument(name, sorted(unknown), f"made of {', '.join(sorted(allowed))}")
    if missing := needed - set(data):
        raise InvalidArgument(name, sorted(data), f"complete: {', '.join(sorted(missing))} missing")
