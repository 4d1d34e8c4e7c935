"""How large: time, memory and accuracy for up to a million answers to choose from.

    python benchmarks/scale.py --out out/scale

Frequencies with standard errors and intervals for every value, on all cores: k grows at n = 10**6,
n grows at k = 10**6. Every case is a process of its own, so that its peak memory is its own, too.
Sketches have the design that they suggest for n. O-RR collects any text and is asked about k texts
afterwards. Reports are made and counted in batches. Writes a JSON file and a chart; --quick stops
at 10**5.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import deniable as dn
from deniable.core.tally import Tally
from deniable.mechanisms.frequency import FrequencyOracle, find_oracle
from deniable.views import save
from deniable.views.formats import Format
from deniable.views.rows import growth_chart
from deniable.views.tables import show

EPSILON = 1.0
MECHANISMS = ("hr", "hrr", "hcms", "olh", "orr")
BATCH = 100_000
#: A step that took less is repeated: the best of three counts.
SHORT = 1.0
#: The columns of the two tables.
COSTS = ("mechanism", "n", "k", "client_s", "count_s", "decode_s", "peak_gb")
ERRORS = ("mechanism", "n", "k", "rmse", "predicted", "stated")


def cases(most: int) -> list[tuple[str, int, int]]:
    """(mechanism, n, k): every k at the largest n, every n at the largest k."""
    sizes = [10**j for j in range(3, 7) if 10**j <= most]
    shapes = [(most, k) for k in sizes] + [(n, most) for n in sizes[1:-1]]
    return [(name, n, k) for name in MECHANISMS for n, k in shapes]


def mechanism_for(name: str, n: int, k: int) -> FrequencyOracle:
    if name == "orr":
        return dn.ORR(dn.Text(), EPSILON, **dn.ORR.suggest(EPSILON, n))
    design = dn.HCMS.suggest(EPSILON, n) if name == "hcms" else {}
    return find_oracle(name)(k, EPSILON, **design)


def measure(name: str, n: int, k: int) -> dict[str, Any]:
    """One row: seconds of each step, peak memory, and errors beside their prediction."""
    warm_up(name, n, k)
    values = (k * np.random.default_rng(1).random(n) ** 3).astype(np.uint32)
    m = mechanism_for(name, n, k)
    client, server, tally = collect(m, answers(name, values))
    texts = answers(name, np.arange(k)) if name == "orr" else None
    decode, estimate = timed(lambda: decoded(tally, texts))
    truth = np.bincount(values, minlength=estimate.frequencies.size) / n
    closed = m if texts is None else dn.ORR(k, EPSILON, **dict(design_of(m), permuted=0))
    predicted = np.sqrt(np.mean(closed.variance(n, truth[:k])))
    return {
        "mechanism": name,
        "n": n,
        "k": k,
        "client_s": client,
        "count_s": server,
        "decode_s": decode,
        "seconds": client + server + decode,
        "peak_gb": peak(),
        "rmse": rms((estimate.frequencies - truth)[:k]),
        "predicted": float(predicted),
        "stated": rms(estimate.standard_errors[:k]),
    }


def answers(name: str, values: NDArray[Any]) -> Any:
    return [f"text {v}" for v in values.tolist()] if name == "orr" else values


def design_of(m: dn.Mechanism) -> dict[str, int]:
    return {name: getattr(m, name) for name in m.design}


def collect(m: dn.Mechanism, values: Any) -> tuple[float, float, Tally]:
    """Seconds of making and of counting the reports, batch by batch, and the tally."""
    tally, client, server = m.tally(), 0.0, 0.0
    for start in range(0, len(values), BATCH):
        spent, reports = timed(partial(m.privatize, values[start : start + BATCH]))
        client += spent
        spent, counted = timed(partial(m.tally, reports))
        server += spent
        tally = tally.merge(counted)
    return client, server, tally


def decoded(tally: Tally, texts: list[str] | None) -> dn.Estimate:
    """Frequencies with errors; of any texts, where the answers were not listed in advance."""
    if texts is not None:
        assert isinstance(tally.mechanism, dn.ORR)
        tally = tally.among(texts)
    return tally.estimate("unbiased")


def warm_up(name: str, n: int, k: int) -> None:
    """Compile what is not compiled yet: for reports of this size, and the decoding of a few."""
    few = np.arange(1000) % 100
    collect(mechanism_for(name, n, k), answers(name, few))
    _, _, tally = collect(mechanism_for(name, 1000, 100), answers(name, few))
    decoded(tally, answers("orr", np.arange(100)) if name == "orr" else None)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what the work returned."""
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
        if best > SHORT:
            break
    return best, result


def rms(errors: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(errors**2)))


def peak() -> float:
    """The most memory that this process ever had, in GB."""
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+)", status)
    assert found is not None
    return int(found[1]) / 2**20


def run(name: str, n: int, k: int) -> dict[str, Any]:
    """`measure` in a process of its own."""
    command = [sys.executable, __file__, "--case", name, str(n), str(k)]
    row: dict[str, Any] = json.loads(subprocess.check_output(command, text=True))
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/scale"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--case", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        name, n, k = options.case
        print(json.dumps(measure(name, int(n), int(k))))
        return
    options.out.mkdir(parents=True, exist_ok=True)
    todo, rows = cases(10**5 if options.quick else 10**6), []
    for done, case in enumerate(todo, 1):
        print(f"{done}/{len(todo)}: {case[0]}, n = {case[1]:,}, k = {case[2]:,}", file=sys.stderr)
        rows.append(run(*case))
    costs, errors = ([{key: row[key] for key in keys} for row in rows] for keys in (COSTS, ERRORS))
    show(costs, Format.table, f"seconds and memory, epsilon = {EPSILON:g}, all cores")
    show(errors, Format.table, "root mean squared errors: found, predicted, stated")
    (options.out / "scale.json").write_text(json.dumps(rows, indent=2))
    named = [{**row, "mechanism": row["mechanism"].upper()} for row in rows]
    chart = growth_chart(named, "Every frequency with its standard error: privatise, count, decode")
    for end in (".html", ".png"):
        print(save(chart, options.out / f"scale{end}"))


if __name__ == "__main__":
    main()
