"""Which words do people use most? Nobody lists them in advance, and nobody tells.

    python examples/words.py --data ../shared/data/en_words_50k.parquet --out out/words

Simulated people each report one word of English subtitles through O-RR and through RAPPOR. The
analyst then looks for candidates, from which some of the most frequent words are missing, and
finds those whose simultaneous interval lies above 0. The data (columns ``word`` and ``count``) are
Hermit Dave's word counts of OpenSubtitles 2018. Writes a table, a JSON file and a chart.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

import deniable as dn
from deniable.estimation import FREQUENCIES
from deniable.extras import altair, pandas
from deniable.texts import tidy
from deniable.views import save
from deniable.views.charts import INK, TRUTH
from deniable.views.tables import rich_table

MECHANISMS = (dn.ORR, dn.RAPPOR)
#: sum f^2 of English words is near 0.01: the most frequent one has 4 %.
SECOND_MOMENT = 0.01
SHOWN = 40
#: Every so many of the most frequent words is not on the list of candidates.
FORGOTTEN = 9
COLOURS = {"found": "#1b6ca8", "missed": "#9aa5b1", "not on the list": TRUTH}


@dataclass(frozen=True, eq=False)
class People:
    """Who answered what: ``truth[i]`` is the share of ``words[i]``, the most frequent first."""

    words: list[str]
    truth: NDArray[np.float64]
    answers: NDArray[np.int64]

    @property
    def candidates(self) -> list[str]:
        """The words that the analyst thinks of, in alphabetical order."""
        return sorted(w for i, w in enumerate(self.words) if i >= SHOWN or i % FORGOTTEN)


def invent(path: Path, n: int, rng: np.random.Generator) -> People:
    """n people who each answer one word, with the frequencies of the data.

    Words that are one answer, like "floor" with and without a ligature, count together.
    """
    table = pandas().read_parquet(path)
    found = table.groupby(table["word"].astype(str).map(tidy))["count"].sum()
    found = found.sort_values(ascending=False, kind="stable")
    words, counts = found.index.tolist(), found.to_numpy(dtype=float)
    answers = rng.choice(len(words), n, p=counts / counts.sum())
    return People(words, np.bincount(answers, minlength=len(words)) / n, answers)


def collect(family: Any, people: People, epsilon: float) -> dn.Frequencies:
    """Randomise on the devices (secure coins), count, and look for the candidates."""
    n = people.answers.size
    m = family(dn.Text(), epsilon, **family.suggest(epsilon, n, SECOND_MOMENT))
    words = np.array(people.words, dtype=object)
    tally: dn.Tally = m.tally(m.privatize(words[people.answers]))
    return FREQUENCIES.estimate([tally], candidates=people.candidates, simultaneous=True)


def rows_of(name: str, people: People, estimate: dn.Frequencies) -> list[dict[str, Any]]:
    """One row a word: truth, estimate and interval, and what became of it."""
    place = {label: i for i, label in enumerate(estimate.labels)}
    rows: list[dict[str, Any]] = []
    for word, truth in zip(people.words, people.truth.tolist(), strict=True):
        row: dict[str, Any] = {"mechanism": name, "word": word, "truth": truth}
        if word in place:
            low, high = estimate.intervals[place[word]].tolist()
            frequency = float(estimate.frequencies[place[word]])
            fate = "found" if low > 0 else "missed"
            rows.append({**row, "estimate": frequency, "low": low, "high": high, "fate": fate})
        else:
            rows.append({**row, "fate": "not on the list"})
    return rows


def summary(estimate: dn.Frequencies, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """How much was found, and how much was not."""
    found = [row for row in rows if row["fate"] == "found"]
    listed = [row for row in rows if "low" in row]
    covered = sum(row["low"] <= row["truth"] <= row["high"] for row in listed)
    low, high = estimate.intervals[-1].tolist()
    return {
        "mechanism": estimate.source,
        "found": len(found),
        "found that nobody said": sum(row["truth"] == 0 for row in found),
        f"missed of the {SHOWN} most frequent": sum(r["fate"] == "missed" for r in rows[:SHOWN]),
        "not on the list": len(rows) - len(listed),
        "intervals that miss": len(listed) - covered,
        "outside, at least": round(low, 4),
        "outside, at most": round(high, 4),
        "outside, truth": round(1 - sum(row["truth"] for row in listed), 4),
    }


def chart(rows: list[dict[str, Any]], title: str) -> Any:
    """The most frequent words: intervals, estimates and the truth, one panel a mechanism."""
    alt = altair()
    order = list(dict.fromkeys(row["word"] for row in rows))
    scale = alt.Scale(domain=list(COLOURS), range=list(COLOURS.values()))
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y("word:N", sort=order, title=None),
        color=alt.Color("fate:N", scale=scale, title=None, legend=alt.Legend(orient="top")),
    )
    forgotten = alt.datum.fate == "not on the list"
    tick = alt.when(forgotten).then(alt.value(TRUTH)).otherwise(alt.value(INK))
    share = alt.X("estimate:Q", title="share of all answers", axis=alt.Axis(format="%"))
    layers = alt.layer(
        base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q"),
        base.mark_point(filled=True, size=45, opacity=1).encode(x=share),
        base.mark_tick(height=9, thickness=1.8, opacity=1).encode(x="truth:Q", color=tick),
    )
    heading = alt.TitleParams(
        title,
        subtitle="lines: intervals that hold for all candidates together; ticks: the truth",
        anchor="start",
    )
    panels = layers.properties(width=300).facet(column=alt.Column("mechanism:N", title=None))
    return panels.properties(title=heading)


def table_of(rows: list[dict[str, Any]]) -> Any:
    """The most frequent words in a table, the mechanisms side by side."""
    by_word: dict[str, dict[str, Any]] = {}
    for row in rows:
        shown = by_word.setdefault(
            row["word"], {"word": row["word"], "truth": f"{row['truth']:.4f}"}
        )
        interval = f"{row['low']:7.5f} .. {row['high']:.5f}" if "low" in row else row["fate"]
        shown |= {row["mechanism"]: interval + ("  missed" if row["fate"] == "missed" else "")}
    return rich_table(list(by_word.values()), f"The {SHOWN} most frequent words")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="Parquet: columns word, count")
    parser.add_argument("--out", type=Path, default=Path("out/words"))
    parser.add_argument("--people", type=int, default=1_000_000)
    parser.add_argument("--epsilon", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=1, help="of the invented answers")
    given = parser.parse_args()
    if not given.data.exists():
        wanted = "a Parquet file with the columns word and count, such as FrequencyWords' en_50k"
        sys.exit(f"words: no file {given.data}; give {wanted} (--data, or make words WORDS=FILE)")
    return given


def main() -> None:
    given, console = arguments(), Console()
    people = invent(given.data, given.people, np.random.default_rng(given.seed))
    rows, sums = [], []
    for family in MECHANISMS:
        with console.status(f"{family.__name__}: {given.people:,} people answer ..."):
            estimate = collect(family, people, given.epsilon)
        of_family = rows_of(family.__name__, people, estimate)
        sums.append(summary(estimate, of_family))
        rows += of_family[:SHOWN]
    console.print(table_of(rows))
    for found in sums:
        console.print(*(f"  {key}: {value}" for key, value in found.items()), "", sep="\n")
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "words.json").write_text(json.dumps({"summary": sums, "words": rows}, indent=1))
    title = f"Words found among {given.people:,} private answers, epsilon = {given.epsilon:g}"
    console.print(f"chart: {save(chart(rows, title), given.out / 'words.png', scale=1.3)}")


if __name__ == "__main__":
    main()
