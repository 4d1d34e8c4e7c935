"""Reports that are too many to hold: they lie in files, and are read again in every pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from deniable.core.mechanism import Mechanism
from deniable.core.reports import Reports
from deniable.core.tally import Tally

if TYPE_CHECKING:
    from deniable.estimation import Estimate

Value = TypeVar("Value")


class Pass(ABC, Generic[Value]):
    """What one reading of all reports is for. It travels to where the reports are."""

    @abstractmethod
    def read(self, reports: Reports, start: int) -> Value:
        """The result of some reports, of which the first has the number ``start`` among all.

        Run by the analyst.
        """

    @abstractmethod
    def merge(self, one: Value, other: Value) -> Value:
        """The result of the reports of both. Run by the analyst."""


class StoredReports(ABC):
    """Reports of one mechanism, in some order, that are read some at a time."""

    mechanism: Mechanism
    #: The fingerprints of the files that they come from, as in `Tally.sources`.
    sources: frozenset[str]

    @abstractmethod
    def tally(self) -> Tally:
        """Their counts. Run by the analyst."""

    @abstractmethod
    def pass_over(self, work: Pass[Value]) -> Value:
        """Read all of them once; there is at least one. Run by the analyst."""

    @abstractmethod
    def among(self, candidates: Iterable[str]) -> StoredReports:
        """The same reports about any text, asked about some texts. Run by the analyst."""

    @abstractmethod
    def about(self, question: str) -> StoredReports:
        """Those of them that are about one of several questions. Run by the analyst."""

    def estimate(self, method: str | None = None, **choices: Any) -> Estimate:
        """Numbers with standard errors and intervals; choices as in `deniable.combine`.

        Methods that need more than counts read the reports again and again. Run by the analyst.
        """
        return self.mechanism.task.estimate([self], method, **choices)


#: What can be decoded.
Source: TypeAlias = Tally | Reports | StoredReports
