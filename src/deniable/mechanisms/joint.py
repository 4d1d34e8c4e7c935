"""Several questions to one respondent, of which some are drawn and answered with all of epsilon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from deniable.answers.several import Several
from deniable.core.domain import Domain
from deniable.core.drawn import WEIGHTS, Branch, Drawn
from deniable.core.mechanism import Mechanism
from deniable.core.registry import check_keys, from_leaf, mechanisms, register
from deniable.errors import InvalidArgument, Unsupported


@register
class Joint(Drawn):
    """One of several questions is drawn by public weights; only its answer is reported.

    A branch about one question sees that question's encoded answer. (Branches about several, whose
    cells are a table, are refused so far.)
    """

    name = "joint"
    paper = "none"
    good_for = "several questions, one of which each respondent answers with all of epsilon"
    takes = (Several,)
    tasks = ()

    domain: Several

    @classmethod
    def of_questions(
        cls, mechanisms: Mapping[str, Mechanism], weights: Mapping[str, int] | None = None
    ) -> Self:
        """Ask one question of each respondent, drawn with equal chances unless weighted."""
        check_mechanisms(mechanisms)
        domain = Several({name: m.domain for name, m in mechanisms.items()})
        epsilon = max(m.epsilon_1 for m in mechanisms.values())
        return cls(domain, epsilon, branches_of(mechanisms, weights))

    def _check_branches(self) -> None:
        super()._check_branches()
        for branch in self.branches:
            if len(branch.of) != 1:
                raise InvalidArgument("of", list(branch.of), "one question for each branch")

    def _check(self) -> None:
        super()._check()
        for branch in self.branches:
            if self.domain.parts.get(branch.of[0]) != branch.mechanism.domain:
                allowed = f"about one of {', '.join(self.domain.parts)}"
                raise InvalidArgument("branches", list(branch.of), allowed)
        missing = set(self.domain.parts) - {name for branch in self.branches for name in branch.of}
        if missing:
            raise InvalidArgument("branches", sorted(missing), "about every question")

    def seen(self, place: int, values: Any) -> Any:
        (name,) = self.branches[place].of
        return values[name if isinstance(values, np.ndarray) else self._numbers[name]]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The place of each question in a tuple of answers."""
        return {name: number for number, name in enumerate(self.domain.parts)}

    @classmethod
    def example(cls, domain: Domain, epsilon: float, **design: int) -> Self:
        """Each question by the first family that suits; the later ones are asked more rarely."""
        parts = domain.parts if isinstance(domain, Several) else {}
        asked = {name: first_suited(part, epsilon) for name, part in parts.items()}
        weights = [WEIGHTS >> (number + 1) for number in range(len(asked))]
        weights[0] += WEIGHTS - sum(weights)
        return cls.of_questions(asked, dict(zip(asked, weights, strict=True)))

    def made_of(self, parts: Sequence[Mechanism]) -> Self:
        names = [branch.of[0] for branch in self.branches]
        return self.of_questions(dict(zip(names, parts, strict=False)))

    def _keys(self, branch: Branch) -> dict[str, Any]:
        return {"of": list(branch.of)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.domain!r}, {len(self.branches)} branches)"

    @classmethod
    def _read(cls, domain: Domain, design: Mapping[str, int], branches: list[Any]) -> list[Branch]:
        return [cls._branch(domain, branch) for branch in branches]

    @classmethod
    def _branch(cls, domain: Domain, branch: Any) -> Branch:
        check_keys("branch", branch, {"weight", "of", "mechanism"})
        of, parts = branch["of"], domain.parts if isinstance(domain, Several) else {}
        names = isinstance(of, list) and all(isinstance(name, str) for name in of)
        if not names or not of or not set(of) <= set(parts):
            raise InvalidArgument("of", of, f"one of {', '.join(parts)}")
        if len(of) > 1:
            raise Unsupported("of", of, "one question: tables of several are not known here")
        if isinstance(branch["mechanism"], Mapping) and branch["mechanism"].get("name") == cls.name:
            raise InvalidArgument("branch", cls.name, "a mechanism of another family")
        return Branch(branch["weight"], tuple(of), from_leaf(parts[of[0]], branch["mechanism"]))


def first_suited(domain: Domain, epsilon: float) -> Mechanism:
    """A member of the first family that may be chosen for these answers."""
    for family in mechanisms().values():
        suited = isinstance(domain, family.automatic) and not family.unsuited(domain)
        if suited and family.on_devices and not family.remembers:
            return family.example(domain, epsilon, **family.small_design)
    raise InvalidArgument("domain", domain, "answers that some mechanism is chosen for")


def check_mechanisms(questions: Any) -> None:
    """Refuse what is not a mechanism for each of some questions."""
    usable = isinstance(questions, Mapping) and len(questions) > 0
    if not usable or not all(isinstance(m, Mechanism) for m in questions.values()):
        raise InvalidArgument("questions", questions, "a mechanism for each of some names")


def branches_of(
    mechanisms: Mapping[str, Mechanism], weights: Mapping[str, int] | None = None
) -> list[Branch]:
    """A branch for each question; the weights are as equal as integers can be, unless given."""
    if not isinstance(weights, Mapping | None):
        raise InvalidArgument("weights", weights, "a mapping from questions to integers")
    share, left = divmod(WEIGHTS, len(mechanisms))
    equal = {name: share + (place < left) for place, name in enumerate(mechanisms)}
    shares = equal if weights is None else weights
    if shares.keys() != mechanisms.keys():
        raise InvalidArgument("weights", weights, f"one for each of {', '.join(mechanisms)}")
    return [Branch(shares[name], (name,), m) for name, m in mechanisms.items()]
