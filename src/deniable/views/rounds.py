"""Repeated collections: shares or means over the rounds, and what changed between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats
from deniable.core.domain import Label
from deniable.core.mechanism import Labelled
from deniable.exports import SHOWN
from deniable.rounds.changes import Changes
from deniable.rounds.series import Series
from deniable.views import chart, table
from deniable.views.charts import (
    COLOURS,
    STEP,
    WIDTH,
    Spec,
    counted,
    interval,
    label_of,
    number,
    percent,
    places,
    whole,
)
from deniable.views.tables import WORD_WIDTH, numbers_right, plain, rich_table

if TYPE_CHECKING:
    from rich.table import Table

SERIES_WIDTH, HEIGHT = 560, 320


@chart.register(Series)
def series_chart(
    series: Series,
    truth: Labelled | None = None,
    values: Iterable[Label] | None = None,
    changes: Changes | None = None,
    *,
    title: str | None = None,
) -> Spec:
    """A line with a band of intervals for each of some values: the most frequent, or the mean.

    ``truth`` (of a simulation; rounds x values, or values if it is stable) is dotted. A triangle
    above an interval says that the value was flagged as more frequent than in the round it was
    compared with; one below, as less frequent. What has labels is aligned by them.
    """
    known = None if truth is None else series.aligned(truth)
    drawn = series.most_frequent(values)[: len(COLOURS)]
    rows = _rows(series, known, drawn, changes)
    body = {
        "width": SERIES_WIDTH,
        "height": HEIGHT,
        "data": {"values": rows},
        "encoding": {"x": _rounds(series), "color": _colours(series, drawn)},
        "layer": [*_lines(series, known is not None), *_marks(series, rows)],
    }
    first = series.estimates[0]
    return whole(
        body,
        title=title or f"{first.title} in {series.words}",
        caption=_caption(series, known is not None, len(drawn), changes),
        details=f"{first.method}, {series.interval_words}; {first.source}",
    )


def _rounds(series: Series) -> Spec:
    """Rounds in order along x; where there are too many for their labels, some are left out."""
    labels = [str(label) for label in series.rounds]
    axis = {"labelAngle": _angle(labels), "labelExpr": label_of(labels)}
    axis |= {"labelOverlap": True, "labelLimit": 120}
    return {"field": "at", "type": "ordinal", "title": "round", "axis": axis}


def _angle(labels: Sequence[str]) -> int:
    """Labels lie flat as long as there is room for them."""
    return 0 if sum(len(label) + 2 for label in labels) * 6 < SERIES_WIDTH else -45


def _colours(series: Series, drawn: Sequence[int]) -> Spec:
    """A colour for each value."""
    some = list(range(len(drawn)))
    return {
        "field": "place",
        "type": "nominal",
        "title": None,
        "scale": {"domain": some, "range": list(COLOURS[: len(some)])},
        "legend": {
            "labelExpr": label_of(series.values[i] for i in drawn),
            "symbolType": "circle",
        },
    }


def _lines(series: Series, with_truth: bool) -> list[Spec]:
    """Estimates with their intervals, and the truth; the interval of one round is a rule."""
    number, band = _along(series, "number", _words(series)), {"y": _along(series, "low")}
    band |= {"y2": {"field": "high"}}
    layers: list[Spec] = [
        {"mark": {"type": "area", "opacity": 0.16}, "encoding": band},
        {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {"y": number}},
        {
            "mark": {"type": "point", "filled": True, "size": 42, "opacity": 1},
            "encoding": {"y": number},
        },
    ]
    if len(series.rounds) == 1:
        layers.append({"mark": {"type": "rule", "strokeWidth": 1.5}, "encoding": band})
    if with_truth:
        dotted = {"type": "line", "strokeWidth": 1.5, "strokeDash": [2, 3]}
        layers.append({"mark": dotted, "encoding": {"y": _along(series, "truth")}})
    return layers


def _words(series: Series) -> str:
    """What the numbers are."""
    if not series.quantities[0].share:
        return series.quantities[0].words
    people = "those who answered" if series.estimates[0].skipped else "respondents"
    return f"share of {people}"


def _along(series: Series, field: str, words: str | None = None) -> Spec:
    """The axis of the numbers; that of other numbers than shares need not begin at 0."""
    if series.quantities[0].share:
        return percent(field, words)
    return number(field, words, scale={"zero": False})


def _rows(
    series: Series, truth: Floats | None, drawn: Sequence[int], changes: Changes | None
) -> list[dict[str, Any]]:
    marks = _flags(changes)
    rows = []
    for r, (label, one) in enumerate(zip(series.rounds, series.quantities, strict=True)):
        for place, i in enumerate(drawn):
            low, high = one.intervals[i].tolist()
            row = {
                "round": str(label),
                "value": str(series.values[i]),
                "at": r,
                "place": place,
                "number": float(one.values[i]),
                "low": low,
                "high": high,
                "change": marks.get((label, series.values[i]), ""),
            }
            rows.append(row if truth is None else {**row, "truth": float(truth[r, i])})
    return rows


def _flags(changes: Changes | None) -> dict[tuple[Any, Any], str]:
    """Of each flagged (round, value): whether it is more or less than before."""
    if changes is None:
        return {}
    return {
        (changes.pairs[pair][1], changes.values[i]): "up"
        if changes.differences[pair, i] > 0
        else "down"
        for pair, i in np.argwhere(changes.flagged)
    }


def _marks(series: Series, rows: list[dict[str, Any]]) -> list[Spec]:
    """Triangles beyond the intervals of flagged values, in the colour of the value."""
    layers = []
    for change, end, away in (("up", "high", -11), ("down", "low", 11)):
        if any(row["change"] == change for row in rows):
            triangle = {"type": "point", "shape": f"triangle-{change}", "filled": True}
            triangle |= {"size": 130, "opacity": 1, "yOffset": away, "strokeWidth": 1}
            layers.append(
                {
                    "transform": [{"filter": f"datum.change === '{change}'"}],
                    "mark": triangle,
                    "encoding": {"y": _along(series, end)},
                }
            )
    return layers


def _caption(series: Series, with_truth: bool, drawn: int, changes: Changes | None) -> str:
    level = series.estimates[0].level
    said = [
        f"{counted(sum(series.n), 'answer')} in {series.words}.",
        f"Lines show estimates; bands show {level} intervals.",
    ]
    if changes is not None:
        risk = f"{100 * changes.false_alarm:.6g} %"
        said.append(
            f"Triangles mark changes ({changes.respondents} respondents; "
            f"any false alarm has a chance of at most {risk})."
        )
    if with_truth:
        said.append("Dotted lines show the simulated truth.")
    if drawn < len(series.values):
        said.append(f"{drawn} of {len(series.values)} values are shown.")
    return " ".join(said)


@chart.register(Changes)
def changes_chart(changes: Changes, *, title: str | None = None, most: int = SHOWN) -> Spec:
    """The clearest differences with their intervals; flagged ones are filled."""
    shown = changes.shown(most)
    rows, names = [], []
    for place, i in enumerate(shown):
        pair, v = divmod(i, len(changes.values))
        low, high = changes.intervals[pair, v].tolist()
        one = {"place": place, "difference": float(changes.differences[pair, v])}
        rows.append({**one, "low": low, "high": high, "flagged": bool(changes.flagged[pair, v])})
        first, second = changes.pairs[pair]
        names.append(f"{changes.values[v]}: {first} to {second}")
    x = percent("difference", "change of the share")
    point = {"type": "point", "style": "point", "size": 90, "opacity": 1}
    flagged = [{"filter": "datum.flagged"}]
    body = {
        "width": WIDTH,
        "height": STEP * len(rows),
        "data": {"values": rows},
        "encoding": {"y": places(names)},
        "layer": [
            {
                **_zero(),
                "encoding": {
                    "x": {"datum": 0, "type": "quantitative"},
                    "y": {"value": 0},
                    "y2": {"value": STEP * len(rows)},
                },
            },
            *interval({**x, "field": "low"}, "high"),
            {"mark": point, "encoding": {"x": x}},
            {"mark": {**point, "filled": True}, "encoding": {"x": x}, "transform": flagged},
        ],
    }
    left_out = changes.cut(len(shown), changes.flagged.size)
    risk = f"{100 * changes.false_alarm:.6g} %"
    said = [
        f"{counted(int(changes.flagged.sum()), 'change')} flagged (filled points).",
        f"Any false alarm has a chance of at most {risk}. Lines show {changes.interval_words}.",
        f"{left_out[0].upper()}{left_out[1:]} are shown." if left_out else "",
    ]
    return whole(
        body,
        title=title or "Changes between rounds",
        caption=" ".join(filter(None, said)),
        details=f"{changes.test} tests, {changes.respondents} respondents; {changes.source}",
    )


def _zero() -> Spec:
    return {"mark": {"type": "rule", "style": "quiet", "strokeDash": [4, 3]}}


@table.register(Series)
def series_table(series: Series, values: Iterable[Label] | None = None, width: int = 80) -> Table:
    """A row for each round: n, and a frequency with its interval for some values.

    It shows as many of ``values``, by default the most frequent, as fit into ``width``.
    """
    from rich.text import Text

    wanted = series.most_frequent(values)
    rows: list[dict[str, Any]] = [
        {"round": str(label), "n": f"{n:,}"}
        for label, n in zip(series.rounds, series.n, strict=True)
    ]
    cells = _with_intervals(series, wanted)
    wide = max(map(len, cells.flat))
    left = min(max(len(row["round"]) for row in rows), WORD_WIDTH)
    left += max(len(row["n"]) for row in rows)
    # Rich adds three characters to each column and one to the table.
    shown = wanted[: max(1, (width - 1 - left - 2 * 3) // (wide + 3))]
    for row, line in zip(rows, cells, strict=True):
        row |= {str(i): cell for i, cell in zip(shown, line, strict=False)}
    k = len(series.values)
    cut = f"; {len(shown)} of {k} values" if len(shown) < k else ""
    found = rich_table(rows, str(series), f"in brackets: {series.interval_words}{cut}")
    numbers_right(found, 1)
    for i, column in zip(shown, found.columns[2:], strict=True):
        column.header, column.width = Text(plain(series.values[i])), wide
        column.no_wrap, column.overflow = False, "fold"  # a long name takes several lines
    return found


def _with_intervals(series: Series, wanted: Sequence[int]) -> NDArray[np.str_]:
    """Rounds x values, such as 0.502 [0.483, 0.521]; half an interval is 5 last digits or more."""
    limits = series.intervals[:, wanted]
    narrow = max(float(np.diff(limits, axis=2).min()) / 2, 1e-6)
    least = 3 if series.quantities[0].share else 0
    digits = int(np.clip(np.ceil(np.log10(5 / narrow)), least, 6))
    return np.array(
        [
            [
                f"{f:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"
                for f, (low, high) in zip(*line, strict=True)
            ]
            for line in zip(series.numbers[:, wanted], limits, strict=True)
        ]
    )


@table.register(Changes)
def changes_table(changes: Changes) -> Table:
    """A row for each flagged change, the clearest first; the clearest of all if none is flagged."""
    flagged = int(changes.flagged.sum())
    rows = []
    for i in changes.shown(max(1, min(flagged, SHOWN))):
        pair, v = divmod(i, len(changes.values))
        low, high = changes.intervals[pair, v]
        rows.append(
            {
                "from": str(changes.pairs[pair][0]),
                "to": str(changes.pairs[pair][1]),
                "value": str(changes.values[v]),
                "change": f"{changes.differences[pair, v]:+.4f}",
                "interval": f"{low:+.4f} .. {high:+.4f}",
                "p-value": _p_value(float(changes.p_values[pair, v])),
            }
        )
    limit = f"any false alarm: at most {100 * changes.false_alarm:.6g} %"
    cut = f"; the {SHOWN} clearest" if flagged > SHOWN else ""
    only = "" if flagged else "; nothing is flagged, the clearest comparison is shown"
    caption = f"{limit}; {changes.interval_words}; p-values adjusted{cut}{only}"
    found = numbers_right(rich_table(rows, str(changes), caption), 3)
    for column in found.columns[:3]:
        column.min_width, column.overflow = None, "fold"  # where it is narrow, numbers come first
    return found


def _p_value(p: float) -> str:
    """Two digits; what is 0 in floats is not 0."""
    return f"{p:.2g}" if p > 1e-300 else "<1e-300"
