"""Laws of channels: what holds for any mechanism, whatever its reports are good for."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.answers.choice import Choice
from deniable.arrays import Counts, Floats, Indices
from deniable.audit.exact.branches import few_runs, worst_pair
from deniable.audit.exact.spot_checks import walk
from deniable.audit.exact.verify import one_report, relatives
from deniable.conformance.members import (
    FALSE_ALARM,
    Family,
    as_bytes,
    channel_of,
    check,
    design_of,
    encoded,
    large,
    large_domains,
    refused,
    reports_of,
    same,
    small,
    values_of,
    wide,
)
from deniable.core.mechanism import CHUNK, Mechanism
from deniable.core.registry import from_spec, mechanisms
from deniable.core.reports import Reports
from deniable.core.tally import Tally
from deniable.errors import CorruptData, InvalidArgument, MismatchError
from deniable.privacy import Channel, exact_channel
from deniable.randomness import SCALE, WORD_BYTES, ByteCoins, Keystream, choice_weight, draw_key
from deniable.splitmix import GOLDEN

#: Branches that are run for each value of many answers; and words that are drawn for them.
WIDE_BRANCHES, WIDE_WORDS = 20_000, 600_000
#: Reports that are expected of an output which is looked at on its own.
OFTEN = 5
#: Reports of a row that no two places of a column share by chance.
STRETCH = 128


# ---- the channel


def exact_epsilon(family: Family) -> None:
    """The channel of the shipped code keeps the declared ratio, which keeps epsilon, tightly."""
    for m in small(family):
        judged = one_report(m)
        check(judged.verdict != "ok", "exact_epsilon", m, judged.words)


def fixed_coins(family: Family) -> None:
    """A report is a pure function of value and bytes, and their number is what is declared."""
    for m in (*small(family), *large(family)):
        stream = Keystream(bytes(32))
        for value in _ends(m):
            data = stream.bytes(m.coin_words * WORD_BYTES)
            coins = ByteCoins(data)
            first = m.report(value, coins)
            coins.finish()
            check(first != m.report(value, ByteCoins(data)), "fixed_coins", m, "reports differ")


def _ends(m: Mechanism) -> list[Any]:
    """The first value, one in the middle and the last."""
    values = values_of(m)
    return [values[place] for place in sorted({0, len(values) // 2, len(values) - 1})]


def exact_coins() -> None:
    """The real coins give each outcome exactly the weight that the enumeration assumes.

    This is about coins, not about a family.
    """
    for size in (2, 3, 5, 130):
        start = 0
        for index in range(size):
            last = start + choice_weight(index, size) - 1
            drawn = [_coins(word).choice(size) for word in (start, (start + last) // 2, last)]
            check(set(drawn) != {index}, "exact_coins", ByteCoins, f"choice({size}) gave {drawn}")
            start = last + 1
        check(start != SCALE, "exact_coins", ByteCoins, f"the weights of {size} sum to {start}")
    for threshold in (1, 1 << 63, SCALE - 1):
        pair = _coins(threshold - 1).below(threshold), _coins(threshold).below(threshold)
        check(pair != (True, False), "exact_coins", ByteCoins, f"below({threshold}) gave {pair}")
    edges = (1, 5, 5, 1 << 63, SCALE - 1)
    for index, (first, end) in enumerate(pairwise((0, *edges, SCALE))):
        drawn = [_coins(word).pick(edges) for word in {first, end - 1} if first < end]
        check(set(drawn) - {index}, "exact_coins", ByteCoins, f"pick({edges}) gave {drawn}")


def _coins(word: int) -> ByteCoins:
    return ByteCoins(word.to_bytes(WORD_BYTES, "little"))


def bulk_channel(family: Family) -> None:
    """Many reports at once follow the exact channel (chi-square over all values and outputs).

    Fewer where that is a loop over `report`, whose law `exact_epsilon` and others look at.
    """
    loops = family.fill is Mechanism.fill
    for m in small(family):
        channel = channel_of(m)
        n = 60_000 if loops or m.dtype.itemsize > 8 else 400_000
        statistic, freedom = 0.0, 0
        for seed, (value, law) in enumerate(zip(m.domain.sample(), channel.matrix, strict=True)):
            found = output_counts(m, channel, reports_of(m, [value], n, seed))
            check(found.sum() != n, "bulk_channel", m, "a report that the channel does not have")
            more, cells = _chi_square(found, n * np.array(law, dtype=np.float64))
            statistic, freedom = statistic + more, freedom + cells
        p_value = _chance(statistic, freedom)
        check(p_value < FALSE_ALARM, "bulk_channel", m, f"p-value {p_value:.1e}")


def _chi_square(found: Counts, expected: Floats) -> tuple[float, int]:
    """The statistic and its degrees of freedom, where outputs that are hardly expected are one.

    Alone, a single report of such an output would count for far more than chance makes of it.
    """
    order = np.argsort(expected)
    often, total = (np.searchsorted(x, OFTEN) for x in (expected[order], expected[order].cumsum()))
    starts = np.array([0, *range(int(max(often - 1, total)) + 1, len(order))])
    counted, awaited = (np.add.reduceat(x[order], starts) for x in (found, expected))
    return float(np.sum((counted - awaited) ** 2 / awaited)), len(starts) - 1


def _chance(statistic: float, freedom: int) -> float:
    """How likely chi-square is as large; that it has no freedom is no fault."""
    from scipy.stats import chi2

    return float(chi2.sf(statistic, max(1, freedom)))


def output_counts(m: Mechanism, channel: Channel, reports: Reports) -> Counts:
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
    for column in as_bytes(data).T:
        codes = codes * np.uint64(GOLDEN) + column.astype(np.uint64)
    return codes


def exact_at_scale(family: Family) -> None:
    """With many answers, too, the code has the channel that is declared.

    Where all branches of some values can be run: the ratio is kept, and many reports at once have
    this law. Else walks through the code find nothing (`deniable.audit.exact.spot_checks`).
    """
    for m in wide(family):
        values = _ends(m)
        if not few_runs(m.report, values, WIDE_BRANCHES * len(values)):
            faults = walk(m, list(relatives(m))).faults
            check(faults, "exact_at_scale", m, "; ".join(faults))
            continue
        worst = worst_pair(m.report, values)
        kept = worst.ratio is not None and worst.ratio <= m.once.ratio
        check(not kept, "exact_at_scale", m, f"the ratio of two values is {worst.ratio}")
        for value in (values[0], values[-1]):
            _check_bulk_law(m, value)


def _check_bulk_law(m: Mechanism, value: Any) -> None:
    """Many reports of one value at once have its exact law."""
    channel, n = exact_channel(m.report, [value]), 200_000
    (law,) = channel.matrix
    told = output_counts(m, channel, reports_of(m, [value], n, 1))
    p_value = _chance(*_chi_square(told, n * np.array(law, dtype=np.float64)))
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
        value = values_of(m)[-1]
        learned, bulk = (as_bytes(reports_of(m, [value], 20_000, seed).data) for seed in (9, 10))
        single = as_bytes(one_by_one(m, value, min(2_000, WIDE_WORDS // m.coin_words)))
        middle = np.median(learned, axis=0)
        a, b = _set_places(single, middle), _set_places(bulk, middle)
        law = hypergeom(len(single) + len(bulk), a + b, len(single))
        p_values = np.minimum(1.0, 2 * np.minimum(law.cdf(a), law.sf(a - 1)))
        place = int(p_values.argmin())
        found = f"place {place} is set in {a[place]} of {len(single)}, {b[place]} of {len(bulk)}"
        check(p_values[place] < FALSE_ALARM / a.size, "one_path", m, found)


def one_by_one(m: Mechanism, value: Any, n: int) -> NDArray[Any]:
    """Reports of one value as a device makes them."""
    stream = Keystream(b"\5" * 32)
    coins = (ByteCoins(stream.bytes(m.coin_words * WORD_BYTES)) for _ in range(n))
    return m.pack([m.report(value, some) for some in coins])


def _set_places(rows: NDArray[np.uint8], middle: Floats) -> Indices:
    """How many rows have each bit set, and each byte above the middle."""
    bits = np.unpackbits(rows, axis=1).sum(axis=0, dtype=np.int64)
    return np.concatenate([bits, (rows > middle).sum(axis=0, dtype=np.int64)])


# ---- reports


def layout(family: Family) -> None:
    """Single rows and whole columns are judged alike: genuine, mutated and random ones.

    What `Layout.refusal` says of a row, `fault` says of a column with it, and `count` refuses it.
    """
    for m in (*small(family), *large(family)):
        reports = reports_of(m, values_of(m), 40, 7)
        genuine, form = as_bytes(reports.data), m.layout
        for row, report in zip(genuine, reports, strict=True):
            check(form.row(report) != row.tobytes(), "layout", m, "two rows for one report")
            check(form.refusal(row.tobytes()), "layout", m, "a genuine report is refused")
        for wrong in (genuine[0, 1:].tobytes(), genuine[0].tobytes() + b"\0", b""):
            check(not form.refusal(wrong), "layout", m, f"a row of {len(wrong)} bytes is taken")
        for row in _strange(genuine):
            _judge_alike(m, genuine, row)


def _strange(genuine: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
    """Rows that are all zero or one, random, or genuine but for a bit or a byte."""
    rng = np.random.default_rng(7)
    width = genuine.shape[1]
    yield from (np.full(width, byte, dtype=np.uint8) for byte in (0, 255))
    yield from rng.integers(0, 256, (20, width), dtype=np.uint8)
    for row in genuine:
        bit, place = int(rng.integers(8 * width)), int(rng.integers(width))
        flipped, other = row.copy(), row.copy()
        flipped[bit >> 3] ^= 1 << (bit & 7)
        other[place] = rng.integers(256)
        yield from (flipped, other)


def _judge_alike(m: Mechanism, genuine: NDArray[np.uint8], row: NDArray[np.uint8]) -> None:
    impossible = m.layout.refusal(row.tobytes()) is not None
    found = f"the row {row.tobytes().hex()} is {'not ' * (not impossible)}refused"
    alone, among = as_column(m, row[None]), as_column(m, np.concatenate([genuine, row[None]]))
    for column in (alone, among):
        check((m.layout.fault(column) is not None) != impossible, "layout", m, f"{found} alone")
        check(_counts(m, column) == impossible, "layout", m, f"{found}, but counts differ")


def as_column(m: Mechanism, rows: NDArray[np.uint8]) -> NDArray[Any]:
    """Rows of bytes as a column of the mechanism's type."""
    data: NDArray[Any] = np.ascontiguousarray(rows).reshape(-1).view(m.dtype.base)
    return data.reshape(len(rows), *m.dtype.shape)


