"""Tallies of many files, on any engine."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from deniable.canonical import canonical
from deniable.core.mechanism import Mechanism
from deniable.core.reports import Reports
from deniable.core.tally import Tally, seal, unseal
from deniable.engines.base import Engine, Job, Partial
from deniable.engines.duplicates import (
    Duplicates,
    Rows,
    repeated_ids,
    require_rule,
    without_copies,
)
from deniable.engines.files import Piece, Place, ReportFile, find, look, one_mechanism, pieces, read
from deniable.engines.local import LocalEngine
from deniable.errors import CorruptData, InvalidArgument
from deniable.storage.files import create

#: The values of the keys that tallies are made by.
Group = tuple[str, ...]
Tallies = dict[Group, Tally]
#: Told how many reports were counted, and of how many.
Progress = Callable[[int, int], None]
_MAGIC = b"DNPARTS"
#: Seconds between two times that unfinished work is kept.
PACE = 10.0


@dataclass(frozen=True, eq=False)
class TallyJob(Job[Tallies]):
    """The tallies of a piece: one, for the group that its file belongs to."""

    mechanism: Mechanism
    by: tuple[str, ...]
    identified: bool
    #: Rows that are left out, in ascending order.
    dropped: Rows

    def read(self, piece: Piece) -> Tallies:
        tally = Tally(self.mechanism)
        for start, reports in read(piece, self.mechanism, ids=self.identified):
            tally.add(self._kept(start, reports), threads=1)
        return {group_of(piece.place, self.by): tally}

    def _kept(self, start: int, reports: Reports) -> Reports:
        low, high = np.searchsorted(self.dropped, [start, start + len(reports)])
        if low == high:
            return reports
        rows = self.dropped[low:high] - start
        ids = None if reports.ids is None else np.delete(reports.ids, rows, axis=0)
        return Reports(reports.mechanism, np.delete(reports.data, rows, axis=0), ids)

    def merge(self, one: Tallies, other: Tallies) -> Tallies:
        both = {group: one[group].merge(other[group]) for group in one.keys() & other.keys()}
        return {**one, **other, **both}


def group_of(place: Place, by: tuple[str, ...]) -> Group:
    """The values of the keys of a path, in the order of ``by``."""
    keys = dict(place.keys)
    return tuple(keys[name] for name in by)


def tally_files(
    paths: Sequence[str | Path],
    *,
    mechanism: Mechanism | None = None,
    by: Sequence[str] = (),
    duplicates: str | Duplicates = "refuse",
    engine: Engine | None = None,
    resume: Path | None = None,
    progress: Progress = lambda done, total: None,
) -> Tallies:
    """A tally of all reports in some files and folders; one for each group, if there are keys.

    ``by`` names keys of the paths, as in ``region=north/week=1/part.parquet``; without any, the
    only group is ``()``. Copies of files and ids that come again are refused, or counted once with
    ``duplicates="drop"``. With ``resume``, a file that keeps what was done, work that was
    interrupted goes on where it ended.
    """
    rule = require_rule(duplicates)
    files = grouped(look(find(paths), mechanism), by)
    return tally_looked(files, tuple(by), rule, engine or LocalEngine(), resume, progress)


def grouped(files: list[ReportFile], by: Sequence[str]) -> list[ReportFile]:
    """The files, if the paths of all of them have the keys."""
    if isinstance(by, str) or len(set(by)) < len(by):
        raise InvalidArgument("by", by, "a list of different names")
    for file in files:
        if missing := set(by) - dict(file.place.keys).keys():
            name = min(missing)
            raise InvalidArgument("by", name, f"a key of every path; {file.place} has no {name}=")
    return files


def tally_looked(
    files: list[ReportFile],
    by: tuple[str, ...],
    rule: Duplicates,
    engine: Engine,
    resume: Path | None,
    progress: Progress,
) -> Tallies:
    """The tallies of files whose footers were read."""
    kept = without_copies(files, rule)
    mechanism = one_mechanism(kept)
    cut = pieces(kept)
    dropped = repeated_ids(engine, kept, mechanism, rule)
    # A fingerprint of ids is one of all reports, or of none.
    identified = all(file.identified for file in kept)
    job = TallyJob(mechanism, by, identified, dropped)
    total = sum(piece.rows for piece in cut)
    notes = Notes(resume, job, cut)

    def watch(done: Partial[Tallies]) -> None:
        progress(sum(cut[i].rows for i in done.pieces), total)
        notes.keep(done)

    try:
        found = engine.run(job, cut, before=notes.before(), watch=watch) if cut else {}
    except BaseException:
        notes.flush()
        raise
    notes.remove()
    for file in kept:
        tally = found.setdefault(group_of(file.place, by), Tally(mechanism))
        tally.sources |= {file.fingerprint}
    return dict(sorted(found.items()))


class Notes:
    """What was done of a job, in a file, so that it can go on after an interruption.

    The file names the pieces of the job. If they are others by then, it is refused: the tallies
    would not be those of the files.
    """

    def __init__(self, path: Path | None, job: TallyJob, cut: Sequence[Piece]) -> None:
        self._path, self._done = path, None
        self._mechanism = job.mechanism
        plan = [
            job.mechanism.to_spec(),
            list(job.by),
            [[*p.place, p.fingerprint, p.first, p.last] for p in cut],
            hashlib.sha256(job.dropped.tobytes()).hexdigest(),
        ]
        self._plan = hashlib.sha256(canonical(plan)).hexdigest()
        self._last = time.monotonic()

    _done: Partial[Tallies] | None

    def before(self) -> Partial[Tallies] | None:
        """What an earlier run had done."""
        if self._path is None or not self._path.exists():
            return None
        header, content = unseal(_MAGIC, self._path.read_bytes(), "file of unfinished work")
        if header["plan"] != self._plan:
            raise CorruptData(
                f"{self._path} belongs to other files or options. Delete it to start anew"
            )
        tallies, start = {}, 0
        for *group, size in header["groups"]:
            tallies[tuple(group)] = Tally.from_bytes(content[start : start + size], self._mechanism)
            start += size
        return Partial(frozenset(header["done"]), tallies)

    def keep(self, done: Partial[Tallies]) -> None:
        """Note what is done; it is written every few seconds."""
        self._done = done
        if time.monotonic() - self._last > PACE:
            self.flush()

    def flush(self) -> None:
        """Write what is done, and only then let go of what was written before."""
        self._last = time.monotonic()
        if self._path is None or self._done is None:
            return
        sealed = {group: tally.to_bytes() for group, tally in self._done.value.items()}
        header = {
            "plan": self._plan,
            "done": sorted(self._done.pieces),
            "groups": [[*group, len(data)] for group, data in sealed.items()],
        }
        fresh = self._path.with_name(self._path.name + ".new")
        fresh.unlink(missing_ok=True)
        with os.fdopen(create(fresh), "wb") as file:
            file.write(seal(_MAGIC, header, b"".join(sealed.values())))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)

    def remove(self) -> None:
        """All is done."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
