"""Repeated collection: do pooled intervals hold, how often is a false alarm, what is seen.

    python benchmarks/series.py --out out/series

Simulated panels whose devices keep a memo (Basic RAPPOR), and fresh samples of a stable population.
Writes a JSON file and a chart; --quick makes a tenth of the runs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

import deniable as dn
from deniable.mechanisms.frequency import FrequencyOracle, find_oracle
from deniable.views.formats import Format
from deniable.views.tables import show

FALSE_ALARM = 0.05
#: Fresh samples: mechanism, k, epsilon, respondents a round, rounds.
STABLE = [
    ("grr", 8, 0.1, 1_000, 4), ("grr", 8, 1.0, 1_000, 4), ("grr", 8, 6.0, 100, 4),
    ("oue", 16, 0.1, 1_000, 4), ("oue", 16, 1.0, 100_000, 4), ("oue", 16, 6.0, 100, 4),
    ("olh", 8, 1.0, 300, 4), ("olh", 8, 4.0, 300, 4), ("hr", 8, 1.0, 500, 4),
    ("hr", 64, 3.0, 2_000, 4), ("hr", 16, 6.0, 100, 4), ("she", 8, 1.0, 100, 4),
]  # fmt: skip
#: Panels that are simulated at once.
TOGETHER = 100
#: Panels: epsilon of a report and of all.
PANELS = [(0.5, 1.0), (1.0, 2.0), (1.0, 4.0), (2.0, 2.2)]


def skewed(k: int) -> NDArray[np.float64]:
    """Frequencies that fall like v^-1.5."""
    f = np.arange(1, k + 1.0) ** -1.5
    return np.asarray(f / f.sum())


def sampled(m: FrequencyOracle, f: NDArray[np.float64], n: int, rng: Generator) -> dn.Tally:
    return dn.Tally.of_counts(m, m.simulate(rng.multinomial(n, f), rng), n)


def panels(
    m: dn.BasicRAPPOR, answers: Sequence[NDArray[np.int64]], runs: int, rng: Generator
) -> Iterator[dn.Rounds]:
    """The rounds of as many panels; ``answers[r]`` are those of one panel in round r.

    Many panels are one large panel, cut into pieces: that is much faster than one by one.
    """
    n = len(answers[0])
    for start in range(0, runs, TOGETHER):
        some = min(TOGETHER, runs - start)
        panel = dn.Panel(m, some * n, rng)
        reports = [panel.privatize(np.tile(given, some)) for given in answers]
        for first in range(0, some * n, n):
            rounds = dn.Rounds(m)
            for r, one in enumerate(reports):
                # So few reports are counted faster than a second thread starts.
                rounds.add(r, m.tally().add(one[first : first + n], threads=1))
            yield rounds


def coverage(runs: int, rng: Generator) -> list[dict[str, Any]]:
    """How often the 95 % intervals of eight pooled rounds of one panel hold the truth."""
    answers = np.repeat(np.arange(4), [900, 600, 400, 100])
    truth = np.bincount(answers) / len(answers)
    rows = []
    for epsilon, in_all in PANELS:
        m = dn.BasicRAPPOR(4, epsilon, epsilon_inf=in_all)
        found: dict[str, list[Any]] = {"same": [], "fresh": []}
        widths: dict[str, list[float]] = {"same": [], "fresh": []}
        for rounds in panels(m, [answers] * 8, runs, rng):
            for kind in found:
                low, high = rounds.pooled("unbiased", respondents=kind).intervals.T
                found[kind].append((low <= truth) & (truth <= high))
                widths[kind].append(float(np.mean(high - low)))
        row: dict[str, Any] = {"epsilon": epsilon, "epsilon_inf": in_all}
        for kind in found:
            row |= {kind: float(np.mean(found[kind])), f"{kind}_width": np.mean(widths[kind])}
        rows.append(row)
    return rows


def false_alarms(runs: int, rng: Generator) -> list[dict[str, Any]]:
    """How often anything is flagged in a stable series, and how often an interval misses 0."""
    rows = []
    for name, k, epsilon, n, count in STABLE:
        m = find_oracle(name)(k, epsilon)
        flagged = missed = 0
        for _ in range(runs):
            rounds = dn.Rounds(m)
            for r in range(count):
                rounds.add(r, sampled(m, skewed(k), n, rng))
            found = rounds.changes(FALSE_ALARM)
            low, high = found.intervals[..., 0], found.intervals[..., 1]
            flagged += bool(found.flagged.any())
            missed += bool(np.any((low > 0) | (high < 0)))
        case = {"mechanism": name, "k": k, "epsilon": epsilon, "n": n, "test": found.test}
        rows.append({**case, "any_flag": flagged / runs, "any_interval_missed": missed / runs})
    return rows


def panel_alarms(runs: int, rng: Generator) -> list[dict[str, Any]]:
    """False alarms and power of both tests on panels with memos, for growing changes."""
    rows = []
    for epsilon, in_all in PANELS:
        m = dn.BasicRAPPOR(4, epsilon, epsilon_inf=in_all)
        for moved in (0, 200, 400, 800, 1600):
            before = np.repeat(np.arange(4), [4000, 3000, 2000, 1000])
            after = np.where(np.arange(10_000) < moved, 3, before)
            seen = {"same": 0, "fresh": 0}
            for rounds in panels(m, [before, after], runs, rng):
                for kind in seen:
                    found = rounds.changes(FALSE_ALARM, respondents=kind)
                    seen[kind] += bool(found.flagged[0, [0, 3] if moved else slice(None)].any())
            case = {"epsilon": epsilon, "epsilon_inf": in_all, "moved": moved / 10_000}
            rows.append({**case, **{kind: seen[kind] / runs for kind in seen}})
    return rows


def picture(out: Path, rng: Generator) -> Path:
    """The chart of the documentation: people take to the bicycle in May."""
    labels = ["car", "train", "bus", "bicycle", "on foot", "other"]
    winter, summer = [0.47, 0.17, 0.12, 0.11, 0.08, 0.05], [0.40, 0.17, 0.12, 0.18, 0.08, 0.05]
    truth = np.array([winter] * 4 + [summer] * 4)
    m = dn.OUE(labels, 1.0)
    rounds = dn.Rounds(m)
    for month, f in enumerate(truth, 1):
        rounds.add(f"2026-{month:02d}", sampled(m, f, 60_000, rng))
    series = rounds.estimate(population="everyone")
    return series.save(out / "series.png", truth=truth, changes=rounds.changes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/series"))
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    runs, rng = 200 if given.quick else 2_000, np.random.default_rng(1)
    print(picture(given.out, rng))
    titles = {
        "coverage": (coverage, "8 rounds of one panel of 2,000: pooled 95 % intervals that hold"),
        "false_alarms": (
            false_alarms,
            "4 fresh samples of a stable population: at most 5 % wanted",
        ),
        "panels": (panel_alarms, "2 rounds of one panel of 10,000: how often a change is flagged"),
    }
    results = {}
    for name, (measure, title) in titles.items():
        results[name] = measure(runs, rng)
        show(results[name], Format.table, f"{title} ({runs:,} runs)")
    (given.out / "series.json").write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
