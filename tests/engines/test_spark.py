"""Spark: the same results as on this machine, whatever its workers do."""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.engines import LocalEngine, report_files, tally_files
from deniable.engines.duplicates import NONE
from deniable.engines.files import find, look, pieces
from deniable.engines.privatising import PrivatiseJob, privatise_files
from deniable.engines.selection import Reading
from deniable.engines.spark import SparkEngine
from deniable.engines.spark.session import require_java
from deniable.engines.tallying import TallyJob
from deniable.errors import CorruptData, EngineUnavailable, InvalidArgument, MismatchError
from spark_toys import Accumulates, DrawsAnew, Dying, Seen, Through

N = 100_000


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """10^5 reports in eight files."""
    folder = tmp_path_factory.mktemp("lake")
    rng = np.random.default_rng(1)
    m = dn.OUE(12, 1.0)
    for part in range(8):
        reports = m.privatize(rng.integers(0, 12, N // 8), rng=rng)
        (folder / f"region={part % 2}").mkdir(exist_ok=True)
        reports.with_ids().to_parquet(folder / f"region={part % 2}" / f"{part}.parquet")
    return folder


@pytest.fixture(scope="module")
def engine(spark):
    return SparkEngine()


def cut(*paths):
    files = look(find(paths))
    return files[0].mechanism, pieces(files)


@pytest.fixture
def few(lake):
    """Two of the files: a worker that is started anew takes a second to import everything."""
    return cut(*sorted(lake.rglob("*.parquet"))[:2])


def tally_job(mechanism):
    return TallyJob(Reading(mechanism, NONE), ())


# ---- the engine


def test_tallies_are_those_of_this_machine(engine, lake):
    assert tally_files([lake], engine=engine, by=["region"]) == tally_files([lake], by=["region"])
    (tally,) = tally_files([lake], engine=engine).values()
    assert tally.n == tally.identified == N


def test_decoders_that_need_reports_give_the_numbers_of_this_machine(engine, lake):
    ours, theirs = (
        report_files([lake], engine=one).estimate("likelihood") for one in (engine, LocalEngine())
    )
    for name in ("frequencies", "standard_errors", "intervals"):
        one, other = getattr(ours, name), getattr(theirs, name)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


def test_ids_that_come_again_are_found(engine, lake, tmp_path):
    one = dn.Reports.from_parquet(next(lake.rglob("*.parquet")))
    dn.Reports.concatenate([one, one[:10]]).to_parquet(tmp_path / "twice.parquet")
    with pytest.raises(MismatchError, match="10 reports have ids that came before"):
        tally_files([tmp_path], engine=engine)
    (tally,) = tally_files([tmp_path], engine=engine, duplicates="drop").values()
    assert tally == dn.Tally(one.mechanism).add(one[:]).merge(_sourced(tally))


def _sourced(tally):
    empty = dn.Tally(tally.mechanism)
    empty.sources = tally.sources
    return empty


def test_refusals_of_workers_are_those_of_this_machine(engine, tmp_path):
    """They are the same at every attempt, so Spark makes only one."""
    m = dn.GRR(3, 1.0)
    for part in range(3):
        m.privatize([0, 1, 2] * 100).to_parquet(tmp_path / f"{part}.parquet")
    mechanism, some = cut(tmp_path)
    dn.GRR(3, 1.0).privatize([1] * 300).to_parquet(tmp_path / "1.parquet")
    job = tally_job(mechanism)
    for runner in (LocalEngine(2), engine):
        with pytest.raises(CorruptData, match=r"1\.parquet: the file changed while it was read"):
            runner.run(job, some)


def test_workers_that_die_change_nothing(engine, few, tmp_path):
    mechanism, some = few
    expected = LocalEngine(2).run(tally_job(mechanism), some)
    assert engine.run(Dying(tally_job(mechanism), str(tmp_path)), some) == expected
    assert len(list(tmp_path.iterdir())) == len(some), "every piece was read twice"


def test_a_job_that_counts_retried_tasks_twice_is_caught(engine, few, tmp_path):
    mechanism, some = few
    expected = LocalEngine(2).run(tally_job(mechanism), some)
    planted = Accumulates(tally_job(mechanism), str(tmp_path / "sums"))
    (tmp_path / "deaths").mkdir()
    engine.run(Dying(planted, str(tmp_path / "deaths")), some)
    assert planted.total()[()].n == 2 * expected[()].n
    assert planted.total() != expected


def test_a_result_that_comes_twice_is_refused(engine, lake, monkeypatch):
    mechanism, some = cut(lake)
    once = engine._run
    monkeypatch.setattr(engine, "_run", lambda *given: once(*given) * 2)
    with pytest.raises(CorruptData, match="more than once"):
        engine.run(tally_job(mechanism), some)
    monkeypatch.setattr(engine, "_run", lambda *given: once(*given)[1:])
    with pytest.raises(CorruptData, match="of the 8 pieces"):
        engine.run(tally_job(mechanism), some)


def test_many_small_files_share_tasks(engine, tmp_path):
    from deniable.engines.spark.engine import MOST_TOGETHER, _tasks

    m = dn.GRR(3, 1.0)
    m.privatize([0, 1, 2]).to_parquet(tmp_path / "0.parquet")
    _, (piece,) = cut(tmp_path)
    tasks = _tasks([(i, piece) for i in range(1000)], 2)
    assert [i for task in tasks for i, _ in task] == list(range(1000))
    assert len(tasks) == 16
    assert max(map(len, _tasks([(i, piece) for i in range(1000)], 1))) <= MOST_TOGETHER


# ---- privatising files


@pytest.fixture
def answers(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    rng = np.random.default_rng(1)
    for part in range(2):
        table = pa.table({"x": rng.integers(0, 1 << 16, 5000), "y": rng.integers(0, 9, 5000)})
        pq.write_table(table, folder / f"{part}.parquet")
    return folder


ASKED = {"x": dn.GRR(1 << 16, 1.0), "y": dn.OUE(9, 1.0)}


def privatised(answers, folder, engine):
    """The bytes that are written with a known secret."""
    secret = folder.with_suffix(".secret")
    secret.write_bytes(bytes(32))
    secret.chmod(0o600)
    privatise_files([answers], ASKED, folder, secret=secret, engine=engine)
    found = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.parquet")}
    assert len(found) == 4
    return found


def seen(folder):
    """How many versions of each file an onlooker saw."""
    return [len({one.read_bytes() for one in name.iterdir()}) for name in folder.glob("*/*")]


def test_files_are_the_same_bytes_as_on_this_machine(engine, answers, tmp_path):
    """Also if each worker dies right after it has given the files of the first attempt a name."""
    (tmp_path / "deaths").mkdir()

    def dying(job):
        return Dying(Seen(job, str(tmp_path / "seen")), str(tmp_path / "deaths"))

    found = privatised(answers, tmp_path / "out", Through(engine, dying))
    assert found == privatised(answers, tmp_path / "local", LocalEngine(2))
    assert seen(tmp_path / "seen") == [1] * 4
    assert len(list((tmp_path / "deaths").iterdir())) == 2


def test_a_retry_that_draws_anew_is_caught(engine, answers, tmp_path):
    (tmp_path / "deaths").mkdir()

    def planted(job):
        job = PrivatiseJob(DrawsAnew(job.coins.secret, job.plan), job.folder)
        return Dying(Seen(job, str(tmp_path / "seen")), str(tmp_path / "deaths"))

    found = privatised(answers, tmp_path / "out", Through(engine, planted))
    assert found != privatised(answers, tmp_path / "local", LocalEngine(2))
    assert seen(tmp_path / "seen") == [2] * 4


def test_refusals_of_workers_keep_their_words(engine, answers, tmp_path):
    with pytest.raises(InvalidArgument, match=r"y: values\[\d+\]") as refused:
        privatise_files([answers], {"y": dn.GRR(3, 1.0)}, tmp_path / "out", engine=engine)
    assert "not shown" in str(refused.value)


def test_examples_of_the_page_run_in_order(spark, tmp_path, monkeypatch):
    from test_docs import PAGES

    monkeypatch.chdir(tmp_path)
    namespace = {}
    for block in PAGES["docs/spark.md"]:
        exec(block, namespace)


# ---- what may be missing


@pytest.fixture
def other_python(engine, tmp_path, monkeypatch):
    """A Python of the workers that has something else under the name of deniable."""

    def replace(source):
        (tmp_path / "deniable").mkdir()
        (tmp_path / "deniable" / "__init__.py").write_text(source)
        program = tmp_path / "python"
        program.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
        program.chmod(0o755)
        monkeypatch.setattr(engine.session.sparkContext, "pythonExec", str(program))

    return replace


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("raise ImportError", r"has no deniable. Install deniable\[spark\]==0.1.0 on every worker"),
        ("__version__ = '0.0.9'", "has deniable 0.0.9, and this program 0.1.0"),
    ],
    ids=["none", "another"],
)
def test_workers_without_this_deniable_say_so(engine, lake, other_python, source, words):
    other_python(source)
    with pytest.raises(EngineUnavailable, match=f"cannot run on this Spark worker: .*{words}"):
        tally_files([lake], engine=engine)


def test_workers_with_another_python_say_so(engine, lake, monkeypatch):
    monkeypatch.setattr(engine.session.sparkContext, "pythonVer", "3.10")
    with pytest.raises(EngineUnavailable, match="have another version of Python"):
        tally_files([lake], engine=engine)


def test_java_must_be_there_and_new_enough(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EngineUnavailable, match="Spark needs Java, and there is none in JAVA_HOME"):
        require_java()
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    for told, version in (("1.8.0_292", 8), ("11.0.2", 11)):
        program.write_text(f"#!/bin/sh\necho 'openjdk version \"{told}\" 2021' >&2\n")
        program.chmod(0o755)
        with pytest.raises(EngineUnavailable, match=f"needs Java 17; .* is Java {version}"):
            require_java()
    program.write_text("#!/bin/sh\necho 'openjdk version \"17.0.15\" 2025' >&2\n")
    require_java()


def test_another_master_than_the_running_one_is_refused(engine):
    with pytest.raises(InvalidArgument, match="where a session is running"):
        SparkEngine("local[7]")
