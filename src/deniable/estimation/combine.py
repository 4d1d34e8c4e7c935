"""One estimate from all that is known about a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deniable.core.stored import Source
from deniable.core.task import Task
from deniable.errors import MismatchError
from deniable.estimation.estimate import Estimate
from deniable.estimation.parts import require_parts


def combine(parts: Sequence[Source], method: str | None = None, **choices: Any) -> Estimate:
    """One estimate from all reports about one question, whatever mechanisms and epsilons made them.

    ``parts`` are tallies, reports, or reports in files (`report_files`). It is assumed that who got
    which epsilon has nothing to do with the answer. What is estimated is the task of the
    mechanisms, and so are the methods and most choices; each task has ``confidence`` (default 0.95)
    and ``population`` ("respondents", or "everyone" they are a sample of).

    Frequencies: reports tell more than their counts. "likelihood" needs them (but where a report
    is one index, as in GRR and HR) and "bayes" becomes sharper with up to 256 values. ``method`` is
    a name of `METHODS` (default: "bayes") with its options. ``errors`` is one of `ERRORS`: by
    default those of the unbiased frequencies, which hold for every value ("score", or "exact" where
    counts are small), but for "likelihood" ("information") and the methods of `OF_COHORTS`
    ("regression"). ``simultaneous`` intervals hold for all values together. Reports about any text
    are asked about ``candidates``; all other answers are estimated together as `OUTSIDE`.
    """
    return _task(parts).estimate(parts, method, **choices)


def _task(parts: Sequence[Source]) -> Task:
    """What all parts are about: of several tasks the first by name that all mechanisms have."""
    mechanisms = [part.mechanism for part in require_parts(parts)]
    tasks = sorted({m.task for m in mechanisms}, key=lambda task: task.name)
    told = [{m.task.name, *m.tasks_for(m.domain)} for m in mechanisms]
    for task in tasks:
        if all(task.name in own for own in told):
            return task
    names = " and ".join(task.name for task in tasks)
    raise MismatchError(f"these are answers to different questions: {names}")
