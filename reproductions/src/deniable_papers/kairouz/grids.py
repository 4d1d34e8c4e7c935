"""Which cells are simulated: the paper's settings, or a small part of them.

From the text: 10,000 runs and n of 100 and 30,000 (Figures 1-2), n = 10^6, S = 256 and 50 samples
(Figure 3), with the widths, cohorts and hash functions of its grid. Ours, because the text does not
say: k and epsilon of Figures 1-2, epsilon of Figure 3, and fewer runs where the text only says that
a result "holds" for other distributions and n. The paper searches its grid with all 50 samples and
reports the best; here one sample chooses four designs, some more samples choose one of these, and
50 fresh ones are reported.

Distributions (section 4.4) are over k values. The paper does not say how it cuts a geometric (mean
k / 5) or Zipf distribution off: here both are cut at k values, and are then normalised. A binomial
one has k - 1 trials. `READINGS` are geometric distributions with smaller means, k / 20 and k / 80,
which the paper does not have.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from deniable.arrays import Floats
from deniable.errors import InvalidArgument
from deniable.populations import binomial, dirichlet, geometric, zipf
from deniable_papers.cells import Settings

#: Respondents and values of Figure 3.
N, S = 1_000_000, 256
PARAMETERS = {"binomial": (0.1, 0.2, 0.3, 0.4, 0.5), "zipf": (0.5, 1.0, 2.0, 3.0, 4.0)}
NAMES = (
    "geometric",
    "dirichlet",
    *(f"{kind} {parameter:g}" for kind, some in PARAMETERS.items() for parameter in some),
)
READINGS = ("geometric 20", "geometric 80")


def distribution(name: str, k: int, rng: np.random.Generator) -> Floats:
    """One of `NAMES` or `READINGS`; only "dirichlet" is random, uniform over all distributions."""
    kind, _, parameter = name.partition(" ")
    if kind == "geometric":
        return geometric(k, k / (k + float(parameter or 5)))
    if kind == "dirichlet":
        return dirichlet(k, rng)
    if kind == "zipf":
        return zipf(k, float(parameter))
    if kind == "binomial":
        return binomial(k, float(parameter))
    raise InvalidArgument("distribution", name, f"one of {', '.join(NAMES)}")


@dataclass(frozen=True)
class Grid:
    """The axes of all experiments."""

    runs: int
    sizes: tuple[int, ...]
    epsilons: tuple[float, ...]
    other_runs: int
    other_n: tuple[int, ...]
    proposition_runs: int
    second_look: int
    samples: int
    open_epsilons: tuple[float, ...]
    widths: tuple[int, ...]
    cohorts: tuple[int, ...]
    hashes: tuple[int, ...]

    def figures(self) -> list[Settings]:
        """Figures 1 and 2."""
        panels = product(("geometric", "dirichlet"), (100, 30_000))
        return [
            {"kind": "closed", "distribution": d, "n": n, "k": k, "epsilon": e, "runs": self.runs}
            for (d, n), k, e in product(panels, self.sizes, self.epsilons)
        ]

    def others(self) -> list[Settings]:
        """Section 4.4.1: the decoders on other distributions and numbers of respondents."""
        axes = product(NAMES + READINGS, self.other_n, (16, 256), (1.0, 3.0, 5.0))
        runs = self.other_runs
        return [
            {"kind": "closed", "distribution": d, "n": n, "k": k, "epsilon": e, "runs": runs}
            for d, n, k, e in axes
        ]

    def propositions(self) -> list[Settings]:
        """Propositions 3 and 4; the last cell is that of section 4.1's remark on the norm."""
        axes = product(("k-RR", "k-RAPPOR"), ("geometric", "zipf 2", "zipf 4"), (4, 64), (1.0, 4.0))
        cells = [(m, d, k, 100_000, e) for m, d, k, e in axes]
        cells.append(("k-RR", "geometric", 20, 20_000, 0.5))
        names = ("mechanism", "distribution", "k", "n", "epsilon")
        rest = {"kind": "proposition", "runs": self.proposition_runs}
        return [{**dict(zip(names, cell, strict=True)), **rest} for cell in cells]

    def search(self) -> list[Settings]:
        """Figure 3: every design once. Permutations and Bloom filters do not go together."""
        alphabets = product(("open", "closed"), ("O-RR", "O-RAPPOR"))
        return [
            self.open_cell(alphabet, mechanism, c, w, h, self.open_epsilons, 1)
            for (alphabet, mechanism), c, w, h in product(
                alphabets, self.cohorts, self.widths, self.hashes
            )
            if h == 1 or (alphabet, mechanism) == ("open", "O-RAPPOR")
        ]

    def plain(self) -> list[Settings]:
        """Figure 3 (b): k-RR and k-RAPPOR."""
        shared = {"kind": "open", "n": N, "S": S, "alphabet": "closed", "samples": self.samples}
        epsilons = list(self.open_epsilons)
        return [
            {**shared, "mechanism": name, "epsilons": epsilons} for name in ("k-RR", "k-RAPPOR")
        ]

    @staticmethod
    def open_cell(
        alphabet: str,
        mechanism: str,
        cohorts: int,
        width: int,
        hashes: int,
        epsilons: tuple[float, ...],
        samples: int,
    ) -> Settings:
        """A design of Figure 3 at some epsilons."""
        design = {"cohorts": cohorts, "width": width, "hashes": hashes}
        drawn = {"n": N, "S": S, "epsilons": list(epsilons), "samples": samples}
        return {"kind": "open", "alphabet": alphabet, "mechanism": mechanism, **design, **drawn}


QUICK = Grid(
    runs=200,
    sizes=(4, 16, 64, 256),
    epsilons=(1.0, 3.0, 5.0),
    other_runs=30,
    other_n=(100, 100_000),
    proposition_runs=1000,
    second_look=3,
    samples=10,
    open_epsilons=(1.0, 3.0, 5.0),
    widths=(4, 16, 64, 256, 1024),
    cohorts=(1, 2, 16, 128),
    hashes=(1, 4),
)
FULL = Grid(
    runs=10_000,
    sizes=tuple(1 << j for j in range(1, 10)),
    epsilons=(1.0, 2.0, 3.0, 4.0, 5.0, 6.0),
    other_runs=300,
    other_n=(30, 1000, 30_000, 1_000_000),
    proposition_runs=10_000,
    second_look=10,
    samples=50,
    open_epsilons=(0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0),
    widths=tuple(1 << j for j in range(1, 13)),
    cohorts=tuple(1 << j for j in range(11)),
    hashes=(1, 2, 4, 8, 16),
)
