"""What happened, counted for Prometheus: no addresses, no times, no ids."""

from __future__ import annotations

from collections import Counter

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_HELP = {
    "deniable_submissions_total": "Submissions by what became of them.",
    "deniable_batches_total": "Batches by what became of them.",
    "deniable_refusals_total": "Refused requests by type of problem.",
    "deniable_reports": "Reports that are counted, by question and round.",
}


class Metrics:
    """Counters since the start, and what the store holds."""

    def __init__(self) -> None:
        self._counters: Counter[tuple[str, str, str]] = Counter()

    def count(self, name: str, label: str, value: str) -> None:
        self._counters[name, label, value] += 1

    def text(self, reports: dict[tuple[str, int], int]) -> str:
        """The exposition format."""
        lines = []
        for name, words in _HELP.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
            for (metric, label, value), number in sorted(self._counters.items()):
                if metric == name:
                    lines.append(f'{name}{{{label}="{value}"}} {number}')
        for (question, round_), n in sorted(reports.items()):
            lines.append(f'deniable_reports{{question="{question}",round="{round_}"}} {n}')
        return "\n".join(lines) + "\n"
