"""What a test of a hypothesis found, in numbers and in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from deniable.exports import SHOWN, Exports


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TestResult(Exports):
    """How surprising reports are if a ``hypothesis`` holds, and how far from it the truth may be.

    The hypothesis is about everyone whom the respondents are a sample of. Repeat a test only with
    that in mind: of 20 tests of true hypotheses, one has a p-value below 0.05.
    """

    #: Not a class of tests, though its name begins like one.
    __test__: ClassVar[bool] = False
    entries: ClassVar[str] = "tests"
    chosen: ClassVar[str] = "first"

    #: What is tested, in words: "the mean is 40".
    hypothesis: str
    #: The result as a person would say it, in a sentence.
    sentence: str
    #: What to keep in mind about it, in sentences; mostly nothing.
    note: str = ""
    #: What measures the distance from the hypothesis ("z", "chi-square"), and its value.
    measure: str
    statistic: float
    #: Degrees of freedom, if the law of the statistic has any.
    df: int | None = None
    #: The probability of a statistic at least as extreme if the hypothesis holds.
    p_value: float
    #: What was estimated ("difference"), its value, and an interval if there is one.
    effect_name: str
    effect: float
    interval: tuple[float, float] | None = None
    confidence: float
    #: How likely p_value <= 1 - confidence is if the effect is ``detectable``.
    power: float | None = None
    detectable: float | None = None
    #: The numbers of reports.
    n: tuple[int, ...]
    #: How the p-value is computed: "normal", "exact", ...
    method: str
    #: The mechanisms that the reports came from, in words.
    source: str

    @property
    def significant(self) -> bool:
        """Whether so small a p-value has a probability of 1 - ``confidence`` at most by chance."""
        return self.p_value <= 1 - self.confidence

    def columns(self) -> dict[str, list[Any]]:
        low, high = self.interval or (None, None)
        row = {
            "hypothesis": self.hypothesis,
            "statistic": self.statistic,
            "df": self.df,
            "p_value": self.p_value,
            "effect": self.effect,
            "low": low,
            "high": high,
            "power": self.power,
            "detectable": self.detectable,
        }
        return {name: [value] for name, value in row.items()}

    @property
    def about(self) -> dict[str, Any]:
        """What the numbers are."""
        return {
            "sentence": self.sentence,
            "note": self.note,
            "measure": self.measure,
            "effect": self.effect_name,
            "confidence": self.confidence,
            "method": self.method,
            "n": list(self.n),
            "mechanism": self.source,
        }

    @property
    def interval_words(self) -> str:
        """What the interval is, in words."""
        return f"{100 * self.confidence:.6g} % interval"

    def shown(self, most: int = SHOWN) -> list[int]:
        return [0]

    def __str__(self) -> str:
        return f"{self.sentence} {self.note}".strip()
