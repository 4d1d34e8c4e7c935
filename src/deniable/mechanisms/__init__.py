"""The mechanisms, and the registry that finds them by name."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Mapping
from types import ModuleType

from deniable.core.mechanism import Mechanism
from deniable.core.registry import from_spec, mechanism, mechanisms, register
from deniable.mechanisms.cohorts.open_alphabet import ORAPPOR, ORR, RAPPOR
from deniable.mechanisms.cohorts.sketches import CMS, HCMS
from deniable.mechanisms.hadamard import HR
from deniable.mechanisms.hadamard_signs import HRR, SHist
from deniable.mechanisms.histogram import SHE, THE
from deniable.mechanisms.items import JointBits, SetSelect
from deniable.mechanisms.joint import Joint
from deniable.mechanisms.local_hashing import BLH, OLH
from deniable.mechanisms.numbers import (
    DRR,
    HH,
    HM,
    LDRR,
    PM,
    SW,
    Duchi,
    Haar,
    Laplace,
    PMSub,
    Window,
)  # fmt: skip
from deniable.mechanisms.questionnaire import Questionnaire
from deniable.mechanisms.randomised_response import BRR, GRR
from deniable.mechanisms.subset import SS
from deniable.mechanisms.two_step.bit_chains import LOSUE, LOUE, LSOUE, LSUE
from deniable.mechanisms.two_step.bitflip import DBitFlip, DBitFlipPM
from deniable.mechanisms.two_step.chains import LBLH, LGRR, LOLH
from deniable.mechanisms.two_step.rappor import BasicRAPPOR
from deniable.mechanisms.unary import OUE, SUE, UE

__all__ = [
    "BLH", "BRR", "CMS", "DRR", "GRR", "HCMS", "HH", "HM", "HR", "HRR", "LBLH", "LDRR", "LGRR",
    "LOLH", "LOSUE", "LOUE", "LSOUE", "LSUE", "OLH", "ORAPPOR", "ORR", "OUE", "PM", "RAPPOR", "SHE",
    "SS", "SUE", "SW", "THE", "UE", "BasicRAPPOR", "DBitFlip", "DBitFlipPM", "Duchi", "Haar",
    "Joint", "JointBits", "Laplace", "Mechanism", "PMSub", "Questionnaire", "SHist", "SetSelect",
    "Window", "from_spec", "mechanism", "mechanisms", "register",
]  # fmt: skip

# Every file of this folder and its subfolders registers its families: a new one needs no line here.
for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_module.name)


class _CallableModule(ModuleType):
    """This package is also the public function ``deniable.mechanisms()``: both want the name."""

    def __call__(self) -> Mapping[str, type[Mechanism]]:
        return mechanisms()


sys.modules[__name__].__class__ = _CallableModule
