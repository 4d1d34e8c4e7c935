"""Answers that are listed: one of several, yes or no, or one of some ranges of numbers."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.answers.columns import UNIT, as_doubles
from deniable.core.domain import (
    MAX_INTEGER_LABEL,
    MAX_SIZE,
    SKIPPED,
    Domain,
    Key,
    Label,
    Purpose,
    is_text,
    refuse_what_is_no_column,
    to_list,
)
from deniable.errors import InvalidArgument, require_int, require_type, shorten
from deniable.texts import MOST_ID, require_id, require_text, tidy

MOST_EDGES = 1000
#: The largest number that a double can be.
MOST_NUMBER = int(sys.float_info.max)
#: Answers of a published question.
MOST_ANSWERS = 1 << 16
#: Values that are enumerated one by one; of more, only some.
FEW = 64
#: What is hashed for a skip where answers are hashed: no text has this byte.
SKIP_BYTES = b"\xff"


class Listed(Domain):
    """Values 0..size-1, each with a label; a skip is one more value, the last."""

    noun = "a list of answers"
    is_listed = True
    dtype = np.dtype(np.uint32)
    _size: int

    @property
    def size(self) -> int:
        """The number of values, a skip included."""
        return self._size

    @property
    def short(self) -> str:
        return f"k = {self.size}"

    @property
    def skip(self) -> int | None:
        return self.size - 1 if self.optional else None

    def label(self, index: int) -> Label:
        require_int("index", index, 0, self.size - 1)
        return index if self.labels is None else self.labels[index]

    def sample(self) -> Sequence[int]:
        last = self.size - 1
        return range(self.size) if last < FEW else sorted({0, 1, self.size // 2, last - 1, last})

    def values(self, most: int) -> Sequence[int]:
        return range(self.size) if self.size <= most else ()

    def answer(self, value: int) -> Any:
        return None if value == self.skip else self.label(value)

    @classmethod
    def smalls(cls) -> Iterator[Domain]:
        """Mechanisms for listed answers only see how many there are: plain lists stand for all."""
        yield from (Choice(size) for size in (2, 3, 5))

    @classmethod
    def larges(cls) -> Iterator[Domain]:
        """Sizes whose packed rows fill their words, and sizes whose rows do not."""
        yield from map(Choice, (16, 100, 130))

    @classmethod
    def look_alikes(cls) -> Iterator[Domain]:
        for labels in (["a", "b"], ["a", "b", "c"]):
            yield from map(Choice, (labels, labels[::-1], [*labels[:-1], "x"]))
            yield Choice(len(labels))
            yield Choice(labels, other="b")
            yield Choice(labels, ordered=True)
        yield Choice(["a", "b"], optional=True)
        yield Choice([True, False])
        yield YesNo()
        yield YesNo(optional=True)

    def __len__(self) -> int:
        return self.size


class Choice(Listed):
    """One of the ``answers``, or of 0..k-1 when built from the integer k.

    ``other`` names the answer that stands for everything unknown; without it an unknown answer
    is refused. ``ordered`` says that the answers have an order: "never", "sometimes", "daily".
    """

    kind = "choice"
    spec_keys = (("answers", "ordered", "other"), ("size", "ordered", "other"))
    keys: ClassVar[Mapping[str, Key]] = {
        "answers": Key(
            lambda answers: read_answers(answers),
            needed=True,
            prompt="Answers",
            parse=lambda line: typed_answer(line),
            lines=True,
        ),
        "ordered": Key(lambda ordered: truth("ordered", ordered), default=False),
        "other": Key(lambda other: tidy(other, "none") if isinstance(other, str) else other),
    }
    other: Label | None
    ordered: bool
    #: Without a skip: the answers themselves.
    answers: tuple[Label, ...] | None
    _index: dict[Label, int] | None

    def __init__(
        self,
        answers: int | Iterable[Label],
        other: Label | None = None,
        *,
        ordered: bool = False,
        optional: bool = False,
    ) -> None:
        require_type("ordered", ordered, bool)
        require_type("optional", optional, bool)
        plain = None if isinstance(answers, (int, np.integer)) else checked_labels(answers)
        count = require_int("domain", answers, 2, MAX_SIZE) if plain is None else len(plain)
        texts = None if plain is None else (*plain, *([SKIP_BYTES] if optional else []))
        self._freeze(
            optional=optional,
            ordered=ordered,
            other=None,
            _size=count + optional,
            answers=plain,
            texts=texts,
            labels=(*(plain or range(count)), SKIPPED) if optional else plain,
            _index=None if plain is None else {label: i for i, label in enumerate(plain)},
        )
        if other is not None and not self._knows(other):
            raise InvalidArgument("other", other, f"one of the answers, {self}")
        if optional and SKIPPED in (plain or ()):
            raise InvalidArgument("domain", SKIPPED, "another answer: this one stands for a skip")
        self._freeze(other=other)

    @property
    def is_ordered(self) -> bool:
        return self.ordered

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(map(str, self.answers or ()))

    def encode(self, answers: Any) -> NDArray[Any]:
        refuse_what_is_no_column(answers)
        if self._index is not None:
            return self._encode_labels(to_list(answers))
        if not self.optional:
            return self._encode_integers(answers)
        listed = to_list(answers)
        skipped = np.array([answer is None for answer in listed], dtype=np.bool_)
        filled = [0 if skip else x for x, skip in zip(listed, skipped, strict=True)]
        return np.where(skipped, np.uint32(self.size - 1), self._encode_integers(filled))

    def _knows(self, answer: Any) -> bool:
        if self._index is not None:
            return isinstance(answer, Hashable) and answer in self._index
        return type(answer) is int and 0 <= answer < self._count

    @property
    def _count(self) -> int:
        """The number of answers, without a skip."""
        return self.size - self.optional

    def _encode_integers(self, values: Any) -> NDArray[Any]:
        try:
            array = np.asarray(values)
        except ValueError:  # ragged
            array = np.empty((0, 0))
        if array.ndim != 1 or (len(array) and array.dtype.kind not in "bui"):
            allowed = f"a one-dimensional array of integers of 0..{self._count - 1}, none missing"
            raise InvalidArgument("values", values, allowed)
        array = array.view(np.uint8) if array.dtype.kind == "b" else array
        array = array if array.size else array.astype(np.uint8)
        if array.size and not 0 <= array.min() <= array.max() < self._count:
            unknown = (array < 0) | (array >= self._count)
            if self.other is None:
                self._refuse_first(array, unknown)
            array = np.where(unknown, 0, array).astype(np.int64)
            array[unknown] = self.other
        return array

    def _refuse_first(self, array: NDArray[Any], unknown: NDArray[np.bool_]) -> None:
        position = int(np.argmax(unknown))
        allowed = f"an integer of 0..{self._count - 1}"
        raise InvalidArgument(f"values[{position}]", array[position].item(), allowed)

    def _encode_labels(self, answers: Sequence[Any]) -> NDArray[Any]:
        assert self._index is not None
        try:
            return np.fromiter(map(self._index.__getitem__, answers), np.uint32, len(answers))
        except (KeyError, TypeError):
            return np.array([self._find(i, a) for i, a in enumerate(answers)], dtype=np.uint32)

    def _find(self, position: int, answer: Any) -> int:
        """The index of an answer; ``other`` takes labels that are unknown, not what is missing."""
        assert self._index is not None
        if self._knows(answer):
            return self._index[answer]
        if answer is None and self.optional:
            return self.size - 1
        if self.other is None or not isinstance(answer, (str, int)):
            raise InvalidArgument(f"values[{position}]", answer, f"one of {self}")
        return self._index[self.other]

    def to_spec(self) -> dict[str, Any]:
        answers: dict[str, Any] = (
            {"size": self._count} if self.answers is None else {"answers": list(self.answers)}
        )
        named = {"ordered": self.ordered, "other": self.other}
        return {"kind": self.kind, "optional": self.optional, **answers, **named}

    @classmethod
    def _from_spec(cls, spec: Mapping[str, Any]) -> Domain:
        answers = spec["size"] if "size" in spec else spec["answers"]
        if type(answers) is not (int if "size" in spec else list):
            raise InvalidArgument("domain", spec, "an integer 'size' or a list of 'answers'")
        named = {name: spec[name] for name in ("other", "ordered", "optional")}
        return cls(answers, **named)

    def require_publishable(self) -> None:
        if self.answers is None:
            raise InvalidArgument("size", self.size, "a list of answers where it is published")
        if len(self.answers) > MOST_ANSWERS:
            raise InvalidArgument("answers", len(self.answers), f"at most {MOST_ANSWERS}")
        for answer in self.answers:
            require_id("answers", answer)

    def words(self) -> str:
        return f"{self._count} answers"

    @property
    def _identity(self) -> tuple[Any, ...]:
        """1 == True in Python, but not in JSON."""
        types = None if self.answers is None else tuple(map(type, self.answers))
        return (self.size, self.answers, types, self.other, self.ordered, self.optional)

    def __repr__(self) -> str:
        answers = f"0..{self._count - 1}" if self.answers is None else shorten([*self.answers])
        return answers if self.other is None else f"{answers} (others as {self.other!r})"


class YesNo(Listed):
    """Yes or no: True is 0, False is 1; the words "yes" and "no" are taken, too."""

    kind = "yes/no"
    noun = "yes or no"
    answers = ("yes", "no")

    def __init__(self, *, optional: bool = False) -> None:
        require_type("optional", optional, bool)
        skipped = ([SKIPPED], [SKIP_BYTES]) if optional else ([], [])
        labels, texts = ((*self.answers, *extra) for extra in skipped)
        self._freeze(optional=optional, _size=len(labels), labels=labels, texts=texts)

    @property
    def ids(self) -> tuple[str, ...]:
        return self.answers

    def encode(self, answers: Any) -> NDArray[Any]:
        refuse_what_is_no_column(answers)
        if isinstance(answers, np.ndarray) and answers.dtype.kind == "b":
            return (~answers).view(np.uint8)
        listed = to_list(answers)
        return np.fromiter((self._index(*one) for one in enumerate(listed)), np.uint8, len(listed))

    def _index(self, place: int, answer: Any) -> int:
        if isinstance(answer, (bool, np.bool_)):
            return 0 if answer else 1
        if isinstance(answer, str) and answer in self.answers:
            return self.answers.index(answer)
        if answer is None and self.optional:
            return self.size - 1
        raise InvalidArgument(f"values[{place}]", answer, "True or False, or one of ['yes', 'no']")

    def to_spec(self) -> dict[str, Any]:
        return {"kind": self.kind, "optional": self.optional}

    def words(self) -> str:
        return "yes or no"

    @classmethod
    def smalls(cls) -> Iterator[Domain]:
        yield cls()
        yield cls(optional=True)


class Bins(Listed):
    """Numbers, counted in the ranges between ``edges``: below the first, ..., from the last on.

    The value of x is how many edges are at most x.
    """

    kind = "number"
    purposes: ClassVar[Mapping[str, Purpose]] = {
        "groups": Purpose({}, "the shares of groups that you name, such as 18 to 30")
    }
    noun = "ranges of numbers"
    spec_keys = (("edges",),)
    keys: ClassVar[Mapping[str, Key]] = {
        "edges": Key(
            lambda edges: check_edges(edges),
            needed=True,
            prompt="Limits of the groups, ascending (such as 15 30)",
            about="Numbers are counted in groups, such as below 15, 15 to 30, 30 or more.",
            parse=lambda text: _typed_edges(text),
        ),
        "unit": UNIT,
    }
    edges: tuple[float, ...]

    def __init__(self, edges: Sequence[float], *, optional: bool = False) -> None:
        require_type("optional", optional, bool)
        checked = check_edges(edges)
        names = (*bin_names(checked), *([SKIPPED] if optional else []))
        texts = (*names[: len(checked) + 1], *([SKIP_BYTES] if optional else []))
        self._freeze(edges=checked, optional=optional, _size=len(names), labels=names, texts=texts)

    @property
    def is_ordered(self) -> bool:
        return True

    def encode(self, answers: Any) -> NDArray[Any]:
        numbers, skipped = as_doubles(answers, self.optional)
        bins = np.searchsorted(np.array(self.edges, dtype=np.float64), numbers, side="right")
        return np.where(skipped, self.size - 1, bins).astype(np.uint32)

    def answer(self, value: int) -> float | None:
        """The least number of a range, and one below the first edge."""
        if value == self.skip:
            return None
        return self.edges[value - 1] if value else self.edges[0] - max(1.0, abs(self.edges[0]))

    def to_spec(self) -> dict[str, Any]:
        return {"kind": self.kind, "optional": self.optional, "edges": list(self.edges)}

    def words(self) -> str:
        return f"{len(self.edges) + 1} ranges of numbers"

    @classmethod
    def smalls(cls) -> Iterator[Domain]:
        yield cls([0.5])
        yield cls([5, 6.5], optional=True)


# ---- checks


def read_answers(answers: Any) -> list[str]:
    """The answers of a survey file: texts that respondents can read and tell apart."""
    texts = isinstance(answers, list) and all(isinstance(answer, str) for answer in answers)
    if not texts or len(set(answers)) < 2:
        raise InvalidArgument("answers", answers, "a list of at least two different texts")
    check_answers(answers)
    return [tidy(answer, "none") for answer in answers]


def check_answers(answers: Sequence[str]) -> None:
    """Refuse what respondents could not read, or could not tell apart."""
    seen = set()
    for answer in answers:
        require_text("an answer", answer)
        if answer != answer.strip():
            raise InvalidArgument("an answer", answer, "text without blanks around it")
        if (looks := tidy(answer, "none")) in seen:
            raise InvalidArgument("an answer", answer, "listed only once")
        if len(looks) > MOST_ID:
            raise InvalidArgument("an answer", answer, f"text of at most {MOST_ID} characters")
        seen.add(looks)


def check_edges(edges: Any) -> tuple[float, ...]:
    """Finite numbers that ascend, also when they are written with 12 digits.

    Answers meet them as doubles, so an integer that no double holds becomes the nearest one.
    """
    numbers = isinstance(edges, Sequence) and all(type(edge) in (int, float) for edge in edges)
    finite = numbers and all(abs(edge) <= MOST_NUMBER for edge in edges)
    if not finite or not 1 <= len(edges) <= MOST_EDGES:
        raise InvalidArgument("edges", edges, f"1 to {MOST_EDGES} finite numbers")
    pairs = itertools.pairwise(edges)
    if not all(low < high and f"{low:.12g}" != f"{high:.12g}" for low, high in pairs):
        raise InvalidArgument("edges", edges, "ascending, and different in their first 12 digits")
    # No -0: canonical JSON writes it as 0, and names of ranges are hashed.
    return tuple((edge if edge == float(edge) else float(edge)) + 0 for edge in edges)


def bin_names(edges: Sequence[float]) -> list[str]:
    """The bins in words: numbers below the first edge, between two, from the last on."""
    words = [f"{edge:.12g}" for edge in edges]
    between = [f"{low} to {high}" for low, high in itertools.pairwise(words)]
    return [f"below {words[0]}", *between, f"{words[-1]} or more"]


def typed_answer(line: str) -> str:
    """An answer as somebody types it."""
    check_answers([line])
    return line


def _typed_edges(text: str) -> list[float]:
    """Limits as somebody types them: ``15 30`` or ``15, 30``."""
    try:
        numbers = [float(part) for part in text.replace(",", " ").split()]
    except ValueError:
        raise InvalidArgument("the answer", text, "numbers") from None
    return [int(edge) if edge.is_integer() else edge for edge in check_edges(numbers)]


def truth(name: str, value: Any) -> bool:
    """The value, if it is true or false."""
    if not isinstance(value, bool):
        raise InvalidArgument(name, value, "true or false")
    return value


def checked_labels(answers: Any) -> tuple[Label, ...]:
    """A list of labels: at least two, which read differently."""
    unordered = isinstance(answers, (str, bytes, Mapping, Set))
    if unordered or not isinstance(answers, Iterable) or len(getattr(answers, "shape", (0,))) != 1:
        raise InvalidArgument("domain", answers, "an integer of at least 2 or a list of labels")
    labels = tuple(_plain_label(label) for label in to_list(answers))
    different = min(len(set(labels)), len({str(label) for label in labels}))
    if len(labels) < 2 or different < len(labels):
        raise InvalidArgument("domain", list(labels), "at least two labels that read differently")
    return labels


def _plain_label(label: Any) -> Label:
    """The label as a Python str, bool or int (enums and NumPy scalars too) that JSON can carry."""
    if is_text(label):
        return str.__str__(label)
    if isinstance(label, (bool, np.bool_)):
        return bool(label)
    if isinstance(label, (int, np.integer)) and abs(int(label)) < MAX_INTEGER_LABEL:
        return int(label)
    raise InvalidArgument("domain", label, "made of labels that are text or integers")
