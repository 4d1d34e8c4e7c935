"""Attacks on a collector's memory and time, straight at its port and at full size.

    python benchmarks/attacks_http.py --out out/floods

Bars: no attack may raise the memory by more than 100 MB, or delay the submission of somebody else
by more than a second. Needs the repository: the attacks are those of tests/support/floods.py.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from deniable.collection.manifest import Collection
from deniable.service.store import open_store
from deniable.views.formats import Format
from deniable.views.tables import show

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import collection_toys as toys  # type: ignore[import-not-found]
import collectors  # type: ignore[import-not-found]
import floods  # type: ignore[import-not-found]

GROWTH_MB, SLOWEST_S = 100, 1.0
#: As `deniable serve` has it: places for requests, and some connections more.
PLACES = 1_050
MB = 1_000_000
ATTACKS = {
    "trailers, lines": floods.trailers(10, 6 * MB),
    "trailers, one line": floods.trailers(10, 6 * MB, lines=False),
    "pipelined requests": floods.pipelines(60, MB // 4),
    "manifest not read": floods.deaf(1_500, 5),
    "heads of 62 kB": floods.heads(1_500, 62_000, 5),
    "paths of 62 kB": floods.wide_paths(1_500, 62_000, 5),
    "bodies in crumbs": floods.crumbs(1_000, 10),
    "slow bodies": floods.slow_bodies(1_500, 15),
    "slow large bodies": floods.slow_bodies(1_500, 15, size=MB, first=MB // 10),
}


def bodies(collection: Collection, seed: int) -> Iterator[bytes]:
    rng = np.random.default_rng(seed)
    while True:
        yield toys.submission(collection, rng).to_json()


def row(name: str, collection: Collection, seed: int) -> dict[str, Any]:
    """One attack on a collector of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "store.db")
        open_store(path, collection).close()
        server = {"connections": PLACES}
        with collectors.Collector(path, server=server) as running:
            running.post(next(bodies(collection, seed + 1_000)))
            found = floods.suffered(running, ATTACKS[name], bodies(collection, seed))
    fits = found["growth_mb"] <= GROWTH_MB and found["slowest_s"] <= SLOWEST_S
    return {"attack": name, **found, "fits": fits}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("out/floods"))
    parser.add_argument("--only", help="one attack")
    parser.add_argument("--answers", type=int, default=60_000, help="of the large manifest")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    small, large = toys.survey(), toys.one_question(chosen.answers, stem="answer ")
    rows = []
    for seed, name in enumerate(ATTACKS):
        if chosen.only in (None, name):
            rows.append(row(name, large if name == "manifest not read" else small, seed))
            print(json.dumps(rows[-1]), flush=True)
    show(rows, Format.table, f"manifest not read: {len(large.manifest) / 1e6:.1f} MB")
    result = {"load": os.getloadavg()[0], "floods": rows}
    (chosen.out / "floods.json").write_text(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
