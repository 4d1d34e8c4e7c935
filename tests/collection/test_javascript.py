"""The JavaScript client: its own tests, and reports of every shape under a server's eyes."""

import copy
import gzip
import json
import random
import re
import shutil
import subprocess
import unicodedata
from itertools import product

import pytest

import deniable as dn
from deniable.canonical import canonical
from deniable.collection.example import EXAMPLE
from deniable.collection.manifest import Collection
from deniable.collection.survey import survey_of
from deniable.core.domain import survey_kinds
from deniable.errors import ManifestRefused
from deniable.mechanisms.joint import Joint
from deniable.service.pages import STATIC
from deniable.service.scripts import TOKEN, client_files, client_module, compact, families
from deniable.texts import tidy
from places import ROOT, TESTS, VECTORS

CLIENT = ROOT / "clients" / "js"
OLDEST = 18
#: Node 18 has it, but not as a global.
NODE_18 = "globalThis.crypto ??= (await import('node:crypto')).webcrypto;\n"


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


def run_tests(folder, *names):
    command = ["node", "--test", *names]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]


@pytest.mark.slow
def test_the_clients_own_tests_pass():
    run_tests(CLIENT)


@pytest.mark.slow
def test_the_modules_do_the_same_as_they_are_served(tmp_path):
    """Without comments and blanks."""
    served = tmp_path / "clients" / "js"
    shutil.copytree(CLIENT, served)
    (tmp_path / "tests").symlink_to(TESTS)
    for name, body in client_files().items():
        assert len(body) < (CLIENT / "client" / name).stat().st_size
        (served / "client" / name).write_bytes(body)
    names = ("book", "memo", "texts", "vectors")
    run_tests(served, *(f"test/{name}.test.js" for name in names))


def test_texts_and_regular_expressions_stay_as_they_are():
    source = """/** A
     * comment. */
    const a = 'x  // y' + `a  ${ b } /* c */`; // d
    let c = a  /  b / 2, d = /[/ ]  \\/ x/gu.test(c) ? + +a : - -b;
    const e = "x  // y's" + '"  "'; for (;;) { f([ 1, 2, ], { a, }, ) ; }
    export  function f( x ) { return x; }"""
    assert unfit(source) == []
    assert compact(source) == (
        "const a='x  // y'+`a  ${ b } /* c */`;let c=a/b/2,d=/[/ ]  \\/ x/gu.test(c)?+ +a:- -b;"
        """const e="x  // y's"+'"  "';for(;;){f([1,2],{a})}export function f(x){return x}"""
    )


#: Words that an expression, and so a regular expression, may follow.
BEFORE_EXPRESSIONS = {"return", "typeof", "case", "in", "of", "await", "throw", "else", "void"}


def unfit(source):
    """What `compact` would break without a word; Node refuses what lacks a semicolon itself.

    A line end stands for a semicolon only where the tokens would be no program without it, or
    after some words. So what is left are these words, and tokens that are told apart wrongly.
    """
    found, before = [], ""
    for token in TOKEN.finditer(source):
        text = token[0]
        if token["blank"] is not None:
            if "\n" in text and before in (
                "return",
                "break",
                "continue",
                "throw",
                "yield",
                "async",
            ):
                found.append(f"{before} at the end of a line")
            continue
        operand = re.search(r"[\w$)\]}'\"`]$", before) and before not in BEFORE_EXPRESSIONS
        if text[0] == "`" and (len(text) < 2 or text.count("{") != text.count("}")):
            found.append(f"a template in a template: {text}")
        if text[0] in "'\"" and len(text) < 2:
            found.append("a text that does not end")
        if text == "/" and not operand:
            found.append("a regular expression that begins with a blank")
        if text[0] == "/" and len(text) > 1 and operand:
            found.append(f"a division without blanks: {text}")
        if text == "," and before in (",", "["):
            found.append("a list with holes")
        before = text
    return found