def _counts(m: Mechanism, column: NDArray[Any]) -> bool:
    """Whether a column is counted."""
    try:
        m.count(column)
    except InvalidArgument:
        return False
    return True


def columns(family: Family) -> None:
    """Reports go to Arrow and Parquet and come back unchanged."""
    for m in large(family):
        reports = reports_of(m, values_of(m), 77, 6).with_ids()
        file = io.BytesIO()
        reports.to_parquet(file)
        for copy in (
            Reports.from_arrow(reports.to_arrow()),
            Reports.from_parquet(file)[:],  # a slice does not name the file
            Reports.from_arrow(reports.to_arrow().slice(5, 60)),
        ):
            start = 5 if len(copy) == 60 else 0
            expected = reports[start : start + len(copy)]
            check(m.tally(copy) != m.tally(expected), "columns", m, "other reports came back")
            check(list(copy) != list(expected), "columns", m, "other reports came back")


# ---- counts


def monoid(family: Family) -> None:
    """Merging is associative and commutative, has an identity, and equals one pass."""
    for m in large(family):
        reports = reports_of(m, values_of(m), 7_000, 2).with_ids()
        a, b, c = (m.tally(reports[part]) for part in _thirds(len(reports)))
        whole = m.tally(reports)
        check(a.merge(b).merge(c) != a.merge(b.merge(c)), "monoid", m, "not associative")
        check(a.merge(b) != b.merge(a), "monoid", m, "not commutative")
        check(a.merge(m.tally()) != a, "monoid", m, "the empty tally changes something")
        check(a.merge(b).merge(c) != whole, "monoid", m, "parts do not make the whole")
        check(whole.n != len(reports), "monoid", m, f"n = {whole.n}")
        check(m.tally(reports, threads=3) != whole, "monoid", m, "threads change the tally")
        possible = m.possible_counts(whole.counts, whole.n)
        check(not possible, "monoid", m, "counts of reports are called impossible")


