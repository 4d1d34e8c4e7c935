"""The core mechanisms against the other libraries and against the machine's limits, in one run.

    python benchmarks/foundation.py --out out/bench

Ours run at n = 10**6 with one thread and with all cores. The others need minutes for that, so they
run on as many values as fit into about a second; their time is proportional to n. Times are the
best of some runs. Writes a JSON file and a chart.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import deniable as dn
from deniable.cli.bench import Bounds, best_time, bounds, random_bytes, times
from deniable.kernels.columns import column_sums
from deniable.kernels.threads import thread_count
from deniable.views import save
from deniable.views.formats import Format
from deniable.views.rows import speed_chart
from deniable.views.tables import show
from peers import Peer, peers, sketch_peer

N = 1_000_000
EPSILON = 1.0
SIZES = (16, 128, 1024)
#: Client plus aggregation against the faster peer; HR's client only (its peer counts nothing).
TARGETS = {"oue": 100, "ss": 100, "olh": 100, "grr": 50, "hr": 50}
#: Sketches: (width, cohorts), the second near Apple's; the aim is for client and server alone, too.
SKETCHES = ((128, 64), (1024, 1024))
SKETCH_TARGET = 50
PEER_SECONDS = 1.0

STREAM = """
import re
import numpy as np
import deniable as dn
m = dn.GRR(100, epsilon=1.0)
tally = m.tally()
rng = np.random.default_rng(1)
for _ in range({chunks}):
    tally.add(m.privatize(rng.integers(0, 100, 1_000_000, dtype=np.uint8)))
status = open("/proc/self/status").read()
print(tally.n, int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) / 2**20)
"""


def peer_times(peer: Peer, k: int) -> tuple[float, float]:
    """Nanoseconds a report of a peer: (client, aggregation)."""
    values = np.random.default_rng(1).integers(0, k, N).tolist()
    peer.client(values[0])
    once = best_time(lambda: [peer.client(v) for v in values[:20]], 3, 0)
    count = int(max(50, min(N, PEER_SECONDS / 3 * 20 / once)))
    reports = [peer.client(v) for v in values[:count]]
    client = best_time(lambda: [peer.client(v) for v in values[:count]], 3, 0) / count
    if peer.aggregate is None:
        return client * 1e9, 0.0
    aggregate = peer.aggregate
    once = best_time(lambda: aggregate(reports[:50]), 1, 0)
    count = int(max(50, min(count, PEER_SECONDS / 3 * 50 / once)))
    return client * 1e9, best_time(lambda: aggregate(reports[:count]), 3, 0) / count * 1e9


def compare(name: str, k: int) -> list[dict[str, Any]]:
    """Ours beside each peer, for one mechanism and size."""
    m = dn.mechanism(name, k, EPSILON)
    counted = name != "hr"
    ours = {t: times(m, N, t) for t in (1, thread_count(None))}
    one, many = (sum(spent) if counted else spent[0] for spent in ours.values())
    rows = []
    for peer in peers(name, k, EPSILON):
        client, server = peer_times(peer, k)
        theirs = client + server
        rows.append(
            {
                "mechanism": name,
                "k": k,
                "peer": peer.library,
                "peer_us": round(theirs / 1e3, 3),
                "us": round(one / 1e3, 4),
                "ratio": round(theirs / one),
                "all_cores": round(theirs / many),
                "target": TARGETS[name],
            }
        )
    return rows


def compare_sketch(name: str, width: int, cohorts: int) -> list[dict[str, Any]]:
    """Ours beside pure-ldp's sketch of the same size: client, server, and both."""
    m = dn.mechanism(name, 1000, EPSILON, width=width, cohorts=cohorts)
    one, many = (times(m, N, threads) for threads in (1, thread_count(None)))
    theirs = peer_times(sketch_peer(name, width, cohorts, EPSILON), 1000)
    steps = {"client": lambda spent: spent[0], "server": lambda spent: spent[1], "both": sum}
    rows = []
    for step, part in steps.items():
        peer, ours, all_cores = (part(spent) for spent in (theirs, one, many))
        rows.append(
            {
                "mechanism": name,
                "sketch": f"{width} x {cohorts}",
                "step": step,
                "peer": "pure-ldp",
                "peer_us": round(peer / 1e3, 3),
                "us": round(ours / 1e3, 4),
                "ratio": round(peer / ours),
                "all_cores": round(peer / all_cores),
                "target": SKETCH_TARGET,
            }
        )
    return rows


def limit_rows(limits: Bounds) -> list[dict[str, Any]]:
    """How near the kernels come to what one core can do."""
    rows = []

    def add(what: str, found: float, unit: str, bound: float, target: float) -> None:
        row = {"what": what, "found": found, "unit": unit, "bound": bound}
        rows.append({**row, "of_bound": found / bound, "target": target})

    for k in SIZES:
        unary = dn.OUE(k, EPSILON)
        client, _ = times(unary, N, 1)
        rate = random_bytes(unary) / client
        add(f"OUE client, k = {k}", rate, "GB/s of coins", limits.keystream, 0.5)
    for k in SIZES:
        words = np.random.default_rng(1).integers(0, 2**64, 16_000_000, dtype=np.uint64)
        rate = words.nbytes / best_time(partial(column_sums, words, k)) / 1e9
        add(f"column sums, k = {k}", rate, "GB/s", limits.memcpy, 0.7)
    for k in SIZES[1:]:
        _, server = times(dn.OLH(k, EPSILON), N, 1)
        add(f"OLH aggregation, k = {k}", k / server, "Ghash/s", 3.0, 1.0)
    for name in TARGETS:
        m = dn.mechanism(name, 128, EPSILON)
        one, two = (sum(times(m, 4 * N, t)) for t in (1, 2))
        add(f"{name} on two threads, k = 128", one / two, "x one thread", 2.0, 0.75)
    return rows


def stream_row() -> dict[str, Any]:
    """Peak memory of a process that privatises and counts 10**8 reports chunk by chunk."""
    script = STREAM.format(chunks=100)
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    n, gigabytes = result.stdout.split()
    return {"what": "GRR stream", "n": int(n), "peak_gb": float(gigabytes), "target": 1.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    limits = bounds()
    print(f"one core: keystream {limits.keystream:.1f} GB/s, memory copy {limits.memcpy:.1f} GB/s")
    against_peers = [row for name in TARGETS for k in SIZES for row in compare(name, k)]
    title = f"microseconds a report, n = 10^6, epsilon = {EPSILON:g}"
    show(against_peers, Format.table, f"client + aggregation (HR: client), {title}")
    sketches = [
        row for name in ("cms", "hcms") for size in SKETCHES for row in compare_sketch(name, *size)
    ]
    show(sketches, Format.table, f"sketches, width x cohorts, {title}")
    against_limits = limit_rows(limits)
    show(against_limits, Format.table, "against the machine")
    stream = stream_row()
    show([stream], Format.table, "memory")
    result = {
        "machine": {"cpu": platform.processor() or platform.machine(), **vars(limits)},
        "peers": against_peers,
        "sketches": sketches,
        "limits": against_limits,
        "stream": stream,
    }
    (out / "foundation.json").write_text(json.dumps(result, indent=2))
    both = [{**row, "k": row["sketch"]} for row in sketches if row["step"] == "both"]
    chart = speed_chart(
        [*against_peers, *both], "Times faster than other libraries (n = 10^6, epsilon = 1)"
    )
    for end in (".html", ".png"):
        print(save(chart, out / f"foundation{end}"))


if __name__ == "__main__":
    main()
