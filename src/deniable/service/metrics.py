"""What happened, counted for Prometheus: no addresses, no times, no ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from deniable.service.encoding import Place

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_HELP = {
    "deniable_submissions_total": "Submissions by what became of them.",
    "deniable_batches_total": "Batches by what became of them.",
    "deniable_refusals_total": "Refused requests by type of problem.",
    "deniable_reports": "Reports that are counted, by report and round.",
}


class Metrics:
    """Counters since the start, and what the store holds."""

    def __init__(self) -> None:
        self._counters: Counter[tuple[str, str, str]] = Counter()

    def count(self, name: str, label: str, value: str) -> None:
        self._counters[name, label, value] += 1

    def text(self, numbers: Mapping[Place, int]) -> str:
        """The exposition format."""
        lines = []
        for name, words in _HELP.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
            for (metric, label, value), number in sorted(self._counters.items()):
                if metric == name:
                    lines.append(f'{name}{{{label}="{value}"}} {number}')
        totals: Counter[tuple[str, int]] = Counter()
        for place, n in numbers.items():
            totals[place.report, place.round] += n
        for (report, round_), n in sorted(totals.items()):
            lines.append(f'deniable_reports{{report="{report}",round="{round_}"}} {n}')
        return "\n".join(lines) + "\n"
