"""Tallies and reports of one question, checked and merged before a task decodes them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from deniable.core.reports import Reports
from deniable.core.tally import Tally
from deniable.errors import InvalidArgument, MismatchError


def require_parts(parts: Any) -> Sequence[Tally | Reports]:
    """The parts, if they are a list of tallies or reports."""
    if not isinstance(parts, Sequence):
        raise InvalidArgument("parts", parts, "a list of tallies or reports")
    for part in parts:
        if not isinstance(part, (Tally, Reports)):
            raise InvalidArgument("parts", part, "tallies or reports")
    if not parts:
        raise InvalidArgument("parts", parts, "at least one tally or column of reports")
    return parts


def about_one_question(parts: Sequence[Tally | Reports]) -> list[Tally | Reports]:
    """Parts of one mechanism and one type merged; none is empty, or given twice."""
    groups: dict[tuple[type, Any], list[Any]] = {}
    for part in require_parts(parts):
        groups.setdefault((type(part), part.mechanism), []).append(part)
    fingerprints = [part.fingerprint for part in parts if isinstance(part, Tally)]
    known = [fingerprint for fingerprint in fingerprints if fingerprint]
    if len({id(part) for part in parts}) < len(parts) or len({*known}) < len(known):
        raise InvalidArgument("parts", parts, "all different: one is there twice")
    merged: list[Tally | Reports] = [
        Reports.concatenate(group) if kind is Reports else reduce(Tally.merge, group)
        for (kind, _), group in groups.items()
    ]
    first = merged[0].mechanism.domain
    for part in merged:
        if not _number(part):
            raise InvalidArgument("tally", part, "a tally with at least one report")
        if part.mechanism.domain != first:
            other = part.mechanism.domain
            raise MismatchError(f"these are answers to different questions: {first!r}, {other!r}")
    return merged


def _number(part: Tally | Reports) -> int:
    return part.n if isinstance(part, Tally) else len(part)
