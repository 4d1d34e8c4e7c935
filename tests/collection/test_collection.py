"""The survey, the wire format, and what a client makes of them."""

import json
import math
import subprocess
import sys
import tomllib

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import deniable as dn
from deniable.answers import Bins, Text
from deniable.answers.choice import bin_names
from deniable.cli.explain import sentences
from deniable.collection.batches import read_batch
from deniable.collection.example import EXAMPLE, to_toml
from deniable.collection.manifest import Collection
from deniable.collection.questions import Question
from deniable.collection.recommend import MOST_BITS, Requirements
from deniable.collection.reporting import coin_words, drawn, encoded, redrawn, respond
from deniable.collection.survey import read_survey, skeleton_of, survey_of
from deniable.collection.wire import Submission
from deniable.core.domain import Domain, survey_kinds
from deniable.core.tally import Tally
from deniable.device.memo import Memory, MemoryMemo
from deniable.errors import (
    CorruptData,
    InvalidArgument,
    ManifestRefused,
    MemoLost,
    OtherCollection,
)
from deniable.privacy.enumeration import exact_channel
from deniable.randomness import WORD_BYTES, ByteCoins
from deniable.service.intake import Intake
from deniable.service.problems import Problem
from places import VECTORS

CASES = {path.stem: json.loads(path.read_text()) for path in (VECTORS / "wire").glob("*.json")}
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


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_vectors(case):
    collection = Collection.from_manifest(case["manifest"].encode())
    assert collection.digest == case["digest"]
    assert Collection.from_manifest(collection.manifest) == collection
    memos = {}
    for name, secret in case["secrets"].items():
        memos[name] = MemoryMemo(collection.report(name).mechanism, "x")
        memos[name]._memory = Memory(bytes.fromhex(secret), collection.changes + 1)
    for sent in case["good"]:
        coins = ByteCoins(bytes.fromhex(sent["coins"]))
        values = encoded(collection, sent["answers"])
        assert len(sent["coins"]) == 2 * WORD_BYTES * coin_words(collection)
        rows = respond(collection, values, coins, memos)
        coins.finish()
        fields = collection.fields_of(collection.stratum(sent["fields"]))
        made = Submission(collection.digest, sent["id"], rows, sent["round"], fields)
        assert made.to_json().decode() == sent["body"]
        assert Submission.from_json(made.to_json()) == made


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_only_drawn_answers_matter(case):
    """What is sent is the same if the other questions have no answer."""
    collection = Collection.from_manifest(case["manifest"].encode())
    for sent in case["good"] if not case["secrets"] else []:
        coins = bytes.fromhex(sent["coins"])
        answers = {name: sent["answers"][name] for name in drawn(collection, coins)}
        values = encoded(collection, answers, answers)
        rows = respond(collection, values, ByteCoins(coins), {})
        assert {name: row.hex() for name, row in rows.items()} == json.loads(sent["body"])[
            "reports"
        ]
        sampled = {branch for report in collection.reports if report.mechanism.places > 1 for branch in report.of}  # fmt: skip  # noqa: E501
        alone = {report.name for report in collection.reports}
        missing = set(sent["answers"]) - set(answers)
        assert missing <= sampled - alone


def names_of(leaf):
    yield leaf["name"]
    for branch in leaf.get("branches", []):
        yield from names_of(branch["mechanism"])


def test_vectors_know_every_mechanism_and_kind():
    documents = [json.loads(case["manifest"]) for case in CASES.values()]
    found = {
        name
        for data in documents
        for report in data["reports"]
        for name in names_of(report["mechanism"])
    }
    assert found == {name for name, family in dn.mechanisms().items() if family.on_devices}
    kinds = {question["kind"] for data in documents for question in data["questions"]}
    assert kinds == set(survey_kinds())
    assert any(question["optional"] for data in documents for question in data["questions"])


BODIES = json.loads((VECTORS / "bad" / "submissions.json").read_text())


@pytest.mark.parametrize("case", BODIES, ids=lambda case: case["why"])
def test_bad_submissions(case):
    intake = Intake(Collection.from_manifest(case["manifest"].encode()))
    with pytest.raises(Problem) as refused:
        intake.single(case["body"].encode())
    assert refused.value.kind == case["type"]


