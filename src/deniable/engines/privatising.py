"""Raw answers in many files become files of reports, on any engine.

Engines may read a piece more than once, and an answer that is randomised twice is published at
twice the price. So coins are a pure function of the job and of the row. Each file and report has a
key: HMAC-SHA256, under the secret of the job, of the path and of the SHA-256 of all bytes of the
file. Rows are cut into parts, each with a keystream whose key is the HMAC of its number under that
key. A file that changed anywhere gets other coins, and no two rows of a job share any. A file of
reports gets its name when it is complete, and its name, too, is a function of the secret and of the
input.

Rows of a part come in an order that is drawn with the same key, another one for each report: what
is written shows neither the order of the answers nor, across reports, which rows are one person's.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from deniable import __version__
from deniable.answers.columns import check_missing, gaps_closed
from deniable.answers.several import Several
from deniable.arrays import Indices
from deniable.canonical import canonical
from deniable.collection.manifest import Collection, Report
from deniable.core.domain import Domain
from deniable.core.mechanism import CHUNK, Mechanism
from deniable.core.reports import Reports
from deniable.engines.base import Engine, Job, Partial
from deniable.engines.files import Piece, Place, digest, find, opened
from deniable.engines.local import LocalEngine
from deniable.errors import CorruptData, InvalidArgument, MismatchError, Unshown
from deniable.extras import pyarrow
from deniable.randomness import KEY_BYTES, WORD_BYTES, Keystream, derived_key
from deniable.storage.files import sync, sync_folder, write_new

#: Bytes of the reports of a part: what a thread holds of each report.
PART_BYTES = 1 << 26
#: Names in the folder that is written; readers leave out names with an underscore.
MARK, UNFINISHED = "_privatised", "_unfinished"
#: Columns that a file of reports may have already.
_TAKEN = ("report", "id")
#: Told how many rows were randomised, and of how many.
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Plan:
    """What is made of each row: some reports, and the public columns that are kept beside each."""

    reports: tuple[Report, ...]
    keep: tuple[str, ...] = ()
    #: What to do with missing answers: one of `MISSING`.
    missing: str = "refuse"

    def __post_init__(self) -> None:
        check_missing(self.missing)
        for report in self.reports:
            require_forgetful(report)
        names = [report.name for report in self.reports]
        if taken := {*self.asked, *names, *_TAKEN} & set(self.keep):
            allowed = f"public columns; {min(taken)!r} is no such column"
            raise InvalidArgument("keep", list(self.keep), allowed)
        if len(set(self.keep)) < len(self.keep):
            raise InvalidArgument("keep", list(self.keep), "different columns")

    @property
    def asked(self) -> list[str]:
        """The columns of answers."""
        return list(dict.fromkeys(name for report in self.reports for name in report.of))

    @cached_property
    def part(self) -> int:
        """Rows of a part; fewer than a chunk only where reports are wide."""
        widest = max(report.mechanism.dtype.itemsize for report in self.reports)
        return max(8, min(CHUNK, PART_BYTES // widest) // 8 * 8)

    @cached_property
    def name(self) -> bytes:
        """What a folder belongs to: the channels, the parts, and what is kept beside reports."""
        reports = [_described(report) for report in self.reports]
        return _hashed([reports, list(self.keep), self.part])


def report_name(report: Report) -> bytes:
    """What the coins of a report belong to: its channel, with all of its integers.

    It does not depend on what else is reported or kept: under the same secret, that is no reason to
    randomise an answer again.
    """
    return _hashed(_described(report))


def _described(report: Report) -> list[Any]:
    return [report.name, list(report.of), report.mechanism.to_spec()]


def _hashed(described: Any) -> bytes:
    return hashlib.sha256(canonical(described)).digest()


def require_forgetful(report: Report) -> None:
    """Refuse mechanisms whose draws belong to one respondent for ever."""
    if report.mechanism.remembers:
        allowed = "answered on the devices: what is remembered belongs to one respondent"
        raise InvalidArgument(report.name, report.mechanism, allowed)


def reports_of(asked: Mapping[str, Mechanism] | Collection) -> tuple[Report, ...]:
    """The reports of a collection, or of a mechanism for each of some columns.

    A mechanism about several questions reads the columns that are named like them.
    """
    if isinstance(asked, Collection):
        return asked.reports
    usable = isinstance(asked, Mapping) and len(asked) > 0
    if not usable or not all(isinstance(m, Mechanism) for m in asked.values()):
        raise InvalidArgument("columns", asked, "a mechanism for each of some columns")
    return tuple(Report(name, _columns(name, m), m) for name, m in asked.items())


def _columns(name: str, mechanism: Mechanism) -> tuple[str, ...]:
    domain = mechanism.domain
    return tuple(domain.parts) if isinstance(domain, Several) else (name,)


def encoded(report: Report, table: Any, missing: str) -> Any:
    """The encoded answers of a report; a refusal shows none."""
    domain = report.mechanism.domain
    several = isinstance(domain, Several)
    parts = domain.parts if isinstance(domain, Several) else {report.of[0]: domain}
    columns = {name: _closed(name, table, part, missing) for name, part in parts.items()}
    try:
        found = domain.encode(columns if several else columns[report.of[0]])
    except InvalidArgument as refused:
        name = refused.name if several else f"{report.of[0]}: {refused.name}"
        raise InvalidArgument(name, Unshown(refused.value), refused.allowed) from None
    return found.astype(domain.dtype)


def _closed(name: str, table: Any, domain: Domain, missing: str) -> Any:
    """A column of answers whose gaps are skips, or refused."""
    try:
        return gaps_closed(table.column(name), domain, missing)
    except InvalidArgument as refused:
        raise refused.at(f"{name}: {refused.name}") from None


# ---- the work of a piece, which is a whole file


@dataclass(frozen=True)
class DigestJob(Job[dict[Place, str]]):
    """The SHA-256 of all bytes of each file: answers are not random, so samples say too little."""

    def read(self, piece: Piece) -> dict[Place, str]:
        return {piece.place: digest(piece.place)}

    def merge(self, one: dict[Place, str], other: dict[Place, str]) -> dict[Place, str]:
        return one | other


@dataclass(frozen=True)
class JobKeys:
    """The keys of a job: what each of them is for goes into it, so none is used twice."""

    secret: bytes = field(repr=False)
    plan: Plan

    def key(self, use: str, piece: Piece, report: Report) -> bytes:
        """The key of a file and a report for one use."""
        scheme = piece.place.address.partition("://")[0]
        file = (scheme, piece.place.path, piece.fingerprint)
        channel = (report_name(report), str(self.plan.part))
        return derived_key(self.secret, "deniable files", use, *channel, *file)

    @property
    def commitment(self) -> str:
        """What tells this secret, plan and release from others, and nothing about them.

        Another release may make other reports of the same coins.
        """
        return derived_key(self.secret, "deniable folder", self.plan.name, __version__).hex()


@dataclass(frozen=True)
class PrivatiseJob(Job[list[str]]):
    """Writes the files of reports of each file of answers. To do it again writes the same bytes."""

    coins: JobKeys
    folder: str

    @property
    def plan(self) -> Plan:
        return self.coins.plan

    def read(self, piece: Piece) -> list[str]:
        require_mark(Path(self.folder), self.coins)
        with ExitStack() as stack:
            file = stack.enter_context(_answers(piece.place))
            outputs = [Output(self, piece, report) for report in self.plan.reports]
            for output in outputs:
                stack.callback(output.discard)
            parts = _parts(file, piece.place, self._wanted(file), self.plan.part)
            for number, rows in enumerate(parts):
                for output in outputs:
                    output.write(number, rows)
            for output in outputs:
                output.finish()
            if digest(piece.place) != piece.fingerprint:
                raise CorruptData(f"{piece.place} changed while it was read: nothing of it is kept")
            require_mark(Path(self.folder), self.coins)
            return [output.commit() for output in outputs]

    def _wanted(self, file: Any) -> list[str]:
        names = file.schema_arrow.names
        return [*self.plan.asked, *(name for name in self.plan.keep if name in names)]

    def merge(self, one: list[str], other: list[str]) -> list[str]:
        return one + other

    def outputs(self, piece: Piece) -> list[str]:
        """The names of the files that a piece becomes, below the folder."""
        return [self.output(piece, report) for report in self.plan.reports]

    def output(self, piece: Piece, report: Report) -> str:
        """Kept keys of the path stay keys. The rest is a name that tells nothing."""
        keys = [pair for pair in piece.place.keys if pair[0] in self.plan.keep]
        folders = [f"{name}={_quoted(value)}" for name, value in keys]
        name = self.coins.key("name", piece, report)[:16].hex()
        return "/".join([report.name, *folders, f"{name}.parquet"])


class Output:
    """A file of reports that gets its name when it is complete."""

    def __init__(self, job: PrivatiseJob, piece: Piece, report: Report) -> None:
        self._report, self._keep, self._missing = report, job.plan.keep, job.plan.missing
        self._name = job.output(piece, report)
        self._key = job.coins.key("coins", piece, report)
        self._order = job.coins.key("order", piece, report)
        self._path = Path(job.folder, self._name)
        self._fresh = Path(job.folder, UNFINISHED, f"{self._path.stem}.{uuid.uuid4().hex}")
        self._writer: Any = None

    def write(self, number: int, rows: Any) -> None:
        """Randomise the rows of a part."""
        mechanism = self._report.mechanism
        values = encoded(self._report, rows, self._missing)
        part = number.to_bytes(8, "big")
        data = mechanism.randomise(values, derived_key(self._key, part), 1)
        words = Keystream(derived_key(self._order, part)).bytes(WORD_BYTES * len(data))
        order = np.argsort(np.frombuffer(words, dtype="<u8"), kind="stable")
        table = Reports(mechanism, data[order]).to_arrow()
        for name in self._keep:
            if name in rows.column_names:
                table = table.append_column(name, _taken(rows.column(name), order))
        if self._writer is None:
            import pyarrow.parquet as pq

            self._writer = pq.ParquetWriter(self._fresh, table.schema, compression="none")
        self._writer.write_table(table)

    def finish(self) -> None:
        """Bring all bytes of the file to the disk."""
        if self._writer is not None:
            self._writer.close()
            with self._fresh.open("rb") as file:
                sync(file.fileno())

    def commit(self) -> str:
        """Give the finished file its name."""
        if self._writer is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._fresh.replace(self._path)
        return self._name

    def discard(self) -> None:
        """Remove what was not committed."""
        if self._writer is not None:
            self._writer.close()
        self._fresh.unlink(missing_ok=True)


def _taken(column: Any, order: Indices) -> Any:
    """The rows of a column in another order; the dictionary of one would show the first order."""
    arrow = pyarrow()
    if arrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.take(arrow.array(order))


@contextmanager
def _answers(place: Place) -> Iterator[Any]:
    pyarrow()  # or a word on what to install
    import pyarrow.parquet as pq

    with opened(place) as file:
        with _read(place):
            parquet = pq.ParquetFile(file)
        with parquet:
            yield parquet


@contextmanager
def _read(place: Place) -> Iterator[None]:
    """Say which file is damaged; Arrow may say so as the system does."""
    try:
        yield
    except (pyarrow().ArrowException, OSError) as error:
        raise CorruptData(f"{place} cannot be read as a Parquet file: {error}") from error


def _parts(file: Any, place: Place, columns: Sequence[str], rows: int) -> Iterator[Any]:
    """The rows of a file, so many at a time, wherever its row groups end."""
    table = pyarrow().Table
    held = file.schema_arrow.empty_table().select(columns).replace_schema_metadata(None)
    batches = file.iter_batches(rows, columns=columns, use_threads=False)
    while True:
        with _read(place):
            batch = next(batches, None)
        if batch is None:
            break
        more = table.from_batches([batch]).select(columns).replace_schema_metadata(None)
        held = pyarrow().concat_tables([held, more])
        while held.num_rows >= rows:
            yield held.slice(0, rows)
            held = held.slice(rows)
    if held.num_rows:
        yield held


def _quoted(value: str) -> str:
    from urllib.parse import quote

    return quote(value, safe="")


# ---- the job, and its folder


def privatise_files(
    paths: Sequence[str | Path],
    asked: Mapping[str, Mechanism] | Collection,
    folder: str | Path,
    *,
    keep: Sequence[str] = (),
    missing: str = "refuse",
    secret: Path | None = None,
    engine: Engine | None = None,
    progress: Progress = lambda done, total: None,
) -> int:
    """Randomise the answers in some Parquet files, one person per row, into a new folder.

    ``asked`` has a mechanism for each column, or is a collection with a column for each question.
    ``keep`` are public columns, or keys of the paths (``region=north/``), that stay as they are;
    nothing else of the input is written. The folder must be one that all workers of the engine see.
    Missing answers (null, NaN) are refused; with ``missing="skip"`` those to an optional question
    are people who skipped it.

    With ``secret``, a file that is made for it, work that was interrupted goes on where it ended;
    the file is removed in the end. It must never reach those who get the reports: with it, they
    could undo them. Without it, the secret is kept in memory only, and work that ends with an error
    leaves nothing. Returns the number of rows.
    """
    plan, place = Plan(reports_of(asked), tuple(keep), missing), Path(folder).resolve()
    _require_folders(plan)
    _require_room(place)
    looked = _looked(find(paths), plan)
    runner = engine or LocalEngine()
    found = runner.run(DigestJob(), looked) if looked else {}
    pieces = [Piece(p.place, found[p.place], p.first, p.last, p.start, p.rows) for p in looked]
    _refuse_copies(pieces)
    coins = JobKeys(_secret(secret, place), plan)
    job = PrivatiseJob(coins, str(place))
    _begin(place, coins)
    there = _written(place)
    _refuse_others(place, there, job, pieces)
    ready = frozenset(i for i, p in enumerate(pieces) if set(job.outputs(p)) <= there)
    before = Partial(ready, [name for i in sorted(ready) for name in job.outputs(pieces[i])])
    total = sum(piece.rows for piece in pieces)

    def watch(done: Partial[list[str]]) -> None:
        progress(sum(pieces[i].rows for i in done.pieces), total)

    with _all_or_nothing(place, coins) if secret is None else nullcontext():
        written = runner.run(job, pieces, before=before if ready else None, watch=watch)
        if lost := set(written) - _written(place):
            allowed = f"a folder that all workers share: {min(lost)} is not there"
            raise InvalidArgument("folder", str(place), allowed)
    shutil.rmtree(place / UNFINISHED)
    for one in (place, *(path for path in place.rglob("*") if path.is_dir())):
        sync_folder(one)  # the names of the files stay when the secret is gone
    if secret is not None:
        secret.unlink()
    return total


def _require_folders(plan: Plan) -> None:
    """Each report has a folder of its name: below the output, and where readers look."""
    for name in (report.name for report in plan.reports):
        if not name or name.startswith((".", "_")) or set(name) & set("/\\\0"):
            allowed = "the name of a folder, without / and \\, that begins with neither . nor _"
            raise InvalidArgument("column", name, allowed)


def _looked(places: Iterable[Place], plan: Plan) -> list[Piece]:
    """Each file with rows as one piece, which has no fingerprint yet."""
    pieces: list[Piece] = []
    start = 0
    for place in places:
        with _answers(place) as file:
            names = file.schema_arrow.names
            known = {*names, *dict(place.keys)}
            if missing := {*plan.asked, *plan.keep} - known or set(plan.asked) - set(names):
                allowed = f"a column of every file; {place} has no {min(missing)}"
                raise InvalidArgument("column", min(missing), allowed)
            if several := [name for name in (*plan.asked, *plan.keep) if names.count(name) > 1]:
                allowed = f"one column of every file; {place} has several of that name"
                raise InvalidArgument("column", several[0], allowed)
            groups, rows = file.num_row_groups, file.metadata.num_rows
        if rows:
            pieces.append(Piece(place, "", 0, groups, start, rows))
            start += rows
    if not pieces:
        raise InvalidArgument("paths", "no rows", "files with answers")
    return pieces


def _refuse_copies(pieces: Sequence[Piece]) -> None:
    known: dict[str, Piece] = {}
    for piece in pieces:
        if (same := known.setdefault(piece.fingerprint, piece)) is not piece:
            raise MismatchError(
                f"{piece.place} is a copy of {same.place}: to randomise its answers twice would "
                "cost its people twice. Remove one of them. If they are answers of other people, "
                "put them into one file"
            )


def _secret(path: Path | None, folder: Path) -> bytes:
    """A fresh secret from the kernel; or that of a file, which is made if it is not there."""
    fresh = os.urandom(KEY_BYTES)
    if path is None:
        return fresh
    if path.resolve().is_relative_to(folder):
        raise InvalidArgument("secret", str(path), f"a file outside of {folder}")
    if path.exists():
        return _kept(path)
    if not (folder / MARK).exists():  # else the fresh one will be refused
        write_new(path, fresh)
    return fresh


def _kept(path: Path) -> bytes:
    """The secret of a run that was interrupted."""
    if os.name == "posix" and stat.S_IMODE(path.lstat().st_mode) & 0o077:
        raise InvalidArgument("secret", str(path), "a file that only its owner may read (mode 600)")
    secret = path.read_bytes()
    if len(secret) != KEY_BYTES:
        raise CorruptData(f"{path} is not a secret of {KEY_BYTES} bytes")
    return secret


def _require_room(folder: Path) -> None:
    """Refuse a folder that has something else in it."""
    if folder.is_dir():
        usable = (folder / MARK).exists() or not any(folder.iterdir())
    else:
        usable = not folder.exists()
    if not usable:
        raise InvalidArgument("folder", str(folder), "empty, or a new one")


def _begin(folder: Path, coins: JobKeys) -> None:
    """Mark a new folder as one of this secret and plan, or find that it is."""
    folder.mkdir(parents=True, exist_ok=True)
    _require_room(folder)
    with suppress(FileExistsError):
        write_new(folder / MARK, coins.commitment.encode())
    require_mark(folder, coins)
    shutil.rmtree(folder / UNFINISHED, ignore_errors=True)
    (folder / UNFINISHED).mkdir()


def require_mark(folder: Path, coins: JobKeys) -> None:
    """Refuse a folder with the reports of another secret or plan: they would be a second budget."""
    try:
        found = (folder / MARK).read_text()
    except FileNotFoundError:
        allowed = "a folder that all workers share, and that nobody removes"
        raise InvalidArgument("folder", str(folder), allowed) from None
    if found != coins.commitment:
        raise MismatchError(
            f"{folder} has reports of another run: with other coins, columns, mechanisms or "
            "another release of deniable. To go on with that run, give its secret and the same "
            "options. Reports of both runs about the same people would cost them twice"
        )


@contextmanager
def _all_or_nothing(folder: Path, coins: JobKeys) -> Iterator[None]:
    """After an error, remove what was written, unless another run took the folder over.

    The secret is gone with the error. Whoever starts anew must not find reports of the same people.
    """
    try:
        yield
    except BaseException:
        with suppress(InvalidArgument, MismatchError):
            require_mark(folder, coins)
            (folder / MARK).unlink()  # first: without it, no task that still runs names a file
            for one in folder.iterdir():
                shutil.rmtree(one, ignore_errors=True)
        raise


def _written(folder: Path) -> set[str]:
    """The files of reports in a folder."""
    found = (path.relative_to(folder) for path in folder.rglob("*.parquet"))
    return {path.as_posix() for path in found if path.parts[0] != UNFINISHED}


def _refuse_others(
    folder: Path, there: set[str], job: PrivatiseJob, pieces: Sequence[Piece]
) -> None:
    """Refuse to go on beside reports of answers that changed since, or that are gone."""
    if others := there - {name for piece in pieces for name in job.outputs(piece)}:
        raise MismatchError(
            f"{folder / min(others)} was made from a file that changed or is gone since. To "
            "randomise its answers again would cost its people twice. Restore that file"
        )
