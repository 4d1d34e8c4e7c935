"""Spark against this machine: the same results after accidents, and what they cost.

    python benchmarks/spark.py --cluster
    python benchmarks/spark.py --out out/spark [--rows 1000000000]

With --cluster: a cluster of two executors (Spark's own `local-cluster`, each executor a process)
counts a lake of reports and privatises files. While it does, one executor is killed. Then a cluster
of two hosts (Spark's own master and workers, on two loopback addresses) does the same with
speculation on, and one task is so slow that Spark starts a copy of it. Prints the digests of what
the clusters and the local engine found; exit code 1 if they differ, or if nothing was tried twice.

Otherwise: the time to count reports (GRR, one byte each) from Parquet by the local engine and by
Spark with as many cores, in turns; what rows cost that go through Python; what privatising costs.
The start of Spark and the first job, in which workers import everything, are stated apart.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

import numpy as np

import deniable as dn
from deniable.engines import Engine, LocalEngine, tally_files
from deniable.engines.base import Job, Partial
from deniable.engines.files import Piece
from deniable.engines.privatising import PrivatiseJob, privatise_files
from deniable.engines.tallying import TallyJob
from deniable.extras import pyarrow, pyspark
from deniable.views.formats import Format
from deniable.views.tables import show
from spark_jobs import Slow, Straggling

#: More than 128 answers: a report takes one byte in Parquet.
GRR = dn.GRR(200, 1.0)
FILE_ROWS = 1 << 24
TURNS = 3
#: Rows whose reports or answers go through Python.
FEW = 500_000
PIECES = 12
CLUSTER = "local-cluster[2,1,1024]"
SETTINGS = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
#: Addresses of this machine that are two hosts to Spark: it starts copies on another host only.
HOSTS = ("127.0.0.1", "127.0.0.2")
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "200ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.minTaskRuntime": "2s",
    "spark.speculation.efficiency.enabled": "false",
    # No task is retried: a second attempt is a copy of one that runs.
    "spark.task.maxFailures": "1",
    # Jobs wait for both executors.
    "spark.cores.max": str(len(HOSTS)),
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
}
#: Seconds in which a master or worker must be ready, and in which it must end.
PATIENCE = 60


def lake(folder: Path, rows: int, file_rows: int = FILE_ROWS) -> Path:
    """Files with so many reports, if they are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    for number, start in enumerate(range(0, rows, file_rows)):
        path = folder / f"{number:05}.parquet"
        if not path.exists():
            values = rng.integers(0, GRR.domain.size, min(file_rows, rows - start))
            GRR.privatize(values, rng).to_parquet(path)
    return folder


def answers(folder: Path, rows: int, files: int) -> Path:
    """Files with raw answers of two questions, and a public column."""
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(2)
    for number in range(files):
        n = rows // files
        table = {
            "person": number * n + np.arange(n),
            "smoking": rng.choice(["daily", "sometimes", "never"], n),
            "age": rng.integers(0, 90, n),
        }
        pq.write_table(pyarrow().table(table), folder / f"{number:05}.parquet")
    return folder


ASKED = {
    "smoking": dn.GRR(["daily", "sometimes", "never"], 1.0),
    "age": dn.OUE(dn.Bins([20, 40, 60]), 1.0),
}


# ---- clusters with accidents


class Slowed(Engine):
    """An engine whose jobs of one kind are slow, and lose an executor in the middle."""

    slow: type[Slow] = Slow

    def __init__(self, engine: Engine, kind: type[Job[Any]], notes: Path) -> None:
        self._engine, self._kind, self._notes = engine, kind, notes
        notes.mkdir()

    def results(self, job: Job[Any], pieces: Sequence[tuple[int, Piece]]) -> Iterator[Partial[Any]]:
        if not isinstance(job, self._kind):
            yield from self._engine.results(job, pieces)
            return
        self.begin()
        yield from self._engine.results(self.slow(job, str(self._notes)), pieces)
        attempts = {one.name: len(list(one.iterdir())) for one in self._notes.iterdir()}
        print(f"  {self._kind.__name__}: {self.told(attempts)}")

    def begin(self) -> None:
        Thread(target=kill_executor, args=(self._notes,), daemon=True).start()

    def told(self, attempts: dict[str, int]) -> str:
        """What happened to the pieces, whose attempts were counted; refused if nothing did."""
        again = sum(number > 1 for number in attempts.values())
        if not again:
            raise SystemExit("nothing was tried twice: the accident came too late")
        return f"{len(attempts)} pieces, {again} of them tried again"


