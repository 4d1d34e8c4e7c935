"""Charts from the rows of a result: the tables as dots, the figures as lines."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from deniable.extras import altair
from deniable.views.charts import COLOURS, INK, SHAPES
from deniable_papers.comparative.designs import AS_PUBLISHED, CORRECTED, DEFAULT
from deniable_papers.comparative.grids import FIGURES
from deniable_papers.comparative.published import MECHANISMS, ROUNDING, TABLES
from deniable_papers.results import Result

OURS = (AS_PUBLISHED, CORRECTED, DEFAULT)
PUBLISHED = "published, with its error"


def tables(results: Sequence[Result]) -> Any:
    """A panel for each attribute and epsilon; marks for the paper and our settings."""
    alt = altair()
    rows = _dots(results)
    panels = list(dict.fromkeys(row["panel"] for row in rows))
    lines = []
    for panel in panels:
        some = [(e, _top(rows, panel, e)) for e in TABLES]
        drawn = [_panel(panel, e, top, panel == panels[0]) for e, top in some]
        lines.append(alt.hconcat(*drawn, spacing=14))
    title = alt.TitleParams(
        "Mean absolute errors of Tables II-IV and ours",
        subtitle=[
            "Grey: published, two standard errors and the rounding to three digits to either side.",
            "Where grey and blue meet the settings explain the table. Square-root scales.",
            "USCensus: frequencies of a sample, with the paper's number of respondents.",
        ],
        anchor="start",
        offset=12,
    )
    return alt.vconcat(*lines, spacing=6, data=alt.Data(values=rows)).properties(title=title)


def _dots(results: Sequence[Result]) -> list[dict[str, Any]]:
    """A row for each mark."""
    found: list[dict[str, Any]] = []
    for one in results:
        if one.where in TABLES.values():
            spread, mean = ROUNDING + 2 * one.published_error, one.published or 0.0
            place = _place(one, str(one.cell["mechanism"]))
            ends = {"low": max(0.0, mean - spread), "high": mean + spread}
            found.append({**place, "reading": PUBLISHED, **ends})
            found.append({**place, "reading": AS_PUBLISHED, "value": one.ours})
        elif one.cell.get("reading") in OURS and one.where.endswith(", corrected"):
            shown = {"reading": one.cell["reading"]}
            found += [{**_place(one, m), **shown, "value": one.cell[m]} for m in MECHANISMS]
    return found


def _place(one: Result, mechanism: str) -> dict[str, Any]:
    data = str(one.cell["data"]).partition(" ")[0].removesuffix("1990")
    panel = f"{data} {one.cell['attribute']}"
    return {"panel": panel, "epsilon": one.cell["epsilon"], "mechanism": mechanism}


def _top(rows: list[dict[str, Any]], panel: str, epsilon: float) -> float:
    some = [row for row in rows if (row["panel"], row["epsilon"]) == (panel, epsilon)]
    return max(float(row["value"] if "value" in row else row["high"]) for row in some)


def _panel(panel: str, epsilon: float, top: float, titled: bool) -> Any:
    alt = altair()
    first = epsilon == min(TABLES)
    axis = alt.Axis(labels=first, ticks=False, domain=False, grid=True)
    y = alt.Y("mechanism:N", sort=list(MECHANISMS), title=panel if first else None, axis=axis)
    scale = alt.Scale(type="sqrt", domain=[0, 1.06 * top], nice=False)
    here = f"datum.panel == '{panel}' && datum.epsilon == {epsilon}"
    base = alt.Chart().transform_filter(here).encode(y=y)
    x = alt.X(
        "value:Q",
        scale=scale,
        title=None,
        axis=alt.Axis(tickCount=3, format="~g", labelOverlap="greedy"),
    )
    grey = base.transform_filter(f"datum.reading == '{PUBLISHED}'").mark_rule(
        color="#b8bec8", strokeWidth=9
    )
    published = grey.encode(x=alt.X("low:Q", scale=scale), x2="high:Q")
    heading = {"title": f"epsilon = {epsilon:g}"} if titled else {}
    layers: Any = alt.layer(published, _marks(base, x))
    return layers.properties(width=230, height=78, **heading)


def _marks(base: Any, x: Any) -> Any:
    """Our losses, a colour and a shape for each reading."""
    alt = altair()
    colours = alt.Scale(domain=list(OURS), range=[COLOURS[0], COLOURS[1], COLOURS[2]])
    shapes = alt.Scale(domain=list(OURS), range=["circle", "triangle-up", "diamond"])
    legend = alt.Legend(title=None, orient="top", symbolOpacity=1, labelFontSize=12)
    ours = base.transform_filter(f"datum.reading != '{PUBLISHED}'")
    return ours.mark_point(filled=True, size=38, opacity=0.95).encode(
        x=x,
        color=alt.Color("reading:N", scale=colours, legend=legend),
        shape=alt.Shape("reading:N", scale=shapes, legend=legend),
    )


def figures(results: Sequence[Result]) -> Any:
    """Losses against n: figures by epsilon, as published and corrected."""
    alt = altair()
    readings = {
        AS_PUBLISHED: "settings as published (bRAPPOR has epsilon ln 3 everywhere)",
        DEFAULT: "correct settings, one decoder for all",
    }
    rows = _points(results, readings)
    halves = [
        alt.vconcat(*(_line_of_panels(number, rows, reading) for number in FIGURES)).properties(
            title=alt.TitleParams(words, fontSize=14, color=INK)
        )
        for reading, words in readings.items()
    ]
    title = alt.TitleParams(
        "Mean absolute error against the number of respondents (Figures 2-5)",
        subtitle="geometric distribution of mean d / 5; both axes logarithmic",
        anchor="start",
        offset=12,
        fontSize=15,
    )
    return alt.hconcat(*halves, spacing=30, data=alt.Data(values=rows)).properties(title=title)


def _points(results: Sequence[Result], readings: Container[str]) -> list[dict[str, Any]]:
    """A row for each point of the figures."""
    return [
        {
            **{name: one.cell[name] for name in ("reading", "epsilon", "n")},
            "figure": number,
            "mechanism": mechanism,
            "value": one.cell[mechanism],
        }
        for number in FIGURES
        for one in results
        if one.where.startswith(f"Figure {number}") and one.cell.get("reading") in readings
        for mechanism in MECHANISMS
    ]


def _line_of_panels(number: int, rows: list[dict[str, Any]], reading: str) -> Any:
    """The panels of a figure; both readings have the same scales."""
    alt = altair()
    some = [row for row in rows if row["figure"] == number]
    values = [row["value"] for row in some]
    scale = alt.Scale(type="log", domain=[0.85 * min(values), 1.2 * max(values)], nice=False)
    sizes = sorted({row["n"] for row in some})
    across = alt.Scale(type="log", domain=[sizes[0] * 0.85, sizes[-1] * 1.18], nice=False)
    ticks = alt.Axis(values=[sizes[0], sizes[len(sizes) // 2], sizes[-1]], format="~s")
    x = alt.X("n:Q", title=None, scale=across, axis=ticks)
    panels = []
    for epsilon in TABLES:
        words = f"Figure {number}, d = {FIGURES[number][0]}" if epsilon == min(TABLES) else None
        axis = alt.Axis(format="~g", labels=words is not None, tickCount=4)
        y = alt.Y("value:Q", title=words, scale=scale, axis=axis)
        here = f"datum.figure == {number} && datum.epsilon == {epsilon}"
        base = alt.Chart().transform_filter(f"{here} && datum.reading == '{reading}'")
        panels.append(_curves(base.encode(x=x, y=y)).properties(title=f"epsilon = {epsilon:g}"))
    return alt.hconcat(*panels)


def _curves(base: Any) -> Any:
    alt = altair()
    colours = alt.Scale(domain=list(MECHANISMS), range=list(COLOURS[: len(MECHANISMS)]))
    shapes = alt.Scale(domain=list(MECHANISMS), range=list(SHAPES[: len(MECHANISMS)]))
    legend = alt.Legend(orient="top", labelFontSize=12, symbolSize=90)
    lines = base.encode(color=alt.Color("mechanism:N", title=None, scale=colours, legend=legend))
    points = lines.mark_point(filled=True, size=34, opacity=1).encode(
        shape=alt.Shape("mechanism:N", title=None, scale=shapes, legend=legend)
    )
    return alt.layer(lines.mark_line(strokeWidth=1.6), points).properties(width=160, height=130)
