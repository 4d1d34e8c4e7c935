"""Gains by place: averages over cells with their standard errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable_papers.cells import Notebook, Settings, Values
from deniable_papers.ibu.designs import settings_of

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class How:
    """A setting of the mechanisms, a decoder that is compared with matrix inversion, a metric."""

    setting: str
    decoder: str
    metric: str = "MSE"

    def key(self, mechanism: str) -> str:
        """Where a cell has it: settings that do not differ are kept once."""
        known = settings_of(mechanism)
        return f"{mechanism} {self.setting if self.setting in known else known[0]}"


#: What the paper ran, and what it should have run: the limit itself.
AS_RUN = How("software", "update")
CORRECTED = How("corrected", "limit")


@dataclass(frozen=True, eq=False)
class Average:
    """A mean over cells of the gains, by run.

    The runs of one sample are compared, or added, run by run. The error is the larger of two: that
    of cells on their own, and that of runs as wholes, which share their samples.
    """

    runs: Floats
    alone: float

    @property
    def value(self) -> float:
        """The mean over the runs."""
        return float(self.runs.mean())

    @property
    def error(self) -> float:
        """Its standard error."""
        whole = float(self.runs.std(ddof=1)) / math.sqrt(len(self.runs))
        return max(self.alone, whole)

    def __sub__(self, other: Average) -> Average:
        return Average(self.runs - other.runs, math.hypot(self.alone, other.alone))


def mean_of(some: Sequence[Average]) -> Average:
    """The mean of averages over as many cells each."""
    runs = np.mean([one.runs for one in some], axis=0)
    return Average(runs, math.hypot(*(one.alone for one in some)) / len(some))


class Found:
    """The finished cells of a study."""

    def __init__(self, cells: Sequence[Settings], notebook: Notebook) -> None:
        self.cells = [(settings, notebook[settings]) for settings in cells]
        self._chosen: dict[tuple[tuple[str, object], ...], list[tuple[Settings, Values]]] = {}

    @cached_property
    def distributions(self) -> tuple[str, ...]:
        """In the order of the tables."""
        return tuple(dict.fromkeys(settings["distribution"] for settings, _ in self.cells))

    def axis(self, name: str) -> tuple[float, ...]:
        """The values of n, k or epsilon."""
        return tuple(dict.fromkeys(settings[name] for settings, _ in self.cells))

    @property
    def runs(self) -> int:
        """How often each cell was run."""
        return int(self.cells[0][0]["runs"])

    def where(self, **wanted: object) -> list[tuple[Settings, Values]]:
        """The cells with these settings."""
        key = tuple(wanted.items())
        if key not in self._chosen:
            self._chosen[key] = [
                (settings, values)
                for settings, values in self.cells
                if all(settings[name] == value for name, value in key)
            ]
        return self._chosen[key]

    def average(self, how: How, mechanism: str, **wanted: object) -> Average:
        """The mean gain, in percent, over the cells with these settings."""
        cells = self.where(**wanted)
        found = [values[how.key(mechanism)][how.metric][how.decoder] for _, values in cells]
        gains = 100 * np.array([one["gains"] for one in found])
        errors = gains.std(axis=1, ddof=1) / gains.shape[1] ** 0.5
        return Average(gains.mean(axis=0), float(np.sqrt(np.square(errors).sum())) / len(cells))

    def overall(self, how: How, mechanisms: Sequence[str], **wanted: object) -> Average:
        """The mean over mechanisms."""
        return mean_of([self.average(how, name, **wanted) for name in mechanisms])

    def log_ratio(self, how: How, mechanism: str, **wanted: object) -> tuple[float, float]:
        """The mean over cells of log(mean loss / mean loss of the inverse), and its error.

        Cells share their samples: the error is that of errors which add up, the largest possible.
        """
        cells = self.where(**wanted)
        found = np.array([v[how.key(mechanism)][how.metric][how.decoder]["log"] for _, v in cells])
        value, error = found.mean(axis=0)
        return float(value), float(error)
