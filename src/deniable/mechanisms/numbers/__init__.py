"""Numbers of a range: mechanisms for their means, and for their distributions."""

from deniable.mechanisms.numbers.base import Binary, Moments, NumberMechanism
from deniable.mechanisms.numbers.drr import DRR

__all__ = ["DRR", "Binary", "Moments", "NumberMechanism"]
