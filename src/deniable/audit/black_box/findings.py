"""What the audit of a black box found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deniable.audit.black_box.independence import Alarm
from deniable.exports import SHOWN, Exports, column


@dataclass(frozen=True)
class Finding:
    """An event, how often it was seen under two values, and the epsilon that this proves."""

    kind: str
    event: str
    value: Any
    other: Any
    share: float
    other_share: float
    epsilon: float


@dataclass(frozen=True)
class Audit(Exports):
    """Lower bounds on epsilon, one an event; they hold together with ``confidence``.

    ``n`` reports of each value were drawn, half of them to find the events. ``rounds`` of one
    device count as one report. ``alarms`` are about coins that are not independent.
    """

    subject: str
    promised: float
    values: tuple[Any, ...]
    n: int
    rounds: int
    confidence: float
    findings: tuple[Finding, ...]
    alarms: tuple[Alarm, ...] = ()
    #: Values whose reports are all the same.
    constant: tuple[Any, ...] = ()

    entries = "events"
    chosen = "strongest"

    @property
    def epsilon(self) -> float:
        """The largest lower bound."""
        return max((finding.epsilon for finding in self.findings), default=0.0)

    @property
    def verdict(self) -> str:
        """``violated``, ``suspicious`` (coins that are not independent) or ``nothing found``."""
        if self.epsilon > self.promised:
            return "violated"
        return "suspicious" if self.alarms else "nothing found"

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return self.verdict == "nothing found"

    @property
    def words(self) -> str:
        """The verdict in one line."""
        sure = f"with confidence {100 * self.confidence:.6g} %"
        text = f"{self.verdict}: epsilon is at least {self.epsilon:.4g} {sure}"
        text += f", promised {self.promised:.4g}"
        if self.verdict == "violated":
            worst = self.findings[self.shown(1)[0]]
            text += f" ({worst.event}; {worst.value!r} against {worst.other!r})"
        notes = [f"{alarm.words}, p <= {alarm.p_value:.1e}" for alarm in self.alarms[:1]]
        notes += ["reports are deterministic"] if self.constant else []
        return "; ".join([text, *notes])

    def columns(self) -> dict[str, list[Any]]:
        rows = self.findings
        return {
            "kind": [row.kind for row in rows],
            "event": [row.event for row in rows],
            "value": column([row.value for row in rows]),
            "other": column([row.other for row in rows]),
            "share": [row.share for row in rows],
            "other_share": [row.other_share for row in rows],
            "epsilon_at_least": [row.epsilon for row in rows],
        }

    @property
    def about(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "verdict": self.verdict,
            "words": self.words,
            "epsilon_at_least": self.epsilon,
            "promised": self.promised,
            "confidence": self.confidence,
            "n": self.n,
            "rounds": self.rounds,
            "alarms": [alarm.words for alarm in self.alarms],
        }

    @property
    def interval_words(self) -> str:
        return f"bounds hold together with confidence {100 * self.confidence:.6g} %"

    def shown(self, most: int = SHOWN) -> list[int]:
        order = sorted(range(len(self.findings)), key=lambda i: -self.findings[i].epsilon)
        return order[:most]

    def __str__(self) -> str:
        return f"{self.subject}: {self.verdict}"
