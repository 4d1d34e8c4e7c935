"""What forged respondents can do: the guaranteed bound, the attacks, and what defences leave.

    python examples/manipulation.py --out out/manipulation

Of every 21 respondents one forges, for 5 rare values of 64. First the most that any admissible
reports can gain, for every mechanism; then every attack against every defence, simulated.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

import deniable as dn
from deniable.audit.forging.influence import influence
from deniable.audit.forging.result import Attempt, Manipulation
from deniable.audit.forging.suite import manipulation_report
from deniable.extras import altair
from deniable.mechanisms.frequency import frequency_oracles
from deniable.views import save
from deniable.views.charts import INK
from deniable.views.formats import Format
from deniable.views.tables import show

SIZE, PEOPLE, FORGED = 64, 20_000, 1_000
TARGETS = [40, 41, 42, 43, 44]
EPSILONS = (0.5, 1.0, 2.0, 4.0)
COMPARED = ("grr", "oue", "sue", "ss", "olh", "hr", "hrr", "orr")
SIMULATED = ("grr", "oue", "olh", "ss")
ZIPF = 1 / np.arange(1, SIZE + 1)


def bounds() -> list[dict[str, Any]]:
    """The most that forgers can add to one value, to all targets, and change in all."""
    rows = []
    for family in frequency_oracles().values():
        for epsilon in EPSILONS if family.only_size is None else ():
            m = family(SIZE, epsilon)
            one, all_ = (influence(m, PEOPLE, FORGED, part) for part in (TARGETS[:1], TARGETS))
            row = {"mechanism": type(m).__name__, "epsilon": epsilon, "one_value": one.gain(0.0)}
            rows.append(row | {"five_values": all_.gain(0.0), "l1": all_.l1})
    return rows


def attacks(runs: int) -> dict[str, Manipulation]:
    """The suite for some mechanisms."""
    found = {}
    for seed, name in enumerate(track(SIMULATED, "attacking", transient=True)):
        m, rng = dn.mechanism(name, SIZE, 1.0), np.random.default_rng(seed)
        found[type(m).__name__] = manipulation_report(
            m, PEOPLE, FORGED, TARGETS, rng=rng, frequencies=ZIPF / ZIPF.sum(), runs=runs
        )
    return found


def bound_chart(rows: list[dict[str, Any]]) -> Any:
    """A line a mechanism, a dot an epsilon: what no reports exceed."""
    alt = altair()
    names = [dn.mechanisms()[name].__name__ for name in COMPARED]
    shades = alt.Scale(domain=list(EPSILONS), range=["#08306b", "#2f7ebc", "#85bcdc", "#c9ddf0"])
    panels = []
    for column, title in (("one_value", "one target"), ("five_values", "five targets together")):
        drawn = [r for r in rows if r["mechanism"] in names]
        base = alt.Chart(alt.Data(values=drawn)).encode(
            y=alt.Y(
                "mechanism:N", sort=names, title=None, axis=alt.Axis(domain=False, ticks=False)
            ),
            x=alt.X(
                f"{column}:Q",
                title="most that is gained",
                scale=alt.Scale(type="log", domain=[0.04, 6], nice=False),
                axis=alt.Axis(values=[0.05, 0.1, 0.2, 0.5, 1, 2, 5], format="~g"),
            ),
        )
        dots = base.mark_point(filled=True, size=110, opacity=1).encode(
            color=alt.Color("epsilon:O", title="epsilon", scale=shades)
        )
        spans = base.mark_line(color="#d1d5db", strokeWidth=3).encode(detail="mechanism:N")
        one = alt.layer(spans, dots).properties(width=330, height=190, title=title)
        panels.append(one)
    return alt.hconcat(*panels, spacing=30)


def attack_chart(found: dict[str, Manipulation]) -> Any:
    """A table an attack: rows are defences, columns mechanisms; darker is more of the bound."""
    alt = altair()
    first = next(iter(found.values()))
    panels = []
    for attack in first.attacks:
        cells = [
            {"mechanism": name, "share": 0.0, **cell}
            for name, report in found.items()
            for cell in _cells([one for one in report.attempts if one.attack == attack])
        ]
        base = alt.Chart(alt.Data(values=cells)).encode(
            x=alt.X(
                "mechanism:N",
                sort=list(found),
                title=None,
                axis=alt.Axis(orient="top", labelAngle=0, domain=False, ticks=False),
            ),
            y=alt.Y(
                "defence:N",
                sort=None,
                title=None,
                axis=alt.Axis(
                    labels=attack in first.attacks[::2], labelLimit=260, domain=False, ticks=False
                ),
            ),
        )
        shade = alt.Scale(
            domain=[0, 1], range=["#f3f4f6", "#2f7ebc"], interpolate="rgb", clamp=True
        )
        boxes = base.mark_rect(stroke="white", strokeWidth=2).encode(
            color=alt.Color("share:Q", scale=shade, legend=None)
        )
        dark = alt.condition("datum.share > 0.6", alt.value("white"), alt.value(INK))
        texts = base.mark_text(fontSize=12).encode(text="text:N", color=dark)
        panels.append(alt.layer(boxes, texts).properties(width=300, height=230, title=attack))
    return alt.concat(*panels, columns=2, spacing=24)


def _cells(some: list[Attempt]) -> Iterator[dict[str, Any]]:
    """The bound; what each defence leaves, with its share of that; then what is no gain."""
    yield {"defence": "bound (guaranteed)", "text": f"{some[0].bound:.2f}"}
    for one in some:
        if one.gain_after is not None:
            name = "no defence" if one.label == "none" else f"{one.defence} ({one.label})"
            share = max(0.0, one.gain_after / one.bound)
            yield {"defence": name, "text": f"{one.gain_after:.2f}", "share": share}
        else:
            yield {"defence": "robust interval (guaranteed)", "text": f"holds {one.covered:.0%}"}
    yield {"defence": "alarm of detect (heuristic)", "text": f"{some[0].detected:.0%}"}


def chart(limits: list[dict[str, Any]], found: dict[str, Manipulation]) -> Any:
    alt = altair()
    heading = f"One forger beside {PEOPLE // FORGED} genuine respondents, {SIZE} values"
    subtitle = [
        "Above: what no reports exceed (guaranteed). Below: what five targets gain, simulated at",
        "epsilon = 1; the darker, the nearer to the bound.",
    ]
    title = alt.TitleParams(heading, subtitle=subtitle, anchor="start", fontSize=15, offset=12)
    both = alt.vconcat(bound_chart(limits), attack_chart(found), spacing=30)
    return both.resolve_scale(color="independent").properties(title=title)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/manipulation"))
    parser.add_argument("--runs", type=int, default=20)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    limits, reports = bounds(), attacks(given.runs)
    at_one = sorted((r for r in limits if r["epsilon"] == 1.0), key=lambda row: row["five_values"])
    show(at_one, Format.table, f"the most that {FORGED} forgers beside {PEOPLE} can gain")
    for report in reports.values():
        Console().print(report.table())
    rows = [{"mechanism": name, **row} for name, r in reports.items() for row in r.rows()]
    found = {"bounds": limits, "attacks": rows}
    (given.out / "manipulation.json").write_text(json.dumps(found, indent=1))
    print(save(chart(limits, reports), given.out / "manipulation.png"))


if __name__ == "__main__":
    main()
