"""What was verified of a store, day by day, in a file: so that the next time only the rest is read.

Of each day and table: how many rows there were, how many with their reports, the seal of all rows,
and what their reports count for. The file has a digest against damage. It is no defence against
somebody who may write it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from deniable.core.tally import seal, unseal
from deniable.errors import CorruptData, MismatchError
from deniable.service.store.pieces import CountKey, Pieces
from deniable.storage.files import whole

_MAGIC = b"DNCHECK"
#: Each time, one of so many days that were verified before is read again.
AGAIN = 10


class Seen(NamedTuple):
    """How many rows a day has in a table, and how many of them with their reports."""

    rows: int
    bodies: int


@dataclass(frozen=True)
class Day:
    """What a run found in a day of a table."""

    seen: Seen
    run: int
    #: The seal of the rows, and what their reports count for.
    sums: Pieces


@dataclass
class Checkpoint:
    """The days that were verified, by table and day."""

    collection: str
    #: The number of the present run.
    run: int = 1
    days: dict[tuple[str, int], Day] = field(default_factory=dict)

    def trusted(self, table: str, there: Mapping[int, Seen]) -> dict[int, Day]:
        """The days that are not read: they have as many rows as when they were verified.

        Of these, those that were verified longest ago are read again nevertheless.
        """
        same = [
            (known.run, day, known)
            for day, seen in there.items()
            if (known := self.days.get((table, day))) is not None and known.seen == seen
        ]
        same.sort(key=lambda one: one[:2])
        return {day: known for _, day, known in same[-(-len(same) // AGAIN) :]}

    @classmethod
    def read(cls, path: Path, collection: str) -> Checkpoint:
        """What a file says of the runs before, for the run after them; nothing without a file."""
        if not path.exists():
            return cls(collection)
        header, content = unseal(_MAGIC, path.read_bytes(), f"checkpoint ({path})")
        if header["collection"] != collection:
            raise MismatchError(f"{path} is the checkpoint of another collection")
        found, start = cls(collection, header["run"] + 1), 0
        for table, day, rows, bodies, run, pieces in header["days"]:
            sums = Pieces()
            for *key, n, size in pieces:
                end = start + 8 * size
                sums[CountKey(*key)] = n, np.frombuffer(content[start:end], dtype="<i8")
                start = end
            found.days[table, day] = Day(Seen(rows, bodies), run, sums)
        if start != len(content):
            raise CorruptData(f"{path} has not as many counts as it says")
        return found

    def write(self, path: Path) -> None:
        """Keep it; the file is the old one or the new one, whatever happens."""
        days, content = [], []
        for (table, day), found in sorted(self.days.items()):
            pieces = [[*key, n, counts.size] for key, (n, counts) in found.sums.items()]
            content += [c.astype("<i8", copy=False).tobytes() for _, c in found.sums.values()]
            days.append([table, day, *found.seen, found.run, pieces])
        header = {"collection": self.collection, "run": self.run, "days": days}
        with whole(path) as file:
            file.write(seal(_MAGIC, header, b"".join(content)))
