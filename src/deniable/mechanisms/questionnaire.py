"""Several questions to one person, as one mechanism from all answers to one report."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from deniable.answers.several import Several
from deniable.arrays import Counts
from deniable.core.domain import Domain
from deniable.core.layout import Record
from deniable.core.mechanism import Mechanism
from deniable.core.registry import check_keys, check_number, from_leaf, register
from deniable.errors import InvalidArgument
from deniable.mechanisms.joint import Joint, branches_of, check_mechanisms, first_suited
from deniable.privacy import Guarantee, sequential
from deniable.randomness import WORD_BYTES, ByteCoins, Coins, Keystream, draw_key

if TYPE_CHECKING:
    from numpy.random import Generator

MODES = ("split", "sampled")


class Questionnaire(Mechanism):
    """Named questions, each with a mechanism of its own.

    In the mode "split" every question is answered: the epsilons add up, and `privacy.split` says
    how to divide a whole. In the mode "sampled" one question is drawn for each person, whatever the
    answers are; only its answer is reported, and the person spends the largest of the epsilons.
    ``Questionnaire(questions, mode)`` is a `Split` or a `Sampled`.
    """

    mode: ClassVar[str]
    domain: Several
    questions: dict[str, Mechanism]

    def __new__(cls, questions: Any = None, mode: str = "split") -> Self:
        if cls is not Questionnaire:
            return super().__new__(cls)
        if not isinstance(mode, str) or mode not in MODES:
            raise InvalidArgument("mode", mode, f"one of {', '.join(MODES)}")
        return object.__new__(Split if mode == "split" else Sampled)  # type: ignore[return-value]

    def __init__(self, questions: Mapping[str, Mechanism], mode: str = "split") -> None:
        check_mechanisms(questions)
        vars(self)["questions"] = dict(questions)
        self._compose(Several({name: m.domain for name, m in questions.items()}))

    @abstractmethod
    def _compose(self, domain: Several) -> None:
        """Freeze the fields of the mechanism."""

    @abstractmethod
    def _named(self, report: Any) -> dict[str, Any]:
        """The reports by question."""

    @classmethod
    def example(cls, domain: Domain, epsilon: float, **design: int) -> Self:
        """Each question by the first family that suits, in equal shares of epsilon if all count."""
        parts = domain.parts if isinstance(domain, Several) else {}
        share = epsilon / len(parts) if cls.mode == "split" else epsilon
        return cls({name: first_suited(part, share) for name, part in parts.items()})

    @property
    def parts(self) -> tuple[Mechanism, ...]:
        return tuple(self.questions.values())

    def made_of(self, parts: Sequence[Mechanism]) -> Self:
        return type(self)(dict(zip(self.questions, parts, strict=False)))

    def respond(self, answers: Mapping[str, Any], rng: Generator | None = None) -> dict[str, Any]:
        """One person's reports by question: of all questions, or of the drawn one."""
        if not isinstance(answers, Mapping) or set(answers) != set(self.questions):
            raise InvalidArgument("answers", answers, f"one for each of {list(self.questions)}")
        (value,) = self.domain.encode([answers]).tolist()
        coins = ByteCoins(Keystream(draw_key(rng)).bytes(self.coin_words * WORD_BYTES))
        report = self.report(value, coins)
        coins.finish()
        return self._named(report)

    def __repr__(self) -> str:
        return f"Questionnaire({self.questions!r}, mode={self.mode!r})"

    def __str__(self) -> str:
        return f"questionnaire of {len(self.questions)} questions, {self.mode}"


@register
class Split(Questionnaire):
    """The reports of all questions, one after the other; so are their counts."""

    name = "split"
    paper = "none"
    good_for = "several questions that every respondent answers, as one report: comparison"
    takes = (Several,)
    tasks = ()
    on_devices = False
    mode = "split"

    def _compose(self, domain: Several) -> None:
        Mechanism.__init__(self, domain, self.guarantee.epsilon)

    def report(self, value: Any, coins: Coins) -> tuple[Any, ...]:
        pairs = zip(self.questions.values(), value, strict=True)
        return tuple(m.report(answer, coins) for m, answer in pairs)

    @cached_property
    def coin_words(self) -> int:
        return sum(m.coin_words for m in self.questions.values())

    @cached_property
    def layout(self) -> Record:
        return Record({name: m.layout for name, m in self.questions.items()})

    @cached_property
    def guarantee(self) -> Guarantee:
        return sequential(m.once for m in self.questions.values())

    def fill(self, values: NDArray[Any], out: NDArray[Any], keystream: Keystream) -> None:
        for name, m in self.questions.items():
            column = np.empty(len(out), dtype=m.dtype)
            m.fill(np.ascontiguousarray(values[name]), column, keystream)
            out[name] = column

    @property
    def cells(self) -> int:
        return sum(m.cells for m in self.questions.values())

    def count(self, data: NDArray[Any]) -> Counts:
        parts = self.questions.items()
        return np.concatenate([m.count(np.ascontiguousarray(data[name])) for name, m in parts])

    def possible_counts(self, counts: Counts, n: int) -> bool:
        pairs = zip(self.questions.values(), self._parts(counts), strict=True)
        return all(m.possible_counts(part, n) for m, part in pairs)

    def _parts(self, counts: Counts) -> Iterator[Counts]:
        """The counts of each question."""
        ends = np.cumsum([m.cells for m in self.questions.values()])
        return iter(np.split(counts, ends[:-1]))

    def _named(self, report: Any) -> dict[str, Any]:
        return dict(zip(self.questions, report, strict=True))

    def to_leaf(self) -> dict[str, Any]:
        parts = [m.to_leaf() for m in self.questions.values()]
        return {"name": self.name, "epsilon": self.epsilon, "design": {}, "parts": parts}

    @classmethod
    def from_leaf(cls, domain: Domain, leaf: Mapping[str, Any]) -> Self:
        check_keys("mechanism", leaf, {"name", "epsilon", "design", "parts"})
        check_keys("design", leaf["design"], set())
        check_number("epsilon", leaf["epsilon"])
        parts = domain.parts if isinstance(domain, Several) else {}
        if not isinstance(leaf["parts"], list) or len(leaf["parts"]) != len(parts):
            raise InvalidArgument("parts", leaf["parts"], f"{len(parts)} mechanisms")
        pairs = zip(parts.items(), leaf["parts"], strict=True)
        made = cls({name: from_leaf(part, one) for (name, part), one in pairs})
        if leaf["epsilon"] != made.epsilon:
            raise InvalidArgument("epsilon", leaf["epsilon"], f"{made.epsilon}, that of its parts")
        return made

    @property
    def _identity(self) -> tuple[Any, ...]:
        return (type(self), *self.questions.items())


class Sampled(Questionnaire, Joint):
    """One question, drawn with equal chances: it is the `Joint` of these questions."""

    mode = "sampled"

    def _compose(self, domain: Several) -> None:
        epsilon = max(m.epsilon_1 for m in self.questions.values())
        Joint.__init__(self, domain, epsilon, branches_of(self.questions))

    def _named(self, report: Any) -> dict[str, Any]:
        place, inner = report
        return {list(self.questions)[place]: inner}

    @property
    def _identity(self) -> tuple[Any, ...]:
        return (Joint, *super()._identity[1:])
