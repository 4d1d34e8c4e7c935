"""Sets of answers: "choose all that apply"."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.answers.choice import MOST_ANSWERS, checked_labels, read_answers, truth, typed_answer
from deniable.arrays import Bools
from deniable.core.domain import (
    SKIPPED,
    Domain,
    Key,
    Label,
    Purpose,
    in_order,
    refuse_what_is_no_column,
    to_list,
)
from deniable.errors import InvalidArgument, Unshown, require_int, require_type, shorten
from deniable.texts import require_id, tidy

#: Answers of one respondent: an encoded set has so many numbers.
MOST_TICKS = 1024
#: Sets that are enumerated one by one; of more, only some.
FEW = 64
#: What the form offers as "None of these", in the words that people write.
NONES = ("none", "none of these", "none of the above", "none of them")


class Items(Domain):
    """Any of the ``answers`` (or of 0..k-1), up to ``at_most`` of them, or none.

    A column has a list of answers for each respondent, or is a table with a column of zeros and
    ones for each answer. The empty set is an answer like any other. A set is encoded as exactly
    ``at_most`` places of a list: those of its answers in ascending order, filled up with the
    first places after the list. A skip stands in the list as its last item, so it is a set that
    holds nothing else.
    """

    kind = "choices"
    noun = "sets of answers"
    purposes: ClassVar[Mapping[str, Purpose]] = {
        "shares": Purpose({"pairs": False}, "the share of each answer"),
        "pairs": Purpose({"pairs": True}, "also the share of each pair of answers"),
    }
    spec_keys = (("answers", "at_most"), ("size", "at_most"))
    keys: ClassVar[Mapping[str, Key]] = {
        "answers": Key(
            lambda answers: _refuse_none(read_answers(answers)),
            needed=True,
            prompt="Answers",
            parse=lambda line: typed_answer(line),
            lines=True,
        ),
        "at_most": Key(
            lambda at_most: require_int("at_most", at_most, 1, MOST_TICKS),
            prompt="The most answers that a person may tick",
            about="The fewer answers a person may tick, the smaller the error.",
            parse=lambda text: _typed_number(text),
        ),
        "pairs": Key(lambda pairs: truth("pairs", pairs), default=False, policy=True),
    }
    at_most: int
    #: Without a skip: the answers themselves.
    answers: tuple[Label, ...] | None
    _count: int
    _index: dict[Label, int] | None

    def __init__(
        self,
        answers: int | Iterable[Label],
        at_most: int | None = None,
        *,
        optional: bool = False,
    ) -> None:
        require_type("optional", optional, bool)
        plain = None if isinstance(answers, (int, np.integer)) else checked_labels(answers)
        count = require_int("domain", answers, 2, MOST_ANSWERS) if plain is None else len(plain)
        if optional and SKIPPED in (plain or ()):
            raise InvalidArgument("domain", SKIPPED, "another answer: this one stands for a skip")
        wanted = count if at_most is None else at_most
        most = require_int("at_most", wanted, 1, min(count, MOST_TICKS))
        place = np.min_scalar_type(count + optional + most - 1)
        self._freeze(
            optional=optional,
            at_most=most,
            answers=plain,
            dtype=np.dtype([(str(number), place) for number in range(most)]),
            _count=count,
            _index=None if plain is None else {label: i for i, label in enumerate(plain)},
        )

    @property
    def items(self) -> int:
        """The length of the list: the answers, and a skip if there may be one."""
        return self._count + self.optional

    @property
    def names(self) -> Sequence[Label]:
        """The answers, in the order of their places, without a skip."""
        return range(self._count) if self.answers is None else self.answers

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(map(str, self.answers or ()))

    @property
    def skip(self) -> Any:
        return self.padded([self._count]) if self.optional else None

    def padded(self, places: Sequence[int]) -> tuple[int, ...]:
        """A set, as it is encoded, from its places in ascending order."""
        return (*places, *range(self.items, self.items + self.at_most - len(places)))

    def places(self, value: Sequence[int]) -> list[int]:
        """The places of an encoded set, in ascending order."""
        return [place for place in value if place < self.items]

    # ---- columns of sets

    def encode(self, answers: Any) -> NDArray[Any]:
        columns = _table_columns(answers)
        if columns is not None:
            rows, places, n = self._of_table(columns)
        else:
            refuse_what_is_no_column(answers)
            rows, places, n = self._of_lists(to_list(answers))
        sizes = np.bincount(rows, minlength=n)
        if n and sizes.max() > self.at_most:
            first = int(np.argmax(sizes > self.at_most))
            raise InvalidArgument(
                f"values[{first}]", int(sizes[first]), f"at most {self.at_most} answers"
            )
        order = np.lexsort((places, rows))
        rows, places = rows[order], places[order]
        twice = (rows[1:] == rows[:-1]) & (places[1:] == places[:-1])
        if twice.any():
            row = int(rows[1:][twice][0])
            raise InvalidArgument(f"values[{row}]", "an answer twice", "different answers")
        found = self.items + np.arange(self.at_most) - sizes[:, None]
        found[rows, np.arange(len(rows)) - (np.cumsum(sizes) - sizes)[rows]] = places
        return found.astype(self.dtype[0]).view(self.dtype).reshape(n)

    def _of_lists(self, answers: Sequence[Any]) -> tuple[Any, Any, int]:
        """The respondents and the places of all ticks, and the number of respondents."""
        try:
            return self._of_plain_lists(answers)
        except (KeyError, TypeError):  # what is wrong is found one by one; a skip is not
            sets = [self._set(*one) for one in enumerate(answers)]
            return _ticked(sets, chain.from_iterable(sets))

    def _of_plain_lists(self, answers: Sequence[Any]) -> tuple[Any, Any, int]:
        """The same at once, if all are lists of labels that are known."""
        if self._index is None or not set(map(type, answers)) <= {list, tuple, set, frozenset}:
            raise TypeError
        return _ticked(answers, map(self._index.__getitem__, chain.from_iterable(answers)))

    def _set(self, respondent: int, answer: Any) -> list[int]:
        if answer is None and self.optional:
            return [self._count]
        name = f"values[{respondent}]"
        several = isinstance(answer, (Sequence, Set, np.ndarray))
        if not several or isinstance(answer, (str, bytes)) or np.ndim(answer) > 1:
            raise InvalidArgument(name, answer, "a list of answers, which may be empty")
        return [self._place(name, one) for one in to_list(answer)]

    def _place(self, name: str, answer: Any) -> int:
        if self._index is not None:
            if isinstance(answer, Hashable) and answer in self._index:
                return self._index[answer]
        elif type(answer) is int and 0 <= answer < self._count:
            return answer
        raise InvalidArgument(name, answer, f"a list of some of {shorten([*self.names])}")

    def _of_table(self, columns: Any) -> tuple[Any, Any, int]:
        """The same, from a column for each answer; those of a matrix are in their order."""
        given = in_order("values", columns, self.names)
        if len(given) != self._count:
            raise InvalidArgument("values", len(given), f"a table of {self._count} columns")
        found = [_ticks(name, column) for name, column in zip(self.names, given, strict=True)]
        if len({len(ticks) for ticks, _ in found}) > 1:
            raise InvalidArgument("values", columns, "columns of the same length")
        ticks, missing = (np.stack(some, axis=1) for some in zip(*found, strict=True))
        skipped: Bools = np.all(missing, axis=1)
        if (wrong := missing.any(axis=1) & ~(skipped & self.optional)).any():
            place = int(np.argmax(wrong))
            allowed = "a row of zeros and ones" + ", or one that is empty" * self.optional
            raise InvalidArgument(f"values[{place}]", "a cell that is missing", allowed)
        rows, places = np.nonzero(np.column_stack([ticks, skipped[:, None] & self.optional]))
        return rows, places, len(ticks)

    # ---- a domain like others

    def to_spec(self) -> dict[str, Any]:
        listed: dict[str, Any] = (
            {"size": self._count} if self.answers is None else {"answers": list(self.answers)}
        )
        return {
            "kind": self.kind,
            "optional": self.optional,
            **listed,
            "at_most": self.at_most,
        }

    @classmethod
    def _from_spec(cls, spec: Mapping[str, Any]) -> Domain:
        answers = spec["size"] if "size" in spec else spec["answers"]
        if type(answers) is not (int if "size" in spec else list):
            raise InvalidArgument("domain", spec, "an integer 'size' or a list of 'answers'")
        at_most = require_int("at_most", spec["at_most"], 1, MOST_TICKS)
        return cls(answers, at_most, optional=spec["optional"])

    def guesses(self, above: float | None = None) -> Sequence[Label]:
        """Whether some one answer was ticked."""
        if above is not None:
            raise InvalidArgument("above", above, f"left out: the answers are {self.words()}")
        return ("ticked", "not ticked")

    @classmethod
    def wanted(cls, table: Mapping[str, Any]) -> tuple[str, ...]:
        key = cls.keys["pairs"]
        return ("pairs", "shares") if key.read(table.get("pairs", key.default)) else ("shares",)

    def require_publishable(self) -> None:
        if self.answers is None:
            raise InvalidArgument("size", self._count, "a list of answers where it is published")
        if len(self.answers) > MOST_ANSWERS:
            raise InvalidArgument("answers", len(self.answers), f"at most {MOST_ANSWERS}")
        for answer in self.answers:
            require_id("answers", answer)

    def words(self) -> str:
        if self.at_most == self._count:
            return f"any of {self._count} answers"
        return f"up to {self.at_most} of {self._count} answers"

    @property
    def short(self) -> str:
        return f"k = {self._count}, at most {self.at_most}"

    def sample(self) -> Sequence[tuple[int, ...]]:
        if self._sets() <= FEW:
            return self.values(FEW)
        k, m = self._count, self.at_most
        few = [[], [0], [k - 1], [*range(m)], [*range(k - m, k)], [*range((m + 1) // 2)]]
        found = dict.fromkeys(map(self.padded, few))
        return [*found, *([self.skip] if self.optional else [])]

    def values(self, most: int) -> Sequence[tuple[int, ...]]:
        if self._sets() > most:
            return ()
        sizes = range(self.at_most + 1)
        sets = chain.from_iterable(combinations(range(self._count), size) for size in sizes)
        return [*map(self.padded, sets), *([self.skip] if self.optional else [])]

    def _sets(self) -> int:
        """The number of sets, a skip included."""
        return sum(math.comb(self._count, u) for u in range(self.at_most + 1)) + self.optional

    def answer(self, value: Sequence[int]) -> list[Label] | None:
        """The answers of an encoded set; None for a skip."""
        places = self.places(value)
        return None if self._count in places else [self.names[place] for place in places]

    @classmethod
    def smalls(cls) -> Iterator[Domain]:
        yield cls(2)
        yield cls(3, 2)
        yield cls(3, 2, optional=True)

    @classmethod
    def larges(cls) -> Iterator[Domain]:
        """Lists that fill a machine word with what fills up a set, and lists that do not."""
        yield from (cls(10, 3), cls(61, 4), cls(100, 5), cls(12))

    @classmethod
    def look_alikes(cls) -> Iterator[Domain]:
        labels = ["a", "b", "c"]
        yield from (cls(labels), cls(labels[::-1]), cls(["a", "b", "x"]), cls(3))
        yield from (cls(labels, 2), cls(labels, 1), cls([*labels, "d"], 2))
        yield cls(labels, 2, optional=True)

    @property
    def _identity(self) -> tuple[Any, ...]:
        """1 == True in Python, but not in JSON."""
        types = None if self.answers is None else tuple(map(type, self.answers))
        return (self._count, self.answers, types, self.at_most, self.optional)

    def __repr__(self) -> str:
        return f"{self.words()}: {shorten([*self.names])}"


def _table_columns(answers: Any) -> Mapping[Any, Any] | Sequence[Any] | None:
    """The columns of a table by their names, those of a matrix as a list; None for others."""
    if isinstance(answers, Mapping):
        return answers
    if isinstance(answers, np.ndarray) and answers.ndim == 2:
        return [*answers.T]
    names = getattr(answers, "column_names", getattr(answers, "columns", None))
    if names is None or len(getattr(answers, "shape", ())) != 2:
        return None
    return {name: answers[name] for name in names}


def _ticked(sets: Sequence[Any], places: Iterable[int]) -> tuple[Any, Any, int]:
    """The respondents of all ticks, beside their places, and the number of respondents."""
    sizes = np.fromiter(map(len, sets), np.int64, len(sets))
    rows = np.repeat(np.arange(len(sets)), sizes)
    return rows, np.fromiter(places, np.int64, len(rows)), len(sets)


def _ticks(name: Label, column: Any) -> tuple[Bools, Bools]:
    """Which cells of a column of zeros and ones are ticks, and which are missing."""
    cells = np.asarray(column)
    if cells.dtype.kind not in "buif":
        if hasattr(column, "notna"):  # in pandas, NaN and NA are missing, too
            column = column.astype(object).where(column.notna(), None)
        listed = to_list(column)
        known = (np.nan if cell is None else cell for cell in listed)
        plain = all(cell is None or (np.isscalar(cell) and cell in (0, 1)) for cell in listed)
        cells = np.array([*known] if plain else [2.0], dtype=np.float64)
    ticks, missing = cells == 1, cells != cells
    if cells.ndim != 1 or not np.all(ticks | missing | (cells == 0)):
        raise InvalidArgument(f"values[{name!r}]", Unshown(column), "a column of zeros and ones")
    return ticks, missing


def _refuse_none(answers: list[str]) -> list[str]:
    """Refuse answers that say what the empty set says, which the form offers anyway."""
    for answer in answers:
        if tidy(answer, "case") in NONES:
            allowed = "other answers: this one reads like a set without any, which the form offers"
            raise InvalidArgument("answers", answer, f"{allowed} anyway")
    return answers


def _typed_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidArgument("the answer", text, "a whole number") from None
