"""The JavaScript client: its own tests, and reports of every shape under a server's eyes."""

import json
import re
import shutil
import subprocess
import unicodedata
from pathlib import Path

import pytest

import deniable as dn
from deniable.collection.rows import row_check
from deniable.texts import tidy

CLIENT = Path(__file__).parents[1] / "clients" / "js"
OLDEST = 18


def node_version():
    """The major version of Node, or 0."""
    if shutil.which("node") is None:
        return 0
    told = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False)
    found = re.match(r"v(\d+)\.", told.stdout)
    return int(found[1]) if found else 0


pytestmark = pytest.mark.skipif(
    node_version() < OLDEST, reason=f"the JavaScript client needs Node {OLDEST} or newer"
)


def test_the_clients_own_tests_pass():
    done = subprocess.run(
        ["node", "--test"], cwd=CLIENT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]


@pytest.mark.parametrize("name", ["grr", "ss", "olh", "hr", "she", "orr", "rappor", "dbitflippm"])
def test_a_server_takes_what_javascript_reports(name, tmp_path):
    """Rows made with fresh coins have the length and the contents that a server asks for."""
    m = dn.mechanism(name, 11, 1.0)
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(m.to_spec()))
    done = subprocess.run(
        ["node", CLIENT / "bin" / "report.js", spec],
        input="".join(f"{v % m.domain.size}\n" for v in range(60)),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows = [bytes.fromhex(json.loads(line)) for line in done.stdout.splitlines()]
    assert [row_check(m)(row) for row in rows] == [None] * 60


#: Reads texts, writes what tidy makes of each; null where this Node does not know a character.
TIDY = """
import { tidy } from './deniable.js';
import { readFileSync } from 'node:fs';
const known = (text) => !/\\p{Cn}/u.test(text);
const texts = JSON.parse(readFileSync(0, 'utf8'));
const tidied = texts.map((text) => (known(text) ? tidy(text) : null));
process.stdout.write(JSON.stringify(tidied));
"""


def test_texts_are_tidied_alike():
    """Every character that tidying changes and every 97th other one, alone and in a text.

    Node and Python may know different versions of Unicode, so both must know the character.
    """
    places = (*range(0xD800), *range(0xE000, 0x110000))
    known = [chr(i) for i in places if unicodedata.category(chr(i)) not in ("Cn", "Co")]
    some = [c for i, c in enumerate(known) if tidy(c) != c or i % 97 == 0]
    texts = [text for c in some for text in (c, f"a{c}B", f"{c}\u0301 x{c}")]
    done = subprocess.run(
        ["node", "--input-type=module", "--eval", TIDY],
        input=json.dumps(texts), cwd=CLIENT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    pairs = [(text, found) for text, found in zip(texts, json.loads(done.stdout), strict=True)]
    assert [text for text, found in pairs if found not in (None, tidy(text))] == []
    assert sum(found is not None for _, found in pairs) > 10_000
