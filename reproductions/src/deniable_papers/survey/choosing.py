"""From the cells of the map to a choice, and to what the library's own choice loses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from deniable.collection.recommend import Requirements
from deniable.core.domain import Domain
from deniable.estimation.frequencies.methods import DEFAULT_METHOD
from deniable.mechanisms import SS, mechanism
from deniable_papers.survey.losses import DECODERS, MECHANISMS

#: A choice counts as good if its score is within this factor of the least.
GOOD = 1.05
#: A difference of so many standard errors is one.
CLEAR = 2.0
#: The l1 loss is no better than the uniform guess's if it is at least this part of it.
DROWNED = 0.95
#: The decoder whose loss has a formula.
PLAIN = "unbiased"
Choice = tuple[str, str]


@dataclass(frozen=True)
class Point:
    """The losses of all choices at one epsilon, k and n, by distribution (see `losses`)."""

    epsilon: float
    k: int
    n: int
    runs: int
    cells: Mapping[str, Mapping[str, Any]]

    @cached_property
    def choices(self) -> list[Choice]:
        """Mechanisms and decoders; subsets of one value are GRR under another name."""
        copies = {"ss"} if SS.suggest_omega(self.k, self.epsilon) == 1 else set()
        names = [name for name in MECHANISMS if name not in copies]
        return [(name, decoder) for name in names for decoder in DECODERS]

    @cached_property
    def scores(self) -> dict[Choice, tuple[float, float]]:
        """The geometric mean over the distributions of loss / least loss, and its relative error.

        Few runs may all miss what happens rarely, such as an estimate below 0. So the relative
        error of a loss counts as at least half of that of a mean of k - 1 squares over the runs.
        """
        floor = 0.5 * math.sqrt(2 / ((self.k - 1) * self.runs))
        found = {}
        for choice in self.choices:
            ratios = [self._ratio(choice, name) for name in self.cells]
            logs = sum(math.log(ratio) for ratio, _ in ratios) / len(ratios)
            squares = sum(error**2 + floor**2 for _, error in ratios)
            found[choice] = math.exp(logs), math.sqrt(squares) / len(ratios)
        return found

    def worst(self, choice: Choice) -> float:
        """Loss / least loss on the worst distribution."""
        return max(self._ratio(choice, name)[0] for name in self.cells)

    def _ratio(self, choice: Choice, distribution: str) -> tuple[float, float]:
        """Loss / least loss, and the relative error of the loss."""
        losses = self.cells[distribution]["losses"]
        least = min(losses[name][decoder][0] for name, decoder in self.choices)
        loss, error, _ = losses[choice[0]][choice[1]]
        return loss / least, error / loss

    @cached_property
    def best(self) -> Choice:
        """The choice with the least score."""
        return min(self.scores, key=lambda choice: self.scores[choice][0])

    @cached_property
    def chosen(self) -> Choice:
        """Of those that are good: the shortest report, then the simplest.

        Of the decoders of that mechanism the default one, if it is as good.
        """
        near = [choice for choice in self.scores if not self._worse(choice)]
        names = {name for name, _ in near}
        name = min(names, key=lambda one: (self._bits(one), MECHANISMS.index(one)))
        decoders = [decoder for one, decoder in near if one == name]
        if DEFAULT_METHOD in decoders:
            return name, DEFAULT_METHOD
        return name, min(decoders, key=lambda one: self.scores[name, one][0])

    def _worse(self, choice: Choice) -> bool:
        """Not good: clearly so, or also by the variance of the unbiased frequencies.

        That is known without error, but says little where decoders know better than to trust it.
        """
        value, error = self.excess(choice)
        clearly = value - GOOD > CLEAR * error
        return clearly or (value > GOOD and self.variance_ratio(choice[0]) > GOOD)

    def variance_ratio(self, name: str) -> float:
        """The loss of the unbiased frequencies, by its formula, over the least of all."""
        least = min(score for (_, decoder), (score, _) in self.scores.items() if decoder == PLAIN)
        return self.scores[name, PLAIN][0] / least

    def excess(self, choice: Choice) -> tuple[float, float]:
        """Score / least score, and its error."""
        (value, error), (least, other) = self.scores[choice], self.scores[self.best]
        ratio = value / least
        return ratio, 0.0 if choice == self.best else ratio * math.hypot(error, other)

    def _bits(self, name: str) -> int:
        return mechanism(name, self.k, self.epsilon).bits_per_report

    @cached_property
    def noise(self) -> float:
        """l1 loss over that of the uniform guess, on the worst of the uneven distributions."""
        name, decoder = self.chosen
        uneven = [one for distribution, one in self.cells.items() if distribution != "flat"]
        return float(max(one["losses"][name][decoder][2] / one["uniform"] for one in uneven))

    @property
    def drowned(self) -> bool:
        """Whether there are too few respondents."""
        return self.noise >= DROWNED

    @cached_property
    def auto(self) -> Choice:
        """What a survey gets that names nothing; BRR and subsets of one value are GRR.

        Only what the map has losses of is looked at: mechanisms that came later do not change it.
        """
        required = Requirements(Domain.of(self.k), self.epsilon, self.n)
        name = required.choose(among=("brr", *MECHANISMS)).name
        listed = {one for one, _ in self.choices}
        return (name if name in listed else "grr"), DEFAULT_METHOD
