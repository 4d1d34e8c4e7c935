"""Where a leak could show: events of a report, found on one part of the sample, tested on another.

A report is looked at through features, each true or false in a round: a position has a value, or
lies above a cut, or has a bit set, or a value occurs anywhere. Events are made of these, of whole
reports and of their lengths. Any function of a report is fair: what it tells, the report tells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Bools, Floats, Indices, Integers
from deniable.audit.black_box.encoding import Encoded, whole_bits

#: A position with more values than this is cut at quantiles.
FEW = 32
CUTS = 8
#: Positions that are cut are looked at bit by bit, too, if they are at most so many.
PACKED = 8
#: Features that are paired, and outputs that are looked at one by one.
PAIRED, OUTPUTS = 16, 64
#: A feature is used by the classifier if it differs by so many standard deviations.
CLEAR = 3.0
#: Quantiles of the classifier's score that are tried as cuts.
SCORES = (0.02, 0.1, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99)
#: What makes an output typical of a value: so many times as frequent, half an observation added.
TYPICAL = 2.9


@dataclass(frozen=True, eq=False)
class Sample:
    """Some respondents: ``totals[f]`` are the rounds in which feature f is true."""

    totals: NDArray[Any]
    keys: list[Any]
    sizes: Integers
    rounds: int

    def __len__(self) -> int:
        return len(self.keys)


#: Which respondents an event happened to.
Test = Callable[[Sample], Bools]


@dataclass(frozen=True, eq=False)
class Event:
    """Something that a report does or does not."""

    kind: str
    words: str
    test: Test


@dataclass(frozen=True)
class Feature:
    """``place`` (None: any) has the value ``at``, or at least that if ``above``.

    With ``bit``, it is that bit of an integer which has the value.
    """

    name: str
    place: int | None
    at: float
    above: bool = False
    bit: int | None = None

    def holds(self, places: NDArray[Any]) -> Bools:
        """For each respondent and round."""
        if self.place is None:
            return np.asarray((places == self.at).any(axis=2))
        column = places[:, :, self.place]
        if self.bit is not None:
            column = column.astype(np.uint64) >> np.uint64(self.bit) & np.uint64(1)
        return np.asarray(column >= self.at if self.above else column == self.at)

    @property
    def words(self) -> str:
        return f"{self.name} {'>=' if self.above else 'is'} {self.at:g}"


@dataclass(frozen=True, eq=False)
class Features:
    """The features of a kind of reports."""

    features: tuple[Feature, ...]

    @classmethod
    def of(cls, parts: Sequence[Encoded], extra: Sequence[str] = ()) -> Features:
        """Those of some reports; the last positions have ``extra`` names."""
        # Not reshape(-1, ...): reports without any position have a width of 0.
        rows = [part.places.swapaxes(0, 1) for part in parts]
        places = np.concatenate([one for part in rows for one in part])
        width = places.shape[1] - len(extra)
        names = [f"position {i}" for i in range(width)] + list(extra)
        found = [f for i, name in enumerate(names) for f in _column(name, i, places[:, i])]
        many = sorted({f.place for f in found if f.above and f.place is not None})
        if len(many) <= PACKED:
            found += [f for i in many for f in _bits(names[i], i, places[:, i])]
        anywhere = np.unique(places[:, :width])
        if width > 1 and 2 < anywhere.size <= FEW and not np.isnan(anywhere).any():
            found += [Feature("any position", None, float(y)) for y in anywhere]
        return cls(tuple(found))

    def sample(self, part: Encoded) -> Sample:
        """What the features are for some respondents."""
        totals = np.zeros((len(self.features), len(part)), dtype=np.uint16)
        for row, feature in zip(totals, self.features, strict=True):
            row[:] = feature.holds(part.places).sum(axis=1)
        return Sample(totals, part.keys, part.sizes, part.places.shape[1])


def _column(name: str, place: int, column: NDArray[Any]) -> Iterator[Feature]:
    """One feature for two values, one a value for a few, and cuts for many."""
    known = column[~np.isnan(column)] if column.dtype.kind == "f" else column
    values = np.unique(known)
    if values.size == 2 and known.size == column.size:
        yield Feature(name, place, float(values[1]))
    elif 1 < values.size <= FEW or (values.size == 1 and known.size < column.size):
        yield from (Feature(name, place, float(y)) for y in values)
    elif values.size > FEW:
        inner = np.linspace(0, 1, CUTS + 2)[1:-1]
        cuts = np.quantile(known, inner, method="inverted_cdf")  # between infinities is no middle
        yield from (Feature(name, place, float(y), above=True) for y in np.unique(cuts))


def _bits(name: str, place: int, column: NDArray[Any]) -> Iterator[Feature]:
    """One feature for each bit of an integer."""
    for bit in range(whole_bits(column)):
        yield Feature(f"bit {bit} of {name}", place, 1, bit=bit)


def candidates(features: Features, samples: Sequence[Sample], values: Sequence[Any]) -> list[Event]:
    """All events that are worth a look, learned from one sample a value."""
    return [
        *_positions(features, samples[0].rounds),
        *_pairs(features, samples),
        *_ones(samples),
        *_lengths(samples),
        *_outputs(samples),
        *_typical(samples, values),
        *_scores(samples, values),
    ]


def _levels(rounds: int) -> list[int]:
    """In at least how many rounds a feature may be asked to hold."""
    return sorted({int(r) for r in np.linspace(1, rounds, min(rounds, CUTS))})


def _often(level: int, rounds: int) -> str:
    return "" if rounds == 1 else f" in at least {level} of {rounds} reports"


def _positions(features: Features, rounds: int) -> Iterator[Event]:
    """A feature holds in at least so many rounds, or in fewer."""

    def holds(feature: int, level: int, yes: bool) -> Test:
        return lambda s: (s.totals[feature] >= level) == yes

    for i, feature in enumerate(features.features):
        for level in _levels(rounds):
            words = feature.words + _often(level, rounds)
            yield Event("position", words, holds(i, level, True))
            yield Event("position", f"not: {words}", holds(i, level, False))


def _pairs(features: Features, samples: Sequence[Sample]) -> Iterator[Event]:
    """Of the clearest features, two hold in at least half the rounds, or one, or neither does."""
    clearest = np.argsort(-clearness(samples))[:PAIRED].tolist()
    rounds = samples[0].rounds
    level = -(-rounds // 2)

    def both(i: int, a: bool, j: int, b: bool) -> Test:
        return lambda s: ((s.totals[i] >= level) == a) & ((s.totals[j] >= level) == b)

    for i, j in combinations(sorted(clearest), 2):
        for a, b in product((True, False), repeat=2):
            said = [
                ("" if yes else "not ") + features.features[f].words for f, yes in ((i, a), (j, b))
            ]
            words = " and ".join(said) + _often(level, rounds)
            yield Event("pair", words, both(i, a, j, b))


def _ones(samples: Sequence[Sample]) -> Iterator[Event]:
    """So many features hold, over all rounds."""

    def ones(s: Sample) -> NDArray[Any]:
        return np.asarray(s.totals.sum(axis=0, dtype=np.int64))

    yield from _both_sides("ones", "features that hold:", ones, samples)


def _lengths(samples: Sequence[Sample]) -> Iterator[Event]:
    """The report is at least so long, or shorter, or has a length of a few."""

    def is_long(length: int) -> Test:
        return lambda s: s.sizes == length

    yield from _both_sides("length", "length", lambda s: s.sizes, samples)
    lengths = np.unique(np.concatenate([s.sizes for s in samples]))
    if lengths.size <= FEW:
        for y in lengths.tolist():
            yield Event("length", f"length is {y}", is_long(y))


def _both_sides(
    kind: str, words: str, number: Callable[[Sample], NDArray[Any]], samples: Sequence[Sample]
) -> Iterator[Event]:
    """A number of each report is at least a cut, or below it."""

    def at_least(cut: int, yes: bool) -> Test:
        return lambda s: (number(s) >= cut) == yes

    for cut in _cuts(np.concatenate([number(s) for s in samples])):
        yield Event(kind, f"{words} >= {cut}", at_least(cut, True))
        yield Event(kind, f"{words} < {cut}", at_least(cut, False))


def _cuts(numbers: NDArray[Any]) -> list[int]:
    """Values that cut a sample, the smallest excepted."""
    values = np.unique(numbers)
    if values.size > FEW:
        values = np.unique(np.quantile(numbers, np.linspace(0.01, 0.99, FEW)).astype(np.int64))
    return [int(y) for y in values[1:]]


def _outputs(samples: Sequence[Sample]) -> Iterator[Event]:
    """Outputs whose frequencies differ most between values."""
    counts = [Counter(s.keys) for s in samples]
    spread = Counter(
        {y: max(c[y] for c in counts) - min(c[y] for c in counts) for c in counts for y in c}
    )
    for y, difference in spread.most_common(OUTPUTS):
        if difference > 1:
            yield Event("output", f"report is {_shown(y)}", _is_one_of(frozenset([y])))


def _typical(samples: Sequence[Sample], values: Sequence[Any]) -> Iterator[Event]:
    """The set of all outputs that were seen more often under one value than under another."""
    counts = [Counter(s.keys) for s in samples]
    for (u, cu), (v, cv) in permutations(zip(values, counts, strict=True), 2):
        chosen = frozenset(y for y in cu if (cu[y] + 0.5) / (cv[y] + 0.5) >= TYPICAL)
        if chosen:
            words = f"one of {len(chosen)} reports typical of {u!r} against {v!r}"
            yield Event("typical", words, _is_one_of(chosen))


def _is_one_of(outputs: frozenset[Any]) -> Test:
    return lambda s: np.fromiter(map(outputs.__contains__, s.keys), dtype=bool, count=len(s.keys))


def clearness(samples: Sequence[Sample]) -> Floats:
    """By how many standard deviations the means of a feature differ between values."""
    means = np.array([s.totals.mean(axis=1) / s.rounds for s in samples])
    middle = means.mean(axis=0)
    deviation = np.sqrt(2 * middle * (1 - middle) / len(samples[0])) + 1e-12
    return np.asarray((means.max(axis=0) - means.min(axis=0)) / deviation)


def _scores(samples: Sequence[Sample], values: Sequence[Any]) -> Iterator[Event]:
    """Naive Bayes: the log-likelihood ratio of two values, as if features were independent."""
    clear = np.flatnonzero(clearness(samples) > CLEAR)
    if not clear.size:
        return

    def score(s: Sample, weights: Floats, constant: float) -> Floats:
        return np.asarray(weights @ s.totals[clear] + constant * s.rounds)

    def reaches(cut: float, weights: Floats, constant: float) -> Test:
        return lambda s: score(s, weights, constant) >= cut

    for (u, su), (v, sv) in permutations(zip(values, samples, strict=True), 2):
        line = _weights(su, sv, clear)
        for cut in np.unique(np.quantile(score(su, *line), SCORES)):
            words = f"score of {u!r} against {v!r} >= {cut:.3g}"
            yield Event("score", words, reaches(cut - 1e-9, *line))


def _weights(su: Sample, sv: Sample, clear: Indices) -> tuple[Floats, float]:
    """ln(a / b) for a feature that holds, ln((1 - a) / (1 - b)) for one that does not."""
    a, b = ((s.totals[clear].sum(axis=1) + 0.5) / (len(s) * s.rounds + 1) for s in (su, sv))
    holds, fails = np.log(a / b), np.log((1 - a) / (1 - b))
    return holds - fails, float(fails.sum())


def _shown(output: Any) -> str:
    text = output.hex() if isinstance(output, bytes) else repr(output)
    return text if len(text) <= 40 else text[:37] + "..."
