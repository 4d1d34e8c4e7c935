"""Bytes that must never change: every client makes these reports, and refuses these documents."""

import hashlib
import json
import sys

import numpy as np
import pytest

import deniable as dn
from deniable.answers.text import Candidates
from deniable.core.domain import kinds
from deniable.core.registry import find
from deniable.core.tally import Tally
from deniable.errors import BrokenPromise, InvalidArgument, Unsupported
from deniable.randomness import ByteCoins
from deniable.texts import tidy
from places import VECTORS

sys.path.insert(0, str(VECTORS.parent))


def read(part):
    return {path.stem: json.loads(path.read_text()) for path in sorted((VECTORS / part).iterdir())}


MECHANISMS, KINDS = read("mechanisms"), read("kinds")
GOOD = [(name, case) for name, file in MECHANISMS.items() for case in file["good"]]
BAD = [(name, case) for name, file in MECHANISMS.items() for case in file["bad"]]
GOOD_ANSWERS = [(name, case) for name, file in KINDS.items() for case in file["good"]]
BAD_ANSWERS = [(name, case) for name, file in KINDS.items() for case in file["bad"]]


def words(case):
    return case if isinstance(case, str) else case.get("why", "")


def whole(value):
    """An encoded answer from JSON: of a text a decimal string, of several questions a list."""
    return tuple(map(whole, value)) if isinstance(value, list) else int(value)


def type_of(refusal):
    """How every client names this refusal of something published."""
    known = {BrokenPromise: "broken-promise", Unsupported: "unsupported"}
    return known.get(type(refusal), "bad-manifest")


# ---- every vector is known, and everything for devices has its file


def test_everything_for_devices_has_its_file():
    families = {name for name, family in dn.mechanisms().items() if family.on_devices}
    assert set(MECHANISMS) == families
    forms = {form for kind in kinds().values() for form in kind.forms if form is not Candidates}
    described = {type(dn.Domain.from_spec(case["domain"])) for _, case in GOOD_ANSWERS}
    assert described == forms
    assert {path.stem for path in (VECTORS / "tally").iterdir()} <= families


def test_the_files_have_good_and_bad_cases_of_their_own():
    for file in (*MECHANISMS.values(), *KINDS.values()):
        assert list(file) == ["about", "good", "bad"]
        assert file["good"]
        assert file["bad"]
    for name, case in (*GOOD, *BAD):
        assert case["spec"]["mechanism"]["name"] == name


def test_make_writes_these_files(tmp_path):
    """What the program makes today is what was made when the version began."""
    from make import main

    main(tmp_path)
    for part in ("mechanisms", "kinds"):
        for path in sorted((tmp_path / part).iterdir()):
            assert path.read_text() == (VECTORS / part / path.name).read_text(), path.name


# ---- mechanisms


@pytest.mark.parametrize(("name", "case"), GOOD, ids=words)
def test_reports_are_the_same_function_of_value_and_coins(name, case):
    m = dn.from_spec(case["spec"])
    assert type(m) is find(name)
    assert m.to_spec() == case["spec"]
    coins = ByteCoins(bytes.fromhex(case["coins"]))
    report = m.report(whole(case["value"]), coins)
    coins.finish()
    row = bytes.fromhex(case["row"])
    assert m.layout.row(report) == m.pack([report]).tobytes() == row
    assert m.layout.refusal(row) is None


@pytest.mark.parametrize(
    "spec",
    list({json.dumps(case["spec"]): case["spec"] for _, case in GOOD}.values()),
    ids=lambda spec: spec["mechanism"]["name"],
)
def test_thresholds_are_what_this_version_derives(spec):
    """The constructor finds the published integers from epsilon and the design alone."""
    leaf = spec["mechanism"]
    given = leaf["name"] == "ue" or leaf.get("thresholds", {}).get("permanent") == str(3 << 62)
    if given or "branches" in leaf:
        return  # p and q are given, or f = 1/2; a draw has only the integers of its branches
    domain, family = dn.Domain.from_spec(spec["domain"]), find(leaf["name"])
    budgets = [leaf[name] for name in family.budgets]
    derived = [family(domain, *budgets, **leaf["design"], **c) for c in calibrations(family)]
    assert spec in [m.to_spec() for m in derived]


def calibrations(family):
    """The ways to find thresholds."""
    chain = "epsilon_1" in family.budgets
    return [{"calibration": name} for name in ("exact", "paper")] if chain else [{}]


@pytest.mark.parametrize(("name", "case"), [one for one in BAD if "row" not in one[1]], ids=words)
def test_bad_specs_are_refused(name, case):
    with pytest.raises(InvalidArgument) as refusal:
        dn.from_spec(case["spec"])
    assert type_of(refusal.value) == case["type"]


@pytest.mark.parametrize(("name", "case"), [one for one in BAD if "row" in one[1]], ids=words)
def test_impossible_rows_are_refused(name, case):
    m, row = dn.from_spec(case["spec"]), bytes.fromhex(case["row"])
    assert case["type"] == "impossible-report"
    assert m.layout.refusal(row)
    if len(row) == m.dtype.itemsize:
        column = np.frombuffer(row, dtype=m.dtype.base).reshape(1, *m.dtype.shape)
        with pytest.raises(InvalidArgument, match="'reports' must be"):
            m.tally().add(dn.Reports(m, column))


