"""Tallies and reports of one question, checked and merged before a task decodes them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from deniable.core.reports import Reports
from deniable.core.stored import Source, StoredReports
from deniable.core.tally import Tally
from deniable.errors import InvalidArgument, MismatchError, require_type


def require_parts(parts: Any) -> Sequence[Source]:
    """The parts, if they are a list of tallies or reports."""
    if not isinstance(parts, Sequence):
        raise InvalidArgument("parts", parts, "a list of tallies or reports")
    for part in parts:
        if not isinstance(part, Source):
            raise InvalidArgument("parts", part, "tallies or reports")
    if not parts:
        raise InvalidArgument("parts", parts, "at least one tally or column of reports")
    return parts


def about_one_question(parts: Sequence[Source]) -> list[Source]:
    """Parts of one mechanism and one type merged; none is empty, or given twice."""
    groups: dict[tuple[type, Any], list[Any]] = {}
    for part in require_parts(parts):
        groups.setdefault((type(part), part.mechanism), []).append(part)
    fingerprints = [part.fingerprint for part in parts if isinstance(part, Tally)]
    known = [fingerprint for fingerprint in fingerprints if fingerprint]
    if len({id(part) for part in parts}) < len(parts) or len({*known}) < len(known):
        raise InvalidArgument("parts", parts, "all different: one is there twice")
    refuse_shared_files(parts)
    merged: list[Source] = [_merged(group) for group in groups.values()]
    first = merged[0].mechanism.domain
    for part in merged:
        if not _number(part):
            raise InvalidArgument("tally", part, "a tally with at least one report")
        if part.mechanism.domain != first:
            other = part.mechanism.domain
            raise MismatchError(f"these are answers to different questions: {first!r}, {other!r}")
    return merged


def tally_of(source: Source, threads: int | None = None) -> Tally:
    """The counts of what is decoded."""
    if isinstance(source, Tally):
        return source
    if isinstance(source, StoredReports):
        return source.tally()
    require_type("parts", source, Reports)
    return source.mechanism.tally(source, threads=threads)


def _merged(group: list[Any]) -> Source:
    """One part of several of one type and one mechanism."""
    first: Source = group[0]
    if isinstance(first, Reports):
        return Reports.concatenate(group)
    if isinstance(first, StoredReports) and len(group) > 1:
        allowed = "with all files of one mechanism together: ids may come again in others"
        raise InvalidArgument("parts", group, allowed)
    return reduce(Tally.merge, group) if isinstance(first, Tally) else first


def refuse_shared_files(parts: Sequence[Source]) -> None:
    """Refuse to count a file as a part of two."""
    found = [part.sources for part in parts]
    shared = sum(map(len, found)) - len(frozenset().union(*found))
    if shared:
        files = "1 file is" if shared == 1 else f"{shared:,} files are"
        raise MismatchError(f"{files} in two of the parts: their reports would count twice")


def _number(part: Source) -> int:
    return len(part) if isinstance(part, Reports) else tally_of(part).n
