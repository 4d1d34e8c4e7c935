"""A column of randomised reports, the only thing that leaves a device."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from deniable.canonical import canonical, parsed
from deniable.core.mechanism import Mechanism
from deniable.core.registry import from_spec
from deniable.errors import CorruptData, InvalidArgument, MismatchError, require_type
from deniable.extras import pyarrow

if TYPE_CHECKING:
    import pyarrow as pa

ID_BYTES = 16
ID_TYPE = np.dtype((np.uint8, (ID_BYTES,)))
_SPEC_KEY = b"deniable.mechanism"
#: Memory that the columns of a file may take.
MOST_BYTES = 1 << 32
#: Rows that are read at once.
_PIECE = 1 << 13
#: Bytes that a fingerprint looks at: at the beginning, in the middle and at the end.
SAMPLE = 1 << 16
#: Hexadecimal digits of the fingerprint of a file.
SOURCE_DIGITS = 32


class Reports:
    """Reports of one mechanism, and optionally a random 16-byte id for each.

    ``data`` is a NumPy column of ``mechanism.dtype``: small unsigned integers, rows of packed bits,
    or a structure. ``sources`` are the fingerprints of the files that they were read from, as in
    `Tally.sources`; a slice has none, since nothing says which reports of the files it holds.
    """

    def __init__(
        self, mechanism: Mechanism, data: NDArray[Any], ids: NDArray[np.uint8] | None = None
    ) -> None:
        require_type("mechanism", mechanism, Mechanism)
        for name, column in (("data", data), ("ids", data if ids is None else ids)):
            if type(column) is not np.ndarray or not column.ndim:
                raise InvalidArgument(name, column, "a NumPy column")
        shape = (len(data), *mechanism.dtype.shape)
        if data.dtype != mechanism.dtype.base or data.shape != shape:
            found = f"{data.dtype} of shape {data.shape}"
            raise InvalidArgument("data", found, f"a column of {mechanism.dtype}")
        if ids is not None and (ids.dtype != np.uint8 or ids.shape != (len(data), ID_BYTES)):
            found = f"{ids.dtype} of shape {ids.shape}"
            raise InvalidArgument("ids", found, f"{len(data)} rows of {ID_BYTES} bytes")
        self.mechanism = mechanism
        self.data = data
        self.ids = ids
        self.sources: frozenset[str] = frozenset()

    @classmethod
    def of(cls, mechanism: Mechanism, reports: Iterable[Any]) -> Reports:
        """Single reports, as `Mechanism.report` or a memo makes them, in one column."""
        require_type("mechanism", mechanism, Mechanism)
        try:
            return cls(mechanism, mechanism.pack(list(reports)))
        except (TypeError, ValueError, OverflowError, IndexError):
            raise InvalidArgument("reports", reports, f"reports of {mechanism!r}") from None

    def with_ids(self) -> Reports:
        """The same reports with fresh random ids."""
        ids = np.frombuffer(os.urandom(ID_BYTES * len(self)), dtype=np.uint8)
        return self._of(self.mechanism, ids.reshape(-1, ID_BYTES))

    def among(self, candidates: Iterable[str]) -> Reports:
        """The same reports about any text, asked about some texts."""
        return self._of(self.mechanism.among(candidates), self.ids)

    def _of(self, mechanism: Mechanism, ids: NDArray[np.uint8] | None) -> Reports:
        """All of these reports, seen by another mechanism or with other ids."""
        found = Reports(mechanism, self.data, ids)
        found.sources = self.sources
        return found

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, rows: slice) -> Reports:
        if not isinstance(rows, slice):
            raise InvalidArgument("rows", rows, "a slice")
        return Reports(
            self.mechanism, self.data[rows], None if self.ids is None else self.ids[rows]
        )

    def __iter__(self) -> Iterator[Any]:
        """The reports one by one, as `Mechanism.report` returns them."""
        return iter(self.mechanism.layout.unpack(self.data))

    def __repr__(self) -> str:
        return f"<{len(self)} reports of {self.mechanism!r}>"

    @classmethod
    def concatenate(cls, parts: Iterable[Reports]) -> Reports:
        """All reports of ``parts`` in one column; ids are kept if every part has them."""
        parts = list(parts)
        if not parts:
            raise InvalidArgument("parts", parts, "at least one column of reports")
        for part in parts:
            require_type("parts", part, Reports)
            require_same(parts[0].mechanism, part.mechanism)
        ids = [part.ids for part in parts if part.ids is not None]
        found = cls(
            parts[0].mechanism,
            np.concatenate([part.data for part in parts]),
            np.concatenate(ids) if len(ids) == len(parts) else None,
        )
        found.sources = frozenset().union(*(part.sources for part in parts))
        return found

    def to_arrow(self) -> pa.Table:
        """An Arrow table with the column ``report`` (and ``id``); the spec is in its metadata."""
        pa = pyarrow()
        columns = {"report": to_arrow_column(self.data)}
        if self.ids is not None:
            columns["id"] = to_arrow_column(self.ids)
        spec = canonical(self.mechanism.to_spec())
        return pa.table(columns).replace_schema_metadata({_SPEC_KEY: spec})

    @classmethod
    def from_arrow(cls, table: pa.Table, mechanism: Mechanism | None = None) -> Reports:
        """The reports of a table that `to_arrow` wrote, or of any table with the same columns.

        The mechanism comes from the table's metadata unless given; if both are there they must
        agree.
        """
        require_type("table", table, pyarrow().Table)
        spec = (table.schema.metadata or {}).get(_SPEC_KEY)
        if spec is not None:
            stated = from_spec(parsed(spec, "spec"))
            mechanism = mechanism or stated
            require_same(mechanism, stated)
        if mechanism is None:
            raise InvalidArgument("mechanism", mechanism, "given: the table does not name one")
        names = table.column_names
        if names.count("report") != 1 or names.count("id") > 1:
            raise CorruptData(f"the table must have one column 'report'; it has {names}")
        data = from_wider_column(table["report"], mechanism.dtype, "report")
        ids = from_wider_column(table["id"], ID_TYPE, "id") if "id" in names else None
        return cls(mechanism, data, ids)

    def to_parquet(self, path: str | Path | BinaryIO) -> None:
        """Write the Arrow table to a Parquet file (a path or an open binary file)."""
        table = self.to_arrow()
        import pyarrow.parquet as pq

        pq.write_table(table, path, compression="none")

    @classmethod
    def from_parquet(
        cls, path: str | Path | BinaryIO, mechanism: Mechanism | None = None
    ) -> Reports:
        """Read what `to_parquet` wrote."""
        pa = pyarrow()
        import pyarrow.parquet as pq

        try:
            with nullcontext(path) if hasattr(path, "read") else pa.OSFile(str(path)) as opened:
                with pq.ParquetFile(opened) as file:
                    cls.from_arrow(file.schema_arrow.empty_table(), mechanism)
                    table = read_columns(file, {"report", "id"})
                source = fingerprint(opened)
        except FileNotFoundError:
            raise
        except (pa.ArrowException, OSError) as error:
            raise CorruptData(f"{str(path)!r} is not a Parquet file: {error}") from error
        found = cls.from_arrow(table, mechanism)
        found.sources = frozenset([source] if len(found) else [])
        return found


def fingerprint(file: Any) -> str:
    """A name for the contents of an open file: SHA-256 of its size and of three samples.

    Reports are random: files that agree in the samples hold the same reports, but for very small
    ones, which are looked at as a whole. The end of a Parquet file has the sizes of all its parts.
    """
    size = file.seek(0, os.SEEK_END)
    digest = hashlib.sha256(size.to_bytes(8, "big"))
    for start in (0, (size - SAMPLE) // 2, size - SAMPLE):
        file.seek(max(0, start))
        digest.update(file.read(min(SAMPLE, size)))
    return digest.hexdigest()[:SOURCE_DIGITS]


def read_columns(file: Any, names: Collection[str]) -> pa.Table:
    """Those columns of a Parquet file, unless they take more memory than `MOST_BYTES`.

    A few bytes of a file can stand for any number of rows.
    """
    schema = file.schema_arrow
    kept = [field for field in schema if field.name in names]
    size = file.metadata.num_rows * sum(_width(field.type) for field in kept)
    pieces: list[pa.RecordBatch] = []
    if size <= MOST_BYTES:
        size = 0
        for piece in file.iter_batches(_PIECE, columns=[field.name for field in kept]):
            pieces.append(piece)
            size += piece.nbytes
            if size > MOST_BYTES:
                break
    if size > MOST_BYTES:
        most = MOST_BYTES >> 20
        raise CorruptData(f"the file takes more than {most} MB of memory when it is read: split it")
    return pyarrow().Table.from_batches(pieces, pyarrow().schema(kept, schema.metadata))


def _width(kind: pa.DataType) -> int:
    """Bytes that a value takes at least."""
    if pyarrow().types.is_struct(kind):
        return sum(_width(field.type) for field in kind)
    try:
        return int(kind.bit_width) // 8
    except ValueError:  # texts and lists
        return 0


def require_same(ours: Mechanism, theirs: Mechanism) -> None:
    """Refuse to bring together what belongs to two different mechanisms."""
    if ours != theirs:
        raise MismatchError(f"these belong to different mechanisms: {ours!r} and {theirs!r}")


def to_arrow_column(data: NDArray[Any]) -> pa.Array:
    pa = pyarrow()
    if data.dtype.names:
        fields = [to_arrow_column(data[name]) for name in data.dtype.names]
        return pa.StructArray.from_arrays(fields, names=list(data.dtype.names))
    if data.ndim == 1:
        return pa.array(np.ascontiguousarray(data))
    rows = np.ascontiguousarray(data)
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(rows.shape[1]), len(rows), [None, pa.py_buffer(rows)]
    )


def from_arrow_column(column: pa.ChunkedArray, dtype: np.dtype[Any], name: str) -> NDArray[Any]:
    """An Arrow column as a NumPy column of ``dtype``; refuses missing values and other types."""
    return _data(_whole(column, to_arrow_column(np.empty(0, dtype=dtype)).type, name), dtype, name)


def from_wider_column(column: pa.ChunkedArray, dtype: np.dtype[Any], name: str) -> NDArray[Any]:
    """The same of a column that another program wrote with a type that holds all values of ours.

    Spark has no unsigned integers, and few programs have bytes of a fixed number.
    """
    expected = to_arrow_column(np.empty(0, dtype=dtype)).type
    if column.type != expected and _holds(column.type, expected):
        try:
            column = column.cast(expected)
        except pyarrow().ArrowException as error:
            raise CorruptData(f"column {name!r} holds no {expected}: {error}") from error
    return from_arrow_column(column, dtype, name)


def _holds(wider: pa.DataType, ours: pa.DataType) -> bool:
    """Whether values of one type may be those of another, if they are in its range."""
    types = pyarrow().types
    if types.is_struct(ours):
        names = [field.name for field in ours]
        return (
            types.is_struct(wider)
            and [field.name for field in wider] == names
            and all(_holds(wider.field(name).type, ours.field(name).type) for name in names)
        )
    if types.is_fixed_size_binary(ours):
        return bool(types.is_binary(wider) or types.is_large_binary(wider))
    if types.is_integer(ours):
        return bool(types.is_integer(wider) or types.is_decimal(wider))
    return bool(wider == ours)


def _data(array: pa.Array, dtype: np.dtype[Any], name: str) -> NDArray[Any]:
    if dtype.names:
        data = np.empty(len(array), dtype=dtype)
        for field in dtype.names:
            part = array.field(field)
            if part.null_count:
                raise CorruptData(f"field {field!r} of column {name!r} has missing values")
            data[field] = _data(part, dtype[field], name)
        return data
    if dtype.subdtype is None:
        return np.asarray(array.to_numpy())
    width = dtype.shape[0]
    flat = np.frombuffer(array.buffers()[1] or b"", dtype=np.uint8)
    return flat[array.offset * width : (array.offset + len(array)) * width].reshape(-1, width)


def _whole(column: pa.ChunkedArray, expected: pa.DataType, name: str) -> pa.Array:
    """The chunks of a sound column of the expected type in one array."""
    pa = pyarrow()
    try:
        column.validate(full=True)
    except pa.ArrowException as error:
        raise CorruptData(f"column {name!r} is broken: {error}") from error
    if column.type != expected or column.null_count:
        found = f"{column.type} with {column.null_count} missing"
        raise CorruptData(f"column {name!r} must be {expected} without missing values; got {found}")
    if column.num_chunks == 1:  # as batches of large files come: nothing is copied
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], expected)
