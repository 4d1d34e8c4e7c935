"""The manifest: what a device checks before it answers, and what is where."""

import hashlib
import json
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deniable as dn
from deniable.answers import Bins, Choice, Number, Text, YesNo
from deniable.canonical import canonical
from deniable.collection.example import EXAMPLE
from deniable.collection.manifest import (
    MOST_BRANCHES,
    MOST_BYTES,
    After,
    Collection,
    Field,
    Report,
)
from deniable.collection.questions import Question
from deniable.collection.survey import survey_of
from deniable.errors import (
    BrokenPromise,
    InvalidArgument,
    ManifestRefused,
    OtherCollection,
    TooMuch,
    Unsupported,
)
from deniable.mechanisms.joint import Joint
from deniable.randomness import SCALE
from places import VECTORS

BAD = json.loads((VECTORS / "bad" / "manifests.json").read_text())
CASES = {path.stem: json.loads(path.read_text()) for path in (VECTORS / "wire").glob("*.json")}
WAY, EVER = dn.GRR(["car", "train", "none"], 1.0), dn.BRR(YesNo(), 1.0)
SIMPLE = Collection.split({"way": WAY, "ever": EVER}, 2.0)
FIELDS = (Field("region", ("north", "south")), Field("age", ("young", "old", "none")))


def drawn(*names, report="all"):
    """One report in which one of some yes/no questions is drawn."""
    m = Joint.of_questions(dict.fromkeys(names, EVER))
    return tuple(Question(name, EVER.domain) for name in names), Report(report, names, m)


# ---- what is refused


@pytest.mark.parametrize("case", BAD, ids=lambda case: case["why"])
def test_bad_manifests(case, tmp_path):
    path = tmp_path / "manifest.json"
    path.write_text(case["manifest"], encoding="utf-8")
    with pytest.raises((ManifestRefused, OtherCollection, TooMuch)) as refused:
        load(path.read_bytes(), path, case.get("digest"))
    assert refused.value.type == case["type"]


def load(manifest, path, digest):
    """The collection, and then the client, which reads other files, too."""
    Collection.from_manifest(manifest)
    dn.Client(path, digest=digest)


def test_a_refusal_survives_a_process():
    with pytest.raises(ManifestRefused) as refused:
        Collection.from_manifest(b"{}")
    found = pickle.loads(pickle.dumps(refused.value))
    assert (str(found), found.type) == (str(refused.value), "unsupported")


def test_bytes_that_no_text_has():
    manifest = SIMPLE.manifest
    for bad in (manifest.replace(b"car", b"\xff"), manifest.decode().encode("utf-16"), None, 5):
        with pytest.raises(ManifestRefused) as refused:
            Collection.from_manifest(bad)
        assert refused.value.type == "bad-manifest"


def test_a_manifest_has_at_most_1_mib():
    blanks = SIMPLE.manifest + b" " * (MOST_BYTES - len(SIMPLE.manifest))
    for data, why in ((blanks, "canonical"), (blanks + b" ", "at most 1048576 bytes")):
        with pytest.raises(ManifestRefused, match=why):
            Collection.from_manifest(data)
    long = Choice([f"{'x' * 90}{i}" for i in range(11_000)])
    with pytest.raises(InvalidArgument, match="at most 1048576 bytes of the manifest"):
        Collection.split({"way": dn.OLH(long, 1.0)}, 1.0)


@pytest.mark.slow
def test_nobody_publishes_more_branches_than_are_read():
    names = tuple(f"q{i}" for i in range(256))
    questions, _ = drawn(*names)
    leaves = dn.BRR(YesNo(), 0.001)
    reports = []
    for number in range(33):  # of 256 branches each: 8448
        m = Joint.of_questions(dict.fromkeys(names, leaves))
        reports.append(Report(f"all{number}", names, m))
    with pytest.raises(InvalidArgument, match=f"at most {MOST_BRANCHES} branches"):
        Collection(questions, tuple(reports), 32.0)


