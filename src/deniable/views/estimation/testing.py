"""Tests of hypotheses: the effect with its interval beside no effect, and the same as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deniable.estimation.testing.result import TestResult
from deniable.views import chart, table
from deniable.views.charts import WIDTH, Spec, interval, line_at, number, whole
from deniable.views.tables import plain, rich_table

if TYPE_CHECKING:
    from rich.table import Table

HEIGHT = 60


@chart.register(TestResult)
def chart_of_test(result: TestResult, *, title: str | None = None) -> Spec:
    """The effect as a point with its interval, and a line where there is none."""
    low, high = result.interval or (result.effect, result.effect)
    rows = [{"effect": result.effect, "low": low, "high": high}]
    scale = {"zero": True, "padding": 12}
    x, ends = (number(name, result.effect_name, scale=scale) for name in ("effect", "low"))
    point = {"type": "point", "style": "point", "filled": True, "size": 60, "opacity": 1}
    body = {
        "width": WIDTH,
        "height": HEIGHT,
        "data": {"values": rows},
        "layer": [
            line_at("none", 0.0),
            {"mark": point, "encoding": {"x": x}},
            *([] if result.interval is None else interval(ends, "high")),
        ],
    }
    return whole(
        body,
        title=title or f"Is it true that {result.hypothesis}?",
        caption=f"{result} The vertical line is where it is exactly true.",
        details=_details(result),
        columns=_columns(result),
    )


@table.register(TestResult)
def table_of_test(result: TestResult) -> Table:
    """The numbers, and what they say in a sentence."""
    rows = [{name: cells[0] for name, cells in _columns(result).items()}]
    return rich_table(rows, str(result), _details(result))


def _columns(result: TestResult) -> dict[str, list[str]]:
    """The numbers as a person reads them; what is not known is left out."""
    statistic = result.measure if result.df is None else f"{result.measure} (df = {result.df})"
    found: dict[str, Any] = {result.effect_name: result.effect}
    if result.interval is not None:
        found |= {"from": result.interval[0], "to": result.interval[1]}
    found |= {statistic: result.statistic, "p": result.p_value}
    if result.power is not None:
        found[f"power to detect {plain(result.detectable)}"] = result.power
    return {name: [plain(value)] for name, value in found.items()}


def _details(result: TestResult) -> str:
    """How the numbers were made."""
    reports = " and ".join(f"{n:,}" for n in result.n)
    return f"{result.method}, {result.interval_words}; {reports} reports; {result.source}"
