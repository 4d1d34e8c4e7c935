"""Small collections, and submissions to them that anybody can predict."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from deniable.collection.batches import Batch, write_batch
from deniable.collection.manifest import Collection, Field
from deniable.collection.reporting import coin_words, respond
from deniable.collection.survey import Survey, survey_of
from deniable.collection.wire import Submission
from deniable.mechanisms import BRR, GRR
from deniable.randomness import WORD_BYTES, ByteCoins, draw_key
from deniable.service.intake import Intake
from places import VECTORS

#: Cases of the wire format (`tests/vectors/v2/wire`), by name.
WIRE_CASES: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text()) for path in sorted((VECTORS / "wire").glob("*.json"))
}
QUESTIONS = [
    {
        "name": "way",
        "ask": "How?",
        "kind": "choice",
        "answers": ["car", "train", "none"],
        "mechanism": "grr",
    },
    {"name": "ever", "ask": "Ever?", "kind": "yes/no", "mechanism": "brr"},
    {
        "name": "hours",
        "ask": "How long?",
        "kind": "number",
        "edges": [5, 6, 7, 8],
        "mechanism": "grr",
    },
    {
        "name": "pets",
        "ask": "Which?",
        "kind": "choice",
        "answers": [f"pet {i}" for i in range(20)],
        "mechanism": "oue",
    },
]


def surveyed(divide: str = "split", rounds: int = 1, **words: Any) -> Survey:
    """Four questions with short and long reports, as a survey file has them."""
    data = {"title": "Toys", "epsilon": 4.0, "divide": divide, "questions": QUESTIONS, **words}
    return survey_of({**data, "rounds": rounds, "changes": 0} if rounds > 1 else data)


def survey(divide: str = "split", rounds: int = 1) -> Collection:
    """The same without its words."""
    return surveyed(divide, rounds).collection


def by_region() -> Collection:
    """Two questions with two public fields: six strata."""
    fields = Field("region", ('the "north"', "south")), Field("age", ("young", "grown", "old"))
    mechanisms = {"way": GRR(["car", "train", "none"], 1.0), "ever": BRR(["yes", "no"], 1.0)}
    return Collection.split(mechanisms, 2.0, fields=fields)


def marks(size: int) -> Collection:
    """One question whose report is any of 0..size-1: a mark that no two submissions share."""
    answers = [f"m{mark}" for mark in range(size)]
    asked = {"name": "mark", "ask": "Which?", "kind": "choice", "answers": answers}
    question = {**asked, "mechanism": "grr"}
    return survey_of({"title": "Marks", "epsilon": 1.0, "questions": [question]}).collection


def one_question(k: int, mechanism: str = "grr", stem: str = "a") -> Collection:
    """A choice among k answers."""
    answers = [f"{stem}{i}" for i in range(k)]
    asked = {"name": "q", "ask": "?", "kind": "choice", "answers": answers}
    data = {"title": "One", "epsilon": 1.0, "questions": [asked | {"mechanism": mechanism}]}
    return survey_of(data).collection


def submission(
    collection: Collection,
    rng: np.random.Generator,
    round_: int = 1,
    fields: Mapping[str, str] | None = None,
) -> Submission:
    """A submission of a respondent with random answers."""
    values = {q.name: _any(q.domain.sample(), rng) for q in collection.questions}
    coins = ByteCoins(rng.bytes(coin_words(collection) * WORD_BYTES))
    rows = respond(collection, values, coins, {})
    return Submission(collection.digest, rng.bytes(16).hex(), rows, round_, fields or {})


def _any(values: Sequence[Any], rng: np.random.Generator) -> Any:
    return values[int(rng.integers(len(values)))]


def mark_submission(collection: Collection, mark: int, name: str) -> Submission:
    """The submission that carries a mark."""
    length = collection.reports[0].mechanism.dtype.itemsize
    return Submission(collection.digest, name, {"mark": mark.to_bytes(length, "little")})


def packed(collection: Collection, sent: Submission) -> tuple[bytes, bytes]:
    """What is kept of a submission: its id and its bytes."""
    return Intake(collection).single(sent.to_json())


def batch(
    collection: Collection, n: int, seed: int = 1, fields: Mapping[str, str] | None = None
) -> Batch:
    """A batch of n respondents with random answers."""
    rng, columns = np.random.default_rng(seed), {}
    for report in collection.reports:
        domain = report.mechanism.domain
        answers = np.array(list(domain.sample()), dtype=domain.dtype)
        values = answers[rng.integers(0, len(answers), n)]
        columns[report.name] = report.mechanism.randomise(values, draw_key(rng))
    return write_batch(collection, columns, fields=fields)
