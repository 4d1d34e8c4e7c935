"""Write the vectors of the wire format, version 2: collections, submissions, and what is refused.

    python tests/vectors/make_wire.py tests/vectors/v2

`wire/<case>.json` has a manifest, perhaps texts, and what a device sends for given answers, coins
and secrets, one submission after the other; its bad bodies are what a collector must refuse. New
cases get a file of their own: what is there already changes only when a new version begins.
`make_bad.py` writes what is refused whatever the mechanism is.
"""

import hashlib
import json
import sys
from pathlib import Path

from deniable.answers import Bins, Choice, Items, Number, Text, YesNo
from deniable.canonical import canonical
from deniable.collection.manifest import After, Collection, Field, Report
from deniable.collection.questions import Question
from deniable.collection.reporting import coin_words, encoded, respond
from deniable.collection.wire import Submission
from deniable.collection.wording import Language, Texts, Wording
from deniable.core.registry import mechanism, mechanisms
from deniable.device.memo import Memory, MemoryMemo
from deniable.mechanisms.joint import Joint
from deniable.randomness import WORD_BYTES, ByteCoins, Keystream

FRUIT = ["apple", "pear", "plum", "Äpfel & Nüsse", "日本"]
MANIFEST = (
    '{"after":null,"changes":0,"deniable":2,"epsilon":3,"fields":[],"questions":[{"answers":["never",'
    '"sometimes","daily"],"kind":"choice","name":"smoking","optional":false,"ordered":true,"other":'
    'null},{"edges":[5,6.5,8],"kind":"number","name":"sleep","optional":false},{"fold":"case","kind":'
    '"text","max_bytes":64,"name":"drug","optional":false}],"reports":[{"mechanism":{"design":{},'
    '"epsilon":1,"name":"grr","thresholds":{"keep":"6717849057872324379"}},"name":"smoking","of":['
    '"smoking"]},{"mechanism":{"design":{},"epsilon":1,"name":"oue","thresholds":{"one":'
    '"9223372036854775808","zero":"4961093570831980854"}},"name":"sleep","of":["sleep"]},{"mechanism"'
    ':{"design":{"cohorts":1024,"permuted":0,"seed":0,"width":3},"epsilon":1,"name":"orr",'
    '"thresholds":{"keep":"6717849057872324379"}},"name":"drug","of":["drug"]}],"rounds":1,'
    '"unbounded":[]}'
)
assert hashlib.sha256(MANIFEST.encode()).hexdigest().startswith("62d09e8a078b321b8e01662230e38f59")


def stream(name, count):
    """Bytes that anybody can make again: AES-256-CTR under the SHA-256 of a name."""
    return Keystream(hashlib.sha256(name.encode()).digest()).bytes(count)


def sent(collection, answers, label, memos=None, *, round_=1, fields=None, coins=None, name=None):
    """One submission: the coins that it ate, and the bytes that it is."""
    coins = coins or stream(label, coin_words(collection) * WORD_BYTES)
    read = ByteCoins(coins)
    rows = respond(collection, encoded(collection, answers), read, memos or {})
    read.finish()
    name, public = name or stream(f"id {label}", 16).hex(), fields or {}
    body = Submission(collection.digest, name, rows, round_, public).to_json().decode()
    stated = {"answers": answers, "fields": public, "round": round_}
    return {**stated, "coins": coins.hex(), "id": name, "body": body}


def all_sent(collection, label, listed, **named):
    return [sent(collection, a, f"{label} {i}", **named) for i, a in enumerate(listed)]


# ---- collections


def plain():
    """The example of the specification."""
    collection = Collection.from_manifest(MANIFEST.encode())
    coins = bytes.fromhex(
        "1720f15e63910578c320e3465ed0a40ba4f0ea6869088587e80806846d6daef51d34cea7e20a1b018e84fcd649"
        "38440d3ec6bb337b2d97e05a2e05232f8458f147442547fb73af8e"
    )
    answers = {"smoking": "daily", "sleep": 6.5, "drug": " Ibuprofen "}
    made = sent(collection, answers, "", coins=coins, name="e692c4afc34592b9a017520ca2378aa7")
    assert '"reports":{"drug":"820302","sleep":"0c","smoking":"02"}' in made["body"]
    return collection, [made], {}


def asked(epsilon=1.0):
    """A question of each kind, all of whose answers may be typed in several ways."""
    return {
        "way": mechanism("grr", Choice(["car", "train", "other"], "other"), epsilon),
        "ever": mechanism("brr", YesNo(), epsilon / 2),
        "hours": mechanism("oue", Bins((-0.5, 5, 7.25, 1e6)), epsilon),
        "height": mechanism("drr", Number(0.5, 2.5, 0.01), epsilon),
        "word": mechanism("orr", Text(), epsilon, cohorts=256, width=3),
    }


