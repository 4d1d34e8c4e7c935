"""Longitudinal mechanisms against multi-freq-ldpy's: noise and speed, in one run.

    python benchmarks/longitudinal.py --out out/longitudinal

Both promise the same pair (epsilon_inf, epsilon_1). The peer's functions are run, their reports
compared with the channel that the published calibration gives (``p_value``), and then the exact
numbers of that channel stand for the peer: what it really spends on a first report and n times the
variance of a frequency at f = 0. Ours are beside it, once for the same promise (``var``) and once
for the epsilon_1 that the peer really spends (``equal_var``). Speed is that of one core, client and
aggregation.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

import deniable as dn
from deniable.cli.bench import best_time, times
from deniable.randomness import Keystream
from deniable.views.formats import Format
from deniable.views.tables import show
from foundation import N, peer_times
from peers import Peer, chain_peer

NAMES = ("lgrr", "lsue", "loue", "lsoue", "losue", "lblh", "lolh")
#: (k, epsilon_inf, epsilon_1)
SETTINGS = ((5, 2.0, 1.0), (100, 2.0, 1.0), (100, 4.0, 2.0))
PEER_REPORTS = 10_000
SPEED_TARGET = 100


def published(name: str, k: int, epsilon_inf: float, epsilon_1: float, peer: Peer) -> Any:
    """The peer's channel: the published second step, and for L-OLH the peer's own g."""
    cells = {}
    if name == "lolh":
        cells["g"] = 1 + max(int(peer.client(0)[0]) for _ in range(2_000))
    family: Any = dn.mechanisms()[name]
    return family(k, epsilon_inf, epsilon_1, calibration="paper", **cells)


def agreement(m: Any, peer: Peer) -> float:
    """The p-value of how often the peer's reports of one value support it, if it is m's channel."""
    reports = [peer.client(1) for _ in range(PEER_REPORTS)]
    if isinstance(m, dn.LGRR):
        held = sum(int(report) == 1 for report in reports)
    elif isinstance(m, (dn.LBLH, dn.LOLH)):
        held = sum(_cell(1, seed, m.g) == int(cell) for cell, seed in reports)
    else:
        held = sum(int(report[1]) for report in reports)
    return float(binomtest(held, PEER_REPORTS, float(m.p)).pvalue)


def _cell(value: int, seed: int, g: int) -> int:
    import xxhash

    return int(xxhash.xxh32(str(value), seed=seed).intdigest() % g)


def noise_row(name: str, k: int, epsilon_inf: float, epsilon_1: float) -> dict[str, Any]:
    """Variances of the peer and of ours, for the same promise and for the same true privacy."""
    peer = chain_peer(name, k, epsilon_inf, epsilon_1)
    theirs = published(name, k, epsilon_inf, epsilon_1, peer)
    family: Any = dn.mechanisms()[name]
    ours, equal = family(k, epsilon_inf, epsilon_1), family(k, epsilon_inf, theirs.once.epsilon)
    variance, promised, true = (float(m.variance(1, 0.0)) for m in (theirs, ours, equal))
    return {
        "mechanism": name,
        "k": k,
        "promise": f"{epsilon_inf:g} / {epsilon_1:g}",
        "peer_spends": theirs.once.epsilon,
        "peer_var": variance,
        "var": promised,
        "ratio": variance / promised,
        "equal_var": true,
        "p_value": agreement(theirs, peer),
    }


def speed_row(name: str, k: int) -> dict[str, Any]:
    """Times of a first report, and of one more report by people who remember."""
    m: Any = dn.mechanism(name, k, 2.0, epsilon_1=1.0)
    client, server = times(m, N, 1)
    theirs = sum(peer_times(chain_peer(name, k, 2.0, 1.0), k))
    return {
        "mechanism": name,
        "k": k,
        "peer_us": round(theirs / 1e3, 2),
        "us": round((client + server) / 1e3, 4),
        "ratio": round(theirs / (client + server)),
        "target": SPEED_TARGET,
        "client_ns": round(client, 1),
        "instant_ns": round(instant_time(m), 1),
        "server_ns": round(server, 1),
    }


def instant_time(m: Any) -> float:
    """Nanoseconds of another report made from what is kept."""
    n, stream = N // 4, Keystream(bytes(32))
    values = np.random.default_rng(2).integers(0, m.domain.size, n, dtype=np.uint32)
    begun = m.begin_all(n, stream)
    kept = m.memoise_all(begun, m.keys_of(begun, values), stream)
    return best_time(lambda: m.instant_all(begun, kept, stream), 3, 0) / n * 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/longitudinal"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    noise = [noise_row(name, *setting) for name in NAMES for setting in SETTINGS]
    show(noise, Format.table, "n x variance of a frequency at f = 0, the same promise")
    speed = [speed_row(name, k) for name in NAMES for k in (16, 100)]
    show(speed, Format.table, f"microseconds a report, client + aggregation, one core, n = {N:,}")
    (out / "longitudinal.json").write_text(json.dumps({"noise": noise, "speed": speed}, indent=1))


if __name__ == "__main__":
    main()
