"""What of the gain is what: early stopping, the limit, and other decoders, on right mechanisms.

All numbers are MSEs relative to that of matrix inversion (clipped and normalised): geometric means
over distributions, n and k > 2. With two values all decoders nearly agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from deniable_papers.ibu.designs import MECHANISMS, ONE_TIME, settings_of
from deniable_papers.ibu.gains import Found, How
from deniable_papers.ibu.populations import REAL
from deniable_papers.ibu.tables import PAPER, STAND_IN
from deniable_papers.results import Cell, Result, compared

#: By what the rows call them.
DECODERS = {
    "IBU, 10^4 steps": "update",
    "IBU, limit": "limit",
    "projected": "projected",
    "bayes": "bayes",
}


def rows(found: Found) -> Iterator[Result]:
    """By distribution and epsilon, by mechanism and epsilon, and what correct mechanisms bring."""
    for title, decoder in DECODERS.items():
        if decoder in found.cells[0][1]["GRR corrected"]["MSE"]:
            how = How("corrected", decoder)
            yield from _by_distribution(found, title, how)
            yield from _by_mechanism(found, title, how)
    yield from _corrections(found)


def _relative(
    found: Found, how: How, names: tuple[str, ...], **wanted: object
) -> tuple[float, float]:
    """exp of the mean log ratio, and its error (as in `Found.log_ratio`)."""
    sizes = [k for k in found.axis("k") if k > 2]
    pairs = [found.log_ratio(how, name, k=k, **wanted) for name in names for k in sizes]
    value, error = np.mean(pairs, axis=0)
    return math.exp(value), math.exp(value) * float(error)


def _by_distribution(found: Found, title: str, how: How) -> Iterator[Result]:
    for name in found.distributions:
        for epsilon in found.axis("epsilon"):
            value = _relative(found, how, ONE_TIME, distribution=name, epsilon=epsilon)
            cell: Cell = {"decoder": title, "distribution": name, "epsilon": epsilon}
            about = STAND_IN if name == REAL else ""
            yield compared(PAPER, "MSE relative to MI", cell, None, *value, reason=about)


def _by_mechanism(found: Found, title: str, how: How) -> Iterator[Result]:
    for name in ONE_TIME:
        for epsilon in found.axis("epsilon"):
            value = _relative(found, how, (name,), epsilon=epsilon)
            cell: Cell = {"decoder": title, "mechanism": name, "epsilon": epsilon}
            yield compared(PAPER, "MSE relative to MI", cell, None, *value)


def _corrections(found: Found) -> Iterator[Result]:
    """MSE of the corrected mechanism and the limit over that of IBU as run."""
    for name in MECHANISMS:
        if "software" not in settings_of(name):
            continue
        for epsilon in found.axis("epsilon"):
            logs = []
            for settings, values in found.where(epsilon=epsilon):
                if settings["k"] > 2:
                    new = values[f"{name} corrected"]["MSE"]["limit"]["loss"]
                    old = values[f"{name} software"]["MSE"]["update"]["loss"]
                    logs.append((math.log(new[0] / old[0]), math.hypot(new[1], old[1])))
            value, error = np.mean(logs, axis=0)
            mean = math.exp(value)
            cell: Cell = {"mechanism": name, "epsilon": epsilon}
            where = "MSE, corrected over as run"
            yield compared(PAPER, where, cell, None, mean, mean * float(error))
