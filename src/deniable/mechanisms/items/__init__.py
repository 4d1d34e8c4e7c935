"""Mechanisms for sets of answers: "choose all that apply"."""

from deniable.mechanisms.items.base import ItemMechanism, Law
from deniable.mechanisms.items.jointbits import JointBits
from deniable.mechanisms.items.setselect import SetSelect

__all__ = ["ItemMechanism", "JointBits", "Law", "SetSelect"]
