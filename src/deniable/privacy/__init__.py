"""What the mechanisms promise, and the means to check it."""

from deniable.privacy.composition import Parallel, Sequential, parallel, sequential, split
from deniable.privacy.enumeration import Channel, PathCoins, enumerate_reports, exact_channel
from deniable.privacy.guarantee import Guarantee, check_epsilon, exp_below, kept_below
from deniable.privacy.memoised import KeptBit, MemoisedGuarantee

__all__ = [
    "Channel",
    "Guarantee",
    "KeptBit",
    "MemoisedGuarantee",
    "Parallel",
    "PathCoins",
    "Sequential",
    "check_epsilon",
    "enumerate_reports",
    "exact_channel",
    "exp_below",
    "kept_below",
    "parallel",
    "sequential",
    "split",
]
