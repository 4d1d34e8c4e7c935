"""The file that a statistician writes (TOML), and the collection that follows from it."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from deniable.canonical import canonical
from deniable.collection.manifest import Collection, Report
from deniable.collection.questions import Question, check_name
from deniable.collection.recommend import AUTO, Requirements
from deniable.collection.wording import LANGUAGE, Language, Texts, Wording
from deniable.core.domain import OPTIONAL, Kind, survey_kinds
from deniable.core.mechanism import Mechanism
from deniable.errors import CorruptData, InvalidArgument, is_number, require_int
from deniable.mechanisms.joint import Joint
from deniable.privacy import check_epsilon, split
from deniable.texts import require_text

#: Respondents that mechanisms are chosen for, unless the file says otherwise.
RESPONDENTS = 10_000
#: Every question with a part of epsilon, or one that is drawn with all of it.
DIVIDES = ("split", "sampled")
#: The name of the report of a survey whose questions are drawn.
DRAWN = "all"
#: Keys that people read, and all keys: of a survey, and of a question of any kind.
_WORDING = {"title", "about", "language", "texts"}
_SURVEY = _WORDING | {"epsilon", "divide", "respondents", "rounds", "changes", "questions"}
_QUESTION = {"name", "ask", "kind", OPTIONAL, "mechanism", "weight", "epsilon_1", "design"}


@dataclass(frozen=True)
class Survey:
    """What is asked (the collection), in which words, and the file without its words."""

    collection: Collection
    texts: Texts
    #: Canonical JSON of all that the collection follows from; None if a manifest was read.
    skeleton: bytes | None = None

    def worded(self, kept: Collection) -> Texts:
        """The words of this survey for a collection that was designed from the same skeleton."""
        return replace(self.texts, collection=kept.digest).check(kept)


class SurveyFile(Survey):
    """A survey that is designed when somebody first asks for its collection.

    A store that has a collection of the same skeleton keeps that one: then nothing is designed.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        _check_keys("survey", data, _SURVEY, {"title", "epsilon", "questions"})
        require_text("title", data["title"])
        _listed(data["questions"])
        vars(self).update(_data=data, skeleton=skeleton_of(data))

    @cached_property
    def collection(self) -> Collection:
        return _designed(vars(self)["_data"])

    @cached_property
    def texts(self) -> Texts:
        return self.worded(self.collection)

    def worded(self, kept: Collection) -> Texts:
        return _texts(vars(self)["_data"], kept)


def read_survey(path: str | Path) -> Survey:
    """The survey of a TOML file, or of a published manifest (JSON)."""
    data = read_source(path)
    if isinstance(data, bytes):
        collection = Collection.from_manifest(data)
        return Survey(collection, Texts.plain(collection))
    return SurveyFile(data)


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


def survey_of(data: Mapping[str, Any]) -> Survey:
    """The survey that a file describes, designed at once: whatever is wrong with it is refused."""
    survey = SurveyFile(data)
    return Survey(survey.collection, survey.texts, survey.skeleton)


def _designed(data: Mapping[str, Any]) -> Collection:
    """The collection of a survey: the budget divided, the mechanisms chosen."""
    shared, listed = _shared(data), _listed(data["questions"])
    epsilons = _divided(data["epsilon"], data.get("divide", "split"), listed)
    mechanisms = {one["name"]: _mechanism(one, epsilons[one["name"]], shared) for one in listed}
    questions = tuple(Question(name, m.domain) for name, m in mechanisms.items())
    reports = _reports(mechanisms, data.get("divide", "split"), shared["rounds"])
    epsilon = float(data["epsilon"])
    return Collection(questions, reports, epsilon, shared["rounds"], shared["changes"])


def mechanism_of(
    data: Mapping[str, Any], name: str, keys: Mapping[str, Any] | None = None, **changed: Any
) -> Mechanism:
    """The mechanism of one question, if ``keys`` of it or other things of the survey changed."""
    data = {**data, **changed}
    listed = _listed(data["questions"])
    epsilons = _divided(data["epsilon"], data.get("divide", "split"), listed)
    one = next(question for question in listed if question["name"] == name)
    return _mechanism({**one, **(keys or {})}, epsilons[name], _shared(data))


def skeleton_of(data: Mapping[str, Any]) -> bytes:
    """The file without what people read: while it is the same, so is the collection."""
    kept = {key: value for key, value in data.items() if key not in _WORDING}
    return canonical({**kept, "questions": [_bare(one) for one in data["questions"]]})


def _bare(question: Mapping[str, Any]) -> dict[str, Any]:
    keys = survey_kinds()[question["kind"]].keys
    wording = {"ask", *(name for name, key in keys.items() if key.wording)}
    return {key: value for key, value in question.items() if key not in wording}


# ---- the channel


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
        kind = _kind(place, one)
        _check_keys(place, one, _QUESTION | set(kind.keys), {"name", "ask", "kind"})
        check_name(one["name"], f"{place}.name")
        require_text(f"{one['name']}: ask", one["ask"])
        try:
            kind.form_of(one)
        except InvalidArgument as refused:
            raise refused.at(place) from None
    names = [one["name"] for one in questions]
    if len(set(names)) != len(names):
        raise InvalidArgument("questions", names, "questions with different names")
    return questions


