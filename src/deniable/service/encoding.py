"""Submissions as they are kept: the round, the stratum, and the rows one after the other."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.canonical import parsed
from deniable.collection.manifest import Collection
from deniable.core.tally import Tally
from deniable.errors import CorruptData
from deniable.randomness import draw_key

_HEAD = struct.Struct("<HH")
#: Reports that are counted at once: what counting takes beside them stays small.
ROWS = 1 << 18


class TallyKey(NamedTuple):
    """Where a report is counted. The stratum numbers the values of the public fields."""

    report: str
    round: int = 1
    stratum: int = 0


Columns = Iterable[tuple[TallyKey, NDArray[Any]]]
Tallies = Iterator[tuple[TallyKey, Tally]]


class Packing:
    """How the submissions of one collection become bytes and, many at once, tallies."""

    def __init__(self, collection: Collection) -> None:
        self.mechanisms = {one.name: one.mechanism for one in collection.reports}
        self.rounds, self.strata = collection.rounds, collection.strata
        self._stratum = collection.stratum
        rows = [(name, m.dtype) for name, m in self.mechanisms.items()]
        # No report is called HEAD: their names have small letters only.
        self._dtype = np.dtype([("HEAD", f"V{_HEAD.size}"), *rows])

    def warm(self) -> None:
        """Load what counting needs, so that the first respondent does not wait for a compiler."""
        for m in self.mechanisms.values():
            values = np.array([m.domain.sample()[0]], dtype=m.domain.dtype)
            m.count(m.randomise(values, draw_key(None)))

    def pack(self, round_: int, stratum: int, rows: Mapping[str, bytes]) -> bytes:
        """The bytes of one submission; equal ones have equal bytes."""
        return _HEAD.pack(round_, stratum) + b"".join([rows[name] for name in self.mechanisms])

    def columns(self, bodies: Iterable[bytes]) -> Columns:
        """The reports of many submissions: a column for each place."""
        groups: dict[bytes, list[bytes]] = defaultdict(list)
        for body in bodies:
            groups[body[: _HEAD.size]].append(body)
        for head, members in groups.items():
            round_, stratum = self._head(head)
            if set(map(len, members)) != {self._dtype.itemsize}:
                raise CorruptData("a submission that was kept has another length")
            table = np.frombuffer(b"".join(members), dtype=self._dtype)
            for name in self.mechanisms:
                yield TallyKey(name, round_, stratum), np.ascontiguousarray(table[name])

    def placed(self, about: Mapping[str, str], columns: Mapping[str, NDArray[Any]]) -> Columns:
        """The columns of a batch, each at its place."""
        stratum = self._stratum(parsed(about["deniable.fields"].encode(), "set of public fields"))
        round_ = int(about["deniable.round"])
        return [(TallyKey(name, round_, stratum), column) for name, column in columns.items()]

    def _head(self, head: bytes) -> tuple[int, int]:
        round_, stratum = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 0)
        if not 1 <= round_ <= self.rounds:
            raise CorruptData("a submission that was kept has a round that there is not")
        if stratum >= self.strata:
            raise CorruptData("a submission that was kept has a stratum that there is not")
        return round_, stratum

    def count(self, bodies: Iterable[bytes]) -> Tallies:
        """The tallies of many submissions, each place once."""
        return self.count_columns(self.columns(bodies))

    def count_columns(self, columns: Columns) -> Tallies:
        """The tallies of columns, one at a time; refuses reports that no device makes."""
        for place, column in columns:
            if len(column):
                mechanism = self.mechanisms[place.report]
                starts = range(0, len(column), ROWS)
                counts = (mechanism.count(column[start : start + ROWS]) for start in starts)
                yield place, Tally.of_counts(mechanism, reduce(np.add, counts), len(column))
