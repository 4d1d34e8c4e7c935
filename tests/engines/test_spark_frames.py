"""Tables that exist only as DataFrames of Spark."""

import hmac
import os
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.reports import Reports
from deniable.engines.privatising import Plan, report_name, reports_of
from deniable.engines.spark import frames
from deniable.engines.spark.columns import spark_type, to_column
from deniable.engines.spark.frames import PrivatiseFreshly, row_coins
from deniable.engines.spark.worker import portable
from deniable.errors import CorruptData, InvalidArgument, MismatchError
from deniable.randomness import WORD_BYTES, ByteCoins, Keystream, derived_key
from spark_toys import first_time

N = 3000
SMOKING = dn.GRR(["daily", "sometimes", "never"], 1.0)
AGE = dn.OUE(dn.Bins([20, 40, 60]), 1.0)
ASKED = {"smoking": SMOKING, "age": AGE}
SECRET = bytes(range(32))


def table(rows=N, seed=1):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "person": [f"p{i}" for i in range(rows)],
            "number": np.arange(rows),
            "smoking": rng.choice(["daily", "sometimes", "never"], rows).tolist(),
            "age": rng.integers(0, 80, rows),
        }
    )


@pytest.fixture(scope="module")
def people(spark):
    return spark.createDataFrame(table()).repartition(4).cache()


def rows(df, by="number"):
    """The rows of a DataFrame, as the bytes of each, by a column."""
    found = df.toArrow().to_pylist()
    return {row.pop(by): row for row in found}


# ---- counting


def examples():
    for name, family in dn.mechanisms().items():
        domain = next(iter(family.small_domains()))
        yield pytest.param(family.example(domain, 1.0), id=name)


@pytest.mark.parametrize("m", list(examples()))
def test_columns_of_spark_hold_all_reports(m):
    sample = [m.domain.sample()[0], m.domain.sample()[-1]]
    data = m.randomise(np.array(sample * 20, dtype=m.domain.dtype), bytes(32))
    column = to_column(data)
    found = Reports.from_arrow(pa.table({"report": column}), m)
    assert np.array_equal(found.data, data)
    assert "unsigned" not in spark_type(m.dtype)


def test_a_tally_of_rows_is_that_of_the_reports(spark, tmp_path):
    reports = AGE.privatize([10, 30, 50] * 1000, rng=np.random.default_rng(1)).with_ids()
    reports.to_parquet(tmp_path / "a.parquet")
    df = spark.read.parquet(str(tmp_path)).repartition(4)
    expected = AGE.tally(reports)
    assert dn.spark.tally(df, AGE, id="id") == expected
    found = dn.spark.tally(df, AGE)
    assert np.array_equal(found.counts, expected.counts)
    with pytest.raises(InvalidArgument, match="one of report, id"):
        dn.spark.tally(df, AGE, column="reports")
    twice = df.union(df.limit(7))
    with pytest.raises(MismatchError, match="7 reports have ids of others"):
        dn.spark.tally(twice, AGE, id="id")
    assert dn.spark.tally(twice, AGE, id="id", duplicates="drop") == expected


def test_which_of_two_reports_with_one_id_counts_depends_on_no_order(spark):
    """And on no report alone: the smaller one, say, would win in each pair."""
    rng = np.random.default_rng(2)
    ids = rng.bytes(16 * 400)
    reports = [(ids[16 * i : 16 * i + 16], one) for i in range(400) for one in (0, 1)]
    df = spark.createDataFrame(
        pa.table({"id": [i for i, _ in reports], "report": [r for _, r in reports]})
    )
    m = dn.GRR(2, 1.0)
    chosen = [
        dn.spark.tally(some, m, id="id", duplicates="drop")
        for some in (df, df.orderBy("report"), df.repartition(3).orderBy("report", ascending=False))
    ]
    assert chosen[0] == chosen[1] == chosen[2]
    assert chosen[0].n == 400
    # A fair coin per id: beyond these bounds with probability 2e-9, by the binomial tail.
    assert 140 < chosen[0].counts[0] < 260


def test_a_partition_that_comes_twice_is_refused(people, monkeypatch):
    df = dn.spark.privatize(people, {"smoking": SMOKING}, id="person")
    once = frames.collected
    monkeypatch.setattr(frames, "collected", lambda frame: once(frame) * 2)
    with pytest.raises(CorruptData, match="a partition more than once"):
        dn.spark.tally(df, SMOKING, column="smoking")


# ---- coins


@pytest.mark.parametrize("words", [1, 3, 4, 5, 40])
def test_coins_belong_to_id_and_answer(words):
    key = os.urandom(32)
    values = np.array([0, 1, 0], dtype=np.uint32)
    ids = [b"a", b"a", b"b"]
    found = list(row_coins(key, ids, values, words))
    assert len(set(found)) == 3
    assert {len(one) for one in found} == {WORD_BYTES * words}
    assert [*row_coins(key, ids[::-1], values[::-1], words)] == found[::-1]
    told = hmac.digest(key, (1).to_bytes(8, "big") + b"a" + bytes(4), "sha256")
    assert found[0] == (told[: 8 * words] if words <= 4 else Keystream(told).bytes(8 * words))


