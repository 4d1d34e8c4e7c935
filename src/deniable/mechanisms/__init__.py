"""The mechanisms, and the registry that finds them by name."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from deniable.domain import Domain, DomainLike
from deniable.errors import InvalidArgument
from deniable.mechanisms.base import SPEC_VERSION, Mechanism
from deniable.mechanisms.bit_chains import LOSUE, LOUE, LSOUE, LSUE
from deniable.mechanisms.bitflip import DBitFlip, DBitFlipPM
from deniable.mechanisms.chains import LBLH, LGRR, LOLH
from deniable.mechanisms.direct import BRR, GRR
from deniable.mechanisms.hadamard import HR
from deniable.mechanisms.hashing import BLH, OLH
from deniable.mechanisms.histogram import SHE, THE
from deniable.mechanisms.open import ORAPPOR, ORR, RAPPOR
from deniable.mechanisms.rappor import BasicRAPPOR
from deniable.mechanisms.signs import HRR, SHist
from deniable.mechanisms.sketches import CMS, HCMS
from deniable.mechanisms.subset import SS
from deniable.mechanisms.unary import OUE, SUE, UE

__all__ = [
    "BLH", "BRR", "CMS", "GRR", "HCMS", "HR", "HRR", "LBLH", "LGRR", "LOLH", "LOSUE", "LOUE",
    "LSOUE", "LSUE", "OLH", "ORAPPOR", "ORR", "OUE", "RAPPOR", "SHE", "SS", "SUE", "THE", "UE",
    "BasicRAPPOR", "DBitFlip", "DBitFlipPM", "Mechanism", "SHist",
    "from_spec", "mechanism", "mechanisms", "register",
]  # fmt: skip

_REGISTRY: dict[str, type[Mechanism]] = {}


def register(family: type[Mechanism]) -> type[Mechanism]:
    """Make a mechanism known by its name; usable as a class decorator."""
    if not isinstance(family, type) or not issubclass(family, Mechanism):
        raise InvalidArgument("family", family, "a subclass of Mechanism")
    known = _REGISTRY.setdefault(family.name, family)
    if known is not family:
        raise InvalidArgument("name", family.name, f"new; {known} has it already")
    return family


for _family in (
    BRR, GRR, SUE, OUE, UE, THE, SHE, SS, BLH, OLH, HR, HRR, SHist, BasicRAPPOR, CMS, HCMS,
    ORR, ORAPPOR, RAPPOR, DBitFlip, LGRR, LSUE, LOUE, LSOUE, LOSUE, LBLH, LOLH, DBitFlipPM,
):  # fmt: skip
    register(_family)


def mechanisms() -> Mapping[str, type[Mechanism]]:
    """All registered mechanisms by name."""
    return dict(_REGISTRY)


def find(name: Any) -> type[Mechanism]:
    """The class registered under ``name``."""
    family = _REGISTRY.get(name.lower()) if isinstance(name, str) else None
    if family is None:
        raise InvalidArgument("mechanism", name, f"one of {', '.join(_REGISTRY)}")
    return family


def mechanism(
    name: str, domain: DomainLike, epsilon: float | None = None, **named: Any
) -> Mechanism:
    """A mechanism by name: ``mechanism("oue", 16, epsilon=1.0)``.

    ``epsilon`` is its first budget; longitudinal ones also take epsilon_inf and epsilon_1.
    """
    family: Any = find(name)
    if epsilon is not None:
        named = {family.budgets[0]: epsilon, **named}
    mechanism: Mechanism = family(domain, **named)
    return mechanism


def from_spec(spec: Any) -> Mechanism:
    """The mechanism that `Mechanism.to_spec` described; refuses one that breaks its own epsilon."""
    named = isinstance(spec, Mapping) and "mechanism" in spec
    family = find(spec["mechanism"]) if named else Mechanism
    keys = {"deniable", "mechanism", "domain", *family.budgets, "design", "thresholds"}
    if not named or set(spec) != keys:
        raise InvalidArgument("spec", spec, f"an object with the keys {sorted(keys)}")
    if type(spec["deniable"]) is not int or spec["deniable"] != SPEC_VERSION:
        raise InvalidArgument("deniable", spec["deniable"], f"the spec version {SPEC_VERSION}")
    for name in family.budgets:
        if type(spec[name]) not in (int, float):
            raise InvalidArgument(name, spec[name], "a number")
    integers = {
        **_integers(spec, "design", family.design, int),
        **_integers(spec, "thresholds", family.thresholds, str),
    }
    budgets = (spec[name] for name in family.budgets)
    return family(Domain.from_spec(spec["domain"]), *budgets, **integers)


def _integers(
    spec: Mapping[str, Any], part: str, names: tuple[str, ...], kind: type
) -> dict[str, int]:
    """The integers of one part of a spec, written as JSON integers or as decimal strings."""
    given = spec[part]
    if not isinstance(given, Mapping) or set(given) != set(names):
        raise InvalidArgument(part, given, f"an object with the keys {sorted(names)}")
    for name, value in given.items():
        digits = str(value).removeprefix("-")
        if type(value) is not kind or not re.fullmatch("[0-9]{1,20}", digits):
            raise InvalidArgument(name, value, f"an integer, written as a JSON {kind.__name__}")
    return {name: int(value) for name, value in given.items()}


class _Room(ModuleType):
    """This package is also the public function ``deniable.mechanisms()``: both want the name."""

    def __call__(self) -> Mapping[str, type[Mechanism]]:
        return mechanisms()


sys.modules[__name__].__class__ = _Room
