"""The survey, the manifest, the wire format, and what a client makes of them."""

import hashlib
import json
import math
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import deniable as dn
from deniable.collection.batches import read_batch
from deniable.collection.choosing import MOST_BITS, Terms
from deniable.collection.example import EXAMPLE, to_toml
from deniable.collection.manifest import Collection
from deniable.collection.questions import Question, bin_names
from deniable.collection.responding import coin_words, indices, respond
from deniable.collection.survey import read_survey, survey_of
from deniable.collection.wire import Submission
from deniable.domain import Domain, Text
from deniable.errors import (
    CorruptData,
    InvalidArgument,
    MemoLost,
    MismatchError,
)
from deniable.longitudinal.memo import Memory, MemoryMemo
from deniable.privacy.enumeration import exact_channel
from deniable.randomness import SCALE, WORD_BYTES, ByteCoins
from deniable.studio.surveys import sentences

VECTORS = Path(__file__).parent / "vectors" / "v1" / "wire.json"
CASES = json.loads(VECTORS.read_text())
NUMBER = {"name": "n", "ask": "?", "kind": "number"}
ANSWERS = {"smoking": "daily", "sick": True, "sleep": 6.5, "medicine": "aspirin"}


def survey(**changes):
    return {**EXAMPLE, **changes}


def question(**changes):
    return {"name": "way", "ask": "How?", "kind": "choice", "answers": ["a", "b", "c"], **changes}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "survey.toml"
    path.write_text(to_toml(EXAMPLE), encoding="utf-8")
    return path


# ---- the vectors


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["title"])
def test_vectors(case):
    collection = Collection.from_manifest(case["manifest"].encode())
    assert collection.digest == case["digest"]
    assert Collection.from_manifest(collection.manifest) == collection
    memos = {}
    for name, secret in case["secrets"].items():
        memos[name] = MemoryMemo(collection.question(name).mechanism, "x")
        memos[name]._memory = Memory(bytes.fromhex(secret), collection.changes + 1)
    for sent in case["submissions"]:
        coins = ByteCoins(bytes.fromhex(sent["coins"]))
        rows = respond(collection, indices(collection, sent["answers"]), coins, memos)
        coins.finish()
        made = Submission(collection.digest, sent["id"], rows, sent["round"])
        assert made.to_json().decode() == sent["body"]


def test_vectors_know_every_mechanism():
    specs = [q["mechanism"]["mechanism"] for q in json.loads(CASES[2]["manifest"])["questions"]]
    assert set(specs) == set(dn.mechanisms())


# ---- budgets


def test_the_whole_is_never_exceeded():
    for epsilon in (0.1, 1 / 3, 1.0, 2.7, 8.0):
        for divide in ("split", "sampled"):
            found = survey_of(survey(epsilon=epsilon, divide=divide))
            assert found.spent <= epsilon
            assert found.spent > epsilon * (1 - 1e-6)


def test_weights_divide_the_budget():
    two = [question(weight=3), question(name="other", weight=1)]
    found = survey_of({"title": "t", "epsilon": 2.0, "questions": two})
    assert [q.mechanism.epsilon for q in found.questions] == [1.5, 0.5]


@pytest.mark.parametrize("name", ["lgrr", "losue", "basicrappor", "rappor", "grr"])
def test_rounds_and_changes_are_paid_for(name):
    data = {"title": "t", "epsilon": 3.0, "rounds": 6, "changes": 2}
    found = survey_of({**data, "questions": [question(mechanism=name)]})
    (asked,) = found.questions
    remembered = name != "grr"
    assert found.remembered(asked) is remembered
    whole = asked.mechanism.permanent_guarantee if remembered else asked.mechanism.once
    expected = whole.after(None, 2) if remembered else whole.after(6)
    assert found.spent == pytest.approx(expected, rel=1e-12)
    assert found.spent <= 3.0
    assert found.spent > 2.4


def test_one_submission_is_as_private_as_it_says():
    """The channel of whole answer sheets, enumerated, for both ways of dividing."""
    for divide in ("split", "sampled"):
        two = [question(answers=["a", "b"], mechanism="oue"), question(name="x", mechanism="grr")]
        found = survey_of({"title": "t", "epsilon": 1.0, "divide": divide, "questions": two})
        sheets = [[a, b] for a in range(2) for b in range(3)]

        def sent(i, coins, found=found, sheets=sheets):
            rows = respond(found, sheets[i], coins, {})
            return tuple(sorted(rows.items()))

        exact = exact_channel(sent, range(len(sheets))).ratio
        assert math.log(exact) == pytest.approx(found.spent, abs=1e-12)


