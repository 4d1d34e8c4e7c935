"""The laws that every mechanism obeys, as functions that raise when one is broken.

``for law in LAWS: law(MyMechanism)`` judges a family by running its code: the exact channel on
small domains, the bulk path against it, the statistics, the tally, what is done with bad input, and
what every method of estimation makes of its reports. The test suite runs all laws on every
registered family, and plants bugs to show that each law can fail. Needs PyArrow (``pip install
'deniable[dev]'``).

A statistical law has a fixed seed and computes how probable a result at least as extreme is if the
family is right; it fails below FALSE_ALARM.
"""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.audit.checks import SLACK
from deniable.audit.exact import memory, one_report, relatives
from deniable.audit.histories import worst_histories
from deniable.audit.runs import few_runs, worst_pair
from deniable.audit.walks import walk
from deniable.collection.manifest import Collection
from deniable.collection.questions import Question
from deniable.domain import Domain
from deniable.errors import CorruptData, InvalidArgument, MismatchError
from deniable.estimation import METHODS, combine
from deniable.estimation.analytic import analytic
from deniable.estimation.evidence import Evidence
from deniable.estimation.methods import Method, methods_for
from deniable.estimation.mle.likelihood import loglikelihood, maximise
from deniable.mechanisms import Mechanism, from_spec
from deniable.mechanisms.base import CHUNK
from deniable.mechanisms.memoised import Longitudinal, Memoised
from deniable.mechanisms.mixing import GOLDEN
from deniable.privacy import Channel, exact_channel
from deniable.privacy.guarantee import CONTEXT, MAX_EPSILON, as_decimal
from deniable.randomness import (
    SCALE,
    WORD_BYTES,
    ByteCoins,
    Keystream,
    choice_weight,
)
from deniable.reports import Reports
from deniable.tally import Tally

Family = type[Mechanism]
Law = Callable[[Family], None]

FALSE_ALARM = 1e-9
EPSILONS = (0.5, 1.0, 3.0)
#: Answers, rounds and changes of the histories that are enumerated.
HISTORIES = ((2, 4, 0), (2, 4, 1), (2, 3, 2), (3, 3, 0), (3, 3, 1), (3, 3, 2))
#: Designs for these: few reports, and answers that share what they can share.
NARROW = {"w": 1, "width": 2}
#: The log-likelihood of a report may be so far from its maximum.
CERTIFIED = 1e-8
#: Numbers of answers for which code may do something else than for a few (past a word, a byte, and
#: half a thousand), with an epsilon.
WIDE = {65: 1.0, 300: 5.0, 1000: 1.0}
#: Branches that are run for each value of so many answers; and words that are drawn for them.
WIDE_BRANCHES, WIDE_WORDS = 20_000, 600_000
#: Reports of a row that no two places of a column share by chance.
STRETCH = 128


class LawBroken(AssertionError):
    """A family broke a law."""


def small(family: Family) -> Iterator[Mechanism]:
    """Members whose channel can be enumerated."""
    for epsilon in EPSILONS:
        for size in (family.only_size,) if family.only_size else (2, 3, 5):
            yield family(size, epsilon, **family.small_design)


def large(family: Family, n: int = 2_000) -> Iterator[Mechanism]:
    """Members of realistic sizes, with rows that fill their words and rows that do not."""
    for size, epsilon in ((16, 4.0), (100, 1.0), (130, 4.0)):
        yield suited(family, family.only_size or size, epsilon, n)


def suited(family: Family, size: int, epsilon: float, n: int) -> Mechanism:
    """A member with a design for n respondents, where it depends on them."""
    suggest = getattr(family, "suggest", None)
    return family(size, epsilon, **(suggest(epsilon, n, size=size) if suggest else {}))


def wide(family: Family) -> Iterator[Mechanism]:
    """Members with many answers, where a family allows them."""
    for size, epsilon in ({family.only_size: 1.0} if family.only_size else WIDE).items():
        yield family(size, epsilon)


def redrawn(m: Mechanism, number: int) -> Mechanism:
    """The same with other hash functions, if respondents share any: errors are about these, too."""
    if m.independent:
        return m
    return type(m)(m.domain, m.epsilon, **{**_design(m), "seed": number})


@lru_cache(maxsize=32)
def _channel(m: Mechanism) -> Channel:
    """Several laws look at one channel, and enumerating it takes time."""
    return m.channel()


