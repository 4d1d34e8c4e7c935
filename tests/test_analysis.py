"""What analysts are told about a collection."""

import numpy as np
import pytest
from scipy.stats import binom

from deniable.collection.survey import survey_of
from deniable.errors import InvalidArgument
from deniable.service.analysis import Analysis, Wish
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
    store.close()