def test_a_manifest_that_breaks_its_promise_is_refused():
    data = json.loads(survey_of(EXAMPLE).manifest)
    data["epsilon"] = 3.9
    with pytest.raises(InvalidArgument, match=r"'epsilon' must be at least 4"):
        Collection.from_manifest(json.dumps(data).encode())


NUMBERS = [10**400, -(10**400), 10**30, SCALE, -1, 0, 0.5, math.nan, math.inf, -math.inf, True,
           False, None, "1", "9" * 30, [], {}]  # fmt: skip


def numeric_places(part, path=()):
    """Where in a document there are numbers, also those written as texts."""
    if isinstance(part, dict | list):
        items = part.items() if isinstance(part, dict) else enumerate(part)
        for name, inner in items:
            yield from numeric_places(inner, (*path, name))
    elif not isinstance(part, str) or part.isdecimal():
        yield path


def with_number(manifest, path, number):
    data = json.loads(manifest)
    inner = data
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = number
    return json.dumps(data).encode()


@pytest.mark.parametrize("name", dn.mechanisms())
def test_odd_numbers_in_a_manifest_are_refused_in_words(name):
    """Any number anywhere: a collection that keeps its promise, or a refusal that says why."""
    m = dn.mechanism(name, ["a", "b"], 1.0)
    rounds = {"rounds": 3} if hasattr(m, "instant") else {}
    asked = (Question("way", "?", "choice", m), Question("n", "?", "number", dn.GRR(["below 5", "5 or more"], 1.0), (5,)))  # fmt: skip  # noqa: E501
    manifest = Collection("t", asked, 32.0, **rounds).manifest
    for path in numeric_places(json.loads(manifest)):
        for number in NUMBERS:
            try:
                found = Collection.from_manifest(with_number(manifest, path, number))
            except (InvalidArgument, CorruptData):
                continue
            assert found.spent <= found.epsilon <= 32.0, (path, number)
            assert not isinstance(number, bool), (path, number)


def test_an_epsilon_beyond_all_numbers_is_refused():
    manifest = survey_of(EXAMPLE).manifest
    for digits in ("1e400", "1" + "0" * 400, "NaN", "Infinity", "true"):
        odd = manifest.replace(b'"epsilon":4.0,', f'"epsilon":{digits},'.encode(), 1)
        assert odd != manifest
        with pytest.raises(InvalidArgument, match="'epsilon' must be a number"):
            Collection.from_manifest(odd)
    with pytest.raises(CorruptData):
        Collection.from_manifest(manifest.replace(b"4.0", b"1" + b"0" * 5000, 1))
    with pytest.raises(InvalidArgument, match="a very long int"):
        dn.GRR(3, 10**5000)


# ---- which mechanism


def test_auto_takes_the_least_variance():
    for size in (2, 3, 10, 100, 5000):
        for epsilon in (0.5, 2.0, 4.0):
            terms = Terms(Domain([str(i) for i in range(size)]), epsilon, 10_000)
            chosen = terms.choose()
            for name in ("grr", "oue", "ss", "olh", "hr"):
                other = terms.build(name)
                if other.bits_per_report <= MOST_BITS:
                    assert terms.predicted(chosen) <= 1.02 * terms.predicted(other), (size, name)


def test_auto_knows_rounds_and_texts():
    terms = Terms(Domain(["a", "b", "c"]), 4.0, 10_000, rounds=20, changes=0)
    assert isinstance(terms.choose(), dn.LGRR | dn.LOSUE | dn.LSOUE | dn.LOUE | dn.LOLH)
    assert isinstance(Terms(Text(), 2.0, 10_000).choose(), dn.ORR | dn.HCMS)


# ---- answers


