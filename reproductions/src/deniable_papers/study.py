"""What the study of every paper has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from deniable_papers.cells import Notebook, Settings, Values
from deniable_papers.datasets import Dataset
from deniable_papers.results import Result

Grid = TypeVar("Grid")


class Study(ABC, Generic[Grid]):
    """Cells in stages, what is done in each, and what is made of them.

    Without the data that it uses a study leaves out the cells that need them.
    """

    title: ClassVar[str]
    #: The data sets that it uses, with the columns that it needs.
    data: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    #: The settings of `--quick` and of `--full`.
    grids: ClassVar[tuple[Any, Any]]

    def __init__(
        self, full: bool, data: Mapping[str, Dataset] | None = None, grid: Grid | None = None
    ) -> None:
        self.grid: Grid = grid or self.grids[full]
        self.sets = dict(data or {})

    @staticmethod
    @abstractmethod
    def work(settings: Settings, rng: np.random.Generator) -> Values:
        """Simulate one cell."""

    @abstractmethod
    def stages(self, notebook: Notebook) -> Iterator[tuple[str, list[Settings]]]:
        """(name, cells) of each stage; some need what those before them found."""

    @abstractmethod
    def results(self, notebook: Notebook) -> list[Result]:
        """All rows."""

    @abstractmethod
    def charts(self, results: list[Result]) -> dict[str, Any]:
        """Charts by the name of their file."""

    def texts(self, results: list[Result]) -> dict[str, str]:
        """Texts by the name of their file."""
        return {}