class Speculated(Slowed):
    """An engine whose jobs of one kind have a straggler, of which Spark starts a copy."""

    slow = Straggling

    def begin(self) -> None:
        """Nothing is killed."""

    def told(self, attempts: dict[str, int]) -> str:
        number = attempts["0"]
        if number < 2:
            raise SystemExit("speculation did not happen: Spark started no copy of the straggler")
        return f"{len(attempts)} pieces, {number} attempts at the one with a straggler"


def kill_executor(notes: Path) -> None:
    """Kill the executor of an attempt that has just begun, when some pieces are done."""
    while len(begun := list(notes.glob("*/*"))) < PIECES // 3:
        time.sleep(0.05)
    worker = int(max(begun, key=lambda note: note.stat().st_mtime).name.partition("-")[0])
    pid = next(one for one in _above(worker) if b"CoarseGrainedExecutorBackend" in _command(one))
    os.kill(pid, signal.SIGKILL)
    print(f"  executor {pid} was killed", flush=True)


def _above(pid: int) -> Iterator[int]:
    """The processes that a process comes from, up to this one."""
    while pid != os.getpid():
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        yield pid


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def digest(folder: Path) -> str:
    """The names and bytes of all files of reports."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*.parquet")):
        found.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return found.hexdigest()


def privatised(given: Path, folder: Path, engine: Engine) -> str:
    """The digest of the reports of some answers, with a secret that is no secret."""
    secret = folder.with_suffix(".secret")
    secret.touch(mode=0o600)
    secret.write_bytes(bytes(32))
    privatise_files([given], ASKED, folder, secret=secret, engine=engine)
    return digest(folder)


def cluster(folder: Path) -> bool:
    """Whether clusters with accidents and this machine find the same."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    here = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, here))
    os.environ.setdefault("SPARK_HOME", str(Path(pyspark("pyspark").__file__).parent))
    killed = same(folder / "killed", CLUSTER, {}, Slowed)
    with two_hosts(folder) as master:
        copied = same(folder / "copied", master, SPECULATION, Speculated)
    return killed and copied


def same(folder: Path, master: str, settings: dict[str, str], slowed: type[Slowed]) -> bool:
    """Whether a cluster with accidents of one kind and this machine find the same."""
    builder = pyspark("pyspark.sql").SparkSession.builder.master(master)
    for name, value in {**SETTINGS, **settings}.items():
        builder = builder.config(name, value)
    with _stopped(builder.getOrCreate()):
        engine = dn.spark.SparkEngine()
        reports = lake(folder / "lake", PIECES << 17, 1 << 17)
        given = answers(folder / "answers", PIECES * 2000, PIECES)
        print(f"{master}, speculation {'on' if settings else 'off'}")
        counting = slowed(engine, TallyJob, folder / "notes")
        (far,) = tally_files([reports], engine=counting).values()
        (near,) = tally_files([reports]).values()
        names = [hashlib.sha256(one.to_bytes()).hexdigest() for one in (far, near)]
        print(f"tally of {near.n:,} reports\n  cluster  {names[0]}\n  local    {names[1]}")
        writing = slowed(engine, PrivatiseJob, folder / "notes2")
        files = [
            privatised(given, folder / name, one)
            for name, one in (("cluster", writing), ("local", LocalEngine()))
        ]
        print(f"privatised files\n  cluster  {files[0]}\n  local    {files[1]}")
    return len(set(names)) == len(set(files)) == 1


@contextmanager
def two_hosts(folder: Path) -> Iterator[str]:
    """The address of Spark's own master with a worker on each host; they end with the block."""
    with ExitStack() as running:
        log = folder / "master.log"
        ready = r"spark://[\d.]+:\d+"
        master = running.enter_context(daemon("master.Master", HOSTS[0], log, ready))
        size = ["--cores", "1", "--memory", "1g"]
        for host in HOSTS:
            log, ready = folder / f"{host}.log", "Successfully registered with master"
            place = ["--work-dir", str(folder / host), master]
            running.enter_context(daemon("worker.Worker", host, log, ready, *size, *place))
        yield master


