"""What do people earn, and how long do they sleep? The same people asked in each of three ways.

    python examples/incomes.py --out out/incomes

Simulated people answer for a mean, for a distribution, and for both (the key ``wants`` of a survey
file). Writes a table of the intervals beside the truth, and the charts of the incomes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import deniable as dn
from deniable.arrays import Floats
from deniable.collection.survey import survey_of
from deniable.views import save
from deniable.views.tables import rich_table

QUESTIONS = {
    "sleep": {"ask": "How many hours did you sleep?", "lo": 0, "hi": 24, "step": 0.5},
    "income": {"ask": "What do you earn in a month?", "lo": 0, "hi": 20_000},
}
WANTS = ("mean", "distribution", "both")


def invent(people: int, rng: np.random.Generator) -> dict[str, Floats]:
    """What everybody would say: some have no income, and a few earn more than the survey counts."""
    income = rng.lognormal(8, 0.6, people).round() * (rng.random(people) > 0.06)
    sleep = np.round(2 * np.clip(rng.normal(7, 1.3, people), 0, 24)) / 2
    return {"sleep": sleep, "income": income}


def mechanism(name: str, wants: str, epsilon: float, people: int) -> Any:
    """What a survey would choose for a question."""
    asked = {"name": name, "kind": "number", "wants": wants, **QUESTIONS[name]}
    survey = {"title": "Numbers", "epsilon": epsilon, "respondents": people, "questions": [asked]}
    return survey_of(survey).collection.asked(name).mechanism


def rows(name: str, wants: str, found: Any, truth: Floats) -> Iterator[dict[str, Any]]:
    """The mean, the median and a share, each with its interval and the truth."""
    counted = np.clip(truth, found.lo, found.hi)
    middle = float(np.median(counted))
    told = [(found.statistic("mean"), counted.mean())]
    if found.distribution is not None:
        told += [(found.median, middle), (found.cdf(middle), (counted <= middle).mean())]
    for one, true in told:
        low, high = one.interval
        yield {
            "question": name,
            "wants": wants,
            "mechanism": found.source.partition(",")[0],
            "statistic": one.name,
            "truth": float(true),
            "estimate": one.value,
            "half of the interval": (high - low) / 2,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/incomes"))
    parser.add_argument("--people", type=int, default=20_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    table: list[dict[str, Any]] = []
    for name, truth in invent(options.people, rng).items():
        for wants in WANTS:
            m = mechanism(name, wants, options.epsilon, options.people)
            found: dn.Numbers = m.tally(m.privatize(truth, rng)).estimate()
            table += rows(name, wants, found, truth)
            for kind in found.views:
                spec = found.chart(kind, title=QUESTIONS[name]["ask"])
                save(spec, options.out / f"{name}-{wants}-{kind}.png")
    title = f"{options.people:,} people, epsilon {options.epsilon:g}, 95 % intervals"
    Console(width=110).print(rich_table(table, title))


if __name__ == "__main__":
    main()
