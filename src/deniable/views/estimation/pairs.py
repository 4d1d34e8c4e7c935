"""Pairs of answers: a map of which go together, and which exclude one another."""

from __future__ import annotations

from collections.abc import Sequence

from deniable.core.domain import Label
from deniable.estimation.shares.estimate import Pairs
from deniable.views import chart
from deniable.views.charts import COLOURS, DRAWN, WIDTH, Spec, counted, label_of, whole
from deniable.views.estimation.estimates import columns_for_people

#: The side of a cell at most, in pixels.
CELL = 48


@chart.register(Pairs)
def pairs_chart(estimate: Pairs, *, title: str | None = None, most: int = DRAWN) -> Spec:
    """A cell for each pair, coloured by its association; blank where that may be 0."""
    names = list(dict.fromkeys(name for pair in estimate.answers for name in pair))
    rows, place = estimate.rows(), {name: i for i, name in enumerate(names)}
    values = [
        {**rows[row], "first": place[one], "second": place[other]}
        for row in estimate.clear
        for one, other in (estimate.answers[row], estimate.answers[row][::-1])
    ]
    largest = max((abs(row["association"]) for row in values), default=1.0)
    side = min(CELL, WIDTH // len(names)) * len(names)
    numbers = [
        {"field": field, "title": words, "type": "quantitative", "format": form}
        for field, words, form in (
            ("share", "share of people with both", ".2%"),
            ("association", "association", ",.3~g"),
            ("association_low", "from", ",.3~g"),
            ("association_high", "to", ",.3~g"),
        )
    ]
    colour = {
        "field": "association",
        "type": "quantitative",
        "scale": {"domain": [-largest, 0, largest], "range": [COLOURS[1], "#f4f4f4", COLOURS[0]]},
        "legend": {"title": "association"},
    }
    return whole(
        {
            "data": {"values": values},
            "width": side,
            "height": side,
            "mark": {"type": "rect"},
            "encoding": {
                "x": _answers("first", names),
                "y": _answers("second", names),
                "color": colour,
                "tooltip": [{"field": "pair", "title": "answers"}, *numbers],
            },
        },
        title=title or estimate.title,
        caption=_caption(estimate),
        details=f"{estimate.method}, {estimate.interval_words}; {estimate.source}",
        columns=columns_for_people(estimate.part(estimate.shown(most))),
    )


def _answers(field: str, names: Sequence[Label]) -> Spec:
    """An axis with every answer, also those of which no pair is drawn."""
    return {
        "field": field,
        "type": "ordinal",
        "title": None,
        "scale": {"domain": list(range(len(names)))},
        "axis": {"labelExpr": label_of(names)},
    }


def _caption(estimate: Pairs) -> str:
    reports, pairs = counted(estimate.n, "answer"), counted(len(estimate.labels), "pair")
    return (
        f"{reports}. Blue pairs go together: people who ticked one ticked the other more often "
        f"than everybody did; orange pairs exclude one another. Of {pairs}, {len(estimate.clear)} "
        f"are drawn; of the others the {estimate.level} interval holds 0."
    )
