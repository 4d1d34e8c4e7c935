"""The public plan of one THRESH collection: its integers, and what they promise."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property

from deniable.errors import InvalidArgument, require_int, require_share, require_type
from deniable.privacy import Guarantee, check_epsilon, kept_below
from deniable.randomness import SCALE

MAX_EPOCHS = MAX_SAMPLES = 1 << 20
MAX_USERS = 1 << 40
#: Yes votes that a person whose mean never changes casts by mere chance, expected in all epochs.
WASTED = 0.25


@dataclass(frozen=True)
class Thresh:
    """A plan for ``n`` people and ``epochs`` epochs of ``samples`` bits each.

    In every epoch a person counts the ones among his l = ``samples`` bits and compares the count
    with that of the epoch of the last update. If they differ by at least the epoch's gap, and he
    has said yes fewer than ``votes`` times, his vote is yes, else no; it is kept with probability
    ``vote_keep`` / 2**64 and else flipped. When more votes say yes than chance explains, the server
    calls an update: all report one of their l bits, kept with probability ``estimate_keep`` /
    2**64, at most ``updates`` times, the first collection included. (``votes``: as many as updates
    unless given. A change costs one of each.)

    Privacy: epsilon-LDP for all that a person ever sends, against a server that calls updates as it
    likes. Given its calls, which votes are yes is a function of the bits alone. Two streams of bits
    say yes at most ``votes`` times each, so their votes differ in at most 2 ``votes`` epochs, and
    no transcript is more than (vote ratio)^(2 votes) (estimate ratio)^updates times as likely under
    one as under the other. Votes get ``vote_share`` of epsilon, a = share eps / (2 votes) each;
    estimates get b = (1 - share) eps / updates.

    The smallest of the ``levels`` gaps, ``gaps[0]``, applies in every 2^B-th epoch (B = levels -
    1), ``gaps[b]`` in every other 2^(B-b)-th, and the largest in all that are left: large changes
    are seen at once, and small ones, which chance resembles more, later. ``delta`` bounds the
    probability of any update without a change, if the bits of a person are independent.

    Gaps are derived unless given. Publish them with the plan: a device that is given ``gaps`` (and
    votes) derives nothing, and loads nothing for it.
    """

    epsilon: float
    epochs: int
    samples: int
    n: int
    updates: int
    _: KW_ONLY
    votes: int = 0
    levels: int = 1
    delta: float = 0.05
    vote_share: float = 0.5
    gaps: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check the fields, and derive those that were not given."""
        require_int("epochs", self.epochs, 2, MAX_EPOCHS)
        require_int("samples", self.samples, 1, MAX_SAMPLES)
        require_int("updates", self.updates, 1, self.epochs)
        require_int("votes", self.votes, 0, self.epochs)
        require_int("n", self.n, 1, MAX_USERS)
        require_share("delta", self.delta)
        require_share("vote_share", self.vote_share)
        require_type("gaps", self.gaps, tuple)
        levels = len(self.gaps) or self.levels
        require_int("levels", levels, 1, self.epochs.bit_length())
        gaps = tuple(self.gaps) or chance_gaps(self.epochs, self.samples, levels)
        if list(gaps) != sorted(require_int("gaps", gap, 1, MAX_SAMPLES) for gap in gaps):
            raise InvalidArgument("gaps", gaps, "in ascending order")
        planned = not self.gaps
        derived = {"epsilon": check_epsilon(self.epsilon), "votes": self.votes or self.updates}
        for name, value in {**derived, "levels": levels, "gaps": gaps}.items():
            object.__setattr__(self, name, value)
        if planned:
            self._check_users()

    def _check_users(self) -> None:
        from deniable.protocols.thresh.power import users_needed

        least = users_needed(self, yes=1.0)
        if self.n < least:
            why = "with fewer not even a unanimous vote is sure to be heard"
            raise InvalidArgument("n", self.n, f"at least {least:,} ({why})")

    # ---- the integers of the device

    @cached_property
    def vote_keep(self) -> int:
        """The probability, out of 2**64, that a vote is sent as it is meant."""
        return kept_below(Fraction(self.epsilon) * Fraction(self.vote_share) / (2 * self.votes))

    @cached_property
    def estimate_keep(self) -> int:
        """The probability, out of 2**64, that a bit is sent as it is."""
        return kept_below(Fraction(self.epsilon) * (1 - Fraction(self.vote_share)) / self.updates)

    def gap(self, epoch: int) -> int:
        """The difference of counts that is worth a yes in this epoch; epochs count from 1."""
        return self.gaps[level_of(epoch, self.levels)]

    # ---- the promise

    @cached_property
    def guarantee(self) -> Guarantee:
        """What all votes and estimates of a person reveal together, however long they go on."""
        return Guarantee(
            odds(self.vote_keep) ** (2 * self.votes) * odds(self.estimate_keep) ** self.updates
        )

    def spent(self, epochs: int, updates: int) -> Guarantee:
        """What a person has revealed at most after so many epochs with so many updates.

        One vote an epoch; that of the first is a mere coin, as there is nothing to compare with.
        """
        votes = min(2 * self.votes, max(0, require_int("epochs", epochs, 0, MAX_EPOCHS) - 1))
        collected = min(self.updates, require_int("updates", updates, 0, epochs))
        return Guarantee(odds(self.vote_keep) ** votes * odds(self.estimate_keep) ** collected)

    # ---- the decision of the server

    def chance(self, epoch: int) -> float:
        """How likely a person whose mean did not change says yes: at most so, for every mean."""
        return chance_of_gap(self.gap(epoch), self.samples)

    def yes_rate(self, yes: float) -> float:
        """The expected share of yes among the votes sent, if this share was meant."""
        q = 1 - self.vote_keep / SCALE
        return q + (1 - 2 * q) * yes

    def quorum(self, epoch: int, n: int) -> int:
        """More yes votes than this, of n, are not chance: the server calls an update.

        With no change since the last update, at epoch r, a vote of epoch t is sent as yes with
        probability at most `yes_rate` (`chance`), independently of others; a person who has no vote
        left only lowers it. The exact binomial tail is held below delta / (T (T - 1) / 2), for all
        pairs r < t: whichever epochs the updates fall on, chance calls one with probability delta
        at most.
        """
        from scipy.stats import binom

        tail = self.delta / math.comb(self.epochs, 2)
        return int(binom.isf(tail, n, self.yes_rate(self.chance(epoch))))


