"""Bytes that must never change: old reports and tallies are read for ever."""

import json
from pathlib import Path

import pytest

import deniable as dn
from deniable.domain import text_code
from deniable.errors import InvalidArgument
from deniable.randomness import ByteCoins

FOLDER = Path(__file__).parent / "vectors" / "v1"
VECTORS = json.loads((FOLDER / "reports.json").read_text())


def plain(report):
    if isinstance(report, tuple):
        return [plain(part) for part in report]
    return report.hex() if isinstance(report, bytes) else report


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["spec"]["mechanism"])
def test_reports_are_the_same_function_of_value_and_coins(vector):
    m = dn.from_spec(vector["spec"])
    assert m.to_spec() == vector["spec"]
    for case in vector["reports"]:
        coins = ByteCoins(bytes.fromhex(case["coins"]))
        value = case["value"]
        index = text_code(value) if isinstance(value, str) else value
        report = m.report(index, coins)
        coins.finish()
        assert plain(report) == case["report"]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["spec"]["mechanism"])
def test_thresholds_are_what_this_version_derives(vector):
    """The constructor finds the published integers from epsilon and the design alone."""
    spec = vector["spec"]
    googles = spec["thresholds"].get("permanent") == str(3 << 62)  # f = 1/2
    if spec["mechanism"] == "ue" or googles:
        pytest.skip("p and q are given, not derived")
    domain, family = dn.Domain.from_spec(spec["domain"]), dn.mechanisms()[spec["mechanism"]]
    budgets = [spec[name] for name in family.budgets]
    derived = [family(domain, *budgets, **spec["design"], **c) for c in calibrations(family)]
    assert spec in [m.to_spec() for m in derived]


def calibrations(family):
    """The ways to find thresholds."""
    chain = "epsilon_1" in family.budgets
    return [{"calibration": name} for name in ("exact", "paper")] if chain else [{}]


def test_an_old_tally_is_read():
    tally = dn.Tally.from_bytes((FOLDER / "tally.bin").read_bytes())
    assert tally.n == tally.identified == 60
    assert tally.mechanism == dn.OUE(["car", "train", "other"], 1.0)
    assert tally.to_bytes() == (FOLDER / "tally.bin").read_bytes()


def damage(**changes):
    return {**dn.GRR(4, 1.0).to_spec(), **changes}


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        (None, "spec"),
        ({}, "spec"),
        (damage(extra=1), "spec"),
        (damage(deniable=2), "deniable"),
        (damage(mechanism="magic"), "mechanism"),
        (damage(mechanism=["grr"]), "mechanism"),
        (damage(epsilon="1"), "epsilon"),
        (damage(epsilon=0.99), "thresholds"),
        (damage(thresholds={}), "thresholds"),
        (damage(thresholds={"keep": 5}), "keep"),
        (damage(thresholds={"keep": "5.0"}), "keep"),
        (damage(thresholds={"keep": "0"}), "keep"),
        (damage(thresholds={"keep": "9" * 5000}), "keep"),
        (damage(deniable=True), "deniable"),
        (damage(epsilon=True), "epsilon"),
        (damage(epsilon=None), "epsilon"),
        (damage(epsilon=10**400), "epsilon"),
        (damage(domain={"labels": {"a": 1, "b": 2}}), "domain"),
        (damage(thresholds={"keep": str(2**64)}), "keep"),
        (damage(thresholds={"keep": str(2**64 - 1)}), "thresholds"),
        (damage(design={"g": 3}), "design"),
        (damage(domain={"size": 1}), "domain"),
    ],
)
def test_bad_specs_are_refused(spec, name):
    with pytest.raises(InvalidArgument) as refusal:
        dn.from_spec(spec)
    assert refusal.value.name == name
