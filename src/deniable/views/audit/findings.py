"""Audits of black boxes, exact verifications, and surveys of many mechanisms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deniable.audit.black_box.findings import Audit
from deniable.audit.exact.checks import Verification
from deniable.views import chart, table
from deniable.views.charts import COLOURS, STEP, WIDTH, Spec, line_at, number, places, whole
from deniable.views.tables import rich_table

if TYPE_CHECKING:
    from rich.table import Table

#: Shares of a promise beyond this, infinite ones too, are drawn here.
MOST_SHARE = 4.0
#: The longest words of columns that may be broken between words.
BREAKS = {"what": len("reports"), "method": len("enumerated")}


@table.register(Audit)
def audit_table(audit: Audit) -> Table:
    """A row for each event, the strongest first."""
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
    caption = f"{audit.words}. {_reports(audit)}; {audit.interval_words}"
    empty = [{"kind": "none", "event": "no event differs between values"}]
    return rich_table(rows or empty, str(audit), caption)


def _reports(audit: Audit) -> str:
    return f"{audit.n:,} reports of each of {len(audit.values)} values, half to find the events"


@chart.register(Audit)
def audit_chart(audit: Audit, *, title: str | None = None) -> Spec:
    """Lower bounds of epsilon, and a line at the promise."""
    found = [audit.findings[i] for i in audit.shown()]
    rows = [
        {
            "place": place,
            "pair": f"{one.value!r} against {one.other!r}",
            "epsilon": one.epsilon,
        }
        for place, one in enumerate(found)
    ]
    names = [f"{one.kind}: {one.event}" for one in found]
    epsilon = number("epsilon", "epsilon is at least")
    text = {"type": "text", "style": "interval", "align": "left", "dx": 4, "limit": WIDTH // 2}
    bars = {
        "data": {"values": rows},
        "encoding": {"y": places(names)},
        "layer": [
            {
                "mark": {"type": "bar", "style": "estimate", "height": 14},
                "encoding": {"x": epsilon},
            },
            {"mark": text, "encoding": {"x": epsilon, "text": {"field": "pair"}}},
        ],
    }
    body = {"width": WIDTH, "height": STEP * max(1, len(rows))}
    return whole(
        {**body, "layer": [bars, line_at("promised", audit.promised)]},
        title=title or str(audit),
        caption="Bars show how large epsilon is at least. The line is what is promised.",
        details=f"{_reports(audit)}; {audit.interval_words}",
    )


@table.register(Verification)
def verification_table(found: Verification) -> Table:
    """A row for each check."""
    shown = ("what", "subject", "method", "epsilon", "declared", "verdict")
    rows = [{name: row[name] for name in shown} for row in found.rows()]
    return rich_table(rows, found.words)


def survey_table(rows: Sequence[Mapping[str, Any]], title: str) -> Table:
    """A row for each check; words may be broken where it is narrow, verdicts and numbers never."""
    names = ["mechanism", "k", "what", "method", "epsilon", "promised", "verdict"]
    if len({row["mechanism"] for row in rows}) == 1:
        names.remove("mechanism")
    found = rich_table([{name: _cell(row, name) for name in names} for row in rows], title)
    for name, column in zip(names, found.columns, strict=True):
        column.no_wrap = name in ("k", "epsilon", "promised", "verdict")
        if name == "verdict":
            column.min_width = max(len(row[name]) for row in rows)
        elif not column.no_wrap:
            column.min_width, column.overflow = BREAKS.get(name), "fold"
    return found


def _cell(row: Mapping[str, Any], name: str) -> Any:
    if name == "method" and row["n"] is not None:
        return f"{row['n']:,} {row[name]}"
    return round(row[name], 4) if isinstance(row[name], float) else row[name]


def survey_chart(rows: Sequence[Mapping[str, Any]], title: str) -> Spec:
    """The share of the promise that was found: a point for each mechanism and method."""
    data = [
        {**row, "share": min(row["epsilon"] / row["promised"], MOST_SHARE)}
        for row in rows
        if row["promised"] is not None  # walks find no epsilon
    ]
    share = number("share", f"epsilon found / promised (at most {MOST_SHARE:g} is drawn)")
    points = {
        "data": {"values": data},
        "mark": {"type": "point", "filled": True, "size": 70, "opacity": 0.9},
        "encoding": {
            "y": {"field": "mechanism", "type": "nominal", "sort": None, "title": None},
            "x": share,
            "color": {
                "field": "method",
                "type": "nominal",
                "title": None,
                "scale": {"range": list(COLOURS)},
            },
            "shape": {"field": "reports", "type": "nominal", "title": "reports of a device"},
        },
    }
    return whole(
        {"width": WIDTH, "layer": [line_at("promised", 1), points]},
        title=title,
        caption="Points right of the line violate the promise.",
    )