def test_mechanisms_for_comparison_are_not_published():
    questions, _ = drawn("a", "b")
    split = dn.Questionnaire({"a": EVER, "b": EVER}, "split")
    with pytest.raises(Unsupported, match="not for comparison"):
        Collection(questions, (Report("all", ("a", "b"), split),), 2.0)


def test_a_manifest_that_breaks_its_promise_is_refused():
    data = json.loads(survey_of(EXAMPLE).collection.manifest)
    with pytest.raises(ManifestRefused, match=r"'epsilon' must be at least 4") as refused:
        Collection.from_manifest(canonical({**data, "epsilon": 3.9}))
    assert refused.value.type == "broken-promise"
    with pytest.raises(BrokenPromise, match=r"'epsilon' must be at least"):
        Collection.split({"way": WAY, "ever": EVER}, 1.9)


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
    try:
        return canonical(data)
    except InvalidArgument:
        return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def suited(name):
    """A question for a mechanism, with answers that it takes."""
    for domain in (Choice(["a", "b"]), Number(0, 24, 0.5), Text()):
        if dn.mechanisms()[name].unsuited(domain) is None:
            return dn.mechanism(name, domain, 1.0)
    questions, report = drawn("a", "b")
    return Collection(questions, (report,), 32.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name, family in dn.mechanisms().items() if family.on_devices]
)
def test_odd_numbers_in_a_manifest_are_refused_in_words(name):
    """Any number anywhere: a collection that keeps its promise, or a refusal that says why."""
    m = suited(name)
    if not isinstance(m, Collection):
        rounds = {"rounds": 3} if m.remembers else {}
        asked = {"way": m, "n": dn.GRR(Bins([5]), 1.0)}
        m = Collection.split(asked, 32.0, fields=FIELDS, **rounds)
    manifest = m.manifest
    for path in numeric_places(json.loads(manifest)):
        for number in NUMBERS:
            data = with_number(manifest, path, number)
            try:
                found = Collection.from_manifest(data)
            except ManifestRefused:
                continue
            assert found.spent <= found.epsilon <= 32.0, (path, number)
            assert found.digest == hashlib.sha256(data).hexdigest(), (path, number)
            if isinstance(number, bool):
                assert path[-1] in ("optional", "ordered"), (path, number)


def test_an_epsilon_beyond_all_numbers_is_refused():
    manifest = survey_of(EXAMPLE).collection.manifest
    for digits in ("1e400", "1" + "0" * 400, "NaN", "Infinity", "true", "1" + "0" * 5000):
        odd = manifest.replace(b'"epsilon":4,', f'"epsilon":{digits},'.encode(), 1)
        assert odd != manifest
        with pytest.raises(ManifestRefused):
            Collection.from_manifest(odd)
    with pytest.raises(InvalidArgument, match="a very long int"):
        dn.GRR(3, 10**5000)


@given(st.binary(max_size=60), st.integers(0, 1100))
def test_a_damaged_manifest_is_refused_or_another_collection(noise, place):
    manifest = CASES["kinds"]["manifest"].encode()
    damaged = manifest[:place] + noise + manifest[place + len(noise) :]
    try:
        found = Collection.from_manifest(damaged)
    except ManifestRefused:
        return
    assert found.digest == hashlib.sha256(damaged).hexdigest()


# ---- what is published


def test_numbers_are_published_as_doubles():
    """Also those that no other integer holds: every reader finds the same."""
    for edges in ([2**53 + 1], [2**60], [-1e20, 1e300], [1e-7, 0.1]):
        asked = Question("n", Bins(edges))
        found = Collection.split({"n": dn.GRR(asked.domain, 1.0)}, 1.0)
        again = Collection.from_manifest(found.manifest)
        assert again.digest == found.digest
        assert [again.question("n").index(float(edge)) for edge in edges] == [
            asked.index(float(edge)) for edge in edges
        ]


