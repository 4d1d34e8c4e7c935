"""What repeated reports cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deniable.privacy.memoised import MemoisedGuarantee
from deniable.views import chart
from deniable.views.charts import COLOURS, Spec, number, whole

#: The line of a device that remembers nothing, and its colour.
FORGETFUL, GREY = "one answer, no memo", "#9ca3af"
WIDTH, HEIGHT = 560, 300


def budget_rows(
    guarantee: MemoisedGuarantee, reports: Sequence[int], changes: Sequence[int]
) -> list[dict[str, Any]]:
    """Epsilon after some numbers of reports of each answer, and of changes of the answer.

    ``limit`` is that of any number of reports; a device without a memo has none.
    """
    rows = [
        {
            "answers": change_words(c),
            "reports": t,
            "epsilon": guarantee.after(t, c),
            "limit": guarantee.after(None, c),
        }
        for c in changes
        for t in reports
    ]
    for t in reports:
        spent = guarantee.once.after(t)
        rows.append({"answers": FORGETFUL, "reports": t, "epsilon": spent, "limit": None})
    return rows


def change_words(changes: int) -> str:
    """How often an answer changes, in words."""
    return "one answer" if not changes else f"{changes} change{'s' * (changes > 1)}"


@chart.register(MemoisedGuarantee)
def budget_chart(
    guarantee: MemoisedGuarantee,
    reports: int = 30,
    changes: Sequence[int] = (0, 1, 2),
    *,
    title: str | None = None,
) -> Spec:
    """Epsilon against reports: a curve and its limit for each number of changes.

    The line of a device without a memo leaves the picture.
    """
    rows = budget_rows(guarantee, range(1, reports + 1), changes)
    names = list(dict.fromkeys(row["answers"] for row in rows))
    highest = 1.1 * max(row["limit"] or 0.0 for row in rows)
    shown = [row for row in rows if row["epsilon"] <= highest]
    curve = {"type": "line", "strokeWidth": 2.5, "point": reports <= 30}
    dashed = {"type": "line", "strokeWidth": 1.2, "strokeDash": [5, 4], "opacity": 0.8}
    epsilon = number("epsilon", "epsilon", scale={"domain": [0, highest], "nice": False})
    body = {
        "width": WIDTH,
        "height": HEIGHT,
        "data": {"values": shown},
        "encoding": {
            "x": number("reports", "reports of each answer", scale={"nice": False}),
            "color": {
                "field": "answers",
                "type": "nominal",
                "title": None,
                "sort": names,
                "scale": {"domain": names, "range": [*COLOURS[: len(names) - 1], GREY]},
            },
        },
        "layer": [
            {"mark": dashed, "encoding": {"y": {**epsilon, "field": "limit"}}},
            {"mark": curve, "encoding": {"y": epsilon}},
        ],
    }
    return whole(
        body,
        title=title or "What repeated reports reveal (epsilon)",
        caption="Exact. Dashed lines are the limits of any number of reports.",
        details=str(guarantee),
    )
