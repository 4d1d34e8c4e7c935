"""Reports out of a store and into another: Parquet files that every engine reads.

A folder holds the manifest and files such as
``question=smoking/round=1/day=2026-03-12/part-0.parquet``, whose folders are keys that Spark,
DuckDB and pandas read. Row i of all files of a day, round and stratum belongs to one submission;
nothing says whose. A store keeps days and no times, and an export has the order of the random ids,
so that files by day say nothing that the store does not say.

A day is complete when its note is there: ``_days/2026-03-12.json``, with what the store had of that
day, and how many rows each file has. An export writes the days that have no such note: it adds what
is new, and goes on after an interruption.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.canonical import canonical
from deniable.collection.batches import Batch, write_batch
from deniable.collection.manifest import Collection
from deniable.core.reports import Reports
from deniable.core.tally import Tally
from deniable.errors import CorruptData, InvalidArgument, MismatchError
from deniable.service.encoding import TallyKey
from deniable.service.intake import Intake
from deniable.service.store import Outcome, Store
from deniable.service.store.base import EPOCH, Kept, Progress, quiet, today
from deniable.storage.files import whole

MANIFEST, NOTES = "_manifest.json", "_days"
_FILE = re.compile(r"question=([a-z0-9_]+)/round=([0-9]{1,5})(?:/stratum=([0-9]{1,5}))?/.*")
#: Bytes of reports that are written in one pass over the store, and of those that wait to be
#: written: a single day may have more.
PASS = WAITING = 1 << 28
#: Reports in one batch of an import.
ROWS = 500_000


@dataclass(frozen=True)
class Exported:
    """What an export did."""

    #: The days that were written, and how many reports each has.
    written: dict[date, int]
    #: How many days were there already.
    known: int
    #: Reports before this day cannot be exported: they are only counted.
    purged_before: date | None


def export(
    store: Store, folder: Path, *, unfinished: bool = False, progress: Progress = quiet
) -> Exported:
    """Write the reports of all days that are over, and that the folder does not have yet.

    With ``unfinished``, also those that came today so far: the next export writes this day anew.
    """
    _begin(folder, store.collection)
    with store.still() as seen:
        purged, last = seen.purged_before(), EPOCH + timedelta(days=today())
        there = {
            day: kept
            for day, kept in seen.days().items()
            if (purged is None or purged <= day) and (unfinished or day < last)
        }
        notes = _notes(folder)
        _refuse_another(folder, notes, there)
        todo = {day: kept for day, kept in there.items() if not _is_known(notes.get(day), kept)}
        written: dict[date, int] = {}
        done, total = 0, sum(kept.number for kept in todo.values())
        progress(done, total)
        for days in _passes(todo):
            rows = _write(seen, folder, days)
            for day in days:
                note = {**_told(todo[day]), "files": dict(sorted(rows[day].items()))}
                (folder / NOTES).mkdir(mode=0o700, exist_ok=True)
                with whole(folder / NOTES / f"{day}.json") as file:
                    file.write(canonical(note))
                written[day] = sum(rows[day].values())
                done += todo[day].number
                progress(done, total)
    return Exported(written, len(there) - len(todo), purged)


def _begin(folder: Path, collection: Collection) -> None:
    """Make the folder, or make sure that it is an export of this collection."""
    if (folder / MANIFEST).exists():
        _check_manifest(collection, folder)
        return
    if folder.exists() and any(folder.iterdir()):
        allowed = "empty, a new one, or an export of this collection"
        raise InvalidArgument("folder", str(folder), allowed)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with whole(folder / MANIFEST) as file:
        file.write(collection.manifest)


def _refuse_another(
    folder: Path, notes: dict[date, dict[str, Any]], there: dict[date, Kept]
) -> None:
    """Refuse to replace days of which the folder has more than the store: rows never go."""
    for day, kept in there.items():
        told = _told(kept)
        if day in notes and any(told[name] < notes[day].get(name, 0) for name in told):
            allowed = f"an export of this store, which has less of {day} than the folder"
            raise InvalidArgument("folder", str(folder), allowed)


def _passes(todo: dict[date, Kept]) -> Iterator[list[date]]:
    """The days in their order, as many at a time as one pass takes."""
    some: list[date] = []
    for day in sorted(todo):
        if some and sum(todo[one].size for one in (*some, day)) > PASS:
            yield some
            some = []
        some.append(day)
    if some:
        yield some


def _write(store: Store, folder: Path, days: list[date]) -> dict[date, dict[str, int]]:
    """Write the files of some days, and say how many rows each has."""
    import pyarrow.parquet as parquet

    rows: dict[date, dict[str, int]] = defaultdict(dict)
    writers: dict[str, Any] = {}
    waiting: dict[tuple[date, TallyKey], list[NDArray[Any]]] = defaultdict(list)
    size = 0
    with ExitStack() as opened:

        def write() -> None:
            for (day, place), columns in waiting.items():
                name = _file(store.collection, day, place)
                mechanism = store.packing.mechanisms[place.report]
                table = Reports(mechanism, np.concatenate(columns)).to_arrow()
                if name not in writers:
                    (folder / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    sink = opened.enter_context(whole(folder / name))
                    writers[name] = opened.enter_context(parquet.ParquetWriter(sink, table.schema))
                writers[name].write_table(table)
                rows[day][name] = rows[day].get(name, 0) + len(table)
            waiting.clear()

        for day, place, column in store.columns_on(days):
            waiting[day, place].append(column)
            size += column.nbytes
            if size > WAITING:
                write()
                size = 0
        write()
    return rows


def _file(collection: Collection, day: date, place: TallyKey) -> str:
    """The name of a file in the folder; its folders are keys that engines read."""
    keys = [f"question={place.report}", f"round={place.round}"]
    keys += [f"stratum={place.stratum}"] if collection.strata > 1 else []
    return "/".join([*keys, f"day={day}", "part-0.parquet"])


def _told(kept: Kept) -> dict[str, int]:
    """What a note says of the store."""
    return {"submissions": kept.submissions, "batches": kept.batches}


def _is_known(note: dict[str, Any] | None, kept: Kept) -> bool:
    """Whether the folder has all of a day."""
    return note is not None and note == {**_told(kept), "files": note["files"]}


def _notes(folder: Path) -> dict[date, dict[str, Any]]:
    """What the folder says of its days, in their order."""
    found = {}
    for path in sorted((folder / NOTES).glob("[0-9]*.json")):
        try:
            note = json.loads(path.read_bytes())
            day = date.fromisoformat(path.stem)
            sound = all(type(rows) is int for rows in note["files"].values())
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            sound = False
        if not sound:
            raise CorruptData(f"{path} is damaged: remove it, and export again")
        found[day] = note
    return found


def import_folder(
    store: Store, folder: Path, *, add: bool = False, progress: Progress = quiet
) -> int:
    """Count what an export holds, all of it or nothing; returns how many reports were counted.

    Everything is checked before anything is written, and written in one transaction. What was
    imported before is counted once, so that an export that grew adds its new days. Nothing shows
    whether other reports are the same, since ids are not exported: a store that holds any is
    refused, unless ``add``.
    """
    collection = store.collection
    _check_manifest(collection, folder)
    intake = Intake(collection)
    parts = _parts(collection, folder)
    done, total = 0, 2 * sum(part.rows for part in parts)
    checked = []
    for batch, rows in _batches(collection, folder, parts):
        checked.append(intake.batch(batch.body))
        done += rows
        progress(done, total)
    if not add:
        _refuse_others(store, checked)

    def again() -> Iterator[tuple[bytes, bytes, dict[TallyKey, Tally]]]:
        """Their bodies are made anew: together they may be large."""
        nonlocal done
        for known, made in zip_longest(checked, _batches(collection, folder, parts)):
            if known is None or made is None or known[0] != bytes.fromhex(made[0].id):
                raise CorruptData(f"the files in {folder} changed while they were read")
            yield known[0], made[0].body, known[1]
            done += made[1]
            progress(done, total)

    outcomes = store.add_batches(again())
    counted = 0
    for (_, tallies), outcome in zip(checked, outcomes, strict=True):
        counted += sum(t.n for t in tallies.values()) if outcome is Outcome.counted else 0
    return counted


def _refuse_others(store: Store, checked: list[tuple[bytes, dict[TallyKey, Tally]]]) -> None:
    """Refuse to add to a store that holds more than what was imported of this export before."""
    known = [tallies for name, tallies in checked if store.has_batch(name)]
    before = sum(tally.n for tallies in known for tally in tallies.values())
    if len(known) < len(checked) and sum(store.numbers().values()) > before:
        allowed = "an empty store, or one with nothing but imports of this export (--add imports "
        raise InvalidArgument("store", "one that holds other reports", f"{allowed}anyway)")


class _Part(NamedTuple):
    """The files of a day, round and stratum."""

    day: date
    round: int
    stratum: int
    rows: int


def _parts(collection: Collection, folder: Path) -> list[_Part]:
    """What the notes of a folder say that there is, in its order."""
    found = set()
    for day, note in _notes(folder).items():
        for name, rows in note["files"].items():
            named = _FILE.fullmatch(name)
            place = TallyKey(named[1], int(named[2]), int(named[3] or 0)) if named else None
            if place is None or name != _file(collection, day, place):
                raise CorruptData(f"the note of {day} names {name!r}, which no export writes")
            found.add(_Part(day, place.round, place.stratum, rows))
    return sorted(found)


def _batches(
    collection: Collection, folder: Path, parts: list[_Part]
) -> Iterator[tuple[Batch, int]]:
    """Batches, each with its number of rows."""
    for part in parts:
        fields = collection.fields_of(part.stratum)
        for number, columns in enumerate(_pieces(collection, folder, part)):
            place = f"{collection.digest} {part.day} {part.round} {part.stratum} {number}"
            rows = len(next(iter(columns.values())))
            name = _name(place, columns)
            yield write_batch(collection, columns, part.round, fields, name), rows


def _pieces(collection: Collection, folder: Path, part: _Part) -> Iterator[dict[str, NDArray[Any]]]:
    """The columns of a day, round and stratum, some rows at a time."""
    columns = {}
    for report in collection.reports:
        place = TallyKey(report.name, part.round, part.stratum)
        name = _file(collection, part.day, place)
        columns[report.name] = Reports.from_parquet(folder / name, report.mechanism).data
        if len(columns[report.name]) != part.rows:
            raise CorruptData(f"{folder / name} has not the {part.rows:,} rows of its note")
    for start in range(0, part.rows, ROWS):
        yield {name: column[start : start + ROWS] for name, column in columns.items()}


def _name(place: str, columns: dict[str, NDArray[Any]]) -> str:
    """An id that follows from the contents, so that the same import is counted once."""
    digest = hashlib.sha256(place.encode())
    for column in columns.values():
        digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()[:32]


def _check_manifest(collection: Collection, folder: Path) -> None:
    try:
        manifest = (folder / MANIFEST).read_bytes()
    except OSError as error:
        raise InvalidArgument("folder", str(folder), f"one with {MANIFEST} ({error})") from error
    if hashlib.sha256(manifest).hexdigest() != collection.digest:
        raise MismatchError(f"{folder} is the export of another collection")