# ---- budgets


def test_the_whole_is_never_exceeded():
    for epsilon in (0.1, 1 / 3, 1.0, 2.7, 8.0):
        for divide in ("split", "sampled"):
            found = survey_of(survey(epsilon=epsilon, divide=divide))
            assert found.collection.spent <= epsilon
            assert found.collection.spent > epsilon * (1 - 1e-6)


def test_weights_divide_the_budget():
    two = [question(weight=3), question(name="other", weight=1)]
    found = survey_of({"title": "t", "epsilon": 2.0, "questions": two}).collection
    assert [report.mechanism.epsilon for report in found.reports] == [1.5, 0.5]
    assert found.spent_on("way") == pytest.approx(1.5)


@pytest.mark.parametrize("name", ["lgrr", "losue", "basicrappor", "rappor", "grr"])
def test_rounds_and_changes_are_paid_for(name):
    data = {"title": "t", "epsilon": 3.0, "rounds": 6, "changes": 2}
    found = survey_of({**data, "questions": [question(mechanism=name)]}).collection
    (report,) = found.reports
    remembered = name != "grr"
    assert found.remembered(report) is remembered
    whole = report.mechanism.permanent_guarantee if remembered else report.mechanism.once
    expected = whole.after(None, 2) if remembered else whole.after(6)
    assert found.spent == pytest.approx(expected, rel=1e-12)
    assert found.spent <= 3.0
    assert found.spent > 2.4


def test_one_submission_is_as_private_as_it_says():
    """The channel of whole answer sheets, enumerated, for both ways of dividing."""
    for divide in ("split", "sampled"):
        two = [question(answers=["a", "b"], mechanism="oue"), question(name="x", mechanism="grr")]
        data = {"title": "t", "epsilon": 1.0, "divide": divide, "questions": two}
        found = survey_of(data).collection
        sheets = [{"way": a, "x": b} for a in range(2) for b in range(3)]

        def sent(i, coins, found=found, sheets=sheets):
            rows = respond(found, sheets[i], coins, {})
            return tuple(sorted(rows.items()))

        exact = exact_channel(sent, range(len(sheets))).ratio
        assert math.log(exact) == pytest.approx(found.spent, abs=1e-12)


# ---- which mechanism


def squared(m):
    """The mean variance of a frequency where all values are alike."""
    return float(m.variance(10_000, 1 / m.domain.size))


def test_auto_takes_the_least_variance():
    for size in (2, 3, 10, 100, 5000):
        for epsilon in (0.5, 2.0, 4.0):
            terms = Requirements(Domain([str(i) for i in range(size)]), epsilon, 10_000)
            chosen = terms.choose()
            for name in ("grr", "oue", "ss", "olh", "hr"):
                other = terms.build(name)
                if other.bits_per_report <= MOST_BITS:
                    assert squared(chosen) <= 1.02 * squared(other), (size, name)


def test_auto_knows_rounds_and_texts():
    terms = Requirements(Domain(["a", "b", "c"]), 4.0, 10_000, rounds=20, changes=0)
    assert isinstance(terms.choose(), dn.LGRR | dn.LOSUE | dn.LSOUE | dn.LOUE | dn.LOLH)
    assert isinstance(Requirements(Text(), 2.0, 10_000).choose(), dn.ORR | dn.HCMS)
    mean = Requirements(dn.Number(0, 24), 2.0, 10_000, tasks=("mean",))
    assert isinstance(mean.choose(), dn.DRR)


