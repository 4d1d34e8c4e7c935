"""Charts in the style of the figures, from the rows of a result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deniable.extras import altair
from deniable.views.charts import COLOURS, SHAPES
from deniable_papers.results import Result

BETTER, WORSE = "#2166ac", "#b2182b"


def figure_1(results: Sequence[Result]) -> Any:
    """Heat maps of the gain of the projected decoder, one a mechanism."""
    alt = altair()
    rows = _cells(results, "Figure 1")
    maps = [
        _heat_map([row for row in rows if row["mechanism"] == name], f"{name} decoder")
        for name in ("k-RR", "k-RAPPOR")
    ]
    title = "l1 loss of the projected decoder less that of the next best (geometric, n = 30,000)"
    return _titled(alt.hconcat(*maps).resolve_scale(color="independent"), title)


def figure_2(results: Sequence[Result]) -> Any:
    """Heat maps of k-RR against k-RAPPOR by distribution and number of respondents."""
    alt = altair()
    rows = _cells(results, "Figure 2")
    lines = []
    for name in ("geometric", "dirichlet"):
        some = [row for row in rows if row["distribution"] == name]
        maps = [
            _heat_map([row for row in some if row["n"] == n], f"{name}, {n:,} respondents")
            for n in (100, 30_000)
        ]
        lines.append(alt.hconcat(*maps).resolve_scale(color="independent"))
    title = "l1 loss of the best k-RR decoder less that of the best k-RAPPOR decoder"
    return _titled(alt.vconcat(*lines), title)


def _cells(results: Sequence[Result], where: str) -> list[dict[str, Any]]:
    found = [one for one in results if one.where == where]
    return [{**one.cell, "value": one.ours, "shown": _shown(one.ours)} for one in found]


def _shown(value: float) -> str:
    """Two digits; what is below 1e-4 is as good as nothing."""
    return f"{value:.2g}" if abs(value) >= 1e-4 else "~0"


def _heat_map(rows: list[dict[str, Any]], title: str) -> Any:
    """Blue is negative: the first of the two compared is better."""
    alt = altair()
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("epsilon:O", title="epsilon", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("k:O", title="k", sort="descending"),
    )
    most = max(abs(row["value"]) for row in rows)
    scale = alt.Scale(domain=[-most, 0, most], range=[BETTER, "#f7f7f7", WORSE])
    tiles = base.mark_rect().encode(color=alt.Color("value:Q", scale=scale, legend=None))
    ink = alt.when(f"abs(datum.value) > {0.6 * most}").then(alt.value("white"))
    text = base.mark_text(fontSize=9).encode(
        text="shown:N", color=ink.otherwise(alt.value("#1f2937"))
    )
    return alt.layer(tiles, text).properties(
        width=alt.Step(46), height=alt.Step(20), title=alt.TitleParams(title, fontSize=12)
    )


def _titled(chart: Any, title: str) -> Any:
    alt = altair()
    subtitle = "blue, negative: the first is better"
    heading = alt.TitleParams(title, subtitle=subtitle, anchor="start", offset=10)
    return chart.properties(title=heading)


def figure_3(results: Sequence[Result]) -> Any:
    """Median losses with the band of 90 % of the samples, on both alphabets."""
    alt = altair()
    rows = _cells(results, "Figure 3")
    flat = {row["mechanism"]: row["value"] for row in _cells(results, "Figure 3, baseline")}
    panels = []
    for alphabet, words in (("open", "(a) open alphabet"), ("closed", "(b) closed alphabet")):
        some = [row for row in rows if row["alphabet"] == alphabet]
        panels.append(_lines(some, flat).properties(title=words, width=330, height=280))
    title = alt.TitleParams(
        "l1 loss, geometric over 256 values, n = 1,000,000",
        subtitle="median and 90 % of the samples; dashes: the sample itself, the uniform guess",
        anchor="start",
    )
    return alt.hconcat(*panels).properties(title=title)


def _lines(rows: list[dict[str, Any]], flat: dict[str, float]) -> Any:
    alt = altair()
    names = ["O-RR", "O-RAPPOR", "k-RR", "k-RAPPOR"]
    colours = alt.Scale(domain=names, range=list(COLOURS[:4]))
    shapes = alt.Scale(domain=names, range=list(SHAPES[:4]))
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("epsilon:Q", title="epsilon", axis=alt.Axis(format="~g", tickCount=6)),
        color=alt.Color(
            "mechanism:N", title=None, scale=colours, legend=alt.Legend(symbolOpacity=1)
        ),
    )
    scale = alt.Scale(type="log", domain=[0.008, 2.2], nice=False)
    loss = alt.Y("value:Q", title="l1 loss", scale=scale)
    band = base.mark_area(opacity=0.18).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    points = base.mark_point(filled=True, size=50, opacity=1).encode(
        y=loss, shape=alt.Shape("mechanism:N", title=None, scale=shapes)
    )
    levels = [{"value": value} for value in flat.values()]
    rules = alt.Chart(alt.Data(values=levels)).mark_rule(strokeDash=[4, 4], color="#6b7280")
    return alt.layer(rules.encode(y="value:Q"), band, base.mark_line().encode(y=loss), points)


def bounds(results: Sequence[Result]) -> Any:
    """How far the worst l2 loss of each mechanism is from the least possible, by epsilon and k."""
    alt = altair()
    rows = _cells(results, "bounds, worst l2 loss / minimax")
    for row in rows:
        row["panel"] = f"k = {row['k']}"
    names = list(dict.fromkeys(row["mechanism"] for row in rows))
    scale = alt.Scale(type="log", domain=[0.9, 200], nice=False)
    ticks = alt.Axis(values=[1, 2, 5, 10, 20, 50, 100], format="~g")
    colours = alt.Scale(domain=names, range=list(COLOURS[:4]))
    shapes = alt.Scale(domain=names, range=list(SHAPES[:4]))
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("epsilon:Q", title="epsilon"),
        y=alt.Y("value:Q", title="loss / minimax", scale=scale, axis=ticks),
        color=alt.Color("mechanism:N", title=None, scale=colours),
    )
    points = base.mark_point(filled=True, size=30, opacity=1).encode(
        shape=alt.Shape("mechanism:N", title=None, scale=shapes)
    )
    title = alt.TitleParams(
        "Worst l2 loss over the least that any mechanism can have (Ye and Barg)",
        subtitle="for large n; the best subset selection has 1 everywhere",
        anchor="start",
    )
    lines: Any = alt.layer(base.mark_line(), points).properties(width=260, height=180)
    panels = list(dict.fromkeys(row["panel"] for row in rows))
    facet = alt.Facet("panel:N", title=None, sort=panels)
    return lines.facet(facet=facet, columns=2).properties(title=title)