def test_numbers_find_their_bins():
    edges = (-0.5, 5, 7.25)
    asked = Question("n", "n?", "number", dn.GRR(bin_names(edges), 1.0), edges)
    numbers = [-1e300, -0.5, 4.999, 5, 7, 7.25, 1e300]
    assert [asked.index(x) for x in numbers] == [0, 1, 1, 2, 2, 3, 3]
    assert bin_names(edges) == ["below -0.5", "-0.5 to 5", "5 to 7.25", "7.25 or more"]
    for bad in (math.nan, math.inf, "5", None, True):
        with pytest.raises(InvalidArgument, match="finite number"):
            asked.index(bad)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([], "mapping"),
        ({**ANSWERS, "extra": 1}, "'answers' must be for the questions smoking"),
        ({k: v for k, v in ANSWERS.items() if k != "sick"}, "no answer; got \\['sick'\\]"),
        ({**ANSWERS, "smoking": "hourly"}, "'smoking' must be"),
        ({**ANSWERS, "sick": "maybe"}, "'sick' must be"),
        ({**ANSWERS, "medicine": 7}, "'medicine' must be text"),
        ({**ANSWERS, "medicine": "\ud800"}, "'medicine' must be text"),
    ],
)
def test_bad_answers_are_named(file, answers, message):
    with pytest.raises(InvalidArgument, match=message):
        dn.Client(file).prepare(answers)


# ---- the survey


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"title": ""}, "'title' must be text"),
        ({"epsilon": 0}, "'epsilon' must be a number"),
        ({"epsilon": "2"}, "'epsilon' must be a number"),
        ({"divide": "both"}, "'divide' must be one of split, sampled"),
        ({"colour": 1}, "'survey' must be made of"),
        ({"rounds": 3}, "'changes' must be given"),
        ({"rounds": 3, "changes": 3}, "'changes' must be an integer of 0..2"),
        ({"rounds": 3, "changes": 1, "divide": "sampled"}, "split if there is more than one round"),
        ({"questions": []}, "at least one table"),
        ({"questions": [question(kind="guess")]}, r"'questions\[1\].kind' must be one of choice"),
        ({"questions": [question(name="Way")]}, "small letters"),
        ({"questions": [question(), question()]}, "different names"),
        ({"questions": [question(answers="abc")]}, "'way: answers' must be a list of at least two"),
        ({"questions": [question(answers=["a", "a"])]}, "at least two different texts"),
        ({"questions": [question(kind=["choice"])]}, r"'questions\[1\].kind' must be one of"),
        ({"questions": [question(epsilon_1=0.5)]}, "where nothing is remembered"),
        ({"questions": [question(mechanism="olh", design={"epsilon": 9})]}, "made of g, modulus"),
        ({"changes": 1}, "left out if there is one round"),
        ({"questions": [question(other="z")]}, "'way: other' must be one of the answers"),
        ({"questions": [question(mechanism="magic")]}, "'way: mechanism' must be one of"),
        ({"questions": [question(mechanism="brr")]}, "2 answers for BRR"),
        ({"questions": [question(mechanism="olh", design={"g": 1})]}, "'way: g' must be"),
        ({"questions": [question(design={"g": 4})]}, "left out where the mechanism is chosen"),
        ({"questions": [question(epsilon_1=0.1, mechanism="grr")]}, "left out for grr"),
        ({"questions": [question(weight=0)]}, "'way: weight' must be a number above 0"),
        ({"questions": [question(kind="number", edges=[2, 1])]}, r"made of"),
        ({"questions": [NUMBER | {"edges": [2, 1]}]}, "ascending"),
        ({"questions": [NUMBER]}, "edges missing"),
        ({"divide": "sampled", "questions": [question(weight=1)]}, "unless the budget is split"),
    ],
)
def test_bad_surveys_are_refused(changes, message):
    with pytest.raises(InvalidArgument, match=message):
        survey_of(survey(**changes))


def test_files_that_are_no_survey(tmp_path):
    with pytest.raises(InvalidArgument, match="can be read"):
        read_survey(tmp_path / "missing.toml")
    bad = tmp_path / "bad.toml"
    for content in (b"title = ", b"\xff\xfe", b"{", b"{}", b"[1]", b'{"deniable":1}'):
        bad.write_bytes(content)
        with pytest.raises((CorruptData, InvalidArgument)):
            read_survey(bad)
    bad.write_text(f"epsilon = 1{'0' * 5000}")
    with pytest.raises(CorruptData, match="is not TOML"):
        read_survey(bad)


def test_a_survey_may_begin_with_a_mark_of_its_encoding(file):
    """Some editors write one."""
    plain = read_survey(file)
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert read_survey(file) == plain


def test_who_spends_much_is_told_that_clients_refuse():
    told = [" ".join(sentences(survey_of(survey(epsilon=epsilon)))) for epsilon in (8, 8.5)]
    assert ["Clients refuse epsilon 8.5" in text for text in told] == [False, True]


