"""Follow a changing share for a whole year, and pay only when it changes.

    python examples/thresh.py --out out/thresh

Simulated people hold 100 bits in every epoch; the mean of all jumps a few times. THRESH collects
when they vote for it. Beside it: a collection in every epoch with epsilon / T each, and one on a
calendar, with as many collections as THRESH may make. Writes tables (Markdown, JSON) and a chart.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from deniable.extras import altair
from deniable.mechanisms import BRR
from deniable.protocols.thresh import (
    Release,
    Thresh,
    bernoulli_counts,
    published_gaps,
    simulate,
    users_needed,
    yes_share,
)
from deniable.views import save
from deniable.views.charts import COLOURS, INK, TRUTH

Floats = NDArray[np.float64]
Row = dict[str, Any]
EPSILON, SAMPLES, MOST_CHANGES = 2.0, 100, 8
#: The mean before the first change, after it, and so on.
LOW, HIGH = 0.3, 0.6
NAMES = ("THRESH", "on a calendar", "every epoch")
PAINT = dict(zip(NAMES, (COLOURS[0], COLOURS[1], "#9aa5b1"), strict=True))


@dataclass(frozen=True)
class Study:
    """How much is simulated."""

    n: int
    epochs: int
    runs: int
    seed: int

    def plan(self, epochs: int) -> Thresh:
        """One budget for all: enough for the most changes."""
        return Thresh(EPSILON, epochs, SAMPLES, self.n, MOST_CHANGES + 1)


def jumping(
    epochs: int, changes: int, rng: np.random.Generator, *, halfway: bool = False
) -> Floats:
    """The mean of each epoch: ``changes`` jumps, one somewhere in each of as many equal parts.

    Jumps fall between two epochs, or ``halfway`` through one, whose mean is then in the middle.
    """
    parts = np.linspace(1, epochs, changes + 1).astype(int)
    where = [int(rng.integers(low, high)) for low, high in pairwise(parts)]
    jumps = np.zeros(epochs, dtype=int)
    jumps[where] = 1
    means = np.where(np.cumsum(jumps) % 2, HIGH, LOW)
    return np.where(jumps * halfway, (LOW + HIGH) / 2, means)


def collected(plan: Thresh, means: Floats, times: int, rng: np.random.Generator) -> Floats:
    """What is known in each epoch after ``times`` evenly spread collections of one bit each."""
    brr = BRR(2, plan.epsilon / times)
    known = np.empty(plan.epochs)
    starts = np.arange(times) * plan.epochs // times
    for start, stop in zip(starts, [*starts[1:], plan.epochs], strict=True):
        ones = int(rng.binomial(plan.n, means[start]))
        counts = brr.simulate([plan.n - ones, ones], rng)
        known[start:stop] = brr.unbiased(counts, plan.n)[1]
    return known


def one_run(plan: Thresh, means: Floats, rng: np.random.Generator) -> tuple[Row, list[Release]]:
    """THRESH and both baselines on one population."""
    counts = bernoulli_counts(means, SAMPLES, plan.n, rng)
    server, devices = simulate(plan, counts, rng)
    known = (
        np.array([release.mean for release in server.history]),
        collected(plan, means, plan.updates, rng),
        collected(plan, means, plan.epochs, rng),
    )
    row: Row = {
        "updates": server.updates,
        "votes": float(devices.votes.mean()),
        "epsilon spent": server.spent.epsilon,
        "known": dict(zip(NAMES, known, strict=True)),
    }
    for name, values in row["known"].items():
        row[f"error, {name}"] = float(np.sqrt(np.mean((values - means) ** 2)))
    return row, server.history


def tracking(study: Study, epochs: int, changes: int, *, halfway: bool = False) -> Row:
    """Means over the runs."""
    rng = np.random.default_rng([study.seed, epochs, changes])
    plan = study.plan(epochs)
    means = [jumping(epochs, changes, rng, halfway=halfway) for _ in range(study.runs)]
    rows = [one_run(plan, run, rng)[0] for run in means]
    mean = {key: float(np.mean([row[key] for row in rows])) for key in rows[0] if key != "known"}
    most = max(row["updates"] for row in rows)
    return {"epochs": epochs, "changes": changes, **mean, "most updates": most}


def false_updates(runs: int, seed: int) -> Row:
    """How often there is a second update although everybody's mean stays at 1/2, the worst one."""
    rng = np.random.default_rng([seed, 99])
    plan = Thresh(8.0, 64, SAMPLES, 5_000, 9)
    found = 0
    for _ in range(runs):
        counts = bernoulli_counts([0.5] * plan.epochs, SAMPLES, plan.n, rng)
        found += simulate(plan, counts, rng)[0].updates > 1
    return {"runs": runs, "with a false update": found, "delta": plan.delta}


