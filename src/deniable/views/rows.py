"""Charts of rows (Altair): simulations, benchmarks and studies, which are tables of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deniable.extras import altair
from deniable.views.charts import BAR, COLOURS, INK, SHAPES, TRUTH


def error_chart(rows: Sequence[Mapping[str, Any]], title: str) -> Any:
    """Root mean squared errors: bars beside their prediction, or a heat map of many by many."""
    alt = altair()
    one = [by for by in ("mechanism", "method") if len({row[by] for row in rows}) == 1]
    if not one:
        return ratio_chart([_against_formula(row, title) for row in rows], 1.0)
    by = "method" if one[0] == "mechanism" else "mechanism"
    base = alt.Chart(alt.Data(values=list(rows))).encode(y=alt.Y(f"{by}:N", sort="x", title=None))
    bars = base.mark_bar(color=BAR, height=14).encode(
        x=alt.X("rmse:Q", title="root mean squared error of a frequency")
    )
    ticks = base.mark_tick(color=TRUTH, thickness=2.5, height=18).encode(x="predicted:Q")
    heading = alt.TitleParams(
        f"{title}, {rows[0][one[0]]}",
        subtitle="bar: simulated; tick: the unbiased estimate's formula",
        anchor="start",
    )
    chart: Any = alt.layer(bars, ticks).properties(width=520, title=heading)
    return chart


def _against_formula(row: Mapping[str, Any], title: str) -> dict[str, Any]:
    """A simulated error as a cell of a heat map: its ratio to the unbiased estimate's formula."""
    return {
        "panel": f"{title}; error / that of the unbiased formula",
        "population": row["method"],
        "column": row["mechanism"],
        "ratio": row["rmse"] / row["predicted"],
    }


def speed_chart(rows: Sequence[Mapping[str, Any]], title: str) -> Any:
    """How many times faster than each peer, one panel a mechanism, on a logarithmic scale."""
    alt = altair()
    data = [{**row, "who": f"{row['peer']}, k = {row['k']}", "same": 1} for row in rows]
    base = alt.Chart(alt.Data(values=data)).encode(y=alt.Y("who:N", title=None, sort=None))
    scale = alt.Scale(type="log", domainMin=1)
    bars = base.mark_bar(color=BAR, height=14).encode(
        x=alt.X("same:Q", scale=scale, title="times faster, on one core; mark: the aim"),
        x2="ratio:Q",
    )
    target = base.mark_tick(color=TRUTH, thickness=2, height=16).encode(x="target:Q")
    label = base.mark_text(align="left", dx=4, color=INK).encode(
        x="ratio:Q", text=alt.Text("ratio:Q", format=",.0f")
    )
    chart: Any = (
        alt.layer(bars, target, label)
        .properties(width=520)
        .facet(row=alt.Row("mechanism:N", title=None, sort=None))
        .resolve_scale(y="independent")
        .properties(title=title)
    )
    return chart


def ratio_chart(rows: Sequence[Mapping[str, Any]], aim: float) -> Any:
    """Heat maps of error ratios, one a study: blue is better than the best, red is worse.

    Rows need ``panel``, ``population``, ``column`` and ``ratio``; those above ``aim`` are black.
    """
    alt = altair()
    panels = list(dict.fromkeys(row["panel"] for row in rows))
    keys = ("population", "column", "ratio")
    maps = [
        _heat_map(
            [{key: row[key] for key in keys} for row in rows if row["panel"] == panel], aim
        ).properties(title=panel)
        for panel in panels
    ]
    chart: Any = alt.vconcat(*maps).configure_title(anchor="start")
    return chart


def _heat_map(data: list[dict[str, Any]], aim: float) -> Any:
    alt = altair()
    base = alt.Chart(alt.Data(values=data)).encode(
        x=alt.X("column:N", title=None, sort=None), y=alt.Y("population:N", title=None, sort=None)
    )
    colours = ["#2166ac", "#f7f7f7", "#b2182b"]
    scale = alt.Scale(type="log", domain=[0.1, 1, 3], range=colours, clamp=True)
    tiles = base.mark_rect().encode(
        color=alt.Color("ratio:Q", scale=scale, title="ratio of errors")
    )
    ink = alt.when(alt.datum.ratio > aim).then(alt.value("black"))
    ink = ink.when(alt.datum.ratio < 0.3).then(alt.value("white"))
    text = base.mark_text(fontSize=8).encode(
        text=alt.Text("ratio:Q", format=".2f"),
        color=ink.otherwise(alt.value("#4b5563")),
    )
    return alt.layer(tiles, text).properties(width=alt.Step(26), height=alt.Step(17))


def growth_chart(rows: Sequence[Mapping[str, Any]], title: str) -> Any:
    """Seconds against k at the largest n, and against n at the largest k, both logarithmic.

    Rows need ``mechanism``, ``n``, ``k`` and ``seconds``.
    """
    alt = altair()
    most = {size: max(row[size] for row in rows) for size in ("n", "k")}
    words = {"n": "respondents, n", "k": "values, k"}
    panels = []
    for size, fixed in (("k", "n"), ("n", "k")):
        some = [dict(row) for row in rows if row[fixed] == most[fixed]]
        heading = f"growth in {size} ({fixed} = {most[fixed]:,})"
        panels.append(_growth_panel(some, size, words[size]).properties(title=heading))
    chart: Any = (
        alt.hconcat(*panels)
        .resolve_scale(y="shared")
        .properties(title=alt.TitleParams(title, anchor="start", fontSize=15, offset=12))
        .configure_axis(labelFontSize=11, titleFontSize=12)
        .configure_legend(labelFontSize=12, symbolSize=90)
    )
    return chart


def _growth_panel(rows: list[dict[str, Any]], size: str, title: str) -> Any:
    alt = altair()
    names = list(dict.fromkeys(row["mechanism"] for row in rows))
    sizes = sorted({row[size] for row in rows})
    across = alt.Scale(type="log", domain=[sizes[0] * 0.8, sizes[-1] * 1.25], nice=False)
    tens = [10.0**j for j in range(-6, 7)]
    colours = alt.Scale(domain=names, range=list(COLOURS[: len(names)]))
    shapes = alt.Scale(domain=names, range=list(SHAPES[: len(names)]))
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X(f"{size}:Q", title=title, scale=across, axis=alt.Axis(values=sizes, format="~s")),
        y=alt.Y(
            "seconds:Q",
            title="seconds",
            scale=alt.Scale(type="log"),
            axis=alt.Axis(values=tens, format="~g"),
        ),
        color=alt.Color("mechanism:N", title=None, scale=colours),
    )
    shape = alt.Shape("mechanism:N", title=None, scale=shapes)
    points = base.mark_point(filled=True, size=80, opacity=1).encode(shape=shape)
    return alt.layer(base.mark_line(strokeWidth=2), points).properties(width=330, height=300)