@pytest.mark.parametrize("name", sorted(client_files()))
def test_the_sources_are_what_compact_knows(name):
    assert unfit((CLIENT / "client" / name).read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        "const a = `x ${b.map((c) => `  ${c}  `)} y`;",
        "const a = b.replace(/ +/g, '');",
        "const a = b/2; // a half, c/d",
        "const f = () => {\n  return\n    5;\n};",
        "const a = [, ];",
        "const a = [1,, ];",
        "const a = `b",
    ],
)
def test_sources_that_compact_would_break_are_noticed(source):
    assert unfit(source) != []


@pytest.mark.network
@pytest.mark.parametrize(
    "source", ["let a = 1\nlet b = 2;", "let a = 1;\na\n++a;", "function f() { if (1) ; }"]
)
def test_what_lacks_a_semicolon_is_no_program_when_it_is_served(source, tmp_path):
    file = tmp_path / "served.mjs"
    for text, right in ((source, True), (compact(source), False)):
        file.write_text(text)
        done = subprocess.run(["node", "--check", file], capture_output=True, check=False)
        assert (done.returncode == 0) == right


#: Answers what is asked first, as a page would, and sends it to nobody.
ANSWERING = """
import { Client } from './client.js';
const [manifest, answers] = JSON.parse(process.argv[1]);
let pages = {};
const book = { update: async (change) => { pages = change(structuredClone(pages)); } };
const fetch = async () => new Response(null, { status: 201 });
const bytes = new TextEncoder().encode(manifest);
const client = await Client.load(bytes, { book, fetch, to: 'https://example.org/v2/submissions' });
await client.answer(answers);
process.stdout.write(JSON.stringify(globalThis.imported));
"""