def test_what_a_survey_wants_of_numbers_chooses_the_mechanism():
    def designed(**keys):
        data = {"title": "t", "epsilon": 1.0, "questions": [{**NUMBER, "lo": 0, "hi": 24, **keys}]}
        return survey_of(data).collection.asked("n").mechanism

    numbers = dn.Number(0, 24)
    assert designed(wants="mean") == dn.DRR(numbers, 1.0)
    assert designed() == designed(wants="distribution") == dn.HH(numbers, 1.0)
    assert {"mean", "distribution"} <= set(designed(wants="both").tasks)
    assert designed(mechanism="drr") == designed(mechanism="drr", wants="mean")
    assert designed(mechanism="hh", wants="mean", design={"bins": 8}).bins == 8
    with pytest.raises(InvalidArgument, match="one that estimates the nothing"):
        Requirements(numbers, 1.0, 100, tasks=("nothing",)).build("hh")
    with pytest.raises(InvalidArgument, match=r"none is chosen for .*, nothing"):
        Requirements(numbers, 1.0, 100, tasks=("nothing",)).choose()
    with pytest.raises(InvalidArgument, match=r"wants.*mean, distribution, both"):
        designed(wants="median")


#: By the number of answers (0: any text), rounds and changes: what is chosen for each epsilon.
CHOSEN = {
    (2, 1, 0): "brr brr brr brr brr",
    (2, 5, 0): "lgrr lgrr lgrr lgrr lgrr",
    (2, 20, 3): "lgrr lgrr lgrr lgrr lgrr",
    (3, 1, 0): "grr grr grr grr grr",
    (3, 5, 1): "lgrr lgrr lgrr lgrr lgrr",
    (10, 1, 0): "ss ss grr grr grr",
    (10, 5, 0): "losue losue losue lgrr lgrr",
    (10, 5, 1): "losue losue losue losue lgrr",
    (10, 20, 3): "losue losue losue losue losue",
    (100, 1, 0): "ss ss ss ss grr",
    (100, 5, 0): "lolh lolh lolh lolh lolh",
    (100, 5, 1): "losue losue losue losue losue",
    (5000, 1, 0): "olh olh olh olh olh",
    (5000, 5, 1): "hr hr hr olh olh",
    (5000, 20, 3): "hr hr hr hr hr",
    (0, 1, 0): "orr orr orr orr orr",
    (0, 5, 1): "rappor rappor rappor rappor rappor",
}


@pytest.mark.slow
@pytest.mark.parametrize(("size", "rounds", "changes"), CHOSEN)
def test_what_is_chosen_does_not_depend_on_the_order_of_the_registry(size, rounds, changes):
    domain = Domain([f"a{i}" for i in range(size)]) if size else Text()
    found = [
        Requirements(domain, epsilon, 10_000, rounds=rounds, changes=changes).choose().name
        for epsilon in (0.5, 1.0, 2.0, 4.0, 6.0)
    ]
    assert " ".join(found) == CHOSEN[size, rounds, changes]


# ---- answers


def test_numbers_find_their_bins():
    edges = (-0.5, 5, 7.25)
    asked = Question("n", Bins(edges))
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


def test_a_refusal_does_not_show_the_answer(file):
    for name, secret in {"smoking": "s3cret", "sick": "s3cret", "sleep": "s3cret"}.items():
        with pytest.raises(InvalidArgument, match=f"'{name}' must be") as refused:
            dn.Client(file).prepare({**ANSWERS, name: secret})
        assert "s3cret" not in str(refused.value)
    with pytest.raises(InvalidArgument) as refused:
        dn.Client(file).prepare({**ANSWERS, "medicine": "s3cret" * 1000})
    assert "s3cret" not in str(refused.value)


def test_a_skip_is_an_answer_where_it_is_allowed():
    case = CASES["optional"]
    collection = Collection.from_manifest(case["manifest"].encode())
    skipped = {question.name: None for question in collection.questions}
    values = encoded(collection, skipped)
    assert values == {question.name: question.domain.skip for question in collection.questions}
    for name in skipped:
        with pytest.raises(InvalidArgument, match="no answer"):
            encoded(collection, {other: None for other in skipped if other != name})


# ---- the survey


