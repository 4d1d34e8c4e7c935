"""Numbers of a range: mechanisms for their means, and for their distributions."""

from deniable.mechanisms.numbers.base import Binary, Moments, NumberMechanism
from deniable.mechanisms.numbers.binned import Binned
from deniable.mechanisms.numbers.drr import DRR
from deniable.mechanisms.numbers.haar import Haar
from deniable.mechanisms.numbers.hh import HH
from deniable.mechanisms.numbers.lattice import Duchi, Laplace
from deniable.mechanisms.numbers.ldrr import LDRR
from deniable.mechanisms.numbers.window import HM, PM, SW, PMSub, Window

__all__ = [
    "DRR", "HH", "HM", "LDRR", "PM", "SW", "Binary", "Binned", "Duchi", "Haar", "Laplace",
    "Moments", "NumberMechanism", "PMSub", "Window",
]  # fmt: skip
