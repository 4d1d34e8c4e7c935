"""The integers of a channel, each declared once: its range, and how it follows from the others.

``omega = Design(1, lambda m: m.domain.size - 1)`` in the body of a family is all that is said of an
integer, but for ``derive_omega``, which says what suits epsilon best. The constructor, the range,
the spec and equality follow. An integer that is not given is derived when somebody first asks for
it, so that no order of keywords matters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, TypeAlias, overload

from deniable.errors import InvalidArgument, require_int
from deniable.randomness import SCALE

#: A bound, or what computes it from the mechanism.
Bound: TypeAlias = int | Callable[[Any], int]
#: Says what is allowed if an integer within its range does not suit the mechanism.
Rule: TypeAlias = Callable[[Any, int], str | None]


class Integer:
    """One integer of a mechanism."""

    def __init__(
        self, low: Bound, high: Bound, *, default: int | None = None, rule: Rule | None = None
    ) -> None:
        self.low, self.high, self.default, self.rule = low, high, default, rule

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, mechanism: None, owner: type) -> Self: ...

    @overload
    def __get__(self, mechanism: object, owner: type) -> int: ...

    def __get__(self, mechanism: Any, owner: type) -> Self | int:
        """Found only once: afterwards the mechanism has an attribute of this name."""
        if mechanism is None:
            return self
        given = vars(mechanism)["given"].get(self.name)
        value = self._checked(mechanism, self._derived(mechanism) if given is None else given)
        vars(mechanism)[self.name] = value
        return value

    def _derived(self, mechanism: Any) -> int:
        if self.default is not None:
            return self.default
        derived: int = getattr(mechanism, f"derive_{self.name}")()
        return derived

    def _checked(self, mechanism: Any, value: Any) -> int:
        low, high = (x(mechanism) if callable(x) else x for x in (self.low, self.high))
        integer = require_int(self.name, value, low, high)
        allowed = None if self.rule is None else self.rule(mechanism, integer)
        if allowed is not None:
            raise InvalidArgument(self.name, value, allowed)
        return integer


class Design(Integer):
    """An integer that chooses the shape of the channel."""


class Threshold(Integer):
    """A probability out of 2**64."""

    def __init__(self) -> None:
        super().__init__(1, SCALE - 1)


def declared(family: type) -> dict[str, Integer]:
    """The integers of a family by name, those of its bases first."""
    found: dict[str, Integer] = {}
    for base in reversed(family.__mro__):
        found |= {name: one for name, one in vars(base).items() if isinstance(one, Integer)}
    return {name: one for name, one in found.items() if getattr(family, name) is one}
