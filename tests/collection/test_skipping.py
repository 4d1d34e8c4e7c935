"""Questions that may be skipped, from a survey file to reports and estimates."""

import math
from functools import partial

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.cli.verdicts import verdicts
from deniable.collection.manifest import Collection
from deniable.collection.survey import mechanism_of, survey_of
from deniable.engines.privatising import privatise_files
from deniable.errors import InvalidArgument

QUESTIONS = {
    "smoking": {"kind": "choice", "answers": ["never", "daily"]},
    "sick": {"kind": "yes/no"},
    "age": {"kind": "number", "edges": [18, 65]},
    "sleep": {"kind": "number", "lo": 0, "hi": 24, "wants": "mean"},
    "drug": {"kind": "text", "candidates": ["tea"]},
}


def survey(optional=True, **more):
    listed = [
        {"name": name, "ask": f"{name}?", **keys, "optional": optional}
        for name, keys in QUESTIONS.items()
    ]
    return {"title": "Health", "epsilon": 8, "questions": listed, **more}


def test_a_question_of_any_kind_may_be_optional_in_a_survey_file():
    asked, required = survey_of(survey()).collection, survey_of(survey(False)).collection
    assert [one.domain.optional for one in asked.questions] == [True] * 5
    assert [one.domain.optional for one in required.questions] == [False] * 5
    left_out = survey(False)
    for one in left_out["questions"]:
        del one["optional"]
    assert survey_of(left_out).collection == required
    assert Collection.from_manifest(asked.manifest) == asked
    for wrong in ("yes", 1, None):
        with pytest.raises(InvalidArgument, match="optional' must be true or false"):
            survey_of(survey(wrong))


@pytest.mark.parametrize(
    ("wants", "name"), [("mean", "drr"), ("distribution", "hh"), ("both", "hh")]
)
def test_what_is_wanted_of_numbers_can_be_had_of_those_who_answer(wants, name):
    asked = {"name": "sleep", "ask": "?", **QUESTIONS["sleep"], "wants": wants, "optional": True}
    found = survey_of({"title": "Health", "epsilon": 1, "questions": [asked]}).collection
    assert found.asked("sleep").mechanism.name == name


@pytest.mark.parametrize("label", ["Rather not say", "no answer", "(no answer)"])
def test_no_answer_may_read_like_a_skip(label):
    one = {"name": "a", "ask": "A?", "kind": "choice", "answers": ["yes", label]}
    data = {"title": "T", "epsilon": 1, "questions": [one]}
    assert survey_of(data)
    one["optional"] = True
    with pytest.raises(InvalidArgument, match="skip"):
        survey_of(data)
    one["answers"] = ["yes", "no"]
    data["texts"] = {"de": {"a": {"answers": ["ja", label]}}}
    with pytest.raises(InvalidArgument, match="reads like a skip"):
        survey_of(data)


@pytest.mark.slow
def test_the_price_of_the_option_is_told():
    data = survey(respondents=20_000)
    found = verdicts(survey_of(data).collection, 20_000, partial(mechanism_of, data))
    for one in found:
        least, middle, most = (
            expected.half_width
            for expected in (one.price.required, one.price.nobody, one.price.fifth)
        )
        assert least <= middle * 1.05 < most == one.expectation.half_width
        factors = f"{(middle / least) ** 2:.2f} and {(most / least) ** 2:.2f} times as many people"
        assert factors in one.sentence
        assert "of whom a fifth skip it" in one.sentence
        assert one.to_row()["error_if_not_optional"] == least
    plain = survey(False)
    for one in verdicts(survey_of(plain).collection, 20_000, partial(mechanism_of, plain)):
        assert one.price is None
        assert one.to_row()["error_if_nobody_skips"] is None
    read = Collection.from_manifest(survey_of(data).collection.manifest)
    (first, *_) = verdicts(read, 20_000)
    assert first.price.required is None
    assert "if nobody skips it and" in first.sentence


# ---- tables of partners

ANSWERS = {
    "smoking": ["never", None, "daily"] * 40,
    "sick": [True, None, False] * 40,
    "age": [20.0, None, 70.0] * 40,
    "sleep": [8.0, None, 7.0] * 40,
    "drug": ["tea", None, "coffee"] * 40,
}
TABLES = {
    "pandas": lambda: pd.DataFrame(ANSWERS),
    "pandas, its own types": lambda: pd.DataFrame(ANSWERS).convert_dtypes(),
    "Polars": lambda: pl.DataFrame(ANSWERS),
    "Arrow": lambda: pa.table(ANSWERS),
    "Arrow with NaN": lambda: pa.table({**ANSWERS, "sleep": [8.0, math.nan, 7.0] * 40}),
}


@pytest.mark.parametrize("kind", TABLES)
def test_missing_answers_of_a_table_are_skips_only_if_somebody_says_so(kind, tmp_path):
    table, optional, required = TABLES[kind](), *clients(tmp_path)
    with pytest.raises(InvalidArgument, match=r"smoking: values\[1\]' must be an answer; miss"):
        optional.privatize_table(table)
    (batch,) = optional.privatize_table(table, missing="skip")
    assert batch.n == 120
    with pytest.raises(InvalidArgument, match="missing' must be one of refuse, skip"):
        optional.privatize_table(table, missing="drop")
    with pytest.raises(InvalidArgument, match=r"smoking: values\[1\]"):
        required.privatize_table(table, missing="skip")


def clients(folder):
    """One of an optional survey, and one of the same that is not."""
    for optional in (True, False):
        path = folder / f"{optional}.json"
        path.write_bytes(survey_of(survey(optional)).collection.manifest)
        yield dn.Client(path, memo=folder / f"memo-{optional}")


def test_missing_answers_of_files_are_skips_only_if_somebody_says_so(tmp_path):
    collection = survey_of(survey()).collection
    pq.write_table(pa.table(ANSWERS), tmp_path / "people.parquet")
    with pytest.raises(InvalidArgument, match=r"values\[1\]' must be an answer; missing="):
        privatise_files([tmp_path / "people.parquet"], collection, tmp_path / "no")
    skipped = privatise_files(
        [tmp_path / "people.parquet"], collection, tmp_path / "yes", missing="skip"
    )
    assert skipped == 120


def test_a_client_takes_none_for_a_skip(tmp_path):
    optional, required = clients(tmp_path)
    assert optional.prepare(dict.fromkeys(QUESTIONS))
    with pytest.raises(InvalidArgument, match="smoking"):
        required.prepare(dict.fromkeys(QUESTIONS))
