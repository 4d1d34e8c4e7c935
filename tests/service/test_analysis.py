"""What analysts are told about a collection."""

import json

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import deniable as dn
from collection_toys import batch, one_question, survey
from deniable.collection.survey import survey_of
from deniable.core.tally import Tally
from deniable.errors import InvalidArgument, TooFew
from deniable.randomness import draw_key
from deniable.service import analysis
from deniable.service.analysis import Analysis, EstimateQuery
from deniable.service.encoding import TallyKey
from deniable.service.responses import VALUES, WRITERS
from deniable.service.store import open_store

PEOPLE, RUNS = 2_000, 80


def collection(divide):
    asked = {"ask": "?", "kind": "yes/no"}
    names = ("one", "two", "three", "four")
    questions = [{"name": name, **asked} for name in names]
    data = {"title": "t", "epsilon": 8.0, "divide": divide, "questions": questions}
    return survey_of(data).collection


@pytest.mark.slow
@pytest.mark.parametrize("divide", ["split", "sampled"])
def test_intervals_hold_the_share_among_all_respondents(tmp_path, divide):
    """Null: a 95 % interval holds it with at least 93 %; chance fails this with less than 1e-6.

    Where questions are drawn, a quarter of the people answers each: that draw must be in the error.
    """
    rng = np.random.default_rng(8)
    found = collection(divide)
    asked, report = found.asked("one"), found.reports[0]
    assert asked.sampled == (divide == "sampled")
    held = 0
    for run in range(RUNS):
        answers = rng.random(PEOPLE) < 0.7
        values = np.zeros(PEOPLE, dtype=report.mechanism.domain.dtype)
        places = np.where(answers, 0, 1)
        if asked.sampled:
            values["one"] = places
        else:
            values[:] = places
        column = report.mechanism.randomise(values, draw_key(rng))
        tally = report.mechanism.tally(dn.Reports(report.mechanism, column))
        store = open_store(str(tmp_path / f"{run}.db"), found)
        store.add_batch(bytes(16), b"", {TallyKey(report.name): tally})
        estimate = Analysis(store).estimate(EstimateQuery("one"))
        assert estimate.population == ("everyone" if asked.sampled else "respondents")
        low, high = estimate.intervals[0]
        held += low <= answers.mean() <= high
        store.close()
    assert binom.cdf(held, RUNS, 0.93) > 1e-6


def test_analysts_may_spell_candidates_as_they_like(tmp_path):
    asked = {"name": "drug", "ask": "?", "kind": "text", "candidates": ["Ibuprofen"]}
    found = survey_of({"title": "t", "epsilon": 8.0, "questions": [asked]})
    mechanism = found.collection.reports[0].mechanism
    reports = mechanism.privatize([" ibuprofen"] * 300, np.random.default_rng(2))
    store = open_store(str(tmp_path / "store.db"), found)
    store.add_batch(bytes(16), b"", {TallyKey("drug"): mechanism.tally(reports)})
    for choices in ((), looking("IBUPROFEN ")):
        estimate = Analysis(store).estimate(EstimateQuery("drug", choices=choices))
        assert estimate.frequencies[0] > 0.9
    for wrong in (("Tea", "tea"), ("tea", " ")):
        with pytest.raises(InvalidArgument, match="candidates"):
            Analysis(store).estimate(EstimateQuery("drug", choices=looking(*wrong)))
    store.close()


def looking(*texts):
    return (("candidates", texts),)


def test_a_question_has_only_the_queries_of_its_task(tmp_path):
    drug = {"name": "drug", "ask": "?", "kind": "text", "candidates": []}
    hours = {"name": "hours", "ask": "?", "kind": "number", "lo": 0, "hi": 24}
    hours["mechanism"] = "drr"
    found = survey_of({"title": "t", "epsilon": 8.0, "questions": [drug, hours]})
    store = open_store(str(tmp_path / "store.db"), found)
    made = batch(found.collection, 300)
    store.add_batch(bytes(16), made.body, store.count_batch(made.body))
    told = {one["name"]: one["queries"] for one in Analysis(store).status()["questions"]}
    assert set(told["drug"]) == {"candidates"}
    assert told["drug"]["candidates"]["needed"]
    assert "candidates" not in told["hours"]
    with pytest.raises(InvalidArgument, match="candidates"):
        Analysis(store).estimate(EstimateQuery("drug"))
    with pytest.raises(InvalidArgument, match="candidates"):
        Analysis(store).estimate(EstimateQuery("hours", choices=looking("tea")))
    assert Analysis(store).estimate(EstimateQuery("hours")).n == 300
    store.close()


