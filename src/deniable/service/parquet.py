"""Reports out of a store and into another: Parquet files that every engine reads.

A folder holds the manifest and a file for each report, round and stratum that
`deniable estimate` and `Reports.from_parquet` read. Row i of all files of a round and stratum
belongs to one submission; nothing says whose.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from deniable.collection.batches import Batch, write_batch
from deniable.collection.manifest import Collection
from deniable.core.reports import Reports
from deniable.core.tally import Tally
from deniable.errors import CorruptData, InvalidArgument, MismatchError
from deniable.service.encoding import Place
from deniable.service.intake import Intake
from deniable.service.store import Outcome, Store
from deniable.storage.files import create

MANIFEST = "manifest.json"
_FILE = re.compile(r"([a-z0-9_]+)\.round-([0-9]{1,5})(?:\.stratum-([0-9]{1,3}))?\.parquet")
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
        for place, column in seen.columns():
            path = folder / _file(store.collection, place)
            table = Reports(store.packing.mechanisms[place.report], column).to_arrow()
            if path not in files:
                sink = opened.enter_context(_private(path))
                files[path] = opened.enter_context(parquet.ParquetWriter(sink, table.schema))
            files[path].write_table(table)
            written[path] = written.get(path, 0) + len(column)
    return written


def _file(collection: Collection, place: Place) -> str:
    stratum = f".stratum-{place.stratum}" if collection.strata > 1 else ""
    return f"{place.report}.round-{place.round}{stratum}.parquet"


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
    if checked and not add and store.numbers() and not store.has_batch(checked[0][0]):
        allowed = "an empty store, or one that began with this import (--add imports anyway)"
        raise InvalidArgument("store", "one that holds other reports", allowed)
    outcomes = store.add_batches(_again(collection, folder, checked))
    total = 0
    for (_, tallies), outcome in zip(checked, outcomes, strict=True):
        total += sum(t.n for t in tallies.values()) if outcome is Outcome.counted else 0
    return total


def _again(
    collection: Collection, folder: Path, checked: list[tuple[bytes, dict[Place, Tally]]]
) -> Iterator[tuple[bytes, bytes, dict[Place, Tally]]]:
    """The batches that were checked. Their bodies are made anew: together they may be large."""
    for known, batch in zip_longest(checked, _batches(collection, folder)):
        if known is None or batch is None or known[0] != bytes.fromhex(batch.id):
            raise CorruptData(f"the files in {folder} changed while they were read")
        yield known[0], batch.body, known[1]


def _batches(collection: Collection, folder: Path) -> Iterator[Batch]:
    for round_, stratum in _there(collection, folder):
        fields = collection.fields_of(stratum)
        for number, columns in enumerate(_pieces(collection, folder, round_, stratum)):
            name = _name(f"{collection.digest} {round_} {stratum} {number}", columns)
            yield write_batch(collection, columns, round_, fields, name)


def _there(collection: Collection, folder: Path) -> list[tuple[int, int]]:
    """The rounds and strata that a folder has files of, in their order."""
    found = set()
    for path in folder.iterdir():
        if named := _FILE.fullmatch(path.name):
            place = Place(named[1], int(named[2]), int(named[3] or 0))
            if place.stratum < collection.strata and path.name == _file(collection, place):
                found.add(place[1:])
    return sorted(found)


def _check_manifest(collection: Collection, folder: Path) -> None:
    try:
        manifest = (folder / MANIFEST).read_bytes()
    except OSError as error:
        raise InvalidArgument("folder", str(folder), f"one with {MANIFEST} ({error})") from error
    if hashlib.sha256(manifest).hexdigest() != collection.digest:
        raise MismatchError(f"{folder} is the export of another collection")


def _pieces(
    collection: Collection, folder: Path, round_: int, stratum: int
) -> Iterator[dict[str, NDArray[Any]]]:
    """The columns of a round and stratum, some rows at a time."""
    columns = {}
    for report in collection.reports:
        path = folder / _file(collection, Place(report.name, round_, stratum))
        empty = np.empty(0, dtype=report.mechanism.dtype)
        found = Reports.from_parquet(path, report.mechanism).data if path.exists() else empty
        columns[report.name] = found
    if len(set(map(len, columns.values()))) > 1:
        raise CorruptData(f"the files of round {round_} have different numbers of rows")
    for start in range(0, max(map(len, columns.values())), ROWS):
        yield {name: column[start : start + ROWS] for name, column in columns.items()}


def _name(place: str, columns: dict[str, NDArray[Any]]) -> str:
    """An id that follows from the contents, so that the same import is counted once."""
    digest = hashlib.sha256(place.encode())
    for column in columns.values():
        digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()[:32]
