"""Tallies from outside: what no collector can have written is refused."""

import hashlib
import json
import struct
from types import SimpleNamespace

import numpy as np
import pytest

import deniable as dn
from deniable.canonical import canonical
from deniable.core import tally as module
from deniable.errors import CorruptData, InvalidArgument

M = dn.GRR(4, 1.0)
TALLY = M.tally(M.privatize([0, 1, 2, 3, 0] * 10, np.random.default_rng(1)))


def forge(counts=None, header=None, version=2, **changes):
    """Bytes with a valid digest and altered contents."""
    data = TALLY.to_bytes()
    length = struct.unpack_from("<I", data, 8)[0]
    fields = {**json.loads(data[12 : 12 + length]), **changes}
    try:
        text = canonical(fields) if header is None else header
    except InvalidArgument:  # numbers that have no canonical form
        text = json.dumps(fields).encode()
    numbers = TALLY.counts if counts is None else np.array(counts, dtype="<i8")
    body = struct.pack("<7sBI", b"DNTALLY", version, len(text)) + text + numbers.tobytes()
    return body + module._digest(body)


def test_the_forger_can_write_a_good_tally():
    assert dn.Tally.from_bytes(forge()) == TALLY


@pytest.mark.parametrize(
    "data",
    [
        forge(n=-5),
        forge(n=51),
        forge(n=50.5),
        forge(n="50"),
        forge(n=True),
        forge(n=2**70),
        forge(n=float("inf")),
        forge(identified=51),
        forge(identified=-1),
        forge(fingerprint="-1"),
        forge(fingerprint="f" * 100),
        forge(fingerprint=5),
        forge(extra=1),
        forge(counts=[-1, 20, 20, 11]),
        forge(counts=[51, 0, 0, -1]),
        forge(counts=[50, 0, 0]),
        forge(header=b"[]"),
        forge(header=b"{"),
        forge(header=b"\xff"),
        forge(header=b"[" * 100_000),
    ],
)
def test_forged_tallies_are_refused(data):
    with pytest.raises(CorruptData):
        dn.Tally.from_bytes(data)


def test_a_huge_domain_is_refused_before_memory_is_taken():
    spec = {**dn.HR(2**31 - 2, 1.0, block=2).to_spec()}
    with pytest.raises(CorruptData, match="these counts are not those"):
        dn.Tally.from_bytes(forge(spec=spec))


def test_other_versions_are_refused():
    with pytest.raises(CorruptData, match=r"made by version 0\.1, which was never released"):
        dn.Tally.from_bytes(forge(version=1))
    with pytest.raises(CorruptData, match="version 3 is not known here"):
        dn.Tally.from_bytes(forge(version=3))
    with pytest.raises(InvalidArgument, match=r"made by version 0\.1, which was never released"):
        dn.from_spec({"deniable": 1, "mechanism": "grr", "domain": {"size": 4}, "epsilon": 1.0})


def test_headers_have_one_form():
    data = TALLY.to_bytes()
    header = data[12 : 12 + struct.unpack_from("<I", data, 8)[0]]
    with pytest.raises(CorruptData, match="canonical JSON"):
        dn.Tally.from_bytes(forge(header=header.replace(b":", b": ", 1)))


def test_many_reports_are_counted_to_the_last_one():
    """Beyond what 32 bits hold."""
    counts = np.array([2**50 + 1, 2**31, 2**32, 1])
    large = dn.Tally.of_counts(M, counts, int(counts.sum()))
    whole = large.merge(large).merge(TALLY)
    assert whole.counts.tolist() == (2 * counts + TALLY.counts).tolist()
    assert whole.n == 2 * large.n + TALLY.n
    assert dn.Tally.from_bytes(whole.to_bytes()) == whole


@pytest.mark.parametrize("wrong", [None, "x", 3, [1, 2], 10**12])
def test_only_bytes_are_bytes(wrong):
    with pytest.raises(InvalidArgument, match="'data' must be bytes"):
        dn.Tally.from_bytes(wrong)


def test_other_types_are_refused_by_name():
    for action in (
        lambda: TALLY.add(None),
        lambda: TALLY.add(TALLY),
        lambda: M.tally([1]),
        lambda: TALLY.merge(3),
        lambda: dn.Tally(3),
        lambda: dn.register(3),
    ):
        with pytest.raises(InvalidArgument, match="must be"):
            action()
    with pytest.raises(InvalidArgument, match="'method' must be one of"):
        TALLY.estimate(["unbiased"])


# ---- fingerprints

IDS = np.random.default_rng(3).integers(0, 256, (60, 16), dtype=np.uint8)


def tally_of(ids):
    reports = M.privatize([0] * len(ids), np.random.default_rng(2))
    return M.tally(dn.Reports(M, reports.data, ids))


def expected(ids):
    """As docs/formats.md says it: 64 hexadecimal digits of a sum modulo 2**256."""
    digests = [hashlib.sha256(row.tobytes()).hexdigest() for row in ids]
    return f"{sum(int(digest, 16) for digest in digests) % 2**256:064x}"


def written(tally):
    data = tally.to_bytes()
    return json.loads(data[12 : 12 + struct.unpack_from("<I", data, 8)[0]])["fingerprint"]


