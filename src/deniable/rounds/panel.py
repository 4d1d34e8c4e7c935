"""A panel: many simulated respondents who remember, round after round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.arrays import Bools, Indices, Integers
from deniable.core.reports import Reports
from deniable.errors import InvalidArgument, require_int
from deniable.mechanisms.two_step.memoised import Memoised, require_memoised
from deniable.randomness import Keystream, draw_key

if TYPE_CHECKING:
    from numpy.random import Generator

#: People in a panel; their memos are in memory.
MOST_PEOPLE = 1 << 27


@dataclass
class _Slot:
    """One kept draw a person, for those who are ``known`` here."""

    known: Bools
    keys: NDArray[np.uint64]
    kept: NDArray[Any]


class Panel:
    """The memos of n people, in memory; `privatize` is what they report in a round.

    The law of the reports is that of n devices that never lose their memo. With ``rng`` it is a
    reproducible simulation; without, secure coins.
    """

    def __init__(self, mechanism: Memoised, n: int, rng: Generator | None = None) -> None:
        self.mechanism = require_memoised(mechanism)
        self.n = require_int("n", n, 1, MOST_PEOPLE)
        self._rng = rng
        self._begun = mechanism.begin_all(self.n, self._coins())
        self._slots: list[_Slot] = []

    def privatize(self, values: Any, who: ArrayLike | None = None) -> Reports:
        """The reports of one round; ``who`` are the places of those who answer (default: all)."""
        people = self._people(who)
        answers = self.mechanism.domain.encode(values)
        if answers.size != people.size:
            raise InvalidArgument("values", values, f"one answer for each of {people.size} people")
        begun = self._begun[people]
        keys = self.mechanism.keys_of(begun, answers)
        kept = self._recall(people, begun, keys)
        return Reports(self.mechanism, self.mechanism.instant_all(begun, kept, self._coins()))

    @property
    def keys_used(self) -> Integers:
        """How many draws each person has kept: each of them costs epsilon_inf."""
        used = np.zeros(self.n, dtype=np.int64)
        for slot in self._slots:
            used += slot.known
        return used

    def _coins(self) -> Keystream:
        return Keystream(draw_key(self._rng))

    def _people(self, who: ArrayLike | None) -> Indices:
        if who is None:
            return np.arange(self.n)
        people = np.asarray(who)
        places = people.ndim == 1 and people.dtype.kind in "iu"
        inside = places and (not people.size or 0 <= people.min() <= people.max() < self.n)
        if not inside or np.bincount(people, minlength=1).max() > 1:
            raise InvalidArgument("who", who, f"different places of 0..{self.n - 1}")
        return people.astype(np.int64)

    def _recall(
        self, people: Indices, begun: NDArray[Any], keys: NDArray[np.uint64]
    ) -> NDArray[Any]:
        """What is kept under these keys, drawn now where nothing is."""
        fresh = self.mechanism.memoise_all(begun, keys, self._coins())
        missing = np.ones(len(people), dtype=bool)
        for slot in self._slots:
            found = slot.known[people] & (slot.keys[people] == keys)
            fresh[found] = slot.kept[people[found]]
            missing &= ~found
        self._keep(people[missing], keys[missing], fresh[missing])
        return fresh

    def _keep(self, people: Indices, keys: NDArray[np.uint64], kept: NDArray[Any]) -> None:
        """Put new draws into the first slot that is free for each person."""
        used = self.keys_used[people]
        for number in np.unique(used).tolist():
            if number == len(self._slots):
                self._slots.append(self._empty_slot(kept))
            some, slot = used == number, self._slots[number]
            slot.known[people[some]] = True
            slot.keys[people[some]] = keys[some]
            slot.kept[people[some]] = kept[some]

    def _empty_slot(self, like: NDArray[Any]) -> _Slot:
        kept = np.empty((self.n, *like.shape[1:]), dtype=like.dtype)
        return _Slot(np.zeros(self.n, dtype=bool), np.zeros(self.n, dtype=np.uint64), kept)
