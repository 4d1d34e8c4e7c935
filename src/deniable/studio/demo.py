"""The demonstration: a survey on how people get to work, answered by simulated respondents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.estimation import Estimate
from deniable.mechanisms import Mechanism, mechanism

#: Each question with the shares of the simulated population.
QUESTIONS: dict[str, dict[str, float]] = {
    "How do you usually get to work?": {
        "car": 0.47,
        "train": 0.17,
        "bus": 0.12,
        "bicycle": 0.11,
        "on foot": 0.08,
        "other": 0.05,
    },
    "Have you ever ridden without a ticket?": {"yes": 0.23, "no": 0.77},
}


@dataclass(frozen=True)
class Answered:
    """One question of the survey after the collection."""

    question: str
    mechanism: Mechanism
    estimate: Estimate
    #: The shares among the simulated respondents, which a real collector never sees.
    truth: NDArray[np.float64]


def ask(question: str, respondents: int, epsilon: float) -> Answered:
    """Invent respondents, let them answer through secure coins, and estimate."""
    shares = QUESTIONS[question]
    labels = list(shares)
    invented = np.random.default_rng().choice(len(labels), respondents, p=list(shares.values()))
    channel = mechanism("brr" if len(labels) == 2 else "ss", labels, epsilon)
    reports = channel.privatize([labels[i] for i in invented])
    truth = np.bincount(invented, minlength=len(labels)) / respondents
    return Answered(question, channel, channel.estimate(reports), truth)
