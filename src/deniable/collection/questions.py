"""Questions of a collection: a name, and the kind of answer that people give."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deniable.core.domain import Domain, survey_kinds
from deniable.errors import InvalidArgument, Unshown, Unsupported

NAME = re.compile("[a-z][a-z0-9_]{0,31}")


@dataclass(frozen=True)
class Question:
    """How an answer becomes integers; its wording is elsewhere (`deniable.collection.wording`)."""

    name: str
    domain: Domain

    def __post_init__(self) -> None:
        check_name(self.name)
        try:
            self.domain.require_publishable()
        except InvalidArgument as refused:
            raise refused.at(f"{self.name}: {refused.name}") from None

    def index(self, answer: Any) -> Any:
        """The encoded answer; a refusal names the question, and does not show the answer."""
        try:
            return self.domain.encode([answer])[0].item()
        except InvalidArgument as refused:
            raise InvalidArgument(self.name, Unshown(answer), refused.allowed) from None

    def to_json(self) -> dict[str, Any]:
        """The question as it is published."""
        return {"name": self.name, **self.domain.to_spec()}

    @classmethod
    def from_json(cls, data: Any) -> Question:
        """The question that `to_json` described."""
        if not isinstance(data, Mapping) or "name" not in data:
            raise InvalidArgument("questions", data, "objects with a name")
        name, spec = check_name(data["name"]), {key: data[key] for key in data if key != "name"}
        kind, known = spec.get("kind"), survey_kinds()
        if isinstance(kind, str) and kind not in known:  # there are others in specs
            raise Unsupported("kind", kind, f"one of {', '.join(known)}")
        return cls(name, Domain.from_spec(spec))


def check_name(name: Any, place: str = "name") -> str:
    """Refuse what cannot name a question, a report or a field."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        allowed = "1 to 32 lower-case letters, digits and _, the first a letter"
        raise InvalidArgument(place, name, allowed)
    return name
