"""Small two-step families for the tests of memos."""

import hashlib
import json
import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from deniable.answers import Text
from deniable.core.domain import Domain
from deniable.device.memo_file import FileMemo
from deniable.mechanisms.two_step.memoised import Memoised
from deniable.randomness import SCALE


@dataclass(frozen=True)
class Cost:
    """Every key costs epsilon, and there are so many."""

    epsilon: float
    keys: int

    def after(self, reports: int | None = None, changes: int = 0) -> float:
        return min(changes + 1, self.keys) * self.epsilon


@dataclass(frozen=True)
class Toy:
    """What all families share."""

    domain: Domain
    begin_words = 0
    memoise_words = 2
    instant_words = 2

    def begin(self, coins) -> Any:
        return ()

    def key(self, begun, value: int) -> int:
        return value

    @property
    def permanent_guarantee(self) -> Cost:
        return Cost(2.0, SCALE if isinstance(self.domain, Text) else self.domain.size)

    def to_spec(self) -> dict[str, Any]:
        return {"mechanism": type(self).__name__, "domain": self.domain.to_spec()}


Memoised.register(Toy)


class TwiceGRR(Toy):
    """The value is kept with probability 3/4, else replaced; and once more for every report."""

    def _step(self, value, coins):
        drawn = coins.choice(self.domain.size)
        return value if coins.below(3 << 62) else drawn

    def memoise(self, begun, key, coins):
        return self._step(key, coins)

    def instant(self, begun, kept, coins):
        return self._step(kept, coins)


class Telltale(Toy):
    """A report (mark, key, kept) is the very thing that is kept: redrawing cannot hide.

    The mark is drawn at the beginning, so that it names the secret.
    """

    begin_words = 1

    def begin(self, coins):
        return coins.choice(SCALE)

    def memoise(self, begun, key, coins):
        return key, coins.choice(SCALE) ^ coins.choice(SCALE)

    def instant(self, begun, kept, coins):
        coins.choice(2), coins.choice(2)
        return begun, *kept


class Cells(Telltale):
    """Kept by one of three hash cells, not by the value."""

    def key(self, begun, value):
        return (begun + value) % 3

    @property
    def permanent_guarantee(self) -> Cost:
        return Cost(2.0, 3)


TELLTALE = Telltale(Domain(1000))
COLLECTION = "phones 2025"


def enrol(path, most=None, **places) -> FileMemo:
    return FileMemo.enrol(path, TELLTALE, COLLECTION, most, **places)


def open_memo(path, lost="refuse", **places) -> FileMemo:
    return FileMemo(path, TELLTALE, COLLECTION, lost=lost, **places)


def record(path) -> dict[str, Any] | None:
    """What a memo or witness holds, read without the code under test; None if it is unreadable."""
    if not os.path.exists(path):  # noqa: PTH110
        return None
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=rw", uri=True)) as connection:
            [(found, seal)] = connection.execute("SELECT record, seal FROM memo").fetchall()
            if hashlib.sha256(found).digest() == seal:
                return json.loads(found)
    except (sqlite3.Error, ValueError, TypeError):
        pass
    return None