def _kind(place: str, question: Any) -> Kind:
    known = survey_kinds()
    kind = question.get("kind") if isinstance(question, Mapping) else None
    if not isinstance(kind, str) or kind not in known:
        raise InvalidArgument(f"{place}.kind", kind, f"one of {', '.join(known)}")
    return known[kind]


def _divided(epsilon: Any, divide: Any, listed: list[Mapping[str, Any]]) -> dict[str, float]:
    """The budget of each question: parts in proportion to the weights, or the whole."""
    whole = check_epsilon(epsilon)
    if divide not in DIVIDES:
        raise InvalidArgument("divide", divide, f"one of {', '.join(DIVIDES)}")
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


def _mechanism(one: Mapping[str, Any], epsilon: float, shared: Mapping[str, int]) -> Mechanism:
    try:
        kind = survey_kinds()[one["kind"]]
        domain, tasks = kind.from_table(one), kind.wanted(one)
        domain.require_publishable()
        design = _design(one.get("design", {}))
        first, wanted = one.get("epsilon_1"), one.get("mechanism", AUTO)
        if wanted != AUTO and not kind.says_what_is_wanted(one):
            tasks = ()  # whatever the mechanism is for
        required = Requirements(
            domain, epsilon, epsilon_1=first, design=design, tasks=tasks, **shared
        )
        if wanted == AUTO and design:
            raise InvalidArgument("design", design, "left out where the mechanism is chosen")
        return required.choose() if wanted == AUTO else required.build(wanted)
    except InvalidArgument as refused:
        raise refused.at(f"{one['name']}: {refused.name}") from None


def _design(design: Any) -> dict[str, int]:
    if not isinstance(design, Mapping) or not all(type(v) is int for v in design.values()):
        raise InvalidArgument("design", design, "a table of integers")
    return dict(design)


def _reports(mechanisms: Mapping[str, Mechanism], divide: str, rounds: int) -> tuple[Report, ...]:
    """A report for each question, or one in which a question is drawn."""
    if divide == "split" or len(mechanisms) == 1:
        return tuple(Report(name, (name,), m) for name, m in mechanisms.items())
    if rounds > 1:
        raise InvalidArgument("divide", divide, "split if there is more than one round")
    if DRAWN in mechanisms:
        raise InvalidArgument("name", DRAWN, "another: it names the report of drawn questions")
    return (Report(DRAWN, tuple(mechanisms), Joint.of_questions(mechanisms)),)


# ---- the wordings


def _texts(data: Mapping[str, Any], collection: Collection) -> Texts:
    """The survey's own words in its language, and what ``[texts.TAG.QUESTION]`` says."""
    listed = _listed(data["questions"])
    own = data.get("language", LANGUAGE)
    if not isinstance(own, str):
        raise InvalidArgument("language", own, 'a language tag, such as "en"')
    given = data.get("texts", {})
    if not isinstance(given, Mapping):
        raise InvalidArgument("texts", given, "tables [texts.LANGUAGE.QUESTION]")
    questions = {one["name"]: Wording(one["ask"], unit=one.get("unit", "")) for one in listed}
    first = Language(data["title"], data.get("about", ""), questions)
    languages = {own: _language(own, given.get(own, {}), first)}
    for tag, table in given.items():
        if tag != own:
            languages[tag] = _language(tag, table, Language())
    candidates = {one["name"]: tuple(one["candidates"]) for one in listed if one.get("candidates")}
    return Texts(collection.digest, languages, candidates).check(collection)


def _language(tag: str, table: Any, known: Language) -> Language:
    """What is known of a language, and what a table of texts adds or corrects."""
    if not isinstance(table, Mapping):
        raise InvalidArgument(f"texts.{tag}", table, "a table")
    questions, place = dict(known.questions), f"texts.{tag}"
    plain = {name: table[name] for name in ("title", "about") if isinstance(table.get(name), str)}
    for name, words in table.items():
        if name in plain:
            continue
        _check_keys(f"{place}.{name}", words, {"ask", "answers", "unit"}, set())
        if not isinstance(words.get("answers", []), list):
            raise InvalidArgument(f"{place}.{name}", words["answers"], "a list of texts")
        before = questions.get(name, Wording())
        answers = tuple(words.get("answers", before.answers))
        unit = words.get("unit", before.unit)
        questions[name] = Wording(words.get("ask", before.ask), answers, unit)
    title, about = plain.get("title", known.title), plain.get("about", known.about)
    return Language(title, about, questions)


def _check_keys(name: str, data: Any, allowed: set[str], needed: set[str]) -> None:
    if not isinstance(data, Mapping):
        raise InvalidArgument(name, data, "a table")
    if unknown := set(data) - allowed:
        raise InvalidArgument(name, sorted(unknown), f"made of {', '.join(sorted(allowed))}")
    if missing := needed - set(data):
        raise InvalidArgument(name, sorted(data), f"complete: {', '.join(sorted(missing))} missing")
