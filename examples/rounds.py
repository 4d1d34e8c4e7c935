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

import deniable as dn

ANSWERS = ("car", "train", "bus", "bicycle", "on foot")
START = (0.52, 0.2, 0.14, 0.09, 0.05)
ROUNDS = 30
#: From this round on a strike keeps half of the trains in: their people take the bicycle instead.
STRIKE = 19
EPSILON_INF, EPSILON_1 = 3.0, 1.5
#: Other panels, to see how often intervals hold: how many, and of how many people.
PANELS, PEOPLE = 20, 1_000
Answers = NDArray[np.int64]
Shares = NDArray[np.float64]


def months(people: int, rng: np.random.Generator) -> Iterator[Answers]:
    """The true answers of everyone, round by round: a slow drift, and a strike."""
    answers = rng.choice(len(ANSWERS), people, p=START)
    stranded = rng.random(people) < 0.5
    for month in range(1, ROUNDS + 1):
        drift = (answers == 0) & (rng.random(people) < 0.015)
        answers = np.where(drift, rng.choice([1, 3], people), answers)
        yield np.where((answers == 1) & stranded & (month >= STRIKE), 3, answers)


def ask(panel: dn.Panel, rng: np.random.Generator) -> list[tuple[Answers, dn.Reports]]:
    """What the people of a panel answer in each round, and what they report."""
    names = np.array(ANSWERS)
    return [(answers, panel.privatize(names[answers])) for answers in months(panel.n, rng)]


def collect(
    asked: list[tuple[Answers, dn.Reports]], who: slice = slice(None)
) -> tuple[dn.Rounds, Shares]:
    """The rounds of some people as a collector has them, and the truth."""
    rounds, truth = dn.Rounds(asked[0][1].mechanism), []
    for month, (answers, reports) in enumerate(asked, 1):
        rounds.add(month, reports[who])
        truth.append(np.bincount(answers[who], minlength=len(ANSWERS)) / len(answers[who]))
    return rounds, np.array(truth)


def held(series: dn.Series, truth: Shares) -> NDArray[np.bool_]:
    """Rounds x values: whether the interval holds the truth."""
    low, high = np.moveaxis(series.intervals, -1, 0)
    return np.asarray((low <= truth) & (truth <= high))


def held_by_panels(count: int, people: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """`held` for as many other panels: one large panel, cut into small ones."""
    asked = ask(dn.Panel(mechanism(), count * people, rng), rng)
    found = []
    for first in range(0, count * people, people):
        rounds, truth = collect(asked, slice(first, first + people))
        # The fastest method: score intervals are those of its frequencies, whatever the method.
        found.append(held(rounds.estimate("unbiased", errors="score"), truth))
    return np.array(found)


def mechanism() -> dn.LOSUE:
    return dn.LOSUE(ANSWERS, EPSILON_INF, EPSILON_1)


def coverage(here: NDArray[np.bool_], others: NDArray[np.bool_]) -> str:
    """How often intervals hold, in words."""
    each = others.mean(axis=(1, 2))
    return (
        f"{here.mean():.1%} of the {here.size} intervals of this panel hold the truth, and "
        f"{each.mean():.1%} of those of {len(each)} other panels of {PEOPLE:,} people "
        f"(from {each.min():.1%} to {each.max():.1%}); 95 % should on average. The rounds of one "
        "panel share the noise of its memos, so they hold or miss together."
    )


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
    rng = np.random.default_rng(options.seed)
    panel = dn.Panel(mechanism(), options.people, rng)
    rounds, truth = collect(ask(panel, rng))
    series = rounds.estimate()
    changes = rounds.changes(false_alarm=0.05)
    console = Console()
    console.print(series.table(width=console.width))
    console.print(changes)
    console.print(
        "Changes are looked for as if the respondents were fresh: that is safe for a panel, too, "
        "whose memos only make false alarms rarer."
    )
    console.print(coverage(held(series, truth), held_by_panels(PANELS, PEOPLE, rng)))
    console.print(f"Of {panel.n:,} people {spent(panel)}.")
    without = panel.mechanism.once.after(reports=ROUNDS)
    console.print(f"Without a memo everyone would have spent {without:.3g}.")
    path = series.save(options.out / "rounds.png", truth=truth, changes=changes)
    console.print(f"chart: {path}", soft_wrap=True)


if __name__ == "__main__":
    main()