@pytest.mark.slow
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
        ({"questions": [question(name="Way")]}, "lower-case letters"),
        ({"questions": [question(), question()]}, "different names"),
        ({"questions": [question(answers="abc")]}, "'way: answers' must be a list of at least two"),
        ({"questions": [question(answers=["a", "b" * 101])]}, "at most 100 characters"),
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
        ({"questions": [NUMBER]}, "needs either edges, or lo and hi"),
        ({"questions": [NUMBER | {"lo": 0}]}, "needs either edges, or lo and hi"),
        (
            {"questions": [NUMBER | {"lo": 0, "hi": 9, "edges": [1]}]},
            "needs either edges, or lo and hi",
        ),
        ({"questions": [NUMBER | {"lo": 9, "hi": 0}]}, "'n: hi' must be above lo = 9"),
        (
            {"questions": [question(kind="choices", answers=["a", "None of these"])]},
            "this one reads like a set without any",
        ),
        ({"questions": [NUMBER | {"lo": 0, "hi": 9, "step": 2}]}, "'n: step' must be"),
        ({"questions": [NUMBER | {"lo": 0, "hi": 9, "outside": "drop"}]}, "one of clip, refuse"),
        ({"questions": [NUMBER | {"lo": 0, "hi": 9, "mechanism": "oue"}]}, "one for these answers"),
        ({"questions": [question(mechanism="split")]}, "one for devices"),
        (
            {"divide": "sampled", "questions": [question(), question(name="all")]},
            "another: it names",
        ),
        ({"language": 1}, "'language' must be a language tag"),
        ({"texts": []}, "'texts' must be tables"),
        ({"texts": {"en": {"way": {"ask": "?"}}}}, "'texts.en' must be one of smoking"),
        ({"texts": {"e_": {"sick": {"ask": "?"}}}}, "a language tag"),
        ({"texts": {"en": {"sick": {"answers": ["y"]}}}}, "2 texts, in the order of the answers"),
        ({"texts": {"en": {"sick": {"colour": 1}}}}, "made of answers, ask"),
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
    for content in (b"title = ", b"\xff\xfe", b"{", b"{}", b"[1]"):
        bad.write_bytes(content)
        with pytest.raises((CorruptData, InvalidArgument, ManifestRefused)):
            read_survey(bad)
    bad.write_bytes(b'{"deniable":1}')
    with pytest.raises(ManifestRefused, match=r"version 0\.1, which was never released") as refused:
        read_survey(bad)
    assert refused.value.type == "unsupported"
    bad.write_text(f"epsilon = 1{'0' * 5000}")
    with pytest.raises(CorruptData, match="is not TOML"):
        read_survey(bad)


def test_a_survey_may_begin_with_a_mark_of_its_encoding(file):
    """Some editors write one."""
    plain = read_survey(file)
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert read_survey(file) == plain


def test_who_spends_much_is_told_that_clients_refuse():
    found = [survey_of(survey(epsilon=epsilon)).collection for epsilon in (8, 8.5)]
    told = [" ".join(sentences(collection)) for collection in found]
    assert ["Clients refuse epsilon 8.5" in text for text in told] == [False, True]


text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(text, st.lists(text, min_size=2, max_size=5, unique=True))
def test_any_words_survive_the_file(title, answers):
    data = {"title": f"x{title}", "epsilon": 1.0, "questions": [question(answers=answers)]}
    assert tomllib.loads(to_toml(data)) == data


# ---- the client


@pytest.mark.slow
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
    with pytest.raises(OtherCollection, match="nothing was answered"):
        dn.Client(file, digest="0" * 64)


@pytest.mark.parametrize("answers", [[7.5], 7.5, "7.5", {7.5}])
def test_answers_without_questions_are_not_repeated(file, answers):
    with pytest.raises(InvalidArgument, match="'answers' must be a mapping") as refused:
        dn.Client(file).prepare(answers)
    assert "7.5" not in str(refused.value)


def test_what_leaves_is_what_the_wire_format_says(file):
    client = dn.Client(file)
    first, second = client.prepare(ANSWERS), client.prepare(ANSWERS)
    assert first.id != second.id
    sent = json.loads(first.to_json())
    assert set(sent) == {"collection", "fields", "id", "reports", "round"}
    assert sent["fields"] == {}
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
    assert encoded(collection, {**ANSWERS, **odd}) == encoded(collection, {**ANSWERS, "sleep": 6})


