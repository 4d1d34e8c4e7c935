"""Reports of any kind as things that can be compared: one frozen value, and numbers in a row."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats, Indices, Integers
from deniable.errors import CorruptData, InvalidArgument

#: Larger integers are looked at bit by bit: floating point would lose the last ones.
LARGEST_WHOLE = 1 << 53
#: Reports that are integers below this, or lists of such, are kept as they are.
WORD = 1 << 64
#: Reports of a round: a list, or an array whose first axis they are.
Column = Sequence[Any] | NDArray[Any]


def frozen(report: Any) -> Hashable:
    """A hashable value that is equal for equal reports only: order and type are seen, too."""
    if isinstance(report, float):
        return ("float", report.hex())
    if isinstance(report, (bool, int, str, bytes)):
        return (type(report).__name__, report)
    if isinstance(report, np.ndarray):
        return (report.shape, frozen(report.tolist()))
    if isinstance(report, np.generic):
        return frozen(report.item())
    if isinstance(report, (list, tuple)):
        return tuple(frozen(part) for part in report)
    if isinstance(report, Mapping):
        return tuple((frozen(key), frozen(part)) for key, part in report.items())
    if isinstance(report, AbstractSet):
        return frozenset(frozen(part) for part in report)
    if isinstance(report, (bytearray, memoryview)):
        return bytes(report)
    if not isinstance(report, Hashable):
        raise InvalidArgument("report", report, "numbers, text, bytes, or collections of these")
    return report


def numbers(report: Any) -> list[float]:
    """The positions of a report: its numbers, the bits of its bytes, the characters of its text."""
    if report is None:
        return [-1.0]
    if isinstance(report, np.ndarray):
        return numbers(report.tolist())
    if isinstance(report, (int, np.integer)) and abs(int(report)) > LARGEST_WHOLE:
        length = (int(report).bit_length() + 8) // 8
        return numbers(int(report).to_bytes(length, "little", signed=True))
    if isinstance(report, (bool, int, float, np.number, np.bool_)):
        return [float(report)]
    if isinstance(report, (bytes, bytearray)):
        bits = np.unpackbits(np.frombuffer(report, dtype=np.uint8), bitorder="little")
        return [float(bit) for bit in bits.tolist()]
    if isinstance(report, str):
        return [float(ord(letter)) for letter in report]
    if isinstance(report, Mapping):
        return [x for part in report.items() for half in part for x in numbers(half)]
    if isinstance(report, AbstractSet):
        return sorted(x for part in report for x in numbers(part))
    if isinstance(report, (list, tuple)):
        return [x for part in report for x in numbers(part)]
    return []


def size(report: Any) -> int:
    """The length of a report on the wire: of bytes, text and arrays as is, else of compact JSON."""
    if isinstance(report, np.ndarray):
        return report.nbytes
    if isinstance(report, (bytes, bytearray)):
        return len(report)
    if isinstance(report, str):
        return len(report.encode("utf-8", "surrogatepass"))
    return len(json.dumps(_text_keys(report), separators=(",", ":"), default=_plain))


def _plain(part: Any) -> Any:
    """What JSON does not know."""
    if isinstance(part, (np.ndarray, np.generic)):
        return part.tolist()
    if isinstance(part, AbstractSet):
        return sorted(part, key=repr)
    return repr(part)


def _text_keys(part: Any) -> Any:
    """Mappings that JSON cannot write, with text for keys."""
    if isinstance(part, Mapping):
        return {str(key): _text_keys(value) for key, value in part.items()}
    return [_text_keys(one) for one in part] if isinstance(part, (list, tuple)) else part


def whole_bits(column: NDArray[Any]) -> int:
    """The bits that its numbers need if all of them are exact integers from 0 on, else 0."""
    if not column.size or not column.min() >= 0:  # NaN is not
        return 0
    if column.dtype.kind == "f" and (column.max() > LARGEST_WHOLE or np.any(column % 1)):
        return 0
    return int(column.max()).bit_length()


@dataclass(frozen=True, eq=False)
class Encoded:
    """Some respondents, one a row: what is equal, positions (respondent, round, place), lengths.

    Positions that a report does not have are NaN.
    """

    keys: list[Any]
    places: NDArray[Any]
    sizes: Integers

    def __len__(self) -> int:
        return len(self.keys)

    def part(self, start: int, stop: int) -> Encoded:
        """Some of the respondents, from one to before another."""
        rows = slice(start, stop)
        return Encoded(self.keys[rows], self.places[rows], self.sizes[rows])

    def take(self, rows: Indices) -> Encoded:
        """Some of the respondents, by their places."""
        keys = [self.keys[row] for row in rows.tolist()]
        return Encoded(keys, self.places[rows], self.sizes[rows])


def encode(rounds: Sequence[Column], extra: Sequence[NDArray[Any]] | None = None) -> Encoded:
    """The reports of some respondents in some rounds; ``extra`` positions are put behind."""
    try:
        parts = [_encode(column) for column in rounds]
    except RecursionError:
        raise CorruptData("a report is nested too deeply, or contains itself") from None
    keys = list(zip(*(part.keys for part in parts), strict=True)) if len(parts) > 1 else None
    width = max(part.places.shape[2] for part in parts)
    places = np.concatenate([_padded(part.places, width) for part in parts], axis=1)
    if extra is not None:
        behind = _small(np.stack(list(extra), axis=1))
        places = np.concatenate([places, behind.reshape(*places.shape[:2], -1)], axis=2)
    sizes = np.sum([part.sizes for part in parts], axis=0)
    return Encoded(keys or parts[0].keys, places, sizes)


def _encode(column: Column) -> Encoded:
    if isinstance(column, np.ndarray) and column.dtype != object:
        return _encode_array(column)
    reports = list(column)
    if _alike(reports):
        return _encode_array(np.stack(reports).reshape(len(reports), -1), packed=False)
    places = _words(reports) if _whole(reports) else _ragged([numbers(one) for one in reports])
    sizes = np.array([size(report) for report in reports], dtype=np.int64)
    return Encoded([frozen(report) for report in reports], _small(places[:, None, :]), sizes)


def _whole(reports: list[Any]) -> bool:
    """Whether all are integers of 0..2^64-1, or lists of equally many of them."""
    rows = [one if isinstance(one, (list, tuple)) else (one,) for one in reports]
    return len({len(row) for row in rows}) == 1 and all(_word(x) for row in rows for x in row)


def _word(x: Any) -> bool:
    return isinstance(x, (int, np.integer)) and not isinstance(x, bool) and 0 <= int(x) < WORD


def _words(reports: list[Any]) -> NDArray[np.uint64]:
    return np.array(reports, dtype=np.uint64).reshape(len(reports), -1)


def _ragged(rows: list[list[float]]) -> Floats:
    places = np.full((len(rows), max(map(len, rows), default=0)), np.nan)
    for place, row in zip(places, rows, strict=True):
        place[: len(row)] = row
    return places


def _alike(reports: list[Any]) -> bool:
    """Whether all are arrays of one shape and type of numbers."""
    if not all(isinstance(report, np.ndarray) for report in reports):
        return False
    kinds = {(report.shape, report.dtype) for report in reports}
    return len(kinds) == 1 and reports[0].dtype.kind in "biuf"


def _encode_array(column: NDArray[Any], *, packed: bool = True) -> Encoded:
    rows = np.ascontiguousarray(column)
    width = rows.nbytes // max(len(rows), 1)
    data = rows.tobytes()
    keys = [data[i * width : (i + 1) * width] for i in range(len(rows))]
    fields = [rows[name] for name in rows.dtype.names] if rows.dtype.names else [rows]
    places = np.concatenate([_positions(field, packed) for field in fields], axis=1)
    return Encoded(keys, _small(places[:, None, :]), np.full(len(rows), width, dtype=np.int64))


def _positions(field: NDArray[Any], packed: bool) -> NDArray[Any]:
    """Numbers as they are; rows of bytes as bits, if they are ``packed``."""
    flat = field.reshape(len(field), -1)
    if packed and field.ndim > 1 and field.dtype == np.uint8:
        return np.unpackbits(np.ascontiguousarray(flat), axis=1, bitorder="little")
    return flat


def _small(places: NDArray[Any]) -> NDArray[Any]:
    """In as few bytes as the numbers need."""
    if places.dtype == np.uint8:
        return places
    finite = places.size and not np.isnan(places.astype(np.float64, copy=False)).any()
    if finite and places.min() >= 0 and places.max() < 256 and np.all(places % 1 == 0):
        return places.astype(np.uint8)
    return places


def _padded(places: NDArray[Any], width: int) -> NDArray[Any]:
    missing = width - places.shape[2]
    if not missing:
        return places
    return np.pad(places.astype(np.float64), ((0, 0), (0, 0), (0, missing)), constant_values=np.nan)