def _thirds(n: int) -> tuple[slice, slice, slice]:
    return slice(0, n // 3), slice(n // 3, n // 2), slice(n // 2, n)


def tally_bytes(family: Family) -> None:
    """A tally survives as bytes; what is truncated, altered or foreign is refused."""
    for m in large(family):
        tally = m.tally(reports_of(m, values_of(m), 100, 4))
        data = tally.to_bytes()
        check(Tally.from_bytes(data, m) != tally, "tally_bytes", m, "bytes do not round-trip")
        altered = bytes([*data[:-24], data[-24] ^ 1, *data[-23:]])  # the last count
        for wrong in (b"", data[:10], data[:-1], data[8:], data + b"\0", altered):
            refused("tally_bytes", m, CorruptData, Tally.from_bytes, wrong)
        other = family.example(m.domain, m.epsilon + 1)
        refused("tally_bytes", m, MismatchError, Tally.from_bytes, data, other)
        refused("tally_bytes", m, MismatchError, tally.merge, other.tally())


# ---- values


def value_semantics(family: Family) -> None:
    """Frozen, comparable, hashable, picklable; a spec in JSON is the same mechanism."""
    for m in (*small(family), *large(family)):
        spec, known = m.to_spec(), mechanisms().get(m.name) is type(m)
        again = from_spec(json.loads(json.dumps(spec))) if known else m
        alike = m if m.parts else family.example(m.domain, m.epsilon, **design_of(m))
        for copy in (again, pickle.loads(pickle.dumps(m)), alike):
            check(copy != m or hash(copy) != hash(m), "value_semantics", m, f"{copy!r} differs")
        different = family.example(m.domain, m.epsilon + 1)
        check(different == m, "value_semantics", m, "another epsilon compares equal")
        refused("value_semantics", m, AttributeError, setattr, m, "epsilon", 9.0)
        for name in m.budgets:
            lying = {**spec, "mechanism": {**spec["mechanism"], name: getattr(m, name) / 2}}
            refused("value_semantics", m, InvalidArgument, from_spec, lying)


def every_part_counts(family: Family) -> None:
    """Members that differ in an integer or an answer are different: their counts never mix."""
    kinds = [domain for kind in family.takes for domain in kind.look_alikes()]
    domains = [domain for domain in kinds if family.unsuited(domain) is None]
    members = [family.example(domain, 1.0) for domain in domains]
    for m, other in combinations(members, 2):
        _tell_apart(m, other, f"the answers {other.domain}")
    for base, more in (
        (next(small(family)), 2.5),
        (family.example(large_domains(family)[-1], 1.0), 0.5),
    ):
        integers = {name: getattr(base, name) for name in (*base.design, *base.thresholds)}
        # Promised more than is needed: an integer may then be larger or smaller.
        budgets = [getattr(base, name) + more for name in base.budgets]
        for name, own in integers.items():
            m = type(base)(base.domain, *budgets, **integers)
            for near in sorted({own + 1, own - 1, own + 2, 2 * own} - {own}):
                try:
                    changed = type(base)(base.domain, *budgets, **{**integers, name: near})
                except InvalidArgument:
                    continue
                _tell_apart(m, changed, f"{name} = {near}")


def _tell_apart(m: Mechanism, other: Mechanism, what: str) -> None:
    law = "every_part_counts"
    reports = reports_of(m, values_of(m)[:1], 1, 1)
    alike = other == m or other.to_spec() == m.to_spec() or len({m, other}) < 2
    check(alike, law, m, f"equal to one with {what}")
    for action in (other.tally().add, other.estimate):
        refused(law, m, MismatchError, action, reports)
    refused(law, m, MismatchError, m.tally().merge, other.tally())


# ---- input


def bad_input(family: Family) -> None:
    """What is not an answer or not a report is refused by name, and nothing is lost."""
    for m in (*small(family), *large(family)):
        for wrong in ("0", 3, [[-1]], [object()], [b""], [float("nan")], {0}, *_unlisted(m)):
            refused("bad_input", m, InvalidArgument, m.privatize, wrong)
        refused("bad_input", m, InvalidArgument, m.tally().estimate)
        answer = m.domain.answer(values_of(m)[0]) if m.domain.is_listed else None
        if answer is not None:
            refused("bad_input", m, InvalidArgument, m.privatize, [answer], rng=7)
    _refused_columns(family)
    labels = ["a", "b"] if family.unsuited(Choice(3)) else ["a", "b", "c"]
    if family.unsuited(Choice(labels)) is None:
        labelled = family.example(Choice(labels), 1.0)
        refused("bad_input", labelled, InvalidArgument, labelled.privatize, ["x"])
        catch_all = family.example(Choice(labels, other="b"), 1.0)
        check(len(catch_all.privatize(["x", "a"])) != 2, "bad_input", catch_all, "no catch-all")


def _unlisted(m: Mechanism) -> list[Any]:
    """What is beside the answers of a list without labels, which are integers."""
    if not m.domain.is_listed:
        return []
    return [[m.domain.size], [-1], [0.5], [None], ["a"], [1 << 70]]


def _refused_columns(family: Family) -> None:
    """A column with a row of ones that is no report changes nothing in a tally."""
    tried = 0
    for m in (*small(family), *large(family)):
        ones = np.full((3, m.dtype.itemsize), 255, dtype=np.uint8)
        if m.layout.refusal(ones[0].tobytes()) is None:
            continue
        tried += 1
        tally = m.tally(reports_of(m, values_of(m), 50, 1))
        before = tally.to_bytes()
        refused("bad_input", m, InvalidArgument, tally.add, Reports(m, as_column(m, ones)))
        check(tally.to_bytes() != before, "bad_input", m, "a refused column changed the tally")
    check(not tried, "bad_input", family, "all bytes are a report")


# ---- coins of whole columns


def reproducible(family: Family) -> None:
    """A generator fixes the reports whatever the threads; without one all coins are fresh."""
    for m in large(family):
        column = encoded(m, values_of(m)[:1], 2 * CHUNK + 13)
        seeded = _seeded(m, column)
        one, three, fresh = seeded(1), seeded(3), m.randomise(column, draw_key(None), 3)
        check(not same(one, three), "reproducible", m, "threads change the reports")
        check(same(one, fresh), "reproducible", m, "secure coins are those of a seed")
        again = m.randomise(column, draw_key(None))
        check(same(fresh, again), "reproducible", m, "secure coins repeat")
        for data in (one, three, fresh):
            first, second = data[:CHUNK], data[CHUNK : 2 * CHUNK]
            check(same(first, second), "reproducible", m, "two chunks share their coins")
    # Even a coin with epsilon 0.5 gives the same 32 answers three times only once in 1e16.
    m = family.example(large_domains(family)[0], 0.5)
    column = encoded(m, values_of(m)[:1], 32)
    few = {m.randomise(column, draw_key(None)).tobytes() for _ in range(3)}
    check(len(few) == 1, "reproducible", m, "coins repeat in small jobs")


def _seeded(m: Mechanism, column: NDArray[Any]) -> Callable[[int], NDArray[Any]]:
    """Reports with the coins of one seed, made by so many threads."""
    return lambda threads: m.randomise(column, draw_key(np.random.default_rng(8)), threads)


def fresh_coins(family: Family) -> None:
    """No stretch of a long column comes twice: its chunks share no coins, also not shifted."""
    m = family.example(large_domains(family)[0], 0.5)
    data = reports_of(m, values_of(m)[:1], 6 * CHUNK + 13, 8).data
    first, second = _repeated(as_bytes(data))
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
