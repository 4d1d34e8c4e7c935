"""Figure 3: O-RR and O-RAPPOR on any text and on listed values, over a grid of their designs.

Decoded as the paper does: least squares for equation 18 (of least norm where values cannot be told
apart), then the projection onto the simplex. Losses are against the distribution that respondents
are drawn from, as the paper's baseline is the loss of their own sample.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.estimation.frequencies.regression.normal import indicators
from deniable.estimation.frequencies.simplex import project
from deniable.mechanisms import GRR, ORAPPOR, ORR, SUE
from deniable.mechanisms.cohorts.base import CohortMechanism
from deniable_papers.cells import Settings, Values
from deniable_papers.kairouz.grids import distribution

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


def simulate(settings: Settings, rng: np.random.Generator) -> Values:
    """l1 losses of some samples, for each epsilon; every sample has hash functions of its own."""
    sample = _cohort_losses if settings["mechanism"] in ("O-RR", "O-RAPPOR") else _plain_losses
    p = distribution("geometric", settings["S"], rng)
    runs = [sample(settings, p, rng) for _ in range(settings["samples"])]
    return {"losses": [[float(f"{loss:.6g}") for loss in row] for row in zip(*runs, strict=True)]}


def _plain_losses(settings: Settings, p: Floats, rng: np.random.Generator) -> list[float]:
    """k-RR or k-RAPPOR with one cell a value."""
    family = GRR if settings["mechanism"] == "k-RR" else SUE
    losses = []
    for epsilon in settings["epsilons"]:
        m, n = family(p.size, epsilon), settings["n"]
        counts = m.simulate(rng.multinomial(n, p), rng)
        losses.append(float(np.abs(project(m.unbiased(counts, n)) - p).sum()))
    return losses


def _cohort_losses(settings: Settings, p: Floats, rng: np.random.Generator) -> list[float]:
    n, seed = settings["n"], int(rng.integers(1 << 32))
    designs = [design(settings, epsilon, seed) for epsilon in settings["epsilons"]]
    hashed, cohorts = designs[0], designs[0].cohorts
    columns = indicators(hashed, np.arange(cohorts), np.arange(p.size))
    sizes = rng.multinomial(n, np.full(cohorts, 1 / cohorts))
    held = held_cells(columns, rng.multinomial(sizes, p), hashed.width)
    tables = [cell_counts(m, held, sizes, rng) for m in designs]
    decoded = decode(designs, columns, tables, n)
    return [float(np.abs(f - p).sum()) for f in decoded]


def design(settings: Settings, epsilon: float, seed: int) -> CohortMechanism:
    """The mechanism of a cell; listed values are dealt out by permutations (section 5.4)."""
    chosen: dict[str, Any] = {name: settings[name] for name in ("cohorts", "width")}
    chosen |= {"seed": seed, "permuted": int(settings["alphabet"] == "closed")}
    if settings["mechanism"] == "O-RR":
        return ORR(settings["S"], epsilon, **chosen)
    return ORAPPOR(settings["S"], epsilon, hashes=settings["hashes"], **chosen)


def held_cells(columns: Any, people: Counts, width: int) -> Counts:
    """How many people of each cohort set each cell, from how many have each value."""
    cells = columns.tocoo()
    weights = people[cells.row // width, cells.col]
    found = np.bincount(cells.row, weights=weights, minlength=len(people) * width)
    return found.astype(np.int64).reshape(len(people), width)


def cell_counts(
    m: CohortMechanism, held: Counts, sizes: Counts, rng: np.random.Generator
) -> Counts:
    """How many reports of each cohort support each cell: the law of `Mechanism.tally`.

    Bits are coins of their own: Bin(held, p) + Bin(the others, q); indices are drawn by k-RR.
    """
    if m.inner.direct:
        return np.array([m.inner.simulate(row, rng) for row in held])
    own = rng.binomial(held, float(m.inner.p))
    return own + rng.binomial(sizes[:, None] - held, float(m.inner.q))


def decode(
    designs: list[CohortMechanism], columns: Any, tables: list[Counts], n: int
) -> list[Floats]:
    """Equation 18, H p = (C c / n - q) / (p - q), and the projection, for designs of one hashing.

    The least-norm solution of H x = b is that of the normal equations H'H x = H'b.
    """
    sides = [
        (m.cohorts * counts.reshape(-1) / n - float(m.inner.q)) / float(m.inner.p - m.inner.q)
        for m, counts in zip(designs, tables, strict=True)
    ]
    gram = (columns.T @ columns).toarray()
    solved = np.linalg.lstsq(gram, columns.T @ np.stack(sides, axis=1), rcond=1e-10)[0]
    return [project(x) for x in solved.T]
