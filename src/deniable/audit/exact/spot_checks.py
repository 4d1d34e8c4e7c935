"""Walks at the real size: does code that nobody can enumerate do what it declares?

A mechanism that is too large is verified from its integers and from small relatives, which says
nothing about code that does something else for many answers. So its own report function is run for
a few values (the first two, one of the middle and the last) with coins that fall by chance, u, and
each on the same path for another of them, v:

- words: a report draws `coin_words` words;
- thresholds: a coin has one of the declared integers, T / 2**64 or 1 - T / 2**64;
- paths: either what u and v draw with differs or what they tell, not both; and a path to the same
  report, also the one with all coins that differ turned in favour of u, is at most as many times as
  likely under u as under v as is declared. Of a mechanism that remembers, a report is what is kept;
- truth: a report supports its own value as often as p says (an exact binomial test of each value
  and of all together; honest code fails it with a probability below 1e-9).

The first three are true of the families here, but no laws: what small relatives do, whose branches
were all judged, is no fault. A fault so is no proof that a promise is broken. It says that what was
enumerated is not what runs.

This catches, for a value that is walked: a threshold that is not declared, if only by 2**-64; a
declared one that is used for more bits than it should be; a value written into a report whose
thresholds depend on the value, too; a truth that is always told, where reports support values and
p^n is below 1e-10 for the n walks of the value or of all values. It cannot catch: another value; a
branch that is rarer than one in some walks; and, where a value enters what is told and not the
thresholds (randomised response, hashing, Hadamard, sets, noisy histograms, questions), whatever
leaves thresholds and the share of true reports as they are, such as a value hidden in the choice of
a hash function.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from random import Random
from typing import Any

from deniable.audit.black_box.encoding import frozen
from deniable.audit.exact.branches import Report, remembered
from deniable.audit.exact.checks import Walks
from deniable.mechanisms import Mechanism
from deniable.mechanisms.frequency import oracle_of
from deniable.privacy import PathCoins
from deniable.privacy.enumeration import MAX_DRAWS
from deniable.randomness import SCALE, WORD_BYTES, ByteCoins

#: Honest code is called suspicious with at most this probability, over the choice of the seed.
ERROR, SEED = 1e-9, 1975
#: Draws, and walks of one value, that are spent at most on how often the truth is told.
DRAWS, MOST_WALKS = 4_000_000, 250
#: Paths of each value of a small relative that are compared.
SMALL_PATHS = 5

#: What was seen: its kind, and words.
Oddity = tuple[str, str]


def walk(m: Mechanism, small: Sequence[Mechanism]) -> Walks:
    """Walk through a mechanism, and through relatives of it that were enumerated."""
    rng, values = Random(SEED), walked(m)
    usual = {
        kind
        for one in small
        for _ in range(SMALL_PATHS)
        for kind, _ in _oddities(one, one.domain.sample(), rng)
    }
    found: dict[str, str] = {}
    for kind, words in _oddities(m, values, rng):
        found.setdefault(kind, words)
    faults = [words for kind, words in found.items() if kind not in usual]
    runs = len(values)
    try:
        more, told = _truth(m, values, rng)
    except RuntimeError as error:  # the coins ran out
        more, told = 0, [str(error)]
    return Walks(runs + more, (*faults, *told))


def walked(m: Mechanism) -> list[Any]:
    """The values to walk with: the first two, one of the middle and the last."""
    sample = m.domain.sample()
    last = len(sample) - 1
    return [sample[place] for place in sorted({0, min(1, last), (last + 1) // 2, last})]


class ChanceCoins(PathCoins):
    """Coins that fall by chance, and remember their path and which thresholds they had."""

    def __init__(self, rng: Random, most_draws: int) -> None:
        self.path: list[int] = []
        super().__init__(self.path, most_draws)
        self._rng = rng
        self.thresholds: set[int] = set()

    def below(self, threshold: int) -> bool:
        self.thresholds.add(threshold)
        self.path.append(int(self._rng.getrandbits(64) >= threshold))
        return super().below(threshold)

    def choice(self, size: int) -> int:
        self.path.append(self._rng.getrandbits(64) * size >> 64)
        return super().choice(size)

    def pick(self, edges: Sequence[int]) -> int:
        self.path.append(bisect_right(edges, self._rng.getrandbits(64)))
        return super().pick(edges)


class FollowingCoins(PathCoins):
    """Coins that fall as others did, as far as they can; ``path`` is how they fell."""

    def __init__(self, path: list[int], most_draws: int) -> None:
        self.path = list(path)
        super().__init__(self.path, most_draws)

    def _next(self, size: int) -> int:
        outcome = min(super()._next(size), size - 1)
        self.path[len(self.sizes) - 1] = outcome
        return outcome


def _oddities(m: Mechanism, values: Sequence[Any], rng: Random) -> Iterator[Oddity]:
    """What each value draws, and how its path compares with that of the next value."""
    most_draws = 2 * m.coin_words + MAX_DRAWS
    report, ratio, words = _released(m)
    for place, value in enumerate(values):
        coins = ChanceCoins(rng, most_draws)
        m.report(value, coins)
        yield from _draws(m, value, coins)
        pair = value, values[place - 1]
        path = coins.path[:words]
        one, two, same = _both(report, pair, path, most_draws)
        yield from _path(pair, one, two, same, ratio)
        if one.sizes == two.sizes and one.weights != two.weights:
            steered = _both(report, pair, _steered(one, two), most_draws)
            yield from _path(pair, *steered, ratio)


def _both(
    report: Report, pair: tuple[Any, Any], path: list[int], most_draws: int
) -> tuple[FollowingCoins, FollowingCoins, bool]:
    """The coins of two values on one path, and whether they tell the same."""
    one, two = (FollowingCoins(path, most_draws) for _ in pair)
    told = [frozen(report(value, coins)) for value, coins in zip(pair, (one, two), strict=True)]
    return one, two, told[0] == told[1]


def _steered(one: FollowingCoins, two: FollowingCoins) -> list[int]:
    """The path with the coins that differ turned to where they speak for the first most."""
    draws = zip(one.path, one.sizes, one.weights, two.weights, strict=False)
    return [
        1 - outcome if a != b and size == 2 and (SCALE - a) * b > a * (SCALE - b) else outcome
        for outcome, size, a, b in draws
    ]


def _draws(m: Mechanism, value: Any, coins: ChanceCoins) -> Iterator[Oddity]:
    if len(coins.sizes) != m.coin_words:
        yield "words", f"{value} draws {len(coins.sizes):,} words, declared {m.coin_words:,}"
    declared = {getattr(one, name) for one in (m, *m.parts) for name in one.thresholds}
    unknown = coins.thresholds - declared - {SCALE - threshold for threshold in declared}
    if unknown:
        yield "thresholds", f"{value} draws with {min(unknown)} / 2**64, which is not declared"


def _released(m: Any) -> tuple[Report, Fraction, int]:
    """What may be seen of a respondent, the likelihood ratio that is declared for it, and how many
    of the words of a report it needs."""
    if m.remembers:
        return partial(remembered, m, 0), m.lasting.ratio, m.begin_words + m.memoise_words
    return m.report, m.once.ratio, m.coin_words


def _path(
    pair: tuple[Any, Any], one: PathCoins, two: PathCoins, same: bool, ratio: Fraction
) -> Iterator[Oddity]:
    """What is odd about one path of coins under two values."""
    names = f"{pair[0]} and {pair[1]}"
    if one.sizes != two.sizes:
        yield "draws", f"{names} draw something else where coins fall in the same way"
    elif one.weights != two.weights and not same:
        yield "both", f"{names} tell something else and draw with other thresholds, too"
    elif (found := _times(one, two)) > ratio:
        times = f"{float(found):.6g} times as likely under {pair[0]} as under {pair[1]}"
        yield "ratio", f"one path to the same report is {times}, declared {float(ratio):.6g}"


def _times(one: PathCoins, two: PathCoins) -> Fraction | float:
    """How many times as likely a path is with the first coins as with the second."""
    pairs = [(a, b) for a, b in zip(one.weights, two.weights, strict=True) if a != b]
    if any(not b for _, b in pairs):
        return math.inf
    return math.prod((Fraction(a, b) for a, b in pairs), start=Fraction(1))


def _truth(m: Mechanism, values: Sequence[Any], rng: Random) -> tuple[int, list[str]]:
    """The number of walks, and what is wrong with how often they support their own value."""
    column = m.pack([_report(m, values[0], rng)])
    oracle = oracle_of(m)
    if oracle is None or not oracle.domain.is_listed or oracle.chances is None:
        return 1, []
    if oracle.supports(oracle.count(column), 1) is None:
        return 1, []
    p, tests = oracle.chances[0], len(values) + 1
    needed = math.ceil(math.log(ERROR / (2 * tests)) / math.log(float(p)))
    n = max(2, min(needed, MOST_WALKS, DRAWS // (m.coin_words * len(values))))
    hits = {}
    for value in values:
        counts = m.count(m.pack([_report(m, value, rng) for _ in range(n)]))
        supports: Any = oracle.supports(counts, n)
        hits[value] = int(supports[value])
    said = [_told(f"value {value}", count, n, p, tests) for value, count in hits.items()]
    said.append(_told("all values", sum(hits.values()), n * len(values), p, tests))
    return 1 + n * len(values), [words for words in said if words]


def _report(m: Mechanism, value: Any, rng: Random) -> Any:
    return m.report(value, ByteCoins(rng.randbytes(m.coin_words * WORD_BYTES)))


def _told(whose: str, hits: int, n: int, p: Fraction, tests: int) -> str:
    """Words if so many hits have a two-sided probability below the error, for so many tests."""
    from scipy.special import bdtr, bdtrc

    chance = 2 * min(bdtr(hits, n, float(p)), bdtrc(hits - 1, n, float(p)))
    if chance * tests > ERROR:
        return ""
    return f"{hits} of {n} reports of {whose} support their own, declared {float(p):.3g} of them"
