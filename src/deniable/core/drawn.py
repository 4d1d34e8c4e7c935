"""Draw one branch by public weights, whatever the answer, and report inside it.

One respondent is asked about one branch only, with all of epsilon: a sampled questionnaire, tables
of pairs of questions, the levels of a hierarchy. What a report costs is the most of any branch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Counts
from deniable.core.domain import Domain
from deniable.core.layout import Drawing
from deniable.core.mechanism import Mechanism
from deniable.core.reports import Reports
from deniable.core.stored import Source, StoredReports
from deniable.core.tally import Tally
from deniable.errors import BrokenPromise, InvalidArgument, Unsupported
from deniable.privacy import Guarantee, check_epsilon
from deniable.randomness import Coins, Keystream

#: What the weights of all branches sum to.
WEIGHTS = 1 << 16
MOST_BRANCHES = 4096
#: A weight is so many of the 2**64 words.
_WORDS = 1 << 48


@dataclass(frozen=True)
class Branch:
    """A mechanism that is drawn with probability weight / 65536, and the questions it is about."""

    weight: int
    of: tuple[str, ...]
    mechanism: Mechanism


class Drawn(Mechanism):
    """A report (place, report of that branch); the place is drawn before any answer is looked at.

    Given the place, a report has the law of its branch, so the likelihood ratio is the largest of
    the branches'. Every branch draws as many words: those that it does not need are thrown away.
    Counts are, branch after branch, the number of its reports and then its own counts.
    """

    def __init__(
        self,
        domain: Any,
        epsilon: float,
        branches: Sequence[Branch] | None = None,
        **integers: int | None,
    ) -> None:
        if branches is not None:
            listed = isinstance(branches, Sequence)
            if not listed or not all(isinstance(b, Branch) for b in branches):
                raise InvalidArgument("branches", branches, "a list of `Branch`")
            vars(self)["branches"] = tuple(branches)
            self._check_branches()
        super().__init__(domain, epsilon, **integers)

    @cached_property
    def branches(self) -> tuple[Branch, ...]:
        """The branches that were given, or those that a family derives from its design."""
        raise InvalidArgument("branches", None, "a list of `Branch`")

    def _check_branches(self) -> None:
        weights = [branch.weight for branch in self.branches]
        whole = all(type(weight) is int and weight >= 1 for weight in weights)
        if not 1 <= len(weights) <= MOST_BRANCHES or not whole or sum(weights) != WEIGHTS:
            allowed = f"1 to {MOST_BRANCHES} branches, their weights integers that sum to {WEIGHTS}"
            raise InvalidArgument("branches", weights, allowed)
        for branch in self.branches:
            if branch.mechanism.remembers:
                allowed = "mechanisms that keep no draw: another branch may be drawn next time"
                raise InvalidArgument("branches", branch.mechanism, allowed)
            if not branch.mechanism.on_devices:
                allowed = "mechanisms for devices, not for comparison"
                raise Unsupported("branches", branch.mechanism.name, allowed)

    @abstractmethod
    def seen(self, place: int, values: Any) -> Any:
        """What a branch sees of an encoded answer, or of a column of them."""

    # ---- the channel

    @cached_property
    def _edges(self) -> tuple[int, ...]:
        weights = [branch.weight * _WORDS for branch in self.branches]
        return tuple(accumulate(weights[:-1]))

    @property
    def parts(self) -> tuple[Mechanism, ...]:
        return tuple(branch.mechanism for branch in self.branches)

    @property
    def places(self) -> int:
        return len(self.branches)

    def asks(self, of: tuple[str, ...], coins: Coins) -> tuple[str, ...]:
        return self.branches[coins.pick(self._edges)].of

    def chance(self, place: int) -> float:
        """The probability that a branch is drawn."""
        return self.branches[place].weight / WEIGHTS

    def place_of(self, question: str) -> int:
        """The first branch that is about this question alone."""
        for place, branch in enumerate(self.branches):
            if branch.of == (question,):
                return place
        known = [branch.of[0] for branch in self.branches if len(branch.of) == 1]
        raise InvalidArgument("question", question, f"one of {', '.join(known)}")

    def report(self, value: Any, coins: Coins) -> tuple[int, Any]:
        place = coins.pick(self._edges)
        drawn = self.branches[place].mechanism
        report = drawn.report(self.seen(place, value), coins)
        for _ in range(self.coin_words - 1 - drawn.coin_words):
            coins.choice(1)  # no choice at all, but a word: every branch draws as many
        return place, report

    @cached_property
    def coin_words(self) -> int:
        return 1 + max(branch.mechanism.coin_words for branch in self.branches)

    @cached_property
    def layout(self) -> Drawing:
        return Drawing([branch.mechanism.layout for branch in self.branches])

    @cached_property
    def guarantee(self) -> Guarantee:
        return Guarantee(max(branch.mechanism.once.ratio for branch in self.branches))

    def fill(self, values: NDArray[Any], out: NDArray[Any], keystream: Keystream) -> None:
        words = np.frombuffer(keystream.bytes(8 * len(values)), dtype="<u8")
        places = np.searchsorted(np.array(self._edges, dtype=np.uint64), words, side="right")
        out[:] = 0
        head = self.layout.head
        out[: len(values), :head] = places.astype(self.layout.place.dtype)[:, None].view(np.uint8)
        for place, rows in enumerate(self.layout.rows_of(places)):
            if rows.size:
                drawn = self.branches[place].mechanism
                column = np.empty(-(-len(rows) // 8) * 8, dtype=drawn.dtype)
                seen = self.seen(place, values[rows]).astype(drawn.domain.dtype)
                drawn.fill(seen, column, keystream)
                width = drawn.dtype.itemsize
                flat = column.view(np.uint8).reshape(-1, width)
                out[rows, head : head + width] = flat[: len(rows)]

    # ---- counts

    @property
    def cells(self) -> int:
        return sum(1 + branch.mechanism.cells for branch in self.branches)

    def count(self, data: NDArray[Any]) -> Counts:
        pairs = zip(self.branches, self.layout.parts(data), strict=True)
        counts = [([len(part)], branch.mechanism.count(part)) for branch, part in pairs]
        return np.concatenate([one for pair in counts for one in pair])

    def by_branch(self, counts: Counts) -> list[tuple[int, Counts]]:
        """The number of reports of each branch, and their counts."""
        found, start = [], 0
        for branch in self.branches:
            end = start + 1 + branch.mechanism.cells
            found.append((int(counts[start]), counts[start + 1 : end]))
            start = end
        return found

    def tallies(self, tally: Tally) -> list[Tally]:
        """What each branch would have counted on its own."""
        found = []
        for branch, (n, counts) in zip(self.branches, self.by_branch(tally.counts), strict=True):
            one = Tally.of_counts(branch.mechanism, counts, n)
            one.sources = tally.sources
            found.append(one)
        return found

    def about(self, question: str, source: Source) -> Source:
        if isinstance(source, StoredReports):
            return source.about(question)
        place = self.place_of(question)
        if isinstance(source, Tally):
            return self.tallies(source)[place]
        found = Reports(self.parts[place], self.layout.parts(source.data)[place])
        found.sources = source.sources
        return found

    def possible_counts(self, counts: Counts, n: int) -> bool:
        found = self.by_branch(counts)
        pairs = zip(self.branches, found, strict=True)
        inside = (m >= 0 and branch.mechanism.possible_counts(c, m) for branch, (m, c) in pairs)
        return all(inside) and sum(size for size, _ in found) == n

    # ---- a value that can be shared

    def to_leaf(self) -> dict[str, Any]:
        branches = [
            {"weight": branch.weight, **self._keys(branch), "mechanism": branch.mechanism.to_leaf()}
            for branch in self.branches
        ]
        design = {name: getattr(self, name) for name in self.design}
        return {"name": self.name, "epsilon": self.epsilon, "design": design, "branches": branches}

    @classmethod
    def from_leaf(cls, domain: Domain, leaf: Mapping[str, Any]) -> Self:
        from deniable.core.registry import check_keys, check_number, read_integers

        check_keys("mechanism", leaf, {"name", "epsilon", "design", "branches"})
        design = read_integers(leaf, "design", cls.design, int)
        check_number("epsilon", leaf["epsilon"])
        if allowed := cls.unsuited(domain):
            raise BrokenPromise("domain", domain, allowed)
        try:
            check_epsilon(leaf["epsilon"])
        except InvalidArgument as refused:
            raise BrokenPromise(refused.name, refused.value, refused.allowed) from None
        if not isinstance(leaf["branches"], list):
            raise InvalidArgument("branches", leaf["branches"], "a list of branches")
        branches = cls._read(domain, design, leaf["branches"])
        return cls(domain, leaf["epsilon"], branches, **design)

    @classmethod
    @abstractmethod
    def _read(cls, domain: Domain, design: Mapping[str, int], branches: list[Any]) -> list[Branch]:
        """The branches that a manifest describes."""

    def _keys(self, branch: Branch) -> dict[str, Any]:
        """What the manifest says of a branch beside its weight and mechanism."""
        return {}

    @property
    def _identity(self) -> tuple[Any, ...]:
        return (*super()._identity, self.branches)