def needed(epochs: int) -> list[Row]:
    """People needed to notice a change around 1/2 in its first epoch, 95 times of 100."""
    rows = []
    for epsilon in (1.0, 2.0, 4.0):
        for samples in (25, 100, 400):
            plan = Thresh(epsilon, epochs, samples, 1 << 40, 4)
            row: Row = {"epsilon": epsilon, "bits an epoch": samples, "gap": plan.gaps[-1]}
            for change in (0.05, 0.1, 0.2, 0.3, 0.5):
                share = yes_share(plan, 0.5 - change / 2, 0.5 + change / 2)
                row[f"{change:g}"] = _people(plan, share)
            rows.append(row)
    return rows


def _people(plan: Thresh, share: float) -> str:
    least = users_needed(plan, share)
    return f"{least:,}" if least < 10**9 else "above 10^9"


def gaps(study: Study) -> list[Row]:
    """The difference of local means that is worth a yes, here and as published."""
    rows = []
    for samples in (100, 1_000, 10_000):
        plan = Thresh(EPSILON, study.epochs, samples, study.n, 4)
        paper = published_gaps(study.epochs, samples, study.n, plan.delta)
        row: Row = {"bits an epoch": samples, "here, every epoch": plan.gaps[-1] / samples}
        row |= {
            "published, every epoch": paper[-1] / samples,
            "published, once": paper[0] / samples,
        }
        rows.append(row)
    return rows


def markdown(rows: list[Row]) -> str:
    """A table for the documentation."""
    head = [" | ".join(rows[0]), " | ".join("---" for _ in rows[0])]
    body = [" | ".join(_cell(value) for value in row.values()) for row in rows]
    return "\n".join(f"| {line} |" for line in [*head, *body]) + "\n"


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def story(study: Study) -> tuple[list[Row], list[Row], Floats]:
    """One population with many changes: what each way knows, epoch by epoch."""
    rng = np.random.default_rng([study.seed, 1])
    plan = study.plan(study.epochs)
    means = jumping(study.epochs, MOST_CHANGES, rng)
    row, history = one_run(plan, means, rng)
    lines = [
        {"epoch": epoch, "who": name, "mean": float(value)}
        for name, values in row["known"].items()
        for epoch, value in enumerate(values, start=1)
    ]
    band = [{"epoch": r.epoch, "low": r.interval[0], "high": r.interval[1]} for r in history]
    return lines, band, means


def story_chart(study: Study) -> Any:
    """The truth, what THRESH knows with its interval, and the noise of asking in every epoch."""
    alt = altair()
    lines, band, means = story(study)
    truth = [{"epoch": t, "mean": float(mean)} for t, mean in enumerate(means, start=1)]
    x = alt.X("epoch:Q", title="epoch", scale=alt.Scale(domain=[1, study.epochs], nice=False))
    y = alt.Y("mean:Q", title="share of ones", scale=alt.Scale(domain=[-0.2, 1.2]))
    paint = alt.Color("who:N", title=None, scale=_paint(), legend=alt.Legend(orient="top"))

    def of(*names: str) -> Any:
        values = [row for row in lines if row["who"] in names]
        return alt.Chart(alt.Data(values=values)).encode(x=x, y=y, color=paint)

    held = alt.Chart(alt.Data(values=band)).mark_area(
        color=COLOURS[0], opacity=0.2, interpolate="step-after"
    )
    real = alt.Chart(alt.Data(values=truth)).mark_line(
        color=TRUTH, strokeWidth=2, interpolate="step-after", strokeDash=[5, 3]
    )
    return alt.layer(
        of("every epoch").mark_point(filled=True, size=16, opacity=0.8, clip=True),
        of("on a calendar").mark_line(interpolate="step-after", strokeWidth=1.5),
        held.encode(x=x, y="low:Q", y2="high:Q"),
        of("THRESH").mark_line(interpolate="step-after", strokeWidth=2.5),
        real.encode(x=x, y=y),
    ).properties(width=740, height=260, title=f"One population, {MOST_CHANGES} changes (dashed)")


