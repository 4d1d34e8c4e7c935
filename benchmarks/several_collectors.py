"""Several collectors on one PostgreSQL server: rates, CPU of both, and what the disk takes.

    python benchmarks/several_collectors.py --out out/several
    python benchmarks/several_collectors.py --kills 60 --out out/several

One and two collectors take turns, so that ratios are of one run. CPU is what the kernel charged to
the processes, so it holds on busy machines, too. Clients run on the same machine. Needs the
repository and PostgreSQL: servers and disasters are those of tests/support.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from collector import CONNECTIONS, Connection, batch_requests, singles
from deniable.collection.manifest import Collection
from deniable.service.store import open_store
from deniable.views.formats import Format
from deniable.views.tables import show

TESTS = Path(__file__).parent.parent / "tests" / "support"
sys.path.insert(0, str(TESTS))

import collection_toys as toys  # type: ignore[import-not-found]  # noqa: E402
import collectors  # type: ignore[import-not-found]  # noqa: E402
import postgres  # type: ignore[import-not-found]  # noqa: E402
import several  # type: ignore[import-not-found]  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")
#: Bar: reports a second in batches.
BATCHES = 5e6
#: Submissions in one transaction of the writer that fills a table.
GROUP = 1_000


def load(ports: Sequence[int], requests: Sequence[bytes], connections: int) -> float:
    """Requests a second over some connections, shared among ports; all must be counted."""
    found: Counter[int] = Counter()
    rest = iter(requests)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        make = [
            loop.create_connection(lambda: Connection(rest, found), "127.0.0.1", port)
            for _ in range(connections // len(ports))
            for port in ports
        ]
        for _, protocol in await asyncio.gather(*make):
            await protocol.done

    start = time.perf_counter()
    asyncio.run(run())
    seconds = time.perf_counter() - start
    if found != {201: len(requests)}:
        raise RuntimeError(f"not all were counted: {found}")
    return len(requests) / seconds


def cpu(pid: int, *, dead: bool = False) -> float:
    """Seconds of a process; with ``dead`` also those of its children that ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11 : 15 if dead else 13])) / TICK


@dataclass
class Machine:
    """A database server, and collectors of one collection on it."""

    server: Any
    collectors: list[Any]

    @classmethod
    @contextmanager
    def of(cls, server: Any, collection: Collection, number: int) -> Iterator[Machine]:
        address = server.database()
        open_store(address, collection).close()
        with ExitStack() as held:
            found = [held.enter_context(collectors.Collector(address)) for _ in range(number)]
            yield cls(server, found)

    @property
    def ports(self) -> list[int]:
        return [one.port for one in self.collectors]

    def spent(self) -> tuple[float, float, int, int]:
        """Seconds of the collectors and of the server so far, bytes of its log, and commits."""
        time.sleep(1.1)  # the server counts commits with delay
        main = self.server._process.pid
        children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
        database = cpu(main, dead=True) + sum(cpu(int(pid)) for pid in children)
        log = self.server.ask("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")
        asked = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
        ours = sum(cpu(one.pid) for one in self.collectors)
        return ours, database, int(log), self.server.ask(asked)


def single_rows(server: Any, n: int, turns: int, connections: int) -> list[dict[str, Any]]:
    """Single submissions at one collector and at two, in turns."""
    rows = []
    for name, collection in (("one question", toys.one_question(16)), ("survey", toys.survey())):
        with Machine.of(server, collection, 2) as machine:
            load(machine.ports, singles(collection, 400, 0), connections)
            rates: dict[int, list[float]] = {1: [], 2: []}
            spent: dict[int, list[Any]] = {1: [], 2: []}
            for turn in range(1, turns + 1):
                for number in (1, 2):
                    requests = singles(collection, n, 2 * turn + number)
                    before = machine.spent()
                    rates[number].append(load(machine.ports[:number], requests, connections))
                    spent[number].append(np.subtract(machine.spent(), before) / n)
            verified(machine)
        ratio = median(b / a for a, b in zip(rates[1], rates[2], strict=True))
        for number in (1, 2):
            ours, theirs, log, commits = np.median(spent[number], axis=0)
            row = {
                "what": f"singles, {name}",
                "collectors": number,
                "per_second": median(rates[number]),
            }
            costs = {"collector_us": 1e6 * ours, "postgres_us": 1e6 * theirs, "wal_bytes": log}
            row["group"] = 1 / commits
            rows.append({**row, **costs, "of_one": ratio if number == 2 else 1.0})
    return rows


