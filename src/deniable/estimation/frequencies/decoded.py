"""What a decoder returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """The errors of an estimate: what kind they are, standard errors, rows (low, high)."""

    kind: str
    standard_errors: Floats
    intervals: Floats


@dataclass(frozen=True, eq=False)
class Decoded:
    """Frequencies, and their errors where a decoder knows more than the unbiased ones tell.

    ``own(confidence, sampling)`` makes those errors; ``sampling`` says that the respondents are a
    sample of the population that is asked about.
    """

    frequencies: Floats
    own: Callable[[float, bool], Uncertainty] | None = None
    #: How much larger the log-likelihood of a report could be at most.
    certificate: float | None = None
