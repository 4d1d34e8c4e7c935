"""What a terminal shows of results: how many of each place, and those that differ with reasons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deniable_papers.results import Result, Verdict, counts

#: Rows of a place that a terminal shows at most; all are in the files.
SHOWN = 5


def overview(results: Sequence[Result]) -> list[dict[str, Any]]:
    """How many rows of each place have each verdict."""
    places: dict[str, list[Result]] = {}
    for one in results:
        places.setdefault(one.where, []).append(one)
    return [{"where": where, "rows": len(some), **counts(some)} for where, some in places.items()]


def differing(results: Sequence[Result]) -> tuple[list[dict[str, Any]], list[str]]:
    """What differs in few columns, the first rows of every place, and the reasons for it."""
    places: dict[str, list[Result]] = {}
    for one in results:
        if one.verdict is Verdict.differs:
            places.setdefault(one.where, []).append(one)
    some = [one for rows in places.values() for one in rows[:SHOWN]]
    why = {reason: place for place, reason in enumerate(dict.fromkeys(o.reason for o in some), 1)}
    rows = [{**_brief(one), "why": f"({why[one.reason]})" if one.reason else ""} for one in some]
    return rows, [f"({place}) {reason}" for reason, place in why.items() if reason]


def _brief(result: Result) -> dict[str, Any]:
    if "claim" in result.cell:
        cells, against = int(result.cell["cells"]), int(result.cell["against"])
        what = str(result.cell["claim"])
        published = "all cells" if result.published == 1 else f"at least {result.published:.0%}"
        ours, away = f"{cells - against} of {cells}", ""
    else:
        what, published = str(result.row()["cell"]), f"{result.published:.4g}"
        ours = f"{result.ours:.4g}" + (f" ± {result.error:.2g}" if result.error else "")
        away = "" if result.difference is None else f"{result.difference:+.1f}"
    return {"where": result.where.removesuffix(", claim"), "what": what, "published": published,
            "ours": ours, "s.e. away": away}  # fmt: skip
