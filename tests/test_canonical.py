"""Canonical JSON: one text for the same data, in Python and in JavaScript."""

import json
import math
import shutil
import struct
import subprocess
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.canonical import MOST_INTEGER, canonical, parsed
from deniable.errors import CorruptData, InvalidArgument

#: Writes each line's data anew, as the specification says that JavaScript does it.
WRITE = """
const canonical = (x) => Array.isArray(x) ? `[${x.map(canonical)}]`
  : Object(x) !== x ? JSON.stringify(x)
  : `{${Object.keys(x).sort().map((key) => `${JSON.stringify(key)}:${canonical(x[key])}`)}}`;
const lines = require('fs').readFileSync(0, 'utf8').split('\\n').filter(Boolean);
process.stdout.write(lines.map((line) => canonical(JSON.parse(line))).join('\\n'));
"""
node = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")


def doubles(count, seed):
    """Doubles of all sizes: random bits, short decimals, powers of ten, and their neighbours."""
    rng = np.random.default_rng(seed)
    bits = (struct.unpack("<d", rng.bytes(8))[0] for _ in range(count))
    short = (
        float(f"{rng.integers(-(10**6), 10**6)}e{rng.integers(-30, 30)}") for _ in range(count)
    )
    tens = [10.0**power for power in range(-330, 309)]
    near = [math.nextafter(x, way) for x in tens for way in (0.0, math.inf)]
    odd = [
        0.0,
        -0.0,
        5e-324,
        2.0**53,
        2.0**53 + 2,
        -(2.0**64),
        1e21,
        1e-6,
        1e-7,
        1.2345678901234568e20,
    ]
    return [x for x in (*bits, *short, *tens, *near, *odd) if math.isfinite(x)]


@pytest.mark.slow
@node
def test_node_writes_the_same():
    rng = np.random.default_rng(3)
    points = [*range(0x250), 0x2028, 0x2029, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x1F642, 0x10FFFF]
    texts = ["".join(map(chr, rng.choice(points, 6))) for _ in range(3000)]
    integers = [0, 1, -1, MOST_INTEGER, -MOST_INTEGER, 2**60, -(2**70), 3 * 2**900]
    keys = [{a: 1, b: [None, True, False, {}, []]} for a, b in pairwise(texts)]
    data = [*doubles(20_000, 4), *texts, *integers, *keys]
    lines = "\n".join(json.dumps(one) for one in data)
    done = subprocess.run(
        ["node", "-e", WRITE], input=lines.encode(), capture_output=True, check=True
    )
    written = done.stdout.split(b"\n")
    assert len(written) == len(data)
    for one, text in zip(data, written, strict=True):
        assert canonical(one) == text


def test_numbers_are_written_as_javascript_does():
    for number, text in {
        3.0: "3", 0.25: "0.25", 1e-7: "1e-7", 1e-6: "0.000001", 1e20: "100000000000000000000",
        1e21: "1e+21", -1.5e300: "-1.5e+300", -0.0: "0", 5e-324: "5e-324", 123.456: "123.456",
        2**60: "1152921504606847000", 1.5e18: "1500000000000000000",
    }.items():  # fmt: skip
        assert canonical(number).decode() == text
        assert parsed(text.encode(), "number") == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_survive(number):
    assert parsed(canonical(number), "number") == number


json_data = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MOST_INTEGER, MOST_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(json_data)
def test_data_survives_and_is_written_once(data):
    text = canonical(data)
    assert parsed(text, "document") == data
    assert canonical(parsed(text, "document")) == text


def test_keys_are_sorted_as_utf_16():
    assert canonical({"\ufb33": 1, "\U0001f600": 2, "a": 3, "Z": 4}).decode() == (
        '{"Z":4,"a":3,"\U0001f600":2,"\ufb33":1}'
    )


@pytest.mark.parametrize(
    "data", [math.nan, math.inf, 2**53 + 1, 10**400, "\ud800", {1: 2}, {"a": {None: 1}}, b"x", {1}]
)
def test_what_is_no_json_is_refused(data):
    with pytest.raises(InvalidArgument):
        canonical(data)


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "1 ", " 1", "1\n", "01", "1.0", "1e0", "-0", "-0.0", "1e400", "NaN", "-Infinity",
        '{"a":1,"a":1}', '{"b":1,"a":1}', '{"a": 1}', '"\\u0041"', '"\\/"', '"\\u00e9"',
        '"\\u001F"', '"\\ud800"', '"\x01"', "9007199254740993", "1152921504606846976", "1" * 5000,
        "[" * 100_000, "[1,]", "{}{}", "\ufeff{}",
    ],
    ids=lambda text: repr(text[:20]),
)  # fmt: skip
def test_other_bytes_are_refused(text):
    with pytest.raises(CorruptData, match="this is not a manifest"):
        parsed(text.encode(), "manifest")


def test_bytes_that_are_no_text_are_refused():
    for data in (b"\xff", b'"\xed\xa0\x80"', b'"\xc0\xaf"'):
        with pytest.raises(CorruptData):
            parsed(data, "manifest")
