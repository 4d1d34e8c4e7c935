"""Charts in the style of the figures, from the rows of a result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deniable.extras import altair
from deniable.views.charts import COLOURS, SHAPES
from deniable_papers.ibu.designs import LONGITUDINAL, ONE_TIME
from deniable_papers.ibu.findings import DECODERS, label
from deniable_papers.ibu.published import AVERAGE, DISTRIBUTIONS
from deniable_papers.results import Result

INK = "#1f2937"
STARRED = "* Real: ACS incomes that stand in for the paper's"
KINDS = {"one-time": ONE_TIME, "longitudinal": LONGITUDINAL}


def _cells(results: Sequence[Result], where: str) -> list[dict[str, Any]]:
    found = [one for one in results if one.where == where]
    rows = [{**one.cell, "value": one.ours, "published": one.published} for one in found]
    for row in rows:
        if "distribution" in row:
            row["distribution"] = _starred(label(str(row["distribution"])))
    return rows


def _starred(name: str) -> str:
    return "Real*" if name == "Real" else name


def _titled(chart: Any, title: str, subtitle: str) -> Any:
    alt = altair()
    heading = alt.TitleParams(title, subtitle=subtitle, anchor="start", offset=12)
    return chart.properties(title=heading)


def real(results: Sequence[Result]) -> Any:
    """Figures 1-2: the gain of each mechanism on incomes, as run and corrected."""
    alt = altair()
    lines = []
    for number, mechanisms in enumerate(KINDS.values(), 1):
        rows = _cells(results, f"Figure {number}")
        averages = _cells(results, f"Figure {number}, AvgGain")
        panels = [
            _bars([row for row in rows if row["epsilon"] == epsilon], mechanisms).properties(
                title=alt.TitleParams(f"Figure {number}, {_panel(epsilon, averages)}", fontSize=12)
            )
            for epsilon in dict.fromkeys(row["epsilon"] for row in rows)
        ]
        lines.append(alt.hconcat(*panels).resolve_scale(y="shared"))
    title = "Gain of IBU over MI in MSE, incomes*, n = 20,000, k = 100 (Figures 1 and 2)"
    subtitle = "* ACS incomes that stand in for the paper's; a gain below 0 is shown as 0"
    return _titled(alt.vconcat(*lines), title, subtitle)


def _panel(epsilon: float, averages: list[dict[str, Any]]) -> str:
    gains = {row["setting"]: row["value"] for row in averages if row["epsilon"] == epsilon}
    told = ", ".join(f"{gain:.0f} % {setting}" for setting, gain in gains.items())
    return f"epsilon {epsilon:g}: average {told}"


def _bars(rows: list[dict[str, Any]], order: Sequence[str]) -> Any:
    alt = altair()
    colours = alt.Scale(domain=["as run", "corrected"], range=[COLOURS[1], COLOURS[0]])
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("mechanism:N", sort=list(order), title=None, axis=alt.Axis(labelAngle=-35)),
        y=alt.Y("value:Q", title="gain, %", scale=alt.Scale(domain=[0, 100])),
        xOffset=alt.XOffset("setting:N", sort=["as run", "corrected"]),
        color=alt.Color("setting:N", title=None, scale=colours),
    )
    text = base.mark_text(dy=-6, fontSize=9, color=INK).encode(
        text=alt.Text("value:Q", format=".0f"), color=alt.value(INK)
    )
    return alt.layer(base.mark_bar(), text).properties(width=310, height=170)


def varied(results: Sequence[Result]) -> Any:
    """Figures 3-4: the mean gain of all mechanisms by distribution, as one setting varies."""
    alt = altair()
    lines = []
    for number, kind in enumerate(KINDS, 3):
        rows = _cells(results, f"Figure {number}")
        panels = [
            _points([row for row in rows if row["varied"] == axis], axis).properties(
                title=alt.TitleParams(f"{kind}: {axis}", fontSize=12)
            )
            for axis in ("epsilon", "n", "k")
        ]
        lines.append(alt.hconcat(*panels).resolve_scale(color="independent", shape="independent"))
    title = "Mean gain of IBU over MI in MSE, by distribution (Figures 3 and 4)"
    subtitle = f"filled: as run; hollow: corrected. {STARRED}"
    chart = alt.vconcat(*lines).resolve_scale(color="independent", shape="independent")
    return _titled(chart, title, subtitle)


def _points(rows: list[dict[str, Any]], axis: str) -> Any:
    alt = altair()
    some = [{**row, "at": f"{row[axis]:,g}"} for row in rows]
    values = list(dict.fromkeys(row["at"] for row in some))
    encoding = {
        "x": _across(),
        "y": alt.Y("value:Q", title="gain, %", scale=alt.Scale(domain=[0, 90])),
        "xOffset": alt.XOffset("at:N", sort=values),
        **_marks("at:N", values, axis),
    }
    layers = [
        alt.Chart(alt.Data(values=[row for row in some if row["setting"] == setting]))
        .mark_point(filled=setting == "as run", size=55, opacity=1)
        .encode(**encoding)
        for setting in ("as run", "corrected")
    ]
    return alt.layer(*layers).properties(width=270, height=210)


def _across() -> Any:
    """Distributions in the order of the tables."""
    alt = altair()
    order = [_starred(name) for name in DISTRIBUTIONS]
    axis = alt.Axis(labelAngle=-35, grid=True)
    return alt.X("distribution:N", sort=order, title=None, axis=axis)


def _marks(field: str, values: list[str], title: str | None) -> dict[str, Any]:
    """A colour and a shape for each value."""
    alt = altair()
    chosen = (COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[4])
    colours = alt.Scale(domain=values, range=list(chosen[: len(values)]))
    shapes = alt.Scale(domain=values, range=list(SHAPES[: len(values)]))
    return {
        "color": alt.Color(field, title=title, scale=colours),
        "shape": alt.Shape(field, title=title, scale=shapes),
    }


def tables(results: Sequence[Result]) -> Any:
    """Tables 2 and 3 (MSE) as heat maps: published, as run, corrected."""
    alt = altair()
    lines = []
    for table, mechanisms in (("Table 2", ONE_TIME), ("Table 3", LONGITUDINAL)):
        run = [row for row in _cells(results, table) if row["metric"] == "MSE"]
        right = [row for row in _cells(results, f"{table}, corrected") if row["metric"] == "MSE"]
        printed = [{**row, "value": row["published"]} for row in run]
        columns = [*mechanisms, AVERAGE]
        maps = [
            _heat_map(rows, columns).properties(title=alt.TitleParams(words, fontSize=12))
            for rows, words in (
                (printed, f"{table}, published"),
                (run, "ours, as run"),
                (right, "corrected, IBU at its limit"),
            )
        ]
        lines.append(alt.hconcat(*maps))
    title = "Average gain of IBU over MI in MSE, % (Tables 2 and 3)"
    return _titled(alt.vconcat(*lines), title, STARRED)


def _heat_map(rows: list[dict[str, Any]], columns: Sequence[str]) -> Any:
    alt = altair()
    order = [*map(_starred, DISTRIBUTIONS), AVERAGE]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("mechanism:N", sort=list(columns), title=None, axis=alt.Axis(labelAngle=-45)),
        y=alt.Y("distribution:N", sort=order, title=None),
    )
    scale = alt.Scale(domain=[0, 60], range=["#f7fbff", "#2166ac"], clamp=True)
    tiles = base.mark_rect().encode(color=alt.Color("value:Q", scale=scale, legend=None))
    ink = alt.when("datum.value > 35").then(alt.value("white"))
    text = base.mark_text(fontSize=10).encode(
        text=alt.Text("value:Q", format=".0f"), color=ink.otherwise(alt.value(INK))
    )
    return alt.layer(tiles, text).properties(width=alt.Step(32), height=alt.Step(24))


def decoders(results: Sequence[Result]) -> Any:
    """MSE relative to MI, by distribution and epsilon, on right mechanisms."""
    alt = altair()
    found = _cells(results, "MSE relative to MI")
    rows = [row for row in found if "distribution" in row]
    panels = [
        _relative([row for row in rows if row["epsilon"] == epsilon]).properties(
            title=alt.TitleParams(f"epsilon {epsilon:g}", fontSize=12)
        )
        for epsilon in dict.fromkeys(row["epsilon"] for row in rows)
    ]
    title = "MSE relative to MI (clipped and normalised), seven one-time mechanisms, k > 2"
    subtitle = f"below the line: better than MI. {STARRED}"
    return _titled(alt.hconcat(*panels), title, subtitle)


def _relative(rows: list[dict[str, Any]]) -> Any:
    alt = altair()
    names = [name for name in DECODERS if any(row["decoder"] == name for row in rows)]
    scale = alt.Scale(type="log", domain=[0.1, 2], nice=False)
    axis = alt.Axis(values=[0.1, 0.2, 0.5, 1, 2], format="~g")
    points = alt.Chart(alt.Data(values=rows)).mark_point(filled=True, size=70, opacity=1)
    shown = points.encode(
        x=_across(),
        y=alt.Y("value:Q", title="MSE / MSE of MI", scale=scale, axis=axis),
        **_marks("decoder:N", names, None),
    )
    one = alt.Chart(alt.Data(values=[{"one": 1}])).mark_rule(color="#6b7280")
    return alt.layer(one.encode(y="one:Q"), shown).properties(width=250, height=240)
