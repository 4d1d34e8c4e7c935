"""Charts from the rows of a result: the tables as dots, the figures as lines."""

from __future__ import annotations

from collections.abc import Sequence
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
        key = str(row["data"]).partition(" ")[0], str(row["attribute"])
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
        elif one.where.endswith(", corrected") and one.cell["reading"] in OURS:
            for name in MECHANISMS:
                found.append({**one.cell, "mechanism": name, "value": one.cell[name]})
    return found


def _panel(rows: list[dict[str, Any]], key: tuple[str, str], epsilon: float) -> Any:
    alt = altair()
    first, top = epsilon == min(TABLES), key == ("Statlog", "A4")
    axis = alt.Axis(labels=first, ticks=False, domain=False, grid=True)
    title = " ".join(key) if first else None
    y = alt.Y("mechanism:N", sort=list(MECHANISMS), title=title, axis=axis)
    scale = alt.Scale(type="sqrt", zero=True, nice=False)
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
    halves = [
        alt.vconcat(*(_line_of_panels(results, number, reading) for number in FIGURES)).properties(
            title=alt.TitleParams(f"{words}", fontSize=14, color=INK)
        )
        for reading, words in (
            (AS_PUBLISHED, "settings as published (bRAPPOR has epsilon ln 3 everywhere)"),
            (DEFAULT, "correct settings, one decoder for all"),
        )
    ]
    title = alt.TitleParams(
        "Mean absolute error against the number of respondents (Figures 2-5)",
        subtitle="geometric distribution of mean d / 5; both axes logarithmic",
        anchor="start",
        offset=12,
        fontSize=15,
    )
    return alt.hconcat(*halves, spacing=30).properties(title=title)


def _line_of_panels(results: Sequence[Result], number: int, reading: str) -> Any:
    alt = altair()
    rows = [
        {**one.cell, "mechanism": name, "value": one.cell[name]}
        for one in results
        if one.where.startswith(f"Figure {number}") and one.cell.get("reading") == reading
        for name in MECHANISMS
    ]
    epsilons = sorted({float(row["epsilon"]) for row in rows})
    return alt.hconcat(
        *(_curves([row for row in rows if row["epsilon"] == e], number, e) for e in epsilons)
    ).resolve_scale(y="shared")


def _curves(rows: list[dict[str, Any]], number: int, epsilon: float) -> Any:
    alt = altair()
    sizes = sorted({row["n"] for row in rows})
    across = alt.Scale(type="log", domain=[sizes[0] * 0.85, sizes[-1] * 1.18], nice=False)
    ticks = [sizes[0], sizes[len(sizes) // 2], sizes[-1]]
    colours = alt.Scale(domain=list(MECHANISMS), range=list(COLOURS[: len(MECHANISMS)]))
    shapes = alt.Scale(domain=list(MECHANISMS), range=list(SHAPES[: len(MECHANISMS)]))
    first = epsilon == min(TABLES)
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("n:Q", title=None, scale=across, axis=alt.Axis(values=ticks, format="~s")),
        y=alt.Y(
            "value:Q",
            title=f"d = {FIGURES[number][0]}" if first else None,
            scale=alt.Scale(type="log"),
            axis=alt.Axis(format="~g", labels=first),
        ),
        color=alt.Color("mechanism:N", title=None, scale=colours),
    )
    points = base.mark_point(filled=True, size=34, opacity=1).encode(
        shape=alt.Shape("mechanism:N", title=None, scale=shapes)
    )
    heading = alt.TitleParams(f"epsilon = {epsilon:g}", fontSize=11)
    return alt.layer(base.mark_line(strokeWidth=1.6), points).properties(
        width=150, height=120, title=heading
    )
