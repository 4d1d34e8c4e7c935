"""Write the vectors of the wire format: manifests, and what devices send for given coins.

    python tests/vectors/make_wire.py

Every mechanism takes part, so that a client that passes knows all of them. The file is only
written anew where the format gets a new version; old vectors stay as they are.
"""

import hashlib
import json
from pathlib import Path

from deniable.collection.manifest import Collection
from deniable.collection.questions import Question, bin_names
from deniable.collection.responding import coin_words, indices, respond
from deniable.collection.rows import row_check
from deniable.collection.wire import Submission
from deniable.domain import Domain, Text
from deniable.longitudinal.memo import Memory, MemoryMemo
from deniable.mechanisms import mechanism, mechanisms
from deniable.mechanisms.memoised import Memoised
from deniable.randomness import WORD_BYTES, ByteCoins, Keystream

PATH = Path(__file__).parent / "v1" / "wire.json"
FRUIT = ["apple", "pear", "plum", "Äpfel & Nüsse", "日本"]


def stream(name, count):
    """Bytes that anybody can make again: AES-256-CTR under the SHA-256 of a name."""
    return Keystream(hashlib.sha256(name.encode()).digest()).bytes(count)


def choice(name, family, epsilon=1.0, **design):
    domain = Domain(FRUIT[: family.only_size or len(FRUIT)])
    return Question(name, f"Your fruit ({name})?", "choice", family(domain, epsilon, **design))


def sent(collection, answers, label, memos=None, round_=1, coins=None):
    """One submission: the coins that it ate, and the bytes that it is."""
    coins = coins or stream(label, coin_words(collection) * WORD_BYTES)
    read = ByteCoins(coins)
    rows = respond(collection, indices(collection, answers), read, memos or {})
    read.finish()
    made = Submission(collection.digest, stream(f"id {label}", 16).hex(), rows, round_)
    return {"answers": answers, "round": round_, "coins": coins.hex(), "id": made.id, "body": made.to_json().decode()}  # fmt: skip  # noqa: E501


def kinds():
    """One question of each kind, split and sampled."""
    for divide in ("split", "sampled"):
        other = Domain(["car", "train", "other"], other="other")
        edges = (-0.5, 5, 7.25, 1e6)
        questions = (
            Question("way", "How do you travel?", "choice", mechanism("grr", other, 1.0)),
            Question("ever", "Ever?", "yes/no", mechanism("brr", ["yes", "no"], 0.5)),
            Question("hours", "Hours?", "number", mechanism("oue", bin_names(edges), 1.0), edges),
            Question("word", "Which?", "text", mechanism("orr", Text(), 1.0), candidates=("tea",)),
        )
        whole = 3.5 if divide == "split" else 1.0
        collection = Collection(f"Kinds, {divide}", questions, whole, divide, about="Für alle")
        answers = [
            {"way": "car", "ever": True, "hours": 5, "word": "tea"},
            {"way": "a rocket", "ever": "no", "hours": -3, "word": "Kaffee ☕"},
            {"way": "other", "ever": False, "hours": 7.25, "word": "TEA"},
            {"way": "train", "ever": "yes", "hours": 4.999999, "word": "日本"},
            {"way": "train", "ever": "yes", "hours": 2e300, "word": " tea"},
        ]
        yield collection, [sent(collection, a, f"{divide} {i}") for i, a in enumerate(answers)], {}


def families():
    """Every mechanism in one questionnaire."""
    questions = tuple(choice(name, family) for name, family in mechanisms().items())
    collection = Collection("Every mechanism", questions, 32.0)
    labels = [{q.name: q.mechanism.domain.labels[i % q.mechanism.domain.size] for q in questions} for i in range(5)]  # fmt: skip  # noqa: E501
    yield collection, [sent(collection, a, f"families {i}") for i, a in enumerate(labels)], {}


def remembered():
    """Devices that remember, with a question without; two permanent answers, or one.

    Mechanisms in which answers share a permanent draw have no changes.
    """
    twice = {name: family for name, family in mechanisms().items() if issubclass(family, Memoised)}
    for title, changes in (("Again and again", 1), ("Again, by cells", 0)):
        some = {name: family for name, family in twice.items() if family.key_is_value == (changes > 0)}  # fmt: skip  # noqa: E501
        questions = (*(choice(name, family, 0.5) for name, family in some.items()), choice("grr", mechanisms()["grr"], 0.5))  # fmt: skip  # noqa: E501
        collection = Collection(title, questions, 16.0, rounds=4, changes=changes)
        memos, secrets = {}, {}
        for question in questions:
            if collection.remembered(question):
                memo = MemoryMemo(question.mechanism, collection.digest, most=changes + 1)
                secrets[question.name] = stream(f"secret {question.name}", 32)
                memo._memory = Memory(secrets[question.name], changes + 1)
                memos[question.name] = memo
        made = []
        for number, place in enumerate([0, 3, 4, 0], 1):
            answers = {q.name: q.mechanism.domain.labels[place] for q in questions}
            made.append(sent(collection, answers, f"round {number}", memos, number))
        yield collection, made, {name: secret.hex() for name, secret in secrets.items()}


