"""Many simulated devices at once: the same law, a few NumPy calls an epoch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InvalidArgument
from deniable.protocols.thresh.plan import Thresh
from deniable.protocols.thresh.server import ThreshServer
from deniable.randomness import SCALE, require_generator

if TYPE_CHECKING:
    from numpy.random import Generator

Counts = NDArray[Any]


class SimulatedDevices:
    """n devices as columns; ``votes`` and ``updates`` are what each has spent.

    Only sums leave, and a sum of kept or flipped bits is two binomial draws.
    """

    def __init__(self, plan: Thresh, n: int, rng: Generator) -> None:
        require_generator(rng)
        self.plan = plan
        self.n = n
        self.updates = 0
        self.votes = np.zeros(n, dtype=np.int32)
        self._reference: Counts | None = None
        self._rng = rng

    def vote(self, epoch: int, counts: Counts) -> int:
        """How many of the votes sent say yes."""
        if self._reference is None:
            return self._sent(0, self.plan.vote_keep)
        far = np.abs(counts - self._reference) >= self.plan.gap(epoch)
        yes = far & (self.votes < self.plan.votes)
        self.votes += yes
        return self._sent(int(yes.sum()), self.plan.vote_keep)

    def estimate(self, counts: Counts) -> int:
        """How many of the reports sent are ones."""
        ones = 0
        if self.updates < self.plan.updates:
            ones = int((self._rng.integers(self.plan.samples, size=self.n) < counts).sum())
        self.updates += 1
        self._reference = counts
        return self._sent(ones, self.plan.estimate_keep)

    def _sent(self, ones: int, keep: int) -> int:
        p = keep / SCALE
        kept, flipped = self._rng.binomial(ones, p), self._rng.binomial(self.n - ones, 1 - p)
        return int(kept + flipped)


def bernoulli_counts(
    means: Iterable[float], samples: int, n: int, rng: Generator
) -> Iterator[Counts]:
    """For each epoch's mean the counts of n people who draw their bits with it."""
    require_generator(rng)
    for mean in means:
        yield rng.binomial(samples, mean, n).astype(np.int32)


def simulate(
    plan: Thresh, counts: Iterable[Counts], rng: Generator, confidence: float = 0.95
) -> tuple[ThreshServer, SimulatedDevices]:
    """A whole collection: each item of ``counts`` has the counts of all people in an epoch.

    Returns the server, with its history, and the devices, with what each person has spent.
    """
    server, devices = ThreshServer(plan, confidence), SimulatedDevices(plan, plan.n, rng)
    for epoch, given in enumerate(counts, start=1):
        column = np.asarray(given)
        whole = column.shape == (plan.n,) and column.dtype.kind == "i"
        if not whole or column.min() < 0 or column.max() > plan.samples:
            found = f"{column.dtype} of shape {column.shape}"
            allowed = f"columns of {plan.n} signed integers of 0..{plan.samples}"
            raise InvalidArgument("counts", found, allowed)
        if server.vote(devices.vote(epoch, column), plan.n):
            server.estimate(devices.estimate(column), plan.n)
    return server, devices
