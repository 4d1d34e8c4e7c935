"""The laws of shares: what must hold for every mechanism for sets of answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.answers.items import Items
from deniable.arrays import Floats
from deniable.conformance import members
from deniable.conformance.members import FALSE_ALARM, check
from deniable.core.tally import Tally
from deniable.errors import InvalidArgument, TooFew
from deniable.estimation.shares.task import PAIRS, SHARES
from deniable.mechanisms.items import ItemMechanism
from deniable.privacy import exact_channel
from deniable.randomness import draw_key

Family = type[ItemMechanism]

EPSILONS = (1.0, 4.0)


def small(family: Family) -> Iterator[ItemMechanism]:
    """Members whose channel can be enumerated."""
    for domain in family.small_domains():
        for design in family.shapes:
            yield family(domain, EPSILONS[0], **design)


def large(family: Family) -> Iterator[ItemMechanism]:
    """Members as they are used: with a cap, without, for pairs, and where people may skip."""
    yield family(Items(10, 3), 1.0)
    yield family(Items(20, 2), 4.0)
    yield family(Items(8), 4.0)
    yield family(Items(10, 3), 2.0, **family.advised(Items(10, 3), 2.0, 1, ("pairs",)))
    yield family(Items(6, 3, optional=True), 2.0)


def exact_law(family: Family) -> None:
    """From the exact channel: every set supports its own items with p, all others with q.

    And two items with p2, p1 or p0, whatever else is in the set.
    """
    for m in small(family):
        values: Any = m.domain.values(1 << 10)
        channel = exact_channel(m.report, values)
        probabilities = np.array(channel.matrix, dtype=np.float64)
        counts = [m.count(m.pack([output])) for output in channel.outputs]
        found = [m.supported(one, 1) for one in counts]
        supporting, asked = (probabilities @ np.array(part) for part in zip(*found, strict=True))
        own = np.array([[v in value for v in range(m.domain.items)] for value in values])
        expected = np.where(own, m.law.p, m.law.q)
        wrong = not np.allclose(supporting / asked, expected, rtol=1e-12)
        check(wrong, "exact_law", m, f"items are supported with {supporting / asked}")
        check(not np.allclose(asked, m.asked[0]), "exact_law", m, f"asked with {asked}")
        if m.paired:
            _check_pairs(m, probabilities, counts, own)


def _check_pairs(m: ItemMechanism, probabilities: Floats, counts: Any, own: Any) -> None:
    found: Any = [m.pairs_supported(one, 1) for one in counts]
    u, v = found[0].u, found[0].v
    expected = list(combinations(range(len(m.domain.names)), 2))
    check(list(zip(u, v, strict=True)) != expected, "exact_law", m, "pairs in another order")
    asked = probabilities @ np.array([one.asked for one in found])
    both, first, second = (
        probabilities @ np.array([getattr(one, name) for one in found]) / asked
        for name in ("both", "first", "second")
    )
    ticked = own[:, u].astype(int) + own[:, v]
    law = np.array([m.law.p0, m.law.p1, m.law.p2])[ticked]
    wrong = not np.allclose(both, law, rtol=1e-12)
    check(wrong, "exact_law", m, f"pairs are supported with {both}")
    a, ab, abc = m.law.scores
    neither = 1 - first - second + both
    score = a * neither + ab * (first + second - 2 * both) + abc * both
    biased = not np.allclose(score, ticked == 2, atol=1e-9)
    check(biased, "exact_law", m, f"pairs are estimated as {score}")
    check(not np.allclose(asked, m.asked[1]), "exact_law", m, f"asked with {asked}")


def simulated_errors(family: Family) -> None:
    """Squared errors of shares are as the variance says for what was answered.

    Null hypothesis: they are normal with that variance, which makes sums over runs chi-square.
    """
    from scipy.stats import chi2

    runs, n = 120, 3_000
    for m in large(family):
        if m.domain.optional:
            continue
        ticked = _population(m.domain, n)
        f = ticked.mean(axis=0)
        asked, _ = m.asked
        spread = (1 / asked - 1) * f * (1 - f)
        variances = (m.law.variance(f) / asked + spread) / n
        found = _simulated(m, ticked, runs)
        squares = sum((e.shares - f) ** 2 / variances for e in found)
        p_values = 2 * np.minimum(chi2.cdf(squares, runs), chi2.sf(squares, runs))
        worst = int(p_values.argmin())
        words = f"errors are {squares[worst] / runs:.3f} of the formula for answer {worst}"
        low = p_values[worst] < FALSE_ALARM / len(f)
        check(low, "simulated_errors", m, f"{words}, p-value {p_values[worst]:.1e}")


def coverage(family: Family) -> None:
    """95 % intervals cover shares, the mean number of ticks, skips, pairs and associations.

    Null hypothesis: each covers with probability 0.92 at least.
    """
    runs = 200
    for m in large(family):
        for n in (200, 1_500):
            ticked = _population(m.domain, n)
            answered = ticked[ticked[:, len(m.domain.names) :].sum(axis=1) == 0]
            answers = answered[:, : len(m.domain.names)]
            try:
                found = _simulated(m, ticked, runs)
            except TooFew:
                continue
            truth = answers.mean(axis=0)
            _check_coverage(m, "shares", [e.intervals for e in found], truth)
            ticks = [np.array([e.ticks.interval]) for e in found]
            _check_coverage(m, "ticks", ticks, np.array([truth.sum()]))
            if m.domain.optional:
                skips = [np.array([e.skipped.interval]) for e in found]
                _check_coverage(m, "skips", skips, np.array([1 - len(answered) / n]))
            elif m.paired and n > 1_000:
                _check_pair_coverage(m, ticked, runs)


def _check_pair_coverage(m: ItemMechanism, ticked: NDArray[Any], runs: int) -> None:
    found = _simulated(m, ticked, runs, PAIRS)
    u, v = np.array(list(combinations(range(ticked.shape[1]), 2))).T
    truth = (ticked[:, u] & ticked[:, v]).mean(axis=0)
    f = ticked.mean(axis=0)
    for name, true in (("share", truth), ("association", truth - f[u] * f[v])):
        _check_coverage(m, name, [e.quantities[name].intervals for e in found], true)


def _check_coverage(m: ItemMechanism, what: str, intervals: list[Floats], truth: Floats) -> None:
    from scipy.stats import binom

    low, high = np.moveaxis(np.array(intervals), 2, 0)
    hits = np.sum((low <= truth + 1e-12) & (truth <= high + 1e-12), axis=0)
    worst = int(hits.argmin())
    p_value = float(binom.cdf(hits[worst], len(intervals), 0.92))
    words = f"{hits[worst] / len(intervals):.3f} of the intervals of {what} {worst} cover"
    check(p_value < FALSE_ALARM / len(truth), "coverage", m, f"{words}, p-value {p_value:.1e}")


def _population(domain: Items, n: int) -> NDArray[np.bool_]:
    """Sets of all sizes, of answers that are more and less popular and some of which go together.

    A tenth of the people skip where they may.
    """
    rng = np.random.default_rng(5)
    k, m = len(domain.names), domain.at_most
    liked = rng.random((n, k)) * np.linspace(1.0, 0.3, k)
    liked[:, 1] += 0.5 * (liked[:, 0] > 0.6)
    order = np.argsort(-liked, axis=1)
    sizes = rng.binomial(m, 0.4, n)
    ticked = np.zeros((n, domain.items), dtype=np.bool_)
    np.put_along_axis(ticked, order, np.arange(k) < sizes[:, None], axis=1)
    if domain.optional:
        ticked[: n // 10, :k] = False
        ticked[: n // 10, k] = True
    return ticked


def _simulated(
    m: ItemMechanism, ticked: NDArray[np.bool_], runs: int, method: str | None = None
) -> list[Any]:
    """The estimates of several collections of the same answers."""
    n, places = len(ticked), np.arange(m.domain.items)
    sets = [m.domain.padded(places[row].tolist()) for row in ticked]
    values = np.tile(np.array(sets, dtype=m.domain.dtype), runs)
    data = m.randomise(values, draw_key(np.random.default_rng(7)))
    counts = (m.count(data[first : first + n]) for first in range(0, len(data), n))
    return [_estimate(Tally.of_counts(m, one, n), method) for one in counts]


def _estimate(tally: Tally, method: str | None) -> Any:
    return SHARES.estimate([tally], method)


def decoders(family: Family) -> None:
    """Estimates are finite, in their intervals, the same again, and merged parts are one part."""
    for m in large(family):
        if PAIRS not in SHARES.methods(m):
            reports = members.reports_of(m, m.domain.sample(), 300, 9)
            members.refused("decoders", m, InvalidArgument, m.estimate, reports, PAIRS)
        for n in (300, 20_000):
            reports = members.reports_of(m, m.domain.sample(), n, 9)
            for method in SHARES.methods(m):
                e, again, parts = (
                    SHARES.estimate(given, method)
                    for given in ([reports], [reports], [reports[:100], reports[100:]])
                )
                check(e.to_json() != again.to_json(), "decoders", m, "two answers to one question")
                check(e.to_json() != parts.to_json(), "decoders", m, "parts are not the whole")
                for name, one in e.quantities.items():
                    numbers = (one.values, one.standard_errors, one.intervals)
                    finite = all(np.isfinite(some).all() for some in numbers)
                    check(not finite, "decoders", m, f"{name} is not finite")
                    low, high = one.intervals.T
                    inside = np.all((low <= one.values) & (one.values <= high))
                    check(not inside, "decoders", m, "an interval without its estimate")


SHARES_LAWS: tuple[Callable[[Any], None], ...] = (
    exact_law,
    simulated_errors,
    coverage,
    decoders,
)