def test_no_id_can_stand_for_another_with_an_answer():
    """The length of an id is told: bytes of the answer never pass for bytes of an id."""
    key = bytes(32)
    one = row_coins(key, [b"a"], np.array([0x01020304], dtype=">u4"), 1)
    other = row_coins(
        key,
        [b"a\x01"],
        np.array(
            [
                0x020304,
            ],
            dtype=">u4",
        ),
        1,
    )
    assert next(one) != next(other)


def test_each_report_is_that_of_its_coins(people):
    found = rows(dn.spark.privatize(people, ASKED, id="person", keep=["number"], secret=SECRET))
    names = {one.name: report_name(one) for one in reports_of(ASKED)}
    for row in table().to_pylist()[:200]:
        for name, m in ASKED.items():
            key = derived_key(SECRET, "deniable rows", "coins", names[name])
            value = m.domain.encode([row[name]]).astype(m.domain.dtype)
            (coins,) = row_coins(key, [row["person"].encode()], value, m.coin_words)
            report = m.report(value[0].item(), ByteCoins(coins))
            column = m.pack([report])
            assert found[row["number"]][name] == to_column(column).to_pylist()[0]


def test_reports_do_not_depend_on_order_or_evaluation(people, spark):
    def made(df):
        return rows(dn.spark.privatize(df, ASKED, id="person", keep=["number"], secret=SECRET))

    lazy = dn.spark.privatize(people, ASKED, id="person", keep=["number"])
    assert rows(lazy) == rows(lazy), "evaluated twice"
    again = made(people)
    assert again == made(people.orderBy("age").coalesce(1)) == made(people.repartition(7, "age"))
    assert again != rows(lazy), "another call draws another secret"
    alone = dn.spark.privatize(
        people, {"age": AGE}, id="person", keep=["number", "smoking"], secret=SECRET
    )
    assert {n: row["age"] for n, row in rows(alone).items()} == {
        n: row["age"] for n, row in again.items()
    }, "another question was asked, or another column kept"
    few = made(people.where("number < 100"))
    assert few == {number: again[number] for number in range(100)}, "other neighbours"


def test_an_answer_that_changes_gets_other_coins(people):
    """An indeterminate DataFrame may show other answers when it is evaluated again."""
    from pyspark.sql import functions

    m = dn.GRR(1 << 16, 1.0)
    numbers = people.withColumn("one", functions.lit(1)).withColumn("two", functions.lit(2))
    found = []
    for name in ("one", "two"):
        df = numbers.select("person", "number", functions.col(name).alias("x"))
        kept = dn.spark.privatize(df, {"x": m}, id="person", keep=["number"], secret=SECRET)
        found.append(rows(kept))
    # With the same coins, whoever draws a random report would draw the same one.
    alike = sum(found[0][i] == found[1][i] for i in range(N))
    assert alike <= 10, "each pair is equal with probability 2^-16"


def test_statistics_of_rows(people):
    df = dn.spark.privatize(people, ASKED, id="person")
    assert sorted(df.columns) == ["age", "smoking"]
    truth = Counter(table()["smoking"].to_pylist())
    estimate = dn.spark.tally(df, SMOKING, column="smoking").estimate("unbiased")
    for label, frequency, error in zip(
        SMOKING.domain.listed, estimate.frequencies, estimate.standard_errors, strict=True
    ):
        assert abs(frequency - truth[label] / N) < 6 * error


def test_the_order_of_rows_tells_nothing_of_ids(people):
    found = dn.spark.privatize(people, ASKED, id="number", keep=["person"], ids=True)
    table_ = found.coalesce(1).toArrow()
    assert table_.column_names[0] == "id"
    ids = table_["id"].to_pylist()
    assert len(set(ids)) == N
    assert {len(one) for one in ids} == {16}
    numbers = [int(one[1:]) for one in table_["person"].to_pylist()]
    # Under the null hypothesis of a random order within partitions the rank correlation of
    # neighbours is normal with error 1 / sqrt(N).
    assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 6 / N**0.5
    assert ids != [
        r["id"] for r in dn.spark.privatize(people, ASKED, id="number", ids=True).collect()
    ]


def test_the_partition_of_a_row_tells_nothing_of_its_id(people, spark):
    """Spark's own hash of an id would tell its partition: anyone can compute it."""
    from pyspark.sql import functions

    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        made = dn.spark.privatize(people, {"smoking": SMOKING}, id="number", keep=["person"])
        number = functions.substring("person", 2, 9).cast("binary")
        count = made.rdd.getNumPartitions()
        guess = functions.pmod(functions.hash(number), functions.lit(count))
        right = made.where(guess == functions.spark_partition_id()).count()
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
    # Each guess is right with probability 1 / count: six standard deviations above.
    assert right < N / count + 6 * (N / count) ** 0.5


