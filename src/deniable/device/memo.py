"""What a respondent's device remembers, so that many reports reveal hardly more than one.

A longitudinal mechanism randomises twice: once for ever for every key (the value, or its hash
cell), and once more for every report. A memo holds what makes the first step the same for ever: 32
secret bytes, from which every permanent answer is derived (docs/memo.md says how). It also
counts the keys in use, for each of them costs the respondent the permanent epsilon once.
"""

from __future__ import annotations

import hmac
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deniable.core.domain import MAX_SIZE
from deniable.errors import BudgetSpent, InvalidArgument, require_int
from deniable.mechanisms.two_step.memoised import Memoised, require_memoised
from deniable.randomness import SCALE, WORD_BYTES, ByteCoins, Coins, Keystream, draw_key

if TYPE_CHECKING:
    from numpy.random import Generator


@dataclass
class Memory:
    """The contents of a memo: the ``number``-th that this respondent began."""

    secret: bytes
    most: int | None = None
    number: int = 1
    keys: set[int] = field(default_factory=set)

    def allows(self, key: int) -> bool:
        """Whether the key is in use, or there is room for it."""
        return key in self.keys or self.most is None or len(self.keys) < self.most

    def always(self, key: int, coins: Coins) -> int:
        """The key, or one in use where there is no room for it; a word is drawn either way."""
        place = coins.choice(max(1, len(self.keys)))
        return key if self.allows(key) else sorted(self.keys)[place]

    def use(self, key: int) -> None:
        """Note a key, if the budget allows it."""
        if not self.allows(key):
            raise BudgetSpent(
                f"{self.most} permanent answers are in use, as many as were declared: "
                "another value is not reported"
            )
        self.keys.add(key)


class Memo(ABC):
    """Repeated reports of one respondent under one mechanism for one collection."""

    def __init__(self, mechanism: Memoised, collection: str) -> None:
        check_bond(mechanism, collection)
        self.mechanism = mechanism
        self.collection = collection
        self._rng: Generator | None = None

    def __repr__(self) -> str:
        return f"<memo of {self.mechanism!r} for {self.collection!r}>"

    @abstractmethod
    def _held(self) -> AbstractContextManager[Memory]:
        """The memory, for this caller alone; what was changed is durable when the block ends."""

    def report(self, value: Any) -> Any:
        """A report of an answer; its key is on record before the report exists.

        Refuses with `BudgetSpent` what would need more permanent answers than `most`.
        """
        m = self.mechanism
        index = int(m.domain.encode([value])[0])
        with self._held() as memory:
            begun = recall_begun(m, memory.secret)
            key = require_int("key", m.key(begun, index), 0, SCALE - 1)
            memory.use(key)
        kept = recall_kept(m, memory.secret, begun, key)
        coins = ByteCoins(Keystream(draw_key(self._rng)).bytes(m.instant_words * WORD_BYTES))
        report = m.instant(begun, kept, coins)
        coins.finish()
        return report

    def report_always(self, index: int, coins: Coins, *, record: bool = True) -> Any:
        """A report whether or not there is budget left, so that silence tells nothing.

        The value with this index, or, where that would need more permanent answers than `most`, one
        of the keys in use, drawn with a word that is always drawn before those of `instant`.
        Without ``record`` it is a preview: its key must be on record before it is sent.
        """
        m = self.mechanism
        with self._held() as memory:
            begun = recall_begun(m, memory.secret)
            own = require_int("key", m.key(begun, index), 0, SCALE - 1)
            key = memory.always(own, coins)
            if record:
                memory.use(key)
        return m.instant(begun, recall_kept(m, memory.secret, begun, key), coins)

    @property
    def most(self) -> int | None:
        """The declared budget: at most so many permanent answers."""
        with self._held() as memory:
            return memory.most

    @property
    def keys_used(self) -> int:
        """The permanent answers in use."""
        with self._held() as memory:
            return len(memory.keys)

    @property
    def spent(self) -> float:
        """The epsilon that this respondent may have spent: keys in use, and all of lost memos."""
        with self._held() as memory:
            used, lost, most = len(memory.keys), memory.number - 1, memory.most
        own = self.mechanism.permanent_guarantee.after(changes=used - 1) if used else 0.0
        return own + lost * self._worst(most) if lost else own

    def _worst(self, most: int | None) -> float:
        """What one memo may have spent: ``most`` keys, or all that there are.

        More keys than a list of answers can have are as good as infinitely many.
        """
        guarantee = self.mechanism.permanent_guarantee
        found = guarantee.after(changes=(SCALE if most is None else most) - 1)
        return found if most or found <= MAX_SIZE * guarantee.epsilon else math.inf


class MemoryMemo(Memo):
    """A memo that lives as long as its process: for simulations and tests."""

    def __init__(
        self,
        mechanism: Memoised,
        collection: str,
        most: int | None = None,
        rng: Generator | None = None,
    ) -> None:
        super().__init__(mechanism, collection)
        self._rng = rng
        self._memory = Memory(draw_key(rng), check_most(most))

    @contextmanager
    def _held(self) -> Iterator[Memory]:
        yield self._memory


def check_bond(mechanism: Memoised, collection: str) -> None:
    """Refuse what a memo cannot be bound to."""
    require_memoised(mechanism)
    if not isinstance(collection, str) or not collection.isprintable() or not collection:
        raise InvalidArgument("collection", collection, "a name that can be printed")


def check_most(most: int | None) -> int | None:
    """``most`` as a number of keys, or None for no limit."""
    return None if most is None else require_int("most", most, 1, SCALE)


def recall_begun(mechanism: Memoised, secret: bytes) -> Any:
    """What the device drew once for ever."""
    coins = _coins(secret, b"deniable memo begin", 0, mechanism.begin_words)
    begun = mechanism.begin(coins)
    coins.finish()
    return begun


def recall_kept(mechanism: Memoised, secret: bytes, begun: Any, key: int) -> Any:
    """The permanent answer of a key."""
    coins = _coins(secret, b"deniable memo keep", key, mechanism.memoise_words)
    kept = mechanism.memoise(begun, key, coins)
    coins.finish()
    return kept


def _coins(secret: bytes, label: bytes, index: int, words: int) -> ByteCoins:
    """Stream ``index`` of AES-256-CTR under HMAC-SHA-256(secret, label)."""
    derived = hmac.digest(secret, label, "sha256")
    return ByteCoins(Keystream(derived, index).bytes(words * WORD_BYTES))