def test_a_number_that_was_skipped_in_the_specification():
    """The row of section 9 of the format's description, which other programs made."""
    domain = dn.Number(0, 24, 0.25, optional=True)
    m = dn.DRR(domain, 1.0, ell=1, shown=8)
    assert m.keep == 6717849057872324379
    coins = "d5d23d4d44322c22902b8a6fff792389e3963181c17d90f9"
    report = m.report(domain.skip, ByteCoins(bytes.fromhex(coins)))
    assert m.layout.row(report).hex() == "2201"


def damage(**changes):
    spec = dn.GRR(4, 1.0).to_spec()
    return {**spec, "mechanism": {**spec["mechanism"], **changes}}


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        (None, "spec"),
        ({}, "deniable"),
        ({**damage(), "extra": 1}, "spec"),
        ({**damage(), "deniable": 1}, "deniable"),
        ({**damage(), "deniable": 3}, "deniable"),
        ({**damage(), "deniable": True}, "deniable"),
        ({**damage(), "mechanism": "grr"}, "mechanism"),
        ({**damage(), "domain": {"labels": {"a": 1, "b": 2}}}, "domain"),
        ({**damage(), "domain": {**dn.Domain(4).to_spec(), "size": 1}}, "domain"),
        ({**damage(), "domain": {**dn.Domain(4).to_spec(), "kind": ["choice"]}}, "kind"),
        (damage(extra=1), "mechanism"),
        (damage(name="magic"), "mechanism"),
        (damage(name=["grr"]), "mechanism"),
        (damage(epsilon="1"), "epsilon"),
        (damage(epsilon=True), "epsilon"),
        (damage(epsilon=None), "epsilon"),
        (damage(epsilon=10**400), "epsilon"),
        (damage(epsilon=0.99), "thresholds"),
        (damage(thresholds={}), "thresholds"),
        (damage(thresholds={"keep": 5}), "keep"),
        (damage(thresholds={"keep": "5.0"}), "keep"),
        (damage(thresholds={"keep": "0"}), "keep"),
        (damage(thresholds={"keep": "9" * 5000}), "keep"),
        (damage(thresholds={"keep": str(2**64)}), "keep"),
        (damage(thresholds={"keep": str(2**64 - 1)}), "thresholds"),
        (damage(design={"g": 3}), "design"),
    ],
)
def test_damaged_specs_are_refused_by_name(spec, name):
    with pytest.raises(InvalidArgument) as refusal:
        dn.from_spec(spec)
    assert refusal.value.name == name


# ---- kinds


@pytest.mark.parametrize(("name", "case"), GOOD_ANSWERS, ids=words)
def test_answers_are_encoded_alike(name, case):
    domain = dn.Domain.from_spec(case["domain"])
    assert domain.to_spec() == case["domain"]
    (value,) = domain.encode([case["answer"]]).tolist()
    assert value == whole(case["value"])
    if "tidy" in case:
        assert tidy(case["answer"], domain.fold) == case["tidy"]


@pytest.mark.parametrize(("name", "case"), BAD_ANSWERS, ids=words)
def test_bad_answers_and_domains_are_refused(name, case):
    if case["type"] == "bad-answer":
        domain = dn.Domain.from_spec(case["domain"])
        with pytest.raises(InvalidArgument, match="values"):
            domain.encode([case["answer"]])
        return
    with pytest.raises(InvalidArgument) as refusal:
        dn.Domain.from_spec(case["domain"]).require_publishable()
    assert type_of(refusal.value) == case["type"]


# ---- tallies


@pytest.mark.parametrize("path", sorted((VECTORS / "tally").iterdir()), ids=lambda path: path.stem)
def test_tallies_are_read_for_ever(path):
    data = path.read_bytes()
    tally = Tally.from_bytes(data)
    assert tally.to_bytes() == data
    assert (tally.mechanism.name, tally.n, tally.identified) == (path.stem, 60, 60)
    ids = np.arange(60 * 16, dtype=np.uint16).astype(np.uint8).reshape(60, 16)
    digests = (int.from_bytes(hashlib.sha256(row.tobytes()).digest(), "big") for row in ids)
    assert tally.fingerprint == sum(digests) % 2**256


# ---- what was released


def changed(folder):
    """The files that are named in RELEASED, with their SHA-256, and are not what they were."""
    lines = (line.split() for line in (folder / "RELEASED").read_text().splitlines())
    return [
        name for name, digest in lines
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest
    ]  # fmt: skip


def test_released_files_never_change(tmp_path):
    assert changed(VECTORS) == []
    (tmp_path / "a.json").write_text("{}")
    digest = hashlib.sha256(b"{}").hexdigest()
    (tmp_path / "RELEASED").write_text(f"a.json {digest}\n")
    assert changed(tmp_path) == []
    (tmp_path / "a.json").write_text("[]")
    assert changed(tmp_path) == ["a.json"]
