"""Decoders against another library and against their own limits: speed and accuracy side by side.

    python benchmarks/estimation.py --out out/estimation

IBU: time and distance from the maximum of the same likelihood, for multi-freq-ldpy's iteration at
its default settings and for the closed form. Exact likelihood: passes over the reports, time,
certificate and memory on one core (`make bench` keeps BLAS to one core, too).
"""

from __future__ import annotations

import argparse
import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np

import deniable as dn
from deniable.cli.bench import best_time
from deniable.estimation.frequencies.ibu import water_filling
from deniable.estimation.frequencies.mle.likelihood import Maximum, maximise
from deniable.views.formats import Format
from deniable.views.tables import show

N = 100_000


def ibu_row(k: int, epsilon: float) -> dict[str, Any]:
    """The peer's iteration and the closed form on the same reports of GRR."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_IBU

    m = dn.GRR(k, epsilon)
    values = np.minimum(np.random.default_rng(1).geometric(5 / k, N) - 1, k - 1)
    reports = m.privatize(values, np.random.default_rng(2)).data.astype(np.int64)
    counts = np.bincount(reports, minlength=k)
    p, q = float(m.p), float(m.q)

    def peer() -> Any:
        return GRR_Aggregator_IBU(reports, k, epsilon)

    def ours() -> Any:
        return water_filling(np.bincount(reports, minlength=k), p, q)

    theirs = peer()  # compiles, too
    slow, fast = best_time(peer, 1, 0), best_time(ours)
    return {
        "k": k,
        "epsilon": epsilon,
        "theirs_ms": slow * 1e3,
        "ours_ms": fast * 1e3,
        "ratio": slow / fast,
        "their_gap": gap(theirs, counts, p, q),
        "our_gap": gap(ours(), counts, p, q),
        "difference": float(np.abs(ours() - theirs).max()),
    }


def gap(f: Any, counts: Any, p: float, q: float) -> float:
    """How far the log-likelihood of a report is from its maximum at most."""
    gradient = (p - q) * counts / (q + (p - q) * np.asarray(f))
    return float((gradient.max() - gradient @ f) / counts.sum())


def likelihood_row(name: str, k: int, epsilon: float) -> dict[str, Any]:
    """The exact maximum of a million reports on one core."""
    m = dn.mechanism(name, k, epsilon)
    values = np.minimum(np.random.default_rng(1).geometric(0.1, 10 * N) - 1, k - 1)
    reports = m.privatize(values, np.random.default_rng(2))

    def work() -> Maximum:
        return maximise([reports], threads=1)

    found = work()  # compiles, too
    spent = best_time(work, 2, 0)
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "mechanism": name,
        "k": k,
        "epsilon": epsilon,
        "seconds": spent,
        "passes": found.passes,
        "certificate": found.certificate,
        "reports_mb": reports.data.nbytes / 1e6,
        "more_mb": peak / 1e6,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/estimation"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    results = {
        "ibu": [ibu_row(k, epsilon) for k in (10, 100, 1000) for epsilon in (1.0, 4.0)],
        "likelihood": [
            likelihood_row(name, 128, epsilon)
            for name in ("sue", "oue", "ss", "olh", "hr")
            for epsilon in (1.0, 4.0)
        ],
    }
    (options.out / "estimation.json").write_text(json.dumps(results, indent=2))
    show(results["ibu"], Format.table, f"IBU, GRR, n = {N:,}: multi-freq-ldpy 0.2.5 and the limit")
    show(results["likelihood"], Format.table, f"exact likelihood, n = {10 * N:,}, one core")


if __name__ == "__main__":
    main()
