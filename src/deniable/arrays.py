"""Types of the arrays that travel through the package."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
#: Sums that add: what a tally is made of.
Counts: TypeAlias = NDArray[np.int64]
