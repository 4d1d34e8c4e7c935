"""The registry of mechanisms: each is known by its name, once."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from deniable.core.domain import Domain, DomainLike
from deniable.core.mechanism import SPEC_VERSION, Mechanism
from deniable.errors import InvalidArgument, Unsupported

#: Every name leads to its family, also those that a family has beside its own (`Mechanism.also`).
_REGISTRY: dict[str, type[Mechanism]] = {}


def register(family: type[Mechanism]) -> type[Mechanism]:
    """Make a mechanism known by its names; usable as a class decorator."""
    if not isinstance(family, type) or not issubclass(family, Mechanism):
        raise InvalidArgument("family", family, "a subclass of Mechanism")
    for name in (family.name, *vars(family).get("also", ())):
        known = _REGISTRY.setdefault(name, family)
        if known is not family:
            raise InvalidArgument("name", name, f"new; {known} has it already")
    return family


@contextmanager
def registering(*families: type[Mechanism]) -> Iterator[None]:
    """Know some mechanisms for as long as the block runs: for tests."""
    _load()
    for family in families:
        register(family)
    try:
        yield
    finally:
        for name, family in list(_REGISTRY.items()):
            if family in families:
                del _REGISTRY[name]


def mechanisms() -> Mapping[str, type[Mechanism]]:
    """All registered mechanisms by name, in alphabetical order."""
    _load()
    return {name: one for name, one in sorted(_REGISTRY.items()) if name == one.name}


def _load() -> None:
    """The families register themselves when their package is loaded."""
    importlib.import_module("deniable.mechanisms")


def find(name: Any) -> type[Mechanism]:
    """The class registered under ``name``."""
    _load()
    family = _REGISTRY.get(name.lower()) if isinstance(name, str) else None
    if family is None:
        raise Unsupported("mechanism", name, f"one of {', '.join(mechanisms())}")
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


def from_leaf(domain: Domain, leaf: Any) -> Mechanism:
    """The mechanism that `Mechanism.to_leaf` described, for these answers."""
    if not isinstance(leaf, Mapping) or "name" not in leaf:
        raise InvalidArgument("mechanism", leaf, "an object with a name")
    return find(leaf["name"]).from_leaf(domain, leaf)


def from_spec(spec: Any) -> Mechanism:
    """The mechanism that `Mechanism.to_spec` described; refuses one that breaks its own epsilon."""
    if not isinstance(spec, Mapping):
        raise InvalidArgument("spec", spec, "an object")
    check_version(spec.get("deniable"))
    check_keys("spec", spec, {"deniable", "domain", "mechanism"})
    return from_leaf(Domain.from_spec(spec["domain"]), spec["mechanism"])


def check_version(found: Any) -> None:
    """Refuse another version than ours of what is published, sent or kept."""
    if type(found) is int and found == SPEC_VERSION:
        return
    early = " (this was made by version 0.1, which was never released)" if found == 1 else ""
    raise Unsupported("deniable", found, f"the version {SPEC_VERSION}{early}")


def check_keys(name: str, data: Any, keys: set[str]) -> None:
    """Refuse anything but an object with exactly these keys."""
    if not isinstance(data, Mapping) or set(data) != keys:
        raise InvalidArgument(name, data, f"an object with the keys {sorted(keys)}")


def check_number(name: str, value: Any) -> None:
    """Refuse what JSON does not write as a number."""
    if type(value) not in (int, float):
        raise InvalidArgument(name, value, "a number")


def read_integers(
    spec: Mapping[str, Any], part: str, names: tuple[str, ...], kind: type
) -> dict[str, int]:
    """The integers of one part of a spec, written as JSON integers or as decimal strings."""
    given = spec[part]
    if not isinstance(given, Mapping) or set(given) != set(names):
        raise InvalidArgument(part, given, f"an object with the keys {sorted(names)}")
    for name, value in given.items():
        written = "[1-9][0-9]{0,19}" if kind is str else "-?[0-9]{1,16}"
        if type(value) is not kind or not re.fullmatch(written, str(value)):
            allowed = "a decimal string" if kind is str else "a JSON number"
            raise InvalidArgument(name, value, f"an integer, written as {allowed}")
    return {name: int(value) for name, value in given.items()}
