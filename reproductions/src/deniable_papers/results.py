"""What a reproduction found: rows with the published value, ours, and a verdict.

A row is about one cell of a table or figure, or about a claim of the text, whose "value" is the
share of the cells in which it holds (published: 1, or what the words ask for).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from deniable.errors import CorruptData

Cell = Mapping[str, str | int | float]
#: Standard errors that chance hardly ever exceeds, if they are known: once in 16,000 cells.
SURELY = 4.0


@cache
def surely(runs: float = math.inf) -> float:
    """As `SURELY` for a standard error that comes from so many runs: Student's t."""
    from scipy.special import ndtr, stdtrit

    return SURELY if runs == math.inf else float(stdtrit(runs - 1, ndtr(SURELY)))


class Verdict(StrEnum):
    """How our value compares with the published one."""

    reproduced = "reproduced"
    differs = "differs"
    no_number = "not published as a number"


@dataclass(frozen=True)
class Result:
    """One row; ``error`` is the standard error of ours, 0 for a formula or a claim.

    ``published_error`` is that of the published value, where the paper tells it.
    """

    paper: str
    where: str
    cell: Cell
    published: float | None
    ours: float
    error: float
    verdict: Verdict
    reason: str = ""
    published_error: float = 0.0

    @property
    def difference(self) -> float | None:
        """(ours - published) in standard errors of this difference; None without either."""
        error = math.hypot(self.error, self.published_error)
        if self.published is None or not error:
            return None
        return (self.ours - self.published) / error

    def row(self) -> dict[str, Any]:
        """For a table: the cell as one text."""
        return {
            "where": self.where,
            "cell": ", ".join(f"{name} {value}" for name, value in self.cell.items()),
            "published": self.published,
            "ours": self.ours,
            "error": self.error,
            "difference": self.difference,
            "verdict": str(self.verdict),
            "reason": self.reason,
        }


def compared(
    paper: str,
    where: str,
    cell: Cell,
    published: float | None,
    ours: float,
    error: float = 0.0,
    rounding: float = 0.0,
    reason: str = "",
    published_error: float = 0.0,
    runs: float = math.inf,
) -> Result:
    """A cell: reproduced if ours is as near as the published digits and both errors allow.

    ``rounding`` is half a unit of the last published digit, or what the words of the text allow;
    the errors come from so many ``runs``.
    """
    verdict = Verdict.no_number
    if published is not None:
        chance = surely(runs) * math.hypot(error, published_error)
        allowed = rounding + chance + 1e-9 * abs(published)
        near = abs(ours - published) <= allowed
        verdict = Verdict.reproduced if near else Verdict.differs
    return Result(paper, where, cell, published, ours, error, verdict, reason, published_error)


@dataclass(frozen=True)
class Trial:
    """One cell in which a claim says that ``value`` is not positive; ``error`` is its s.e.

    The error comes from so many ``runs``.
    """

    name: str
    value: float
    error: float
    runs: float = math.inf

    @property
    def against(self) -> bool:
        """Whether the claim surely fails here."""
        return self.value > surely(self.runs) * self.error

    @property
    def clear(self) -> bool:
        """Whether it surely holds here."""
        return self.value < -surely(self.runs) * self.error


def claimed(
    paper: str,
    where: str,
    claim: str,
    trials: Sequence[Trial],
    note: str = "",
    least: float = 1.0,
) -> Result:
    """A claim about many cells: it differs if too many are surely against it.

    ``ours`` is the share of cells that are not; it has to be at least ``least``: 1, or less where
    the text says "generally". The reason names the worst.
    """
    against = sorted((t for t in trials if t.against), key=lambda t: -t.value)
    clear = sum(trial.clear for trial in trials)
    cell: Cell = {"claim": claim, "cells": len(trials), "clearly": clear, "against": len(against)}
    share = 1 - len(against) / len(trials)
    verdict = Verdict.reproduced if share >= least else Verdict.differs
    worst = ", ".join(f"{trial.name} ({trial.value:+.2g})" for trial in against[:3])
    reason = "; ".join(part for part in (note, worst and f"against: {worst}") if part)
    return Result(paper, where, cell, least, share, 0.0, verdict, reason)


def write(results: Iterable[Result], path: Path, about: Mapping[str, Any]) -> Path:
    """A JSON file: what was run, and one row a line, with numbers of six digits."""
    rows = ",\n".join(json.dumps(_short(asdict(result))) for result in results)
    head = json.dumps(dict(about), indent=1)[:-2]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{head},\n "rows": [\n{rows}\n]}}\n')
    return path


def read(path: Path) -> list[Result]:
    """The rows of a file that `write` made."""
    try:
        rows = json.loads(path.read_text())["rows"]
        return [Result(**{**row, "verdict": Verdict(row["verdict"])}) for row in rows]
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptData(f"{path.name} holds no results ({error})") from None


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {name: _short(entry) for name, entry in value.items()}
    return value


def counts(results: Sequence[Result]) -> dict[str, int]:
    """How many rows have each verdict."""
    return {str(v): sum(result.verdict is v for result in results) for v in Verdict}
