"""The set of answers a question allows: labels, the integers 0..k-1, or any text."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from typing import Any, Self, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InvalidArgument, require_int, shorten
from deniable.texts import tidy

Label: TypeAlias = str | int | bool
DomainLike: TypeAlias = "Domain | int | Iterable[Label]"

#: Values are 32-bit indices, and local hashing needs them distinct modulo 2**31 - 1.
MAX_SIZE = (1 << 31) - 2
#: JSON readers keep integers exact up to here.
MAX_INTEGER_LABEL = 1 << 53
#: The label of what is not among the candidates.
OUTSIDE = "(anything else)"


class Domain:
    """Answers ``labels[0..k-1]``, or 0..k-1 when built from the integer k.

    ``other`` names the answer that stands for everything unknown; without it an unknown answer
    is refused. A domain never changes; equal domains compare and hash equal.
    """

    __slots__ = ("_index", "labels", "other", "size", "texts")
    labels: tuple[Label, ...] | None
    #: What is hashed for each label, where answers are hashed: the label as it is.
    texts: tuple[Label, ...] | None
    size: int
    other: Label | None
    _index: dict[Label, int] | None
    #: What an encoded answer is held in.
    dtype: np.dtype[Any] = np.dtype(np.uint32)

    def __init__(self, answers: int | Iterable[Label], other: Label | None = None) -> None:
        labels = None if isinstance(answers, (int, np.integer)) else _checked_labels(answers)
        size = require_int("domain", answers, 2, MAX_SIZE) if labels is None else len(labels)
        index = None if labels is None else {label: i for i, label in enumerate(labels)}
        fields = {"labels": labels, "texts": labels, "size": size, "_index": index, "other": None}
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        if other is not None and not self._knows(other):
            raise InvalidArgument("other", other, f"one of the answers, {self}")
        object.__setattr__(self, "other", other)

    @classmethod
    def of(cls, answers: Any) -> Self:
        """``answers`` itself if it is a domain, else the domain built from it."""
        return answers if isinstance(answers, cls) else cls(answers)

    def encode(self, values: Any) -> NDArray[Any]:
        """The indices of ``values``: a one-dimensional array of integers of 0..k-1.

        Accepts lists, NumPy arrays, pandas and Polars series, and Arrow arrays.
        """
        _refuse_what_is_no_column(values)
        return self._encode_integers(values) if self._index is None else self._encode_labels(values)

    @property
    def listed(self) -> Sequence[Label]:
        """All answers, in the order of their indices."""
        return range(self.size) if self.labels is None else self.labels

    def label(self, index: int) -> Label:
        """The answer with this index."""
        require_int("index", index, 0, self.size - 1)
        return index if self.labels is None else self.labels[index]

    def to_spec(self) -> dict[str, Any]:
        """The domain as JSON data."""
        answers: dict[str, Any] = (
            {"size": self.size} if self.labels is None else {"labels": list(self.labels)}
        )
        return answers if self.other is None else {**answers, "other": self.other}

    @classmethod
    def from_spec(cls, spec: Any) -> Domain:
        """The domain that `to_spec` described."""
        if isinstance(spec, dict) and spec.get("text") is True:
            return _text_from(spec)
        if not isinstance(spec, dict) or set(spec) - {"other"} not in ({"size"}, {"labels"}):
            raise InvalidArgument("domain", spec, "an object with 'size', 'labels' or 'text'")
        answers = spec["size"] if "size" in spec else spec["labels"]
        if type(answers) is not (int if "size" in spec else list):
            raise InvalidArgument("domain", spec, "an integer 'size' or a list of 'labels'")
        return cls(answers, spec.get("other"))

    def _knows(self, answer: Any) -> bool:
        if self._index is not None:
            return isinstance(answer, Hashable) and answer in self._index
        return type(answer) is int and 0 <= answer < self.size

    def _encode_integers(self, values: Any) -> NDArray[Any]:
        try:
            array = np.asarray(values)
        except ValueError:  # ragged
            array = np.empty((0, 0))
        if array.ndim != 1 or (len(array) and array.dtype.kind not in "bui"):
            allowed = f"a one-dimensional array of integers of 0..{self.size - 1}, none missing"
            raise InvalidArgument("values", values, allowed)
        array = array.view(np.uint8) if array.dtype.kind == "b" else array
        array = array if array.size else array.astype(np.uint8)
        if array.size and not 0 <= array.min() <= array.max() < self.size:
            unknown = (array < 0) | (array >= self.size)
            if self.other is None:
                self._refuse_first(array, unknown)
            array = np.where(unknown, 0, array).astype(np.int64)
            array[unknown] = self.other
        return array

    def _refuse_first(self, array: NDArray[Any], unknown: NDArray[np.bool_]) -> None:
        position = int(np.argmax(unknown))
        allowed = f"an integer of 0..{self.size - 1}"
        raise InvalidArgument(f"values[{position}]", array[position].item(), allowed)

    def _encode_labels(self, values: Any) -> NDArray[Any]:
        assert self._index is not None
        answers = _to_list(values)
        try:
            return np.fromiter(map(self._index.__getitem__, answers), np.uint32, len(answers))
        except (KeyError, TypeError):
            return np.array([self._find(i, a) for i, a in enumerate(answers)], dtype=np.uint32)

    def _find(self, position: int, answer: Any) -> int:
        """The index of an answer; ``other`` takes labels that are unknown, not what is missing."""
        assert self._index is not None
        if self._knows(answer):
            return self._index[answer]
        if self.other is None or not isinstance(answer, (str, int)):
            raise InvalidArgument(f"values[{position}]", answer, f"one of {self}")
        return self._index[self.other]

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a Domain cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a Domain cannot be changed")

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.size if self.labels is None else self.labels, self.other))

    def __len__(self) -> int:
        return self.size

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Domain):
            return NotImplemented
        return self._identity == other._identity

    @property
    def _identity(self) -> tuple[Any, ...]:
        """What makes two domains equal; 1 == True in Python, but not in JSON."""
        kinds = None if self.labels is None else tuple(map(type, self.labels))
        return (type(self), self.size, self.labels, kinds, self.other)

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        answers = f"0..{self.size - 1}" if self.labels is None else shorten(list(self.labels))
        return answers if self.other is None else f"{answers} (others as {self.other!r})"


class Text(Domain):
    """Any text: answers that nobody listed in advance.

    An answer is tidied (`deniable.texts.tidy`) and encoded as a 64-bit number, the first 8 bytes of
    the SHA-256 of its UTF-8 form. Two of a million answers have the same number with probability
    3e-8.
    """

    __slots__ = ()
    dtype: np.dtype[Any] = np.dtype(np.uint64)

    def __init__(self) -> None:
        for name in ("labels", "texts", "other", "_index"):
            object.__setattr__(self, name, None)

    @property
    def size(self) -> int:  # type: ignore[override]
        raise InvalidArgument("domain", self, "a list of answers; give the candidates")

    def encode(self, values: Any) -> NDArray[Any]:
        _refuse_what_is_no_column(values)
        answers = _to_list(values)
        codes: dict[str, int] = {}
        for place, answer in enumerate(answers):
            if not (isinstance(answer, str) and answer in codes):
                codes[answer] = text_code(_tidied(f"values[{place}]", answer))
        return np.fromiter(map(codes.__getitem__, answers), np.uint64, len(answers))

    def to_spec(self) -> dict[str, Any]:
        return {"text": True}

    @property
    def _identity(self) -> tuple[Any, ...]:
        return (Text,)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Text, ())

    def __repr__(self) -> str:
        return "any text"


class Candidates(Domain):
    """Texts that were perhaps answered, and `OUTSIDE`, which stands for all other answers.

    Labels keep the spelling that they were given in; what is hashed is tidied, like answers.
    """

    __slots__ = ()

    def __init__(self, texts: Iterable[str]) -> None:
        _refuse_what_is_no_column(texts, "candidates")
        listed = _to_list(texts)
        tidied = [_tidied(f"candidates[{place}]", text) for place, text in enumerate(listed)]
        if not listed:
            raise InvalidArgument("candidates", listed, "at least one text")
        _refuse_one_answer_twice([OUTSIDE, *listed], [OUTSIDE, *tidied])
        super().__init__([*listed, OUTSIDE])
        object.__setattr__(self, "texts", tuple(tidied))

    def encode(self, values: Any) -> NDArray[Any]:
        raise InvalidArgument("domain", self, "any text where people answer; candidates are asked")

    def to_spec(self) -> dict[str, Any]:
        return {"text": True, "candidates": list((self.labels or ())[:-1])}

    def __repr__(self) -> str:
        return f"{self.size - 1} candidates"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Candidates, ((self.labels or ())[:-1],))


def _text_from(spec: dict[str, Any]) -> Domain:
    """Any text, or candidates among it, as `to_spec` described them."""
    if set(spec) == {"text", "candidates"} and type(spec["candidates"]) is list:
        return Candidates(spec["candidates"])
    if set(spec) != {"text"}:
        raise InvalidArgument("domain", spec, "an object with 'text' and perhaps 'candidates'")
    return Text()


def _refuse_one_answer_twice(texts: Sequence[str], tidied: Sequence[str]) -> None:
    """Reports cannot tell two spellings of one answer apart."""
    first: dict[str, str] = {}
    for text, same in zip(texts, tidied, strict=True):
        if same in first:
            allowed = f"different answers (case and blanks do not count), none of them {OUTSIDE!r}"
            raise InvalidArgument("candidates", [first[same], text], allowed)
        first[same] = text


def _tidied(name: str, text: Any) -> str:
    """What is hashed of a text that somebody typed."""
    if not _is_text(text):
        raise InvalidArgument(name, text, "text that UTF-8 can carry")
    tidied = tidy(text)
    if not tidied:
        raise InvalidArgument(name, text, "text that is more than blanks")
    return tidied


def text_code(text: Label) -> int:
    """The first 8 bytes of the SHA-256 of a text (UTF-8), as a little-endian number."""
    return int.from_bytes(hashlib.sha256(str(text).encode()).digest()[:8], "little")


def text_codes(texts: Sequence[Label]) -> NDArray[np.uint64]:
    """`text_code` of each text."""
    return np.fromiter(map(text_code, texts), np.uint64, len(texts))


def _refuse_what_is_no_column(values: Any, name: str = "values") -> None:
    """A table, a mapping or a set would lose answers or invent them."""
    column = hasattr(values, "__iter__") and len(getattr(values, "shape", (0,))) == 1
    if not column or isinstance(values, (str, bytes, Mapping, Set, np.ma.MaskedArray)):
        raise InvalidArgument(name, values, "a list or array of answers, none missing")


def _checked_labels(answers: Any) -> tuple[Label, ...]:
    unordered = isinstance(answers, (str, bytes, Mapping, Set))
    if unordered or not isinstance(answers, Iterable) or len(getattr(answers, "shape", (0,))) != 1:
        raise InvalidArgument("domain", answers, "an integer of at least 2 or a list of labels")
    labels = tuple(_plain_label(label) for label in _to_list(answers))
    different = min(len(set(labels)), len({str(label) for label in labels}))
    if len(labels) < 2 or different < len(labels):
        raise InvalidArgument("domain", list(labels), "at least two labels that read differently")
    return labels


def _plain_label(label: Any) -> Label:
    """The label as a Python str, bool or int (enums and NumPy scalars too) that JSON can carry."""
    if _is_text(label):
        return str.__str__(label)
    if isinstance(label, (bool, np.bool_)):
        return bool(label)
    if isinstance(label, (int, np.integer)) and abs(int(label)) < MAX_INTEGER_LABEL:
        return int(label)
    raise InvalidArgument("domain", label, "made of labels that are text or integers")


def _is_text(value: Any) -> TypeGuard[str]:
    """Whether it is text that UTF-8 can carry."""
    return isinstance(value, str) and value == value.encode(errors="ignore").decode()


def in_order(name: str, given: Any, labels: Sequence[Label] | None) -> Any:
    """``given`` in the order of ``labels``: aligned where it has labels of its own, else as it is.

    A mapping and a pandas Series have labels; lists, arrays and Polars and Arrow columns have none.
    Without ``labels`` nothing can be aligned: only 0, 1, 2, ... are taken, which say nothing.
    """
    own = own_labels(given)
    if own is None:
        return given
    if labels is None and own != list(range(len(own))):
        raise InvalidArgument(name, own, "without labels here: a list in the right order")
    wanted = own if labels is None else labels
    if faults := _faults(own, wanted):
        raise InvalidArgument(name, given, f"labelled with each answer once, or a list; {faults}")
    places = dict(zip(own, given.values() if isinstance(given, Mapping) else given, strict=True))
    return [places[label] for label in wanted]


def _faults(own: Sequence[Any], wanted: Sequence[Any]) -> str:
    """How labels differ from those that are wanted, in words."""
    times, allowed = Counter(own), set(wanted)
    found = {
        "missing": [label for label in wanted if label not in times],
        "unknown": [label for label in times if label not in allowed],
        "repeated": [label for label in times if times[label] > 1],
    }
    return ", ".join(f"{word}: {shorten(which)}" for word, which in found.items() if which)


def own_labels(given: Any) -> list[Any] | None:
    """The labels of a mapping or a Series; the ``index`` of a list is a method."""
    if isinstance(given, Mapping):
        return list(given)
    index = getattr(given, "index", None)
    one_column = index is not None and not callable(index) and getattr(given, "ndim", 0) == 1
    return list(_to_list(index)) if one_column else None


def _to_list(values: Any) -> Sequence[Any]:
    """Plain Python objects: a NumPy string or an Arrow scalar would not be found among labels."""
    for method in ("to_pylist", "tolist", "to_list"):
        if hasattr(values, method):
            return list(getattr(values, method)())
    return list(values)
