"""What repeated reports cost, as the rows of `deniable budget`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deniable.core.domain import Domain
from deniable.core.registry import find, mechanisms
from deniable.errors import InvalidArgument
from deniable.mechanisms import Mechanism
from deniable.mechanisms.two_step.memoised import Memoised
from deniable.privacy import MemoisedGuarantee
from deniable.views.privacy import FORGETFUL, budget_rows, change_words


def lasting_of(
    name: str, size: int, epsilon: float, first: float | None
) -> tuple[Mechanism, MemoisedGuarantee]:
    """A mechanism by name, and what all its reports cost."""
    family: Any = find(name)
    if not family.remembers:
        known = [key for key, one in mechanisms().items() if one.remembers]
        raise InvalidArgument("mechanism", name, f"one that remembers: {', '.join(known)}")
    if family.unsuited(Domain(size)) is not None:
        raise InvalidArgument("mechanism", name, f"one for {size} answers")
    mechanism: Memoised = family.repeated(size, epsilon, first)
    return mechanism, mechanism.lasting


def budget_table(
    guarantee: MemoisedGuarantee, reports: int, changes: Sequence[int]
) -> list[dict[str, Any]]:
    """A row for some numbers of reports up to ``reports``, and one for any number."""
    steps = [t for t in (1, 2, 3, 5, 10, 20, 30, 50, 100) if t < reports]
    rows: dict[Any, dict[str, Any]] = {}
    for row in budget_rows(guarantee, [*steps, reports], changes):
        rows.setdefault(row["reports"], {"reports": row["reports"]})[row["answers"]] = row[
            "epsilon"
        ]
    limits = {change_words(c): guarantee.after(None, c) for c in changes}
    return [*rows.values(), {"reports": "any", **limits, FORGETFUL: "no limit"}]
