"""THRESH: people vote in private whether the estimate is out of date; only then are all asked.

Joseph, Roth, Ullman and Waggoner, Local Differential Privacy for Evolving Data (2018). The privacy
cost grows with the changes of the truth and not with time. See docs/thresh.md.
"""

from deniable.protocols.thresh.device import ThreshDevice
from deniable.protocols.thresh.plan import Thresh, published_gaps
from deniable.protocols.thresh.power import detection, users_needed, yes_share
from deniable.protocols.thresh.server import Release, ThreshServer
from deniable.protocols.thresh.simulation import SimulatedDevices, bernoulli_counts, simulate

__all__ = [
    "Release",
    "SimulatedDevices",
    "Thresh",
    "ThreshDevice",
    "ThreshServer",
    "bernoulli_counts",
    "detection",
    "published_gaps",
    "simulate",
    "users_needed",
    "yes_share",
]
