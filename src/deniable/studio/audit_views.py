"""Tables and charts of audits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deniable.extras import altair
from deniable.studio.charts import BAR, COLOURS, INK, TRUTH
from deniable.studio.tables import rich_table

if TYPE_CHECKING:
    from rich.table import Table

    from deniable.audit.findings import Audit

#: Shares of a promise beyond this, infinite ones too, are drawn here.
MOST_SHARE = 4.0
#: The longest words of columns that may be broken between words.
BREAKS = {"what": len("reports"), "method": len("enumerated")}


def audit_table(audit: Audit) -> Table:
    """One row an event, the strongest first."""
    rows = [
        {
            "kind": finding.kind,
            "event": finding.event,
            "under": f"{finding.value!r}: {finding.share:.4f}",
            "and under": f"{finding.other!r}: {finding.other_share:.4f}",
            "epsilon >=": finding.epsilon,
        }
        for finding in (audit.findings[i] for i in audit.shown())
    ]
    reports = f"{audit.n:,} reports of each of {len(audit.values)} values, half to find the events"
    caption = f"{audit.words}. {reports}; {audit.interval_words}"
    empty = [{"kind": "none", "event": "no event differs between values"}]
    return rich_table(rows or empty, str(audit), caption)


def survey_table(rows: Sequence[Mapping[str, Any]], title: str) -> Table:
    """One row a check; words may be broken where it is narrow, verdicts and numbers never."""
    names = ["mechanism", "k", "what", "method", "epsilon", "promised", "verdict"]
    if len({row["mechanism"] for row in rows}) == 1:
        names.remove("mechanism")
    table = rich_table([{name: _cell(row, name) for name in names} for row in rows], title)
    for name, column in zip(names, table.columns, strict=True):
        column.no_wrap = name in ("k", "epsilon", "promised", "verdict")
        if name == "verdict":
            column.min_width = max(len(row[name]) for row in rows)
        elif not column.no_wrap:
            column.min_width, column.overflow = BREAKS.get(name), "fold"
    return table


def _cell(row: Mapping[str, Any], name: str) -> Any:
    if name == "method" and row["n"] is not None:
        return f"{row['n']:,} {row[name]}"
    return round(row[name], 4) if isinstance(row[name], float) else row[name]


def audit_chart(audit: Audit) -> Any:
    """Lower bounds of epsilon, and a line at the promise."""
    alt = altair()
    found = [audit.findings[i] for i in audit.shown()]
    rows = [
        {
            "event": f"{one.kind}: {one.event}"[:60],
            "pair": f"{one.value!r} against {one.other!r}",
            "epsilon": one.epsilon,
        }
        for one in found
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(y=alt.Y("event:N", sort=None, title=None))
    bars = base.mark_bar(color=BAR, height=14).encode(
        x=alt.X("epsilon:Q", title="epsilon is at least; line: what is promised")
    )
    label = base.mark_text(align="left", dx=4, color=INK).encode(x="epsilon:Q", text="pair:N")
    promise = alt.Chart(alt.Data(values=[{"promised": audit.promised}]))
    line = promise.mark_rule(color=TRUTH, strokeWidth=2).encode(x="promised:Q")
    title = alt.TitleParams(str(audit), subtitle=audit.interval_words, anchor="start")
    return alt.layer(bars, label, line).properties(width=520, title=title)


def survey_chart(rows: Sequence[Mapping[str, Any]], title: str) -> Any:
    """The share of the promise that was found, a point a mechanism and method."""
    alt = altair()
    data = [
        {**row, "share": min(row["epsilon"] / row["promised"], MOST_SHARE)}
        for row in rows
        if row["promised"] is not None  # walks find no epsilon
    ]
    base = alt.Chart(alt.Data(values=data))
    points = base.mark_point(filled=True, size=70, opacity=0.9).encode(
        y=alt.Y("mechanism:N", sort=None, title=None),
        x=alt.X("share:Q", title=f"epsilon found / promised (at most {MOST_SHARE:g} is drawn)"),
        color=alt.Color("method:N", title=None, scale=alt.Scale(range=list(COLOURS))),
        shape=alt.Shape("reports:N", title="reports of a device"),
    )
    promise = alt.Chart(alt.Data(values=[{"promised": 1}]))
    line = promise.mark_rule(color=TRUTH, strokeWidth=2).encode(x="promised:Q")
    heading = alt.TitleParams(title, subtitle="right of the line: violated", anchor="start")
    return alt.layer(line, points).properties(width=520, title=heading)
