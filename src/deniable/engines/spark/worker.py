"""What runs in a Python worker of Spark, and the checks that come before it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

from deniable import __version__
from deniable.engines.spark.session import CANNOT, spark_errors
from deniable.extras import pyarrow

Batches = Iterator[Any]
#: The columns of a DataFrame of results.
RESULTS = "result binary"


def portable(task: Callable[[Batches], Batches]) -> Callable[[Batches], Batches]:
    """``task``, for `mapInArrow`, once the worker was found to have the same deniable.

    The function that is returned names nothing of this package but in its body, so that Spark's
    pickle carries it by value: a worker without the package can still run it, and say so. The
    version must be the same since two releases may make different reports of the same coins.
    """
    carried, wanted, cannot = pickle.dumps(task), __version__, CANNOT

    def checked(batches: Any) -> Any:
        import pickle
        import platform
        import sys

        here = f"{sys.executable} on {platform.node()}"
        try:
            from deniable import __version__ as found
        except ImportError as error:
            words = f"{here} has no deniable. Install deniable[spark]=={wanted} on every worker"
            raise RuntimeError(f"{cannot}{words}") from error
        if found != wanted:
            words = f"{here} has deniable {found}, and this program {wanted}"
            raise RuntimeError(f"{cannot}{words}")
        return pickle.loads(carried)(batches)

    return checked


def sealed(work: Callable[..., Any], *given: Any) -> Any:
    """A row with the result of some work, or with its refusal, which would be the same again.

    Any other error is Spark's, which starts the task anew.
    """
    try:
        found = work(*given)
    except ValueError as refused:
        found = refused
    return pyarrow().record_batch({"result": [pickle.dumps(found)]})


def collected(frame: Any) -> list[Any]:
    """The results in the rows of a DataFrame, or the first refusal among them."""
    with spark_errors():
        rows = frame.toArrow().column("result").to_pylist()
    found = [pickle.loads(row) for row in rows]
    for one in found:
        if isinstance(one, ValueError):
            raise one
    return found
