"""What all reports of one respondent tell: the exact law of whole histories of answers.

The shipped steps of a mechanism (`begin`, `key`, `memoise`, `instant`) and the rule by which a memo
gives out keys (`Memory.always`) are run through every branch. Given what a device began with, the
kept draws are independent, and so are the reports made from them: so the law of a history is a
sum of products of these parts, in integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import groupby, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.device.memo import Memory
from deniable.mechanisms.two_step.memoised import Memoised
from deniable.privacy.enumeration import enumerate_reports
from deniable.randomness import SCALE, Coins

#: The index of an answer in each round.
History = tuple[int, ...]
#: A weight for each sequence of reports, one axis a round.
Weights = NDArray[Any]


def worst_histories(
    m: Memoised, rounds: int, changes: int, values: Sequence[int] | None = None
) -> Fraction | None:
    """The largest likelihood ratio of two histories that an epsilon covers; None: infinite.

    Histories are of ``values`` (default: all of the domain). What the device began with is taken
    as known: the values have no part in it.
    """
    known, most = range(m.domain.size) if values is None else values, changes + 1
    histories = sorted(product(known, repeat=rounds), key=partial(pattern, most))
    groups = [list(group) for _, group in groupby(histories, key=partial(pattern, most))]
    worst = Fraction(1)
    for begun in _law(m.begin, m.begin_words):
        device = Device(m, begun, most, tuple(known))
        for group in groups:
            found = _ratio([device.law(history) for history in group])
            if found is None:
                return None
            worst = max(worst, found)
    return worst


def pattern(most: int, history: Sequence[int]) -> tuple[int, ...]:
    """Which rounds have equal answers: two histories are covered if this is the same in both.

    Answers that are not among the ``most`` first ones are never reported; with one key, nothing
    but the first answer is.
    """
    if most == 1:
        return ()
    first = list(dict.fromkeys(history))[:most]
    return tuple(first.index(v) if v in first else -1 for v in history)


@dataclass(frozen=True)
class Device:
    """A device that has begun, and may use ``most`` keys."""

    mechanism: Memoised
    begun: Any
    most: int
    #: All that may be answered.
    values: tuple[int, ...]

    def law(self, history: History) -> Weights:
        """The weight of every sequence of reports."""
        sequences = _law(partial(self._keys, history), len(history))
        parts = [weight * self._reports(keys) for keys, weight in sequences.items()]
        return np.asarray(np.sum(parts, axis=0))

    def _keys(self, history: History, coins: Coins) -> tuple[int, ...]:
        """The keys that the reports are made from."""
        memory, keys = Memory(b"", self.most), []
        for value in history:
            keys.append(memory.always(self.mechanism.key(self.begun, value), coins))
            memory.use(keys[-1])
        return tuple(keys)

    def _reports(self, keys: tuple[int, ...]) -> Weights:
        """The weights of the reports that these keys lead to, in the order of the rounds.

        A key that is used again draws nothing; its words count all the same, for one scale.
        """
        again = len(keys) - len(set(keys))
        weights: Weights = np.array(SCALE ** (again * self.mechanism.memoise_words), dtype=object)
        rounds: list[int] = []
        for key in dict.fromkeys(keys):
            own = [place for place, other in enumerate(keys) if other == key]
            weights = np.multiply.outer(weights, self._of_key(key, len(own)))
            rounds += own
        return weights.transpose(np.argsort(rounds))

    def _of_key(self, key: int, reports: int) -> Weights:
        """The weights of some reports made from the draw that is kept for a key."""
        table = self._instants
        chances = self._kept[key]
        weights = np.array([chances.get(kept, 0) for kept in table], dtype=object)
        rows = np.array(list(table.values()), dtype=object)
        shape = (rows.shape[1],) * reports
        joint = np.ones((len(rows), 1), dtype=object)
        for _ in range(reports):
            joint = (joint[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
        return (weights @ joint).reshape(shape)

    @cached_property
    def _kept(self) -> dict[int, dict[Any, int]]:
        """The law of what is kept, for each key."""
        m = self.mechanism
        keys = {m.key(self.begun, value) for value in self.values}
        words = m.memoise_words
        return {key: _law(partial(m.memoise, self.begun, key), words) for key in keys}

    @cached_property
    def _instants(self) -> dict[Any, list[int]]:
        """A row for each draw that can be kept: the weights of all reports."""
        kept = dict.fromkeys(draw for law in self._kept.values() for draw in law)
        m = self.mechanism
        made = {draw: partial(m.instant, self.begun, draw) for draw in kept}
        laws = {draw: _law(step, m.instant_words) for draw, step in made.items()}
        reports = dict.fromkeys(report for law in laws.values() for report in law)
        return {draw: [law.get(report, 0) for report in reports] for draw, law in laws.items()}


def _law(step: Callable[[Coins], Any], words: int) -> dict[Any, int]:
    """Every outcome of a step that draws so many words, with its integer weight."""
    chances = enumerate_reports(lambda _, coins: step(coins), 0)
    weights = {outcome: chance * SCALE**words for outcome, chance in chances.items()}
    return {outcome: weight.numerator // weight.denominator for outcome, weight in weights.items()}


def _ratio(laws: Sequence[Weights]) -> Fraction | None:
    """The largest ratio of the weights of one sequence of reports under two laws."""
    table = np.array([law.ravel() for law in laws], dtype=object)
    best = (1, 1)
    for high, low in zip(table.max(axis=0), table.min(axis=0), strict=True):
        if high and not low:
            return None
        if high * best[1] > best[0] * low:
            best = high, low
    return Fraction(*best)
