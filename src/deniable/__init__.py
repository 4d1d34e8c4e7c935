"""Answers anyone can deny, statistics no one can.

``import deniable as dn``, then a mechanism is a value (``dn.OUE(["yes", "no"], epsilon=1.0)``),
reports are made by ``privatize``, counted by ``tally`` and turned into numbers with error bars by
``estimate``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deniable.answers import Bins as Bins
    from deniable.answers import Choice as Choice
    from deniable.answers import Items as Items
    from deniable.answers import Number as Number
    from deniable.answers import Several as Several
    from deniable.answers import Text as Text
    from deniable.answers import YesNo as YesNo
    from deniable.audit.exact.verify import verify as verify
    from deniable.audit.forging.influence import influence as influence
    from deniable.audit.inference.risk import inference_risk as inference_risk
    from deniable.audit.shuffling.shuffled import shuffled as shuffled
    from deniable.collection.client import Client as Client
    from deniable.collection.manifest import Collection as Collection
    from deniable.core.domain import Domain as Domain
    from deniable.core.reports import Reports as Reports
    from deniable.core.tally import Tally as Tally
    from deniable.device.memo import Memo as Memo
    from deniable.device.memo import MemoryMemo as MemoryMemo
    from deniable.device.memo_file import FileMemo as FileMemo
    from deniable.engines import report_files as report_files
    from deniable.engines import spark as spark
    from deniable.engines import tally_files as tally_files
    from deniable.estimation import Estimate as Estimate
    from deniable.estimation import Frequencies as Frequencies
    from deniable.estimation import Numbers as Numbers
    from deniable.estimation import Pairs as Pairs
    from deniable.estimation import Shares as Shares
    from deniable.estimation import combine as combine
    from deniable.estimation.testing import TestResult as TestResult
    from deniable.estimation.testing import mean_test as mean_test
    from deniable.estimation.testing import sample_size as sample_size
    from deniable.ledger import Ledger as Ledger
    from deniable.mechanisms import BLH as BLH
    from deniable.mechanisms import BRR as BRR
    from deniable.mechanisms import CMS as CMS
    from deniable.mechanisms import DRR as DRR
    from deniable.mechanisms import GRR as GRR
    from deniable.mechanisms import HCMS as HCMS
    from deniable.mechanisms import HH as HH
    from deniable.mechanisms import HM as HM
    from deniable.mechanisms import HR as HR
    from deniable.mechanisms import HRR as HRR
    from deniable.mechanisms import LBLH as LBLH
    from deniable.mechanisms import LDRR as LDRR
    from deniable.mechanisms import LGRR as LGRR
    from deniable.mechanisms import LOLH as LOLH
    from deniable.mechanisms import LOSUE as LOSUE
    from deniable.mechanisms import LOUE as LOUE
    from deniable.mechanisms import LSOUE as LSOUE
    from deniable.mechanisms import LSUE as LSUE
    from deniable.mechanisms import OLH as OLH
    from deniable.mechanisms import ORAPPOR as ORAPPOR
    from deniable.mechanisms import ORR as ORR
    from deniable.mechanisms import OUE as OUE
    from deniable.mechanisms import PM as PM
    from deniable.mechanisms import RAPPOR as RAPPOR
    from deniable.mechanisms import SHE as SHE
    from deniable.mechanisms import SS as SS
    from deniable.mechanisms import SUE as SUE
    from deniable.mechanisms import SW as SW
    from deniable.mechanisms import THE as THE
    from deniable.mechanisms import UE as UE
    from deniable.mechanisms import BasicRAPPOR as BasicRAPPOR
    from deniable.mechanisms import DBitFlip as DBitFlip
    from deniable.mechanisms import DBitFlipPM as DBitFlipPM
    from deniable.mechanisms import Duchi as Duchi
    from deniable.mechanisms import Haar as Haar
    from deniable.mechanisms import Joint as Joint
    from deniable.mechanisms import JointBits as JointBits
    from deniable.mechanisms import Laplace as Laplace
    from deniable.mechanisms import Mechanism as Mechanism
    from deniable.mechanisms import PMSub as PMSub
    from deniable.mechanisms import SetSelect as SetSelect
    from deniable.mechanisms import SHist as SHist
    from deniable.mechanisms import Window as Window
    from deniable.mechanisms import from_spec as from_spec
    from deniable.mechanisms import mechanism as mechanism
    from deniable.mechanisms import mechanisms as mechanisms
    from deniable.mechanisms import register as register
    from deniable.mechanisms.questionnaire import Questionnaire as Questionnaire
    from deniable.privacy import Guarantee as Guarantee
    from deniable.privacy import parallel as parallel
    from deniable.privacy import sequential as sequential
    from deniable.privacy import split as split
    from deniable.protocols.thresh import Thresh as Thresh
    from deniable.protocols.thresh import ThreshDevice as ThreshDevice
    from deniable.protocols.thresh import ThreshServer as ThreshServer
    from deniable.rounds.changes import Changes as Changes
    from deniable.rounds.panel import Panel as Panel
    from deniable.rounds.rounds import Rounds as Rounds
    from deniable.rounds.series import Series as Series

__version__ = "0.1.0"

# Loaded on first use: `deniable --help` and a client that answers one question stay light.
_HOMES = {
    "Bins": "answers",
    "Choice": "answers",
    "Items": "answers",
    "Number": "answers",
    "Several": "answers",
    "Text": "answers",
    "YesNo": "answers",
    "Client": "collection.client",
    "Collection": "collection.manifest",
    "Ledger": "ledger",
    "Questionnaire": "mechanisms.questionnaire",
    "inference_risk": "audit.inference.risk",
    "influence": "audit.forging.influence",
    "shuffled": "audit.shuffling.shuffled",
    "verify": "audit.exact.verify",
    "Memo": "device.memo",
    "parallel": "privacy",
    "sequential": "privacy",
    "split": "privacy",
    "FileMemo": "device.memo_file",
    "MemoryMemo": "device.memo",
    "Panel": "rounds.panel",
    "Rounds": "rounds.rounds",
    "Series": "rounds.series",
    "Changes": "rounds.changes",
    "Thresh": "protocols.thresh",
    "ThreshDevice": "protocols.thresh",
    "ThreshServer": "protocols.thresh",
    "Domain": "core.domain",
    "Estimate": "estimation",
    "Frequencies": "estimation",
    "Numbers": "estimation",
    "Pairs": "estimation",
    "Shares": "estimation",
    "TestResult": "estimation.testing",
    "mean_test": "estimation.testing",
    "sample_size": "estimation.testing",
    "Guarantee": "privacy",
    "Reports": "core.reports",
    "Tally": "core.tally",
    "combine": "estimation",
    "report_files": "engines",
    "spark": "engines",
    "tally_files": "engines",
}
_MECHANISMS = (
    "BLH", "BRR", "CMS", "DRR", "GRR", "HCMS", "HH", "HM", "HR", "HRR", "LBLH", "LDRR", "LGRR",
    "LOLH", "LOSUE", "LOUE", "LSOUE", "LSUE", "OLH", "ORAPPOR", "ORR", "OUE", "PM", "RAPPOR", "SHE",
    "SS", "SUE", "SW", "THE", "UE", "BasicRAPPOR", "DBitFlip", "DBitFlipPM", "Duchi", "Haar",
    "Joint", "JointBits", "Laplace", "Mechanism", "PMSub", "SHist", "SetSelect", "Window",
)  # fmt: skip
_HOMES |= dict.fromkeys(_MECHANISMS, "mechanisms")

__all__ = sorted([*_HOMES, "from_spec", "mechanism", "mechanisms", "register"])


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name, "mechanisms" if name in __all__ else None)
    if home is None:
        raise AttributeError(f"module 'deniable' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"deniable.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