@given(st.binary(max_size=60), st.integers(0, 1100))
def test_a_damaged_manifest_is_refused_or_another_collection(noise, place):
    manifest = bytes.fromhex(CASES[0]["manifest"].encode().hex())
    damaged = manifest[:place] + noise + manifest[place + len(noise) :]
    try:
        found = Collection.from_manifest(damaged)
    except ValueError:
        return
    assert found.digest == hashlib.sha256(damaged).hexdigest()


text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(text, st.lists(text, min_size=2, max_size=5, unique=True))
def test_any_words_survive_the_file(title, answers):
    data = {"title": f"x{title}", "epsilon": 1.0, "questions": [question(answers=answers)]}
    assert tomllib.loads(to_toml(data)) == data


# ---- the client


def test_a_client_needs_no_kernels(file):
    code = (
        "import sys, deniable as dn\n"
        f"client = dn.Client({str(file)!r})\n"
        f"client.prepare({ANSWERS!r})\n"
        "print([m for m in ('numba', 'scipy', 'pyarrow', 'pandas', 'starlette', 'msgspec') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_digest_is_checked(file):
    digest = dn.Client(file).collection.digest
    assert dn.Client(file, digest=digest).collection.digest == digest
    with pytest.raises(MismatchError, match="nothing was answered"):
        dn.Client(file, digest="0" * 64)


def test_what_leaves_is_what_the_wire_format_says(file):
    client = dn.Client(file)
    first, second = client.prepare(ANSWERS), client.prepare(ANSWERS)
    assert first.id != second.id
    sent = json.loads(first.to_json())
    assert set(sent) == {"collection", "id", "reports", "round"}
    assert set(sent["reports"]) == set(ANSWERS)
    assert sent["collection"] == client.collection.digest


def test_plain_http_is_for_this_machine(file):
    with pytest.raises(InvalidArgument, match="insecure"):
        dn.Client("http://example.org")
    dn.Client(file, url="http://127.0.0.1:9")
    with pytest.raises(InvalidArgument, match="'url' must be given"):
        dn.Client(file).answer(ANSWERS)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"attempts": 0}, "attempts"), ({"attempts": "a"}, "attempts"),
        ({"timeout": -1}, "timeout"),
        ({"url": "http://127.0.0.1:99999"}, "url"), ({"url": "http://me:pw@127.0.0.1"}, "url"),
        ({"key": "a\nb"}, "key"), ({"key": "é"}, "key"),
    ],
)  # fmt: skip
def test_bad_options_are_named(file, options, name):
    with pytest.raises(InvalidArgument, match=f"'{name}' must be") as refused:
        dn.Client(file, **{"url": "http://127.0.0.1:9", **options})
    assert "pw" not in str(refused.value)


def test_only_what_was_prepared_is_sent(file):
    with pytest.raises(InvalidArgument, match="'prepared' must be"):
        dn.Client(file, url="http://127.0.0.1:9").send(b"")
    with pytest.raises(InvalidArgument, match="'source' must be"):
        dn.Client(5)


def test_numpy_scalars_are_answers(file):
    odd = {"sick": np.True_, "sleep": np.float32(6), "smoking": np.str_("daily")}
    collection = dn.Client(file).collection
    assert indices(collection, {**ANSWERS, **odd}) == indices(collection, {**ANSWERS, "sleep": 6})


def test_sampled_questions_are_drawn_alike():
    """Null: each of four questions is drawn with probability 1/4; two-sided, below 1e-7 each."""
    found = survey_of(survey(divide="sampled"))
    values = indices(found, ANSWERS)
    n = 4_000
    rng = np.random.default_rng(11)
    drawn = []
    for _ in range(n):
        coins = ByteCoins(rng.bytes(coin_words(found) * WORD_BYTES))
        drawn += respond(found, values, coins, {})
    for asked in found.questions:
        count = drawn.count(asked.name)
        assert min(binom.cdf(count, n, 0.25), binom.sf(count - 1, n, 0.25)) > 1e-7


# ---- rounds


def rounds(tmp_path, changes=1):
    data = {"title": "t", "epsilon": 4.0, "rounds": 5, "changes": changes}
    path = tmp_path / "rounds.toml"
    path.write_text(to_toml({**data, "questions": [question(mechanism="lgrr")]}))
    return path