def loaded(manifest, answers, folder):
    """The bytes of all that ``/client.js`` of a collection loads until a report is sent."""
    files = {f"client/{name}": body for name, body in client_files().items()}
    files["client.js"] = client_module(manifest).encode()
    (folder / "client").mkdir()
    (folder / "package.json").write_text('{"type": "module"}')
    for name, body in files.items():
        note = f"(globalThis.imported ??= []).push('{name}');"
        (folder / name).write_text(note + body.decode())
    given = json.dumps([manifest.decode(), answers])
    done = subprocess.run(
        ["node", "--input-type=module", "--eval", NODE_18 + ANSWERING, given],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {name: files[name] for name in json.loads(done.stdout)}


def packed(files):
    """Their size, each compressed on its own, as it travels."""
    return sum(len(gzip.compress(body, 9)) for body in files.values())


@pytest.mark.network
def test_a_usual_client_is_at_most_8000_bytes_compressed(tmp_path):
    """With what it imports later. What the page imports of it is looked at in test_browser.py."""
    answers = {"smoking": "never", "sick": True, "sleep": 6.5, "medicine": "none"}
    files = loaded(survey_of(EXAMPLE).collection.manifest, answers, tmp_path)
    modules = ("client.js", "client/core.js", "client/direct.js", "client/text.js")
    assert sorted(files) == sorted(modules)
    assert packed(files) <= 8000


@pytest.mark.network
def test_what_is_imported_later_is_counted(tmp_path):
    """The names of ranges, where they are hashed."""
    asked = {"sleep": dn.mechanism("orr", dn.Bins([5, 6.5]), 1.0, permuted=0)}
    files = loaded(Collection.split(asked, 1.0).manifest, {"sleep": 7}, tmp_path)
    assert "client/ranges.js" in files


def test_all_modules_are_at_most_20000_bytes_compressed():
    assert packed(client_files()) <= 20_000


class Toy(dn.GRR):
    """A mechanism that no client in JavaScript knows."""

    name = "toy"


def verdicts(manifests):
    """What JavaScript says about manifests: "ok", or the type of the refusal."""
    done = subprocess.run(
        ["node", TESTS / "support" / "verdicts.mjs"], input="\n".join(manifests), text=True,
        capture_output=True, check=True, timeout=120,
    )  # fmt: skip
    return done.stdout.split()


@pytest.mark.network
def test_what_javascript_does_not_know_is_left_out_and_refused():
    """A toy mechanism alone, and as a branch of one that is drawn; a kind that is not known."""
    both = {"q": Toy(["a", "b", "c"], 1.0), "r": dn.GRR(["a", "b"], 1.0)}
    alone = canonical(manifest_of(both, None, 2.1))
    drawn = canonical(manifest_of(both, Joint.of_questions(both)))
    strange = alone.replace(b'"kind":"choice"', b'"kind":"dice"')
    for manifest in (alone, drawn, strange):
        module = client_module(manifest)
        assert "./client/direct.js" in module
        assert "toy" not in module
    assert verdicts([m.decode() for m in (alone, drawn, strange)]) == ["unsupported"] * 3


def test_everything_for_devices_is_in_javascript_in_the_forms_and_among_the_vectors():
    """A new mechanism or kind of answer names here what it still lacks."""
    known = {name for module in families().values() for name in module["mechanisms"]}
    fields = re.search(
        r"export const FIELDS = \{(.*?)\n\};", (STATIC / "fields.js").read_text(), re.S
    )
    forms = {name.strip("'") for name in re.findall(r"^  ('?[\w/]+'?)[:,]", fields[1], re.M)}
    missing = []
    for name, family in dn.mechanisms().items():
        if family.on_devices and name not in known:
            missing.append(f"mechanism {name}: clients/js/client/families.json")
        if family.on_devices and not (VECTORS / "mechanisms" / f"{name}.json").exists():
            missing.append(f"mechanism {name}: tests/vectors/v2/mechanisms")
    for name, kind in survey_kinds().items():
        if name not in forms:
            missing.append(f"kind {name}: FIELDS of service/static/fields.js")
        if not (VECTORS / "kinds" / f"{name.replace('/', '-')}.json").exists():
            missing.append(f"kind {name}: tests/vectors/v2/kinds")
        keys = [
            sorted(keys) for module in families().values() for keys in module["kinds"].get(name, [])
        ]
        for form in kind.surveyed:
            if not any(sorted(own) in keys for own in form.spec_keys):
                missing.append(
                    f"kind {name} with {form.spec_keys}: clients/js/client/families.json"
                )
    assert missing == []
    assert known <= set(dn.mechanisms())
    assert forms <= set(survey_kinds())


@pytest.mark.slow
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
    assert [m.layout.refusal(row) for row in rows] == [None] * 60


#: Reads texts, writes what tidy makes of each; null where this Node does not know a character.
TIDY = """
import { tidy } from './client/core.js';
import { readFileSync } from 'node:fs';
const known = (text) => !/\\p{Cn}/u.test(text);
const texts = JSON.parse(readFileSync(0, 'utf8'));
const tidied = texts.map((text) => (known(text) ? tidy(text) : null));
process.stdout.write(JSON.stringify(tidied));
"""


@pytest.mark.slow
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


def every_mechanism():
    """Every mechanism with few and many answers, small and large epsilons."""
    every = []
    for name, family in sorted(dn.mechanisms().items()):
        if not family.on_devices or family is Joint:
            continue
        domains = [[f"answer {v}" for v in range(k)] for k in (2, 3, 40)]
        if dn.Items in family.takes:
            domains = [dn.Items(["a", "b", "c", "d", "e"], most) for most in (1, 3, 5)]
            domains.append(dn.Items([f"answer {v}" for v in range(40)], 4, optional=True))
        if dn.Number in family.takes:
            every_range = dn.Number(0, 24, 0.25), dn.Number(-1, 1), dn.Number(-1, 1, optional=True)
            domains = [domain for domain in every_range if family.unsuited(domain) is None]
        every += [
            dn.mechanism(name, domain, epsilon)
            for domain, epsilon in product(domains, (0.3, 1.0, 2.5))
            if name != "brr" or len(domain) == 2
        ]
        if dn.Text in family.takes:
            every += [dn.mechanism(name, dn.Text(), epsilon) for epsilon in (0.5, 2.0)]
    return every


@pytest.mark.network
def test_javascript_accepts_sets_at_every_epsilon():
    """Sets that are e^-30 times as likely as others are told as exactly."""
    domain = dn.Items(["a", "b", "c", "d", "e"], 2)
    made = [dn.SetSelect(domain, epsilon, w=2, tau=2) for epsilon in (2.0**-19, 16.0, 24.0, 30.0)]
    found = [canonical(manifest_of({"q": m}, None, m.epsilon + 1e-6)) for m in made]
    assert verdicts([manifest.decode() for manifest in found]) == ["ok"] * 4


def random_manifest(rng, pool):
    """Rounds, changes and questions with hardly more epsilon than they need; or None."""
    picked = {f"q{i}": rng.choice(pool) for i in range(rng.choice((1, 1, 1, 2, 4)))}
    rounds = rng.choice((1, 1, 2, 3, 7, 40))
    changes = rng.choice((0, 0, rng.randrange(rounds)))
    if rounds == 1 and len(picked) > 1 and rng.random() < 0.3:
        plain = {name: m for name, m in picked.items() if not m.remembers}
        if len(plain) > 1:
            return manifest_of(plain, Joint.of_questions(plain))
    if changes and not all(m.key_is_value for m in picked.values() if m.remembers):
        changes = 0  # with changes it is refused whatever it spends
    spent = sum(float(m.log_spent(rounds, changes)) for m in picked.values()) + 1e-6
    # What doubles cannot tell is no matter of this test.
    return None if spent > 32 else manifest_of(picked, None, spent, rounds, changes)


def manifest_of(mechanisms, joint, epsilon=None, rounds=1, changes=0):
    """A manifest as data, whether it is right or not."""
    questions = [{"name": name, **m.domain.to_spec()} for name, m in mechanisms.items()]
    reports = [
        {"name": name, "of": [name], "mechanism": m.to_leaf()} for name, m in mechanisms.items()
    ]
    if joint is not None:
        reports = [{"name": "all", "of": list(mechanisms), "mechanism": joint.to_leaf()}]
        epsilon = joint.epsilon + 1e-6
    return {
        "deniable": 2, "epsilon": epsilon, "unbounded": [], "rounds": rounds, "changes": changes,
        "fields": [], "after": None, "questions": questions, "reports": reports,
    }  # fmt: skip


def tampered(rng, manifest):
    """One number of a manifest is another, or none is."""
    data = copy.deepcopy(manifest)
    spec = rng.choice(data["reports"])["mechanism"]
    places = [(data, "epsilon"), (data, "epsilon"), (data, "changes"), (data, "rounds")]
    while "branches" in spec:
        places += [(spec["design"], name) for name in spec["design"]]
        spec = rng.choice(spec["branches"])["mechanism"]
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
    """What Python says: "ok", or the type of the refusal."""
    try:
        Collection.from_manifest(manifest)
    except ManifestRefused as refused:
        return refused.type
    return "ok"


@pytest.mark.slow
def test_javascript_accepts_the_manifests_that_python_accepts():
    """Thousands with rounds, memory and tampered integers: the same ones are refused, alike."""
    rng, pool = random.Random(16), every_mechanism()
    honest = [found for _ in range(2500) if (found := random_manifest(rng, pool))]
    manifests = [canonical(tampered(rng, found)) for found in honest for _ in range(2)]
    found = verdicts([manifest.decode() for manifest in manifests])
    expected = [judged(manifest) for manifest in manifests]
    pairs = zip(found, expected, manifests, strict=True)
    assert [(said, right, m) for said, right, m in pairs if said != right] == []
    assert set(found) <= {"ok", "bad-manifest", "broken-promise"}
    assert min(found.count("ok"), found.count("broken-promise")) > 1000
    data = [json.loads(manifest) for manifest in manifests]
    assert [*zip(found, (m["rounds"] > 1 for m in data), strict=True)].count(("ok", True)) > 1000
    drawn = ("branches" in m["reports"][0]["mechanism"] for m in data)
    assert [*zip(found, drawn, strict=True)].count(("ok", True)) > 50
