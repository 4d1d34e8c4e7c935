"""The contract of engines: read each piece of some files, and merge what was read.

A piece may be read more than once, by another thread, process or machine: tasks are retried, and
slow ones are started again elsewhere. So a job has no effects but its result, or only such that
twice is the same as once; results name the pieces that they are made of, and a piece that would
count twice, or not at all, is refused here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from deniable.engines.files import Piece
from deniable.errors import CorruptData

Value = TypeVar("Value")


class Job(ABC, Generic[Value]):
    """What is made of a piece, and how two results become one.

    Jobs and their results travel to other machines: both can be pickled.
    """

    @abstractmethod
    def read(self, piece: Piece) -> Value:
        """The result of one piece; the same for the same piece, however often it is read."""

    @abstractmethod
    def merge(self, one: Value, other: Value) -> Value:
        """The result of the pieces of both; ``one`` may be changed. Associative and commutative."""


@dataclass(frozen=True)
class Partial(Generic[Value]):
    """The result of some pieces, which are named by their positions."""

    pieces: frozenset[int]
    value: Value

    def merge(self, other: Partial[Value], job: Job[Value]) -> Partial[Value]:
        """The result of both, unless they share a piece."""
        if twice := self.pieces & other.pieces:
            raise CorruptData(f"an engine returned piece {min(twice)} of a job more than once")
        return Partial(self.pieces | other.pieces, job.merge(self.value, other.value))


#: Told what is done so far: to show it, or to keep it.
Watch = Callable[[Partial[Any]], None]


class Engine(ABC):
    """Where jobs run."""

    @abstractmethod
    def results(
        self, job: Job[Value], pieces: Sequence[tuple[int, Piece]]
    ) -> Iterator[Partial[Value]]:
        """The results of all pieces, one or several at a time, in any order."""

    def run(
        self,
        job: Job[Value],
        pieces: Sequence[Piece],
        *,
        before: Partial[Value] | None = None,
        watch: Watch = lambda done: None,
    ) -> Value:
        """The merged result of all pieces, each of them exactly once.

        ``before`` is what an earlier run had done; ``watch`` is told whenever there is more.
        """
        total = before
        known = frozenset() if total is None else total.pieces
        left = [(i, piece) for i, piece in enumerate(pieces) if i not in known]
        for found in self.results(job, left) if left else ():
            total = found if total is None else total.merge(found, job)
            watch(total)
        if total is None or total.pieces != frozenset(range(len(pieces))):
            done = 0 if total is None else len(total.pieces)
            raise CorruptData(f"an engine returned {done} of the {len(pieces)} pieces of a job")
        return total.value
