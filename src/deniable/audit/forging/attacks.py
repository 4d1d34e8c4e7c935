"""Forged reports: the published attacks, in a form that the server's validation accepts.

Cao, Jia and Gong (2021) name three: a random item (answer with a target, then randomise honestly),
a random perturbed value (any report), and the maximal gain. The fourth gives up a part of the gain
to look genuine, as in their adaptive attack and in Li et al. (2025).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from deniable.arrays import Integers
from deniable.audit.forging.admissible import BLOCK, admissible_reports
from deniable.audit.forging.influence import weights_of
from deniable.core.reports import Reports
from deniable.errors import require_int
from deniable.mechanisms import Mechanism
from deniable.randomness import require_generator

Attack = Callable[[Mechanism, int, Iterable[Any], Generator], Reports]
_Maker = Callable[[Integers, Generator], NDArray[Any]]


def random_value(
    mechanism: Mechanism, forged: int, targets: Iterable[Any], rng: Generator
) -> Reports:
    """Each answers with one of the targets and randomises it honestly: nothing can tell it."""
    weights = weights_of(mechanism, targets)
    require_generator(rng)
    values = rng.choice(np.flatnonzero(weights), require_int("forged", forged, 0, 1 << 40))
    labels = mechanism.domain.labels
    return mechanism.privatize(values if labels is None else [labels[v] for v in values], rng)


def random_report(
    mechanism: Mechanism, forged: int, targets: Iterable[Any], rng: Generator
) -> Reports:
    """Each sends any admissible report, whatever the targets."""
    return _forged(mechanism, forged, targets, rng, admissible_reports(mechanism).any)


def maximal_gain(
    mechanism: Mechanism, forged: int, targets: Iterable[Any], rng: Generator
) -> Reports:
    """Each sends a report that adds as much as possible to the targets together.

    What is left is filled so that the report looks genuine: bits up to the usual number, sets up
    to omega values, noise elsewhere. Reaches `Influence.gain`.
    """
    return _forged(mechanism, forged, targets, rng, admissible_reports(mechanism).best)


def stealthy_gain(
    mechanism: Mechanism, forged: int, targets: Iterable[Any], rng: Generator
) -> Reports:
    """Each adds as much as it can while its size and all that is drawn whatever the answer (a hash
    function, a row, a cohort, the questions) have the law of a genuine report."""
    return _forged(mechanism, forged, targets, rng, admissible_reports(mechanism).hidden)


ATTACKS: dict[str, Attack] = {
    "random value": random_value,
    "random report": random_report,
    "maximal gain": maximal_gain,
    "stealthy gain": stealthy_gain,
}


def _forged(
    mechanism: Mechanism, forged: int, targets: Iterable[Any], rng: Generator, make: _Maker
) -> Reports:
    """Reports made in blocks, which bounds the memory."""
    weights = weights_of(mechanism, targets)
    require_generator(rng)
    left = require_int("forged", forged, 0, 1 << 40)
    step = max(1, BLOCK // mechanism.cells)
    parts = [np.empty((0, *mechanism.dtype.shape), dtype=mechanism.dtype.base)]
    while left:
        count = min(step, left)
        parts.append(make(np.broadcast_to(weights, (count, weights.size)), rng))
        left -= count
    return Reports(mechanism, np.concatenate(parts))
