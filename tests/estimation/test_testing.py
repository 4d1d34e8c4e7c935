"""Tests of hypotheses, and what they return."""

import json

import pytest

from deniable import views
from deniable.estimation.testing import TestResult


@pytest.fixture
def result():
    return TestResult(
        hypothesis="the mean is 40",
        sentence="The mean is not 40.",
        note="There are few reports.",
        measure="z",
        statistic=2.5,
        p_value=0.0124,
        effect_name="difference",
        effect=1.25,
        interval=(0.27, 2.23),
        confidence=0.95,
        power=0.8,
        detectable=1.4,
        n=(1_000,),
        method="normal",
        source="DRR",
    )


def test_a_result_is_exported_with_what_it_says(result):
    assert result.significant
    assert result.rows() == [
        {
            "hypothesis": "the mean is 40", "statistic": 2.5, "df": None, "p_value": 0.0124,
            "effect": 1.25, "low": 0.27, "high": 2.23, "power": 0.8, "detectable": 1.4,
        }
    ]  # fmt: skip
    data = json.loads(result.to_json())
    assert (data["sentence"], data["n"], len(data["tests"])) == ("The mean is not 40.", [1_000], 1)
    assert str(result) == "The mean is not 40. There are few reports."


def test_a_result_is_a_table_and_a_chart(result):
    shown = views.table(result)
    words = [str(column.header) for column in shown.columns]
    assert words == ["difference", "from", "to", "z", "p", "power to detect 1.4"]
    spec = views.chart(result)
    assert "Is it true that the mean is 40?" in spec["description"]
    assert spec["layer"][0]["data"]["values"] == [{"none": 0.0}]
