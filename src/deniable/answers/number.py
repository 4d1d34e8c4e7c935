"""Numbers of a range, encoded on a fine grid that does not depend on the mechanism."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.answers.columns import UNIT, as_doubles, refuse_first
from deniable.arrays import Floats
from deniable.core.domain import SKIPPED, Domain, Key, Label, Purpose
from deniable.errors import InvalidArgument, is_number, require_type

#: The grid has so many bits: ``lo`` is 0 and ``hi`` is 2**FINE.
FINE = 32
GRID = 1 << FINE
#: Encoded value of a skip: the first integer that is none of the grid.
NO_NUMBER = GRID + 1
#: Answers that are encoded at once: what the cache holds.
PIECE = 1 << 13
#: Larger limits, or a range that is narrower beside them, would lose digits to rounding.
MOST_LIMIT = 1e15
LEAST_WIDTH = 2.0**-20
#: A range holds a whole number of steps, up to this.
WHOLE = 1e-9

OUTSIDES = ("clip", "refuse")
#: What a question of a survey file wants to know of numbers, and the tasks that tell it.
WANTS: dict[str, tuple[str, ...]] = {
    "mean": ("mean",),
    "distribution": ("distribution",),
    "both": ("mean", "distribution"),
}


class Number(Domain):
    """A number from ``lo`` to ``hi``, perhaps in steps of ``step`` (1: whole numbers).

    ``outside="clip"`` moves numbers beyond the range to its ends, on the device; ``"refuse"``
    refuses them. With IEEE doubles in this order, x is encoded as v of 0..2**32:
    a = min(max(x, lo), hi); with a step a = lo + floor((a - lo) / step + 0.5) step;
    v = floor((a - lo) / (hi - lo) 2**32 + 0.5), and never above 2**32.
    """

    kind = "number"
    purposes: ClassVar[Mapping[str, Purpose]] = {
        "distribution": Purpose(
            {"wants": "distribution"}, "quantiles, the share of any range, and a less exact mean"
        ),
        "mean": Purpose({"wants": "mean"}, "the mean, as exactly as possible"),
        "both": Purpose({"wants": "both"}, "an exact mean and a rough distribution"),
    }
    noun = "numbers of a range"
    spec_keys = (("lo", "hi", "step", "outside"),)
    keys: ClassVar[Mapping[str, Key]] = {
        "lo": Key(
            lambda lo: _limit("lo", lo),
            needed=True,
            prompt="The smallest possible answer",
            about="Answers beyond the range that you give are moved to its ends, on the device.",
            parse=lambda text: _typed(text),
        ),
        "hi": Key(
            lambda hi: _limit("hi", hi),
            needed=True,
            prompt="The largest possible answer",
            parse=lambda text: _typed(text),
        ),
        "step": Key(
            lambda step: _limit("step", step),
            prompt="The step between answers, such as 1 for whole numbers (empty: any number)",
            parse=lambda text: _typed(text) if text else None,
        ),
        "outside": Key(lambda outside: _outside(outside), default="clip"),
        "unit": UNIT,
        "wants": Key(lambda wants: check_wants(wants), default="distribution", policy=True),
    }
    dtype = np.dtype(np.uint64)
    lo: float
    hi: float
    step: float | None
    outside: str

    def __init__(
        self,
        lo: float,
        hi: float,
        step: float | None = None,
        outside: str = "clip",
        *,
        optional: bool = False,
    ) -> None:
        require_type("optional", optional, bool)
        low, high = _limit("lo", lo), _limit("hi", hi)
        if low >= high:
            raise InvalidArgument("hi", hi, f"above lo = {low:g}")
        if high - low < LEAST_WIDTH * max(abs(low), abs(high)):
            raise InvalidArgument("hi", hi, f"further above lo = {low:g}: 2**-20 of the larger")
        size = None if step is None else _step(step, high - low)
        self._freeze(lo=low, hi=high, step=size, outside=_outside(outside), optional=optional)

    @property
    def skip(self) -> int | None:
        return NO_NUMBER if self.optional else None

    def encode(self, answers: Any) -> NDArray[Any]:
        x, skipped = as_doubles(answers, self.optional)
        if self.outside == "refuse":
            beyond = ~skipped & ((x < self.lo) | (x > self.hi))
            refuse_first(beyond, f"a number from {self.lo:g} to {self.hi:g}", answers)
        encoded = np.empty(len(x), dtype=np.uint64)
        for start in range(0, len(x), PIECE):
            encoded[start : start + PIECE] = self._on_grid(x[start : start + PIECE])
        encoded[skipped] = NO_NUMBER
        return encoded

    def _on_grid(self, x: Floats) -> Floats:
        a = np.minimum(np.maximum(x, self.lo), self.hi)
        if self.step is not None:
            a = self.lo + np.floor((a - self.lo) / self.step + 0.5) * self.step
        v = np.floor((a - self.lo) / (self.hi - self.lo) * float(GRID) + 0.5)
        return np.minimum(v, float(GRID))

    def to_spec(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "optional": self.optional,
            "lo": _plain(self.lo),
            "hi": _plain(self.hi),
            "step": None if self.step is None else _plain(self.step),
            "outside": self.outside,
        }

    def words(self) -> str:
        return f"numbers from {self.lo:.12g} to {self.hi:.12g}"

    def sample(self) -> Sequence[int]:
        places = [0, 1, GRID // 3, GRID // 2, GRID - 1, GRID]
        if self.step is not None:
            places = np.unique(self.encode([self.answer(v) for v in places])).tolist()
        return [*places, *([] if self.skip is None else [self.skip])]

    def answer(self, value: int) -> float | None:
        if value == self.skip:
            return None
        return self.lo + value / GRID * (self.hi - self.lo)

    def guesses(self, above: float | None = None) -> Sequence[Label]:
        """Whether the number is above another one (default: the middle of the range)."""
        limit = (self.lo + self.hi) / 2 if above is None else above
        if not is_number(limit) or not self.lo <= limit < self.hi:
            allowed = f"a number of at least {self.lo:.12g} and below {self.hi:.12g}"
            raise InvalidArgument("above", above, allowed)
        skipped = (SKIPPED,) if self.optional else ()
        return (f"at most {limit:,.12g}", f"above {limit:,.12g}", *skipped)

    @classmethod
    def wanted(cls, table: Mapping[str, Any]) -> tuple[str, ...]:
        key = cls.keys["wants"]
        return WANTS[key.read(table.get("wants", key.default))]

    @classmethod
    def smalls(cls) -> Iterator[Domain]:
        yield cls(0, 1)
        yield cls(-2, 2, 1, optional=True)

    @classmethod
    def look_alikes(cls) -> Iterator[Domain]:
        yield from (cls(0, 1), cls(0, 2), cls(-1, 1), cls(0, 1, 1), cls(0, 1, 0.5))
        yield from (cls(0, 1, outside="refuse"), cls(0, 1, optional=True))

    def __repr__(self) -> str:
        steps = "" if self.step is None else f" in steps of {self.step:.12g}"
        return self.words() + steps


def _limit(name: str, value: Any) -> float:
    if not is_number(value) or not abs(value) <= MOST_LIMIT:
        raise InvalidArgument(name, value, f"a number from -{MOST_LIMIT:g} to {MOST_LIMIT:g}")
    return float(value) + 0.0  # no -0


def _step(step: Any, width: float) -> float:
    size = _limit("step", step)
    steps = width / size if size > 0 else 0.0
    if not 1 - WHOLE <= steps <= GRID or abs(steps - round(steps)) > WHOLE:
        allowed = f"a number above 0 of which hi - lo = {width:g} is a whole multiple"
        raise InvalidArgument("step", step, allowed)
    return size


def _outside(outside: Any) -> str:
    if not isinstance(outside, str) or outside not in OUTSIDES:
        raise InvalidArgument("outside", outside, f"one of {', '.join(OUTSIDES)}")
    return outside


def check_wants(wants: Any) -> str:
    """What a survey wants to know of numbers, if it is something."""
    if not isinstance(wants, str) or wants not in WANTS:
        raise InvalidArgument("wants", wants, f"one of {', '.join(WANTS)}")
    return wants


def _plain(number: float) -> float:
    """As JSON writes it: 24, not 24.0."""
    return int(number) if number.is_integer() else number


def _typed(text: str) -> float:
    try:
        return _plain(_limit("the answer", float(text)))
    except ValueError:
        raise InvalidArgument("the answer", text, "a number") from None
