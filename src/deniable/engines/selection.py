"""What is read of some files: each report once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from deniable.core.mechanism import Mechanism
from deniable.core.reports import Reports
from deniable.engines.base import Engine
from deniable.engines.duplicates import Duplicates, Rows, repeated_ids, without, without_copies
from deniable.engines.files import Piece, ReportFile, one_mechanism, pieces, reading
from deniable.engines.progress import Progress, silent


@dataclass(frozen=True, eq=False)
class Reading:
    """How pieces are read: it travels to where they are."""

    mechanism: Mechanism
    #: Rows that are left out, in ascending order.
    dropped: Rows

    @contextmanager
    def batches(
        self, piece: Piece, *, ids: bool = False, rows: int | None = None
    ) -> Iterator[Iterator[Reports]]:
        """The reports of a piece that count, some at a time."""
        with reading(piece, self.mechanism, ids=ids, rows=rows) as found:
            yield (without(self.dropped, start, reports) for start, reports in found)


@dataclass(frozen=True, eq=False)
class Selection:
    """Files of one mechanism, without those that are copies."""

    files: tuple[ReportFile, ...]
    pieces: tuple[Piece, ...]
    reading: Reading

    @classmethod
    def of(
        cls,
        files: Sequence[ReportFile],
        rule: Duplicates,
        engine: Engine,
        progress: Progress = silent,
    ) -> Selection:
        kept = without_copies(files, rule)
        mechanism = one_mechanism(kept)
        dropped = repeated_ids(engine, kept, mechanism, rule, progress)
        cut = [piece for piece in pieces(kept) if piece.rows]
        return cls(tuple(kept), tuple(cut), Reading(mechanism, dropped))

    @property
    def mechanism(self) -> Mechanism:
        return self.reading.mechanism

    @property
    def n(self) -> int:
        """How many reports count."""
        return sum(piece.rows for piece in self.pieces) - self.reading.dropped.size

    def sources(self) -> frozenset[str]:
        """The fingerprints of the files that have reports."""
        return frozenset(file.fingerprint for file in self.files if file.rows)
