"""Charts from the rows: variances of means beside DRR's, and distances of distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deniable.extras import altair
from deniable.views.charts import COLOURS
from deniable_papers.results import Result


def means(results: Sequence[Result]) -> Any:
    """n Var of the worst number by epsilon, over that of DRR."""
    rows = [one for one in results if one.where == "n Var, worst number"]
    ours = {one.cell["epsilon"]: one.ours for one in rows if one.cell["system"] == "DRR"}
    values = [
        {**one.cell, "ratio": one.ours / ours[one.cell["epsilon"]]}
        for one in rows
        if one.cell["system"] not in ("Harmony", "1BitMean")  # the same as Duchi et al.
    ]
    title = "n Var of the worst number / that of DRR"
    return _lines(values, "ratio", title, "Means of one number, worst case")


def distributions(results: Sequence[Result]) -> Any:
    """The mean distance of cumulative shares by epsilon, a panel a data set."""
    rows = [one for one in results if one.where == "distribution, W1"]
    values = [{**one.cell, "error": one.ours} for one in rows]
    lines = _lines(values, "error", "mean distance of cumulative shares", "Distributions")
    alt = altair()
    panels = list(dict.fromkeys(row["data"] for row in values))
    return lines.encode(facet=alt.Facet("data:N", title=None, sort=panels, columns=2))


def _lines(values: list[dict[str, Any]], what: str, axis: str, title: str) -> Any:
    """One line a system, over epsilon, on logarithmic scales."""
    alt = altair()
    names = list(dict.fromkeys(str(row["system"]) for row in values))
    colours = alt.Scale(domain=names, range=[COLOURS[i % len(COLOURS)] for i in range(len(names))])
    return (
        alt.Chart(alt.Data(values=values))
        .mark_line(point=True)
        .encode(
            x=alt.X("epsilon:Q", scale=alt.Scale(type="log", nice=False), title="epsilon"),
            y=alt.Y(f"{what}:Q", scale=alt.Scale(type="log", nice=False), title=axis),
            color=alt.Color("system:N", scale=colours, title=None),
            strokeDash=alt.StrokeDash("system:N", scale=alt.Scale(domain=names), title=None),
        )
        .properties(width=320, height=240, title=title)
    )
