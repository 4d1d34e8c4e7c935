"""JavaScript makes the reports of Python from the same words, also of many answers.

The words lie where something is decided: on both sides of every threshold, at the first and last
words of draws, and anywhere.
"""

import json
import random
import subprocess

import pytest
from test_javascript import CLIENT, pytestmark  # noqa: F401

import deniable as dn
from deniable.answers.choice import Listed
from deniable.answers.number import GRID, Number
from deniable.randomness import SCALE, WORD_BYTES, ByteCoins

SIZES = (65, 300, 1000)
REPORTS = 12
#: Reads specs with values and coins, prints rows.
SCRIPT = f"""
import {{ mechanism }} from {json.dumps((CLIENT / "deniable.js").as_uri())};
let text = '';
for await (const part of process.stdin) text += part;
const hex = (bytes) => Buffer.from(bytes).toString('hex');
const bytes = (coins) => new Uint8Array(Buffer.from(coins, 'hex'));
const rows = [];
for (const {{ spec, cases }} of JSON.parse(text)) {{
  const m = await mechanism(spec);
  rows.push(cases.map(([value, coins]) => hex(m.report(value, bytes(coins)))));
}}
console.log(JSON.stringify(rows));
"""


def edges(m):
    """Words at which a draw of this mechanism changes its mind."""
    if m.parts:
        return sorted({word for part in m.parts for word in edges(part)})
    size = m.domain.size if m.domain.is_listed else getattr(m, "outcomes", m.cells)
    sizes = {size, *(getattr(m, name) for name in m.design)} - {0, -1}
    steps = [-(-i * SCALE // size) for size in sizes for i in (1, size // 2, size - 1)]
    limits = [getattr(m, name) for name in m.thresholds]
    around = {x + d for x in (*steps, *limits, *(SCALE - x for x in limits)) for d in (-1, 0)}
    return [word for word in sorted({0, SCALE - 1, *around}) if 0 <= word < SCALE]


def cases(m, rng):
    """Values, and coins of which half lie at edges."""
    if m.domain.is_listed:
        last = m.domain.size - 1
        values = [0, last, rng.randrange(last)]
    elif isinstance(m.domain, Number):
        values = [0, GRID, rng.randrange(GRID)]
    else:
        values = m.domain.sample()
    for number in range(REPORTS):
        value = values[number % len(values)]
        pools = edges(m), [rng.getrandbits(64) for _ in range(50)]
        words = [rng.choice(rng.choice(pools)) for _ in range(m.coin_words)]
        yield value, b"".join(word.to_bytes(WORD_BYTES, "little") for word in words)


def of_size(size):
    """Every mechanism about one question, with so many answers, or steps of a number."""
    for name, family in dn.mechanisms().items():
        if not family.on_devices:
            continue
        if dn.Items in family.takes:
            labels = [f"answer {number}" for number in range(size)]
            for design in ({}, {"w": 2}):
                yield dn.mechanism(name, dn.Items(labels, 4), 1.0, **design)
        elif Listed in family.takes:
            yield dn.mechanism(name, 2 if name == "brr" else size, 1.0)
        elif Number in family.takes:
            design = {one: size for one in ("ell", "bins") if one in family.design}
            domains = [Number(0, size), Number(0, size, 0.5), Number(0, size, optional=True)]
            suited = (domain for domain in domains if family.unsuited(domain) is None)
            yield from (dn.mechanism(name, domain, 1.0, **design) for domain in suited)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_javascript_makes_the_same_reports(size):
    rng, asked, expected = random.Random(size), [], []
    every = list(of_size(size))
    for m in every:
        made = list(cases(m, rng))
        given = [(value, coins.hex()) for value, coins in made]
        asked.append({"spec": m.to_spec(), "cases": given})
        reports = [m.report(value, ByteCoins(coins)) for value, coins in made]
        expected.append([m.layout.row(report).hex() for report in reports])
    done = subprocess.run(
        ["node", "--input-type=module", "-e", SCRIPT],
        input=json.dumps(asked), capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    for m, mine, theirs in zip(every, expected, json.loads(done.stdout), strict=True):
        assert theirs == mine, m.name
