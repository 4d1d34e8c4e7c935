"""What the server does: it counts votes, decides, and keeps what was released."""

from __future__ import annotations

from dataclasses import dataclass, replace

from deniable.errors import InvalidArgument, require_int, require_share, require_type
from deniable.privacy import Guarantee
from deniable.protocols.thresh.plan import MAX_USERS, Thresh
from deniable.randomness import SCALE


@dataclass(frozen=True)
class Release:
    """What is known in an epoch: the mean that was collected in the epoch ``since``.

    The interval holds the share of ones among all bits of that epoch with the confidence at least:
    with means m_i, reports are independent coins whose sum is no wider than a binomial law
    (Hoeffding 1956), so the Clopper-Pearson interval of a sample is safe.
    """

    epoch: int
    since: int
    mean: float
    standard_error: float
    interval: tuple[float, float]
    n: int

    @property
    def updated(self) -> bool:
        """Whether this epoch was an update."""
        return self.epoch == self.since


class ThreshServer:
    """One collection. In every epoch: `vote`, and `estimate` if that said so.

    A vote or an estimate is all that came in: how many ones among how many. Sums of parts may be
    added anywhere before. ``history`` has one `Release` for each epoch.
    """

    def __init__(self, plan: Thresh, confidence: float = 0.95) -> None:
        require_type("plan", plan, Thresh)
        self.plan = plan
        self.confidence = require_share("confidence", confidence)
        self.history: list[Release] = []
        self.epoch = 0
        self.updates = 0

    def __repr__(self) -> str:
        return f"<server of {self.plan!r} in epoch {self.epoch}, {self.updates} updates>"

    def vote(self, ones: int, n: int) -> bool:
        """Begin the next epoch with its votes; whether all must be asked for an estimate.

        The first epoch always needs one. When ``plan.updates`` are used up, none follows: devices
        would send mere coins.
        """
        _check_counts(ones, n)
        if len(self.history) < self.epoch:
            raise InvalidArgument("vote", ones, f"after the estimate of epoch {self.epoch}")
        require_int("epoch", self.epoch + 1, 1, self.plan.epochs)
        self.epoch += 1
        heard = not self.history or ones > self.plan.quorum(self.epoch, n)
        if heard and self.updates < self.plan.updates:
            return True
        self.history.append(replace(self.history[-1], epoch=self.epoch))
        return False

    def estimate(self, ones: int, n: int) -> Release:
        """The new mean: m = (ones / n - q) / (1 - 2 q) with q = 1 - keep, unbiased."""
        from deniable.estimation.frequencies.errors.exact import exact_intervals

        _check_counts(ones, n)
        if len(self.history) == self.epoch:
            raise InvalidArgument("estimate", ones, "after a vote that asked for it")
        p = self.plan.estimate_keep / SCALE
        share, scale = ones / n, 2 * p - 1
        error = (share * (1 - share) / n) ** 0.5 / scale
        low, high = exact_intervals([ones], n, p, 1 - p, self.confidence, sampling=True)[0]
        self.updates += 1
        release = Release(
            self.epoch, self.epoch, (share - 1 + p) / scale, error, (float(low), float(high)), n
        )
        self.history.append(release)
        return release

    @property
    def spent(self) -> Guarantee:
        """What a person has revealed at most so far."""
        return self.plan.spent(self.epoch, self.updates)


def _check_counts(ones: int, n: int) -> None:
    require_int("ones", ones, 0, require_int("n", n, 1, MAX_USERS))
