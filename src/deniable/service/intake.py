"""Bodies from outside, checked against the manifest down to the last bit before they are kept."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from deniable.collection.batches import read_batch
from deniable.collection.manifest import Collection
from deniable.core.tally import Tally
from deniable.errors import CorruptData, InvalidArgument
from deniable.service.encoding import Packing, TallyKey
from deniable.service.problems import Problem

_ID = re.compile("[0-9a-f]{32}")


class Submitted(msgspec.Struct, forbid_unknown_fields=True):
    """A submission as docs/wire-format.md specifies it."""

    collection: str
    fields: dict[str, str]
    id: str
    reports: dict[str, str]
    round: int


_KEYS = Submitted.__struct_fields__
#: A character of a text in JSON that is written otherwise.
_ESCAPE = re.compile(rb"\\.", re.DOTALL)


class Intake:
    """Checks of one collection."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._checks = {r.name: r.mechanism.layout.refusal for r in collection.reports}
        self._packing = Packing(collection)
        self._decoder = msgspec.json.Decoder(Submitted)

    def single(self, body: bytes) -> tuple[bytes, bytes]:
        """The id and the packed form of one submission."""
        try:
            found = self._decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Problem("malformed", str(error)) from None
        name = self._stated(found.collection, found.id, found.round)
        stratum, rows = self._stratum(found.fields), self._rows(found.reports)
        # Marks within texts are escaped, so these are around all keys and texts that there are.
        marks = _ESCAPE.sub(b"", body).count(b'"')
        if marks != 2 * (len(_KEYS) + 2 + 2 * len(rows) + 2 * len(found.fields)):
            raise Problem("malformed", "A key stands twice.")
        return name, self._packing.pack(found.round, stratum, rows)

    def batch(self, body: bytes) -> tuple[bytes, dict[TallyKey, Tally]]:
        """The id and the tallies of a batch."""
        try:
            about, columns = read_batch(self._collection, body)
        except CorruptData as refused:
            raise Problem("malformed", str(refused)) from None
        number = about["deniable.round"]
        round_ = int(number) if re.fullmatch("[1-9][0-9]{0,4}", number) else 0
        name = self._stated(about["deniable.collection"], about["deniable.id"], round_)
        try:
            placed = self._packing.placed(about, columns)
            return name, dict(self._packing.count_columns(placed))
        except CorruptData as refused:
            raise Problem("malformed", str(refused)) from None
        except InvalidArgument as refused:
            raise Problem("impossible-report", str(refused)) from None

    def _stated(self, collection: str, name: str, round_: int) -> bytes:
        if collection != self._collection.digest:
            detail = f"This collector serves {self._collection.digest}."
            raise Problem("other-collection", detail, "/collection")
        if not _ID.fullmatch(name):
            raise Problem("malformed", "An id has 32 lower-case hexadecimal digits.", "/id")
        if not 1 <= round_ <= self._collection.rounds:
            detail = f"The rounds of this collection are 1..{self._collection.rounds}."
            raise Problem("impossible-report", detail, "/round")
        return bytes.fromhex(name)

    def _stratum(self, fields: dict[str, str]) -> int:
        try:
            return self._collection.stratum(fields)
        except InvalidArgument as refused:
            place = "" if refused.value is fields else f"/{refused.name}"
            detail = f"Its public values must be {refused.allowed}."
            raise Problem("impossible-report", detail, f"/fields{place}") from None

    def _rows(self, reports: dict[str, str]) -> dict[str, bytes]:
        if len(reports) != len(self._checks):
            detail = f"A submission has {len(self._checks)} reports, not {len(reports)}."
            raise Problem("impossible-report", detail, "/reports")
        rows = {}
        for name, text in reports.items():
            check: Any = self._checks.get(name)
            if check is None:
                raise Problem("impossible-report", "There is no such report.", "/reports")
            rows[name] = row = _row(text)
            if row.hex() != text:
                detail = "A report is written in pairs of lower-case hexadecimal digits."
                raise Problem("impossible-report", detail, f"/reports/{name}")
            if allowed := check(row):
                detail = f"Such a report has {allowed}."
                raise Problem("impossible-report", detail, f"/reports/{name}")
        return rows


def _row(text: str) -> bytes:
    """The bytes of a row; none that are written as the text if it is not hexadecimal."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""
