"""Small collections, and submissions to them that anybody can predict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from deniable.collection.batches import Batch, write_batch
from deniable.collection.manifest import Collection
from deniable.collection.responding import coin_words, respond
from deniable.collection.survey import survey_of
from deniable.collection.wire import Submission
from deniable.randomness import WORD_BYTES, ByteCoins
from deniable.service.intake import Intake

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "vectors" / "v1" / "wire.json").read_text()
)
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


def survey(divide: str = "split", rounds: int = 1, title: str = "Toys") -> Collection:
    """Four questions with short and long reports."""
    data = {"title": title, "epsilon": 4.0, "divide": divide, "questions": QUESTIONS}
    return survey_of({**data, "rounds": rounds, "changes": 0} if rounds > 1 else data)


def marks(size: int) -> Collection:
    """One question whose report is any of 0..size-1: a mark that no two submissions share."""
    answers = [f"m{mark}" for mark in range(size)]
    asked = {"name": "mark", "ask": "Which?", "kind": "choice", "answers": answers}
    question = {**asked, "mechanism": "grr"}
    return survey_of({"title": "Marks", "epsilon": 1.0, "questions": [question]})


def one_question(k: int, mechanism: str = "grr") -> Collection:
    """A choice among k answers."""
    asked = {"name": "q", "ask": "?", "kind": "choice", "answers": [f"a{i}" for i in range(k)]}
    return survey_of(
        {"title": "One", "epsilon": 1.0, "questions": [asked | {"mechanism": mechanism}]}
    )


def submission(collection: Collection, rng: np.random.Generator, round_: int = 1) -> Submission:
    """A submission of a respondent with random answers."""
    sizes = [question.mechanism.domain.size for question in collection.questions]
    values = [int(rng.integers(size)) for size in sizes]
    coins = ByteCoins(rng.bytes(coin_words(collection) * WORD_BYTES))
    rows = respond(collection, values, coins, {})
    return Submission(collection.digest, rng.bytes(16).hex(), rows, round_)


def mark_submission(collection: Collection, mark: int, name: str) -> Submission:
    """The submission that carries a mark."""
    length = collection.questions[0].mechanism.dtype.itemsize
    return Submission(collection.digest, name, {"mark": mark.to_bytes(length, "little")})


def packed(collection: Collection, sent: Submission) -> tuple[bytes, bytes]:
    """What is kept of a submission: its id and its bytes."""
    return Intake(collection).single(sent.to_json())


def batch(collection: Collection, n: int, seed: int = 1) -> Batch:
    """A batch of n respondents."""
    rng = np.random.default_rng(seed)
    count = len(collection.questions)
    places = rng.integers(count, size=n) if collection.divide == "sampled" else None
    columns = {}
    for place, question in enumerate(collection.questions):
        size = n if places is None else int(np.sum(places == place))
        labels = np.array(question.mechanism.domain.labels or ["tea", "coffee"], dtype=object)
        values = labels[rng.integers(0, len(labels), size)]
        columns[question.name] = question.mechanism.privatize(values, rng=rng).data
    return write_batch(collection, columns, places)
