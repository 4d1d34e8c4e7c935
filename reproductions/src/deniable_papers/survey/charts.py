"""Charts from the rows of a result: Table 4 against measurements, and the map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deniable.estimation.frequencies.methods import DEFAULT_METHOD
from deniable.extras import altair
from deniable.views.charts import COLOURS, SHAPES
from deniable_papers.results import Result

#: Light versions of `COLOURS`, on which black text can be read.
TILES = {
    "GRR": "#f4c35a", "HRR": "#bfbfbf", "HR": "#7fc4a8", "OUE": "#7fb3d9",
    "SS": "#e99a6b", "OLH": "#b8e0f5",
}  # fmt: skip


def variances(results: Sequence[Result]) -> Any:
    """Measured n Var over Table 4's, a line a mechanism, a panel an epsilon."""
    alt = altair()
    rows = [
        {**one.cell, "ratio": one.ours / one.published, "panel": f"epsilon = {one.cell['epsilon']}"}
        for one in results
        if one.where == "Table 4, variance" and one.published
    ]
    title = alt.TitleParams(
        "Variances of Table 4, measured",
        subtitle="on the dashed line: as published; to its right: larger than published",
        anchor="start",
    )
    chart = alt.Chart(alt.Data(values=rows))
    rule = chart.mark_rule(color="#6b7280", strokeDash=[4, 4]).encode(x=alt.datum(1))
    layered: Any = alt.layer(rule, _ratios(chart, rows)).properties(width=300, height=220)
    panels = list(dict.fromkeys(row["panel"] for row in rows))
    facet = alt.Facet("panel:N", title=None, sort=panels)
    return layered.facet(facet=facet, columns=2).properties(title=title)


def _ratios(chart: Any, rows: list[dict[str, Any]]) -> Any:
    """A point a design, a colour and a shape for each k."""
    alt = altair()
    names = list(dict.fromkeys(row["mechanism"] for row in rows))
    sizes = sorted({row["k"] for row in rows})
    ticks = alt.Axis(values=[0.01, 0.1, 1, 10, 100, 1000], format="~g", grid=True)
    title, scale = "measured / published variance", alt.Scale(type="log")
    colours = alt.Scale(domain=sizes, range=list(COLOURS[: len(sizes)]))
    shapes = alt.Scale(domain=sizes, range=list(SHAPES[: len(sizes)]))
    return chart.mark_point(filled=True, size=55, opacity=0.9).encode(
        x=alt.X("ratio:Q", scale=scale, axis=ticks, title=title),
        y=alt.Y("mechanism:N", sort=names, title=None),
        color=alt.Color("k:O", scale=colours, title="k"),
        shape=alt.Shape("k:O", scale=shapes, title="k"),
    )


def practice(results: Sequence[Result]) -> Any:
    """The map: a panel a number of respondents, a tile the mechanism (and another decoder)."""
    alt = altair()
    rows = [_tile(one) for one in results if one.where == "map"]
    panels = [_panel(rows, n) for n in sorted({row["n"] for row in rows})]
    pairs = [alt.hconcat(*panels[i : i + 2]) for i in range(0, len(panels), 2)]
    title = alt.TitleParams(
        "Which mechanism and decoder?",
        subtitle=[
            "The least loss over flat, geometric, Zipf and sparse answers; of those within 5 %,"
            " the shortest report.",
            "The decoder is the default, bayes, where a tile names no other. Pale, x: too few"
            " respondents; on some uneven answers no better than a guess.",
        ],
        anchor="start",
    )
    return alt.vconcat(*pairs).properties(title=title)


def _tile(one: Result) -> dict[str, Any]:
    lost, decoder = one.cell["drowned"] == "yes", str(one.cell["decoder"])
    named = str(one.cell["mechanism"]) + ("" if decoder == DEFAULT_METHOD else f", {decoder[:4]}")
    return {**one.cell, "lost": lost, "text": "x" if lost else named}


def _panel(rows: list[dict[str, Any]], n: int) -> Any:
    alt = altair()
    some = [row for row in rows if row["n"] == n]
    base = alt.Chart(alt.Data(values=some)).encode(
        x=alt.X("epsilon:O", title="epsilon", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("k:O", title="k", sort="descending"),
    )
    scale = alt.Scale(domain=list(TILES), range=list(TILES.values()))
    legend = alt.Legend(title="mechanism", symbolType="square", symbolSize=160)
    tiles = base.mark_rect(stroke="white").encode(
        color=alt.Color("mechanism:N", scale=scale, legend=legend),
        opacity=alt.when("datum.lost").then(alt.value(0.25)).otherwise(alt.value(1.0)),
    )
    text = base.mark_text(fontSize=10, color="#1f2937").encode(text="text:N")
    heading = alt.TitleParams(f"{n:,} respondents", fontSize=12)
    return alt.layer(tiles, text).properties(width=alt.Step(44), height=alt.Step(26), title=heading)
