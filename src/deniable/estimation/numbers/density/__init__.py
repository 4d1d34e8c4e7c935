"""Densities of numbers: shares of many narrow bins, from what reports say about them.

Mechanisms say what their counts tell about the shares (`Observed`): `Counted` or `Linear`. The
decoders are `penalised` and, for `Counted`, `em` and `ems`.
"""

from deniable.estimation.numbers.density.expectation import em, ems
from deniable.estimation.numbers.density.penalised import penalised
from deniable.mechanisms.numbers.observed import Counted, Linear, Observed

__all__ = ["Counted", "Linear", "Observed", "em", "ems", "penalised"]
