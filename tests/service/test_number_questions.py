"""A survey about numbers, from its file to the answers of its collector over HTTP."""

import json
import tomllib
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from collectors import PARTNER_KEY, Collector
from command import run
from deniable.collection.survey import survey_of
from deniable.service.access import new_token
from deniable.service.store import open_store

pytestmark = [pytest.mark.network, pytest.mark.slow]
SURVEY = """
title = "Sleep and money"
epsilon = 24.0
respondents = 2000
[[questions]]
name = "sleep"
ask = "How many hours did you sleep last night?"
kind = "number"
lo = 0
hi = 24
step = 0.5
unit = "hours"
wants = "both"
[[questions]]
name = "income"
ask = "What do you earn in a month?"
kind = "number"
lo = 0
hi = 20000
unit = "€"
mechanism = "hh"
design = {bins = 40}
[[questions]]
name = "rent"
ask = "What do you pay for your flat in a month?"
kind = "number"
lo = 0
hi = 5000
wants = "mean"
optional = true
"""
#: A standard error that chance exceeds less than once in 10^7 runs.
FAR = 5.4


def people(n):
    rng = np.random.default_rng(5)
    income = rng.lognormal(8, 0.6, n).round()
    rent = pd.Series(np.where(rng.random(n) < 0.2, np.nan, (0.3 * income).round()))
    sleep = np.round(2 * np.clip(rng.normal(7, 1.3, n), 0, 24)) / 2
    return pd.DataFrame({"sleep": sleep, "income": income, "rent": rent})


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """A collector with 2,000 answers from a table and one from a device, and who answered what."""
    folder = tmp_path_factory.mktemp("numbers")
    store = open_store(str(folder / "store.db"), survey_of(tomllib.loads(SURVEY)))
    token = new_token(store, "ada")
    store.close()
    table = people(2000)
    one = {"sleep": 7.75, "income": 1e9, "rent": None}
    with Collector(folder / "store.db") as collector:
        url = f"http://127.0.0.1:{collector.port}"
        with dn.Client(url, key=PARTNER_KEY, max_epsilon=32) as client:
            assert client.send_all(client.privatize_table(table, missing="skip")) == 2000
        with dn.Client(url, max_epsilon=32) as client:
            assert client.answer(one)

        def ask(path, **query):
            found = collector.ask(
                "GET", f"/v2/{path}?{urlencode(query, doseq=True)}", authorization=f"Bearer {token}"
            )
            return found[0], json.loads(found[2])

        yield ask, pd.concat([table, pd.DataFrame([one])]), folder / "store.db"


def rows(document):
    return {row["statistic"]: row for row in document["values"]}


def near(row, truth):
    """H0: the estimate is normal around the truth with its standard error."""
    return abs(row["estimate"] - truth) <= FAR * row["standard_error"]


def test_means_and_quantiles_are_those_of_the_people(asked):
    ask, table, _ = asked
    income = table.income.clip(0, 20_000)
    for name, truth in (("sleep", table.sleep.mean()), ("income", income.mean())):
        status, document = ask(f"estimates/{name}")
        assert status == 200
        assert document["n"] == 2001
        assert near(rows(document)["mean"], truth)
    assert document["of"] == "answers clipped to [0, 20,000] €"
    status, document = ask("estimates/rent")
    assert near(rows(document)["mean"], table.rent.mean())
    assert document["skipped"] == pytest.approx(table.rent.isna().mean(), abs=0.05)


def test_what_is_asked_over_http_is_answered(asked):
    ask, table, _ = asked
    income = table.income.clip(0, 20_000)
    query = {"cdf": ["1500", "4000"], "quantile": "0.9", "range": "2000..4000"}
    status, document = ask("estimates/income", **query)
    assert status == 200
    found = rows(document)
    assert near(found["share up to 1,500"], (income <= 1500).mean())
    assert near(found["share up to 4,000"], (income <= 4000).mean())
    assert near(found["share from 2,000 to 4,000"], income.between(2000, 4000).mean())
    (ninth,) = (row for name, row in found.items() if name.startswith("90 %"))
    assert near(ninth, income.quantile(0.9))
    for wrong in ({"quantile": "2"}, {"cdf": "much"}, {"range": "5"}, {"view": "cdf"}):
        status, problem = ask("estimates/income", **wrong)
        assert (status, problem["type"]) == (422, "urn:deniable:invalid-choice"), wrong
    assert ask("estimates/rent", quantile="0.5")[0] == 422


def test_the_page_is_told_what_may_be_asked(asked):
    ask, _, _ = asked
    told = {one["name"]: one for one in ask("status")[1]["questions"]}
    assert set(told["income"]["queries"]) == {"cdf", "quantile", "range"}
    assert told["rent"]["queries"] == {}
    for view in ({}, {"view": "cdf"}):
        status, chart = ask("estimates/income", format="chart", range="0..4000", **view)
        assert (status, chart["usermeta"]["views"]) == (200, ["density", "cdf"])
        assert "€" in json.dumps(chart, ensure_ascii=False)
        assert chart["usermeta"]["columns"]["statistic"][-1] == "share from 0 to 4,000"
        assert chart["usermeta"]["columns"]["estimate"][-1].endswith(" %")
    assert ask("estimates/income", format="chart", view="pie")[0] == 422
    assert ask("estimates/rent", format="chart")[1]["usermeta"]["views"] == []


def test_an_export_is_asked_on_the_command_line(asked, tmp_path):
    _, table, store = asked
    run("export", store, tmp_path / "out", "--today")
    (file,) = (tmp_path / "out" / "question=income").rglob("*.parquet")
    given = ("--ask", "quantile=0.5", "--ask", "range=0..1500", "-f", "json")
    document = json.loads(run("estimate", file, *given).stdout)
    found = rows(document)
    assert near(found["mean"], table.income.clip(0, 20_000).mean())
    assert near(found["share from 0 to 1,500"], (table.income <= 1500).mean())