TYPED = [
    {"way": "car", "ever": True, "hours": 5, "height": 1.75, "word": "tea"},
    {"way": "a rocket", "ever": "no", "hours": -3, "height": 3, "word": "Kaffee ☕"},
    {"way": "other", "ever": False, "hours": 7.25, "height": -0.0, "word": "TEA"},
    {"way": "train", "ever": "yes", "hours": 4.999999, "height": 2.005, "word": "日本"},
    {"way": "train", "ever": "yes", "hours": 2e300, "height": 0.5, "word": " tea"},
]


def kinds():
    collection = Collection.split(asked(), 4.5)
    return collection, all_sent(collection, "split", TYPED), {}


def sampled():
    """One question of several is drawn, with all of epsilon."""
    mechanisms_ = asked()
    questions = tuple(Question(name, m.domain) for name, m in mechanisms_.items())
    weights = {"way": 13_000, "ever": 13_000, "hours": 13_000, "height": 13_000, "word": 13_536}
    report = Report("all", tuple(mechanisms_), Joint.of_questions(mechanisms_, weights))
    collection = Collection(questions, (report,), 1.0)
    return collection, all_sent(collection, "sampled", TYPED * 3), {}


def numbers():
    """Numbers of a range: the ends, both sides of it, half steps; and with coins of zeros."""
    collection = Collection.split(
        {
            "hours": mechanism("drr", Number(0, 24, 0.25), 1.0),
            "warmth": mechanism("drr", Number(-40, 60), 4.0),
            "score": mechanism("drr", Number(0, 10, 1, "refuse"), 2.0, ell=5, fine=8, shown=3),
        },
        7.0,
    )
    listed = [
        {"hours": 0, "warmth": -40, "score": 0},
        {"hours": 24, "warmth": 60, "score": 10},
        {"hours": -5, "warmth": -1e300, "score": 0.5},
        {"hours": 1e9, "warmth": 61, "score": 9.5},
        {"hours": 7.125, "warmth": 36.6, "score": 2.4999999999999996},
    ]
    zeros = bytes(coin_words(collection) * WORD_BYTES)
    made = all_sent(collection, "numbers", listed)
    return collection, made + all_sent(collection, "zeros", listed, coins=zeros), {}


def trees():
    """Numbers in trees of bins: the ends, both sides of them, steps; one tree is a drawn branch."""
    hours = mechanism("hh", Number(0, 24, 0.5), 1.0)
    income = mechanism("hh", Number(0, 20_000), 2.0, bins=100, fan_out=10)
    ever = mechanism("brr", YesNo(), 1.0)
    questions = Question("hours", hours.domain), Question("income", income.domain)
    drawn = Joint.of_questions({"income": income, "ever": ever})
    reports = Report("hours", ("hours",), hours), Report("both", ("income", "ever"), drawn)
    collection = Collection((*questions, Question("ever", ever.domain)), reports, 3.0)
    pairs = [(0, 0), (24, 20_000), (-1, -0.0), (25, 1e300), (7.25, 199.99), (7.74, 200)]
    listed = [{"hours": x, "income": y, "ever": i % 2 == 0} for i, (x, y) in enumerate(pairs)]
    zeros = bytes(coin_words(collection) * WORD_BYTES)
    made = all_sent(collection, "trees", listed)
    return collection, made + all_sent(collection, "root", listed, coins=zeros), {}


def optional():
    """Every question may be skipped."""
    collection = Collection.split(
        {
            "way": mechanism("grr", Choice(["car", "train"], optional=True), 1.0),
            "ever": mechanism("grr", YesNo(optional=True), 1.0),
            "hours": mechanism("oue", Bins((5, 7.25), optional=True), 1.0),
            "height": mechanism("drr", Number(0, 2.5, optional=True), 1.0),
            "word": mechanism("orr", Text(optional=True), 1.0, cohorts=256, width=3),
        },
        5.0,
    )
    answers = {"way": "car", "ever": False, "hours": 8, "height": 1.5, "word": "tea"}
    listed = [dict.fromkeys(answers), answers, *({**answers, name: None} for name in answers)]
    zeros = bytes(coin_words(collection) * WORD_BYTES)
    made = all_sent(collection, "optional", listed)
    return collection, made + all_sent(collection, "skip zeros", listed, coins=zeros), {}