@pytest.mark.parametrize("divide", ["split", "sampled"])
def test_a_poll_reads_numbers_only(tmp_path, monkeypatch, divide):
    """What does not change is described once; no counts are read, and no methods are sought."""
    toys = survey(divide)
    store = open_store(str(tmp_path / "store.db"), toys)
    made = batch(toys, 50)
    store.add_batch(bytes(16), made.body, store.count_batch(made.body))
    found = Analysis(store)
    before = found.status()
    for place, name in ((analysis, "queries_of"), (type(store), "tallies"), (type(store), "tally")):
        monkeypatch.setattr(place, name, lambda *_: pytest.fail("asked again"))
    task = type(toys.asked("way").mechanism.task)
    monkeypatch.setattr(task, "methods", lambda *_: pytest.fail("asked again"))
    assert found.status() == before
    assert {one["reports"]["1"] for one in before["questions"]} == {50}
    assert {one["share"] for one in before["questions"]} == ({1.0} if divide == "split" else {0.25})
    store.close()


def many(tmp_path, k):
    """The analysis of a question with many answers, and some reports."""
    store = open_store(str(tmp_path / "many.db"), one_question(k))
    counts = np.random.default_rng(3).integers(0, 9, k)
    mechanism = store.collection.reports[0].mechanism
    tally = Tally.of_counts(mechanism, counts, int(counts.sum()))
    store.add_batch(bytes(16), b"", {TallyKey("q"): tally})
    return store, Analysis(store)


@pytest.mark.slow
def test_what_is_remembered_has_a_limit_of_bytes(tmp_path, monkeypatch):
    """However large each estimate is; what is asked for again at once is not computed again."""
    monkeypatch.setattr(analysis, "REMEMBERED", 300_000)
    store, found = many(tmp_path, 1_000)
    queries = [EstimateQuery("q", confidence=0.5 + 0.01 * number) for number in range(40)]
    for query in queries:
        assert found.estimate(query) is found.estimate(query)
        kept = list(found._known.values())
        arrays = [(one.frequencies, one.standard_errors, one.intervals) for one in kept]
        assert sum(column.nbytes for one in arrays for column in one) <= 300_000
    assert 1 < len(found._known) < 40
    monkeypatch.setattr(analysis, "REMEMBERED", 10_000)
    assert found.estimate(EstimateQuery("q")).n > 0
    assert not found._known
    store.close()


@pytest.mark.parametrize("k", [2, VALUES, VALUES + 1, 3 * VALUES + 7])
def test_pieces_make_up_the_whole(tmp_path, k):
    """JSON, CSV and Arrow written in pieces say what the exports of an estimate say."""
    store, found = many(tmp_path, k)
    whole = found.estimate(EstimateQuery("q"))
    pieces = {name: list(write(whole)) for name, (_, write) in WRITERS.items()}
    assert json.loads(b"".join(pieces["json"])) == json.loads(whole.to_json())
    assert b"".join(pieces["csv"]).decode() == whole.to_csv()
    read = pa.ipc.open_stream(b"".join(pieces["arrow"])).read_all()
    assert read.equals(whole.to_arrow())
    assert read.schema.metadata == whole.to_arrow().schema.metadata
    assert all(len(piece) < 200 * VALUES for parts in pieces.values() for piece in parts)
    store.close()


def test_estimates_of_an_optional_question_are_about_those_who_answered(tmp_path):
    asked = {"name": "sick", "ask": "Sick?", "kind": "yes/no", "optional": True}
    found = survey_of({"title": "t", "epsilon": 2.0, "questions": [asked]})
    mechanism = found.collection.reports[0].mechanism
    for number, (answers, words) in enumerate(
        (
            ([True] * 300 + [False] * 300 + [None] * 200, "skipped this question; figures are"),
            ([None] * 400, "too few people who answered to tell: they are"),
        )
    ):
        reports = mechanism.privatize(answers, np.random.default_rng(2))
        store = open_store(str(tmp_path / f"{number}.db"), found)
        store.add_batch(bytes(16), b"", {TallyKey("sick"): mechanism.tally(reports)})
        asking = Analysis(store)
        if answers[0] is None:
            with pytest.raises(TooFew, match=words):
                asking.estimate(EstimateQuery("sick"))
        else:
            chart = asking.chart(EstimateQuery("sick"))
            assert words in chart["usermeta"]["caption"]
            assert chart["usermeta"]["columns"]["answer"] == ["yes", "no"]
            estimate = asking.estimate(EstimateQuery("sick"))
            assert abs(estimate.skipped.share - 0.25) < 5 * estimate.skipped.standard_error
        store.close()
