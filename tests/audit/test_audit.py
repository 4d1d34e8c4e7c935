"""The audit of black boxes: planted bugs are caught, honest mechanisms are not accused."""

import itertools
import json
import random
import sys
from inspect import signature

import numpy as np
import pytest
from scipy.stats import binom

import deniable as dn
from deniable.audit.black_box.empirical import (
    AuditOptions,
    audit,
    audit_command,
    audit_devices,
    audit_mechanism,
    audit_source,
    some_values,
)
from deniable.audit.black_box.encoding import encode, frozen, numbers, size
from deniable.audit.black_box.findings import Audit
from deniable.audit.black_box.independence import collisions, few_runs, neighbours, repeats
from deniable.audit.black_box.sources import mixed_order, of_mechanism
from deniable.errors import CorruptData, InvalidArgument
from deniable.estimation.frequencies.errors.exact import binomial_bounds
from deniable.mechanisms import GRR, LOSUE, OUE, SUE
from deniable.randomness import SCALE, ByteCoins

K = 20
VALUES = [0, 1, K // 2, K - 1]
#: Of honest mechanisms: a false accusation, were the seed random, is less likely than one in 10^6.
SURE = 0.9999995


def bits(value, rng, one=0.5, zero=1 / (1 + np.e), k=K):
    """A row of OUE with epsilon 1, unless other probabilities are given."""
    row = rng.random(k) < zero
    row[value] = rng.random() < one
    return row.astype(int)


# ---- planted bugs


def test_an_unrandomised_last_bit_is_caught():
    rng = np.random.default_rng(1)

    def report(value):
        row = bits(value, rng)
        row[-1] = value == K - 1
        return row

    found = audit(report, VALUES, 1.0, n=2_000)
    assert found.verdict == "violated", found.words
    assert found.epsilon > 4
    assert K - 1 in {found.findings[found.shown()[0]].value, found.findings[found.shown()[0]].other}


def redrawn(rng):
    """A device of LOSUE (2 / 1) that draws its permanent row anew for every report."""
    m = LOSUE(8, 2.0, 1.0)

    def make():
        words = m.coin_words * 8
        return lambda value: m.report(value, ByteCoins(rng.bytes(words)))

    return make


@pytest.mark.slow
def test_a_permanent_layer_redrawn_each_time_is_caught():
    make = redrawn(np.random.default_rng(2))
    found = audit_devices(make, [0, 7], 2.0, reports=20, n=2_000)
    assert found.verdict == "violated", found.words
    assert audit_devices(make, [0, 7], 1.0, reports=1, n=2_000, confidence=SURE).ok


def test_a_memo_that_is_kept_is_not_accused_after_many_reports():
    m = LOSUE(K, 2.0, 1.0)
    found = audit_mechanism(m, reports=8, n=4_000, rng=np.random.default_rng(3), confidence=SURE)
    assert found.ok, found.words
    assert found.promised == m.guarantee.after(reports=8)
    assert found.epsilon > 0.5 * found.promised  # more than one report tells, and the audit sees it


class Seven(OUE):
    """Probabilities of 7 bits, in the path of many reports."""

    def randomise(self, indices, key, threads=None):
        unit = SCALE >> 7
        low = round(self.zero / unit) * unit / SCALE
        rng = np.random.default_rng(list(key))
        rows = rng.random((len(indices), self.domain.size)) < low
        rows[np.arange(len(indices)), indices] = rng.random(len(indices)) < 0.5
        return np.packbits(rows, axis=1, bitorder="little")


@pytest.mark.slow
def test_probabilities_of_seven_bits_are_caught_where_they_matter():
    """At epsilon 4, 2 / 128 stands for 1 / (e^4 + 1): really 4.14. At 1 it is 1.017: too close."""
    rng = np.random.default_rng(4)
    found = audit_mechanism(Seven(32, 4.0), n=800_000, values=[0, 31], rng=rng, confidence=0.99)
    assert found.verdict == "violated", found.words
    assert audit_mechanism(Seven(32, 1.0), n=20_000, rng=rng).ok


def test_swapped_p_and_q_are_caught():
    """k-RR that lies with the probability of the truth; the answer itself stands out."""
    rng = random.Random(5)
    p = np.e / (np.e + K - 1)

    def report(value):
        if rng.random() >= p:
            return value
        return rng.choice([v for v in range(K) if v != value])

    found = audit(report, VALUES, 1.0, n=2_000)
    assert found.verdict == "violated", found.words


@pytest.mark.parametrize("entropy", [None, 40.0])
def test_a_weak_seed_is_noticed(entropy):
    """A generator with a 16-bit seed a report: rows of 64 bits that come again.

    Honest rows have -log2 of 0.5 (p^2 + q^2)^63 = 46.6 bits of collision entropy, q = 1 / (1 + e).
    """
    seeds = random.Random(6)

    def report(value):
        return bits(value, np.random.default_rng(seeds.getrandbits(16)), k=64)

    found = audit(report, [0, 63], 1.0, n=3_000, entropy=entropy)
    assert found.verdict == "suspicious", found.words
    assert found.alarms[0].kind == "collisions"
    assert found.alarms[0].p_value < 1e-4


def test_a_weak_seed_shows_as_epsilon_in_a_large_sample():
    """Of 8 bits the seeds are soon known: what no seed gives under v tells that it was u."""
    seeds = random.Random(7)

    def report(value):
        return bits(value, np.random.default_rng([value, seeds.getrandbits(8)]), k=40)

    found = audit(report, [0, 39], 1.0, n=4_000)
    assert found.verdict == "violated", found.words
    assert found.findings[found.shown()[0]].kind in ("typical", "output")


@pytest.mark.slow
def test_a_clock_as_a_seed_is_noticed():
    """Devices that answer at the same tick send the same report."""
    ticks = iter(range(10**9))
    m = OUE(K, 1.0)

    def report(value):
        rng = np.random.default_rng(next(ticks) // 50)
        return m.report(value, ByteCoins(rng.bytes(8 * m.coin_words)))

    found = audit(report, VALUES, 1.0, n=2_000)
    assert {alarm.kind for alarm in found.alarms} >= {"repeats"}
    assert found.alarms[0].p_value < 1e-4


def test_a_report_that_leaks_through_its_length_is_caught():
    rng = np.random.default_rng(8)

    def report(value):
        padding = b"" if value else b"\0" * int(rng.integers(1, 3))
        return bytes(np.packbits(bits(value, rng))) + padding

    found = audit(report, VALUES, 1.0, n=1_000)
    assert found.verdict == "violated", found.words
    assert "length" in {finding.kind for finding in found.findings if finding.epsilon > 1}


def test_determinism_is_noticed():
    found = audit(lambda value: value, [0, 1], 1.0, n=1_000)
    assert found.verdict == "violated"
    assert "deterministic" in found.words
    same = audit(lambda value: "hello", [0, 1], 1.0, n=1_000)
    assert same.ok
    assert "deterministic" in same.words
    assert same.epsilon == 0


def test_a_leak_in_one_bit_of_an_integer_is_caught():
    """Forty bits in one number, of which bit 3 has no noise: in the order of numbers it is lost."""
    rng = np.random.default_rng(20)

    def report(value):
        row = bits(value, rng, k=40)
        row[3] = value == 3
        return int(row @ (1 << np.arange(40)))

    for form in (report, lambda value: {"id": 1, "bits": report(value)}):
        found = audit(form, [3, 30], 1.0, n=1_000, rng=rng)
        assert found.verdict == "violated", found.words
        assert found.epsilon > 3


# ---- what changes in time, for all values alike


def clocked(tell, keep):
    """GRR of two answers with (1 - keep) / keep below e, and something that tells the time."""
    coins, ticks = random.Random(21), itertools.count()

    def report(value):
        return {"time": tell(next(ticks)), "said": value if coins.random() < keep else 1 - value}

    return report


@pytest.mark.slow
@pytest.mark.parametrize(
    "tell",
    [
        lambda t: t,
        lambda t: t // 500,
        lambda t: f"12:{t // 600:02}:{t // 10 % 60:02}",
        lambda t: int(random.Random(t).random() < t / 4_000),
    ],
    ids=["counter", "clock", "clock in text", "drift"],
)
def test_what_tells_the_time_is_no_leak(tell):
    """Values are asked in mixed order, so a time tells nothing of them. What leaks still does."""
    order = np.random.default_rng(22)
    options = {"n": 2_000, "confidence": SURE, "rng": order}
    honest = audit(clocked(tell, 0.73), [0, 1], 1.0, **options)
    assert honest.ok, honest.words
    assert honest.epsilon > 0.5
    assert audit(clocked(tell, 0.9), [0, 1], 1.0, **options).verdict == "violated"


def test_the_order_is_mixed_and_its_halves_are_fair():
    """Null hypothesis of a random order: runs are neither few nor many, each with 1e-6."""
    order = mixed_order(2, 5_001, np.random.default_rng(23))
    assert np.bincount(order[:5_000]).tolist() == [2_500, 2_500]
    assert np.bincount(order).tolist() == [5_001, 5_001]
    assert few_runs(order == 1) > 1e-6
    assert few_runs((order == 1) ^ (np.arange(order.size) % 2 == 1)) > 1e-6
    again = mixed_order(2, 5_001, np.random.default_rng(23))
    assert np.array_equal(order, again)
    assert not np.array_equal(order, mixed_order(2, 5_001))


# ---- honest mechanisms


@pytest.mark.slow
@pytest.mark.parametrize("family", [GRR, SUE, OUE])
def test_honest_mechanisms_are_accused_as_rarely_as_stated(family):
    """Null hypothesis: an audit accuses with probability at most alpha = 0.2, for small n.

    Channels whose ratio is exactly e^epsilon, which is as hard as it gets.
    """
    rng, runs, m = np.random.default_rng(9), 150, family(4, 1.0)
    accused = sum(not audit_mechanism(m, n=300, confidence=0.8, rng=rng).ok for _ in range(runs))
    assert binom.sf(accused - 1, runs, 0.2) > 1e-6, accused


def test_bounds_are_wrong_as_rarely_as_stated():
    """Exact: over all outcomes of a binomial, each bound misses with at most its error."""
    n, error = 60, 0.05
    low, high = binomial_bounds(np.arange(n + 1), n, error)
    for p in (0.01, 0.2, 0.5, 0.97):
        law = binom.pmf(np.arange(n + 1), n, p)
        assert law[low > p].sum() <= error + 1e-12
        assert law[high < p].sum() <= error + 1e-12
    assert low[0] == 0
    assert high[n] == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hr", "olh", "ss", "she", "dbitflip", "lolh", "orr"])
def test_hashed_and_coded_reports_are_understood(name):
    """The audit of an honest mechanism comes near its epsilon, or it would find nothing at all."""
    family = dn.mechanisms()[name]
    m = family(10, 3.0, **({"cohorts": 4, "width": 8, "seed": 3} if name == "orr" else {}))
    found = audit_mechanism(m, n=8_000, rng=np.random.default_rng(10), confidence=SURE)
    assert found.ok, found.words
    assert found.epsilon > (0.5 if name == "dbitflip" else 0.6) * m.once.epsilon


# ---- independence


def test_padding_of_short_reports_is_no_weak_seed():
    """Reports of a coarse level are few and mostly zeros: equal ones are no collisions of coins."""
    m = dn.HH(dn.Number(0, 1), 1.0)
    found = audit_mechanism(m, n=400, rng=np.random.default_rng(1), confidence=SURE)
    assert found.ok, found.words


def test_equal_neighbours_have_the_stated_moments():
    """Mean and variance over all orders of a small list, by counting them."""
    from itertools import permutations as orders

    keys = "aaabbcd"
    found = [sum(a == b for a, b in itertools.pairwise(o)) for o in orders(keys)]
    _, mean, variance = neighbours(keys)
    assert mean == pytest.approx(np.mean(found))
    assert variance == pytest.approx(np.var(found))


def test_few_runs_have_the_stated_probability():
    """Over all orders of four ones and five zeros, by counting them."""
    orders = [np.isin(np.arange(9), ones) for ones in itertools.combinations(range(9), 4)]
    found = np.array([1 + (o[1:] != o[:-1]).sum() for o in orders])
    for runs, order in zip(found, orders, strict=True):
        assert few_runs(order) == pytest.approx((found <= runs).mean())


@pytest.mark.slow
@pytest.mark.parametrize("words", [3, 200])
@pytest.mark.parametrize("form", [bytes, int.from_bytes, bytes.hex])
def test_a_code_of_few_opaque_words_is_not_accused(words, form):
    """k-RR whose answers are random words of 64 bits: they collide, and it is no seed that does."""
    rng = np.random.default_rng(24)
    m, code = GRR(words, 1.0), [form(rng.bytes(8)) for _ in range(words)]

    def report(value):
        return code[m.report(value, ByteCoins(rng.bytes(8 * m.coin_words)))]

    for n in (300, 3_000):
        found = audit(report, [0, words - 1], 1.0, n=n, confidence=SURE, rng=rng)
        assert found.ok, found.words


def test_a_weak_seed_of_bits_in_an_integer_is_noticed():
    seeds = random.Random(25)

    def report(value):
        row = bits(value, np.random.default_rng(seeds.getrandbits(16)), k=60)
        return int(row @ (1 << np.arange(60)))

    found = audit(report, [0, 59], 1.0, n=2_000, rng=np.random.default_rng(25))
    assert found.verdict == "suspicious", found.words


def test_alarms_of_honest_reports_stay_silent():
    rng = np.random.default_rng(11)
    for size_ in (2, 1_000, 10**9):
        keys = rng.integers(0, size_, 2_000).tolist()
        assert repeats(0, keys, np.array(keys)[:, None]).p_value > 1e-3
        assert collisions(0, keys, 1 / size_, "known").p_value > 1e-3
    assert collisions(0, [1] * 100, 1e-9, "known").p_value < 1e-8


# ---- reports of any kind, and programs


def test_reports_of_any_kind_can_be_compared():
    kinds = [1, 2.5, True, "ab", b"ab", (1, 2), [1, [2]], {"b": 1, "a": (2,)}, {1, 2}, None]
    kinds += [np.array([1, 2]), np.int64(3), bytearray(b"x")]
    kinds += [1.0, 0.0, -0.0, {"a": (2,), "b": 1}, float("nan")]
    assert len({frozen(kind) for kind in kinds}) == len(kinds)
    assert frozen(float("nan")) == frozen(float("nan"))
    assert numbers({"b": 1, "a": [2, None]}) == [98, 1, 97, 2, -1]
    assert numbers(2**3000)[-2:] == [0, 0]
    assert numbers(b"\x05") == [1, 0, 1, 0, 0, 0, 0, 0]
    assert [size(x) for x in (b"abc", "ü", [1, 2], np.array([1, 2]))] == [3, 2, 5, 16]
    with pytest.raises(InvalidArgument, match="numbers, text, bytes"):
        frozen(type("Odd", (), {"__hash__": None})())


def test_reports_of_different_lengths_are_padded():
    found = encode([[[1, 2], [3]], [[4], [5, 6]]])
    assert found.places.shape == (2, 2, 2)
    assert np.isnan(found.places).sum() == 2
    assert found.keys == [(frozen([1, 2]), frozen([4])), (frozen([3]), frozen([5, 6]))]


@pytest.mark.parametrize(
    "form",
    [
        lambda said: (said, None),
        lambda said: {"said": said, (1, 2): [{"deep": b"x"}]},
        lambda said: bytes([said]),
        lambda said: None if said else "",
        lambda said: np.float32(said),
        lambda said: [float("nan"), said],
        lambda said: float("inf") if said else random.random(),
        lambda said: {said, "a", None},
        lambda said: "\udc80" if said else "a",
        lambda said: complex(said, 1),
        lambda said: np.arange(said),
    ],
)
def test_honest_reports_of_any_form_are_taken(form):
    coins = random.Random(26)
    report = lambda value: form(value ^ (coins.random() < 0.27))  # noqa: E731
    found = audit(report, [0, 1], 1.0, n=200, confidence=SURE, rng=np.random.default_rng(26))
    assert found.ok, found.words
    assert found.to_json()


def test_the_options_are_in_the_help():
    for function in (audit, audit_devices, audit_mechanism, audit_command):
        assert {"n", "confidence", "entropy", "rng"} <= set(signature(function).parameters)


@pytest.mark.parametrize(
    "leak",
    [
        lambda v: {"yes": 1} if v else {"nay": 1},
        lambda v: {"a": 0, "b": 1} if v else {"b": 1, "a": 0},
        lambda v: [None, 5] if v else [5, None],
        lambda v: True if v else 1,
        lambda v: None if v else [],
        lambda v: "" if v else [],
    ],
)
def test_a_report_that_tells_by_its_form_is_caught(leak):
    assert audit(leak, [0, 1], 1.0, n=200).verdict == "violated"


CLIENT = """
import json, random, sys
for line in sys.stdin:
    value = int(line)
    lie = random.random() < {lie}
    print(json.dumps({{"answer": 1 - value if lie else value}}))
"""


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize(("lie", "verdict"), [(0.27, "nothing found"), (0.1, "violated")])
def test_a_program_is_audited(lie, verdict):
    """Randomised response: epsilon is ln((1 - lie) / lie), 0.995 and 2.2; its coins are its own."""
    command = [sys.executable, "-c", CLIENT.format(lie=lie)]
    found = audit_command(command, [0, 1], 1.0, n=4_000, confidence=SURE)
    assert found.verdict == verdict, found.words


TWICE = """
import json, random, sys
for line in sys.stdin:
    once = [int(line) ^ (random.random() < 0.27) for _ in range({draws})]
    print(json.dumps((8 * once)[:8]))
"""


@pytest.mark.network
@pytest.mark.parametrize(("draws", "verdict"), [(1, "nothing found"), (8, "violated")])
def test_a_program_whose_devices_report_several_times_is_audited(draws, verdict):
    """Randomised response that is kept, ln(0.73 / 0.27) = 0.995 in all, or drawn eight times."""
    command = [sys.executable, "-c", TWICE.format(draws=draws)]
    found = audit_command(command, [0, 1], 1.0, 8, n=1_000, confidence=SURE)
    assert found.verdict == verdict, found.words
    assert found.rounds == 8


@pytest.mark.network
def test_a_program_is_asked_in_mixed_order():
    """It is started once, and numbers its reports: the numbers tell nothing."""
    lines = "import sys\nfor i, line in enumerate(sys.stdin): print(i, 7)"
    found = audit_command([sys.executable, "-c", lines], ["a", "b"], 1.0, n=500, confidence=SURE)
    assert found.ok, found.words


@pytest.mark.network
def test_a_program_that_fails_says_so():
    with pytest.raises(CorruptData, match="failed with code 1: boom"):
        audit_command([sys.executable, "-c", "raise SystemExit('boom')"], [0, 1], 1.0, n=40)
    with pytest.raises(CorruptData, match="printed 0 lines for 80 values"):
        audit_command([sys.executable, "-c", ""], [0, 1], 1.0, n=40)
    with pytest.raises(InvalidArgument, match="a program"):
        audit_command("", [0, 1], 1.0)


def test_bad_input_is_refused():
    draw = of_mechanism(GRR(4, 1.0))
    with pytest.raises(InvalidArgument, match="'n' must be an integer"):
        audit_source(draw, [0, 1], 1.0, AuditOptions(n=10), "toy")
    with pytest.raises(InvalidArgument, match="at least two values"):
        audit_source(draw, [0], 1.0, AuditOptions(), "toy")
    with pytest.raises(InvalidArgument, match="'confidence'"):
        audit_source(draw, [0, 1], 1.0, AuditOptions(confidence=95), "toy")
    with pytest.raises(InvalidArgument, match="any text"):
        some_values(dn.CMS(dn.Text(), 1.0))


@pytest.mark.slow
def test_exports_table_and_chart(tmp_path):
    found = audit_mechanism(OUE(8, 1.0), n=2_000, rng=np.random.default_rng(12), confidence=SURE)
    assert isinstance(found, Audit)
    rows = json.loads(found.to_json())
    assert rows["verdict"] == "nothing found"
    assert rows["promised"] == 1.0
    assert len(found.to_csv().splitlines()) == len(found.findings) + 1
    assert found.to_arrow().num_rows == found.table().row_count == len(found.findings)
    assert found.save(tmp_path / "audit.svg").stat().st_size > 1_000
    assert "with confidence 99.9999 %, promised 1" in found.words
    assert "position" in found._repr_html_()
