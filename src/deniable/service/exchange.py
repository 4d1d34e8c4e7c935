"""Reports out of a store and into another: Parquet files that every engine reads.

A folder holds the manifest and, for each question and round, a file that `deniable estimate` and
`Reports.from_parquet` read. In a collection that is split, row i of all files of a round belongs to
one submission; nothing says whose.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from deniable.collection.batches import Batch, write_batch
from deniable.collection.manifest import Collection
from deniable.errors import CorruptData, InvalidArgument, MismatchError
from deniable.reports import Reports
from deniable.service.intake import Intake
from deniable.service.packing import Counts
from deniable.service.store import Outcome, Store
from deniable.storage.files import create

MANIFEST = "manifest.json"
#: Reports in one batch of an import.
ROWS = 500_000


def export(store: Store, folder: Path) -> dict[Path, int]:
    """Write all reports that are there at one moment; says how many each file has."""
    import pyarrow.parquet as parquet

    if folder.exists() and any(folder.iterdir()):
        raise InvalidArgument("folder", str(folder), "empty, or a new one")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    files: dict[Path, Any] = {}
    written: dict[Path, int] = {}
    with ExitStack() as opened, store.still() as seen:
        opened.enter_context(_private(folder / MANIFEST)).write(store.collection.manifest)
        for name, round_, column in seen.columns():
            path = folder / f"{name}.round-{round_}.parquet"
            table = Reports(store.collection.question(name).mechanism, column).to_arrow()
            if path not in files:
                sink = opened.enter_context(_private(path))
                files[path] = opened.enter_context(parquet.ParquetWriter(sink, table.schema))
            files[path].write_table(table)
            written[path] = written.get(path, 0) + len(column)
    return written


def _private(path: Path) -> BinaryIO:
    """A new file that only its owner may read."""
    return os.fdopen(create(path), "wb")


def import_folder(store: Store, folder: Path, *, add: bool = False) -> int:
    """Count what an export holds, all of it or nothing; returns how many reports were counted.

    Everything is checked before anything is written, and written in one transaction. The same
    export is counted once. Two exports of one collection may overlap, which nothing
    shows, since ids are not exported: a store that holds other reports is refused, unless ``add``.
    """
    collection = store.collection
    _check_manifest(collection, folder)
    intake = Intake(collection)
    checked = [intake.batch(batch.body) for batch in _batches(collection, folder)]
    if checked and not add and store.counts() and not store.has_batch(checked[0][0]):
        allowed = "an empty store, or one that began with this import; or say --add"
        raise InvalidArgument("store", "one that holds other reports", allowed)
    outcomes = store.add_batches(_again(collection, folder, checked))
    total = 0
    for (_, counts), outcome in zip(checked, outcomes, strict=True):
        total += sum(n for _, n in counts.values()) if outcome is Outcome.counted else 0
    return total


def _again(
    collection: Collection, folder: Path, checked: list[tuple[bytes, Counts]]
) -> Iterator[tuple[bytes, bytes, Counts]]:
    """The batches that were checked. Their bodies are made anew: together they may be large."""
    for known, batch in zip_longest(checked, _batches(collection, folder)):
        if known is None or batch is None or known[0] != bytes.fromhex(batch.id):
            raise CorruptData(f"the files in {folder} changed while they were read")
        yield known[0], batch.body, known[1]


def _batches(collection: Collection, folder: Path) -> Iterator[Batch]:
    for round_ in range(1, collection.rounds + 1):
        for number, columns in enumerate(_pieces(collection, folder, round_)):
            yield _batch(collection, round_, number, columns)


def _batch(
    collection: Collection, round_: int, number: int, columns: dict[str, NDArray[Any]]
) -> Batch:
    """A batch with an id that follows from its contents."""
    sizes = [len(column) for column in columns.values()]
    places = None
    if collection.divide == "sampled":
        places = np.repeat(np.arange(len(sizes)), sizes)
    elif len(set(sizes)) != 1:
        raise CorruptData(f"the files of round {round_} have different numbers of rows")
    name = _name(collection, round_, number, columns)
    return write_batch(collection, columns, places, round_, name)


def _check_manifest(collection: Collection, folder: Path) -> None:
    try:
        manifest = (folder / MANIFEST).read_bytes()
    except OSError as error:
        raise InvalidArgument("folder", str(folder), f"one with {MANIFEST} ({error})") from error
    if hashlib.sha256(manifest).hexdigest() != collection.digest:
        raise MismatchError(f"{folder} is the export of another collection")


def _pieces(collection: Collection, folder: Path, round_: int) -> Iterator[dict[str, NDArray[Any]]]:
    """The columns of a round, some rows at a time."""
    columns = {}
    for question in collection.questions:
        path = folder / f"{question.name}.round-{round_}.parquet"
        empty = np.empty(0, dtype=question.mechanism.dtype)
        found = Reports.from_parquet(path, question.mechanism).data if path.exists() else empty
        columns[question.name] = found
    for start in range(0, max(map(len, columns.values())), ROWS):
        yield {name: column[start : start + ROWS] for name, column in columns.items()}


def _name(
    collection: Collection, round_: int, number: int, columns: dict[str, NDArray[Any]]
) -> str:
    """An id that follows from the contents, so that the same import is counted once."""
    digest = hashlib.sha256(f"{collection.digest} {round_} {number}".encode())
    for column in columns.values():
        digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()[:32]