def _paint() -> Any:
    return altair().Scale(domain=list(PAINT), range=list(PAINT.values()))


def updates_chart(rows: Iterable[Row]) -> Any:
    """Updates against changes."""
    alt = altair()
    base = alt.Chart(alt.Data(values=list(rows)))
    x = alt.X("changes:O", title="changes of the truth", axis=alt.Axis(labelAngle=0))
    bars = base.mark_bar(color=COLOURS[0], width=34).encode(
        x=x, y=alt.Y("updates:Q", title="collections", scale=alt.Scale(domainMax=10))
    )
    text = base.mark_text(dy=-7, color=INK).encode(
        x=x, y="updates:Q", text=alt.Text("updates:Q", format=".2~f")
    )
    return alt.layer(bars, text).properties(
        width=300, height=220, title="THRESH asks when there is something to ask"
    )


def error_chart(rows: Iterable[Row]) -> Any:
    """The error of each way against the number of epochs, with the same changes."""
    alt = altair()
    values = [
        {"epochs": row["epochs"], "who": name, "error": row[f"error, {name}"]}
        for row in rows
        for name in NAMES
    ]
    sizes = sorted({row["epochs"] for row in values})
    base = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X(
            "epochs:Q",
            title="epochs, T",
            scale=alt.Scale(type="log", domain=[sizes[0] * 0.85, sizes[-1] * 1.2], nice=False),
            axis=alt.Axis(values=sizes),
        ),
        y=alt.Y(
            "error:Q",
            title="error (root mean square)",
            scale=alt.Scale(type="log"),
            axis=alt.Axis(values=[0.01, 0.03, 0.1, 0.3, 1]),
        ),
        color=alt.Color("who:N", title=None, scale=_paint(), legend=None),
    )
    return alt.layer(
        base.mark_line(strokeWidth=2), base.mark_point(filled=True, size=70, opacity=1)
    ).properties(width=340, height=220, title="Time does not cost, changes do")


def chart(study: Study, by_changes: list[Row], by_epochs: list[Row]) -> Any:
    """All three panels."""
    alt = altair()
    title = alt.TitleParams(
        f"Following a share of {study.n:,} people for {study.epochs} epochs, epsilon = {EPSILON:g}"
        " in all",
        subtitle="the same privacy for all three ways; band: THRESH's 95 % interval; "
        "grey points beyond the frame are not shown",
        anchor="start",
        fontSize=15,
        offset=12,
    )
    below = alt.hconcat(updates_chart(by_changes), error_chart(by_epochs))
    whole: Any = alt.vconcat(story_chart(study), below).properties(title=title)
    return whole.configure_title(anchor="start").resolve_scale(color="independent")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path("out/thresh"))
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--epochs", type=int, default=256)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quiet-runs", type=int, default=1000, help="runs without any change")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    given, console = arguments(), Console()
    study = Study(given.people, given.epochs, given.runs, given.seed)
    with console.status(f"{study.n:,} people vote ..."):
        by_changes = [tracking(study, study.epochs, c) for c in (0, 1, 3, MOST_CHANGES)]
        by_epochs = [tracking(study, study.epochs * 2**j // 4, 3) for j in range(4)]
        tables = {
            "By changes": by_changes,
            "By epochs": by_epochs,
            "Changes in the middle of an epoch": [tracking(study, study.epochs, 3, halfway=True)],
            "False updates": [false_updates(given.quiet_runs, study.seed)],
            "People needed": needed(study.epochs),
            "Gaps": gaps(study),
        }
    given.out.mkdir(parents=True, exist_ok=True)
    text = "\n".join(f"{name}\n\n{markdown(rows)}" for name, rows in tables.items())
    (given.out / "thresh.md").write_text(text)
    (given.out / "thresh.json").write_text(json.dumps(tables, indent=1))
    console.print(text, markup=False)
    picture = save(chart(study, by_changes, by_epochs), given.out / "thresh.png", scale=1.3)
    console.print(f"chart: {picture}")


if __name__ == "__main__":
    main()
