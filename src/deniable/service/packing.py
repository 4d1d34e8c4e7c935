"""Submissions as they are kept: the round, the drawn question, and the rows one after the other."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.collection.manifest import Collection
from deniable.errors import CorruptData
from deniable.randomness import draw_key

_HEAD = struct.Struct("<HH")
#: In place of a drawn question: all were answered.
_ALL = 0xFFFF

#: Reports and their number by (question, round).
Counts = dict[tuple[str, int], tuple[NDArray[np.int64], int]]


class Packing:
    """How the submissions of one collection become bytes and, many at once, counts."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._names = [question.name for question in collection.questions]
        self._mechanisms = {q.name: q.mechanism for q in collection.questions}
        self._sampled = collection.divide == "sampled"
        self._places = {name: place for place, name in enumerate(self._names)}

    def warm(self) -> None:
        """Load what counting needs, so that the first respondent does not wait for a compiler."""
        for m in self._mechanisms.values():
            m.count(m.randomise(np.zeros(1, dtype=m.domain.dtype), draw_key(None)))

    def pack(self, round_: int, rows: Mapping[str, bytes]) -> bytes:
        """The bytes of one submission; equal ones have equal bytes."""
        if self._sampled:
            ((name, row),) = rows.items()
            return _HEAD.pack(round_, self._places[name]) + row
        return _HEAD.pack(round_, _ALL) + b"".join([rows[name] for name in self._names])

    def columns(self, bodies: Iterable[bytes]) -> Iterable[tuple[str, int, NDArray[Any]]]:
        """The reports of many submissions: a column for each question and round."""
        groups: dict[bytes, list[bytes]] = defaultdict(list)
        for body in bodies:
            groups[body[: _HEAD.size]].append(body)
        for head, members in groups.items():
            round_, names = self._head(head)
            fields = [(name, self._mechanisms[name].dtype) for name in names]
            # No question is called HEAD: their names have small letters only.
            dtype = np.dtype([("HEAD", "<u4"), *fields])
            if set(map(len, members)) != {dtype.itemsize}:
                raise CorruptData("a submission that was kept has another length")
            table = np.frombuffer(b"".join(members), dtype=dtype)
            for name in names:
                yield name, round_, np.ascontiguousarray(table[name])

    def _head(self, head: bytes) -> tuple[int, list[str]]:
        """The round of submissions, and the questions that they answer."""
        round_, place = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 0)
        if not 1 <= round_ <= self._collection.rounds:
            raise CorruptData("a submission that was kept has a round that there is not")
        if (place >= len(self._names)) if self._sampled else (place != _ALL):
            raise CorruptData("a submission that was kept answers a question that there is not")
        return round_, [self._names[place]] if self._sampled else self._names

    def count(self, bodies: Iterable[bytes]) -> Counts:
        """The counts of many submissions."""
        return self.count_columns(self.columns(bodies))

    def count_columns(self, columns: Iterable[tuple[str, int, NDArray[Any]]]) -> Counts:
        """The counts of columns, added up; refuses reports that no device makes."""
        found: Counts = {}
        for name, round_, column in columns:
            if len(column):
                add_counts(found, {(name, round_): (self._count(name, column), len(column))})
        return found

    def _count(self, name: str, column: NDArray[Any]) -> NDArray[np.int64]:
        return self._mechanisms[name].count(column)


def add_counts(total: Counts, more: Counts) -> None:
    """Add counts to others, in place."""
    for place, (counts, n) in more.items():
        before, m = total.get(place, (0, 0))
        total[place] = (before + counts, m + n)