def batch_rows(server: Any, total: int) -> list[dict[str, Any]]:
    """Reports a second in batches of half a million respondents."""
    rows = []
    for name, collection in (("GRR, k = 16", toys.one_question(16)), ("survey", toys.survey())):
        size, asked = 500_000, len(collection.reports)
        count = max(4, total // (size * asked))
        with Machine.of(server, collection, 2) as machine:
            for number in (1, 2):
                requests = batch_requests(collection, size, count + 2)
                load(machine.ports[:number], requests[:2], 2)
                before = machine.spent()
                rate = load(machine.ports[:number], requests[2:], 2 * number) * size * asked
                reports = count * size * asked
                ours, theirs, log, _ = np.subtract(machine.spent(), before) / reports
                row = {"what": f"batches, {name}", "collectors": number, "reports": reports}
                costs = {"collector_ns": 1e9 * ours, "postgres_ns": 1e9 * theirs, "wal_bytes": log}
                rows.append({**row, "reports_per_second": rate, **costs, "bar": BATCHES})
            verified(machine)
    return rows


def growth_rows(server: Any, total: int, steps: int = 4) -> list[dict[str, Any]]:
    """What a table costs as it grows: one writer, in groups as large as a busy collector's."""
    collection = toys.one_question(16)
    rng, rows = np.random.default_rng(1), []
    with Machine.of(server, collection, 0) as machine:
        store = open_store(server.address)
        bodies = [toys.packed(collection, toys.submission(collection, rng))[1] for _ in range(200)]
        kept = 0
        for _ in range(steps):
            before, start, own = machine.spent(), time.perf_counter(), time.process_time()
            for _ in range(total // steps // GROUP):
                store.add([(rng.bytes(16), bodies[place % 200]) for place in range(GROUP)])
                kept += GROUP
            n, seconds = total // steps // GROUP * GROUP, time.perf_counter() - start
            writer = (time.process_time() - own) / n
            _, theirs, log, _ = np.subtract(machine.spent(), before) / n
            sizes = [
                server.ask(f"SELECT pg_{what}('deniable.submissions')") / kept
                for what in ("relation_size", "indexes_size")
            ]
            row = {
                "rows": kept,
                "per_second": n / seconds,
                "writer_us": 1e6 * writer,
            }
            costs = {"postgres_us": 1e6 * theirs, "wal_bytes": log}
            rows.append({**row, **costs, "table_bytes": sizes[0], "index_bytes": sizes[1]})
        store.close()
    return rows


@contextmanager
def served(collection: Collection, store: str, workers: int) -> Iterator[tuple[int, int]]:
    """`deniable serve` with some workers: its port and its process."""
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder) / "manifest.json"
        manifest.write_bytes(collection.manifest)
        command = [sys.executable, "-m", "deniable", "serve", str(manifest), "--port", "0"]
        command += ["--store", store, "--workers", str(workers), "--rate", "1e9"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            while (line := process.stdout.readline()) and "API" not in line:
                pass
            port = int(line.partition("/v2")[0].rpartition(":")[2])
            load([port], singles(collection, 400, 0), CONNECTIONS)
            yield port, process.pid
            process.terminate()


def worker_rows(server: Any, n: int, turns: int) -> list[dict[str, Any]]:
    """One worker and two on one host, with a file and with a database."""
    rows, collection = [], toys.one_question(16)
    for kind in ("SQLite", "PostgreSQL"):
        rates: dict[int, list[float]] = {1: [], 2: []}
        spent: dict[int, list[float]] = {1: [], 2: []}
        for turn in range(1, turns + 1):
            for number in (1, 2):
                with tempfile.TemporaryDirectory() as folder:
                    file = str(Path(folder) / "store.db")
                    store = file if kind == "SQLite" else server.database()
                    with served(collection, store, number) as (port, pid):
                        before = family(pid)
                        requests = singles(collection, n, turn)
                        rates[number].append(load([port], requests, CONNECTIONS))
                        spent[number].append((family(pid) - before) / n)
        ratio = median(b / a for a, b in zip(rates[1], rates[2], strict=True))
        for number in (1, 2):
            row = {"what": f"workers, {kind}", "workers": number}
            row |= {
                "per_second": median(rates[number]),
                "collector_us": 1e6 * median(spent[number]),
            }
            rows.append({**row, "of_one": ratio if number == 2 else 1.0})
    return rows


NGINX = """
daemon off; worker_processes 1; pid {folder}/pid; error_log stderr crit;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    upstream deniable {{ server 127.0.0.1:{upstream}; keepalive 32; keepalive_timeout 20s; }}
    server {{
        listen 127.0.0.1:{port} ssl;
        ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;
        proxy_http_version 1.1; proxy_set_header Connection "";
        proxy_set_header X-Forwarded-Proto https;
        location / {{ proxy_pass http://deniable; }}
    }}
}}
"""


def proxy_rows(n: int) -> list[dict[str, Any]]:
    """CPU of nginx for each submission: with a handshake for each, as of browsers, and without."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        print("nginx is not installed: the proxy was not measured", file=sys.stderr)
        return []
    collection, rows = toys.one_question(16), []
    with tempfile.TemporaryDirectory() as name, ExitStack() as held:
        folder = Path(name)
        certify(folder)
        store = str(folder / "store.db")
        open_store(store, collection).close()
        running = held.enter_context(collectors.Collector(store))
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        text = NGINX.format(folder=folder, upstream=running.port, port=port)
        (folder / "nginx.conf").write_text(text)
        command = [program, "-p", name, "-e", "stderr", "-c", str(folder / "nginx.conf")]
        process = held.enter_context(subprocess.Popen(command))
        held.callback(process.terminate)
        time.sleep(1)
        for what, each in (("a handshake each", 1), ("100 on each connection", 100)):
            requests = singles(collection, n, each)
            before = family(process.pid)
            for start in range(0, n, each):
                encrypted(port, requests[start : start + each])
            row = {"what": f"nginx, TLS 1.3, P-256, {what}"}
            rows.append({**row, "proxy_us": 1e6 * (family(process.pid) - before) / n})
    return rows


def certify(folder: Path) -> None:
    """A key and a certificate of its own."""
    subject = ["-subj", "/CN=localhost", "-days", "2", "-nodes", "-x509"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout"]
    command = ["openssl", "req", *subject, *key, str(folder / "key.pem")]
    command += ["-out", str(folder / "cert.pem")]
    subprocess.run(command, check=True, capture_output=True)


def encrypted(port: int, requests: Sequence[bytes]) -> None:
    """Send requests one after the other on one connection over TLS."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", port), timeout=30) as plain,
        context.wrap_socket(plain) as connection,
    ):
        for request in requests:
            connection.sendall(request)
            answer = connection.recv(1 << 16)
            while not answer.endswith(b"}"):
                answer += connection.recv(1 << 16)
            if not answer.startswith(b"HTTP/1.1 201"):
                raise RuntimeError(answer[:200])