def test_a_question_of_several_is_none():
    with pytest.raises(InvalidArgument, match="'q: kind' must be that of one question"):
        Question("q", dn.Several({"a": 2, "b": 2}))
    with pytest.raises(InvalidArgument, match="'q: size' must be"):
        Question("q", Choice(4))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_published_is_read_again(case):
    found = Collection.from_manifest(case["manifest"].encode())
    assert found.manifest.decode() == case["manifest"]
    assert found.digest == hashlib.sha256(found.manifest).hexdigest() == case["digest"]
    assert found.spent <= found.epsilon
    for question in found.questions:
        assert Question.from_json(question.to_json()) == question


# ---- what is where


def test_strata_count_the_last_field_fastest():
    found = Collection.split({"way": WAY}, 1.0, fields=FIELDS)
    assert found.strata == 6
    for number in range(6):
        assert found.stratum(found.fields_of(number)) == number
    assert found.stratum({"age": "old", "region": "south"}) == 4
    assert SIMPLE.strata == 1
    assert SIMPLE.stratum({}) == 0
    for bad, why in (
        ({}, "a value for each of"),
        ({"age": "old"}, "a value for each of"),
        ({"age": "old", "region": "south", "more": "x"}, "a value for each of"),
        ({"age": "ancient", "region": "south"}, "'age' must be one of young"),
        ({"age": 1, "region": "south"}, "'age' must be one of young"),
        ([], "a value for each of"),
    ):
        with pytest.raises(InvalidArgument, match=why):
            found.stratum(bad)


def test_where_a_question_is_counted():
    questions, report = drawn("a", "b")
    found = Collection((*questions, Question("way", WAY.domain)), (report, Report("way", ("way",), WAY)), 2.0)  # fmt: skip  # noqa: E501
    alone, place = found.asked("way"), found.asked("b")
    assert (alone.report.name, alone.place, alone.sampled, alone.share) == ("way", None, False, 1.0)
    assert (place.report.name, place.place, place.sampled, place.share) == ("all", 1, True, 0.5)
    assert place.mechanism == EVER
    with pytest.raises(InvalidArgument, match="'question' must be one of a, b, way"):
        found.asked("all")
    with pytest.raises(InvalidArgument, match="'report' must be one of all, way"):
        found.report("a")


def test_a_question_in_two_reports_is_paid_for_twice():
    questions, report = drawn("a", "b")
    found = Collection(questions, (report, Report("a", ("a",), EVER)), 2.0)
    assert found.spent == pytest.approx(2.0)
    assert found.spent_on("a") == pytest.approx(2.0)
    assert found.spent_on("b") == pytest.approx(1.0)
    with pytest.raises(BrokenPromise):
        Collection(questions, (report, Report("a", ("a",), EVER)), 1.9)


def test_the_root_of_a_protocol():
    assert SIMPLE.root == SIMPLE.digest
    after = After(SIMPLE.digest, "1" * 64, 3)
    later = Collection.split({"way": WAY}, 1.0, after=after)
    assert later.root == SIMPLE.digest != later.digest
    assert Collection.from_manifest(later.manifest).after == after


def test_coins_of_what_is_remembered_are_fewer():
    kept = dn.LGRR(["a", "b"], 1.0)
    once, again = (Collection.split({"way": kept}, 8.0, rounds=rounds) for rounds in (1, 3))
    assert once.words(once.reports[0]) == kept.coin_words
    assert again.words(again.reports[0]) == 1 + kept.instant_words


def test_a_tree_of_bins_may_be_asked_in_rounds():
    """Each round has a fresh report, about a level that is drawn anew; drawn questions have one."""
    tree = dn.HH(dn.Number(0, 24), 1.0, bins=8)
    asked = Collection.split({"sleep": tree}, 3.0, rounds=3)
    assert Collection.from_manifest(asked.manifest) == asked
    assert asked.spent == pytest.approx(3 * tree.guarantee.epsilon)
    drawn = dn.Joint.of_questions({"sleep": tree, "ever": dn.BRR(dn.YesNo(), 1.0)})
    questions = tuple(Question(name, part) for name, part in drawn.domain.parts.items())
    with pytest.raises(InvalidArgument, match="rounds"):
        Collection(questions, (Report("all", ("sleep", "ever"), drawn),), 3.0, rounds=3)
