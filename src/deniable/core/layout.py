"""What a report looks like: said once, for single reports, rows of bytes and whole columns.

A row is the bytes of one report in a column (docs/formats.md). A layout packs reports, says why
bytes from outside are not a report, and counts columns of indices, bits and bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Counts
from deniable.errors import InvalidArgument

#: Says what is allowed if the parts of a record do not fit together: for a row, and for a column.
Rule = tuple[
    Callable[[Sequence[bytes]], str | None], Callable[[Sequence[NDArray[Any]]], str | None]
]


class Layout(ABC):
    """The form of all reports of one mechanism."""

    #: The NumPy type of one report in a column.
    dtype: np.dtype[Any]
    #: The bits that one report needs on the wire.
    bits: int

    @abstractmethod
    def pack(self, reports: Sequence[Any]) -> NDArray[Any]:
        """Single reports as a column. Run by the device."""

    @abstractmethod
    def unpack(self, column: NDArray[Any]) -> Iterable[Any]:
        """The reports of a column, one by one: what `pack` packed. Run by the analyst."""

    @abstractmethod
    def row(self, report: Any) -> bytes:
        """The bytes of one report. Run by the device."""

    @abstractmethod
    def _inside(self, row: bytes) -> str | None:
        """What is allowed, if these bytes, as many as a row has, are not a report."""

    @abstractmethod
    def fault(self, column: NDArray[Any]) -> tuple[Any, str] | None:
        """What was found and what is allowed, if some row of a column is not a report.

        Run by the collector and the analyst.
        """

    def refusal(self, row: bytes) -> str | None:
        """What is allowed, if these bytes are not a report. Run by the collector."""
        length = self.dtype.itemsize
        return self._inside(row) if len(row) == length else f"{length} bytes"

    def check(self, column: NDArray[Any]) -> None:
        """Refuse a column with a row that `refusal` refuses.

        Run by the collector and the analyst.
        """
        if fault := self.fault(column):
            raise InvalidArgument("reports", *fault)

    @property
    def cells(self) -> int:
        """The length of what `count` returns. Run by the collector and the analyst."""
        raise NotImplementedError("this layout is counted by its mechanism")

    def count(self, column: NDArray[Any]) -> Counts:
        """The sums of a column; refuses one with a row that is not a report.

        Run by the collector and the analyst.
        """
        raise NotImplementedError("this layout is counted by its mechanism")

    def possible(self, counts: Counts, n: int) -> bool:
        """Whether n reports can have these counts, as far as the layout knows.

        Run by the analyst.
        """
        return bool(np.all((counts >= 0) & (counts <= n)))


class Index(Layout):
    """An index of 0..size-1, in ``width`` bytes: as few as hold it, unless given."""

    def __init__(self, size: int, width: int | None = None, noun: str = "an index") -> None:
        self.size, self.noun = size, noun
        self.dtype = np.min_scalar_type(size - 1) if width is None else np.dtype(f"<u{width}")
        self.bits = (size - 1).bit_length()

    def pack(self, reports: Sequence[Any]) -> NDArray[Any]:
        return np.array(list(reports), dtype=self.dtype)

    def unpack(self, column: NDArray[Any]) -> Iterable[int]:
        numbers: list[int] = column.tolist()
        return numbers

    def row(self, report: Any) -> bytes:
        return int(report).to_bytes(self.dtype.itemsize, "little")

    def _inside(self, row: bytes) -> str | None:
        fits = int.from_bytes(row, "little") < self.size
        return None if fits else f"{self.noun} of 0..{self.size - 1}"

    def fault(self, column: NDArray[Any]) -> tuple[Any, str] | None:
        if column.size and (highest := int(column.max())) >= self.size:
            return highest, f"{self.noun} of 0..{self.size - 1}"
        return None

    @property
    def cells(self) -> int:
        return self.size

    def count(self, column: NDArray[Any]) -> Counts:
        """How often each index occurs."""
        from deniable.kernels.direct import histogram

        self.check(column)
        return histogram(column, self.size)

    def possible(self, counts: Counts, n: int) -> bool:
        return super().possible(counts, n) and exact_sum(counts) == n


class _Row(Layout):
    """A report that is its row of bytes."""

    def pack(self, reports: Sequence[Any]) -> NDArray[Any]:
        return _rows(reports, self.dtype)

    def unpack(self, column: NDArray[Any]) -> Iterable[bytes]:
        return (row.tobytes() for row in column)

    def row(self, report: Any) -> bytes:
        return bytes(report)


class Bits(_Row):
    """A set of values of 0..size-1: value v is bit v % 8 of byte v // 8; with ``ones`` values."""

    def __init__(self, size: int, ones: int | None = None) -> None:
        self.size = self.bits = size
        self.ones = ones
        needed = -(-size // 8)
        #: 1, 2, 4 or a multiple of 8 bytes: rows then never straddle a machine word.
        self.width = -(-needed // 8) * 8 if needed > 4 else 1 << (needed - 1).bit_length()
        self.dtype = np.dtype((np.uint8, (self.width,)))

    def of(self, values: Iterable[int]) -> bytes:
        """The row of a set of values."""
        row = bytearray(self.width)
        for value in values:
            row[value >> 3] |= 1 << (value & 7)
        return bytes(row)

    @property
    def _padding_words(self) -> str:
        return f"bits from {self.size} on that are zero"

    def _inside(self, row: bytes) -> str | None:
        bits = int.from_bytes(row, "little")
        if bits >> self.size:
            return self._padding_words
        other = self.ones is not None and bits.bit_count() != self.ones
        return f"{self.ones} ones" if other else None

    def fault(self, column: NDArray[Any]) -> tuple[Any, str] | None:
        last, used = divmod(self.size, 8)
        padding = column[:, last:]
        if padding.size and (np.any(padding[:, 0] >> used) or np.any(padding[:, 1:])):
            return "a padding bit that is set", self._padding_words
        return self._other_size(column)

    def _other_size(self, column: NDArray[Any]) -> tuple[Any, str] | None:
        from deniable.kernels.subset import sizes_differ

        if self.ones is not None and sizes_differ(np.ascontiguousarray(column), self.ones):
            return "a set of another size", f"{self.ones} ones"
        return None

    @property
    def cells(self) -> int:
        return self.size

    def count(self, column: NDArray[Any]) -> Counts:
        """How many rows have each value; sums of padding show a fault without another pass."""
        from deniable.kernels.columns import column_sums

        if fault := self._other_size(column):
            raise InvalidArgument("reports", *fault)
        rows = np.ascontiguousarray(column).reshape(-1)
        words = np.zeros(-(-rows.size // 8), dtype="<u8") if rows.size % 8 else rows.view("<u8")
        if rows.size % 8:
            words.view(np.uint8)[: rows.size] = rows
        return self.without_padding(column_sums(words, 8 * self.width))

    def without_padding(self, sums: Counts) -> Counts:
        """Sums over all bits of rows, cut to the values; refused if padding was set."""
        if sums[..., self.size :].any():
            raise InvalidArgument("reports", "a padding bit that is set", self._padding_words)
        return sums[..., : self.size]

    def possible(self, counts: Counts, n: int) -> bool:
        enough = self.ones is None or exact_sum(counts) == n * self.ones
        return super().possible(counts, n) and enough


class Bytes(_Row):
    """A byte of 0..last for each of ``size`` values."""

    def __init__(self, size: int, last: int) -> None:
        self.size, self.last = size, last
        self.dtype = np.dtype((np.uint8, (size,)))
        self.bits = size * last.bit_length()

    @property
    def _words(self) -> str:
        return f"bytes of 0..{self.last}"

    def _inside(self, row: bytes) -> str | None:
        return None if max(row) <= self.last else self._words

    def fault(self, column: NDArray[Any]) -> tuple[Any, str] | None:
        if column.size and (highest := int(column.max())) > self.last:
            return highest, self._words
        return None

    @property
    def cells(self) -> int:
        return self.size

    def count(self, column: NDArray[Any]) -> Counts:
        """The sum of each value's bytes."""
        from deniable.kernels.histogram import byte_sums

        sums, fits = byte_sums(column, self.last)
        if not fits:
            raise InvalidArgument("reports", "a larger byte", self._words)
        return sums

    def possible(self, counts: Counts, n: int) -> bool:
        return bool(np.all((counts >= 0) & (counts <= n * self.last)))


class Record(Layout):
    """Parts with names, one after the other; a ``rule`` may say how they must fit together."""

    def __init__(self, fields: dict[str, Layout], rule: Rule | None = None) -> None:
        self.fields, self.rule = fields, rule
        self.dtype = np.dtype([(name, part.dtype) for name, part in fields.items()])
        self.bits = sum(part.bits for part in fields.values())

    def pack(self, reports: Sequence[Any]) -> NDArray[Any]:
        column = np.empty(len(reports), dtype=self.dtype)
        for place, (name, part) in enumerate(self.fields.items()):
            column[name] = part.pack([report[place] for report in reports])
        return column

    def unpack(self, column: NDArray[Any]) -> Iterable[tuple[Any, ...]]:
        parts = (part.unpack(column[name]) for name, part in self.fields.items())
        return zip(*parts, strict=True)

    def row(self, report: Any) -> bytes:
        parts = zip(self.fields.values(), report, strict=True)
        return b"".join([part.row(value) for part, value in parts])

    @cached_property
    def _places(self) -> list[tuple[Layout, int, int]]:
        """Each part with the first byte of its bytes in a row, and the one after its last."""
        starts = [field[1] for field in (self.dtype.fields or {}).values()]
        ends = [*starts[1:], self.dtype.itemsize]
        return list(zip(self.fields.values(), starts, ends, strict=True))

    def _inside(self, row: bytes) -> str | None:
        for part, start, end in self._places:
            if allowed := part._inside(row[start:end]):
                return allowed
        if self.rule is None:
            return None
        return self.rule[0]([row[start:end] for _, start, end in self._places])

    def fault(self, column: NDArray[Any]) -> tuple[Any, str] | None:
        parts = [column[name] for name in self.fields]
        for layout, part in zip(self.fields.values(), parts, strict=True):
            if found := layout.fault(part):
                return found
        return self._misfit(parts)

    def _misfit(self, parts: Sequence[NDArray[Any]]) -> tuple[Any, str] | None:
        allowed = None if self.rule is None else self.rule[1](parts)
        return None if allowed is None else ("parts that do not fit together", allowed)

    def count_parts(self, column: NDArray[Any]) -> Counts:
        """The counts of each part, one after the other."""
        # Copied once: records are far apart, and each pass over them reads all of their memory.
        parts = [np.ascontiguousarray(column[name]) for name in self.fields]
        pairs = zip(self.fields.values(), parts, strict=True)
        counts = [layout.count(part) for layout, part in pairs]
        if fault := self._misfit(parts):
            raise InvalidArgument("reports", *fault)
        return np.concatenate(counts)


def exact_sum(counts: Counts) -> int:
    """The sum of counts from outside: 64 bits would not hold that of many forged ones."""
    return (int((counts >> 32).sum()) << 32) + int((counts & 0xFFFFFFFF).sum())


def _rows(reports: Sequence[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    flat = np.frombuffer(b"".join(reports), dtype=np.uint8)
    return flat.reshape(len(reports), *dtype.shape).copy()


class Drawing(Layout):
    """The place of a branch that was drawn, its row, and zeros up to the longest branch."""

    def __init__(self, branches: Sequence[Layout]) -> None:
        self.branches = tuple(branches)
        self.place = Index(len(self.branches), 1 if len(self.branches) <= 256 else 2, "a branch")
        self.head = self.place.dtype.itemsize
        longest = max(branch.dtype.itemsize for branch in self.branches)
        self.dtype = np.dtype((np.uint8, (self.head + longest,)))
        self.bits = 8 * self.head + max(branch.bits for branch in self.branches)

    def pack(self, reports: Sequence[Any]) -> NDArray[Any]:
        return _rows([self.row(report) for report in reports], self.dtype)

    def unpack(self, column: NDArray[Any]) -> Iterable[tuple[int, Any]]:
        for row in column:
            place = int.from_bytes(row[: self.head].tobytes(), "little")
            branch = self.branches[place]
            inner = row[None, self.head : self.head + branch.dtype.itemsize]
            yield place, next(iter(branch.unpack(_as_column(inner, branch.dtype))))

    def row(self, report: Any) -> bytes:
        place, inner = report
        branch: Layout = self.branches[place]
        row = self.place.row(place) + branch.row(inner)
        return row.ljust(self.dtype.itemsize, b"\0")

    def _inside(self, row: bytes) -> str | None:
        if allowed := self.place._inside(row[: self.head]):
            return allowed
        branch = self.branches[int.from_bytes(row[: self.head], "little")]
        end = self.head + branch.dtype.itemsize
        return "padding that is zero" if any(row[end:]) else branch._inside(row[self.head : end])

    def fault(self, column: NDArray[Any]) -> tuple[Any, str] | None:
        try:
            parts = self.parts(column)
        except InvalidArgument as refused:
            return refused.value, refused.allowed
        pairs = zip(self.branches, parts, strict=True)
        return next((found for branch, part in pairs if (found := branch.fault(part))), None)

    def parts(self, column: NDArray[Any]) -> list[NDArray[Any]]:
        """The column of each branch; refuses what is around them, but does not look inside."""
        places = _as_column(column[:, : self.head], self.place.dtype)
        self.place.check(places)
        parts = []
        for branch, rows in zip(self.branches, self.rows_of(places), strict=True):
            drawn, end = column[rows], self.head + branch.dtype.itemsize
            if np.any(drawn[:, end:]):
                raise InvalidArgument("reports", "padding that is set", "padding that is zero")
            parts.append(_as_column(drawn[:, self.head : end], branch.dtype))
        return parts

    def rows_of(self, places: NDArray[Any]) -> list[NDArray[np.intp]]:
        """The rows in which each branch was drawn, in ascending order."""
        order = np.argsort(places, kind="stable")
        ends = np.searchsorted(places[order], np.arange(1, len(self.branches)))
        return np.split(order, ends)


def _as_column(rows: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Rows of bytes as a column of a type that has as many."""
    whole = np.ascontiguousarray(rows)
    return whole if dtype.subdtype is not None else whole.view(dtype).reshape(len(rows))
