"""What forgers achieved: every attack against every defence, with exports."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from deniable.exports import SHOWN, Exports, column

#: Collections without forgers, and reports that validation refuses, are shown beside the attacks.
NOBODY, MALFORMED = "nobody forges", "malformed report"
#: The defences that are not ways to frequencies.
VALIDATION, ROBUST, UNDEFENDED = "validation", "robust interval", "none"


@dataclass(frozen=True)
class Attempt:
    """An attack against a defence, averaged over collections; see `manipulation_report`."""

    attack: str
    defence: str
    label: str
    gain: float
    gain_after: float | None
    bound: float
    detected: float
    covered: float | None


@dataclass(frozen=True, repr=False)
class Manipulation(Exports):
    """Attempts of ``forged`` respondents beside ``n`` genuine ones to raise ``targets``.

    ``truth`` is what the targets really have together; ``level`` that of `detect`.
    """

    subject: str
    n: int
    forged: int
    targets: tuple[Any, ...]
    truth: float
    runs: int
    level: float
    attempts: tuple[Attempt, ...]

    entries = "attempts"
    chosen = "first"

    @property
    def attacks(self) -> list[str]:
        """The attacks that pass validation, in order."""
        named = dict.fromkeys(one.attack for one in self.attempts)
        return [name for name in named if name not in (NOBODY, MALFORMED)]

    @property
    def strongest(self) -> Attempt:
        """The attack that comes nearest to the bound where nothing is done about it."""
        bare = [one for one in self.attempts if one.attack in self.attacks]
        bare = [one for one in bare if one.defence == UNDEFENDED]
        return max(bare, key=lambda one: round(one.gain - one.bound, 9))

    @property
    def best_defence(self) -> Attempt:
        """What leaves least of the strongest attack."""
        left = [one for one in self.attempts if one.attack == self.strongest.attack]
        ways = [one for one in left if one.gain_after is not None and one.defence != UNDEFENDED]
        return min(ways, key=lambda one: abs(one.gain_after or 0.0))

    @property
    def words(self) -> str:
        """The most important thing in one sentence."""
        worst, best = self.strongest, self.best_defence
        return (
            f"{self.forged:,} forgers beside {self.n:,} genuine respondents add at most "
            f"{worst.bound:.3g} to targets that have {self.truth:.3g}, whatever they send; the "
            f"strongest attack ({worst.attack}) adds {worst.gain:.3g} and raises the alarm in "
            f"{worst.detected:.0%} of the collections; against it the best {best.label} defence "
            f"({best.defence}) leaves {best.gain_after:.3g}, and may do harm against others"
        )

    def columns(self) -> dict[str, list[Any]]:
        rows = [asdict(one) for one in self.attempts]
        return {name: [row[name] for row in rows] for name in Attempt.__annotations__}

    @property
    def about(self) -> dict[str, Any]:
        return {
            "mechanism": self.subject,
            "words": self.words,
            "n": self.n,
            "forged": self.forged,
            "targets": column(self.targets),
            "truth": self.truth,
            "runs": self.runs,
            "level": self.level,
        }

    @property
    def interval_words(self) -> str:
        return f"means of {self.runs} simulated collection{'s' * (self.runs > 1)}"

    def shown(self, most: int = SHOWN) -> list[int]:
        return list(range(min(most, len(self.attempts))))

    def __str__(self) -> str:
        return f"{self.forged:,} forgers beside {self.n:,} genuine respondents, {self.subject}"
