"""Reports in files as something that can be decoded: read again in every pass, on any engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from deniable.core.mechanism import Mechanism
from deniable.core.reports import Reports
from deniable.core.stored import Pass, StoredReports, Value
from deniable.core.tally import Tally
from deniable.engines.base import Engine, Job
from deniable.engines.duplicates import Duplicates, require_rule
from deniable.engines.files import Piece, Place, ReportFile, find, look
from deniable.engines.local import LocalEngine
from deniable.engines.progress import Progress, silent, watching
from deniable.engines.selection import Reading, Selection
from deniable.errors import InvalidArgument, require_type

#: Rows that a pass looks at together: what is done once for some reports then costs little.
PASS_ROWS = 1 << 18

#: A tally, and how many reports each piece has, by the number of its first row.
Counted = tuple[Tally, dict[int, int]]


@dataclass(frozen=True, eq=False)
class ReportSubject:
    """What reports are asked about."""

    stored: Mechanism
    question: str | None = None
    #: With candidates, where answers are any text.
    asked: Mechanism | None = None

    @property
    def mechanism(self) -> Mechanism:
        if self.asked is not None or self.question is None:
            return self.asked or self.stored
        return self.stored.about(self.question, Tally(self.stored)).mechanism

    def of(self, reports: Reports) -> Reports:
        if self.question is not None:
            part = self.stored.about(self.question, reports)
            assert isinstance(part, Reports)
            reports = part
        return reports if self.asked is None else Reports(self.asked, reports.data, reports.ids)


@dataclass(frozen=True, eq=False)
class CountJob(Job[Counted]):
    """The tally of a subject."""

    reading: Reading
    subject: ReportSubject

    def read(self, piece: Piece) -> Counted:
        tally = Tally(self.subject.mechanism)
        with self.reading.batches(piece, ids=True) as batches:
            for reports in batches:
                tally.add(self.subject.of(reports), threads=1)
        return tally, {piece.start: tally.n}

    def merge(self, one: Counted, other: Counted) -> Counted:
        one[1].update(other[1])
        return one[0].merge(other[0]), one[1]


@dataclass(frozen=True, eq=False)
class PassJob(Job[Value | None]):
    """One pass over the reports of a subject; nothing for a piece that has none."""

    reading: Reading
    subject: ReportSubject
    work: Pass[Value]
    #: The number of the first report of each piece among all, by the number of its first row.
    firsts: dict[int, int]

    def read(self, piece: Piece) -> Value | None:
        found, number = None, self.firsts[piece.start]
        with self.reading.batches(piece, rows=PASS_ROWS) as batches:
            for reports in filter(len, map(self.subject.of, batches)):
                found = self.merge(found, self.work.read(reports, number))
                number += len(reports)
        return found

    def merge(self, one: Value | None, other: Value | None) -> Value | None:
        if one is None or other is None:
            return other if one is None else one
        return self.work.merge(one, other)


class ReportFiles(StoredReports):
    """Reports of one mechanism in some files, each of them once: see `report_files`."""

    def __init__(
        self,
        selection: Selection,
        engine: Engine,
        progress: Progress = silent,
        subject: ReportSubject | None = None,
    ) -> None:
        self.subject = subject or ReportSubject(selection.mechanism)
        self.mechanism = self.subject.mechanism
        self.sources = selection.sources()
        self._selection, self._engine, self._progress = selection, engine, progress
        self._passes = 0

    def tally(self) -> Tally:
        return self._counted[0]

    def pass_over(self, work: Pass[Value]) -> Value:
        _, numbers = self._counted
        firsts, first = {}, 0
        for piece in self._selection.pieces:
            firsts[piece.start] = first
            first += numbers[piece.start]
        self._passes += 1
        found = self._run(
            PassJob(self._selection.reading, self.subject, work, firsts), f"pass {self._passes}"
        )
        if found is None:
            raise InvalidArgument("reports", self, "at least one report")
        return found

    def among(self, candidates: Iterable[str]) -> ReportFiles:
        return self._seen(replace(self.subject, asked=self.mechanism.among(candidates)))

    def about(self, question: str) -> ReportFiles:
        return self._seen(replace(self.subject, question=question))

    @property
    def nbytes(self) -> int:
        """The memory that all reports would take."""
        return self._selection.n * self._selection.mechanism.dtype.itemsize

    def held(self) -> Reports:
        """All reports in memory."""
        parts = [Reports.of(self._selection.mechanism, [])]
        for piece in self._selection.pieces:
            with self._selection.reading.batches(piece) as batches:
                parts += batches
        return self.subject.of(Reports.concatenate(parts))

    @cached_property
    def _counted(self) -> Counted:
        if not self._selection.pieces:
            return Tally(self.mechanism), {}
        tally, numbers = self._run(CountJob(self._selection.reading, self.subject), "counting")
        tally.sources = self.sources
        return tally, numbers

    def _run(self, job: Job[Value], doing: str) -> Value:
        pieces = self._selection.pieces
        return self._engine.run(job, pieces, watch=watching(self._progress, doing, pieces))

    def _seen(self, subject: ReportSubject) -> ReportFiles:
        return ReportFiles(self._selection, self._engine, self._progress, subject)

    def __repr__(self) -> str:
        return f"<{self._selection.n} reports of {self.mechanism!r} in files>"


def report_files(
    paths: Sequence[str | Path],
    *,
    mechanism: Mechanism | None = None,
    duplicates: str | Duplicates = "refuse",
    engine: Engine | None = None,
    progress: Progress = silent,
) -> ReportFiles:
    """All reports in some files and folders, for methods that need more than counts.

    They are never all in memory: `deniable.combine` and their method `estimate` read them again in
    every pass. Copies of files and ids that come again are refused, or counted once with
    ``duplicates="drop"``.
    """
    rule, engine = require_rule(duplicates), engine or LocalEngine()
    require_type("engine", engine, Engine)
    files = look(find(paths), mechanism)
    return ReportFiles(Selection.of(files, rule, engine, progress), engine, progress)


def by_mechanism(
    places: Sequence[Place],
    rule: Duplicates,
    engine: Engine,
    *,
    mechanism: Mechanism | None = None,
    progress: Progress = silent,
) -> list[ReportFiles]:
    """All reports in some files, those of each mechanism together."""
    groups: dict[Mechanism, list[ReportFile]] = {}
    for file in look(places, mechanism):
        groups.setdefault(file.mechanism, []).append(file)
    return [
        ReportFiles(Selection.of(files, rule, engine, progress), engine, progress)
        for files in groups.values()
    ]