def choices():
    """Sets of answers: with and without a cap, designed for pairs, with a skip, and drawn."""
    capped, free, skipped = Items(FRUIT, 3), Items(FRUIT), Items(FRUIT, 2, optional=True)
    asked_ = {
        "capped": mechanism("setselect", capped, 1.0),
        "pairs": mechanism("setselect", capped, 2.0, w=3, tau=2),
        "free": mechanism("jointbits", free, 2.0, w=2),
        "skipped": mechanism("setselect", skipped, 1.0, w=4),
        "bits": mechanism("jointbits", skipped, 4.0),
    }
    collection = Collection.split(asked_, 10.0)
    sets = [[], ["apple"], ["日本", "plum"]]
    listed = [{name: sets[(i + j) % 3] for j, name in enumerate(asked_)} for i in range(3)]
    listed.append({**listed[0], "free": FRUIT, "skipped": None, "bits": None})
    zeros = bytes(coin_words(collection) * WORD_BYTES)
    made = all_sent(collection, "choices", listed)
    return collection, made + all_sent(collection, "zeros", listed, coins=zeros), {}


def fields():
    """Two public fields; a question with a report of its own, and one more among drawn ones."""
    way, ever = mechanism("grr", Choice(FRUIT), 1.0), mechanism("brr", YesNo(), 1.0)
    questions = Question("way", way.domain), Question("ever", ever.domain)
    reports = (
        Report("way", ("way",), way),
        Report("both", ("way", "ever"), Joint.of_questions({"way": way, "ever": ever})),
    )
    public = Field("region", ("north", "south")), Field("age", ("young", "middle", "日本"))
    collection = Collection(questions, reports, 2.0, fields=public)
    made = []
    for i, fruit in enumerate(FRUIT):
        found = {"region": public[0].values[i % 2], "age": public[1].values[i % 3]}
        made.append(sent(collection, {"way": fruit, "ever": i > 2}, f"field {i}", fields=found))
    return collection, made, {}


def steps():
    """A later step of a protocol."""
    first = hashlib.sha256(b"the first step").hexdigest()
    after = After(first, hashlib.sha256(b"the second step").hexdigest(), 3)
    collection = Collection.split({"way": mechanism("grr", Choice(FRUIT), 1.0)}, 1.0, after=after)
    return collection, all_sent(collection, "step", [{"way": fruit} for fruit in FRUIT]), {}


def without_noise():
    """Coins of zeros keep every value as it is: what is sent shows how answers are read."""
    labels = Choice(["yes", "7", "8", "é"], "é", ordered=True)
    collection = Collection.split(
        {
            "hours": mechanism("grr", Bins((-0.5, 0, 5, 7.25, 1e6, 1e20)), 1.0),
            "any": mechanism("grr", labels, 1.0),
            "hashed": mechanism("orr", labels, 1.0),
            "ever": mechanism("brr", YesNo(), 1.0),
            "word": mechanism("hcms", Text("none", 12), 1.0, cohorts=32, width=64),
        },
        5.0,
    )
    hours = [-1, -0.5, -0.0, 0, 4.999999999999999, 5, 999999.9999999999, 1e6, 1e20]
    anything = ["yes", "7", "8", "é", "e\u0301", "True", 7, 8, False]
    words = [
        "tea",
        "Tea",
        " tea\u3000",
        "a  b",
        "Straße",
        "e\u0301",
        "é",
        "\u0085x\ufeff",
        "日本日本",
    ]
    columns = zip(hours, anything, words, strict=True)
    listed = [
        {"hours": x, "any": a, "hashed": a, "ever": i % 2 == 0, "word": word}
        for i, (x, a, word) in enumerate(columns)
    ]
    zeros = bytes(coin_words(collection) * WORD_BYTES)
    return collection, all_sent(collection, "plain", listed, coins=zeros), {}


# ---- rounds


def remembering(collection, label, listed):
    """What a device sends that has a memo for each report, in the order of the rounds."""
    memos, secrets = {}, {}
    for report in filter(collection.remembered, collection.reports):
        memo = MemoryMemo(report.mechanism, collection.digest, most=collection.changes + 1)
        secret = stream(f"secret {report.name}", 32)
        memo._memory = Memory(secret, collection.changes + 1)
        memos[report.name], secrets[report.name] = memo, secret.hex()
    made = [
        sent(collection, answers, f"{label} {number}", memos, round_=number)
        for number, answers in enumerate(listed, 1)
    ]
    return collection, made, secrets


def again(changes):
    """Every remembered mechanism that may have so many changes, and one that is not remembered."""
    families = {
        name: family
        for name, family in sorted(mechanisms().items())
        if family.on_devices and family.remembers and family.key_is_value == (changes > 0)
    }
    asked = {name: mechanism(name, Choice(FRUIT), 0.25) for name in (*families, "grr")}
    collection = Collection.split(asked, 8.0, rounds=4, changes=changes)
    listed = [dict.fromkeys(asked, FRUIT[place]) for place in (0, 3, 4, 0)]
    return remembering(collection, f"again {changes}", listed)


