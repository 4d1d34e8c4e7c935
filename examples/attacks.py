"""What an observer who knows who sent what can do: infer an answer, and follow a respondent.

    python examples/attacks.py --out out/attacks

Both attacks are the most powerful there are. "infer": two answers are equally likely; how often is
the guess right? The bound is e^eps / (1 + e^eps) with epsilon_inf. "follow": how often does a
respondent's later reports resemble the earlier ones more than those of another respondent?
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

import deniable as dn
from deniable.audit.inference.histories import answer_loglikelihoods, link_loglikelihoods
from deniable.extras import altair
from deniable.rounds.panel import Panel
from deniable.views import save
from deniable.views.charts import COLOURS, INK, SHAPES
from deniable.views.formats import Format
from deniable.views.tables import show

EPSILON_INF = 1.0
SIZE = 16
PEOPLE = 20_000
REPORTS = (1, 2, 5, 10, 30, 100, 300)
NAMES = ("lgrr", "lsue", "losue", "lolh", "dbitflippm")
BOUND = math.exp(EPSILON_INF) / (1 + math.exp(EPSILON_INF))


def infer(m: Any, memo: bool, rng: np.random.Generator) -> Iterator[tuple[int, float]]:
    """The part of right guesses after each number of reports."""
    truth = rng.integers(0, 2, PEOPLE)
    panel = Panel(m, PEOPLE, rng)
    rounds: list[dn.Reports] = []
    added = np.zeros((PEOPLE, m.domain.size))
    for count in range(1, REPORTS[-1] + 1):
        rounds.append(panel.privatize(truth) if memo else m.privatize(truth, rng))
        if not memo:
            added += answer_loglikelihoods(rounds[-1:])
        if count in REPORTS:
            scores = answer_loglikelihoods(rounds) if memo else added
            lead = scores[:, 1] - scores[:, 0]
            right = np.where(lead == 0, 0.5, (lead > 0) == truth)
            yield count, float(right.mean())


def follow(m: Any, rng: np.random.Generator) -> Iterator[tuple[int, float]]:
    """How often the right respondent has the higher score, after each number of reports."""
    n = PEOPLE // 10
    f = np.full(m.domain.size, 1 / m.domain.size)
    panel, values = Panel(m, n, rng), rng.integers(0, m.domain.size, n)
    rounds = [panel.privatize(values) for _ in range(2 * REPORTS[-1])]
    for count in REPORTS:
        earlier, later = rounds[:count], rounds[REPORTS[-1] :][:count]
        others = [dn.Reports(m, np.roll(part.data, 1, axis=0)) for part in later]
        same, other = (link_loglikelihoods(earlier, part, f) for part in (later, others))
        yield count, float(np.mean((same > other) + 0.5 * (same == other)))


def measure(name: str, seed: int) -> list[dict[str, Any]]:
    """All rows of one mechanism."""
    m = dn.mechanism(name, SIZE, EPSILON_INF)
    rng = np.random.default_rng(seed)
    runs = {
        "infer, with memo": infer(m, True, rng),
        "infer, no memo": infer(m, False, rng),
        "follow": follow(m, rng),
    }
    return [
        {"mechanism": type(m).__name__, "attack": attack, "reports": count, "success": success}
        for attack, steps in runs.items()
        for count, success in steps
    ]


def chart(rows: list[dict[str, Any]]) -> Any:
    """A panel an attack: success against reports."""
    alt = altair()
    names = list(dict.fromkeys(row["mechanism"] for row in rows))
    colours = alt.Scale(domain=names, range=list(COLOURS[: len(names)]))
    shapes = alt.Scale(domain=names, range=list(SHAPES[: len(names)]))
    panels = []
    for attack in dict.fromkeys(row["attack"] for row in rows):
        some = [row for row in rows if row["attack"] == attack]
        base = alt.Chart(alt.Data(values=some)).encode(
            x=alt.X(
                "reports:Q",
                title="reports a person",
                scale=alt.Scale(type="log", domain=[1, REPORTS[-1]], nice=False),
                axis=alt.Axis(values=[1, 3, 10, 30, 100, 300]),
            ),
            y=alt.Y("success:Q", title="success", scale=alt.Scale(domain=[0.5, 1])),
            color=alt.Color("mechanism:N", title=None, scale=colours),
            shape=alt.Shape("mechanism:N", title=None, scale=shapes),
        )
        layers = [base.mark_line(strokeWidth=2), base.mark_point(filled=True, size=60, opacity=1)]
        if attack == "infer, with memo":
            bound = alt.Chart(alt.Data(values=[{"bound": BOUND}]))
            layers.append(bound.mark_rule(color=INK, strokeDash=[5, 4]).encode(y="bound:Q"))
        panels.append(alt.layer(*layers).properties(width=230, height=240, title=attack))
    subtitle = "dashed: the most that epsilon_inf allows; 0.5 is a blind guess"
    heading = f"The most powerful attacks, epsilon_inf = {EPSILON_INF:g}, k = {SIZE}"
    title = alt.TitleParams(heading, subtitle=subtitle, anchor="start", fontSize=15, offset=12)
    return alt.hconcat(*panels).properties(title=title)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/attacks"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    steps = track(list(enumerate(NAMES)), "attacking", transient=True)
    rows = [row for seed, name in steps for row in measure(name, seed)]
    table: dict[Any, dict[str, Any]] = {}
    for row in rows:
        key = (row["attack"], row["mechanism"])
        table.setdefault(key, dict(zip(("attack", "mechanism"), key, strict=True)))
        table[key][str(row["reports"])] = round(row["success"], 3)
    show(list(table.values()), Format.table, f"success after so many reports; bound {BOUND:.3f}")
    (out / "attacks.json").write_text(json.dumps(rows, indent=1))
    print(save(chart(rows), out / "attacks.png"))


if __name__ == "__main__":
    main()