def level_of(epoch: int, levels: int) -> int:
    """The gap that applies: 0 in every 2^B-th epoch, B = levels - 1, and B in every odd one."""
    zeros = (epoch & -epoch).bit_length() - 1
    return max(0, levels - 1 - zeros)


def odds(keep: int) -> Fraction:
    """The likelihood ratio of a bit that is kept with probability keep / 2**64."""
    return Fraction(keep, SCALE - keep)


def chance_of_gap(gap: int, samples: int) -> float:
    """P(|X - Y| >= gap) for two counts of ``samples`` bits with one mean, at most.

    X - Y is a sum of ``samples`` steps of -1, 0, 1 that are symmetric, unimodal, and the more
    spread out the nearer the mean is to 1/2; sums inherit that order (Birnbaum 1948). At 1/2,
    X - Y + l is Bin(2 l, 1/2).
    """
    from scipy.stats import binom

    return min(1.0, 2 * float(binom.sf(samples + gap - 1, 2 * samples, 0.5)))


def chance_gaps(epochs: int, samples: int, levels: int) -> tuple[int, ...]:
    """The least gaps at which chance casts `WASTED` yes votes a person, all levels alike."""
    from scipy.stats import binom

    uses = [0] * levels
    for zeros in range(epochs.bit_length()):
        level = max(0, levels - 1 - zeros)
        uses[level] += ((epochs >> zeros) + 1) // 2
    tails = [WASTED / levels / use / 2 for use in uses]
    gaps = [int(binom.isf(tail, 2 * samples, 0.5)) + 1 - samples for tail in tails]
    if gaps[-1] > samples:
        least = math.ceil(-math.log2(tails[-1]) / 2)
        why = "so that a vote is more than chance"
        raise InvalidArgument("samples", samples, f"at least {least} for {epochs} epochs ({why})")
    return tuple(max(1, gap) for gap in gaps)


def published_gaps(epochs: int, samples: int, n: int, delta: float) -> tuple[int, ...]:
    """The gaps of the paper: counts that differ by more than l tau_b, for b = 0..log2 T.

    tau_b = 2 (b + 1) sqrt(ln(12 n T / delta) / (2 l)): with probability 1 - delta / 3 or so nobody
    at all ever votes by chance. That asks for large l: the top level, the only one that votes
    in every epoch, is beyond reach (tau > 1) for l < 2 (log2 T + 1)^2 ln(12 n T / delta).
    """
    step = 2 * math.sqrt(math.log(12 * n * epochs / delta) * samples / 2)
    return tuple(math.floor((b + 1) * step) + 1 for b in range(epochs.bit_length()))