def without_noise():
    """Coins of zeros keep every value as it is: what is sent shows how answers are read."""
    edges = (-0.5, 0, 5, 7.25, 1e6)
    labels = Domain([True, 7, "8", "é"], other="é")
    questions = (
        Question("hours", "Hours?", "number", mechanism("grr", bin_names(edges), 1.0), edges),
        Question("any", "Any?", "choice", mechanism("grr", labels, 1.0)),
        Question("hashed", "Any?", "choice", mechanism("orr", labels, 1.0)),
        Question("ever", "Ever?", "yes/no", mechanism("brr", ["yes", "no"], 1.0)),
    )
    collection = Collection("Without noise", questions, 4.0)
    coins = bytes(coin_words(collection) * WORD_BYTES)
    numbers = [-1, -0.5, -0.25, 0, 4.999999999999999, 5, 7.25, 999999.9999999999, 1e6]
    anything = [True, 7, "8", "é", "e\u0301", "True", "7", 8, False]
    made = []
    for i, (number, label) in enumerate(zip(numbers, anything, strict=True)):
        answers = {"hours": number, "any": label, "hashed": label, "ever": i % 2 == 0}
        made.append(sent(collection, answers, f"plain {i}", coins=coins))
    yield collection, made, {}


def texts_again():
    """Any text, from a device that remembers."""
    asked = Question("word", "Which?", "text", mechanism("rappor", Text(), 0.5), candidates=())
    collection = Collection("Words again", (asked,), 16.0, rounds=3, changes=1)
    secret = stream("secret word", 32)
    memo = MemoryMemo(asked.mechanism, collection.digest, most=2)
    memo._memory = Memory(secret, 2)
    words = ["tea", "coffee", "日本"]
    made = [
        sent(collection, {"word": word}, f"word {word}", {"word": memo}, i)
        for i, word in enumerate(words, 1)
    ]
    yield collection, made, {"word": secret.hex()}


def refused(collection, submission):
    """Bodies that a server must refuse, with the type of the problem."""
    good = json.loads(submission["body"])
    questions = {question.name: question for question in collection.questions}

    def changed(**parts):
        return json.dumps({**good, **parts}, sort_keys=True, separators=(",", ":"))

    yield "not JSON", submission["body"][:-1], "malformed"
    yield "trailing bytes", submission["body"] + "{}", "malformed"
    yield "an array", "[]", "malformed"
    yield "an unknown key", changed(clock=1), "malformed"
    yield "a missing key", json.dumps({k: v for k, v in good.items() if k != "id"}), "malformed"
    yield "an id that is too short", changed(id=good["id"][2:]), "malformed"
    yield "an id in capitals", changed(id="AB" * 16), "malformed"
    yield "a round that is text", changed(round="1"), "malformed"
    yield "another digest", changed(collection="0" * 64), "other-collection"
    yield "round 0", changed(round=0), "impossible-report"
    yield "a round too many", changed(round=collection.rounds + 1), "impossible-report"
    yield "no report", changed(reports={}), "impossible-report"
    rows = good["reports"]
    yield "an unknown question", changed(reports={**rows, "nothing": "00"}), "impossible-report"
    for name, row in rows.items():
        m, check = questions[name].mechanism, row_check(questions[name].mechanism)
        yield f"{name}: too short", changed(reports={**rows, name: row[:-2]}), "impossible-report"
        yield f"{name}: too long", changed(reports={**rows, name: row + "00"}), "impossible-report"
        yield f"{name}: capitals or no digits", changed(reports={**rows, name: "zZ" * m.dtype.itemsize}), "impossible-report"  # fmt: skip  # noqa: E501
        full = b"\xff" * m.dtype.itemsize
        if check(full):
            yield f"{name}: out of range", changed(reports={**rows, name: full.hex()}), "impossible-report"  # fmt: skip  # noqa: E501


def main():
    cases = []
    for collection, submissions, secrets in (
        *kinds(),
        *families(),
        *remembered(),
        *without_noise(),
        *texts_again(),
    ):
        bad = refused(collection, submissions[0])
        cases.append(
            {
                "title": collection.title,
                "manifest": collection.manifest.decode(),
                "digest": collection.digest,
                "secrets": secrets,
                "submissions": submissions,
                "refused": [{"why": w, "body": b, "type": t} for w, b, t in bad],
            }
        )
    PATH.write_text(json.dumps(cases, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
