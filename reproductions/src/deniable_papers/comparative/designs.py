"""The mechanisms with their settings and decoders: the paper's (as far as known), and correct ones.

The paper names five mechanisms and no parameters. What its tables show was found by trying settings
after the tables had been seen: one setting a column has to serve all attributes and epsilons.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.core.tally import Tally
from deniable.estimation.frequencies.evidence import Evidence
from deniable.estimation.frequencies.ibu import water_filling
from deniable.estimation.frequencies.methods import DEFAULT_METHOD, decode
from deniable.estimation.frequencies.simplex import clip_and_normalize
from deniable.mechanisms import CMS, GRR, HR, OUE, SS, SUE, UE
from deniable.mechanisms.frequency import FrequencyOracle
from deniable_papers.comparative.hadamard import PublicHadamard
from deniable_papers.comparative.published import MECHANISMS

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

#: Designs by name, made for d values, epsilon, and a seed of what is public and random.
DESIGNS: dict[str, Callable[[int, float, int], FrequencyOracle]] = {
    "GRR": lambda d, epsilon, seed: GRR(d, epsilon),
    "UE p=.75 q=.5": lambda d, epsilon, seed: UE(d, p=0.75, q=0.5),
    "SUE": lambda d, epsilon, seed: SUE(d, epsilon),
    "OUE": lambda d, epsilon, seed: OUE(d, epsilon),
    "CMS": lambda d, epsilon, seed: CMS(d, epsilon, seed=seed),
    "SS floor(d/2)": lambda d, epsilon, seed: SS(d, epsilon, omega=max(1, d // 2)),
    "SS": lambda d, epsilon, seed: SS(d, epsilon),
    "HR": lambda d, epsilon, seed: HR(d, epsilon, seed=seed),
}
PUBLIC_HR = "public HR"
#: The decoders of each design: "ml" (maximum likelihood), "clipped" (negatives become 0, nothing
#: else), "normalized" (and rescaled to sum 1), "default" (what this library does unless told).
DECODERS = {
    "GRR": ("ml", "normalized", "default"),
    "UE p=.75 q=.5": ("clipped",),
    "SUE": ("clipped", "normalized", "default"),
    "OUE": ("clipped", "normalized", "default"),
    "CMS": ("clipped",),
    "SS floor(d/2)": ("clipped",),
    "SS": ("clipped", "normalized", "default"),
    "HR": ("normalized", "default"),
    PUBLIC_HR: ("normalized",),
}
AS_PUBLISHED = "as published"
CORRECTED = "corrected"
NORMALIZED = "corrected, all normalized"
DEFAULT = "corrected, default decoder"


def _reading(*choices: str) -> dict[str, str]:
    return dict(zip(MECHANISMS, choices, strict=True))


#: What stands for each mechanism of the paper: a design and a decoder. `CORRECTED` keeps the
#: post-processing that explains the tables. Basic RAPPOR becomes OUE, as the paper's conclusion
#: suggests, and CMS, which the paper describes with one bit a value, is SUE.
READINGS: dict[str, Mapping[str, str]] = {
    AS_PUBLISHED: _reading(
        "GRR ml", "UE p=.75 q=.5 clipped", "SUE clipped", "SS floor(d/2) clipped",
        f"{PUBLIC_HR} normalized",
    ),
    CORRECTED: _reading("GRR ml", "OUE clipped", "SUE clipped", "SS clipped", "HR normalized"),
    NORMALIZED: _reading(*(f"{name} normalized" for name in ("GRR", "OUE", "SUE", "SS", "HR"))),
    DEFAULT: _reading(*(f"{name} default" for name in ("GRR", "OUE", "SUE", "SS", "HR"))),
}  # fmt: skip
#: The sketch that CMS really is, with this library's default width and hash functions.
SKETCH = "CMS clipped"


def choices(reading: str, d: int, epsilon: float) -> dict[str, str]:
    """What stands for each mechanism at d values.

    The best subsets may have one value. Then they are k-RR, and the same runs stand for both:
    chance must not tell them apart.
    """
    found = dict(READINGS[reading])
    decoder = found["k-subset"].removeprefix("SS ")
    if decoder in DECODERS["GRR"] and SS.suggest_omega(d, epsilon) == 1:
        found["k-subset"] = f"GRR {decoder}"
    return found


def true_epsilon(choice: str, d: int, epsilon: float) -> float:
    """What a design of a reading really costs, where the paper says ``epsilon``."""
    name = choice.rpartition(" ")[0]
    if name == PUBLIC_HR:
        return PublicHadamard(d, epsilon).epsilon
    return math.log(DESIGNS[name](d, epsilon, 0).guarantee.ratio)


def estimates(histogram: Counts, epsilon: float, rng: np.random.Generator) -> dict[str, Floats]:
    """The estimates of one run, by design and decoder."""
    d, n, seed = histogram.size, int(histogram.sum()), int(rng.integers(1 << 31))
    found = {}
    for name, make in DESIGNS.items():
        m = make(d, epsilon, seed)
        counts = m.simulate(histogram, rng)
        for decoder in DECODERS[name]:
            found[f"{name} {decoder}"] = _decode(decoder, m, counts, n)
    found[f"{PUBLIC_HR} normalized"] = _public_hadamard(histogram, epsilon, rng)
    return found


def _decode(decoder: str, m: FrequencyOracle, counts: Counts, n: int) -> Floats:
    if decoder == "ml":
        chances: Any = m.chances  # of GRR
        return water_filling(counts, *map(float, chances))
    if decoder == "default":
        evidence: Any = Evidence.of([Tally.of_counts(m, counts, n)])
        return decode(evidence, DEFAULT_METHOD, {}).frequencies
    f = m.unbiased(counts, n)
    return clip_and_normalize(f) if decoder == "normalized" else np.maximum(f, 0.0)


def _public_hadamard(histogram: Counts, epsilon: float, rng: np.random.Generator) -> Floats:
    """It hands out rows by a permutation of its own, each time anew."""
    order = rng.permutation(histogram.size)
    m = PublicHadamard(histogram.size, epsilon)
    counts = m.simulate(histogram[order], rng)
    found = np.empty(histogram.size)
    found[order] = clip_and_normalize(m.estimate(counts, int(histogram.sum())))
    return found