def test_no_part_of_a_budget_is_left_over():
    """A yes/no question has two permanent answers, however many changes are reported."""
    data = {"title": "t", "epsilon": 2.0, "rounds": 100, "changes": 3}
    asked = question(answers=["a", "b"], mechanism="lgrr")
    found = survey_of({**data, "questions": [asked]})
    assert found.questions[0].mechanism.epsilon_inf == 1.0
    assert found.spent == pytest.approx(2.0, rel=1e-9)


def test_devices_must_be_enrolled(tmp_path):
    path = rounds(tmp_path)
    with pytest.raises(InvalidArgument, match="'memo' must be a folder"):
        dn.Client(path).prepare({"way": "a"})
    client = dn.Client(path, memo=tmp_path / "memo")
    with pytest.raises(MemoLost):
        client.prepare({"way": "a"})
    client.enrol()
    assert client.prepare({"way": "a"}, round=5).round == 5
    with pytest.raises(InvalidArgument, match="'round' must be"):
        client.prepare({"way": "a"}, round=6)


# ---- many records


def frame(n=600):
    rng = np.random.default_rng(5)
    return {
        "smoking": rng.choice(["never", "sometimes", "daily", "rather not say"], n).tolist(),
        "sick": rng.choice([True, False], n).tolist(),
        "sleep": rng.uniform(3, 10, n).tolist(),
        "medicine": rng.choice(["none", "aspirin", "tea"], n).tolist(),
        "not asked": list(range(n)),
    }


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])  # fmt: skip  # noqa: E501
@pytest.mark.parametrize("divide", ["split", "sampled"])
def test_tables_become_batches(tmp_path, make, divide):
    path = tmp_path / "survey.toml"
    path.write_text(to_toml(survey(divide=divide)), encoding="utf-8")
    client = dn.Client(path)
    batches = list(client.privatize_table(make(frame()), rows=250))
    assert [batch.n for batch in batches] == [250, 250, 100]
    assert len({batch.id for batch in batches}) == 3
    for batch in batches:
        about, columns = read_batch(client.collection, batch.body)
        assert about["deniable.id"] == batch.id
        sizes = [len(column) for column in columns.values()]
        assert sum(sizes) == batch.n * (1 if divide == "sampled" else 4)
        for name, column in columns.items():
            client.collection.question(name).mechanism.count(column)


def test_tables_from_files_and_their_errors(tmp_path, file):
    client = dn.Client(file)
    path = tmp_path / "people.parquet"
    pd.DataFrame(frame(50)).to_parquet(path)
    assert next(iter(client.privatize_table(path))).n == 50
    with pytest.raises(InvalidArgument, match="a Parquet file"):
        client.privatize_table(tmp_path / "nothing.parquet")
    bad = {**frame(3), "smoking": ["daily", "hourly", "daily"]}
    with pytest.raises(InvalidArgument, match="'smoking: values"):
        client.privatize_table(pa.table(bad))
    with pytest.raises(InvalidArgument, match="'sleep: values' must be finite numbers"):
        client.privatize_table(pa.table({**frame(3), "sleep": [1.0, None, 2.0]}))
    with pytest.raises(InvalidArgument, match="columns smoking, sick"):
        client.privatize_table(pa.table({"smoking": ["daily"]}))
    with pytest.raises(InvalidArgument, match="'table' must be"):
        client.privatize_table(7)
    remembering = dn.Client(rounds(tmp_path))
    with pytest.raises(InvalidArgument, match="answered on the devices"):
        remembering.privatize_table(pa.table({"way": ["a"]}))


def test_batches_have_the_law_of_single_reports(tmp_path):
    """Null: reports of a batch follow the exact channel; exact binomial, two-sided, above 1e-8."""
    path = tmp_path / "one.toml"
    data = {"title": "t", "epsilon": 1.0, "questions": [question(mechanism="grr")]}
    path.write_text(to_toml(data))
    client = dn.Client(path)
    n = 20_000
    (batch,) = client.privatize_table(pa.table({"way": ["b"] * n}))
    column = read_batch(client.collection, batch.body)[1]["way"]
    m = client.collection.questions[0].mechanism
    for value, chance in enumerate([float(m.q), float(m.p), float(m.q)]):
        count = int((column == value).sum())
        assert min(binom.cdf(count, n, chance), binom.sf(count - 1, n, chance)) > 1e-8
