"""Numbers of a range: mechanisms for their means, and for their distributions."""

from deniable.mechanisms.numbers.base import Binary, Moments, NumberMechanism
from deniable.mechanisms.numbers.binned import Binned
from deniable.mechanisms.numbers.drr import DRR
from deniable.mechanisms.numbers.haar import Haar
from deniable.mechanisms.numbers.hh import HH

__all__ = ["DRR", "HH", "Binary", "Binned", "Haar", "Moments", "NumberMechanism"]
