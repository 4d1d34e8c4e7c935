"""Reports as columns of Spark, which has no unsigned integers and no bytes of a fixed number."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.core.reports import to_arrow_column
from deniable.extras import pyarrow

#: The type that holds all values of another one: where Spark itself widens columns of Parquet.
_WIDER = {"uint8": "int16", "uint16": "int32", "uint32": "int64"}
_SPARK = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "double": "double",
    "bool": "boolean",
    "binary": "binary",
    "decimal128(20, 0)": "decimal(20,0)",
}


def to_column(data: NDArray[Any]) -> Any:
    """A column of reports, or of ids, in types that Spark has."""
    exact = to_arrow_column(data)
    return exact.cast(_widened(exact.type))


def spark_type(dtype: np.dtype[Any]) -> str:
    """The type of a column of Spark, as its schemas write it."""
    return _written(_widened(to_arrow_column(np.empty(0, dtype=dtype)).type))


def _widened(kind: Any) -> Any:
    pa = pyarrow()
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _widened(field.type)) for field in kind])
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_uint64(kind):
        return pa.decimal128(20, 0)
    return pa.type_for_alias(_WIDER[str(kind)]) if str(kind) in _WIDER else kind


def _written(kind: Any) -> str:
    if pyarrow().types.is_struct(kind):
        fields = ",".join(f"`{field.name}`:{_written(field.type)}" for field in kind)
        return f"struct<{fields}>"
    return _SPARK[str(kind)]
