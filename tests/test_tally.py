"""Tallies from outside: what no collector can have written is refused."""

import json
import struct

import numpy as np
import pytest

import deniable as dn
from deniable import tally as module
from deniable.errors import CorruptData, InvalidArgument

M = dn.GRR(4, 1.0)
TALLY = M.tally(M.privatize([0, 1, 2, 3, 0] * 10, np.random.default_rng(1)))


def forge(counts=None, header=None, **changes):
    """Bytes with a valid digest and altered contents."""
    data = TALLY.to_bytes()
    length = struct.unpack_from("<I", data, 8)[0]
    fields = {**json.loads(data[12 : 12 + length]), **changes}
    text = json.dumps(fields).encode() if header is None else header
    numbers = TALLY.counts if counts is None else np.array(counts, dtype="<i8")
    body = struct.pack("<7sBI", b"DNTALLY", 1, len(text)) + text + numbers.tobytes()
    return body + module._digest(body)


def test_the_forger_can_write_a_good_tally():
    assert dn.Tally.from_bytes(forge()) == TALLY


@pytest.mark.parametrize(
    "data",
    [
        forge(n=-5),
        forge(n=51),
        forge(n=50.0),
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
        dn.Tally.from_bytes(forge(mechanism=spec))


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