@pytest.mark.parametrize("column", ["person", "number", "cast(person as binary)"])
def test_ids_that_come_again_are_refused(people, column):
    """At every evaluation, also where the two rows lie in different partitions."""
    from pyspark.errors import PySparkException

    df = people.selectExpr(f"{column} as who", "smoking").where("smoking = 'never'").limit(200)
    twice = dn.spark.privatize(df.union(df.limit(1)), {"smoking": SMOKING}, id="who")
    with pytest.raises(PySparkException, match="an id comes again"):
        twice.count()


def test_ids_that_are_missing_are_refused(people):
    from pyspark.errors import PySparkException

    some = people.selectExpr("if(number = 7, null, number) as who", "smoking")
    with pytest.raises(PySparkException, match="there in every row"):
        dn.spark.privatize(some, {"smoking": SMOKING}, id="who").count()
    doubles = people.selectExpr("cast(number as double) as who", "smoking")
    with pytest.raises(InvalidArgument, match="a column of another type than double"):
        dn.spark.privatize(doubles, {"smoking": SMOKING}, id="who")


def test_fresh_coins_that_are_drawn_at_each_evaluation_are_caught(people):
    """The planted bug that `test_reports_do_not_depend_on_order_or_evaluation` is there for."""
    work = PrivatiseFreshly(Plan(reports_of(ASKED), ("number",)))
    chosen = people.select("smoking", "age", "number")
    lazy = chosen.mapInArrow(portable(work), work.schema(people))
    assert rows(lazy) != rows(lazy)


def test_without_ids_only_a_write_is_offered(people, tmp_path):
    with pytest.raises(InvalidArgument, match="fresh coins would cost its people twice"):
        dn.spark.privatize(people, ASKED)
    to = str(tmp_path / "out")
    df = dn.spark.privatize(people, ASKED, keep=["number"], to=to)
    assert dn.spark.tally(df, AGE, column="age").n == N
    assert rows(df) == rows(df)
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="already exists"):
        dn.spark.privatize(people, ASKED, to=to)


def test_committers_that_show_several_attempts_are_refused(people, tmp_path, spark):
    name = "spark.sql.parquet.output.committer.class"
    spark.conf.set(name, "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter")
    try:
        with pytest.raises(InvalidArgument, match="shows one attempt of each task"):
            dn.spark.privatize(people, ASKED, to=str(tmp_path / "out"))
    finally:
        spark.conf.unset(name)


def die_once(folder):
    """A step before the others, in which the worker dies the first time that it sees a row."""

    def step(batches):
        for batch in batches:
            if batch.num_rows and first_time(folder, "died"):
                os._exit(1)
            yield batch

    return step


def test_fresh_coins_of_a_worker_that_died_are_not_seen(people, tmp_path):
    """The first attempt dies when it has randomised some rows: only the second one is committed."""
    (tmp_path / "deaths").mkdir()
    dying = people.mapInArrow(die_once(str(tmp_path / "deaths")), people.schema)
    df = dn.spark.privatize(dying, ASKED, keep=["number"], to=str(tmp_path / "out"))
    assert (tmp_path / "deaths" / "died").exists()
    assert sorted(rows(df)) == list(range(N))
    assert df.count() == N


def test_workers_that_die_do_not_change_reports(people, tmp_path):
    whole = dn.spark.privatize(people, ASKED, id="person", keep=["number"], secret=SECRET)
    dying = people.mapInArrow(die_once(str(tmp_path)), people.schema)
    df = dn.spark.privatize(dying, ASKED, id="person", keep=["number"], secret=SECRET)
    assert rows(df) == rows(whole)
    assert (tmp_path / "died").exists()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"asked": {"smoking": dn.LGRR(["a", "b"], 2.0, 1.0)}}, "answered on the devices"),
        ({"asked": {"drinking": SMOKING}}, "one of person, number, smoking, age"),
        ({"id": "smoking"}, "no column of answers"),
        ({"id": "number", "secret": b"short"}, "32 random bytes"),
        ({"keep": ["age"]}, "'age' is no such column"),
        ({"id": None, "to": "x", "secret": SECRET}, "left out without `id`"),
    ],
)
def test_what_cannot_be_privatised_is_refused(people, more, words):
    asked = more.pop("asked", ASKED)
    with pytest.raises(InvalidArgument, match=words):
        dn.spark.privatize(people, asked, **{"id": "person", **more})


def test_drawn_questions_are_several_columns(people):
    joint = dn.Joint.of_questions(ASKED)
    df = dn.spark.privatize(people, {"both": joint}, id="person")
    assert df.columns == ["both"]
    assert dn.spark.tally(df, joint, column="both").n == N
