"""The collector under load, fuzz and kill -9, beside the least that a server has to do.

    python benchmarks/collector.py --out out/collector
    python benchmarks/collector.py --turns 3 --reports 4000000 --fuzz 2000 --out out/quick
    python benchmarks/collector.py --kills 200 --out out/collector

Everything is measured in one run on one machine and given as ratios where that is possible: single
submissions against a bare Starlette handler on Uvicorn, and against bare inserts into SQLite. Needs
the repository: the faults are those of tests/support/faults.py.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from deniable.collection.batches import read_batch, write_batch
from deniable.collection.manifest import Collection
from deniable.service.store import open_store
from deniable.views.formats import Format
from deniable.views.tables import show

TESTS = Path(__file__).parent.parent / "tests" / "support"
sys.path.insert(0, str(TESTS))

import collection_toys as toys  # type: ignore[import-not-found]  # noqa: E402
import collectors  # type: ignore[import-not-found]  # noqa: E402
import faults  # type: ignore[import-not-found]  # noqa: E402
import mutations  # type: ignore[import-not-found]  # noqa: E402

CONNECTIONS, TURNS = 64, 15
#: Bars: singles against the bare handler, reports of batches a second, growth of memory.
OF_HANDLER, BATCHES, GROWTH_MB = 0.6, 5e6, 64

HANDLER = """
import os, sys, msgspec, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from deniable.service.intake import Submitted
from deniable.service.run import bind
decoder = msgspec.json.Decoder(Submitted)
async def submit(request):
    decoder.decode(await request.body())
    return Response(b'{"counted":true}', 201, media_type="application/json")
listening = bind("127.0.0.1", 0)
print(listening.getsockname()[1], os.getpid(), flush=True)
app = Starlette(routes=[Route("/v2/submissions", submit, methods=["POST"])])
options = {"access_log": False, "proxy_headers": False, "server_header": False}
config = uvicorn.Config(app, log_level="warning", **options)
uvicorn.Server(config).run(sockets=[listening])
"""


class Connection(asyncio.Protocol):
    """Sends one request after the other on a connection, and counts the statuses."""

    def __init__(self, requests: Iterator[bytes], found: Counter[int]) -> None:
        self._requests, self._found, self._buffer = requests, found, b""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._next()

    def _next(self) -> None:
        if (request := next(self._requests, None)) is None:
            self._transport.close()
        else:
            self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._buffer.endswith(b"}"):  # every answer is one JSON object
            self._found[int(self._buffer[9:12])] += 1
            self._buffer = b""
            self._next()

    def connection_lost(self, _: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None)


def load(port: int, requests: Sequence[bytes], connections: int = CONNECTIONS) -> Counter[int]:
    """Send all requests over some connections; how often each status was answered."""
    found: Counter[int] = Counter()
    rest = iter(requests)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        make = [
            loop.create_connection(lambda: Connection(rest, found), "127.0.0.1", port)
            for _ in range(connections)
        ]
        for _, protocol in await asyncio.gather(*make):
            await protocol.done

    asyncio.run(run())
    return found


def timed_load(port: int, requests: Sequence[bytes], connections: int = CONNECTIONS) -> float:
    """Answers a second; all must be 201."""
    start = time.perf_counter()
    found = load(port, requests, connections)
    seconds = time.perf_counter() - start
    if found != {201: len(requests)}:
        raise RuntimeError(f"not all were counted: {found}")
    return len(requests) / seconds


@contextmanager
def collector_of(collection: Collection, **options: Any) -> Iterator[Any]:
    """A collector with an empty store in a folder that is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "store.db")
        open_store(path, collection).close()
        with collectors.Collector(path, **options) as running:
            yield running


@contextmanager
def bare_handler() -> Iterator[int]:
    """The port of a server that only decodes and answers."""
    environment = {**os.environ, "PYTHONPATH": str(collectors.SOURCES)}
    command = [sys.executable, "-c", HANDLER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline().split()[0])
        process.terminate()


def singles(collection: Collection, n: int, seed: int) -> list[bytes]:
    """Requests with submissions that differ."""
    rng = np.random.default_rng(seed)
    bodies = [toys.submission(collection, rng).to_json() for _ in range(n)]
    return [collectors.request_bytes(body) for body in bodies]


def bare_inserts(collection: Collection, n: int) -> float:
    """Rows a second into SQLite, in synced groups as large as the number of connections."""
    rng = np.random.default_rng(5)
    rows = [toys.packed(collection, toys.submission(collection, rng)) for _ in range(n)]
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder) / "bare.db", isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE s (id BLOB PRIMARY KEY, day INT, body BLOB) WITHOUT ROWID")
        start = time.perf_counter()
        for place in range(0, n, CONNECTIONS):
            group = [(name, 1, body) for name, body in rows[place : place + CONNECTIONS]]
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO s VALUES (?, ?, ?)", group)
            connection.execute("COMMIT")
        seconds = time.perf_counter() - start
        connection.close()
    return n / seconds


