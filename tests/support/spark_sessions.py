"""A Spark session for tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from deniable.engines.spark.session import require_java
from deniable.errors import EngineUnavailable

#: Two cores of this machine, and four attempts at each task.
MASTER = "local[2,4]"


@contextmanager
def started() -> Iterator[Any]:
    """A session that ends with the block. Without Java, tests are skipped; not so in CI."""
    try:
        require_java()
    except EngineUnavailable as error:
        if os.environ.get("DENIABLE_CI"):
            raise
        pytest.skip(str(error))
    from deniable.engines.spark.session import session

    found = session(MASTER)
    found.conf.set("spark.sql.shuffle.partitions", "4")
    try:
        yield found
    finally:
        found.stop()
