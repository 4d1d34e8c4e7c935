"""The JavaScript client: its own tests, and reports of every shape under a server's eyes."""

import copy
import json
import random
import re
import shutil
import subprocess
import unicodedata
from itertools import product
from pathlib import Path

import pytest

import deniable as dn
from deniable.collection.manifest import Collection
from deniable.collection.questions import Question
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


#: What a publisher might change by hand, and by how much: nothing that doubles could miss.
FACTORS = (0.25, 0.5, 0.8, 0.97, 0.9999, 1.0001, 1.03, 1.25, 2.0, 8.0)


def every_question():
    """Questions with every mechanism, few and many answers, small and large epsilons."""
    names, every = sorted(dn.mechanisms()), []
    for name, k, epsilon in product(names, (2, 3, 40), (0.3, 1.0, 2.5)):
        if name == "brr" and k > 2:
            continue
        mechanism = dn.mechanism(name, [f"answer {v}" for v in range(k)], epsilon)
        every.append(Question("q", "?", "choice", mechanism))
    for name, epsilon in product(("cms", "hcms", "orr", "orappor", "rappor"), (0.5, 2.0)):
        every.append(Question("q", "?", "text", dn.mechanism(name, dn.Text(), epsilon)))
    return every


def random_manifest(rng, pool):
    """Rounds, changes and questions with hardly more epsilon than they need; or None."""
    picked = [rng.choice(pool) for _ in range(rng.choice((1, 1, 1, 2, 4)))]
    questions = tuple(Question(f"q{i}", "?", q.kind, q.mechanism) for i, q in enumerate(picked))
    rounds = rng.choice((1, 1, 2, 3, 7, 40))
    divide = "sampled" if rounds == 1 and rng.random() < 0.3 else "split"
    changes = rng.choice((0, 0, rng.randrange(rounds)))
    # A collection that was not checked, to learn what it spends.
    loose = Collection.__new__(Collection)
    fields = {"title": "t", "about": "", "divide": divide, "rounds": rounds, "changes": changes}
    vars(loose).update(fields | {"questions": questions, "epsilon": 32.0})
    if not all(getattr(q.mechanism, "key_is_value", True) for q in questions):
        vars(loose)["changes"] = 0  # with changes it is refused whatever it spends
    if loose.spent + 1e-6 > 32:
        return None
    asked = [question.to_json() for question in questions]
    # What doubles cannot tell is no matter of this test.
    return {"deniable": 1, **fields, "epsilon": loose.spent + 1e-6, "questions": asked}


def tampered(rng, manifest):
    """One number of a manifest is another, or none is."""
    data = copy.deepcopy(manifest)
    spec = rng.choice(data["questions"])["mechanism"]
    places = [(data, "epsilon"), (data, "epsilon"), (data, "changes"), (data, "rounds")]
    places += [(spec, name) for name in ("epsilon", "epsilon_1", "epsilon_inf") if name in spec]
    places += [(spec[part], name) for part in ("design", "thresholds") for name in spec[part]]
    where, name = rng.choice([*places, (data, None), (data, None)])
    if name is None:
        return data
    if where is spec["thresholds"] and rng.random() < 0.3:  # what was kept is flipped
        spec["thresholds"] = {name: str(2**64 - int(x)) for name, x in where.items()}
        return data
    factor = rng.choice(FACTORS)
    if isinstance(where[name], str):
        where[name] = str(max(1, min(2**64 - 1, int(int(where[name]) * factor))))
    elif isinstance(where[name], int) and "epsilon" not in name:
        where[name] = rng.choice((where[name] - 1, where[name] + 1, int(where[name] * factor)))
    else:
        where[name] *= factor
    return data


def judged(manifest):
    """Whether Python accepts it."""
    try:
        Collection.from_manifest(manifest.encode())
    except ValueError:
        return False
    return True


def test_javascript_accepts_the_manifests_that_python_accepts():
    """Thousands with rounds, memory and tampered integers: the same ones are refused."""
    rng, pool = random.Random(16), every_question()
    assert len({q.mechanism.name for q in pool}) == 28
    honest = [found for _ in range(2500) if (found := random_manifest(rng, pool))]
    manifests = [json.dumps(tampered(rng, found)) for found in honest for _ in range(2)]
    done = subprocess.run(
        ["node", Path(__file__).with_name("verdicts.mjs")], input="\n".join(manifests), text=True,
        capture_output=True, check=True, timeout=120,
    )  # fmt: skip
    found = done.stdout.split()
    expected = [judged(manifest) for manifest in manifests]
    wrong = [
        (said, manifest) for said, right, manifest in zip(found, expected, manifests, strict=True)
        if (said == "ok") != right
    ]  # fmt: skip
    assert wrong == []
    assert set(found) <= {"ok", "bad-manifest", "broken-promise"}
    assert min(found.count("ok"), found.count("broken-promise")) > 1000
    again = [json.loads(manifest)["rounds"] > 1 for manifest in manifests]
    assert [*zip(found, again, strict=True)].count(("ok", True)) > 1000