def again_texts():
    """Any text, from a device that remembers; a skip has a key of its own."""
    word = mechanism("rappor", Text(optional=True), 0.5)
    collection = Collection.split({"word": word}, 8.0, rounds=4, changes=1)
    listed = [{"word": word} for word in ("tea", "TEA ", None, "日本")]
    return remembering(collection, "words", listed)


# ---- one for each mechanism


def with_mechanism(name):
    """One question of each kind that it takes; of listed ones as many answers as it has."""
    candidates = {
        "fruit": (Choice(FRUIT), FRUIT),
        "ever": (YesNo(), [True, "no", False]),
        "hours": (Bins((5, 6.5)), [4, 5, 100]),
        "height": (Number(0, 2.5), [0, 1.234, 5]),
        "word": (Text(), ["tea", "日本", "Tea"]),
        "liked": (Items(FRUIT, 3), [["plum", "apple"], [], ["日本", "pear", "plum"]]),
    }
    suited = {}
    for question, (domain, answers) in candidates.items():
        try:
            suited[question] = mechanism(name, domain, 1.0), answers
        except ValueError:
            continue
    collection = Collection.split({q: m for q, (m, _) in suited.items()}, 8.0)
    listed = [
        {q: answers[i % len(answers)] for q, (_, answers) in suited.items()} for i in range(3)
    ]
    return collection, all_sent(collection, f"with {name}", listed), {}


def single_families():
    """The mechanisms that can be about one question."""
    found = (name for name, family in mechanisms().items() if family.on_devices)
    return [name for name in found if not issubclass(mechanisms()[name], Joint)]


# ---- texts


def words_of(collection):
    """Two languages; some things have no words, and some keys are not known yet."""
    ids = {question.name: question.domain.ids for question in collection.questions}
    worded = {name: Wording(f"{name}, s'il vous plaît?", some) for name, some in ids.items()}
    english = Language("All kinds", "What you do.\nAnd how.", {"way": Wording("How?")})
    french = Language("Tous", "", worded)
    texts = Texts(collection.digest, {"en": english, "fr": french}, {"word": ("tea", "Café")})
    grown = {**json.loads(texts.check(collection).document), "consent": {"en": "Yes."}}
    return canonical(grown).decode()


# ---- bad bodies


def bad_rows(collection, good):
    """(why, type, body) about each report: what no device makes."""
    body = json.loads(good["body"])
    rows = body["reports"]

    def changed(name, row):
        return canonical({**body, "reports": {**rows, name: row}}).decode()

    for report in collection.reports:
        name, size = report.name, report.mechanism.dtype.itemsize
        row, full = rows[name], b"\xff" * size
        yield f"{name}: too short", "impossible-report", changed(name, row[:-2])
        yield f"{name}: too long", "impossible-report", changed(name, row + "00")
        yield f"{name}: no digits", "impossible-report", changed(name, "zz" * size)
        yield f"{name}: capitals", "impossible-report", changed(name, "AB" * size)
        if report.mechanism.layout.refusal(full):
            yield f"{name}: out of range", "impossible-report", changed(name, full.hex())


# ---- files


def cases():
    """(name, about, made) of every file."""
    yield "plain", "The example of the specification.", plain()
    yield "kinds", "A question of each kind, all of them answered.", kinds()
    yield "choices", "Sets of answers, and skips.", choices()
    yield "sampled", "A question of each kind, one of which is drawn.", sampled()
    yield "numbers", "Numbers of a range.", numbers()
    yield "trees", "Numbers in trees of bins.", trees()
    yield "optional", "Questions that are skipped.", optional()
    yield "fields", "Public fields, and a question in two reports.", fields()
    yield "step", "A later step of a protocol.", steps()
    yield "without-noise", "Coins of zeros: how answers are read.", without_noise()
    yield "again", "Devices that remember, with a change.", again(1)
    yield "again-cells", "Devices that remember, and answers share permanent draws.", again(0)
    yield "again-texts", "Any text, from a device that remembers.", again_texts()
    for name in single_families():
        yield f"with-{name}", f"Every kind of answer that {name} takes.", with_mechanism(name)


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, about, (collection, good, secrets) in cases():
        bad = bad_rows(collection, good[0])
        case = {
            "about": about,
            "manifest": collection.manifest.decode(),
            "digest": collection.digest,
            "texts": words_of(collection) if name == "kinds" else None,
            "secrets": secrets,
            "good": good,
            "bad": [{"why": why, "type": kind, "body": body} for why, kind, body in bad],
        }
        assert Collection.from_manifest(collection.manifest) == collection
        text = json.dumps(case, ensure_ascii=False, indent=1) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) / "wire")