def _binomial(m: Mechanism) -> bool:
    """Whether values have supports that follow a law of their own, with p and q."""
    return m.independent and m.supports(m.tally().counts, 0) is not None


def check(broken: Any, law: str, mechanism: Any, found: str) -> None:
    """Raise if ``broken``."""
    if broken:
        raise LawBroken(f"{law}: {mechanism!r}: {found}")


def exact_epsilon(family: Family) -> None:
    """The channel of the shipped code keeps the declared ratio, which keeps epsilon, tightly."""
    for m in small(family):
        judged = one_report(m)
        check(judged.verdict != "ok", "exact_epsilon", m, judged.words)


def exact_memory(family: Family) -> None:
    """If a device remembers: t reports from one draw cost exactly what the guarantee says.

    The draw itself costs what all reports together do, and each step draws the declared words.
    """
    for m in small(family):
        if not isinstance(m, Memoised) or m.domain.size > 3:
            continue
        _fixed_steps(m)
        for judged in memory(m):
            check(judged.verdict != "ok", "exact_memory", m, judged.words)
        for reports in (1, 2):
            stated, exact = m.permanent_guarantee, m.permanent_guarantee.exactly(reports).epsilon
            claimed = stated.after(reports=reports)
            text = f"{reports} reports cost {exact}, stated {claimed}"
            check(not exact <= claimed <= exact + SLACK, "exact_memory", m, text)


def exact_histories(family: Family) -> None:
    """If a device remembers: whole histories of answers cost at most what a collection declares.

    Enumerated are all pairs of histories that the number covers: those in which the same rounds
    have equal answers. A mechanism in which answers share a draw is refused where they may change.
    """
    if not issubclass(family, Memoised):
        return
    for m, rounds, changes in _panels(family):
        asked = (Question("q", "?", "choice", m),)
        made = partial(Collection, "t", asked, MAX_EPSILON, rounds=rounds, changes=changes)
        if changes and not family.key_is_value:
            refused("exact_histories", m, InvalidArgument, made)
            continue
        declared = made().spent
        worst = worst_histories(m, rounds, changes)
        found = Decimal("inf") if worst is None else CONTEXT.ln(as_decimal(worst))
        text = f"{rounds} rounds, {changes} changes cost {found}, declared {declared}"
        check(not found <= Decimal(declared), "exact_histories", m, text)


def _panels(family: Any) -> Iterator[tuple[Memoised, int, int]]:
    """Members with rounds and changes; some whose reports tell much about what is kept."""
    narrow = {name: NARROW[name] for name in family.design if name in NARROW}
    design = {**family.small_design, **narrow}
    for size, rounds, changes in HISTORIES:
        labels = [str(value) for value in range(size)]
        for epsilon in (0.5, 2.0):
            yield family(labels, epsilon, **design), rounds, changes
        if issubclass(family, Longitudinal):
            with suppress(InvalidArgument):  # an epsilon_1 that the family cannot have
                yield family(labels, 1.0, 0.9, **design), rounds, changes


def _fixed_steps(m: Memoised) -> None:
    stream = Keystream(bytes(32))
    begin, memoise, instant = (
        ByteCoins(stream.bytes(words * WORD_BYTES))
        for words in (m.begin_words, m.memoise_words, m.instant_words)
    )
    begun = m.begin(begin)
    m.instant(begun, m.memoise(begun, m.key(begun, 0), memoise), instant)
    for coins in (begin, memoise, instant):
        coins.finish()