def family(pid: int) -> float:
    """Seconds of a process and of its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return cpu(pid) + sum(cpu(int(child)) for child in children)


def verified(machine: Machine) -> None:
    """Nothing that is fast and wrong is reported."""
    store = open_store(machine.server.address)
    if found := store.verify():
        raise RuntimeError("; ".join(found))
    store.close()


def kill_row(server: Any, kills: int) -> dict[str, Any]:
    """Kills of collectors and of the database, amid clients that go on at another collector."""
    world = several.Several.of(server, 1, size=60_000)
    rng, found = random.Random(1), Counter[str]()
    try:
        for _ in range(kills // 10 + 1):
            with world.load():
                for _ in range(10):
                    world.wait_for(rng.randrange(1, 80))
                    name = rng.choice(["kill_one", "kill_one", "crash_database"])
                    getattr(world, name)()
                    found[name] += 1
            world.check()
            for one in world.all:
                one.start()
    finally:
        world.stop()
    row = {"what": "3 collectors", **found, "sent": len(world.sent)}
    return {**row, "acknowledged": len(world.acknowledged), "lost": 0, "doubled": 0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("out/several"))
    parser.add_argument("--singles", type=int, default=4_000, help="submissions in each turn")
    parser.add_argument("--turns", type=int, default=7, help="turns of single submissions")
    parser.add_argument("--connections", type=int, default=CONNECTIONS, help="of single ones")
    parser.add_argument("--reports", type=int, default=20_000_000, help="reports in batches")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the table that grows")
    parser.add_argument("--kills", type=int, default=0, help="only disasters, so many")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    place = postgres.programs()
    if place is None:
        raise SystemExit("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    server = postgres.Postgres(place)
    result: dict[str, Any] = {"load_before": os.getloadavg()[0]}
    try:
        if chosen.kills:
            parts = {"kills": [kill_row(server, chosen.kills)]}
        else:
            parts = {
                "singles": single_rows(server, chosen.singles, chosen.turns, chosen.connections),
                "workers": worker_rows(server, chosen.singles, max(2, chosen.turns // 2)),
                "batches": batch_rows(server, chosen.reports),
                "growth": growth_rows(server, chosen.rows),
                "proxy": proxy_rows(chosen.singles),
            }
    finally:
        server.remove()
    for name, rows in parts.items():
        if rows:
            show(rows, Format.table, name)
    result |= {**parts, "load_after": os.getloadavg()[0]}
    name = "several-kills.json" if chosen.kills else "several.json"
    (chosen.out / name).write_text(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
