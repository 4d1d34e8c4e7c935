"""An estimate: numbers that know how wrong they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable.domain import Label
from deniable.errors import InvalidArgument, require_int
from deniable.estimation.exports import SHOWN, Exports, column
from deniable.mechanisms.base import Labelled, as_floats

if TYPE_CHECKING:
    import altair as alt
    from rich.table import Table

Floats = NDArray[np.float64]
#: How far outside 0..1 a frequency may be that was computed.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(Exports):
    """Frequencies with their errors.

    ``errors`` says of which kind ``standard_errors`` and ``intervals`` are: "score" and "exact"
    are those of the unbiased frequencies, "posterior", "information", "regression" and "bootstrap"
    of the method.
    They are about ``population``: the respondents themselves, or everyone they are a sample of.
    """

    labels: tuple[Label, ...]
    frequencies: Floats
    standard_errors: Floats
    #: One row (low, high) a value.
    intervals: Floats
    n: int
    method: str
    confidence: float
    #: The mechanism it came from, in words.
    source: str
    errors: str
    population: str = "respondents"
    #: Whether the intervals hold for all values together, or for each.
    simultaneous: bool = False
    #: Of a maximum: how much larger the log-likelihood of a report could be at most.
    certificate: float | None = None

    def columns(self) -> dict[str, list[Any]]:
        return {
            "value": column(self.labels),
            "frequency": self.frequencies.tolist(),
            "standard_error": self.standard_errors.tolist(),
            "low": self.intervals[:, 0].tolist(),
            "high": self.intervals[:, 1].tolist(),
        }

    @property
    def about(self) -> dict[str, Any]:
        """What the numbers are."""
        known = {
            "n": self.n,
            "method": self.method,
            "confidence": self.confidence,
            "errors": self.errors,
            "population": self.population,
            "simultaneous": self.simultaneous,
            "mechanism": self.source,
        }
        return known if self.certificate is None else {**known, "certificate": self.certificate}

    @property
    def interval_words(self) -> str:
        """What the intervals are, in words."""
        together = "simultaneous " if self.simultaneous else ""
        level = f"{100 * self.confidence:.6g} %"
        return f"{level} {together}{self.errors} intervals about {self.population}"

    def plot(self, truth: Labelled | None = None) -> alt.LayerChart:
        """Bars with intervals; ``truth`` (of a simulation) is marked beside them.

        A pandas Series or a mapping is aligned by its labels; a list is in the order of `labels`.
        """
        from deniable.studio.charts import estimate_chart

        chart: alt.LayerChart = estimate_chart(self, None if truth is None else self._truth(truth))
        return chart

    def save(self, path: str | Path, truth: Labelled | None = None) -> Path:
        """Save `plot` as .html (one file that works offline), .png or .svg."""
        from deniable.studio.charts import save

        return save(self.plot(truth), Path(path))

    def table(self, truth: Labelled | None = None) -> Table:
        """A table for the terminal; ``truth`` (of a simulation) gets a column of its own."""
        from deniable.studio.tables import estimate_table

        return estimate_table(self, None if truth is None else self._truth(truth))

    def shown(self, most: int = SHOWN) -> list[int]:
        """The values to show to a person: all in order, or the most frequent of very many."""
        if len(self.labels) <= most:
            return list(range(len(self.labels)))
        order: list[int] = np.argsort(-self.frequencies, kind="stable")[:most].tolist()
        return order

    def most_frequent(self, most: int) -> Estimate:
        """The same numbers, of at most so many values: those that are `shown`."""
        rows = self.shown(require_int("most", most, 1, 1 << 62))
        return replace(
            self,
            labels=tuple(self.labels[row] for row in rows),
            frequencies=self.frequencies[rows],
            standard_errors=self.standard_errors[rows],
            intervals=self.intervals[rows],
        )

    def _truth(self, truth: Labelled) -> Floats:
        values = as_floats("truth", truth, self.labels)
        if values.shape != self.frequencies.shape:
            raise InvalidArgument("truth", truth, f"{len(self.labels)} frequencies")
        return check_truth(truth, values)

    def __str__(self) -> str:
        reports = "1 report" if self.n == 1 else f"{self.n} reports"
        return f"{self.method} frequencies of {reports}, {self.source}"


def check_truth(truth: Labelled, values: Floats) -> Floats:
    """The ``values`` of a truth, if they are frequencies; counts would be drawn off the chart."""
    if not np.all((values >= -ROUNDING) & (values <= 1 + ROUNDING)):
        raise InvalidArgument("truth", truth, "frequencies from 0 to 1, none missing, no counts")
    return values
