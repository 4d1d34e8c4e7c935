"""Bodies from outside, checked against the manifest down to the last bit before they are kept."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from deniable.collection.batches import read_batch
from deniable.collection.manifest import Collection
from deniable.collection.rows import row_check
from deniable.errors import CorruptData, InvalidArgument
from deniable.service.packing import Counts, Packing
from deniable.service.problems import Problem

_ID = re.compile("[0-9a-f]{32}")


class Submitted(msgspec.Struct, forbid_unknown_fields=True):
    """A submission as docs/wire-format.md specifies it."""

    collection: str
    id: str
    reports: dict[str, str]
    round: int


_FIELDS = Submitted.__struct_fields__


class Intake:
    """Checks of one collection."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._checks = {q.name: row_check(q.mechanism) for q in collection.questions}
        self._packing = Packing(collection)
        self._decoder = msgspec.json.Decoder(Submitted)
        self._asked = 1 if collection.divide == "sampled" else len(collection.questions)

    def single(self, body: bytes) -> tuple[bytes, bytes]:
        """The id and the packed form of one submission."""
        try:
            found = self._decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Problem("malformed", str(error)) from None
        name = self._stated(found.collection, found.id, found.round)
        rows = self._rows(found.reports)
        # Nothing that passed so far has a quotation mark in it, so these are of keys and texts.
        if body.count(b'"') != 2 * (len(_FIELDS) + 2 + 2 * len(rows)):
            raise Problem("malformed", "A key stands twice.")
        return name, self._packing.pack(found.round, rows)

    def batch(self, body: bytes) -> tuple[bytes, Counts]:
        """The id and the counts of a batch."""
        try:
            about, columns = read_batch(self._collection, body)
        except CorruptData as refused:
            raise Problem("malformed", str(refused)) from None
        number = about["deniable.round"]
        round_ = int(number) if re.fullmatch("[1-9][0-9]{0,4}", number) else 0
        name = self._stated(about["deniable.collection"], about["deniable.id"], round_)
        rounds = ((question, round_, column) for question, column in columns.items())
        try:
            return name, self._packing.count_columns(rounds)
        except InvalidArgument as refused:
            raise Problem("impossible-report", str(refused)) from None

    def _stated(self, collection: str, name: str, round_: int) -> bytes:
        if collection != self._collection.digest:
            detail = f"This collector serves {self._collection.digest}."
            raise Problem("other-collection", detail, "/collection")
        if not _ID.fullmatch(name):
            raise Problem("malformed", "An id has 32 lower-case hexadecimal digits.", "/id")
        if not 1 <= round_ <= self._collection.rounds:
            detail = f"There are the rounds 1..{self._collection.rounds}."
            raise Problem("impossible-report", detail, "/round")
        return bytes.fromhex(name)

    def _rows(self, reports: dict[str, str]) -> dict[str, bytes]:
        if len(reports) != self._asked:
            detail = f"A submission has {self._asked} reports, not {len(reports)}."
            raise Problem("impossible-report", detail, "/reports")
        rows = {}
        for name, text in reports.items():
            check: Any = self._checks.get(name)
            if check is None:
                raise Problem("impossible-report", "There is no such question.", "/reports")
            rows[name] = row = _row(text)
            if row.hex() != text:
                detail = "A report is written in pairs of lower-case hexadecimal digits."
                raise Problem("impossible-report", detail, f"/reports/{name}")
            if allowed := check(row):
                detail = f"A report of this question has {allowed}."
                raise Problem("impossible-report", detail, f"/reports/{name}")
        return rows


def _row(text: str) -> bytes:
    """The bytes of a row; none that are written as the text if it is not hexadecimal."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""
