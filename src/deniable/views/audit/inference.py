"""What a report can give away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deniable.audit.inference.risk import InferenceRisk, cell_words
from deniable.views import chart, table
from deniable.views.charts import STEP, WIDTH, Spec, percent, places, whole
from deniable.views.tables import rich_table

if TYPE_CHECKING:
    from rich.table import Table


@table.register(InferenceRisk)
def risk_table(risk: InferenceRisk) -> Table:
    """The values that are most at risk."""
    rows = [
        {name: cell_words(name, cell) for name, cell in row.items() if cell is not None}
        for row in _riskiest(risk)
    ]
    return rich_table(rows, str(risk), "percentages are rounded to the side of more risk")


@chart.register(InferenceRisk)
def risk_chart(risk: InferenceRisk, *, title: str | None = None) -> Spec:
    """A bar for each value up to the prior, and a line from there to the largest posterior."""
    rows = _riskiest(risk)
    data = [
        {"place": place, "before": row["before"], "after": row["at most after"]}
        for place, row in enumerate(rows)
    ]
    before = percent("before", "how sure one can be", scale={"domain": [0, 1]})
    rule = {"type": "rule", "style": "interval", "strokeWidth": 1.5}
    point = {"type": "point", "style": "truth", "filled": True, "size": 70, "opacity": 1}
    body = {
        "width": WIDTH,
        "height": STEP * len(rows),
        "data": {"values": data},
        "encoding": {"y": places(row["value"] for row in rows)},
        "layer": [
            {"mark": {"type": "bar", "style": "estimate", "height": 14}, "encoding": {"x": before}},
            {"mark": rule, "encoding": {"x": before, "x2": {"field": "after"}}},
            {"mark": point, "encoding": {"x": {**before, "field": "after"}}},
        ],
    }
    said = risk.sentences()[:2]
    marks = "Bars show what is known before; points, after the report that points to it most."
    return whole(
        body,
        title=title or "What a report can give away",
        caption=" ".join([*said, marks]),
        details=str(risk),
    )


def _riskiest(risk: InferenceRisk) -> list[dict[str, Any]]:
    rows = risk.rows()
    return [rows[i] for i in risk.shown()]