def fixed_coins(family: Family) -> None:
    """A report is a pure function of value and bytes, and their number is what is declared."""
    for m in (*small(family), *large(family)):
        stream = Keystream(bytes(32))
        for value in {0, m.domain.size // 2, m.domain.size - 1}:
            data = stream.bytes(m.coin_words * WORD_BYTES)
            coins = ByteCoins(data)
            first = m.report(value, coins)
            coins.finish()
            check(first != m.report(value, ByteCoins(data)), "fixed_coins", m, "reports differ")


def exact_coins(family: Family) -> None:
    """The real coins give each outcome exactly the weight that the enumeration assumes."""
    for size in {2, 3, 5, family.only_size or 130}:
        start = 0
        for index in range(size):
            last = start + choice_weight(index, size) - 1
            drawn = [_coins(word).choice(size) for word in (start, (start + last) // 2, last)]
            check(set(drawn) != {index}, "exact_coins", family, f"choice({size}) gave {drawn}")
            start = last + 1
        check(start != SCALE, "exact_coins", family, f"the weights of {size} sum to {start}")
    for threshold in (1, 1 << 63, SCALE - 1):
        pair = _coins(threshold - 1).below(threshold), _coins(threshold).below(threshold)
        check(pair != (True, False), "exact_coins", family, f"below({threshold}) gave {pair}")
    edges = (1, 5, 5, 1 << 63, SCALE - 1)
    for index, (first, end) in enumerate(pairwise((0, *edges, SCALE))):
        drawn = [_coins(word).pick(edges) for word in {first, end - 1} if first < end]
        check(set(drawn) - {index}, "exact_coins", family, f"pick({edges}) gave {drawn}")


def _coins(word: int) -> ByteCoins:
    return ByteCoins(word.to_bytes(WORD_BYTES, "little"))


def exact_moments(family: Family) -> None:
    """From the exact channel: supports as p and q say, no bias, the variance of the formula.

    With shared hash functions: the bias that these cause, and no more.
    """
    rng = np.random.default_rng(5)
    for m in small(family):
        channel, k = _channel(m), m.domain.size
        law = np.array(channel.matrix, dtype=np.float64)
        counts = np.array([m.count(m.pack([y])) for y in channel.outputs])
        decoded = np.array([m.unbiased(c, 1) for c in counts])
        if _binomial(m):
            found = law @ np.array([m.supports(c, 1) for c in counts])
            supports = np.where(np.eye(k, dtype=bool), float(m.p), float(m.q))
            check(_differ(found, supports), "exact_moments", m, "supports are not p and q")
        wrong = _differ(law @ decoded, m.response())
        check(wrong, "exact_moments", m, f"biased: {law @ decoded}")
        if not m.independent:
            continue
        f = rng.dirichlet(np.ones(k))
        variance = f @ (law @ decoded**2 - np.eye(k))
        stated = m.variance(1, f)
        check(
            _differ(variance, stated), "exact_moments", m, f"variance {variance}, stated {stated}"
        )


def _differ(a: NDArray[Any], b: NDArray[Any]) -> bool:
    return not np.allclose(a, b, rtol=1e-9, atol=1e-9)


def two_likelihoods(family: Family) -> None:
    """If a family says so: a report is `once.ratio` times as likely under what it supports."""
    for m in small(family):
        if not m.two_valued:
            continue
        channel, rho = _channel(m), float(m.once.ratio)
        law = np.array(channel.matrix, dtype=np.float64).T
        low, high = law.min(axis=1), law.max(axis=1)
        ratios = high / low
        wrong = _differ(ratios[ratios > 1 + SLACK], np.array(rho))
        check(wrong, "two_likelihoods", m, f"ratios {ratios}, stated {rho}")
        for probabilities, output in zip(law, channel.outputs, strict=True):
            counts = m.supports(m.count(m.pack([output])), 1)
            known = counts is not None and probabilities.min() < probabilities.max()
            other = known and np.any((counts == 1) != (probabilities > probabilities.mean()))
            check(other, "two_likelihoods", m, f"report {output!r} supports other values")


def bulk_channel(family: Family) -> None:
    """Many reports at once follow the exact channel (chi-square over all values and outputs)."""
    from scipy.stats import chi2

    for m in small(family):
        channel = _channel(m)
        n = 400_000 if m.dtype.itemsize <= 8 else 60_000
        statistic, freedom = 0.0, 0
        for value in range(m.domain.size):
            reports = m.privatize(np.full(n, value), np.random.default_rng(value))
            found = output_counts(m, channel, reports)
            check(found.sum() != n, "bulk_channel", m, "a report that the channel does not have")
            expected = n * np.array(channel.matrix[value], dtype=np.float64)
            possible = expected > 0
            statistic += float(np.sum((found - expected)[possible] ** 2 / expected[possible]))
            freedom += int(possible.sum()) - 1
        p_value = float(chi2.sf(statistic, freedom))
        check(p_value < FALSE_ALARM, "bulk_channel", m, f"p-value {p_value:.1e}")


def output_counts(m: Mechanism, channel: Channel, reports: Reports) -> NDArray[np.int64]:
    """How often each output of the channel is among the reports."""
    outputs = _codes(m.pack(channel.outputs))
    order = np.argsort(outputs)
    codes, counts = np.unique(_codes(reports.data), return_counts=True)
    places = np.searchsorted(outputs[order], codes)
    known = outputs[order][np.minimum(places, len(order) - 1)] == codes
    result = np.zeros(len(order), dtype=np.int64)
    result[order[places[known]]] = counts[known]
    return result


def _codes(data: NDArray[Any]) -> NDArray[Any]:
    """Each report as one number, so that a million can be sorted at once."""
    codes = np.zeros(len(data), dtype=np.uint64)
    for column in _bytes(data).T:
        codes = codes * np.uint64(GOLDEN) + column.astype(np.uint64)
    return codes


def bulk_supports(family: Family) -> None:
    """On realistic domains every value is supported as often as p or q say (exact binomial)."""
    for m in filter(_binomial, (*large(family), *wide(family))):
        last = m.domain.size - 1
        for value in {0, last} if last + 1 in WIDE else {0, last // 2, last}:
            data = m.privatize(np.full(200_000, value), np.random.default_rng(value)).data
            _check_supports("bulk_supports", m, value, data)


def single_supports(family: Family) -> None:
    """So they are if reports are made one by one for many answers, as on a device."""
    for m in filter(_binomial, wide(family)):
        n = min(40_000, WIDE_WORDS // (2 * m.coin_words))
        for value in (0, m.domain.size - 1):
            _check_supports("single_supports", m, value, _one_by_one(m, value, n))


def _one_by_one(m: Mechanism, value: int, n: int) -> NDArray[Any]:
    """Reports of one value as a device makes them."""
    stream = Keystream(b"\5" * 32)
    coins = (ByteCoins(stream.bytes(m.coin_words * WORD_BYTES)) for _ in range(n))
    return m.pack([m.report(value, some) for some in coins])


def _check_supports(law: str, m: Mechanism, value: int, data: NDArray[Any]) -> None:
    """Each value is supported by so many reports of ``value`` as p and q say."""
    n, k = len(data), m.domain.size
    counts = np.asarray(m.supports(m.count(data), n))
    p_values = two_sided(counts, n, np.where(np.arange(k) == value, float(m.p), float(m.q)))
    other = int(p_values.argmin())
    found = f"{counts[other]} of {n} reports of {value} support {other}"
    check(p_values[other] < FALSE_ALARM / k, law, m, f"{found}: p-value {p_values[other]:.1e}")


def two_sided(count: Any, n: int, p: Any) -> Any:
    """Twice the smaller exact binomial tail."""
    from scipy.stats import binom

    return np.minimum(1.0, 2 * np.minimum(binom.cdf(count, n, p), binom.sf(count - 1, n, p)))


def exact_at_scale(family: Family) -> None:
    """With many answers, too, the code has the channel that is declared.

    Where all branches of some values can be run: the ratio is kept, counts are unbiased for every
    value, and many reports at once have this law. Else walks through the code find nothing
    (`deniable.audit.walks`).
    """
    for m in wide(family):
        values = sorted({0, m.domain.size // 2, m.domain.size - 1})
        if not few_runs(m.report, values, WIDE_BRANCHES * len(values)):
            faults = walk(m, list(relatives(m))).faults
            check(faults, "exact_at_scale", m, "; ".join(faults))
            continue
        worst = worst_pair(m.report, values)
        kept = worst.ratio is not None and worst.ratio <= m.once.ratio
        check(not kept, "exact_at_scale", m, f"the ratio of two values is {worst.ratio}")
        for value in (values[0], values[-1]):
            _check_outputs(m, value, exact_channel(m.report, [value]))


def _check_outputs(m: Mechanism, value: int, channel: Channel) -> None:
    """The law of one value: what is decoded from it, and whether the bulk path has it.

    `unbiased` is linear in counts, so it is asked about 2**40 reports that follow the law exactly.
    """
    from scipy.stats import chi2

    scale, n, (law,) = 1 << 40, 200_000, channel.matrix
    weights = np.array([round(weight * scale) for weight in law])
    if m.independent:
        pairs = zip(weights, channel.outputs, strict=True)
        counts = sum(weight * m.count(m.pack([output])) for weight, output in pairs)
        found, own = m.unbiased(counts, scale), np.arange(m.domain.size) == value
        check(_differ(found, own), "exact_at_scale", m, f"biased: {found}")
    reports = m.privatize(np.full(n, value), np.random.default_rng(value))
    told, expected = output_counts(m, channel, reports), n * weights / scale
    p_value = float(chi2.sf(np.sum((told - expected) ** 2 / expected), max(1, len(law) - 1)))
    wrong = told.sum() != n or p_value < FALSE_ALARM
    check(wrong, "exact_at_scale", m, f"many at once: p-value {p_value:.1e}")


def one_path(family: Family) -> None:
    """Many reports at once have the law of single ones, place by place, also for many answers.

    Places are the bits of a row, and whether its bytes are above their medians, which are learned
    from other reports. Null hypothesis: a place is set with the same probability in both; then the
    number among the single ones is hypergeometric.
    """
    from scipy.stats import hypergeom

    for m in wide(family):
        value, rng = m.domain.size - 1, np.random.default_rng(9)
        learned, bulk = (_bytes(m.privatize(np.full(20_000, value), rng).data) for _ in range(2))
        single = _bytes(_one_by_one(m, value, min(2_000, WIDE_WORDS // m.coin_words)))
        middle = np.median(learned, axis=0)
        a, b = _set_places(single, middle), _set_places(bulk, middle)
        law = hypergeom(len(single) + len(bulk), a + b, len(single))
        p_values = np.minimum(1.0, 2 * np.minimum(law.cdf(a), law.sf(a - 1)))
        place = int(p_values.argmin())
        found = f"place {place} is set in {a[place]} of {len(single)}, {b[place]} of {len(bulk)}"
        check(p_values[place] < FALSE_ALARM / a.size, "one_path", m, found)


def _bytes(data: NDArray[Any]) -> NDArray[np.uint8]:
    """Each report as a row of bytes."""
    return np.ascontiguousarray(data).view(np.uint8).reshape(len(data), -1)


def _set_places(rows: NDArray[np.uint8], middle: NDArray[np.float64]) -> NDArray[np.int64]:
    """How many rows have each bit set, and each byte above the middle."""
    bits = np.unpackbits(rows, axis=1).sum(axis=0, dtype=np.int64)
    return np.concatenate([bits, (rows > middle).sum(axis=0, dtype=np.int64)])


def simulated_errors(family: Family) -> None:
    """On realistic domains: squared errors as the variance says (chi-square, value by value)."""
    from scipy.stats import chi2

    runs, n = 200, 5_000
    for m in large(family, n):
        rng = np.random.default_rng(3)
        k = m.domain.size
        values = rng.choice(k, n, p=rng.dirichlet(np.full(k, 0.3)))
        truth = np.bincount(values, minlength=k) / n
        tallies = (d.tally(d.privatize(values, rng)) for d in _drawn(m, runs))
        estimates = np.array([t.mechanism.unbiased(t.counts, n) for t in tallies])
        squares = np.sum((estimates - truth) ** 2, axis=0) / m.variance(n, truth)
        p_values = 2 * np.minimum(chi2.cdf(squares, runs), chi2.sf(squares, runs))
        worst = float(p_values.min())
        check(worst < FALSE_ALARM / k, "simulated_errors", m, f"p-value {worst:.1e}")


def _drawn(m: Mechanism, runs: int) -> Iterator[Mechanism]:
    return (redrawn(m, number) for number in range(runs))


def coverage(family: Family) -> None:
    """Score intervals cover a rare and a frequent value as often as they claim, for n = 400.

    Null hypothesis: the coverage is within 0.015 (at 95 %) or 0.008 (at 99 %) of its nominal level.
    """
    from scipy.stats import binom

    runs, n = 1_000, 400
    for epsilon in (1.0, 3.0):
        m = suited(family, family.only_size or 20, epsilon, n)
        values = np.where(np.arange(n) < 0.02 * n, 0, 1)
        truth = np.bincount(values, minlength=m.domain.size) / n
        rng = np.random.default_rng(11)
        drawn = (d.tally(d.privatize(values, rng, threads=1), threads=1) for d in _drawn(m, runs))
        found = [Evidence.of([tally]) for tally in drawn]
        for level, margin in ((0.95, 0.015), (0.99, 0.008)):
            intervals = np.array([analytic(e, level, False, "score").intervals for e in found])
            covered = (intervals[:, :, 0] <= truth) & (truth <= intervals[:, :, 1])
            for value in (0, 1):
                hits = int(covered[:, value].sum())
                few = float(binom.cdf(hits, runs, level - margin))
                many = float(binom.sf(hits - 1, runs, level + margin))
                text = f"{hits / runs:.3f} of the {level:.0%} intervals cover value {value}"
                check(min(few, many) < FALSE_ALARM, "coverage", m, text)


def monoid(family: Family) -> None:
    """Merging is associative and commutative, has an identity, and equals one pass."""
    for m in large(family):
        values = np.arange(7_000) % m.domain.size
        reports = m.privatize(values, np.random.default_rng(2)).with_ids()
        a, b, c = (m.tally(reports[part]) for part in _thirds(len(reports)))
        whole = m.tally(reports)
        check(a.merge(b).merge(c) != a.merge(b.merge(c)), "monoid", m, "not associative")
        check(a.merge(b) != b.merge(a), "monoid", m, "not commutative")
        check(a.merge(m.tally()) != a, "monoid", m, "the empty tally changes something")
        check(a.merge(b).merge(c) != whole, "monoid", m, "parts do not make the whole")
        check(whole.n != len(reports), "monoid", m, f"n = {whole.n}")
        check(m.tally(reports, threads=3) != whole, "monoid", m, "threads change the tally")


def _thirds(n: int) -> tuple[slice, slice, slice]:
    return slice(0, n // 3), slice(n // 3, n // 2), slice(n // 2, n)


def tally_bytes(family: Family) -> None:
    """A tally survives as bytes; what is truncated, altered or foreign is refused."""
    for m in large(family):
        tally = m.tally(m.privatize(np.arange(100) % m.domain.size, np.random.default_rng(4)))
        data = tally.to_bytes()
        check(Tally.from_bytes(data, m) != tally, "tally_bytes", m, "bytes do not round-trip")
        altered = bytes([*data[:-24], data[-24] ^ 1, *data[-23:]])  # the last count
        for wrong in (b"", data[:10], data[:-1], data[8:], data + b"\0", altered):
            refused("tally_bytes", m, CorruptData, Tally.from_bytes, wrong)
        other = family(m.domain, m.epsilon + 1)
        refused("tally_bytes", m, MismatchError, Tally.from_bytes, data, other)
        refused("tally_bytes", m, MismatchError, tally.merge, other.tally())


def refused(
    law: str,
    m: Mechanism,
    kind: type[Exception],
    action: Callable[..., Any],
    *given: Any,
    **named: Any,
) -> None:
    """Check that ``action(*given, **named)`` raises an error of this kind."""
    try:
        result = action(*given, **named)
    except kind:
        return
    check(True, law, m, f"should have been refused with {kind.__name__}, gave {result!r}")


def value_semantics(family: Family) -> None:
    """Frozen, comparable, hashable, picklable; a spec in JSON is the same mechanism."""
    for m in (*small(family), *large(family)):
        again = from_spec(json.loads(json.dumps(m.to_spec()))) if _registered(m) else m
        for copy in (
            again,
            pickle.loads(pickle.dumps(m)),
            type(m)(m.domain, m.epsilon, **_design(m)),
        ):
            check(copy != m or hash(copy) != hash(m), "value_semantics", m, f"{copy!r} differs")
        different = family(m.domain, m.epsilon + 1)
        check(different == m, "value_semantics", m, "another epsilon compares equal")
        refused("value_semantics", m, AttributeError, setattr, m, "epsilon", 9.0)
        for name in m.budgets:
            lying = {**m.to_spec(), name: getattr(m, name) / 2}
            refused("value_semantics", m, InvalidArgument, from_spec, lying)


def _registered(m: Mechanism) -> bool:
    from deniable.mechanisms import mechanisms

    return mechanisms().get(m.name) is type(m)


def _design(m: Mechanism) -> dict[str, int]:
    return {name: getattr(m, name) for name in m.design}


def every_part_counts(family: Family) -> None:
    """Members that differ in an integer or an answer are different: their counts never mix."""
    for size, design, more in ((3, family.small_design, 2.5), (130, {}, 0.5)):
        base = family(family.only_size or size, 1.0, **design)
        integers = {name: getattr(base, name) for name in (*base.design, *base.thresholds)}
        # Promised more than is needed: an integer may then be larger or smaller.
        budgets = [getattr(base, name) + more for name in base.budgets]
        m = family(base.domain, *budgets, **integers)
        for name in integers:
            for other in _changed(m, budgets, integers, name):
                _tell_apart(m, other, f"{name} = {getattr(other, name)}")
    labels = ["a", "b"] if family.only_size else ["a", "b", "c"]
    m = family(labels, 1.0)
    for domain in (labels[::-1], [*labels[:-1], "x"], len(labels), Domain(labels, other="b")):
        _tell_apart(m, family(domain, 1.0), f"the answers {domain}")


def _tell_apart(m: Mechanism, other: Mechanism, what: str) -> None:
    law, values = "every_part_counts", m.domain.labels[:1] if m.domain.labels else [0]
    reports = m.privatize(values, np.random.default_rng(1))
    same = other == m or other.to_spec() == m.to_spec() or len({m, other}) < 2
    check(same, law, m, f"equal to one with {what}")
    for action in (other.tally().add, other.estimate):
        refused(law, m, MismatchError, action, reports)
    refused(law, m, MismatchError, m.tally().merge, other.tally())


def _changed(
    m: Mechanism, budgets: list[float], integers: dict[str, int], name: str
) -> Iterator[Mechanism]:
    """Members with another integer under ``name``, as near as there are any."""
    own = integers[name]
    for near in (own + 1, own - 1, own + 2, 2 * own):
        if near == own:
            continue
        try:
            yield type(m)(m.domain, *budgets, **{**integers, name: near})
        except InvalidArgument:
            continue


def columns(family: Family) -> None:
    """Reports go to Arrow and Parquet and come back unchanged."""
    for m in large(family):
        reports = m.privatize(np.arange(77) % m.domain.size, np.random.default_rng(6)).with_ids()
        file = io.BytesIO()
        reports.to_parquet(file)
        for copy in (
            Reports.from_arrow(reports.to_arrow()),
            Reports.from_parquet(file),
            Reports.from_arrow(reports.to_arrow().slice(5, 60)),
        ):
            start = 5 if len(copy) == 60 else 0
            expected = reports[start : start + len(copy)]
            check(m.tally(copy) != m.tally(expected), "columns", m, "other reports came back")
            check(list(copy) != list(expected), "columns", m, "other reports came back")


def bad_input(family: Family) -> None:
    """What is not an answer or not a report is refused by name, and nothing is lost."""
    for m in large(family):
        k = m.domain.size
        for wrong in ([k], [-1], [0.5], [None], ["a"], [float("nan")], "0", 3, [[0]], [1 << 70]):
            refused("bad_input", m, InvalidArgument, m.privatize, wrong)
        refused("bad_input", m, InvalidArgument, m.privatize, [0], rng=7)
        refused("bad_input", m, InvalidArgument, m.tally().estimate)
    m = family(family.only_size or 13, 1.0)
    tally = m.tally(m.privatize([0] * 50, np.random.default_rng(1)))
    before = tally.to_bytes()
    all_ones = np.full((3, m.dtype.itemsize), 255, dtype=np.uint8)
    impossible = Reports(m, all_ones.view(m.dtype.base).reshape(3, *m.dtype.shape))
    refused("bad_input", m, InvalidArgument, tally.add, impossible)
    check(tally.to_bytes() != before, "bad_input", m, "a refused column changed the tally")
    labelled = family(["a", "b"] if family.only_size else ["a", "b", "c"], 1.0)
    refused("bad_input", labelled, InvalidArgument, labelled.privatize, ["x"])
    catch_all = family(Domain(labelled.domain.labels or 2, other="b"), 1.0)
    check(len(catch_all.privatize(["x", "a"])) != 2, "bad_input", catch_all, "no catch-all")


def reproducible(family: Family) -> None:
    """A generator fixes the reports whatever the threads; without one all coins are fresh."""
    for m in large(family):
        values = np.zeros(2 * CHUNK + 13, dtype=np.uint8)

        def seeded(threads: int, m: Mechanism = m, values: Any = values) -> NDArray[Any]:
            return m.privatize(values, np.random.default_rng(8), threads=threads).data

        one, three, fresh = seeded(1), seeded(3), m.privatize(values, threads=3).data
        check(not _same(one, three), "reproducible", m, "threads change the reports")
        check(_same(one, fresh), "reproducible", m, "secure coins are those of a seed")
        check(_same(fresh, m.privatize(values).data), "reproducible", m, "secure coins repeat")
        for data in (one, three, fresh):
            first, second = data[:CHUNK], data[CHUNK : 2 * CHUNK]
            check(_same(first, second), "reproducible", m, "two chunks share their coins")
    # Even a coin with epsilon 0.5 gives the same 32 answers three times only once in 1e16.
    m = family(family.only_size or 16, 0.5)
    few = {m.privatize([0] * 32).data.tobytes() for _ in range(3)}
    check(len(few) == 1, "reproducible", m, "coins repeat in small jobs")


def fresh_coins(family: Family) -> None:
    """No stretch of a long column comes twice: its chunks share no coins, also not shifted."""
    m = family(family.only_size or 16, 0.5)
    data = m.privatize(np.zeros(6 * CHUNK + 13, dtype=np.uint8), np.random.default_rng(8)).data
    first, second = _repeated(_bytes(data))
    text = f"reports from {first} on are those from {second} on"
    check(first != second, "fresh_coins", m, text)


def _repeated(rows: NDArray[np.uint8]) -> tuple[int, int]:
    """Two places from which `STRETCH` rows are the same; equal if there are none.

    A stretch from i on has the key sum_j c_(i+j) r^j, modulo 2**64, with random numbers c of rows.
    """
    odd = np.frombuffer(Keystream(b"\6" * 32).bytes(8 * (rows.shape[1] + 1)), dtype="<u8") | 1
    codes = (rows * odd[:-1]).sum(axis=1, dtype=np.uint64)
    codes ^= codes >> np.uint64(29)
    powers = np.cumprod(np.full(len(rows), odd[-1]), dtype=np.uint64)
    sums = np.concatenate([[np.uint64(0)], np.cumsum(codes * powers, dtype=np.uint64)])
    inverse = np.uint64(pow(int(odd[-1]), -1, SCALE))
    back = np.cumprod(np.full(len(rows), inverse), dtype=np.uint64)
    keys = (sums[STRETCH:] - sums[:-STRETCH]) * back[: len(sums) - STRETCH]
    order = np.argsort(keys, kind="stable")
    for place in np.flatnonzero(keys[order][1:] == keys[order][:-1]):
        one, two = int(order[place]), int(order[place + 1])
        if np.array_equal(rows[one : one + STRETCH], rows[two : two + STRETCH]):
            return one, two
    return 0, 0


def decoders(family: Family) -> None:
    """Every method gives finite numbers with errors, and a distribution where it claims to."""
    for m in large(family):
        reports = _skewed(m)
        for name, method in _suiting(m):
            e, again = (combine([reports], name) for _ in range(2))
            law, f = f"decoders: {name}", e.frequencies
            low, high = e.intervals.T
            finite = all(np.isfinite(x).all() for x in (f, e.standard_errors, low, high))
            check(not finite, law, m, "not finite")
            check(np.any(e.standard_errors < 0), law, m, "a negative standard error")
            check(np.any((low > f) | (f > high)), law, m, "an interval without its estimate")
            feasible = f.min() >= 0 and abs(f.sum() - 1) < 1e-9
            check(method.feasible and not feasible, law, m, f"{f.min()}, sum {f.sum()}")
            same = _same(f, again.frequencies) and _same(e.intervals, again.intervals)
            check(not same, law, m, "two answers to one question")


def largest_likelihood(family: Family) -> None:
    """No method finds frequencies that are more likely than the maximum, which is certified."""
    for m in large(family):
        if not m.two_valued:
            continue
        reports = _skewed(m)
        best = maximise([reports])
        check(best.certificate > CERTIFIED, "largest_likelihood", m, f"gap {best.certificate:.1e}")
        for name, method in _suiting(m):
            if method.feasible:
                f = combine([reports], name).frequencies
                gap = loglikelihood([reports], f) - best.loglikelihood
                check(gap > CERTIFIED, "largest_likelihood", m, f"{name} is better by {gap:.1e}")


def _suiting(m: Mechanism) -> list[tuple[str, Method]]:
    return [(name, METHODS[name]) for name in methods_for(m)]


def _skewed(m: Mechanism) -> Reports:
    k = m.domain.size
    values = np.minimum(np.arange(2_000) % (k + 7), np.arange(2_000) % k // 2)
    return m.privatize(values, np.random.default_rng(12))


def _same(a: NDArray[Any], b: NDArray[Any]) -> bool:
    return a.tobytes() == b.tobytes()


LAWS: tuple[Law, ...] = (
    exact_epsilon,
    exact_memory,
    exact_histories,
    fixed_coins,
    exact_coins,
    exact_moments,
    two_likelihoods,
    bulk_channel,
    bulk_supports,
    single_supports,
    exact_at_scale,
    one_path,
    simulated_errors,
    coverage,
    monoid,
    tally_bytes,
    value_semantics,
    every_part_counts,
    columns,
    bad_input,
    reproducible,
    fresh_coins,
    decoders,
    largest_likelihood,
)
