"""The chart of a repeated collection: frequencies over the rounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable.extras import altair
from deniable.studio.charts import COLOURS, INK, label_of

if TYPE_CHECKING:
    from deniable.longitudinal.changes import Changes
    from deniable.longitudinal.series import Series

WIDTH, HEIGHT = 560, 320


def series_chart(
    series: Series,
    truth: NDArray[np.float64] | None,
    places: Sequence[int],
    changes: Changes | None = None,
) -> Any:
    """A line with a band of intervals for each of some values; the truth of a simulation is dotted.

    A triangle above an interval says that the value was flagged as more frequent than in the round
    it was compared with; one below, as less frequent.
    """
    alt = altair()
    drawn = places[: len(COLOURS)]
    rows = _rows(series, truth, drawn, changes)
    base = _base(series, drawn, rows)
    layers = [*_lines(base, len(series.rounds), truth is not None), *_marks(base, rows)]
    heading = alt.TitleParams(
        f"{sum(series.n):,} reports in {series.words}",
        subtitle=_subtitle(series, truth is not None, len(drawn), changes),
        anchor="start",
    )
    return (
        alt.layer(*layers)
        .properties(width=WIDTH, height=HEIGHT, title=heading)
        .configure_legend(labelFontSize=12, symbolType="circle", symbolSize=90, symbolOpacity=1)
    )


def _base(series: Series, places: Sequence[int], rows: list[dict[str, Any]]) -> Any:
    """Rounds in order along x, and a colour a value."""
    alt = altair()
    drawn = list(range(len(places)))
    colours = alt.Scale(domain=drawn, range=list(COLOURS[: len(drawn)]))
    legend = alt.Legend(labelExpr=label_of(series.values[i] for i in places))
    order = [str(label) for label in series.rounds]
    axis = alt.Axis(labelAngle=_angle(order), labelExpr=label_of(order))
    return alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("at:O", title="round", axis=axis),
        color=alt.Color("place:N", title=None, scale=colours, legend=legend),
    )


def _lines(base: Any, rounds: int, with_truth: bool) -> list[Any]:
    """Estimates with their intervals, and the truth; the interval of one round is a rule."""
    share = altair().Y("frequency:Q", title="share of respondents")
    layers = [
        base.mark_area(opacity=0.16).encode(y="low:Q", y2="high:Q"),
        base.mark_line(strokeWidth=2).encode(y=share),
        base.mark_point(filled=True, size=42, opacity=1).encode(y=share),
    ]
    if rounds == 1:
        layers.append(base.mark_rule(strokeWidth=1.5).encode(y="low:Q", y2="high:Q"))
    if with_truth:
        layers.append(base.mark_line(strokeWidth=1.5, strokeDash=[2, 3]).encode(y="truth:Q"))
    return layers


def _rows(
    series: Series,
    truth: NDArray[np.float64] | None,
    places: Sequence[int],
    changes: Changes | None,
) -> list[dict[str, Any]]:
    marks = _flags(changes)
    rows = []
    for r, (label, estimate) in enumerate(zip(series.rounds, series.estimates, strict=True)):
        for place, i in enumerate(places):
            low, high = estimate.intervals[i].tolist()
            row = {
                "round": str(label),
                "value": str(series.values[i]),
                "at": r,
                "place": place,
                "frequency": float(estimate.frequencies[i]),
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


def _marks(base: Any, rows: list[dict[str, Any]]) -> list[Any]:
    """Triangles beyond the intervals of flagged values, in the colour of the value."""
    alt = altair()
    layers = []
    for change, end, away in (("up", "high", -11), ("down", "low", 11)):
        if any(row["change"] == change for row in rows):
            triangle = base.mark_point(
                shape=f"triangle-{change}",
                filled=True,
                size=130,
                opacity=1,
                yOffset=away,
                stroke=INK,
                strokeWidth=1,
            )
            flagged = alt.datum.change == change
            layers.append(triangle.encode(y=f"{end}:Q").transform_filter(flagged))
    return layers


def _angle(labels: Sequence[str]) -> int:
    """Labels lie flat as long as there is room for them."""
    return 0 if sum(len(label) + 2 for label in labels) * 6 < WIDTH else -45


def _subtitle(series: Series, with_truth: bool, drawn: int, changes: Changes | None) -> list[str]:
    first = series.estimates[0]
    lines = [f"{first.method}, band: {series.interval_words}; {first.source}"]
    notes = []
    if changes is not None:
        risk = f"any false alarm at most {100 * changes.false_alarm:.6g} %"
        notes.append(f"triangle: a change ({changes.respondents} respondents, {risk})")
    if with_truth:
        notes.append("dotted: the simulated truth")
    if drawn < len(series.values):
        notes.append(f"{drawn} of {len(series.values)} values")
    return [*lines, "; ".join(notes)] if notes else lines
