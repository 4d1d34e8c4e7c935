"""What reports say about the shares f of k bins: a log-likelihood, its gradient and information."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from deniable.arrays import Floats
from deniable.errors import InvalidArgument

#: Outputs that tell numbers apart more finely than into so many parts of the range are merged:
#: decoders smooth over several such parts, and their time grows with the outputs.
RESOLUTION = 256
#: Rows of a channel sum to 1, up to this.
ROUNDING = 1e-9


class Observed(ABC):
    """A log-likelihood l(f), up to a constant, that is concave in the shares f of all bins."""

    @property
    @abstractmethod
    def bins(self) -> int:
        """How many shares there are."""

    @abstractmethod
    def log_likelihood(self, f: Floats) -> float:
        """l(f)."""

    @abstractmethod
    def gradient(self, f: Floats) -> Floats:
        """dl / df."""

    @abstractmethod
    def root(self, f: Floats) -> Floats:
        """R, with R R^T the expected information about the shares, where they are f."""


@dataclass(frozen=True, eq=False)
class Counted(Observed):
    """How often each output came: N_y of n reports, with y as likely as (f P)_y.

    l(f) = sum_y N_y log (f P)_y, with the information n P diag(1 / (f P)) P^T.
    """

    counts: Any
    #: P, bins x outputs.
    channel: Floats

    def __post_init__(self) -> None:
        counts = np.asarray(self.counts, dtype=np.float64)
        if self.channel.ndim != 2 or counts.shape != self.channel.shape[1:]:
            allowed = "counts of all outputs, and a channel with a column for each"
            raise InvalidArgument("counts", counts.shape, allowed)
        if np.any(counts < 0) or not np.isfinite(counts).all() or not counts.any():
            raise InvalidArgument("counts", counts, "counts that are not negative, and not all 0")
        off = np.abs(self.channel.sum(axis=1) - 1).max()
        if np.any(self.channel <= 0) or not off <= ROUNDING:
            allowed = "probabilities above 0 whose rows sum to 1"
            raise InvalidArgument("channel", self.channel, allowed)
        vars(self)["counts"] = counts

    @property
    def bins(self) -> int:
        return len(self.channel)

    def log_likelihood(self, f: Floats) -> float:
        return float(self.counts @ np.log(f @ self.channel))

    def gradient(self, f: Floats) -> Floats:
        return np.asarray(self.channel @ (self.counts / (f @ self.channel)))

    def root(self, f: Floats) -> Floats:
        return np.asarray(self.channel * np.sqrt(self.counts.sum() / (f @ self.channel)))


@dataclass(frozen=True, eq=False)
class Linear(Observed):
    """Unbiased numbers z = A f + noise, of which only the ``variances`` are known.

    l(f) = -1/2 sum_i (z - A f)_i^2 / var_i, with the information A^T diag(1 / var) A. A may be
    sparse, such as the sums of a tree. Variances must not depend on z.
    """

    z: Floats
    #: A, numbers x bins: an array or a matrix of SciPy.
    design: Any
    variances: Floats

    def __post_init__(self) -> None:
        if self.design.ndim != 2 or not len(self.z) == len(self.variances) == self.design.shape[0]:
            raise InvalidArgument("design", self.design.shape, f"{len(self.z)} rows")
        if not np.all(self.variances > 0):
            raise InvalidArgument("variances", self.variances, "numbers above 0")

    @property
    def bins(self) -> int:
        return int(self.design.shape[1])

    def log_likelihood(self, f: Floats) -> float:
        root, c = self._reduced
        return -float(((c - f @ root) ** 2).sum()) / 2

    def gradient(self, f: Floats) -> Floats:
        root, c = self._reduced
        return np.asarray(root @ (c - f @ root))

    def root(self, f: Floats) -> Floats:
        return self._reduced[0]

    @cached_property
    def _reduced(self) -> tuple[Floats, Floats]:
        """R and c, no longer than there are bins and one more, with l(f) = -|c - f R|^2 / 2."""
        from scipy.linalg import qr
        from scipy.sparse import issparse

        dense = self.design.toarray() if issparse(self.design) else self.design
        both = np.column_stack([dense, self.z]) / np.sqrt(self.variances)[:, None]
        triangle = qr(both, mode="r", overwrite_a=True)[0][: self.bins + 1]
        return np.ascontiguousarray(triangle[:, :-1].T), triangle[:, -1]


@dataclass(frozen=True, eq=False)
class Together(Observed):
    """Several that are independent."""

    parts: Sequence[Observed]

    @classmethod
    def of(cls, parts: Sequence[Observed]) -> Observed:
        """All together, or the only one."""
        return parts[0] if len(parts) == 1 else cls(parts)

    @property
    def bins(self) -> int:
        return self.parts[0].bins

    def log_likelihood(self, f: Floats) -> float:
        return sum(one.log_likelihood(f) for one in self.parts)

    def gradient(self, f: Floats) -> Floats:
        return np.asarray(sum(one.gradient(f) for one in self.parts))

    def root(self, f: Floats) -> Floats:
        return np.hstack([one.root(f) for one in self.parts])
