"""The answers to several questions together: what a crossing or a drawn questionnaire sees."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.answers.number import Number
from deniable.answers.text import Text
from deniable.core.domain import Domain, DomainLike, Label
from deniable.errors import InvalidArgument

#: Combinations of samples that are enumerated; of more, those that differ in one part.
FEW = 256


class Several(Domain):
    """A tuple of answers, one for each of the named ``parts``, in their order.

    A column is a mapping or a table with a column for each part, or a list of mappings. Encoded
    answers are records, one field for each part.
    """

    kind = "several"
    noun = "several questions"
    in_surveys = False
    spec_keys = (("parts",),)
    parts: dict[str, Domain]

    def __init__(self, parts: Mapping[str, DomainLike]) -> None:
        if not isinstance(parts, Mapping) or not parts:
            raise InvalidArgument("parts", parts, "a mapping from names to domains")
        for name in parts:
            if not isinstance(name, str) or not name:
                raise InvalidArgument("parts", name, "named, each with a text")
        found = {name: Domain.of(part) for name, part in parts.items()}
        self._freeze(parts=found, dtype=np.dtype([(n, part.dtype) for n, part in found.items()]))

    def encode(self, answers: Any) -> NDArray[Any]:
        columns = self._columns(answers)
        found = {}
        for name, part in self.parts.items():
            try:
                found[name] = part.encode(columns[name])
            except InvalidArgument as refused:
                raise refused.at(f"{name}: {refused.name}") from None
        if len({len(column) for column in found.values()}) > 1:
            raise InvalidArgument("values", list(found), "columns of the same length")
        records = np.empty(len(next(iter(found.values()))), dtype=self.dtype)
        for name, column in found.items():
            records[name] = column
        return records

    def _columns(self, answers: Any) -> Any:
        """Something with a column of answers under each name."""
        listed = isinstance(answers, Sequence) and not isinstance(answers, (str, bytes))
        if listed and all(isinstance(one, Mapping) for one in answers):
            self._require([name for one in answers for name in one] if answers else [*self.parts])
            return {name: [self._of(one, name) for one in answers] for name in self.parts}
        names = getattr(answers, "column_names", getattr(answers, "columns", None))
        if isinstance(answers, Mapping):
            names = list(answers)
        elif isinstance(answers, np.ndarray):
            names = answers.dtype.names
        if names is None or isinstance(answers, Set):
            allowed = f"a table or a list of mappings with {', '.join(self.parts)}"
            raise InvalidArgument("values", type(answers), allowed)
        self._require(list(names))
        return answers

    def _require(self, names: Sequence[str]) -> None:
        if missing := [name for name in self.parts if name not in names]:
            raise InvalidArgument("values", missing, "complete: these have no answers")

    @staticmethod
    def _of(one: Mapping[str, Any], name: str) -> Any:
        if name not in one:
            raise InvalidArgument("values", name, "complete: this one has no answer")
        return one[name]

    def to_spec(self) -> dict[str, Any]:
        parts = [{"name": name, **part.to_spec()} for name, part in self.parts.items()]
        return {"kind": self.kind, "optional": False, "parts": parts}

    @classmethod
    def _from_spec(cls, spec: Mapping[str, Any]) -> Domain:
        parts = spec["parts"]
        named = isinstance(parts, list) and all(
            isinstance(part, Mapping) and isinstance(part.get("name"), str) for part in parts
        )
        if not named or len({part["name"] for part in parts}) < len(parts):
            raise InvalidArgument("parts", parts, "a list of domains with different names")
        return cls({part["name"]: Domain.from_spec(_unnamed(part)) for part in parts})

    def require_publishable(self) -> None:
        raise InvalidArgument("kind", self.kind, "that of one question where it is published")

    def words(self) -> str:
        return f"{len(self.parts)} questions"

    def guesses(self, above: float | None = None) -> Sequence[Label]:
        allowed = "about one question, such as the mechanism of a branch"
        raise InvalidArgument("mechanism", self, allowed)

    def sample(self) -> Sequence[tuple[Any, ...]]:
        samples = [part.sample() for part in self.parts.values()]
        if math.prod(map(len, samples)) <= FEW:
            return list(product(*samples))
        first = tuple(sample[0] for sample in samples)
        others = (
            (*first[:place], value, *first[place + 1 :])
            for place, sample in enumerate(samples)
            for value in sample[1:]
        )
        return [first, *others]

    def values(self, most: int) -> Sequence[tuple[Any, ...]]:
        each = [part.values(most) for part in self.parts.values()]
        return list(product(*each)) if math.prod(map(len, each)) <= most else ()

    def answer(self, value: tuple[Any, ...]) -> dict[str, Any]:
        parts = zip(self.parts.items(), value, strict=True)
        return {name: part.answer(one) for (name, part), one in parts}

    @classmethod
    def smalls(cls) -> Iterator[Domain]:
        yield cls({"a": 2, "b": 3})
        yield cls({"a": Number(0, 1, optional=True), "b": 2})

    @classmethod
    def larges(cls) -> Iterator[Domain]:
        yield cls({"a": 16, "b": Number(0, 24, 0.25, optional=True), "c": 300, "d": Text()})
        yield cls({f"q{number}": 2 for number in range(12)})

    @classmethod
    def look_alikes(cls) -> Iterator[Domain]:
        yield from (cls({"a": 2, "b": 3}), cls({"b": 2, "a": 3}), cls({"b": 3, "a": 2}))
        yield from (cls({"a": 2, "c": 3}), cls({"a": 2, "b": 4}), cls({"a": 2}))

    @property
    def _identity(self) -> tuple[Any, ...]:
        return tuple(self.parts.items())

    def __repr__(self) -> str:
        return ", ".join(f"{name}: {part!r}" for name, part in self.parts.items())


def _unnamed(part: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key != "name"}
