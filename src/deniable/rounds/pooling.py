"""One estimate from all rounds.

The target is the share among all answers given, sum_r n_r f_r / sum_r n_r: the one frequency if the
truth is stable, and a well-defined average if it is not. The unbiased frequencies of the merged
tally estimate it. What differs is how wrong they are. With reports of different people in every
round, errors are independent. With the same people, a device that keeps a permanent answer repeats
its noise in every round, and no number of rounds averages it out.

With weights w_r = n_r / sum n, V the variance of as many independent reports and C = n Cov of two
rounds of the same n people (`FrequencyOracle.repeated_line`), at most min(n_r, n_s) people answered
in both rounds r and s, so

    Var = V + 2 C sum_{r < s} w_r w_s / max(n_r, n_s).

People who changed their answer, or missed a round, only make it smaller.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from deniable.arrays import Integers
from deniable.errors import InvalidArgument
from deniable.estimation import Frequencies
from deniable.estimation.frequencies.estimator import Choices, asked, estimate_from
from deniable.estimation.frequencies.evidence import Evidence
from deniable.mechanisms.frequency import Line, require_oracle
from deniable.rounds.rounds import Rounds, counted, require_reports

#: Who answers in the rounds: a panel, or new people every time.
RESPONDENTS = ("same", "fresh")


def pooled(
    rounds: Rounds, respondents: str, choices: Choices, candidates: Iterable[str] | None
) -> Frequencies:
    """The work of `Rounds.pooled`."""
    check_respondents(respondents)
    require_oracle(rounds.mechanism)
    tallies = rounds.tallies()
    require_reports(tallies)
    evidence = Evidence.of(asked(list(tallies.values()), candidates))
    if respondents == "same":
        if evidence.domain.optional:
            allowed = (
                "'fresh' where a question may be skipped: the same people may skip some rounds"
            )
            raise InvalidArgument("respondents", respondents, allowed)
        if choices.errors not in (None, "score"):
            allowed = "'score' where respondents are the same"
            raise InvalidArgument("errors", choices.errors, allowed)
        choices = replace(choices, errors="score")
        sizes = np.array([tally.n for tally in tallies.values()])
        evidence = _of_panel(evidence, sizes, choices.sampling)
    one = estimate_from(evidence, choices)
    words = f"{one.source}; {counted(len(tallies), 'round')} of {respondents} respondents"
    return replace(one, source=words)


def check_respondents(respondents: Any) -> None:
    """Refuse what is none of `RESPONDENTS`."""
    if not (isinstance(respondents, str) and respondents in RESPONDENTS):
        raise InvalidArgument("respondents", respondents, f"one of {', '.join(RESPONDENTS)}")


def _of_panel(evidence: Evidence, sizes: Integers, sampling: bool) -> Evidence:
    """The evidence of the merged rounds with the variance that a panel has.

    With O_rs = 1 / max(n_r, n_s), w' O w is the variance of a pooled sample of coins that are kept,
    and 1 / sum n that of fresh ones.
    """
    weights = sizes / sizes.sum()
    kept = float(weights @ (1 / np.maximum.outer(sizes, sizes)) @ weights)
    extra = kept - 1 / sizes.sum()
    a, b = evidence.parts[0].mechanism.repeated_line(np.clip(evidence.unbiased, 0.0, 1.0))
    between = extra if sampling else 0.0
    line = Line(evidence.line.a + extra * a, evidence.line.b + extra * b)
    return replace(evidence, line=line, between=between)
