"""What happened, counted for Prometheus: no addresses, no times, no ids.

There is a cell for everything that can be counted. Workers share the memory of their cells, a row
each, so that whichever of them is asked tells the sums.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, MutableSequence

from deniable.service.encoding import TallyKey
from deniable.service.problems import TYPES
from deniable.service.store import Outcome

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_HELP = {
    "deniable_submissions_total": "Submissions by what became of them.",
    "deniable_batches_total": "Batches by what became of them.",
    "deniable_refusals_total": "Refused requests by type of problem.",
    "deniable_reports": "Reports that are counted, by report and round.",
}


#: The name, the label and its value of each cell.
CELLS = (
    *(("deniable_submissions_total", "outcome", outcome.name) for outcome in Outcome),
    *(("deniable_batches_total", "outcome", outcome.name) for outcome in Outcome),
    *(("deniable_refusals_total", "type", kind) for kind in TYPES),
)
_CELL = {key: place for place, key in enumerate(CELLS)}


class Metrics:
    """Counters since the start, and what the store holds."""

    def __init__(self, cells: MutableSequence[int] | None = None, row: int = 0) -> None:
        self._cells = [0] * len(CELLS) if cells is None else cells
        self._start = row * len(CELLS)

    def count(self, name: str, label: str, value: str) -> None:
        self._cells[self._start + _CELL[name, label, value]] += 1

    def text(self, numbers: Mapping[TallyKey, int]) -> str:
        """The exposition format."""
        sums = {key: sum(self._cells[place :: len(CELLS)]) for key, place in _CELL.items()}
        lines = []
        for name, words in _HELP.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
            for (metric, label, value), number in sorted(sums.items()):
                if metric == name and number:
                    lines.append(f'{name}{{{label}="{value}"}} {number}')
        totals: Counter[tuple[str, int]] = Counter()
        for place, n in numbers.items():
            totals[place.report, place.round] += n
        for (report, round_), n in sorted(totals.items()):
            lines.append(f'deniable_reports{{report="{report}",round="{round_}"}} {n}')
        return "\n".join(lines) + "\n"
