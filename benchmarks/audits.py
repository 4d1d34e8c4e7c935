"""How often planted bugs are caught, and what the audit says about other libraries.

    python benchmarks/audits.py --out out/audits

writes ``power.md`` and ``peers.md``, the tables of docs/audit.md.
"""

from __future__ import annotations

import argparse
import random
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from deniable.audit.black_box.empirical import audit, audit_devices, audit_mechanism
from deniable.audit.black_box.findings import Audit
from deniable.audit.black_box.peers import LIBRARIES, peers
from deniable.mechanisms import LOSUE, OUE
from deniable.randomness import SCALE, ByteCoins

K, VALUES = 16, [0, 1, 8, 15]
RUNS = 20
Attempt = Callable[[int, np.random.Generator], Audit]


def row(value: int, rng: np.random.Generator, zero: float, k: int = K) -> Any:
    """Unary encoding that keeps a one with probability 1 / 2."""
    bits = rng.random(k) < zero
    bits[value] = rng.random() < 0.5
    return bits.astype(np.uint8)


def last_bit(n: int, rng: np.random.Generator) -> Audit:
    def report(value: int) -> Any:
        bits = row(value, rng, 1 / (1 + np.e))
        bits[-1] = value == K - 1
        return bits

    return audit(report, VALUES, 1.0, n=n, rng=rng)


def redrawn(reports: int) -> Attempt:
    m = LOSUE(8, 2.0, 1.0)

    def attempt(n: int, rng: np.random.Generator) -> Audit:
        def device(value: int) -> Any:
            return m.report(value, ByteCoins(rng.bytes(8 * m.coin_words)))

        return audit_devices(lambda: device, [0, 7], 2.0, reports, n=n, rng=rng)

    return attempt


class SevenBits(OUE):
    """The probability of a one that lies is rounded to 7 bits."""

    def randomise(
        self, indices: Any, key: bytes, threads: int | None = None, *, stream: int = 0
    ) -> Any:
        rng, unit = np.random.default_rng(list(key)), SCALE >> 7
        rows = rng.random((len(indices), self.domain.size)) < round(self.zero / unit) / 128
        rows[np.arange(len(indices)), indices] = rng.random(len(indices)) < 0.5
        return np.packbits(rows, axis=1, bitorder="little")


def seven_bits(epsilon: float) -> Attempt:
    return lambda n, rng: audit_mechanism(SevenBits(K, epsilon), VALUES, n=n, rng=rng)


def swapped(n: int, rng: np.random.Generator) -> Audit:
    p = np.e / (np.e + K - 1)
    others = {value: [v for v in range(K) if v != value] for value in range(K)}

    def report(value: int) -> int:
        return others[value][rng.integers(K - 1)] if rng.random() < p else value

    return audit(report, VALUES, 1.0, n=n, rng=rng)


def weak_seed(n: int, rng: np.random.Generator) -> Audit:
    def report(value: int) -> Any:
        return row(value, np.random.default_rng(int(rng.integers(1 << 16))), 1 / (1 + np.e), 64)

    return audit(report, [0, 63], 1.0, n=n, rng=rng)


def length(n: int, rng: np.random.Generator) -> Audit:
    """One report in twenty of answer 0 is a byte longer; the others never are."""

    def report(value: int) -> bytes:
        longer = value == 0 and rng.random() < 0.05
        return np.packbits(row(value, rng, 1 / (1 + np.e))).tobytes() + bytes(longer)

    return audit(report, VALUES, 1.0, n=n, rng=rng)


def honest(n: int, rng: np.random.Generator) -> Audit:
    return audit_mechanism(OUE(K, 1.0), VALUES, n=n, rng=rng)


BUGS: dict[str, tuple[Attempt, tuple[int, ...]]] = {
    "last bit without noise": (last_bit, (100, 1_000)),
    "permanent layer redrawn, 5 reports": (redrawn(5), (1_000, 5_000)),
    "permanent layer redrawn, 20 reports": (redrawn(20), (300, 1_000)),
    "7-bit probabilities, epsilon 4 (really 4.14)": (seven_bits(4.0), (100_000, 300_000)),
    "7-bit probabilities, epsilon 1 (really 1.017)": (seven_bits(1.0), (100_000, 1_000_000)),
    "p and q swapped in k-RR": (swapped, (100, 1_000)),
    "16-bit seed, 64 bits": (weak_seed, (100, 300, 1_000)),
    "length, 5 % of one answer": (length, (1_000, 5_000)),
    "none (OUE)": (honest, (1_000, 10_000)),
}


def power() -> Iterator[str]:
    yield "| bug | n | caught | median epsilon >= |"
    yield "|---|---|---|---|"
    for name, (attempt, sizes) in BUGS.items():
        rng = np.random.default_rng(1)
        for n in sizes:
            runs = RUNS if n < 100_000 else RUNS // 4
            found = [attempt(n, rng) for _ in range(runs)]
            caught = sum(not one.ok for one in found)
            epsilon = float(np.median([one.epsilon for one in found]))
            yield f"| {name} | {n:,} | {caught} of {runs} | {epsilon:.2f} |"


def libraries(n: int) -> Iterator[str]:
    yield "| library | mechanism | reports | epsilon >= | promised | verdict |"
    yield "|---|---|---|---|---|---|"
    for library in LIBRARIES:
        for peer in peers(library, K, 1.0, VALUES):
            cases = [1] if peer.in_all is None else [1, 5]
            for reports in cases:
                found = peer.audit(VALUES, reports=reports, n=n)
                numbers = f"{found.epsilon:.3f} | {found.promised:.3g}"
                yield f"| {library} | {peer.name} | {reports} | {numbers} | {found.verdict} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/audits"))
    parser.add_argument("-n", type=int, default=10_000, help="reports of each value of a peer")
    parser.add_argument("--only", choices=["peers", "power"], help="one of the two tables")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    random.seed(1)  # pure-ldp draws from here and from NumPy's global generator
    np.random.seed(1)  # noqa: NPY002
    warnings.simplefilter("ignore", DeprecationWarning)
    tables = {"peers": libraries(arguments.n), "power": power()}
    for name in [arguments.only] if arguments.only else tables:
        with (arguments.out / f"{name}.md").open("w") as file:
            for line in tables[name]:
                print(line, flush=True)
                print(line, file=file, flush=True)


if __name__ == "__main__":
    main()
