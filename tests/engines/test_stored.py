"""Decoders that need reports, as passes over files: the same numbers as in memory."""

import numpy as np
import pytest

import deniable as dn
from deniable.core.reports import Reports
from deniable.core.stored import Pass
from deniable.engines import LocalEngine, files, report_files, stored, tally_files
from deniable.errors import InvalidArgument, MismatchError
from deniable.estimation.frequencies.methods import methods_for, methods_of_counts
from deniable.estimation.frequencies.mle import newton
from deniable.estimation.frequencies.mle.likelihood import efficient, information, maximise
from deniable.mechanisms.frequency import FrequencyOracle
from lakes import cut, member, some, write

WORDS = ["Bern", "Basel", "Chur"]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Many pieces and batches."""
    monkeypatch.setattr(files, "PIECE_ROWS", 250)
    monkeypatch.setattr(stored, "PASS_ROWS", 150)


def assert_same(found, expected):
    ours, theirs = found.to_pandas(), expected.to_pandas()
    for column in theirs.select_dtypes("number"):
        np.testing.assert_allclose(ours[column], theirs[column], rtol=1e-9, atol=1e-9)
    assert (found.n, found.errors, found.method) == (expected.n, expected.errors, expected.method)


def by_reports(m):
    """Methods that counts are not enough for."""
    if not isinstance(m, FrequencyOracle):
        return set()
    asked = m if m.domain.is_listed else m.among(WORDS)
    return set(methods_for(asked)) - set(methods_of_counts(asked))


MEMBERS = {name: member(name) for name, family in dn.mechanisms().items() if family.tasks}


@pytest.mark.slow
@pytest.mark.parametrize("name", MEMBERS)
def test_every_method_of_every_mechanism(name, tmp_path):
    """Methods of counts see the same tally; all others, and the default, the same reports."""
    m = MEMBERS[name]
    reports = some(m, 400, ids=True)
    cut(reports, tmp_path, 300, 0, rows=70)
    asked = {name: WORDS for name, query in m.task.queries_of(m).items() if query.needed}
    found = report_files([tmp_path], engine=LocalEngine(2))
    for method in {m.task.default, *by_reports(m)}:
        assert_same(found.estimate(method, **asked), m.estimate(reports, method, **asked))
    tally = found.tally()
    assert tally.sources == found.sources
    tally.sources = frozenset()
    assert tally == m.tally(reports)


BY_REPORTS = [name for name, m in MEMBERS.items() if "likelihood" in by_reports(m)]


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_REPORTS)
def test_a_sample_has_the_same_reports(name, tmp_path):
    """What looks at some of the reports only looks at the same ones, however they are cut."""
    m = MEMBERS[name] if MEMBERS[name].domain.is_listed else MEMBERS[name].among(WORDS)
    reports = some(m, 900) if m.domain.is_listed else some(MEMBERS[name], 900).among(WORDS)
    cut(Reports(MEMBERS[name], reports.data), tmp_path, 400, rows=90)
    found = report_files([tmp_path])
    found = found if m == MEMBERS[name] else found.among(WORDS)
    f = np.full(m.domain.size, 1 / m.domain.size)
    for sample in (40, 5000):
        ours, theirs = (information([one], f, sample=sample) for one in (found, reports))
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("name", "k"), [("oue", 20), ("olh", 40), ("sue", 12)])
@pytest.mark.slow
def test_the_maximum_and_the_efficient_estimate(name, k, tmp_path, monkeypatch):
    monkeypatch.setattr(newton, "_sample", lambda size: 100)
    m = dn.mechanism(name, k, 2.0)
    reports = some(m, 2000)
    cut(reports, tmp_path, 900)
    found = report_files([tmp_path])
    ours, theirs = maximise([found]), maximise([reports], memory=0)
    assert ours.passes == theirs.passes
    np.testing.assert_allclose(ours.frequencies, theirs.frequencies, rtol=0, atol=1e-9)
    for one, other in zip(
        efficient([found], theirs, sample=300),
        efficient([reports], theirs, sample=300),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_reports_that_were_dropped_are_not_read(tmp_path):
    m = dn.OUE(12, 1.0)
    reports = some(m, 600, ids=True)
    cut(Reports.concatenate([reports, reports[:250]]), tmp_path, 500)
    with pytest.raises(MismatchError, match="250 reports have ids that came before"):
        report_files([tmp_path])
    found = report_files([tmp_path], duplicates="drop")
    assert found.tally().n == 600
    assert_same(found.estimate("likelihood"), m.estimate(reports, "likelihood"))


@pytest.mark.slow
def test_one_question_of_several(tmp_path):
    parts = {"way": dn.OUE(12, 1.0), "home": dn.OLH(30, 2.0), "drug": dn.ORAPPOR(dn.Text(), 2.0)}
    m = dn.Joint.of_questions(parts)
    rng = np.random.default_rng(5)
    people = [{"way": i % 12, "home": i % 7, "drug": WORDS[i % 3]} for i in range(2000)]
    reports = m.privatize(people, rng)
    cut(reports, tmp_path, 800, 1, rows=90)
    found = report_files([tmp_path])
    for question in parts:
        asked = {"candidates": WORDS} if question == "drug" else {}
        one = m.about(question, found)
        other = m.about(question, reports)
        assert one.mechanism == other.mechanism == parts[question]
        for method in ("likelihood", "bayes"):
            expected = other.mechanism.estimate(other, method, **asked)
            assert_same(one.estimate(method, **asked), expected)
    with pytest.raises(InvalidArgument, match="all of its sums together have no meaning"):
        found.estimate()


def test_combined_with_tallies_and_reports(tmp_path):
    one, other, third = dn.OUE(12, 1.0), dn.OUE(12, 2.0), dn.GRR(12, 1.0)
    parts = [some(m, 500, seed) for seed, m in enumerate((one, other, third))]
    path = write(tmp_path / "a.parquet", parts[0])
    rest = [parts[1], third.tally(parts[2])]
    found = dn.combine([report_files([path]), *rest], "likelihood")
    assert_same(found, dn.combine([parts[0], *rest], "likelihood"))


def test_a_file_is_no_part_of_two(tmp_path):
    m = dn.OUE(12, 1.0)
    a, b = cut(some(m, 500), tmp_path, 200)
    tally = tally_files([tmp_path])[()]
    with pytest.raises(MismatchError, match="1 file is in two of the parts"):
        dn.combine([report_files([a]), tally])
    with pytest.raises(InvalidArgument, match="with all files of one mechanism together"):
        dn.combine([report_files([a]), report_files([b])])


def test_files_without_reports(tmp_path):
    found = report_files([write(tmp_path / "a.parquet", some(dn.OUE(12, 1.0), 0))])
    assert found.tally().n == 0
    with pytest.raises(InvalidArgument, match="at least one report"):
        found.estimate()


class Numbers(Pass):
    """The numbers of all reports, as a pass sees them."""

    def read(self, reports, start):
        return list(range(start, start + len(reports)))

    def merge(self, one, other):
        return one + other


@pytest.mark.parametrize("question", [None, "b"])
def test_reports_are_numbered_without_gaps(question, tmp_path):
    m = dn.Joint.of_questions({"a": dn.OUE(12, 1.0), "b": dn.OUE(12, 1.0)})
    reports = some(m, 700, ids=True)
    cut(Reports.concatenate([reports[:300], reports]), tmp_path, 350, 1, 0, 77, rows=33)
    found = report_files([tmp_path], duplicates="drop", engine=LocalEngine(2))
    found = found if question is None else found.about(question)
    assert sorted(found.pass_over(Numbers())) == list(range(found.tally().n))


@pytest.mark.slow
def test_the_same_sums_in_every_run(tmp_path):
    """To the last bit: threads do not change the order of additions."""
    m = dn.OUE(12, 1.0)
    cut(some(m, 3000), tmp_path, *[100] * 20)
    runs = [
        report_files([tmp_path], engine=LocalEngine(2)).estimate("likelihood") for _ in range(4)
    ]
    assert len({run.frequencies.tobytes() for run in runs}) == 1


def test_progress_counts_the_passes(tmp_path):
    told = []
    cut(some(dn.OUE(12, 1.0), 400), tmp_path, 100)
    found = report_files([tmp_path], progress=lambda *step: told.append(step))
    found.estimate("unbiased")
    assert {doing for doing, _, _ in told} == {"counting"}
    found.estimate("likelihood")
    assert {"pass 1", "pass 2"} <= {doing for doing, _, _ in told}
    assert all(done <= total == 400 for _, done, total in told)
