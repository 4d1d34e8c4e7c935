"""A year of reports in one store: purging, exporting and verifying it while respondents answer.

    python benchmarks/year.py --out out/year
    python benchmarks/year.py --submissions 10000000 --out out/year
    python benchmarks/year.py --postgres --out out/year

Fills a store with submissions of 365 days, and measures in one run: a full verification against one
with a checkpoint, an export, and a purge of all days but thirty while a respondent sends a
submission every few milliseconds to a collector in a process of its own: the longest that it waits
for an answer, beside the longest without a purge. Needs the repository: the collector and
PostgreSQL are those of tests/support.
"""

from __future__ import annotations

import argparse
import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from deniable.randomness import draw_key
from deniable.service.parquet import export
from deniable.service.store import Store, open_store, sql
from deniable.service.store.base import EPOCH, today
from deniable.service.store.checkpoints import Checkpoint
from deniable.views.formats import Format
from deniable.views.tables import show

TESTS = Path(__file__).parent.parent / "tests" / "support"
sys.path.insert(0, str(TESTS))

import collection_toys as toys  # type: ignore[import-not-found]  # noqa: E402
import collectors  # type: ignore[import-not-found]  # noqa: E402
import postgres  # type: ignore[import-not-found]  # noqa: E402

DAYS, KEPT, GROUP = 365, 30, 5_000
#: Seconds between two submissions of the respondent, and of the quiet time before the purge.
PACE, QUIET = 0.005, 10.0


def fill(store: Store, number: int) -> None:
    """Submissions of all days but today, as many of each."""
    rng = np.random.default_rng(1)
    each = -(-number // DAYS)
    for day in range(today() - DAYS, today()):
        sql.today = lambda day=day: day  # type: ignore[attr-defined, misc]
        columns = {}
        for report in store.collection.reports:
            values = np.array(list(report.mechanism.domain.sample()))
            answers = values[rng.integers(0, len(values), each)].astype(
                report.mechanism.domain.dtype
            )
            columns[report.name] = report.mechanism.randomise(answers, draw_key(rng))
        entries = [
            (
                rng.bytes(16),
                store.packing.pack(1, 0, {q: c[i].tobytes() for q, c in columns.items()}),
            )
            for i in range(each)
        ]
        for start in range(0, each, GROUP):
            store.add(entries[start : start + GROUP])
    sql.today = today  # type: ignore[attr-defined]


def timed(task: Callable[[], Any]) -> float:
    began = time.perf_counter()
    task()
    return time.perf_counter() - began


class Respondent(threading.Thread):
    """Sends submissions one after the other, and notes how long each answer takes."""

    def __init__(self, collection: Any, port: int) -> None:
        super().__init__()
        self._collection, self._port = collection, port
        self._end = threading.Event()
        self.waits: list[float] = []

    def run(self) -> None:
        rng = np.random.default_rng(7)
        with closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)) as link:
            while not self._end.wait(PACE):
                body = toys.submission(self._collection, rng).to_json()
                began = time.perf_counter()
                link.request("POST", "/v2/submissions", body, {"content-type": "application/json"})
                answer = link.getresponse()
                answer.read()
                if answer.status != 201:
                    raise RuntimeError(f"a submission was answered with {answer.status}")
                self.waits.append(time.perf_counter() - began)

    def taken(self) -> tuple[float, float]:
        """The longest wait and the 99th percentile so far, in milliseconds; starts anew."""
        waits, self.waits = self.waits, []
        return 1e3 * max(waits), 1e3 * float(np.quantile(waits, 0.99))

    def stop(self) -> None:
        self._end.set()
        self.join()


@contextmanager
def place(use_postgres: bool) -> Iterator[tuple[str, Callable[[], float]]]:
    """The address of an empty store, and how to ask for its megabytes."""
    with tempfile.TemporaryDirectory() as folder:
        if not use_postgres:
            path = Path(folder) / "year.db"
            yield str(path), lambda: path.stat().st_size / 1e6
            return
        found = postgres.programs()
        if found is None:
            raise SystemExit("PostgreSQL is not installed")
        server = postgres.Postgres(found)
        try:
            address = server.database()

            def size() -> float:
                with open_store(address)._snapshot() as link:  # type: ignore[attr-defined]
                    asked = "SELECT pg_database_size(current_database())"
                    return float(link.execute(asked).fetchone()[0]) / 1e6

            yield address, size
        finally:
            server.remove()


def purge(address: str, *options: str) -> None:
    command = [sys.executable, "-m", "deniable", "purge", address, *options]
    subprocess.run(command, check=True, capture_output=True)


def measure(number: int, use_postgres: bool) -> dict[str, Any]:
    collection = toys.survey()
    with place(use_postgres) as (address, size), tempfile.TemporaryDirectory() as out:
        store = open_store(address, collection)
        found: dict[str, Any] = {
            "submissions": number,
            "fill_s": timed(lambda: fill(store, number)),
        }
        known = Checkpoint(collection.digest)
        found["verify_full_s"] = timed(lambda: store.verify(known))
        known.run += 1
        found["verify_again_s"] = timed(lambda: store.verify(known))
        found["export_s"] = timed(lambda: export(store, Path(out) / "out"))
        found["export_again_s"] = timed(lambda: export(store, Path(out) / "out"))
        found["before_MB"] = size()
        with collectors.Collector(address) as collector:
            respondent = Respondent(collection, collector.port)
            respondent.start()
            time.sleep(QUIET)  # the first answers come from a collector that is cold
            respondent.taken()
            time.sleep(QUIET)
            found["quiet_longest_ms"], found["quiet_p99_ms"] = respondent.taken()
            before = EPOCH + timedelta(days=today() - KEPT)
            found["purge_s"] = timed(lambda: purge(address, "--before", str(before)))
            found["purge_longest_ms"], found["purge_p99_ms"] = respondent.taken()
            found["after_MB"] = size()
            found["rewrite_s"] = timed(lambda: purge(address, "--before", str(before), "--rewrite"))
            found["rewrite_longest_ms"], _ = respondent.taken()
            respondent.stop()
        found["rewritten_MB"] = size()
        gone = number * (DAYS - KEPT) / DAYS
        found["purge_s_per_million"] = found["purge_s"] / gone * 1e6
        if wrong := store.verify():
            raise RuntimeError("; ".join(wrong))
        store.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--submissions", type=int, default=1_000_000)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    found = measure(given.submissions, given.postgres)
    given.out.mkdir(parents=True, exist_ok=True)
    kind = "postgres" if given.postgres else "sqlite"
    (given.out / f"{kind}-{given.submissions}.json").write_text(json.dumps(found, indent=1))
    show([{"what": name, "found": value} for name, value in found.items()], Format.table, kind)


if __name__ == "__main__":
    main()
