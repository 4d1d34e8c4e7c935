"""Sets of answers beside subset selection for single ones, in the same run.

    python benchmarks/choices.py --out out/choices

Of 64 answers people tick as many as they may. Times are client plus aggregation of encoded answers,
on one thread, the best of some runs. Writes a JSON file.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import deniable as dn
from deniable.cli.bench import best_time
from deniable.mechanisms import Mechanism
from deniable.randomness import draw_key
from deniable.views.formats import Format
from deniable.views.tables import show

K = 64
N = 1_000_000
EPSILONS = (0.5, 1.0, 2.0, 4.0)
#: At most so many times as long as subset selection.
TARGET = 2.0


def nanoseconds(m: Mechanism, values: NDArray[Any]) -> float:
    """What a report takes, client and aggregation."""

    def work() -> None:
        m.count(m.randomise(values, draw_key(None), 1))

    work()  # compiles, too
    return best_time(work) / len(values) * 1e9


def ticked(domain: dn.Items, n: int) -> NDArray[Any]:
    """Encoded sets of as many answers as may be ticked."""
    rng = np.random.default_rng(1)
    places = np.sort(np.argsort(rng.random((n, K)), axis=1)[:, : domain.at_most], axis=1)
    return places.astype(domain.dtype[0]).view(domain.dtype).reshape(n)


def rows(n: int) -> Iterator[dict[str, Any]]:
    for epsilon in EPSILONS:
        single = dn.SS(K, epsilon)
        values = np.random.default_rng(1).integers(0, K, n).astype(np.uint32)
        base = nanoseconds(single, values)
        for at_most in (3, 5):
            domain = dn.Items(K, at_most)
            for m in (dn.SetSelect(domain, epsilon), dn.JointBits(domain, epsilon)):
                found = nanoseconds(m, ticked(domain, n))
                yield {
                    "mechanism": m.name,
                    "epsilon": epsilon,
                    "at most": at_most,
                    "w": m.w,
                    "ns per report": round(found, 1),
                    "ns of ss": round(base, 1),
                    "times": round(found / base, 2),
                    "met": m.name != "setselect" or found <= TARGET * base,
                }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("out/choices"))
    parser.add_argument("-n", type=int, default=N)
    given = parser.parse_args()
    found = list(rows(given.n))
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "choices.json").write_text(json.dumps(found, indent=1) + "\n")
    show(found, Format.table, "Sets of answers beside subset selection, 64 answers")


if __name__ == "__main__":
    main()
