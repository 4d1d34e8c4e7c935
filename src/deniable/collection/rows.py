"""Which bytes are a report: the check of a single row, before anything is counted.

A row is the bytes of a report in a column (docs/formats.md). `Mechanism.count` refuses the same
rows in a column, but needs a compiled kernel and cannot say which one it was.
"""

from __future__ import annotations

from collections.abc import Callable

from deniable.errors import InvalidArgument
from deniable.mechanisms import DBitFlip, Mechanism
from deniable.mechanisms.cohorts import CohortMechanism
from deniable.mechanisms.hashing import LocalHashing
from deniable.mechanisms.histogram import SHE
from deniable.mechanisms.index import IndexMechanism
from deniable.mechanisms.packed import PackedMechanism
from deniable.mechanisms.subset import SS

#: Says what is allowed if the row is no report, else nothing.
Check = Callable[[bytes], str | None]


def row_check(m: Mechanism) -> Check:
    """A check of rows: their length first, then what they hold."""
    length, inside = m.dtype.itemsize, _contents(m)

    def check(row: bytes) -> str | None:
        return inside(row) if len(row) == length else f"{length} bytes"

    return check


def _contents(m: Mechanism) -> Check:
    if isinstance(m, CohortMechanism):
        return _cohort(m)
    if isinstance(m, LocalHashing):
        return _hashed(m)
    if isinstance(m, DBitFlip):
        return _asked(m)
    if isinstance(m, PackedMechanism):
        return _set(m.domain.size, m.omega if isinstance(m, SS) else None)
    if isinstance(m, SHE):
        last = m.last
        return lambda row: None if max(row) <= last else f"bytes of 0..{last}"
    if isinstance(m, IndexMechanism):
        return _below(m.cells, "an index")
    raise InvalidArgument("mechanism", m, "one whose rows are specified in docs/formats.md")


def _below(size: int, noun: str) -> Check:
    allowed = f"{noun} of 0..{size - 1}"
    return lambda row: None if int.from_bytes(row, "little") < size else allowed


def _set(size: int, ones: int | None) -> Check:
    """Bits from ``size`` on are zero; so many of the others are one, if that is known."""

    def check(row: bytes) -> str | None:
        bits = int.from_bytes(row, "little")
        if bits >> size:
            return f"bits from {size} on that are zero"
        return f"{ones} ones" if ones is not None and bits.bit_count() != ones else None

    return check


def _hashed(m: LocalHashing) -> Check:
    coefficient, cell = _below(m.modulus, "coefficients"), _below(m.g, "a cell")

    def check(row: bytes) -> str | None:
        parts = (row[0:4], row[4:8], row[8:12])
        return next(filter(None, map(coefficient, parts)), None) or cell(row[12:])

    return check


def _asked(m: DBitFlip) -> Check:
    half = m.row_bytes
    asked = _set(m.domain.size, m.w)

    def check(row: bytes) -> str | None:
        questions, yes = (int.from_bytes(part, "little") for part in (row[:half], row[half:]))
        return asked(row[:half]) or ("answers to what is asked only" if yes & ~questions else None)

    return check


def _cohort(m: CohortMechanism) -> Check:
    width = m.dtype["cohort"].itemsize
    cohort, inner = _below(m.cohorts, "a cohort"), _contents(m.inner)
    return lambda row: cohort(row[:width]) or inner(row[width:])