def check_fingerprints():
    """All 32 bytes are written, added and read, and every byte of every id is in them."""
    whole = tally_of(IDS)
    assert written(whole) == expected(IDS)
    for cut in (1, 20, 59):
        parts = tally_of(IDS[:cut]), tally_of(IDS[cut:])
        assert written(parts[0].merge(parts[1])) == written(parts[1].merge(parts[0]))
        assert written(parts[0].merge(parts[1])) == expected(IDS)
    for place in range(16):
        for row in (0, 59):
            other = IDS.copy()
            other[row, place] ^= 1 << place % 8
            assert written(tally_of(other)) == expected(other) != expected(IDS)
    twice = whole.merge(whole)
    assert written(twice) == expected(np.concatenate([IDS, IDS])) not in ("0" * 64, written(whole))
    assert dn.Tally.from_bytes(twice.to_bytes()) == twice


def check_bytes_of_fingerprints():
    """Tallies whose fingerprints differ in any one byte are different, as bytes and as values."""
    for place in range(32):
        digits = f"{0x81 << 8 * place:064x}"
        read = dn.Tally.from_bytes(forge(identified=50, fingerprint=digits))
        assert written(read) == written(read.merge(M.tally())) == digits
        assert read != dn.Tally.from_bytes(forge(identified=50))


def check_seal():
    """No byte of a tally can be changed, not even those of its seal."""
    data = TALLY.to_bytes()
    for place in range(len(data)):
        with pytest.raises(CorruptData):
            dn.Tally.from_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    body, seal = data[:-16], data[-16:]
    assert seal == hashlib.sha256(body).digest()[:16]


@pytest.mark.parametrize("law", [check_fingerprints, check_bytes_of_fingerprints, check_seal])
def test_fingerprints_and_seals(law):
    law()


def short(digest):
    """A hash of which only so many bytes are left."""

    class Cut:
        def __init__(self, data):
            self._found = digest(data)

        def digest(self):
            return self._found

    return Cut


@pytest.mark.parametrize(
    "half",
    [
        lambda data: bytes(16) + hashlib.sha256(data).digest()[16:],
        lambda data: hashlib.sha256(data).digest()[:31] + b"\0",
        lambda data: hashlib.sha256(data[:8]).digest(),
        lambda data: hashlib.sha256(data[1:]).digest(),
    ],
    ids=["half", "a byte less", "half an id", "an id without its first byte"],
)
def test_half_a_fingerprint_is_caught(monkeypatch, half):
    monkeypatch.setattr(module, "hashlib", SimpleNamespace(sha256=short(half)))
    with pytest.raises(AssertionError):
        check_fingerprints()


def test_fingerprints_that_are_cut_when_they_are_added_are_caught(monkeypatch):
    monkeypatch.setattr(module, "_FINGERPRINTS", 1 << 255)
    with pytest.raises(AssertionError):
        check_bytes_of_fingerprints()


def test_a_seal_of_one_byte_is_caught(monkeypatch):
    monkeypatch.setattr(module, "_digest", lambda body: hashlib.sha256(body).digest()[:1] * 16)
    with pytest.raises(AssertionError):
        check_seal()


# ---- no report is lost between two pieces of work


def check_lengths():
    """Columns of every length near where work is cut, with any number of threads."""
    data = np.random.default_rng(5).integers(0, 4, 8200).astype(np.uint8)
    for length in (1, 2, 7, 8, 9, 2047, 2048, 2049, 2050, 4095, 4096, 4097, 6145, 8193):
        for threads in (1, 2, 3, 4, 7):
            tally = M.tally(dn.Reports(M, data[:length]), threads=threads)
            assert tally.n == length
            assert tally.counts.tolist() == np.bincount(data[:length], minlength=4).tolist()


def test_every_report_of_a_column_is_counted():
    check_lengths()


def test_a_column_whose_last_report_is_lost_is_caught(monkeypatch):
    count = dn.GRR.count
    monkeypatch.setattr(
        dn.GRR, "count", lambda m, data: count(m, data if len(data) > 1 else data[:0])
    )
    with pytest.raises(AssertionError):
        check_lengths()


FORGED = [
    (dn.GRR(2050, 1.0), 1),
    (dn.SS(2100, 1.0, omega=2), 2),
    (dn.DRR(dn.Number(0, 1), 1.0, ell=8), 1),
]


@pytest.mark.parametrize(("m", "ones"), FORGED, ids=str)
def test_sums_of_forged_counts_do_not_wrap(m, ones):
    """Each count is possible, and their sum is right modulo 2**64 only."""
    n = (1 << 53) - 1
    counts = np.zeros(m.cells, dtype=np.int64)
    counts[: 2048 + ones] = n
    counts[-1] = 2048
    assert sum(map(int, counts)) == ones * n + (1 << 64)
    assert not m.possible_counts(counts, n)


def test_tallies_share_no_counts():
    """What is made from a tally stays as it is when the tally grows, and the other way round."""
    m = dn.OUE(3, 1.0)
    given = np.array([3, 1, 2])
    tally = dn.Tally.of_counts(m, given, 4)
    given[0] = 100
    merged, before = tally.merge(dn.Tally(m)), tally.counts
    assert tally.add(m.privatize([0, 1, 2], rng=np.random.default_rng(1))) is tally
    assert before.tolist() == merged.counts.tolist() == [3, 1, 2]
    assert (tally.n, merged.n) == (7, 4)
