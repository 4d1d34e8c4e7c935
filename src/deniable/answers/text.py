"""Any text: answers that nobody listed in advance, and the candidates to look for among them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, cast, get_args

import numpy as np
from numpy.typing import NDArray

from deniable.answers.choice import SKIP_BYTES, Listed
from deniable.core.domain import (
    SKIPPED,
    Domain,
    Key,
    Label,
    is_text,
    refuse_what_is_no_column,
    to_list,
)
from deniable.errors import InvalidArgument, Unshown, require_int, require_type
from deniable.texts import Fold, has_controls, tidy

#: The label of what is not among the candidates.
OUTSIDE = "(anything else)"
#: The longest text that a question can allow, in bytes.
MOST_BYTES = 1024


class Text(Domain):
    """Any text of at most ``max_bytes`` bytes.

    An answer is tidied (`deniable.texts.tidy`; ``fold="case"``: case does not count) and encoded as
    a 64-bit number, the first 8 bytes of the SHA-256 of its UTF-8 form. Two of a million answers
    have the same number with probability 3e-8.
    """

    kind = "text"
    noun = "any text"
    is_open = True
    spec_keys = (("fold", "max_bytes"),)
    keys: ClassVar[Mapping[str, Key]] = {
        "candidates": Key(
            lambda candidates: check_candidates(candidates),
            needed=True,
            wording=True,
            prompt="Answers to look for (more can be added later)",
            parse=lambda line: check_candidates([line])[0],
            lines=True,
            fold="case",
        ),
        "fold": Key(lambda fold: check_fold(fold), default="case"),
        "max_bytes": Key(
            lambda most: require_int("max_bytes", most, 1, MOST_BYTES), default=MOST_BYTES
        ),
    }
    dtype = np.dtype(np.uint64)
    fold: Fold
    max_bytes: int

    def __init__(
        self, fold: Fold = "case", max_bytes: int = MOST_BYTES, *, optional: bool = False
    ) -> None:
        require_type("optional", optional, bool)
        most = require_int("max_bytes", max_bytes, 1, MOST_BYTES)
        self._freeze(fold=check_fold(fold), max_bytes=most, optional=optional)

    @property
    def skip(self) -> int | None:
        return text_code(SKIP_BYTES) if self.optional else None

    def encode(self, answers: Any) -> NDArray[Any]:
        refuse_what_is_no_column(answers)
        listed = to_list(answers)
        codes: dict[str | None, int] = {} if self.skip is None else {None: self.skip}
        for place, answer in enumerate(listed):
            if not (isinstance(answer, (str, type(None))) and answer in codes):
                codes[answer] = self._code(f"values[{place}]", answer)
        return np.fromiter(map(codes.__getitem__, listed), np.uint64, len(listed))

    def _code(self, name: str, answer: Any) -> int:
        text = tidied(name, answer, self.fold, Unshown(answer))
        if len(text.encode()) > self.max_bytes:
            allowed = f"text of at most {self.max_bytes} bytes (UTF-8)"
            raise InvalidArgument(name, Unshown(answer), allowed)
        return text_code(text)

    def about(self, candidates: Iterable[str]) -> Domain:
        if not isinstance(candidates, Candidates):
            return Candidates(candidates, self.fold, optional=self.optional)
        same = (candidates.fold, candidates.optional) == (self.fold, self.optional)
        return candidates if same else self.about(candidates.given)

    def to_spec(self) -> dict[str, Any]:
        named = {"fold": self.fold, "max_bytes": self.max_bytes}
        return {"kind": self.kind, "optional": self.optional, **named}

    def sample(self) -> Sequence[int]:
        return [0, 1, 1 << 63, (1 << 64) - 1]

    def values(self, most: int) -> Sequence[int]:
        return ()

    def answer(self, value: Any) -> Any:
        raise InvalidArgument("values", None, "given: the answers are any text")

    @classmethod
    def larges(cls) -> Iterator[Domain]:
        yield cls()

    @classmethod
    def look_alikes(cls) -> Iterator[Domain]:
        yield from (cls(), cls("none"), cls(max_bytes=64), cls(optional=True))

    def words(self) -> str:
        return "any text"


class Candidates(Listed):
    """Texts that were perhaps answered, and `OUTSIDE`, which stands for all other answers.

    Labels keep the spelling that they were given in; what is hashed is tidied, like answers. A skip
    is one text more, the last before `OUTSIDE`.
    """

    kind = "text"
    in_surveys = False
    is_open = True
    spec_keys = (("candidates", "fold"),)
    fold: Fold

    def __init__(
        self, texts: Iterable[str], fold: Fold = "case", *, optional: bool = False
    ) -> None:
        require_type("optional", optional, bool)
        refuse_what_is_no_column(texts, "candidates")
        listed = to_list(texts)
        tidy_ = [tidied(f"candidates[{i}]", text, fold, text) for i, text in enumerate(listed)]
        if not listed:
            raise InvalidArgument("candidates", listed, "at least one text")
        _refuse_one_answer_twice([OUTSIDE, *listed], [OUTSIDE, *tidy_])
        skips = ([SKIPPED], [SKIP_BYTES]) if optional else ([], [])
        if optional and SKIPPED in listed:
            raise InvalidArgument("candidates", SKIPPED, "another text: this one stands for a skip")
        labels = tuple(map(str.__str__, [*listed, *skips[0], OUTSIDE]))
        self._freeze(
            fold=check_fold(fold),
            optional=optional,
            _size=len(labels),
            labels=labels,
            texts=(*tidy_, *skips[1]),
        )

    @property
    def skip(self) -> int | None:
        return self.size - 2 if self.optional else None

    def encode(self, answers: Any) -> NDArray[Any]:
        raise InvalidArgument("domain", self, "any text where people answer; candidates are asked")

    def to_spec(self) -> dict[str, Any]:
        named = {"candidates": list(self.given), "fold": self.fold}
        return {"kind": self.kind, "optional": self.optional, **named}

    @property
    def given(self) -> tuple[Any, ...]:
        """The candidates, as they were spelt."""
        return self.answered[:-1]

    @classmethod
    def _from_spec(cls, spec: Mapping[str, Any]) -> Domain:
        if type(spec["candidates"]) is not list:
            raise InvalidArgument("candidates", spec["candidates"], "a list of texts")
        return cls(spec["candidates"], spec["fold"], optional=spec["optional"])

    def about(self, candidates: Iterable[str]) -> Domain:
        raise InvalidArgument("candidates", candidates, "left out: the answers are listed")

    def require_publishable(self) -> None:
        raise InvalidArgument("candidates", self, "left out: they are among the texts")

    def sample(self) -> Sequence[int]:
        """Without the last: nobody answers `OUTSIDE`."""
        return [value for value in super().sample() if value < self.size - 1]

    def values(self, most: int) -> Sequence[int]:
        return ()

    @classmethod
    def smalls(cls) -> Iterator[Domain]:
        return iter(())

    def words(self) -> str:
        return f"{len(self.given)} candidate{'s' * (len(self.given) != 1)}"

    @property
    def short(self) -> str:
        return self.words()


def check_candidates(candidates: Any) -> tuple[str, ...]:
    """Different texts, each on one line without blanks around it, or none."""
    texts = isinstance(candidates, Sequence) and not isinstance(candidates, str)
    if not texts or not all(isinstance(text, str) for text in candidates):
        raise InvalidArgument("candidates", candidates, "a list of texts")
    if not all(text == text.strip() and len(text.splitlines()) == 1 for text in candidates):
        raise InvalidArgument("candidates", candidates, "texts of one line, no blanks around them")
    if any(map(has_controls, candidates)):
        raise InvalidArgument("candidates", candidates, "texts without control characters")
    if candidates:
        Candidates(candidates)  # refuses two spellings of one answer
    return tuple(candidates)


def check_fold(fold: Any) -> Fold:
    if not isinstance(fold, str) or fold not in get_args(Fold):
        raise InvalidArgument("fold", fold, f"one of {', '.join(get_args(Fold))}")
    return cast(Fold, fold)


def tidied(name: str, text: Any, fold: Fold, shown: Any) -> str:
    """What is hashed of a text that somebody typed; ``shown`` is what a refusal says it was."""
    if not is_text(text):
        raise InvalidArgument(name, shown, "text that UTF-8 can carry")
    found = tidy(text, fold)
    if not found:
        raise InvalidArgument(name, shown, "text that is more than blanks")
    return found


def _refuse_one_answer_twice(texts: Sequence[str], tidy_: Sequence[str]) -> None:
    """Reports cannot tell two spellings of one answer apart."""
    first: dict[str, str] = {}
    for text, same in zip(texts, tidy_, strict=True):
        if same in first:
            allowed = f"different answers (case and blanks do not count), none of them {OUTSIDE!r}"
            raise InvalidArgument("candidates", [first[same], text], allowed)
        first[same] = text


def text_code(text: Label | bytes) -> int:
    """The first 8 bytes of the SHA-256 of a text (UTF-8), as a little-endian number."""
    data = text if isinstance(text, bytes) else str(text).encode()
    return int.from_bytes(hashlib.sha256(data).digest()[:8], "little")


def text_codes(texts: Sequence[Label | bytes]) -> NDArray[np.uint64]:
    """`text_code` of each text."""
    return np.fromiter(map(text_code, texts), np.uint64, len(texts))
