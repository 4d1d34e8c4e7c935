"""Charts from the rows of a result: the tables as dots, the figures as lines."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from deniable.extras import altair
from deniable.studio.charts import COLOURS, INK, SHAPES
from deniable.studio.papers.comparative.designs import AS_PUBLISHED, CORRECTED, DEFAULT
from deniable.studio.papers.comparative.grids import FIGURES
from deniable.studio.papers.comparative.published import MECHANISMS, ROUNDING, TABLES
from deniable.studio.papers.results import Result

OURS = (AS_PUBLISHED, CORRECTED, DEFAULT)
PUBLISHED = "published, with its error"


def tables(results: Sequence[Result]) -> Any:
    """A panel for each attribute and epsilon; marks for the paper and our settings."""
    alt = altair()
    panels: dict[tuple[str, str], dict[float, list[dict[str, Any]]]] = {}
    for row in _dots(results):
        key = str(row["data"]).partition(" ")[0].removesuffix("1990"), str(row["attribute"])
        panels.setdefault(key, {}).setdefault(row["epsilon"], []).append(row)
    lines = [
        alt.hconcat(*(_panel(rows, key, e) for e, rows in some.items()), spacing=14)
        for key, some in panels.items()
    ]
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
    return alt.vconcat(*lines, spacing=6).properties(title=title)


def _dots(results: Sequence[Result]) -> list[dict[str, Any]]:
    """A row for each mark."""
    found = []
    for one in results:
        if one.where in TABLES.values():
            spread = ROUNDING + 2 * one.published_error
            low, high = max(0.0, (one.published or 0) - spread), (one.published or 0) + spread
            found.append({**one.cell, "reading": PUBLISHED, "low": low, "high": high})
            found.append({**one.cell, "reading": AS_PUBLISHED, "value": one.ours})
        elif one.cell.get("reading") in OURS and one.where.startswith("Table"):
            for name in MECHANISMS:
                found.append({**one.cell, "mechanism": name, "value": one.cell[name]})
    return found


def _panel(rows: list[dict[str, Any]], key: tuple[str, str], epsilon: float) -> Any:
    alt = altair()
    first, top = epsilon == min(TABLES), key == ("Statlog", "A4")
    axis = alt.Axis(labels=first, ticks=False, domain=False, grid=True)
    title = " ".join(key) if first else None
    y = alt.Y("mechanism:N", sort=list(MECHANISMS), title=title, axis=axis)
    top_value = max(row.get("value", row.get("high")) for row in rows)
    scale = alt.Scale(type="sqrt", domain=[0, 1.06 * top_value], nice=False)
    base = alt.Chart(alt.Data(values=rows)).encode(y=y)
    x = alt.X("value:Q", scale=scale, title=None, axis=alt.Axis(tickCount=4, format="~g"))
    colours = alt.Scale(domain=list(OURS), range=[COLOURS[0], COLOURS[1], COLOURS[2]])
    shapes = alt.Scale(domain=list(OURS), range=["circle", "triangle-up", "diamond"])
    legend = alt.Legend(title=None, orient="top", symbolOpacity=1, labelFontSize=12)
    grey = base.transform_filter(f"datum.reading == '{PUBLISHED}'").mark_rule(
        color="#b8bec8", strokeWidth=9
    )
    marks = base.transform_filter(f"datum.reading != '{PUBLISHED}'").mark_point(
        filled=True, size=38, opacity=0.95
    )
    drawn = marks.encode(
        x=x,
        color=alt.Color("reading:N", scale=colours, legend=legend),
        shape=alt.Shape("reading:N", scale=shapes, legend=legend),
    )
    panel: Any = alt.layer(grey.encode(x=alt.X("low:Q", scale=scale), x2="high:Q"), drawn)
    panel = panel.properties(width=230, height=78)
    return panel.properties(title=f"epsilon = {epsilon:g}") if top else panel


def figures(results: Sequence[Result]) -> Any:
    """Losses against n: figures by epsilon, as published and corrected."""
    alt = altair()
    readings = {
        AS_PUBLISHED: "settings as published (bRAPPOR has epsilon ln 3 everywhere)",
        DEFAULT: "correct settings, one decoder for all",
    }
    lines = {number: _curve_rows(results, number, readings) for number in FIGURES}
    halves = [
        alt.vconcat(
            *(_line_of_panels(number, rows, reading) for number, rows in lines.items())
        ).properties(title=alt.TitleParams(words, fontSize=14, color=INK))
        for reading, words in readings.items()
    ]
    title = alt.TitleParams(
        "Mean absolute error against the number of respondents (Figures 2-5)",
        subtitle="geometric distribution of mean d / 5; both axes logarithmic",
        anchor="start",
        offset=12,
        fontSize=15,
    )
    return alt.hconcat(*halves, spacing=30).properties(title=title)


def _curve_rows(
    results: Sequence[Result], number: int, readings: Container[str]
) -> list[dict[str, Any]]:
    """A row for each point of a figure."""
    return [
        {**one.cell, "mechanism": name, "value": one.cell[name]}
        for one in results
        if one.where.startswith(f"Figure {number}") and one.cell.get("reading") in readings
        for name in MECHANISMS
    ]


def _line_of_panels(number: int, rows: list[dict[str, Any]], reading: str) -> Any:
    """The panels of a figure; both readings have the same scale."""
    alt = altair()
    values = [row["value"] for row in rows]
    scale = alt.Scale(type="log", domain=[0.85 * min(values), 1.2 * max(values)], nice=False)
    some = [row for row in rows if row["reading"] == reading]
    panels = []
    for epsilon in TABLES:
        words = f"Figure {number}, d = {FIGURES[number][0]}" if epsilon == min(TABLES) else None
        axis = alt.Axis(format="~g", labels=words is not None, tickCount=4)
        y = alt.Y("value:Q", title=words, scale=scale, axis=axis)
        points = [row for row in some if row["epsilon"] == epsilon]
        panels.append(_curves(points, y).properties(title=f"epsilon = {epsilon:g}"))
    return alt.hconcat(*panels)


def _curves(rows: list[dict[str, Any]], y: Any) -> Any:
    alt = altair()
    sizes = sorted({row["n"] for row in rows})
    across = alt.Scale(type="log", domain=[sizes[0] * 0.85, sizes[-1] * 1.18], nice=False)
    ticks = [sizes[0], sizes[len(sizes) // 2], sizes[-1]]
    colours = alt.Scale(domain=list(MECHANISMS), range=list(COLOURS[: len(MECHANISMS)]))
    shapes = alt.Scale(domain=list(MECHANISMS), range=list(SHAPES[: len(MECHANISMS)]))
    legend = alt.Legend(orient="top", labelFontSize=12, symbolSize=90)
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("n:Q", title=None, scale=across, axis=alt.Axis(values=ticks, format="~s")),
        y=y,
        color=alt.Color("mechanism:N", title=None, scale=colours, legend=legend),
    )
    points = base.mark_point(filled=True, size=34, opacity=1).encode(
        shape=alt.Shape("mechanism:N", title=None, scale=shapes, legend=legend)
    )
    return alt.layer(base.mark_line(strokeWidth=1.6), points).properties(width=160, height=130)
