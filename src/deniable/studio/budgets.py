"""What repeated reports cost, as rows and as a chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deniable.errors import InvalidArgument
from deniable.extras import altair
from deniable.mechanisms import DBitFlipPM, Mechanism, find, mechanisms
from deniable.mechanisms.memoised import Memoised
from deniable.privacy import Lasting
from deniable.studio.charts import COLOURS, INK

#: The line of a device that remembers nothing.
FORGETFUL = "one answer, no memo"


def budget_rows(
    guarantee: Lasting, reports: Sequence[int], changes: Sequence[int]
) -> list[dict[str, Any]]:
    """Epsilon after some numbers of reports of each answer, and of changes of the answer.

    ``limit`` is that of any number of reports; a device without a memo has none.
    """
    rows = [
        {
            "answers": _words(c),
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


def lasting_of(
    name: str, size: int, epsilon: float, first: float | None
) -> tuple[Mechanism, Lasting]:
    """A mechanism by name, and what all its reports cost."""
    family: Any = find(name)
    if not issubclass(family, Memoised):
        known = [key for key, one in mechanisms().items() if issubclass(one, Memoised)]
        raise InvalidArgument("mechanism", name, f"one that remembers: {', '.join(known)}")
    if "epsilon_1" in family.budgets:
        mechanism = family(size, epsilon, first)
    elif issubclass(family, DBitFlipPM):
        if first is not None:
            raise InvalidArgument("epsilon_1", first, "left out: all reports are the same")
        mechanism = family(size, epsilon)
    else:
        mechanism = family(size, epsilon / 2 if first is None else first, epsilon_inf=epsilon)
    return mechanism, mechanism.permanent_guarantee


def budget_table(guarantee: Lasting, reports: int, changes: Sequence[int]) -> list[dict[str, Any]]:
    """A row for some numbers of reports up to ``reports``, and one for any number."""
    steps = [t for t in (1, 2, 3, 5, 10, 20, 30, 50, 100) if t < reports]
    rows: dict[Any, dict[str, Any]] = {}
    for row in budget_rows(guarantee, [*steps, reports], changes):
        rows.setdefault(row["reports"], {"reports": row["reports"]})[row["answers"]] = row[
            "epsilon"
        ]
    limits = {_words(c): guarantee.after(None, c) for c in changes}
    return [*rows.values(), {"reports": "any", **limits, FORGETFUL: "no limit"}]


def _words(changes: int) -> str:
    return "one answer" if not changes else f"{changes} change{'s' * (changes > 1)}"


def budget_chart(guarantee: Lasting, reports: int = 30, changes: Sequence[int] = (0, 1, 2)) -> Any:
    """Epsilon against reports: a curve and its limit for each number of changes.

    The line of a device without a memo leaves the picture.
    """
    alt = altair()
    rows = budget_rows(guarantee, range(1, reports + 1), changes)
    names = list(dict.fromkeys(row["answers"] for row in rows))
    highest = 1.1 * max(row["limit"] or 0.0 for row in rows)
    shown = [row for row in rows if row["epsilon"] <= highest]
    colours = alt.Scale(domain=names, range=[*COLOURS[: len(names) - 1], "#9ca3af"])
    base = alt.Chart(alt.Data(values=shown)).encode(
        x=alt.X("reports:Q", title="reports of each answer", scale=alt.Scale(nice=False)),
        color=alt.Color("answers:N", title=None, scale=colours, sort=names),
    )
    height = alt.Scale(domain=[0, highest], nice=False)
    curves = base.mark_line(strokeWidth=2.5, point=reports <= 30).encode(
        y=alt.Y("epsilon:Q", title="epsilon", scale=height)
    )
    limits = base.mark_line(strokeWidth=1.2, strokeDash=[5, 4], opacity=0.8).encode(y="limit:Q")
    subtitle = "exact; dashed: the limit of any number of reports"
    title = alt.TitleParams(str(guarantee), subtitle=subtitle, anchor="start", color=INK)
    chart: Any = alt.layer(limits, curves).properties(width=560, height=300, title=title)
    return chart
