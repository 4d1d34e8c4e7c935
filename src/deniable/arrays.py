"""Types of the arrays that travel through the package."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
#: Sums that add: what a tally is made of.
Counts: TypeAlias = NDArray[np.int64]
Integers: TypeAlias = NDArray[np.int64]
#: Places in another array.
Indices: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
#: A column of reports: of the type that their layout says.
Data: TypeAlias = NDArray[Any]
