"""What runs on a person's device: integers and coins, and three small numbers to remember."""

from __future__ import annotations

from dataclasses import dataclass, replace

from deniable.errors import require_int, require_type
from deniable.protocols.thresh.plan import MAX_EPOCHS, Thresh
from deniable.randomness import Coins


@dataclass(frozen=True)
class ThreshDevice:
    """A device as it is between two messages; every message comes with the device that follows.

    ``reference`` is the count at the last update, None before the first; ``votes`` and ``updates``
    are what was spent. A device that missed an update drops its reference (None) and says no until
    the next one.

    The promise needs a device that never forgets what it spent: save the device that follows before
    the message leaves, and let one that lost its state take no part in this plan any more.
    """

    plan: Thresh
    reference: int | None = None
    votes: int = 0
    updates: int = 0

    def __post_init__(self) -> None:
        require_type("plan", self.plan, Thresh)
        for name in ("votes", "updates"):
            require_int(name, getattr(self, name), 0, MAX_EPOCHS)
        if self.reference is not None:
            require_int("reference", self.reference, 0, self.plan.samples)

    def vote(self, epoch: int, count: int, coins: Coins) -> tuple[int, ThreshDevice]:
        """The vote of an epoch with this count of ones: one word, whatever the count."""
        when = require_int("epoch", epoch, 1, self.plan.epochs)
        yes = self._wants_update(when, self._whole(count))
        vote = int(coins.below(self.plan.vote_keep) == yes)
        return vote, replace(self, votes=self.votes + yes)

    def _whole(self, count: int) -> int:
        return require_int("count", count, 0, self.plan.samples)

    def _wants_update(self, epoch: int, count: int) -> bool:
        if self.reference is None or self.votes >= self.plan.votes:
            return False
        return abs(count - self.reference) >= self.plan.gap(epoch)

    def estimate(self, count: int, coins: Coins) -> tuple[int, ThreshDevice]:
        """The report of an update: one of the epoch's bits, or 0 when the limit is reached.

        It is kept or flipped. Two words, whatever the count.
        """
        ones = self._whole(count)
        one = coins.choice(self.plan.samples) < ones and self.updates < self.plan.updates
        report = int(coins.below(self.plan.estimate_keep) == one)
        return report, replace(self, reference=ones, updates=self.updates + 1)
