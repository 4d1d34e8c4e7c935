"""What a loader returns: categorical columns of equal length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InvalidArgument


@dataclass(frozen=True, eq=False)
class Column:
    """Answers as indices ``codes`` of their ``labels``; numbers are in order, then words."""

    labels: tuple[str, ...]
    codes: NDArray[np.uint32]

    @classmethod
    def of(cls, values: Sequence[str]) -> Column:
        """The labels that occur, and where."""
        labels = sorted(set(values), key=_order)
        index = {label: i for i, label in enumerate(labels)}
        codes = np.fromiter((index[value] for value in values), np.uint32, len(values))
        return cls(tuple(labels), codes)

    @property
    def size(self) -> int:
        """k, the number of labels that occur."""
        return len(self.labels)

    @property
    def histogram(self) -> NDArray[np.int64]:
        """How many have each label."""
        return np.bincount(self.codes, minlength=self.size)

    @property
    def frequencies(self) -> NDArray[np.float64]:
        """The share of each label."""
        return self.histogram / self.codes.size


@dataclass(frozen=True, eq=False)
class Dataset:
    """Columns by name, with a note that says what exactly was read."""

    name: str
    note: str
    columns: Mapping[str, Column]

    @property
    def n(self) -> int:
        """The number of rows."""
        return next(iter(self.columns.values())).codes.size

    def column(self, name: str) -> Column:
        """One column; an unknown name is refused with those there are."""
        if name not in self.columns:
            raise InvalidArgument("column", name, f"one of {', '.join(self.columns)}")
        return self.columns[name]


def _order(label: str) -> tuple[int, float, str]:
    """Numbers by their size, words after them by the alphabet."""
    try:
        return 0, float(label), label
    except ValueError:
        return 1, 0.0, label
