"""The demonstration: a collector on this machine, and simulated people who answer over HTTP."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deniable.arrays import Floats
from deniable.collection.client import Client
from deniable.collection.example import to_toml
from deniable.errors import StoreUnavailable
from deniable.estimation import Estimate
from deniable.privacy import check_epsilon
from deniable.service.access import new_token
from deniable.service.store import open_store

#: Each question, and the shares of the simulated population.
QUESTIONS: list[tuple[dict[str, Any], dict[Any, float]]] = [
    (
        {
            "name": "way",
            "ask": "How do you usually get to work?",
            "kind": "choice",
            "answers": ["car", "train", "bus", "bicycle", "on foot", "other"],
        },
        {"car": 0.47, "train": 0.17, "bus": 0.12, "bicycle": 0.11, "on foot": 0.08, "other": 0.05},
    ),
    (
        {"name": "ticket", "ask": "Have you ever ridden without a ticket?", "kind": "yes/no"},
        {"yes": 0.23, "no": 0.77},
    ),
    (
        {"name": "minutes", "ask": "How many minutes does it take you?", "kind": "number",
         "edges": [15, 30, 45, 60]},
        {10: 0.24, 20: 0.31, 35: 0.22, 50: 0.13, 80: 0.10},
    ),
]  # fmt: skip
#: Respondents who answer at the same time.
AT_ONCE = 8
#: Answers that a respondent's thread sends before it reports progress.
SHARE = 50


@dataclass(frozen=True)
class Answered:
    """One question after the collection."""

    question: str
    estimate: Estimate
    #: The shares among the simulated respondents, which a real collector never sees.
    truth: Floats


@dataclass(frozen=True)
class Collector:
    """A collector that runs."""

    process: subprocess.Popen[str]
    store: Path
    #: The address, and the dashboard with a token.
    url: str
    dashboard: str


@contextmanager
def collector(folder: Path, epsilon: float, respondents: int, port: int = 0) -> Iterator[Collector]:
    """`deniable serve` with the sample survey; it is stopped at the end."""
    check_epsilon(epsilon)
    survey = {"title": "Getting to work", "epsilon": epsilon, "respondents": respondents}
    file = folder / "survey.toml"
    file.write_text(to_toml({**survey, "questions": [asked for asked, _ in QUESTIONS]}))
    command = [sys.executable, "-m", "deniable", "serve", str(file), "--port", str(port)]
    # Simulated people have no key.
    environment = {name: value for name, value in os.environ.items() if name != "DENIABLE_KEY"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield _started(process, file.with_suffix(".db"))
        finally:
            process.terminate()


def _started(process: subprocess.Popen[str], store: Path) -> Collector:
    """Read what the server prints until it is ready, and make a token for its dashboard."""
    assert process.stdout is not None
    said: dict[str, str] = {}
    for line in process.stdout:
        word, _, rest = line.strip().partition(" ")
        said[word] = rest.strip()
        if word == "store":
            url = said["questionnaire"].removesuffix("/answer")
            opened = open_store(str(store))
            token = new_token(opened, "demo")
            opened.close()
            return Collector(process, store, url, f"{url}/#token={token}")
    raise StoreUnavailable("the collector did not start, for the reason above")


def invent(respondents: int) -> dict[str, list[Any]]:
    """The answers of simulated people."""
    rng = np.random.default_rng()
    answers = {}
    for asked, shares in QUESTIONS:
        drawn = rng.choice(len(shares), respondents, p=list(shares.values()))
        answers[asked["name"]] = [list(shares)[i] for i in drawn]
    return answers


def answer_all(url: str, answers: dict[str, list[Any]]) -> Iterator[int]:
    """Everybody answers through a client of their own; yields how many just did."""
    people = [dict(zip(answers, row, strict=True)) for row in zip(*answers.values(), strict=True)]

    def some(start: int) -> int:
        group = people[start : start + SHARE]
        with Client(url) as client:
            for person in group:
                client.answer(person)
        return len(group)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(some, range(0, len(people), SHARE))


def results(store: Path, answers: dict[str, list[Any]]) -> Iterator[Answered]:
    """The estimates from the store, beside the truth."""
    opened = open_store(str(store))
    for words, _ in QUESTIONS:
        question = opened.collection.question(words["name"])
        asked = opened.collection.asked(question.name)
        indices = question.domain.encode(answers[question.name])
        truth = np.bincount(indices, minlength=question.domain.size) / len(indices)
        tally = asked.tally(opened.tally(asked.report.name, 1))
        yield Answered(words["ask"], tally.estimate(), truth)
    opened.close()