def test_sampled_questions_are_drawn_alike():
    """Null: each of four questions is drawn with probability 1/4; two-sided, below 1e-7 each."""
    found = survey_of(survey(divide="sampled")).collection
    assert [report.name for report in found.reports] == ["all"]
    n, rng = 4_000, np.random.default_rng(11)
    size = coin_words(found) * WORD_BYTES
    asked = [name for _ in range(n) for name in drawn(found, rng.bytes(size))]
    assert len(asked) == n
    for question in found.questions:
        count = asked.count(question.name)
        assert min(binom.cdf(count, n, 0.25), binom.sf(count - 1, n, 0.25)) > 1e-7
        assert found.asked(question.name).share == 0.25


def test_what_is_drawn_again_draws_the_same_questions():
    """Of the coins of a sheet only those are kept that draw questions."""
    found = Collection.from_manifest(CASES["fields"]["manifest"].encode())
    rng = np.random.default_rng(12)
    size = coin_words(found) * WORD_BYTES
    for _ in range(50):
        old, fresh = rng.bytes(size), rng.bytes(size)
        made = redrawn(found, old, fresh)
        places = 2 * WORD_BYTES  # after the words of "way"
        assert made[:places] + made[places + WORD_BYTES :] == (
            fresh[:places] + fresh[places + WORD_BYTES :]
        )
        assert made[places : places + WORD_BYTES] == old[places : places + WORD_BYTES]
        assert drawn(found, made) == drawn(found, old)


def test_a_mean_is_asked_for_by_its_range():
    asked = NUMBER | {"lo": 0, "hi": 24, "step": 0.25, "wants": "mean"}
    found = survey_of({"title": "t", "epsilon": 1.0, "questions": [asked]}).collection
    assert found.report("n").mechanism == dn.DRR(dn.Number(0, 24, 0.25), 1.0)
    assert found.question("n").index(25) == found.question("n").index(24) == 1 << 32


# ---- wordings


def test_wordings_do_not_change_the_collection():
    plain = survey_of(EXAMPLE)
    asked = [{**one, "ask": f"{one['ask']} Really?"} for one in EXAMPLE["questions"]]
    asked[3] = {**asked[3], "candidates": ["tea"]}
    german = {"title": "Arbeit", "smoking": {"ask": "?", "answers": ["nie", "mal", "oft"]}}
    changed = survey(title="Work", about="New", questions=asked, texts={"de": german})
    other = survey_of(changed)
    assert other.collection == plain.collection
    assert other.collection.digest == plain.collection.digest
    assert other.skeleton == plain.skeleton
    assert other.texts.digest != plain.texts.digest
    assert other.texts.collection == plain.texts.collection == plain.collection.digest
    assert other.texts.title == "Work"
    assert other.texts.languages["de"].questions["smoking"].answers[1] == "mal"


def test_a_typo_is_mended_beside_the_id():
    texts = {"en": {"smoking": {"answers": ["never", "sometimes", "every day"]}}}
    mended = survey_of(survey(texts=texts))
    assert mended.collection == survey_of(EXAMPLE).collection
    wording = mended.texts.first.questions["smoking"]
    assert wording.ask == EXAMPLE["questions"][0]["ask"]
    assert wording.answers[2] == "every day"


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 3.5},
        {"respondents": 20_001},
        {"divide": "sampled"},
        {"questions": EXAMPLE["questions"][:3]},
        {"questions": [*EXAMPLE["questions"][:3], EXAMPLE["questions"][3] | {"fold": "none"}]},
    ],
)
def test_all_that_the_collection_follows_from_is_in_the_skeleton(changes):
    assert skeleton_of(survey(**changes)) != skeleton_of(EXAMPLE)


