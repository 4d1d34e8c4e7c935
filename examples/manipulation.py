"""What forged respondents can do: the guaranteed bound, the attacks, and what defences leave.

    python examples/manipulation.py --out out/manipulation

Of every 21 respondents one forges, for 5 rare values of 64. First the most that any admissible
reports can gain, for every mechanism; then every attack against every defence, simulated.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

import deniable as dn
from deniable.audit.influence import influence
from deniable.audit.manipulation import manipulation_report
from deniable.extras import altair
from deniable.studio.charts import BAR, COLOURS, INK, SHAPES, TRUTH, save
from deniable.studio.formats import Format
from deniable.studio.tables import show

SIZE, PEOPLE, FORGED = 64, 20_000, 1_000
TARGETS = [40, 41, 42, 43, 44]
EPSILONS = (0.5, 1.0, 2.0, 4.0)
COMPARED = ("grr", "oue", "sue", "ss", "olh", "hr", "hrr", "orr")
SIMULATED = ("grr", "oue", "olh", "ss")
ZIPF = 1 / np.arange(1, SIZE + 1)


def bounds() -> list[dict[str, Any]]:
    """The most that forgers can add to one value, to all targets, and change in all."""
    rows = []
    for name, family in dn.mechanisms().items():
        for epsilon in EPSILONS if family.only_size is None else ():
            m = dn.mechanism(name, SIZE, epsilon)
            one, all_ = (influence(m, PEOPLE, FORGED, part) for part in (TARGETS[:1], TARGETS))
            row = {"mechanism": type(m).__name__, "epsilon": epsilon, "one_value": one.gain(0.0)}
            rows.append(row | {"five_values": all_.gain(0.0), "l1": all_.l1})
    return rows


def attacks(runs: int) -> list[dict[str, Any]]:
    """The suite for some mechanisms."""
    rows = []
    for seed, name in enumerate(track(SIMULATED, "attacking", transient=True)):
        m, rng = dn.mechanism(name, SIZE, 1.0), np.random.default_rng(seed)
        found = manipulation_report(
            m, PEOPLE, FORGED, TARGETS, rng=rng, frequencies=ZIPF / ZIPF.sum(), runs=runs
        )
        rows += [{"mechanism": type(m).__name__, **row} for row in found]
    return rows


def bound_chart(rows: list[dict[str, Any]]) -> Any:
    """The bound against epsilon, a line a mechanism."""
    alt = altair()
    names = [dn.mechanisms()[name].__name__ for name in COMPARED]
    colours = [*COLOURS, "#999999"][: len(names)]
    base = alt.Chart(alt.Data(values=[row for row in rows if row["mechanism"] in names])).encode(
        x=alt.X(
            "epsilon:Q",
            scale=alt.Scale(type="log", domain=[0.45, 4.5], nice=False),
            axis=alt.Axis(values=list(EPSILONS), format="~g"),
        ),
        color=alt.Color("mechanism:N", title=None, scale=alt.Scale(domain=names, range=colours)),
        shape=alt.Shape(
            "mechanism:N", title=None, scale=alt.Scale(domain=names, range=[*SHAPES, "wedge"])
        ),
    )
    panels = []
    for column, title in (("one_value", "one target"), ("five_values", "five targets together")):
        scale = alt.Scale(type="log", domain=[0.04, 6], nice=False)
        y = alt.Y(f"{column}:Q", title="most that is gained", scale=scale)
        lines = base.mark_line(strokeWidth=2).encode(y=y)
        points = base.mark_point(filled=True, size=60, opacity=1).encode(y=y)
        panels.append(alt.layer(lines, points).properties(width=250, height=240, title=title))
    return alt.hconcat(*panels)


def attack_chart(rows: list[dict[str, Any]]) -> Any:
    """Gains by attack and defence, a column a mechanism, beside the bound."""
    alt = altair()
    drawn = [r for r in rows if r["gain_after"] is not None and r["defence"] != "validation"]
    ways = list(dict.fromkeys(row["defence"] for row in drawn))
    panels = []
    for attack in [a for a in dict.fromkeys(row["attack"] for row in drawn) if "nobody" not in a]:
        line = []
        for name in dict.fromkeys(row["mechanism"] for row in drawn):
            some = [r for r in drawn if (r["attack"], r["mechanism"]) == (attack, name)]
            first = name == rows[0]["mechanism"]
            y = alt.Y("defence:N", sort=ways, title=None, axis=alt.Axis(labels=first, ticks=False))
            base = alt.Chart(alt.Data(values=some)).encode(y=y)
            x = alt.X("gain_after:Q", title="gain", scale=alt.Scale(domain=[-0.1, 1.8]))
            bars = base.mark_bar(color=BAR, height=11).encode(x=x)
            bound = base.mark_tick(color=TRUTH, thickness=2.5, height=15).encode(x="bound:Q")
            zero = base.mark_rule(color=INK, strokeWidth=0.7).encode(x=alt.datum(0))
            title = f"{name}, {attack}"
            seen = f"detected in {some[0]['detected']:.0%}"
            heading = alt.TitleParams(title, subtitle=seen, fontSize=12, anchor="start")
            line.append(
                alt.layer(bars, zero, bound).properties(width=150, height=105, title=heading)
            )
        panels.append(alt.hconcat(*line))
    return alt.vconcat(*panels)


def chart(limits: list[dict[str, Any]], rows: list[dict[str, Any]]) -> Any:
    alt = altair()
    heading = f"One forger beside {PEOPLE // FORGED} genuine respondents, {SIZE} values"
    subtitle = "lines: what no reports exceed; bars: simulated at epsilon = 1, tick: the bound"
    title = alt.TitleParams(heading, subtitle=subtitle, anchor="start", fontSize=15, offset=12)
    both = alt.vconcat(bound_chart(limits), attack_chart(rows))
    return both.properties(title=title)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/manipulation"))
    parser.add_argument("--runs", type=int, default=20)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    limits, rows = bounds(), attacks(given.runs)
    at_one = sorted((r for r in limits if r["epsilon"] == 1.0), key=lambda row: row["five_values"])
    show(at_one, Format.table, f"the most that {FORGED} forgers beside {PEOPLE} can gain")
    show(rows, Format.table, "every attack against every defence")
    found = {"bounds": limits, "attacks": rows}
    (given.out / "manipulation.json").write_text(json.dumps(found, indent=1))
    print(save(chart(limits, rows), given.out / "manipulation.png"))


if __name__ == "__main__":
    main()
