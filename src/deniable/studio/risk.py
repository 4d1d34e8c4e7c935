"""The chart of what a report can give away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deniable.extras import altair
from deniable.studio.charts import BAR, INK, TRUTH, label_of


def risk_chart(rows: Sequence[Mapping[str, Any]], title: str, words: Sequence[str]) -> Any:
    """A bar a value up to the prior, and a line from there to the largest posterior."""
    alt = altair()
    data = [
        {"place": place, "before": row["before"], "after": row["at most after"]}
        for place, row in enumerate(rows)
    ]
    names = alt.Axis(labelExpr=label_of(row["value"] for row in rows))
    base = alt.Chart(alt.Data(values=data)).encode(y=alt.Y("place:O", axis=names, title=None))
    scale = alt.Scale(domain=[0, 1])
    before = alt.X("before:Q", title="how sure one can be", scale=scale, axis=alt.Axis(format="%"))
    layers = [
        base.mark_bar(color=BAR, height=14).encode(x=before),
        base.mark_rule(color=INK, strokeWidth=1.5).encode(x=before, x2="after:Q"),
        base.mark_point(filled=True, size=70, color=TRUTH, opacity=1).encode(x="after:Q"),
    ]
    heading = alt.TitleParams(
        title,
        subtitle=[*words, "bar: before; point: after the report that points to the value most"],
        anchor="start",
    )
    return alt.layer(*layers).properties(width=520, title=heading)
