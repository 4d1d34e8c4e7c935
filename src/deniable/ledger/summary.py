"""Who may have spent what, without saying who."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from deniable.errors import InvalidArgument, require_int
from deniable.ledger.chain import Chain
from deniable.ledger.units import epsilon_of

#: Fewer subjects than this are never shown as a group of their own.
THRESHOLD = 5
#: Bands of one collection, at most.
BANDS = 20


def summary_rows(chain: Chain, collection: str | None, threshold: int) -> list[dict[str, Any]]:
    """Rows of all collections together (name None) and of each one; or of one only."""
    least = require_int("threshold", threshold, 1, 1 << 62)
    each = {name: sorted(spent.values()) for name, spent in chain.collections.items()}
    if collection is not None:
        if collection not in each:
            known = ", ".join(each) or "none so far"
            raise InvalidArgument("collection", collection, f"one that charged: {known}")
        return list(_scope_rows(collection, each[collection], least))
    rows = list(_scope_rows(None, sorted(chain.spent.values()), least))
    if any(len(spent) < least for spent in each.values()):
        # Less what is told about the other collections, it would tell about a few subjects.
        rows = [{**_row(None, "all", [0]), "from": None, "to": None, "subjects": "not told"}]
    return rows + [row for name, spent in each.items() for row in _scope_rows(name, spent, least)]


def _scope_rows(name: str | None, spent: list[int], least: int) -> Iterator[dict[str, Any]]:
    if len(spent) < least:
        yield {**_row(name, "all", [0]), "from": None, "to": None, "subjects": f"<{least}"}
        return
    yield {**_row(name, "all", spent), "total": epsilon_of(sum(spent))}
    bands = list(_bands(spent, max(least, -(-len(spent) // BANDS))))
    for band in bands if len(bands) > 1 else ():
        yield _row(name, "band", band)


def _bands(spent: list[int], least: int) -> Iterator[list[int]]:
    """Sorted numbers in runs of at least so many; equal ones stay together."""
    start = 0
    for end in range(least, len(spent) - least + 1):
        if end - start >= least and spent[end] != spent[end - 1]:
            yield spent[start:end]
            start = end
    yield spent[start:]


def _row(name: str | None, group: str, spent: list[int]) -> dict[str, Any]:
    """A row without the total: of a band that was merged, it would tell who spent which end."""
    return {
        "collection": name,
        "group": group,
        "from": epsilon_of(spent[0]),
        "to": epsilon_of(spent[-1]),
        "subjects": len(spent),
        "total": None,
    }
