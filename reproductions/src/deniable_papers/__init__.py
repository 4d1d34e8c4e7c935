"""Published experiments, run again: one folder a paper, one command each (`deniable reproduce`)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from deniable.errors import InvalidArgument

if TYPE_CHECKING:
    from deniable_papers.study import Study

#: Where the study of each paper is.
STUDIES = {
    "comparative": ("deniable_papers.comparative.study", "Comparative"),
    "kairouz": ("deniable_papers.kairouz.study", "Kairouz"),
    "ibu": ("deniable_papers.ibu.study", "Ibu"),
    "numbers": ("deniable_papers.numbers.study", "NumbersStudy"),
    "survey": ("deniable_papers.survey.study", "Survey"),
}


def find(paper: str) -> type[Study[Any]]:
    """The study of a paper by its short name."""
    if paper not in STUDIES:
        raise InvalidArgument("paper", paper, f"one of {', '.join(STUDIES)}")
    module, name = STUDIES[paper]
    found: type[Study[Any]] = getattr(import_module(module), name)
    return found
