"""Frequency oracles of the registry, with what Table 4 says about them.

``epsilon`` is that of one report. Longitudinal families have twice of it for all reports of an
answer. k is the number of answers; in the rows of RAPPOR, O-RAPPOR and O-RR the paper's k is the
number of cells that answers are hashed to (`width`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from deniable.mechanisms.frequency import FrequencyOracle, find_oracle

#: A published n Var at f = 0, of a mechanism and its epsilon.
Formula = Callable[[Any, float], float]


def _symmetric(m: Any, epsilon: float) -> float:
    s = math.exp(epsilon / 2)
    return s / (s - 1) ** 2


def _optimised(m: Any, epsilon: float) -> float:
    e = math.exp(epsilon)
    return 4 * e / (e - 1) ** 2


def _binary(m: Any, epsilon: float) -> float:
    e = math.exp(epsilon)
    return e / (e - 1) ** 2


def _direct(size: int, epsilon: float) -> float:
    e = math.exp(epsilon)
    return (e + size - 2) / (e - 1) ** 2


def _binary_hashing(m: Any, epsilon: float) -> float:
    e = math.exp(epsilon)
    return ((e + 1) / (e - 1)) ** 2


@dataclass(frozen=True)
class Oracle:
    """A mechanism by the name in the table; without a formula it is not in Table 4.

    ``order`` is the paper's communication cost, and ``exponent`` the power of k in it; k is
    ``along``, the number of answers (domain) or of cells (width).
    """

    family: str
    published: Formula | None = None
    order: str = ""
    exponent: float | None = None
    reason: str = ""
    design: Mapping[str, Any] = field(default_factory=dict)
    along: str = "domain"

    def build(self, k: int, epsilon: float, **design: int) -> FrequencyOracle:
        """The mechanism for k values; ``design`` goes before the oracle's own."""
        family: Any = find_oracle(self.family)
        chosen = {name: pick(epsilon) for name, pick in self.design.items()} | design
        budgets = (2 * epsilon, epsilon) if len(family.budgets) == 2 else (epsilon,)
        built: FrequencyOracle = family(k, *budgets, **chosen)
        return built

    def suits(self, k: int) -> bool:
        """Whether the family takes this number of values."""
        return find_oracle(self.family).only_size in (None, k)


_COLLISIONS = "values that share a cell are left out: the formula is SUE's"
ORACLES: dict[str, Oracle] = {
    "BRR": Oracle("brr", _binary, "O(1)", 0),
    "GRR": Oracle("grr", lambda m, e: _direct(m.domain.size, e), "O(log k)", 0),
    "SUE": Oracle("sue", _symmetric, "O(k)", 1),
    "OUE": Oracle("oue", _optimised, "O(k)", 1),
    "RAPPOR": Oracle("rappor", _symmetric, "Theta(k)", 1, _COLLISIONS, along="width"),
    "O-RAPPOR": Oracle("orappor", _symmetric, "Theta(k)", 1, _COLLISIONS, along="width"),
    "O-RR": Oracle(
        "orr",
        lambda m, e: _direct(m.width, e),
        "O(log k)",
        0,
        "k-RR's formula, which leaves out values that share a cell",
        {"permuted": lambda epsilon: 0, "cohorts": lambda epsilon: 4096},
        "width",
    ),
    "BLH": Oracle("blh", _binary_hashing, "O(log k)", 0),
    "OLH, g = floor(e^eps + 1)": Oracle(
        "olh",
        _optimised,
        "O(log k)",
        0,
        "the formula is that of g = e^eps + 1, which is no integer",
        {"g": lambda epsilon: int(math.exp(epsilon) + 1)},
    ),
    "S-Hist": Oracle("shist", _binary, "O(log b)", 0, "too small by (e^eps + 1)^2 / e^eps"),
    "HRR": Oracle(
        "hrr", _optimised, "O(log k)", 0, "(47) is the variance of a value that everybody has"
    ),
    "w-SM": Oracle(
        "ss",
        lambda m, e: _direct(m.domain.size, e),
        "O(omega)",
        None,  # rows here have a bit for every value, whatever omega
        "k-RR's formula: right only for subsets of one value",
    ),
    "Basic RAPPOR": Oracle("basicrappor"),
    "OLH": Oracle("olh"),
    "UE": Oracle("ue"),
    "THE": Oracle("the"),
    "SHE": Oracle("she"),
    "HR": Oracle("hr"),
    "CMS": Oracle("cms"),
    "HCMS": Oracle("hcms"),
    "O-RR, dealt": Oracle("orr"),
    "dBitFlip": Oracle("dbitflip"),
    "dBitFlipPM": Oracle("dbitflippm"),
    "L-GRR": Oracle("lgrr"),
    "L-SUE": Oracle("lsue"),
    "L-OUE": Oracle("loue"),
    "L-SOUE": Oracle("lsoue"),
    "L-OSUE": Oracle("losue"),
    "L-BLH": Oracle("lblh"),
    "L-OLH": Oracle("lolh"),
}
