"""Thirty rounds of one panel: everyone remembers, some change their answer, and one day many do.

    python examples/rounds.py --out out/rounds

Simulated people answer "How did you come to work?" every month. Their devices keep what they drew
once (LOSUE), so thirty reports of one answer cost epsilon_inf and no more. The estimates of every
round stand beside the truth of the simulation, which nobody else knows.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

import deniable as dn

ANSWERS = ("car", "train", "bus", "bicycle", "on foot")
START = (0.52, 0.2, 0.14, 0.09, 0.05)
ROUNDS = 30
#: In this round a strike keeps the trains in, and many take the bicycle instead.
STRIKE = 18
EPSILON_INF, EPSILON_1 = 3.0, 1.5
Answers = NDArray[np.int64]


def months(people: int, rng: np.random.Generator) -> Iterator[Answers]:
    """The true answers of everyone, round by round: a slow drift, and a strike."""
    answers = rng.choice(len(ANSWERS), people, p=START)
    for month in range(ROUNDS):
        drift = (answers == 0) & (rng.random(people) < 0.015)
        answers = np.where(drift, rng.choice([1, 3], people), answers)
        strike = (answers == 1) & (rng.random(people) < 0.5) & (month >= STRIKE)
        yield np.where(strike, 3, answers)


def collect(
    people: int, rng: np.random.Generator
) -> tuple[dn.Rounds, dn.Panel, NDArray[np.float64]]:
    """The rounds as a collector has them, the panel, and the truth."""
    mechanism = dn.LOSUE(ANSWERS, EPSILON_INF, EPSILON_1)
    panel, rounds = dn.Panel(mechanism, people, rng), dn.Rounds(mechanism)
    truth = []
    steps = track(months(people, rng), "asking", total=ROUNDS, transient=True)
    for month, answers in enumerate(steps, 1):
        rounds.add(month, panel.privatize([ANSWERS[i] for i in answers]))
        truth.append(np.bincount(answers, minlength=len(ANSWERS)) / people)
    return rounds, panel, np.array(truth)


def spent(panel: dn.Panel) -> str:
    """What the panel has paid, in words."""
    used = panel.keys_used
    guarantee = panel.mechanism.permanent_guarantee
    parts = [
        f"{np.mean(used == count):.1%} gave {count} answer{'s' * (count > 1)} and may have spent "
        f"epsilon {guarantee.after(changes=count - 1):.3g}"
        for count in np.unique(used).tolist()
    ]
    return "; ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/rounds"))
    parser.add_argument("--people", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rounds, panel, truth = collect(options.people, np.random.default_rng(options.seed))
    series = rounds.estimate(simultaneous=False)
    changes = rounds.changes(false_alarm=0.05)
    console = Console()
    console.print(series)
    console.print(changes)
    low, high = np.moveaxis(series.intervals, -1, 0)
    held = np.mean((low <= truth) & (truth <= high))
    console.print(f"{held:.1%} of {truth.size} intervals hold the truth (95 % should).")
    console.print(f"Of {panel.n:,} people {spent(panel)}.")
    without = panel.mechanism.once.after(reports=ROUNDS)
    console.print(f"Without a memo everyone would have spent {without:.3g}.")
    path = series.save(options.out / "rounds.png", truth=truth, changes=changes)
    console.print(f"chart: {path}", soft_wrap=True)


if __name__ == "__main__":
    main()
