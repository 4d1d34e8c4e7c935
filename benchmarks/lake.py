"""Many files: time and memory of a tally of 10^9 reports, beside what PyArrow needs to read them.

    python benchmarks/lake.py --out out/lake

Writes Parquet files of GRR reports (k = 16) and OUE reports (k = 128), with different reports in
each, into a folder, and removes them in the end. Every run is a process of its own, so that its
peak memory is its own, too; all read files that the system has in its cache. Runs take turns, so
that all meet the same machine, and the best of them counts. Start-up is not counted. --quick has a
hundredth of the reports.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import deniable as dn
from deniable.core.mechanism import Mechanism
from deniable.core.reports import Reports
from deniable.views.formats import Format
from deniable.views.tables import show

#: By name: the mechanism, and the reports of all files.
LAKES = {"GRR, k = 16": (dn.GRR(16, 1.0), 10**9), "OUE, k = 128": (dn.OUE(128, 1.0), 10**8)}
FILES = 10
#: Reports that are made at once.
MADE = 10**6
TURNS = 5
COLUMNS = ("reports", "n", "what", "seconds", "ns_per_report", "peak_mb")


def write(m: Mechanism, n: int, folder: Path) -> None:
    """n reports in some files, as `Reports.to_parquet` writes them."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(19)
    for number in range(FILES):
        path, schema = folder / f"part-{number}.parquet", Reports.of(m, []).to_arrow().schema
        with pq.ParquetWriter(path, schema, compression="none") as file:
            for start in range(0, n // FILES, MADE):
                size = min(MADE, n // FILES - start)
                answers = rng.integers(0, m.domain.size, size, dtype=np.uint8)
                file.write_table(m.privatize(answers, rng).to_arrow())


def read_alone(paths: list[str]) -> int:
    """What PyArrow alone takes to read the same column."""
    batches = ds.dataset(paths).scanner(columns=["report"]).to_batches()
    return sum(batch.num_rows for batch in batches)


def tally(paths: list[str]) -> int:
    return dn.tally_files(paths)[()].n


def likelihood(paths: list[str]) -> int:
    return dn.report_files(paths).estimate("likelihood").n


WORK: dict[str, Callable[[list[str]], int]] = {
    "PyArrow reads": read_alone,
    "tally": tally,
    "likelihood": likelihood,
}


def measure(what: str, paths: list[str]) -> dict[str, float]:
    """One run in this process."""
    WORK[what](paths[:1])  # loads and compiles everything, and fills the cache
    start = time.perf_counter()
    n = WORK[what](paths)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"n": n, "seconds": seconds, "peak_mb": peak}


def apart(what: str, paths: list[str]) -> dict[str, float]:
    """One run in a process of its own."""
    command = [sys.executable, __file__, "--measure", what, *paths]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


def rows(name: str, folder: Path) -> list[dict[str, Any]]:
    """All files and a tenth of them, by PyArrow and by us, in turns."""
    paths = [str(path) for path in sorted(folder.iterdir())]
    cases = [("PyArrow reads", paths), ("tally", paths), ("tally", paths[: FILES // 10])]
    best: dict[int, dict[str, float]] = {}
    for _ in range(TURNS):
        for number, case in enumerate(cases):
            found = apart(*case)
            known = best.setdefault(number, found)
            known["seconds"] = min(known["seconds"], found["seconds"])
            known["peak_mb"] = max(known["peak_mb"], found["peak_mb"])
    return [row(name, what, best[number]) for number, (what, _) in enumerate(cases)]


def row(name: str, what: str, found: dict[str, float]) -> dict[str, Any]:
    each = 1e9 * found["seconds"] / found["n"]
    return {"reports": name, "what": what, **found, "ns_per_report": each}


def ratios(found: list[dict[str, Any]]) -> dict[str, float]:
    """What is promised of one lake."""
    alone, all_, tenth = (one["ns_per_report"] for one in found[:3])
    return {
        "time per report, all to a tenth (at most 1.15)": all_ / tenth,
        "rate, of what PyArrow alone reads (at least 0.7)": alone / all_,
        "peak memory in MB (at most 1024)": max(one["peak_mb"] for one in found[1:]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/lake"))
    parser.add_argument("--folder", type=Path, help="where the files go (default: below --out)")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.measure[0], given.measure[1:])))
        return
    given.out.mkdir(parents=True, exist_ok=True)
    folder = (given.folder or given.out) / "files"
    table, promised = [], {}
    for name, (m, n) in LAKES.items():
        try:
            write(m, n // 100 if given.quick else n, folder)
            found = rows(name, folder)
            if not m.direct:  # the likelihood of direct reports is that of their counts
                paths = [str(path) for path in sorted(folder.iterdir())]
                found.append(row(name, "likelihood", apart("likelihood", paths)))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        table += found
        promised[name] = ratios(found)
        show([{key: one[key] for key in COLUMNS} for one in found], Format.table)
        for words, ratio in promised[name].items():
            print(f"{name}: {words}: {ratio:.2f}", flush=True)
    (given.out / "lake.json").write_text(
        json.dumps({"rows": table, "promised": promised}, indent=1)
    )


if __name__ == "__main__":
    main()