def single_rows(n: int, repeats: int) -> list[dict[str, Any]]:
    """Single submissions against the bare handler, in turns, and against bare inserts.

    Rates are medians: where others use the machine, too, the best of few turns is luck.
    """
    rows = []
    for name, collection in (("one question", toys.one_question(16)), ("survey", toys.survey())):
        ours, bare = [], []
        with collector_of(collection) as running, bare_handler() as port:
            load(running.port, singles(collection, 200, 0))
            load(port, singles(collection, 200, 0))
            for turn in range(1, repeats + 1):
                requests = singles(collection, n, turn)
                ours.append(timed_load(running.port, requests))
                bare.append(timed_load(port, requests))
        inserts = bare_inserts(collection, n)
        rate, handler = median(ours), median(bare)
        row: dict[str, Any] = {"what": f"singles, {name}", "per_second": rate, "handler": handler}
        paired = median(a / b for a, b in zip(ours, bare, strict=True))
        ratios = {"of_handler": paired, "of_inserts": rate / inserts}
        rows.append({**row, "inserts": inserts, **ratios, "bar": OF_HANDLER})
    return rows


def batch_requests(collection: Collection, rows: int, count: int) -> list[bytes]:
    """Batches of the same reports under different ids."""
    columns = read_batch(collection, toys.batch(collection, rows, 3).body)[1]
    made = (write_batch(collection, columns).body for _ in range(count))
    return [collectors.request_bytes(body, "/v2/batches", collectors.ARROW) for body in made]


def batch_rows(total: int) -> list[dict[str, Any]]:
    """Acknowledged reports a second in batches, and memory before and after."""
    found = []
    collections = {"GRR, k = 16": toys.one_question(16), "survey": toys.survey()}
    collections["survey, drawn"] = toys.survey("sampled")
    for name, collection in collections.items():
        rows, asked = 500_000, len(collection.reports)
        count = max(4, total // (rows * asked))
        requests = batch_requests(collection, rows, count + 2)
        with collector_of(collection) as running:
            load(running.port, requests[:2], 2)
            before = running.memory
            rate = timed_load(running.port, requests[2:], 2)
            growth = (running.memory - before) / 2**20
        row = {"what": f"batches, {name}", "rows": rows, "reports": count * rows * asked}
        speed = {"reports_per_second": rate * rows * asked, "bar": BATCHES}
        found.append({**row, **speed, "memory_mb": before / 2**20, "growth_mb": growth})
    return found


def fuzz_row(n: int) -> dict[str, Any]:
    """Mutated bodies: no answer of 5xx, and exactly what was acknowledged is kept."""
    rng = random.Random(1)
    collection = toys.survey()
    good = [r.partition(b"\r\n\r\n")[2] for r in singles(collection, 50, 9)]
    streams = [toys.batch(collection, size, seed).body for seed, size in enumerate((1, 3, 40))]
    requests = []
    for _ in range(n):
        if rng.random() < 0.5:
            requests.append(collectors.request_bytes(mutations.mutate(rng.choice(good), rng)))
        else:
            body = mutations.mutate(rng.choice(streams), rng)
            requests.append(collectors.request_bytes(body, "/v2/batches", collectors.ARROW))
    with collector_of(collection) as running:
        found = load(running.port, requests)
        store = open_store(running.options["store"])
        kept = sum(map(len, store.singles())) + sum(1 for _ in store.batches())
        differences = store.verify()
        store.close()
    wrong = len(differences) + abs(kept - found[201])
    failed = sum(number for status, number in found.items() if status >= 500)
    answered = {str(status): found[status] for status in sorted(found)}
    unanswered = n - sum(found.values())
    row = {"what": "fuzz", "bodies": n, "5xx": failed, "unanswered": unanswered}
    return {**row, "wrong_counts": wrong, "answers": json.dumps(answered)}


def kill_row(kills: int) -> dict[str, Any]:
    """kill -9 again and again, with retries of what is in doubt."""
    with tempfile.TemporaryDirectory() as folder:
        world = faults.World.begin(Path(folder), 1, size=60 * kills + 100)
        for number in range(1, kills + 1):
            world.run(["kill", "replay"])
            if number % 20 == 0 or number == kills:
                world.check()
                world.collector.start()
        world.check()
    row = {"what": "kill -9", "kills": kills, "sent": len(world.sent)}
    return {**row, "acknowledged": len(world.acknowledged), "lost": 0, "doubled": 0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("out/collector"))
    parser.add_argument("--singles", type=int, default=3_000, help="submissions in each turn")
    parser.add_argument("--reports", type=int, default=10_000_000, help="reports in batches")
    parser.add_argument("--fuzz", type=int, default=100_000, help="mutated bodies")
    parser.add_argument("--turns", type=int, default=TURNS, help="turns of single submissions")
    parser.add_argument("--kills", type=int, default=0, help="only kill -9, so many times")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    result: dict[str, Any] = {"load_before": os.getloadavg()[0]}
    if chosen.kills:
        parts = {"kills": [kill_row(chosen.kills)]}
    else:
        parts = {
            "singles": single_rows(chosen.singles, chosen.turns),
            "batches": batch_rows(chosen.reports),
        }
        parts["fuzz"] = [fuzz_row(chosen.fuzz)]
    for name, rows in parts.items():
        show(rows, Format.table, name)
    result |= {**parts, "load_after": os.getloadavg()[0]}
    name = "collector-kills.json" if chosen.kills else "collector.json"
    (chosen.out / name).write_text(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
