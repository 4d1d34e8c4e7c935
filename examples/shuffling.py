"""How much privacy anonymity adds: central epsilon against the number of honest people.

    python examples/shuffling.py --out out/shuffling

For some local epsilons: what holds for any mechanism, for k-RR and for a unary encoding, the
published closed form, and what an attack achieves. Writes a table (Markdown, JSON) and a chart.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rich.console import Console

from deniable.audit.shuffling.shuffled import CONDITIONS, Shuffled, shuffled
from deniable.extras import altair
from deniable.mechanisms import GRR, OUE, Mechanism
from deniable.views import save
from deniable.views.charts import COLOURS, INK

Row = dict[str, Any]
LOCAL = (0.5, 1.0, 2.0, 4.0)
VALUES, DELTA = 16, 1e-6
NAMES = ("closed form", "any mechanism", "OUE", "GRR", "attack on GRR")
DASHES = ([2, 3], [1, 0], [1, 0], [1, 0], [6, 4])


def one(mechanism: Mechanism | float, n: int) -> Shuffled:
    """The example states the conditions because nothing real depends on it."""
    return shuffled(mechanism, honest=n, delta=DELTA, conditions=tuple(CONDITIONS))


def at(local: float, n: int) -> Row:
    """All bounds for n people."""
    general, oue, grr = one(local, n), one(OUE(VALUES, local), n), one(GRR(VALUES, local), n)
    found = (general.closed_form, general.epsilon, oue.epsilon, grr.epsilon, grr.at_least)
    return {"local epsilon": local, "people": n, **dict(zip(NAMES, found, strict=True))}


def panel(rows: list[Row], local: float) -> Any:
    """Epsilon against n, both logarithmic."""
    alt = altair()
    data = [
        {"people": row["people"], "who": name, "epsilon": row[name]}
        for row in rows
        for name in NAMES
        if row["local epsilon"] == local and row[name]
    ]
    colours = [COLOURS[6], COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[4]]
    n = [row["people"] for row in rows]
    base = alt.Chart(alt.Data(values=data)).encode(
        x=alt.X(
            "people:Q",
            title="honest people",
            scale=alt.Scale(type="log", domain=[min(n), max(n)], nice=False),
            axis=alt.Axis(values=[10**j for j in range(2, 9)], format="~s"),
        ),
        y=alt.Y(
            "epsilon:Q",
            title="central epsilon",
            scale=alt.Scale(type="log", domain=[1e-4, 5], nice=False),
            axis=alt.Axis(values=[0.0001, 0.001, 0.01, 0.1, 1], format="~g"),
        ),
        color=alt.Color("who:N", title=None, scale=alt.Scale(domain=NAMES, range=colours)),
        strokeDash=alt.StrokeDash("who:N", title=None, scale=alt.Scale(domain=NAMES, range=DASHES)),
    )
    level = alt.Chart(alt.Data(values=[{"epsilon": local}])).mark_rule(color=INK, opacity=0.4)
    return alt.layer(level.encode(y="epsilon:Q"), base.mark_line(strokeWidth=2)).properties(
        width=300, height=230, title=f"local epsilon = {local:g}"
    )


def chart(rows: list[Row]) -> Any:
    """A panel for each local epsilon."""
    alt = altair()
    panels = [panel(rows, local) for local in LOCAL]
    title = alt.TitleParams(
        f"What a shuffled batch reveals (delta = {DELTA:g}; GRR and OUE with k = {VALUES})",
        subtitle="grey line: without shuffling; all but the attack are proved upper bounds",
        anchor="start",
        fontSize=15,
        offset=12,
    )
    grid: Any = alt.concat(*panels, columns=2).properties(title=title)
    return grid.configure_title(anchor="start").configure_legend(symbolSize=300, labelFontSize=12)


def markdown(rows: list[Row]) -> str:
    """A table for the documentation."""
    head = [" | ".join(rows[0]), " | ".join("---" for _ in rows[0])]
    body = [" | ".join(_cell(value) for value in row.values()) for row in rows]
    return "\n".join(f"| {line} |" for line in [*head, *body]) + "\n"


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else f"{value:,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path("out/shuffling"))
    parser.add_argument("--most", type=int, default=7, help="up to 10**MOST people")
    given, console = parser.parse_args(), Console()
    steps = [round(10 ** (j / 4)) for j in range(8, 4 * given.most + 1)]
    with console.status("Shuffling ..."):
        rows = [at(local, n) for local in LOCAL for n in steps]
    given.out.mkdir(parents=True, exist_ok=True)
    text = markdown([row for row in rows if str(row["people"]).strip("0") == "1"])
    (given.out / "shuffling.md").write_text(text)
    (given.out / "shuffling.json").write_text(json.dumps(rows, indent=1))
    console.print(text, markup=False)
    console.print(f"chart: {save(chart(rows), given.out / 'shuffling.png', scale=1.3)}")


if __name__ == "__main__":
    main()
