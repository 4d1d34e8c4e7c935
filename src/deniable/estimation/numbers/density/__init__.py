"""Densities of numbers: shares of many narrow bins, from what reports say about them.

Everything here is a function of arrays. What reports say is `Counted` or `Linear`; the decoders are
`penalised` and, for counts, `em` and `ems`.
"""

from deniable.estimation.numbers.density.expectation import em, ems
from deniable.estimation.numbers.density.observed import Counted, Linear, Observed
from deniable.estimation.numbers.density.penalised import penalised

__all__ = ["Counted", "Linear", "Observed", "em", "ems", "penalised"]
