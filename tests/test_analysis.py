"""What analysts are told about a collection."""

import json

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

from collection_toys import one_question
from deniable.collection.survey import survey_of
from deniable.errors import InvalidArgument
from deniable.service import analysis
from deniable.service.analysis import Analysis, Wish
from deniable.service.layouts import LAYOUTS, VALUES
from deniable.service.store import open_store

PEOPLE, RUNS = 2_000, 80


def collection(divide):
    asked = {"ask": "?", "kind": "yes/no"}
    names = ("one", "two", "three", "four")
    questions = [{"name": name, **asked} for name in names]
    return survey_of({"title": "t", "epsilon": 8.0, "divide": divide, "questions": questions})


@pytest.mark.parametrize("divide", ["split", "sampled"])
def test_intervals_hold_the_share_among_all_respondents(tmp_path, divide):
    """Null: a 95 % interval holds it with at least 93 %; chance fails this with less than 1e-6.

    Where questions are drawn, a quarter of the people answers each: that draw must be in the error.
    """
    rng = np.random.default_rng(8)
    found = collection(divide)
    mechanism = found.questions[0].mechanism
    held = 0
    for run in range(RUNS):
        answers = rng.random(PEOPLE) < 0.7
        asked = answers if divide == "split" else answers[rng.random(PEOPLE) < 0.25]
        counts = mechanism.simulate(np.bincount(asked, minlength=2)[::-1].copy(), rng)
        store = open_store(str(tmp_path / f"{run}.db"), found)
        store.add_batch(bytes(16), b"", {("one", 1): (counts, len(asked))})
        estimate = Analysis(store).estimate(Wish("one"))
        low, high = estimate.intervals[0]
        held += low <= answers.mean() <= high
        store.close()
    assert binom.cdf(held, RUNS, 0.93) > 1e-6


def test_analysts_may_spell_candidates_as_they_like(tmp_path):
    asked = {"name": "drug", "ask": "?", "kind": "text", "candidates": ["Ibuprofen"]}
    found = survey_of({"title": "t", "epsilon": 8.0, "questions": [asked]})
    mechanism = found.questions[0].mechanism
    reports = mechanism.privatize([" ibuprofen"] * 300, np.random.default_rng(2))
    store = open_store(str(tmp_path / "store.db"), found)
    counts = mechanism.tally(reports).counts
    store.add_batch(bytes(16), b"", {("drug", 1): (counts, 300)})
    for candidates in ((), ("IBUPROFEN ",)):
        estimate = Analysis(store).estimate(Wish("drug", candidates=candidates))
        assert estimate.frequencies[0] > 0.9
    for wrong in (("Tea", "tea"), ("tea", " ")):
        with pytest.raises(InvalidArgument, match="candidates"):
            Analysis(store).estimate(Wish("drug", candidates=wrong))


def many(tmp_path, k):
    """The analysis of a question with many answers, and some reports."""
    store = open_store(str(tmp_path / "many.db"), one_question(k))
    counts = np.random.default_rng(3).integers(0, 9, k)
    store.add_batch(bytes(16), b"", {("q", 1): (counts, int(counts.sum()))})
    return store, Analysis(store)


def test_what_is_remembered_has_a_limit_of_bytes(tmp_path, monkeypatch):
    """However large each estimate is; what is asked for again at once is not computed again."""
    monkeypatch.setattr(analysis, "REMEMBERED", 300_000)
    store, found = many(tmp_path, 1_000)
    wishes = [Wish("q", confidence=0.5 + 0.01 * number) for number in range(40)]
    for wish in wishes:
        assert found.estimate(wish) is found.estimate(wish)
        kept = list(found._known.values())
        arrays = [(one.frequencies, one.standard_errors, one.intervals) for one in kept]
        assert sum(column.nbytes for one in arrays for column in one) <= 300_000
    assert 1 < len(found._known) < 40
    monkeypatch.setattr(analysis, "REMEMBERED", 10_000)
    assert found.estimate(Wish("q")).n > 0
    assert not found._known
    store.close()


@pytest.mark.parametrize("k", [2, VALUES, VALUES + 1, 3 * VALUES + 7])
def test_pieces_make_up_the_whole(tmp_path, k):
    """JSON, CSV and Arrow written in pieces say what the exports of an estimate say."""
    store, found = many(tmp_path, k)
    whole = found.estimate(Wish("q"))
    pieces = {name: list(write(whole)) for name, (_, write) in LAYOUTS.items()}
    assert json.loads(b"".join(pieces["json"])) == json.loads(whole.to_json())
    assert b"".join(pieces["csv"]).decode() == whole.to_csv()
    read = pa.ipc.open_stream(b"".join(pieces["arrow"])).read_all()
    assert read.equals(whole.to_arrow())
    assert read.schema.metadata == whole.to_arrow().schema.metadata
    assert all(len(piece) < 200 * VALUES for parts in pieces.values() for piece in parts)
    store.close()
