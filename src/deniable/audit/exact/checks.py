"""What an exact verification found: a row a check, in numbers and in words.

Verdicts, worst first: ``violated`` (a promise is broken), ``suspicious`` (walks at the real size
saw what is not declared), ``not enumerated``, ``loose`` (budget is wasted) and ``ok``. The last two
say from what they follow where the subject itself was not enumerated: ``ok from thresholds``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from deniable.errors import shorten
from deniable.exports import SHOWN, Exports
from deniable.privacy import Guarantee
from deniable.privacy.guarantee import log_above

#: Likelihood ratios may fall this far short of what is declared or allowed, relatively.
SLACK = 1e-9


@dataclass(frozen=True)
class Worst:
    """The largest ratio of likelihoods (None: infinite), and where it is."""

    ratio: Fraction | None
    value: Any
    other: Any
    report: Any

    @property
    def epsilon(self) -> float:
        """ln(ratio), rounded up."""
        return math.inf if self.ratio is None else log_above(self.ratio)

    @property
    def words(self) -> str:
        """Which report tells which values apart."""
        if self.ratio == 1 or self.value is None:
            return ""
        report = f"report {shorten(self.report)} is"
        if self.ratio is None:
            return f"{report} possible under {self.value!r}, impossible under {self.other!r}"
        times = f"{float(self.ratio):.6g} times as likely"
        return f"{report} {times} under {self.value!r} as under {self.other!r}"


@dataclass(frozen=True)
class Check:
    """One comparison: the worst ratio found, what is declared, and what epsilon allows.

    Where ``tight``, a declared ratio below what is allowed wastes budget; found ratios should
    always reach what is declared.
    """

    what: str
    subject: str
    method: str
    worst: Worst
    declared: Guarantee
    allowed: Fraction
    tight: bool = True

    @property
    def verdict(self) -> str:
        """``violated``, ``loose`` (budget is wasted) or ``ok``."""
        found, declared = self.worst.ratio, self.declared.ratio
        if found is None or found > declared or declared > self.allowed:
            return "violated"
        unused = 1 - declared / self.allowed if self.tight else 0
        return "loose" if max(1 - found / declared, unused) > SLACK else "ok"

    @property
    def words(self) -> str:
        """The verdict, with numbers and the worst pair."""
        found, allowed = self.worst.epsilon, log_above(self.allowed)
        text = f"{self.what}: epsilon {found:.9g}, declared {self.declared.epsilon:.9g}"
        text += f", allowed {allowed:.9g}; {self.worst.words}".rstrip("; ")
        return f"{self.verdict}: {text}"

    def row(self) -> dict[str, Any]:
        """For tables and files."""
        return {
            "what": self.what,
            "subject": self.subject,
            "method": self.method,
            "epsilon": self.worst.epsilon,
            "declared": self.declared.epsilon,
            "allowed": log_above(self.allowed),
            "verdict": self.verdict,
            "worst": self.worst.words,
        }


@dataclass(frozen=True)
class Walks:
    """So many runs of a mechanism at its real size, and what they did that is not declared."""

    runs: int
    faults: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What was found, or that nothing was."""
        return "; ".join(self.faults) or f"{self.runs:,} walks at the real size found nothing"


@dataclass(frozen=True)
class Verification(Exports):
    """All checks of one mechanism, questionnaire or function."""

    subject: str
    checks: tuple[Check, ...]
    #: What was never enumerated, neither for the mechanism nor for a small relative.
    unseen: tuple[str, ...] = ()
    #: What was enumerated instead of the subject itself, if that is too large.
    instead: str = ""
    walks: Walks | None = None

    entries = "checks"
    chosen = "first"

    @property
    def verdict(self) -> str:
        """The worst of all checks, and from what it follows."""
        found = {check.verdict for check in self.checks}
        if "violated" in found:
            return "violated"
        if self.walks and self.walks.faults:
            return "suspicious"
        if "one report" in self.unseen:
            return "not enumerated"
        word = "loose" if "loose" in found else "ok"
        return word if self.method == "enumerated" else f"{word} {self.method}"

    @property
    def ok(self) -> bool:
        """Whether every promise is kept; a loose one is, and one that nobody looked at is not."""
        return self.verdict not in ("violated", "suspicious", "not enumerated")

    @property
    def worst(self) -> Check:
        """The first check with the worst verdict."""
        order = ("violated", "loose", "ok")
        return min(self.checks, key=lambda check: order.index(check.verdict))

    @property
    def words(self) -> str:
        """The verdict in one line, and what it rests on."""
        rests = [self.method] if self.method != "enumerated" else []
        rests += [self.instead] if self.instead else []
        if self.unseen:
            rests.append(f"not enumerated: {', '.join(self.unseen)}; too many branches")
        if self.walks:
            rests.append(self.walks.words)
        if self.verdict in ("suspicious", "not enumerated"):
            return f"{self.verdict}: {'; '.join(reversed(rests))}"
        return self.worst.words + (f" ({'; '.join(rests)})" if rests else "")

    @property
    def method(self) -> str:
        """``enumerated``; where that is too much, ``from thresholds`` or ``from parts``."""
        return self.checks[0].method

    def columns(self) -> dict[str, list[Any]]:
        rows = [check.row() for check in self.checks]
        return {name: [row[name] for row in rows] for name in rows[0]}

    @property
    def about(self) -> dict[str, Any]:
        return {"subject": self.subject, "verdict": self.verdict, "words": self.words}

    @property
    def interval_words(self) -> str:
        return "exact, no intervals"

    def shown(self, most: int = SHOWN) -> list[int]:
        return list(range(min(most, len(self.checks))))

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        return f"{self.subject}: {self.verdict}"
