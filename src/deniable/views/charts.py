"""The parts that charts are made of: pieces of Vega-Lite specifications.

Colours of marks are names of styles (`STYLES`), and everything that depends on light and dark is in
``config``: a page with another theme replaces that and nothing else.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Spec = dict[str, Any]

INK, SOFT, LINE = "#1f2937", "#566273", "#d8dee7"
BAR = "#8fb3d9"
TRUTH = "#d9480f"
#: Marks and lines that colour-blind readers can tell apart (Okabe and Ito).
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#000000")
SHAPES = ("circle", "square", "triangle-up", "cross", "diamond", "triangle-down", "triangle-left")
#: The width of a plot, and the height of a row with a bar, in pixels.
WIDTH, STEP = 520, 24
#: Rows drawn at most; a chart with more cannot be read.
DRAWN = 60
#: Characters of a line above a plot, in the size of a title and of what stands below it; and of
#: the technical line, which is this high.
TITLE, WORDS, SMALL_WORDS, SMALL_LINE = 60, 92, 120, 12
#: What belongs to a chart, and not to one of the plots in it.
OF_WHOLE = ("$schema", "description", "title", "config", "usermeta")
#: Labelled places of an axis of shares, about.
TICKS = 6
#: Lines of a title at most.
LINES = 3

STYLES = {
    "estimate": {"color": BAR},
    "point": {"color": COLOURS[0]},
    "interval": {"color": INK},
    "truth": {"color": TRUTH},
    "quiet": {"color": "#6b7280"},
    "details": {
        "color": SOFT,
        "fontSize": 9,
        "align": "left",
        "baseline": "top",
        "lineHeight": SMALL_LINE,
    },
}
CONFIG: Spec = {
    "view": {"stroke": LINE},
    "axis": {
        "labelColor": INK,
        "titleColor": SOFT,
        "titleFontWeight": "normal",
        "gridColor": LINE,
        "domainColor": LINE,
        "tickColor": LINE,
        "labelFontSize": 11,
        "titleFontSize": 11,
    },
    "axisY": {"labelLimit": 240},
    "legend": {
        "labelColor": INK,
        "labelFontSize": 12,
        "labelLimit": 220,
        "symbolSize": 90,
        "symbolOpacity": 1,
    },
    "title": {
        "anchor": "start",
        "color": INK,
        "fontSize": 15,
        "subtitleColor": SOFT,
        "subtitleFontSize": 11,
        "subtitleLineHeight": 15,
        "subtitlePadding": 6,
        "offset": 12,
    },
    "style": STYLES,
}


def whole(
    body: Mapping[str, Any],
    *,
    title: str,
    caption: str,
    details: str = "",
    columns: Mapping[str, Sequence[str]] | None = None,
) -> Spec:
    """A chart: the question above it, what its marks are, and in small below how it was made.

    ``usermeta`` has the words for pages that have places of their own for them, and ``columns``,
    the numbers as a person reads them. A file has no such places: there the chart is `printed`.
    """
    words = {"caption": caption, "details": details}
    return {
        "description": f"{title}{'' if title.endswith(('.', '?', '!')) else '.'} {caption}",
        "title": heading(title, caption),
        **body,
        "config": CONFIG,
        "usermeta": words if columns is None else {**words, "columns": dict(columns)},
    }


def printed(spec: Spec) -> Spec:
    """The chart as files have it, with the technical line in small below."""
    lines = textwrap.wrap(spec.get("usermeta", {}).get("details", ""), SMALL_WORDS)
    if not lines:
        return spec
    above = {name: spec[name] for name in OF_WHOLE if name in spec}
    body = {name: part for name, part in spec.items() if name not in OF_WHOLE}
    note = {
        "data": {"values": [{}]},
        "width": WIDTH,
        "height": SMALL_LINE * len(lines),
        "view": {"stroke": None},
        "mark": {"type": "text", "style": "details", "text": lines},
        "encoding": {"x": {"value": 0}, "y": {"value": 0}},
    }
    return {**above, "vconcat": [body, note], "spacing": 10}


def heading(title: str, *words: str) -> Spec:
    """Lines that fit above a plot; a very long title is cut."""
    lines = textwrap.wrap(title, TITLE, max_lines=LINES, placeholder=" …") or [""]
    subtitle = [line for some in words for line in textwrap.wrap(some, WORDS)]
    return {"text": lines, "subtitle": subtitle} if subtitle else {"text": lines}


def label_of(names: Iterable[Any]) -> str:
    """The expression of a label, for values that stand in a chart as their places 0, 1, 2, ...

    Vega keeps categories, and the texts of expressions, as keys of objects: __proto__ cannot be one
    and constructor is there already. A blank before each text makes it another.
    """
    return f"slice({json.dumps([f' {name}' for name in names])}[datum.value], 1)"


def places(names: Iterable[Any]) -> Spec:
    """The channel y of rows that have a ``place`` 0, 1, 2, ..., each with a name."""
    return {
        "field": "place",
        "type": "ordinal",
        "title": None,
        "axis": {"labelExpr": label_of(names)},
    }


def number(field: str, title: str | None = None, **more: Any) -> Spec:
    """A channel for numbers; without a title that of another layer stands."""
    titled = {} if title is None else {"title": title}
    return {"field": field, "type": "quantitative", **titled, **more}


def percent(field: str, title: str | None = None, **more: Any) -> Spec:
    """A channel for shares."""
    return number(field, title, axis={"format": "~%", "tickCount": TICKS}, **more)


def interval(low: Spec, high: str, axis: str = "x") -> list[Spec]:
    """A line from a channel's number to another field, with a cap at both ends."""
    cap = {"type": "tick", "style": "interval", "thickness": 1.5, "height": 10, "opacity": 1}
    rule = {"type": "rule", "style": "interval", "strokeWidth": 1.5}
    return [
        {"mark": rule, "encoding": {axis: low, f"{axis}2": {"field": high}}},
        {"mark": cap, "encoding": {axis: low}},
        {"mark": cap, "encoding": {axis: {**low, "field": high}}},
    ]


def line_at(name: str, at: float, axis: str = "x") -> Spec:
    """A line across the plot, at a promise or a bound."""
    return {
        "data": {"values": [{name: at}]},
        "mark": {"type": "rule", "style": "truth", "strokeWidth": 2},
        "encoding": {axis: {"field": name, "type": "quantitative"}},
    }


def counted(n: int, noun: str) -> str:
    """How many there are, in words."""
    return f"{n:,} {noun}{'s' * (n != 1)}"
