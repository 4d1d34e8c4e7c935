"""Kernels against the plain definition of what they compute."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import chi2, poisson

import deniable as dn
from deniable.kernels import bits, cohorts, columns, direct, groups, subset
from deniable.kernels.bounded import bounded
from deniable.kernels.jit import kernel
from deniable.randomness import SCALE, ByteCoins, Keystream
from deniable.splitmix import mixed, permuted

FALSE_ALARM = 1e-9


@kernel
def bounded_many(words, size, out):
    for i in range(words.size):
        out[i] = bounded(words[i], size)


@pytest.mark.parametrize("size", [2, 3, 5, 130, 2**20 + 7, 2**32 - 1])
def test_bounded_draws_equal_the_coins(size):
    edges = [-(-i * SCALE // size) + d for i in (1, size // 2, size - 1) for d in (-1, 0, 1)]
    words = [0, SCALE - 1, *edges, *Keystream(bytes(32)).words(500).tolist()]
    found = np.empty(len(words), dtype=np.uint64)
    bounded_many(np.array(words, dtype=np.uint64), np.uint64(size), found)
    expected = [ByteCoins(word.to_bytes(8, "little")).choice(size) for word in words]
    assert found.tolist() == expected


class FixedStream(Keystream):
    """A keystream that starts with given words."""

    def __init__(self, words):
        super().__init__(bytes(32))
        self._start = len(self._buffer) - len(words)
        self._buffer[self._start :] = words


@pytest.mark.parametrize("name", ["brr", "grr", "blh", "olh", "hr"])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_bulk_reports_equal_single_ones_on_the_same_words(name, epsilon):
    """These families draw the same words in both paths: the reports agree bit for bit."""
    m = dn.mechanism(name, 2 if name == "brr" else 37, epsilon)
    values = (np.arange(400) % m.domain.size).astype(np.uint32)
    edge = np.array([m.keep - 1, m.keep, 0, SCALE - 1], dtype=np.uint64)
    words = Keystream(b"\1" * 32).words(400 * m.coin_words).copy().reshape(400, -1)
    words[::7, -1] = edge[np.arange(len(words[::7])) % 4]
    out = np.empty(400, dtype=m.dtype)
    m.fill(values, out, FixedStream(words.reshape(-1)))
    single = [
        m.report(v, ByteCoins(w.tobytes())) for v, w in zip(values.tolist(), words, strict=True)
    ]
    np.testing.assert_array_equal(out, m.pack(single))


@pytest.mark.parametrize("threshold", [1 << 63, 3 << 61, SCALE // 3, SCALE // 97, SCALE - 5, 12345])
def test_bernoulli_bytes_are_independent_bits(threshold):
    """Chi-square of all 256 byte patterns against independent bits with T / 2**64."""
    words = np.empty(300_000, dtype=np.uint64)
    bits.fill_bernoulli(words, threshold, Keystream(b"\2" * 32))
    found = np.bincount(words.view(np.uint8), minlength=256)
    p = threshold / SCALE
    ones = np.array([bin(pattern).count("1") for pattern in range(256)])
    expected = found.sum() * p**ones * (1 - p) ** (8 - ones)
    common = expected >= 5
    rare = int(found[~common].sum()), float(expected[~common].sum())
    statistic = np.sum((found - expected)[common] ** 2 / expected[common])
    assert chi2.sf(statistic, max(1, common.sum() - 1)) > FALSE_ALARM
    assert poisson.sf(rare[0] - 1, rare[1]) > FALSE_ALARM


def test_bernoulli_settles_exactly_at_the_threshold():
    """All digits equal: the bit is the comparison of what is left, strictly below."""
    threshold = (0xA5 << 56) | 7
    digits = [SCALE - 1 if 0xA5 >> (7 - plane) & 1 else 0 for plane in range(8)]
    planes = np.repeat(np.array(digits, dtype=np.uint64), bits.SPAN)
    for low, expected in ((6, SCALE - 1), (7, 0), (8, 0)):
        out = np.zeros(1, dtype=np.uint64)
        words = np.concatenate([planes, np.full(64, low << 8, dtype=np.uint64)])
        bits.fill_bernoulli(out, threshold, FixedStream(words))
        assert int(out[0]) == expected


def test_bernoulli_goes_on_when_the_words_run_out():
    """Every block lent as short as allowed: the same bits as with long ones."""

    class Stingy(Keystream):
        def lend(self, at_least):
            return super().lend(at_least)[:at_least]

    short, long = np.empty(3000, dtype=np.uint64), np.empty(3000, dtype=np.uint64)
    bits.fill_bernoulli(short, SCALE // 3, Stingy(bytes(32)))
    bits.fill_bernoulli(long, SCALE // 3, Keystream(bytes(32)))
    np.testing.assert_array_equal(short, long)


@pytest.mark.parametrize("row_bits", [8, 16, 32, 64, 128, 192, 1024, 17 * 64])
@pytest.mark.parametrize("rows", [8, 1000, 300_000])
def test_column_sums(row_bits, rows):
    rows = min(rows, 30_000_000 // row_bits // 8 * 8)
    words = np.random.default_rng(1).integers(0, 2**64, rows * row_bits // 64, dtype=np.uint64)
    plain = np.zeros(row_bits, dtype=np.int64)
    for part in np.array_split(words.view(np.uint8).reshape(rows, -1), 50):
        plain += np.unpackbits(part, axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
    np.testing.assert_array_equal(columns.column_sums(words, row_bits), plain)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 128, 136, 264])
@pytest.mark.parametrize("rows", [1, 255, 3000])
def test_bit_counts_by_group(width, rows):
    """Also of records that lie apart, and of groups whose counters overflow."""
    rng = np.random.default_rng(1)
    data = np.zeros(rows, dtype=[("group", "u2"), ("row", "u1", (width,))])
    data["row"] = rng.integers(0, 256, (rows, width))
    data["row"][:, 0] |= 1
    data["group"] = np.minimum(rng.integers(0, 9, rows), 3)
    found = groups.bit_counts(data["row"], data["group"], 5)
    for group in range(5):
        some = np.unpackbits(data["row"][data["group"] == group], axis=1, bitorder="little")
        np.testing.assert_array_equal(found[group], some.sum(axis=0, dtype=np.int64))


@pytest.mark.parametrize("width", [2, 3, 7, 1000, 65535, 65536])
@pytest.mark.parametrize("size", [2, 3, 8, 4096, 5000, 2**31 - 2])
def test_cells_follow_the_definition(size, width):
    rng = np.random.default_rng(3)
    keys = rng.integers(0, SCALE, (2, 2), dtype=np.uint64)
    values = np.append(rng.integers(0, size, 40), size - 1).astype(np.uint64)
    sizes = (np.uint64(width), np.uint64(size), np.uint64(size.bit_length()))
    dealt = np.empty((2, 2, values.size), dtype=np.uint32)
    hashed = np.empty_like(dealt)
    cohorts.cells_of_codes(values, keys, sizes, dealt)
    cohorts.cells_of_codes(values, keys, (sizes[0], np.uint64(0), np.uint64(0)), hashed)
    for place in np.ndindex(2, 2):
        key = int(keys[place])
        plain = [permuted(v, key, size) % width for v in values.tolist()]
        assert dealt[place].tolist() == plain
        assert hashed[place].tolist() == [mixed(v ^ key) * width >> 64 for v in values.tolist()]


@pytest.mark.parametrize("size", [0, 20_000])
def test_sums_and_masses_follow_the_cells(size):
    """Of more values than are worked on together."""
    rng = np.random.default_rng(4)
    keys = rng.integers(0, SCALE, (3, 2), dtype=np.uint64)
    values = np.arange(20_000, dtype=np.uint64)
    sizes = (np.uint64(50), np.uint64(size), np.uint64(size.bit_length()))
    cells = np.empty((3, 2, values.size), dtype=np.uint32)
    cohorts.cells_of_codes(values, keys, sizes, cells)
    table, weights = rng.integers(0, 99, (3, 50)), rng.integers(0, 99, values.size)
    sums, masses = np.zeros(values.size, np.int64), np.zeros((3, 50), np.int64)
    cohorts.sums_over_cells(table, values, keys, sizes, sums)
    cohorts.masses_of_cells(weights, values, keys, sizes, masses)
    np.testing.assert_array_equal(sums, sum(table[c][cells[c]].sum(axis=0) for c in range(3)))
    for c, row in enumerate(masses):
        plain = [np.bincount(one, weights, minlength=50) for one in cells[c]]
        np.testing.assert_array_equal(row, np.sum(plain, axis=0))


@pytest.mark.parametrize("size", [1, 200, 5000])
def test_histogram(size):
    cells = np.random.default_rng(2).integers(0, size, 10_007).astype(np.uint16)
    np.testing.assert_array_equal(direct.histogram(cells, size), np.bincount(cells, minlength=size))


@pytest.mark.parametrize(
    ("size", "omega"), [(6, 1), (6, 3), (8, 2), (8, 7), (9, 8), (16, 9), (12, 11)]
)
def test_subsets_are_uniform(size, omega):
    """Given whether the value is kept, all subsets are equally likely: chi-square over all of them.

    Sizes up to 8 take Floyd's way, larger ones start from sprinkled bits.
    """
    n, value = 400_000, size // 2
    kept = np.arange(n) % 2 == 0
    rows = np.zeros((n, 1 if size <= 8 else 2), dtype=np.uint8)
    values = np.full(n, value, dtype=np.uint32)
    stream = Keystream(b"\3" * 32)
    for start in range(0, n, 50_000):
        part = slice(start, start + 50_000)
        subset.fill_subsets(rows[part], values[part], size, omega, kept[part], stream)
    codes = bits.as_rows(rows)[:, 0].astype(np.int64)
    possible = np.arange(1 << size)
    of_size = np.array([bin(code).count("1") == omega for code in possible])
    for flag in (True, False):
        allowed = of_size & ((possible >> value & 1) == flag)
        found = np.bincount(codes[kept == flag], minlength=1 << size)
        assert found[~allowed].sum() == 0
        expected = (n // 2) / allowed.sum()
        statistic = np.sum((found[allowed] - expected) ** 2) / expected
        assert chi2.sf(statistic, max(1, allowed.sum() - 1)) > FALSE_ALARM


@pytest.mark.parametrize("size", [100, 640])
def test_large_subsets_survive_a_shortage_of_words(size):
    """Rows that are cut off when the words run out are finished with the next ones."""
    n, omega = 800, size // 3
    rows = np.zeros((n, -(-size // 64) * 8), dtype=np.uint8)
    values = (np.arange(n) % size).astype(np.uint32)
    kept = np.arange(n) % 3 == 0
    stream = Keystream(b"\4" * 32)
    sizes = subset._sprinkle_rows(rows, size, omega, stream)
    done = 0
    while done < n:
        done, used = subset._resize(
            bits.as_rows(rows), sizes, values, kept, omega, np.uint64(size), done, stream.words(3)
        )
        assert used <= 3
    members = np.unpackbits(rows, axis=1, bitorder="little")
    assert (members.sum(axis=1) == omega).all()
    np.testing.assert_array_equal(members[np.arange(n), values], kept)


@pytest.mark.slow
def test_hashes_are_three_wise_independent():
    """Chi-square of the cells of three values under random hashes against the uniform law."""
    m = dn.OLH(1000, 1.0, g=4)
    reports = m.privatize(np.zeros(200_000, dtype=np.int64), np.random.default_rng(5)).data
    a, b, c = (reports[name].astype(object) for name in "abc")
    for triple in ((0, 1, 2), (5, 500, 999), (3, 6, 9)):
        cells = [(((a * v + b) * v + c) % m.modulus) * m.g // m.modulus for v in triple]
        joint = (cells[0] * 16 + cells[1] * 4 + cells[2]).astype(np.int64)
        found = np.bincount(joint, minlength=64)
        expected = len(reports) / 64
        assert chi2.sf(np.sum((found - expected) ** 2) / expected, 63) > FALSE_ALARM


def test_support_sizes_have_the_variance_of_independent_hashes():
    """Pairs of values are independent, so the number of supported values is not overdispersed."""
    k, n = 400, 20_000
    m = dn.OLH(k, 1.0, g=4)
    data = m.privatize(np.zeros(n, dtype=np.int64), np.random.default_rng(6)).data
    sizes = np.array([m.count(data[i : i + 1]).sum() for i in range(2000)])
    spread = np.sum((sizes - k / 4) ** 2) / (k * 3 / 16)
    assert min(chi2.cdf(spread, 2000), chi2.sf(spread, 2000)) > FALSE_ALARM


def test_support_counts_follow_the_definition():
    m = dn.OLH(61, 2.0)
    data = m.privatize(np.arange(1000) % 61, np.random.default_rng(7)).data
    a, b, c, y = (data[name].astype(object) for name in "abcy")
    plain = [
        int(np.sum((((a * v + b) * v + c) % m.modulus) * m.g // m.modulus == y)) for v in range(61)
    ]
    assert m.count(data).tolist() == plain


@pytest.mark.slow
def test_kernels_compile_where_nothing_can_be_cached():
    script = """
import numba.core.caching
numba.core.caching.CacheImpl._locator_classes = []
import deniable as dn
print(len(dn.GRR(4, 1.0).privatize([0] * 100)))
"""
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "100"
