"""Files of reports, wherever they are: found, cut into pieces, and read some rows at a time.

A path is a file, a folder, or an address that Arrow understands (``s3://``, ``gs://``, ``hdfs://``,
``file://``). Folders are searched, and names such as ``region=north`` on the way to a file are its
keys. Names in a folder that begin with a dot or an underscore are left out, as all engines do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from deniable.core.mechanism import Mechanism
from deniable.core.reports import (
    ID_TYPE,
    Reports,
    fingerprint,
    from_wider_column,
    require_same,
)
from deniable.errors import CorruptData, InvalidArgument, MismatchError
from deniable.extras import pyarrow

#: Rows of one piece, unless a single row group has more.
PIECE_ROWS = 1 << 24
#: Rows that are read at once, and the bytes that they may take: what caches hold.
BATCH_ROWS, BATCH_BYTES = 1 << 18, 1 << 22
#: The most bytes of reports that are read at once, where more rows are worth it.
MOST_BYTES = 1 << 26
#: Bytes of a column that are fetched at once: row groups may be larger than the memory.
FETCHED = 1 << 22
_BUFFER = 1 << 20
#: Files whose footers are read at once.
_OPENED = 16
#: How the names of files with reports end.
SUFFIX = ".parquet"

Keys = tuple[tuple[str, str], ...]


class Place(NamedTuple):
    """Where a file is: its path in the file system that the address of a folder or file lies in."""

    path: str
    #: Empty for files of this machine.
    address: str = ""

    def __str__(self) -> str:
        return self.path

    @property
    def keys(self) -> Keys:
        """The keys of a path: ``region=north/week=1/part.parquet``."""
        pairs = [folder.partition("=") for folder in self.path.split("/")[:-1]]
        return tuple((name, unquote(value)) for name, equals, value in pairs if equals and name)


@dataclass(frozen=True)
class ReportFile:
    """A Parquet file of reports, and what its footer says."""

    place: Place
    mechanism: Mechanism
    #: The rows of each row group.
    groups: tuple[int, ...]
    identified: bool
    fingerprint: str

    @property
    def rows(self) -> int:
        return sum(self.groups)


@dataclass(frozen=True)
class Piece:
    """Some row groups of a file, one after the other."""

    place: Place
    fingerprint: str
    #: The first row group, and the one after the last.
    first: int
    last: int
    #: The number of the first row, among all rows of all files of the job.
    start: int
    rows: int


def find(paths: Sequence[str | Path], *suffixes: str) -> list[Place]:
    """The files at some paths: those that are given, and those in folders with such a name.

    Names end in one of ``suffixes`` (default: `SUFFIX`). A file that is found twice is refused.
    """
    if isinstance(paths, (str, Path)) or not paths or not all(map(str, paths)):
        raise InvalidArgument("paths", paths, "a list of files or folders")
    found = [one for path in paths for one in _found(str(path), suffixes or (SUFFIX,))]
    seen: set[Place] = set()
    for one in found:
        if one in seen:
            allowed = "different files: the reports of one that is given twice would count twice"
            raise InvalidArgument("paths", str(one), allowed)
        seen.add(one)
    return found


def _found(path: str, suffixes: tuple[str, ...]) -> Iterator[Place]:
    address = path if "://" in path else ""
    if not address and not Path(path).is_dir():  # tallies are read without Arrow
        yield Place(str(Path(path).resolve(strict=True)))
        return
    fs = pyarrow_fs()
    system, inner = _located(address)
    if isinstance(system, fs.LocalFileSystem):  # whatever the form of its address
        address, inner = "", str(Path(inner or path).resolve())
    info = system.get_file_info(inner)
    if info.type == fs.FileType.NotFound:
        raise FileNotFoundError(2, "No such file or directory", path)
    if info.type != fs.FileType.Directory:
        yield Place(inner, address)
        return
    inside = system.get_file_info(fs.FileSelector(inner, recursive=True))
    shown = [one for one in inside if one.is_file and _visible(one.path[len(inner) :])]
    files = sorted(one.path for one in shown if one.path.endswith(suffixes))
    if not files:
        names = " or ".join(suffixes)
        raise InvalidArgument("paths", path, f"a folder with files that end in {names}")
    for file in files:
        yield Place(file, address)


def _visible(path: str) -> bool:
    return not any(name.startswith((".", "_")) for name in path.split("/"))


def pyarrow_fs() -> Any:
    """The file systems of Arrow."""
    pyarrow()
    from pyarrow import fs

    return fs


@lru_cache(maxsize=64)
def _located(address: str) -> tuple[Any, str]:
    """The file system that an address lies in, and its path there; empty for this machine."""
    fs = pyarrow_fs()
    if not address:
        return fs.LocalFileSystem(), ""
    try:
        system, inner = fs.FileSystem.from_uri(address)
    except (ValueError, OSError) as error:
        allowed = f"a file, a folder, or an address that Arrow understands ({error})"
        raise InvalidArgument("paths", address, allowed) from error
    return system, str(inner)


@contextmanager
def opened(place: Place) -> Iterator[Any]:
    """A file, open for reading at any place."""
    system, _ = _located(place.address)
    with system.open_input_file(place.path) as file:
        yield file


@contextmanager
def plain(place: Place) -> Iterator[Any]:
    """A file, open for reading from its beginning; without Arrow, if it is on this machine."""
    with opened(place) if place.address else Path(place.path).open("rb") as file:
        yield file


def digest(place: Place) -> str:
    """The SHA-256 of all bytes of a file."""
    found = hashlib.sha256()
    with opened(place) as file:
        while some := file.read(_BUFFER):
            found.update(some)
    return found.hexdigest()


def look(files: Iterable[Place], mechanism: Mechanism | None = None) -> list[ReportFile]:
    """What the footers of files say; ``mechanism`` is the one that they must have."""
    files = list(files)
    known: dict[bytes, Mechanism] = {}
    with ThreadPoolExecutor(min(_OPENED, len(files) or 1)) as pool:
        return list(pool.map(lambda file: _look(file, mechanism, known), files))


def _look(place: Place, mechanism: Mechanism | None, known: dict[bytes, Mechanism]) -> ReportFile:
    with opened(place) as file, _parquet(file, place) as parquet:
        schema, metadata = parquet.schema_arrow, parquet.metadata
        named = (schema.metadata or {}).get(b"deniable.mechanism", b"")
        with about(place):
            if named not in known:
                known[named] = Reports.from_arrow(schema.empty_table(), mechanism).mechanism
            stated = known[named]
            Reports.from_arrow(schema.empty_table(), stated)
        groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        return ReportFile(
            place=place,
            mechanism=stated,
            groups=tuple(groups),
            identified="id" in schema.names,
            fingerprint=fingerprint(file),
        )


@contextmanager
def _parquet(file: Any, place: Place) -> Iterator[Any]:
    import pyarrow.parquet as pq

    arrow = pyarrow()
    try:
        with pq.ParquetFile(file, buffer_size=FETCHED) as parquet:
            yield parquet
    except (arrow.ArrowException, OSError) as error:
        raise CorruptData(f"{place} is not a Parquet file: {error}") from error


@contextmanager
def about(place: Place) -> Iterator[None]:
    """Say which of many files is damaged, or belongs to something else."""
    try:
        yield
    except (CorruptData, MismatchError, InvalidArgument) as error:
        kind = MismatchError if isinstance(error, MismatchError) else CorruptData
        told = str(error)
        raise kind(told if str(place) in told else f"{place}: {told}") from error


def one_mechanism(files: Sequence[ReportFile]) -> Mechanism:
    """The mechanism of all files, if it is one."""
    first = files[0]
    for file in files:
        with about(file.place):
            require_same(first.mechanism, file.mechanism)
    return first.mechanism


def pieces(files: Iterable[ReportFile]) -> list[Piece]:
    """Files cut into pieces: whole row groups, about `PIECE_ROWS` rows."""
    found: list[Piece] = []
    start = 0
    for file in files:
        first = rows = 0
        for number, more in enumerate(file.groups, 1):
            rows += more
            if rows >= PIECE_ROWS or number == len(file.groups):
                found.append(Piece(file.place, file.fingerprint, first, number, start, rows))
                start, first, rows = start + rows, number, 0
    return found


@contextmanager
def reading(
    piece: Piece, mechanism: Mechanism, *, ids: bool = False, rows: int | None = None
) -> Iterator[Iterator[tuple[int, Reports]]]:
    """The reports of a piece some at a time, each with the number of its first row.

    With ``ids``, they have those that the file has. Refuses a file that is another one than when
    it was looked at. What is refused in the block is said to be about the file.
    """
    with (
        opened(piece.place) as file,
        about(piece.place),
        _parquet(file, piece.place) as parquet,
    ):
        if fingerprint(file) != piece.fingerprint:
            raise CorruptData("the file changed while it was read")
        yield _batches(parquet, piece, mechanism, ids, _batch_rows(mechanism, rows))


def _batches(
    parquet: Any, piece: Piece, mechanism: Mechanism, ids: bool, rows: int
) -> Iterator[tuple[int, Reports]]:
    ids = ids and "id" in parquet.schema_arrow.names
    columns = ["report", "id"] if ids else ["report"]
    groups = list(range(piece.first, piece.last))
    start, end = piece.start, piece.start + piece.rows
    for some in parquet.iter_batches(rows, groups, columns, use_threads=False):
        data = _column(some, "report", mechanism.dtype)
        names = _column(some, "id", ID_TYPE) if ids else None
        yield start, Reports(mechanism, data, names)
        start += len(data)
    if start != end:
        raise CorruptData(f"the file has {start - piece.start} of {piece.rows} rows")


def _column(batch: Any, name: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    return from_wider_column(pyarrow().chunked_array([batch.column(name)]), dtype, name)


def _batch_rows(mechanism: Mechanism, wanted: int | None) -> int:
    """Rows of a batch: what caches hold; more, where the counts of a batch are long themselves."""
    width = mechanism.dtype.itemsize
    rows = wanted or max(min(BATCH_ROWS, BATCH_BYTES // width), mechanism.cells)
    return max(1, min(rows, MOST_BYTES // width))
