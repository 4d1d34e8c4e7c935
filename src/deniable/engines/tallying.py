"""Tallies of many files, on any engine."""

from __future__ import annotations

import hashlib
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from urllib.parse import quote

from deniable.canonical import canonical
from deniable.core.mechanism import Mechanism
from deniable.core.tally import Tally, seal, unseal
from deniable.engines.base import Engine, Job, Partial
from deniable.engines.duplicates import Duplicates, require_rule
from deniable.engines.files import Piece, Place, ReportFile, find, look
from deniable.engines.local import LocalEngine
from deniable.engines.progress import Progress, silent, watching
from deniable.engines.selection import Reading, Selection
from deniable.errors import CorruptData, InvalidArgument, require_type
from deniable.storage.files import sync_folder, whole

#: The values of the keys that tallies are made by.
Group = tuple[str, ...]
Tallies = dict[Group, Tally]
#: How the names of files with tallies end.
TALLY_SUFFIX = ".tally"
_MAGIC = b"DNPARTS"
#: Seconds between two times that unfinished work is kept.
PACE = 10.0


@dataclass(frozen=True, eq=False)
class TallyJob(Job[Tallies]):
    """The tallies of a piece: one, for the group that its file belongs to."""

    reading: Reading
    by: tuple[str, ...]

    def read(self, piece: Piece) -> Tallies:
        tally = Tally(self.reading.mechanism)
        with self.reading.batches(piece, ids=True) as batches:
            for reports in batches:
                tally.add(reports, threads=1)
        return {group_of(piece.place, self.by): tally}

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
    resume: str | Path | None = None,
    progress: Progress = silent,
) -> Tallies:
    """A tally of all reports in some files and folders; one for each group, if there are keys.

    ``by`` names keys of the paths, as in ``region=north/week=1/part.parquet``; without any, the
    only group is ``()``. Copies of files and ids that come again are refused, or counted once with
    ``duplicates="drop"``. With ``resume``, a file that keeps what was done, work that was
    interrupted goes on where it ended.
    """
    rule, engine = require_rule(duplicates), engine or LocalEngine()
    require_type("engine", engine, Engine)
    kept = None if resume is None else Path(resume)
    if kept is not None:
        _require_folder("resume", kept)
    files = _grouped(look(find(paths), mechanism), by)
    selection = Selection.of(files, rule, engine, progress)
    return _tallies(selection, tuple(by), engine, kept, progress)


def _grouped(files: list[ReportFile], by: Sequence[str]) -> list[ReportFile]:
    """The files, if the paths of all of them have the keys."""
    if isinstance(by, str) or len(set(by)) < len(by):
        raise InvalidArgument("by", by, "a list of different names")
    for file in files:
        if missing := set(by) - dict(file.place.keys).keys():
            name = min(missing)
            raise InvalidArgument("by", name, f"a key of every path; {file.place} has no {name}=")
    return files


def _tallies(
    selection: Selection,
    by: tuple[str, ...],
    engine: Engine,
    resume: Path | None,
    progress: Progress,
) -> Tallies:
    notes = Notes(resume, TallyJob(selection.reading, by), selection.pieces)
    found = notes.run(engine, progress) if selection.pieces else {}
    sources: defaultdict[Group, set[str]] = defaultdict(set)
    for file in selection.files:
        sources[group_of(file.place, by)] |= {file.fingerprint} if file.rows else set()
    for group, files in sources.items():
        tally = found.setdefault(group, Tally(selection.mechanism))
        tally.sources = frozenset(files)
    return dict(sorted(found.items()))


def check_output(output: Path) -> None:
    """Refuse to write over anything, or into a folder that is not there."""
    if output.exists() or output.is_symlink():
        raise InvalidArgument("output", str(output), "a name that nothing has yet")
    _require_folder("output", output)


def _require_folder(name: str, path: Path) -> None:
    if not path.parent.is_dir():
        raise InvalidArgument(name, str(path), "in a folder that exists")


def write_tallies(tallies: Tallies, by: Sequence[str], output: Path) -> dict[Path, Tally]:
    """Write tallies: the only one to a file, or those of groups into a folder.

    Its names are the keys: ``output/region=north/week=1.tally``. The folder appears as a whole.
    """
    if not by:
        _write(output, tallies[()].to_bytes())
        return {output: tallies[()]}
    fresh, written = Path(mkdtemp(dir=output.parent, prefix=f".{output.name}.")), {}
    for group, tally in tallies.items():
        names = [f"{key}={quote(value, safe='')}" for key, value in zip(by, group, strict=True)]
        inner = Path(*names[:-1], names[-1] + TALLY_SUFFIX)
        (fresh / inner).parent.mkdir(parents=True, exist_ok=True)
        _write(fresh / inner, tally.to_bytes())
        written[output / inner] = tally
    fresh.rename(output)
    sync_folder(output.parent)
    return written


def _write(path: Path, data: bytes) -> None:
    """Put a file into place: it has these bytes, or those that it had before."""
    with whole(path) as file:
        file.write(data)


class Notes:
    """What was done of a job, in a file, so that it can go on after an interruption.

    The file names the pieces of the job. If they are others by then, it is refused: the tallies
    would not be those of the files.
    """

    def __init__(self, path: Path | None, job: TallyJob, pieces: Sequence[Piece]) -> None:
        self._path, self._job, self._pieces = path, job, pieces
        plan = [
            job.reading.mechanism.to_spec(),
            list(job.by),
            [[*p.place, p.fingerprint, p.first, p.last] for p in pieces],
            hashlib.sha256(job.reading.dropped.tobytes()).hexdigest(),
        ]
        self._plan = hashlib.sha256(canonical(plan)).hexdigest()
        self._done: Partial[Tallies] | None = None
        self._last = time.monotonic()

    def run(self, engine: Engine, progress: Progress) -> Tallies:
        """Do the job, or what is left of it."""
        tell = watching(progress, "counting", self._pieces)

        def watch(done: Partial[Tallies]) -> None:
            self._keep(done)
            tell(done)

        try:
            found = engine.run(self._job, self._pieces, before=self._before(), watch=watch)
        except BaseException:
            self._write()
            raise
        if self._path is not None:
            self._path.unlink(missing_ok=True)
        return found

    def _before(self) -> Partial[Tallies] | None:
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
            sealed = content[start : start + size]
            tallies[tuple(group)] = Tally.from_bytes(sealed, self._job.reading.mechanism)
            start += size
        return Partial(frozenset(header["done"]), tallies)

    def _keep(self, done: Partial[Tallies]) -> None:
        """Note what is done; it is written every few seconds."""
        self._done = done
        if time.monotonic() - self._last > PACE:
            self._write()

    def _write(self) -> None:
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
        _write(self._path, seal(_MAGIC, header, b"".join(sealed.values())))
