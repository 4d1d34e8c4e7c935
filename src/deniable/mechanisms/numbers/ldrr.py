"""Dithered randomised response for devices that remember: alpha-point rounding.

Ding, Kulkarni and Yekhanin (2017) round a number up or down at an offset that a device draws once,
so that it reports another cell only when its number crosses a threshold of its own. Here the cell
goes through a chain of two k-RRs, as in L-GRR, of which the first is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.core.mechanism import batches
from deniable.core.registry import register
from deniable.mechanisms.numbers.drr import DRR, FINE, MOST_STEPS, worst_case
from deniable.mechanisms.two_step.chains import RandomisedChain
from deniable.randomness import Coins, Keystream


@register
class LDRR(RandomisedChain, DRR):
    """DRR whose offset t is kept for ever, and a permanent draw for each cell that was reported.

    A first report is exactly k-RR(epsilon_1) on m = ell + 1 cells behind a uniform offset, so the
    mean of a round is that of `DRR` with the share t1 t2. The offset is never reported: it would
    link the reports of a device.

    All reports of one cell cost epsilon_inf. Cells are coarser than numbers, and which rounds have
    the same cell shows in enough reports. So epsilon_inf times the number of cells does not bound
    what a history tells in which the cell changes: it is refused where answers may change, and with
    ``changes = 0`` a device keeps reporting its first cell.
    """

    name = "ldrr"
    paper = "Ding et al. 2017 (rounding), Arcolezi et al. 2022 (chain)"
    good_for = "comparison: the mean of a number that is asked for again and again"
    on_devices = False
    key_is_value = False
    shapes = tuple({"ell": ell} for ell in (1, 2, 3, 7))
    trials = 60  # its decoders are those of `DRR`
    shown = 0  # not declared: never anything else

    @property
    def outcomes(self) -> int:
        return super(RandomisedChain, self).outcomes  # that of `DRR`

    def derive_ell(self) -> int:
        """As in `DRR`, for first reports, which are not sorted by the offset."""
        steps = np.arange(1, MOST_STEPS + 1)
        odds = np.expm1(self.epsilon_1)
        ends, rise = worst_case(odds / (odds + steps + 1), steps)
        return int(steps[np.argmin(ends + rise**2 / (4 * steps**2))])

    def begin(self, coins: Coins) -> int:
        """The offset."""
        return coins.choice(1 << self.fine)

    @property
    def begin_words(self) -> int:
        return 1

    def key(self, begun: int, value: int) -> int:
        """The cell."""
        return self.cell(value, begun)

    def instant(self, begun: int, kept: int, coins: Coins) -> int:
        return self._step(kept, self.keep, coins)

    # ---- many devices at once

    def begin_all(self, n: int, keystream: Keystream) -> NDArray[np.uint64]:
        offsets = np.empty(n, dtype=np.uint64)
        for _, some, words in batches(offsets, offsets, keystream, 1):
            some[:] = words >> np.uint64(64 - self.fine)  # `choice` of a power of two
        return offsets

    def keys_of(self, begun: NDArray[Any], values: NDArray[Any]) -> NDArray[np.uint64]:
        coarse = (np.uint64(self.ell) * values) >> np.uint64(FINE - self.fine)
        cells = (coarse + begun) >> np.uint64(self.fine)
        if self.domain.skip is not None:
            cells[values == self.domain.skip] = self.ell + 1
        return np.asarray(cells, dtype=np.uint64)

    def fill(self, values: NDArray[Any], out: NDArray[Any], keystream: Keystream) -> None:
        begun = self.begin_all(len(values), keystream)
        kept = self.memoise_all(begun, self.keys_of(begun, values), keystream)
        out[: len(values)] = self.instant_all(begun, kept, keystream)

    def instant_all(
        self, begun: NDArray[Any], kept: NDArray[Any], keystream: Keystream
    ) -> NDArray[Any]:
        return self._steps(kept, self.keep, keystream)