def test_a_skeleton_has_no_words_and_no_defaults():
    data, first = json.loads(skeleton_of(EXAMPLE)), EXAMPLE["questions"][0]
    listed = {"answers": first["answers"], "optional": True}
    assert data == {
        "divide": "split",
        "epsilon": 4,
        "respondents": 20_000,
        "questions": [
            {"name": "smoking", "kind": "choice", **listed},
            {"name": "sick", "kind": "yes/no"},
            {"name": "sleep", "kind": "number", "edges": [5, 6, 7, 8]},
            {"name": "medicine", "kind": "text"},
        ],
    }


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
    found = survey_of({**data, "questions": [asked]}).collection
    assert found.reports[0].mechanism.epsilon_inf == 1.0
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
        "smoking": rng.choice(["never", "sometimes", "daily"], n).tolist(),
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
        assert [len(column) for column in columns.values()] == [batch.n] * len(columns)
        assert list(columns) == (["all"] if divide == "sampled" else list(ANSWERS))
        for name, column in columns.items():
            m = client.collection.report(name).mechanism
            counted = Tally.of_counts(m, m.count(column), batch.n)
            asked = [client.collection.asked(name) for name in ANSWERS]
            sizes = [one.tally(counted).n for one in asked if one.report.name == name]
            assert sum(sizes) == batch.n


def test_tables_from_files_and_their_errors(tmp_path, file):
    client = dn.Client(file)
    path = tmp_path / "people.parquet"
    pd.DataFrame(frame(50)).to_parquet(path)
    assert next(iter(client.privatize_table(path))).n == 50
    with pytest.raises(InvalidArgument, match="a Parquet file"):
        client.privatize_table(tmp_path / "nothing.parquet")
    bad = {**frame(3), "smoking": ["daily", "hourly", "daily"]}
    with pytest.raises(InvalidArgument, match="'smoking: values") as refused:
        client.privatize_table(pa.table(bad))
    assert "hourly" not in str(refused.value)
    with pytest.raises(InvalidArgument, match=r"'sleep: values\[1\]' must be a finite number"):
        client.privatize_table(pa.table({**frame(3), "sleep": [1.0, None, 2.0]}))
    with pytest.raises(InvalidArgument, match="columns smoking, sick"):
        client.privatize_table(pa.table({"smoking": ["daily"]}))
    mixed = pd.DataFrame({**frame(2), "sleep": [7.5, "hardly"]})
    for table in (7, mixed):
        with pytest.raises(InvalidArgument, match="'table' must be") as refused:
            client.privatize_table(table)
        assert "hardly" not in str(refused.value)
    remembering = dn.Client(rounds(tmp_path))
    with pytest.raises(InvalidArgument, match="answered on the devices"):
        remembering.privatize_table(pa.table({"way": ["a"]}))


def test_a_batch_is_about_one_stratum(tmp_path):
    path = tmp_path / "fields.json"
    path.write_text(CASES["fields"]["manifest"])
    client = dn.Client(path)
    n = 100
    table = {
        "way": ["apple", "plum"] * (n // 2),
        "ever": [True] * n,
        "region": ["south"] * 60 + ["north"] * 40,
        "age": ["young"] * 10 + ["日本"] * 90,
    }
    batches = list(client.privatize_table(pa.table(table), rows=30))
    found = []
    for batch in batches:
        about, columns = read_batch(client.collection, batch.body)
        fields = json.loads(about["deniable.fields"])
        found.append((client.collection.stratum(fields), batch.n))
        assert list(columns) == ["way", "both"]
    assert found == [(2, 30), (2, 10), (3, 10), (5, 30), (5, 20)]
    with pytest.raises(InvalidArgument, match="'age: values"):
        client.privatize_table(pa.table({**table, "age": ["old"] * n}))
    with pytest.raises(InvalidArgument, match="columns way, ever, region, age"):
        client.privatize_table(pa.table({"way": ["apple"], "ever": [True]}))


def test_batches_have_the_law_of_single_reports(tmp_path):
    """Null: reports of a batch follow the exact channel; exact binomial, two-sided, above 1e-8."""
    path = tmp_path / "one.toml"
    data = {"title": "t", "epsilon": 1.0, "questions": [question(mechanism="grr")]}
    path.write_text(to_toml(data))
    client = dn.Client(path)
    n = 20_000
    (batch,) = client.privatize_table(pa.table({"way": ["b"] * n}))
    column = read_batch(client.collection, batch.body)[1]["way"]
    m = client.collection.reports[0].mechanism
    for value, chance in enumerate([float(m.q), float(m.p), float(m.q)]):
        count = int((column == value).sum())
        assert min(binom.cdf(count, n, chance), binom.sf(count - 1, n, chance)) > 1e-8