@contextmanager
def daemon(kind: str, host: str, log: Path, ready: str, *options: str) -> Iterator[str]:
    """A process of a cluster on a loopback address, and what it said when it was ready."""
    program = str(Path(os.environ["SPARK_HOME"], "bin", "spark-class"))
    at = ["--host", host, "--port", "0", "--webui-port", "0"]
    local = {"SPARK_LOCAL_IP": host, "SPARK_DAEMON_JAVA_OPTS": "-Dspark.master.rest.enabled=false"}
    with (
        log.open("wb") as out,
        subprocess.Popen(
            [program, f"org.apache.spark.deploy.{kind}", *at, *options],
            env=os.environ | local,
            stdout=out,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        try:
            end = time.monotonic() + PATIENCE
            while not (said := re.search(ready, log.read_text())):
                if process.poll() is not None or time.monotonic() > end:
                    raise SystemExit(f"Spark's {kind} did not start:\n{log.read_text()}")
                time.sleep(0.1)
            yield said[0]
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def _stopped(session: Any) -> Iterator[Any]:
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()


# ---- what it costs


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_turns(*works: Callable[[], Any]) -> list[float]:
    """The median time of each work, one after the other several times."""
    for work in works:
        work()
    turns = [[seconds(work) for work in works] for _ in range(TURNS)]
    return [median(column) for column in zip(*turns, strict=True)]


def compared(name: str, n: int, local: float, spark: float) -> dict[str, Any]:
    return {
        "what": name,
        "n": n,
        "local_s": round(local, 3),
        "spark_s": round(spark, 3),
        "ratio": round(spark / local, 2),
    }


def speed(folder: Path, rows: int) -> dict[str, Any]:
    """All measurements."""
    cores = len(os.sched_getaffinity(0))
    begun = time.perf_counter()
    far = dn.spark.SparkEngine(f"local[{cores}]")
    start = time.perf_counter() - begun
    near, session = LocalEngine(cores), far.session
    small = lake(folder / "lake-8", 10**6)
    first = seconds(lambda: tally_files([small], engine=far))
    found = []
    for n in sorted({min(10**8, rows), rows}):
        place = lake(folder / f"lake-{n}", n)
        times = in_turns(
            lambda place=place: tally_files([place], engine=near),  # type: ignore[misc]
            lambda place=place: tally_files([place], engine=far),  # type: ignore[misc]
        )
        found.append(compared("count files", n, *times))
        show(found[-1:], Format.table)
    few = lake(folder / f"lake-{FEW}", FEW, FEW // 4)
    df = session.read.parquet(str(few))
    times = in_turns(lambda: tally_files([few], engine=near), lambda: dn.spark.tally(df, GRR))
    found.append(compared("count rows of a DataFrame", FEW, *times))
    given = answers(folder / f"answers-{FEW}", FEW, 4)
    people = session.read.parquet(str(given))

    def write(work: Callable[[Path], Any]) -> None:
        with tempfile.TemporaryDirectory(dir=folder) as fresh:
            work(Path(fresh, "out"))

    def files(engine: Engine) -> Callable[[], None]:
        return lambda: write(lambda to: privatise_files([given], ASKED, to, engine=engine))

    def frames(**named: Any) -> Callable[[], None]:
        return lambda: write(lambda to: dn.spark.privatize(people, ASKED, to=str(to), **named))

    times = in_turns(files(near), files(far), frames(), frames(id="person"))
    names = ["privatise files", "privatise a DataFrame", "privatise a DataFrame with ids"]
    found += [compared(n, FEW, times[0], one) for n, one in zip(names, times[1:], strict=True)]
    session.stop()
    return {"cores": cores, "start_s": round(start, 1), "first_s": round(first, 1), "cases": found}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--cluster", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("out/spark"))
    parser.add_argument("--rows", type=int, default=10**9)
    chosen = parser.parse_args()
    if chosen.cluster:
        with tempfile.TemporaryDirectory() as folder:
            alike = cluster(Path(folder))
        print("the same" if alike else "DIFFERENT")
        sys.exit(not alike)
    chosen.out.mkdir(parents=True, exist_ok=True)
    found = speed(chosen.out, chosen.rows)
    told = f"Spark started in {found['start_s']} s, its first job took {found['first_s']} s"
    show(found["cases"], Format.table, f"{told}; {found['cores']} cores")
    (chosen.out / "spark.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
