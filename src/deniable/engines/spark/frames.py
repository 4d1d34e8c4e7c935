"""Reports and answers that exist only as DataFrames: their rows go through Python.

That costs many times as much as to read files (`docs/spark.md` has the figures): where there are
files, count and randomise those.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from typing import Any

from numpy.typing import NDArray

from deniable.collection.manifest import Collection, Report
from deniable.core.mechanism import Mechanism
from deniable.core.reports import ID_BYTES, Reports
from deniable.core.tally import Tally
from deniable.engines.duplicates import Duplicates, require_rule
from deniable.engines.privatising import Plan, encoded, report_name, reports_of
from deniable.engines.spark.columns import spark_type, to_column
from deniable.engines.spark.worker import RESULTS, Batches, collected, portable, sealed
from deniable.errors import CorruptData, InvalidArgument, MismatchError, require_type
from deniable.extras import pyarrow, pyspark
from deniable.randomness import KEY_BYTES, WORD_BYTES, Keystream, derived_key, draw_key

#: The columns that our plans add; nobody sees them.
_ID, _ORDER, _TIMES = "_deniable_id", "_deniable_order", "_deniable_times"
#: Types of columns that can be ids: those whose values are equal if, and only if, they read alike.
_ID_TYPES = ("string", "binary", "tinyint", "smallint", "int", "bigint")
#: What writes files of Parquet so that only one attempt of each task is ever visible.
_COMMITTERS = {
    "spark.sql.sources.commitProtocolClass": "org.apache.spark.sql.execution.datasources."
    "SQLHadoopMapReduceCommitProtocol",
    "spark.sql.parquet.output.committer.class": "org.apache.parquet.hadoop.ParquetOutputCommitter",
    "spark.sql.sources.outputCommitterClass": None,
}
_ALGORITHM = "mapreduce.fileoutputcommitter.algorithm.version"


# ---- counting


def tally(
    df: Any,
    mechanism: Mechanism,
    *,
    column: str = "report",
    id: str | None = None,  # noqa: A002
    duplicates: str | Duplicates = "refuse",
) -> Tally:
    """The tally of a column of reports; ``id`` names a column of their ids, 16 bytes each.

    Reports whose id comes again are refused; with ``duplicates="drop"``, one report counts for each
    id. Rows of a DataFrame have no order, so which one it is depends on a hash of id and report.
    """
    require_type("mechanism", mechanism, Mechanism)
    rule = require_rule(duplicates)
    functions = pyspark("pyspark.sql.functions")
    report = _of(df, column).alias("report")
    if id is None:
        rows = df.select(report)
    else:
        named = df.select(report, _of(df, id).alias("id"))
        chosen = functions.min_by("report", functions.xxhash64("id", "report"))
        times = functions.count(functions.lit(1)).alias(_TIMES)
        rows = named.groupBy("id").agg(chosen.alias("report"), times)
    counted = portable(TallyRows(mechanism, identified=id is not None))
    found, repeated = _total(collected(rows.mapInArrow(counted, RESULTS)), mechanism)
    if repeated and rule is Duplicates.refuse:
        raise MismatchError(
            f"{repeated:,} reports have ids of others. Find out why they were written twice, or "
            "count each id once with duplicates='drop'"
        )
    return found


#: The number of a partition, its tally, and how many reports have the id of one that is counted.
Counted = tuple[int, Tally, int]


def _total(parts: Sequence[Counted], mechanism: Mechanism) -> tuple[Tally, int]:
    """The sums of all partitions. One that came twice would count twice."""
    if len({number for number, _, _ in parts}) < len(parts):
        raise CorruptData("Spark returned the result of a partition more than once")
    tallies = (tally for _, tally, _ in parts)
    return reduce(Tally.merge, tallies, Tally(mechanism)), sum(more for _, _, more in parts)


@dataclass(frozen=True)
class TallyRows:
    """The task of a worker: the tally of its rows, named by the number of their partition."""

    mechanism: Mechanism
    identified: bool

    def __call__(self, batches: Batches) -> Batches:
        yield sealed(self._counted, batches)

    def _counted(self, batches: Batches) -> Counted:
        tally, rows = Tally(self.mechanism), 0
        for batch in batches:
            reports = Reports.from_arrow(pyarrow().Table.from_batches([batch]), self.mechanism)
            tally.add(reports, threads=1)
            rows += pyarrow().compute.sum(batch.column(_TIMES)).as_py() if self.identified else 0
        number = pyspark("pyspark").TaskContext.get().partitionId()
        return number, tally, rows - tally.identified


def _of(df: Any, name: str) -> Any:
    """A column by its whole name, whatever is in it."""
    if name not in df.columns:
        raise InvalidArgument("column", name, f"one of {', '.join(df.columns)}")
    return pyspark("pyspark.sql.functions").col("`{}`".format(name.replace("`", "``")))


# ---- randomising


def privatize(
    df: Any,
    asked: Mapping[str, Mechanism] | Collection,
    *,
    id: str | None = None,  # noqa: A002
    keep: Sequence[str] = (),
    missing: str = "refuse",
    ids: bool = False,
    secret: bytes | None = None,
    to: str | None = None,
) -> Any:
    """A DataFrame with a column of reports for each column of answers, one person per row.

    ``asked`` has a mechanism for each column, or is a collection with a column for each question.
    ``keep`` are public columns that stay as they are; no other column stays. Missing answers are
    refused; with ``missing="skip"`` those to an optional question are people who skipped it.

    ``id`` is a column that is different in each row. Coins are a function of a secret, the id, the
    column and the answer, so the DataFrame may be evaluated any number of times, in any order: the
    reports are the same. The ids themselves do not stay; with ``ids=True`` each row gets a new one,
    16 bytes that belong to its id under the secret. ``secret`` is 32 bytes, drawn here unless
    given: another call draws another one, and costs the same people again.

    Without ``id`` coins are fresh, and only a write that commits one attempt of each task is safe:
    ``to``, a folder for Parquet files that does not exist yet. What was written is returned.
    """
    plan = Plan(reports_of(asked), tuple(keep), missing)
    if id is None:
        return _fresh(df, plan, ids=ids, secret=secret, to=to)
    if secret is not None and (type(secret) is not bytes or len(secret) != KEY_BYTES):
        raise InvalidArgument("secret", "...", f"{KEY_BYTES} random bytes, or left out")
    randomised = _repeatable(df, plan, id, secret or os.urandom(KEY_BYTES))
    randomised = randomised.withColumnRenamed(_ORDER, "id") if ids else randomised.drop(_ORDER)
    return randomised if to is None else _written(randomised, to)


def _repeatable(df: Any, plan: Plan, name: str, secret: bytes) -> Any:
    """Rows with the same reports at every evaluation, in an order that only the secret tells."""
    kind = df.select(_of(df, name)).schema[0].dataType.simpleString().partition(" ")[0]
    if kind not in _ID_TYPES or name in plan.asked:
        allowed = f"a column of another type than {kind}: a text, an integer or bytes"
        raise InvalidArgument("id", name, "no column of answers" if name in plan.asked else allowed)
    found = _of(df, name)
    found = found if kind == "binary" else found.cast("string").cast("binary")
    chosen = df.select(found.alias(_ID), *_columns(df, plan))
    # Equal ids meet in one partition, side by side; Spark sorts what does not fit into memory.
    met = chosen.repartition(_ID).sortWithinPartitions(_ID)
    work = PrivatiseRows(plan, secret)
    made = met.mapInArrow(portable(work), work.schema(df))
    # The partition of a row would tell a hash of its id, which anyone can compute.
    return made.repartition(_ORDER).sortWithinPartitions(_ORDER)


def _fresh(df: Any, plan: Plan, *, ids: bool, secret: bytes | None, to: str | None) -> Any:
    if to is None:
        allowed = "a column that is different in each row, or left out beside `to`, a new folder: "
        why = "a DataFrame may be evaluated twice, and fresh coins would cost its people twice"
        raise InvalidArgument("id", None, allowed + why)
    for argument, given in (("ids", ids or None), ("secret", secret)):
        if given is not None:
            raise InvalidArgument(argument, "...", "left out without `id`")
    for name, known in _COMMITTERS.items():
        if (found := df.sparkSession.conf.get(name, known)) != known:
            allowed = f"{known or 'not set'}, which shows one attempt of each task, or give `id`"
            raise InvalidArgument(name, found, allowed)
    chosen = df.select(*_columns(df, plan))
    work = PrivatiseFreshly(plan)
    return _written(chosen.mapInArrow(portable(work), work.schema(df)), to)


def _written(df: Any, to: str) -> Any:
    """The DataFrame, in files that get their names when the whole job is done."""
    df.write.option(_ALGORITHM, "1").mode("error").parquet(to)
    return df.sparkSession.read.parquet(to)


def _columns(df: Any, plan: Plan) -> list[Any]:
    return [_of(df, name) for name in (*plan.asked, *plan.keep)]


@dataclass(frozen=True)
class PrivatiseFreshly:
    """The task of a worker: reports with fresh coins."""

    plan: Plan

    def schema(self, df: Any) -> str:
        """The columns that it makes, as Spark writes a schema."""
        types = {r.name: spark_type(r.mechanism.dtype) for r in self.plan.reports}
        kinds = {one.name: one.dataType.simpleString() for one in df.schema}
        types |= {name: kinds[name] for name in self.plan.keep}
        return ", ".join(f"`{name}` {kind}" for name, kind in types.items())

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            yield self._with_kept(batch, [self._column(batch, r) for r in self.plan.reports])

    def _column(self, batch: Any, report: Report) -> NDArray[Any]:
        return report.mechanism.randomise(
            encoded(report, batch, self.plan.missing), draw_key(None), 1
        )

    def _with_kept(self, batch: Any, columns: list[NDArray[Any]]) -> Any:
        made = {r.name: to_column(c) for r, c in zip(self.plan.reports, columns, strict=True)}
        return pyarrow().record_batch(made | {name: batch.column(name) for name in self.plan.keep})


@dataclass(frozen=True)
class PrivatiseRows(PrivatiseFreshly):
    """The same with coins that belong to ids: see `row_coins`."""

    secret: bytes = field(repr=False)

    def schema(self, df: Any) -> str:
        return f"{_ORDER} binary, {super().schema(df)}"

    def __call__(self, batches: Batches) -> Batches:
        before: bytes | None = None
        for batch in batches:
            ids = batch.column(_ID).to_pylist()
            _refuse_repeated([before, *ids])
            before = ids[-1] if ids else before
            made = self._with_kept(batch, [self._of(batch, r, ids) for r in self.plan.reports])
            key = self._key("id", *map(report_name, self.plan.reports))
            names = [hmac.digest(key, one, "sha256")[:ID_BYTES] for one in ids]
            yield made.add_column(0, _ORDER, pyarrow().array(names, pyarrow().binary()))

    def _key(self, use: str, *names: bytes) -> bytes:
        return derived_key(self.secret, "deniable rows", use, *names)

    def _of(self, batch: Any, report: Report, ids: list[bytes]) -> NDArray[Any]:
        values = encoded(report, batch, self.plan.missing)
        coins = row_coins(
            self._key("coins", report_name(report)), ids, values, report.mechanism.coin_words
        )
        return report.mechanism.report_each(values, coins)


def row_coins(
    key: bytes, ids: Sequence[bytes], values: NDArray[Any], words: int
) -> Iterator[bytes]:
    """The coins of each row: HMAC-SHA256 of its id and its encoded answer.

    They are words of the HMAC itself, up to four; more are AES-256-CTR with the HMAC as the key. An
    answer that another evaluation of a DataFrame changed gets other coins.
    """
    data, width, size = values.tobytes(), values.dtype.itemsize, words * WORD_BYTES
    for place, one in enumerate(ids):
        answer = data[place * width : (place + 1) * width]
        found = hmac.digest(key, len(one).to_bytes(8, "big") + one + answer, "sha256")
        yield found[:size] if size <= len(found) else Keystream(found).bytes(size)


def _refuse_repeated(ids: Sequence[bytes | None]) -> None:
    """Refuse ids that are missing, or equal to the one before: their rows would share coins."""
    if None in ids[1:]:
        raise InvalidArgument("id", None, "there in every row")
    if any(one == other for one, other in pairwise(ids)):
        raise InvalidArgument("id", "...", "different in every row: an id comes again")
