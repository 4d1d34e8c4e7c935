"""Numbers of a range: mechanisms for their means, and for their distributions."""

from deniable.mechanisms.numbers.base import Moments, NumberMechanism
from deniable.mechanisms.numbers.drr import DRR

__all__ = ["DRR", "Moments", "NumberMechanism"]
