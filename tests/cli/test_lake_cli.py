"""`deniable tally`, and `deniable estimate` on folders, keys and addresses."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import deniable as dn
from command import run
from lakes import cut, some, write

M = dn.OUE(["car", "train", "bus"], 2.0)
REPORTS = some(M, 600, ids=True)


@pytest.fixture
def lake(tmp_path):
    for i, region in enumerate(("north", "south")):
        for week in (1, 2):
            part = REPORTS[(2 * i + week - 1) * 150 :][:150]
            cut(part, tmp_path / "lake" / f"region={region}" / f"week={week}", 70)
    return tmp_path / "lake"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def read(path):
    tally = dn.Tally.from_bytes(path.read_bytes())
    tally.sources = frozenset()
    return tally


def estimated(*arguments, **options):
    return json.loads(run("estimate", *arguments, "-f", "json", **options).stdout)


def test_a_tally_of_a_folder(lake, tmp_path):
    said = run("tally", lake, "-o", tmp_path / "week.tally").stdout
    assert "week.tally: 600 reports from 8 files" in said
    assert read(tmp_path / "week.tally") == M.tally(REPORTS)
    assert names(tmp_path) == ["lake", "week.tally"]


def test_a_tally_of_each_group(lake, tmp_path):
    said = run("tally", lake, "--by", "region,week", "-o", "out", cwd=tmp_path).stdout
    assert said.count("150 reports from 2 files") == 4
    assert read(tmp_path / "out" / "region=south" / "week=1.tally") == M.tally(REPORTS[300:450])
    counts = ("--method", "unbiased")
    assert estimated("out", *counts, cwd=tmp_path) == estimated(lake, *counts)
    assert estimated("out/region=north", cwd=tmp_path)["n"] == 300
    weeks = run("tally", lake / "region=north", "--by", "week", "-o", "weeks", cwd=tmp_path)
    assert "weeks/week=2.tally" in weeks.stdout
    series = run("series", "weeks/week=1.tally", "weeks/week=2.tally", cwd=tmp_path).stdout
    assert "week=1" in series


def test_estimates_of_folders_and_addresses(lake, tmp_path):
    expected = M.estimate(REPORTS, "likelihood").frequencies
    for given in ((lake,), (lake.as_uri(),), sorted(lake.rglob("*.parquet"))):
        found = estimated(*given, "--method", "likelihood")
        assert found["n"] == 600
        shares = [value["frequency"] for value in found["values"]]
        np.testing.assert_allclose(shares, expected, atol=1e-9)


def test_reports_that_are_not_held(lake, monkeypatch):
    """As many as do not fit into memory are read in passes."""
    held = estimated(lake, "--method", "likelihood")
    monkeypatch.setattr("deniable.cli.files.HELD", 0)
    passes = estimated(lake, "--method", "likelihood")
    for one, other in zip(held["values"], passes["values"], strict=True):
        assert one["frequency"] == pytest.approx(other["frequency"], abs=1e-9)


def test_tallies_and_reports_together(lake, tmp_path):
    run("tally", lake / "region=north", "-o", tmp_path / "north.tally")
    assert estimated(tmp_path / "north.tally", lake / "region=south")["n"] == 600
    refused = run("estimate", tmp_path / "north.tally", lake, code=2).stderr
    assert "4 files are in two of the parts: their reports would count twice" in refused


def test_a_question_of_several(tmp_path):
    m = dn.Joint.of_questions({"way": M, "ever": dn.BRR(dn.YesNo(), 1.0)})
    cut(some(m), tmp_path / "lake", 200)
    found = estimated(tmp_path / "lake", "-q", "way")
    run("tally", tmp_path / "lake", "-o", tmp_path / "x.tally")
    assert estimated(tmp_path / "x.tally", "-q", "way")["n"] == found["n"] < 500


def test_duplicates(lake, tmp_path):
    again = write(lake / "region=north" / "week=1" / "again.parquet", REPORTS[:100], 7)
    for command in (("tally", lake, "-o", tmp_path / "x.tally"), ("estimate", lake)):
        refused = run(*command, code=2).stderr.replace("\n", " ")
        assert "100 reports have ids that came before" in refused
        assert "--duplicates drop" in refused
        assert run(*command, "--duplicates", "drop").stdout
    assert read(tmp_path / "x.tally") == M.tally(REPORTS)
    assert again.exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("-o", "there.tally"), "'output' must be a name that nothing has yet"),
        (("-o", "no/x.tally"), "in a folder that exists"),
        (("-o", "x", "--by", "round"), "has no round="),
        (("-o", "x", "--by", "week,"), "has no ="),
        (("-o", "x", "--engine", "dask"), "'engine' must be one of local, spark"),
        (("-o", "x", "--master", "local[2]"), "left out with the engine 'local'"),
        (("-o", "x", "--duplicates", "keep"), "refuse or drop"),
        (("-o", "x", "-m", "none.json"), "No such file"),
    ],
)
def test_refusals(options, told, lake, tmp_path):
    (tmp_path / "there.tally").write_bytes(b"")
    found = run("tally", lake, *options, code=2, cwd=tmp_path)
    assert told in found.stderr.replace("\n", " ")
    assert names(tmp_path) == ["lake", "there.tally"]


def test_spark_is_an_extra(lake, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    found = run("tally", lake, "-o", "x", "--engine", "spark", code=2, cwd=tmp_path)
    assert "pip install 'deniable[spark]'" in found.stderr.replace("\n", " ")


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.parametrize("how", ["interrupt", "kill"])
def test_work_that_was_interrupted_goes_on(how, tmp_path):
    """Ctrl-C, or the end of the process at any moment: the same command ends the work."""
    slow = dn.OLH(3000, 2.0)
    reports = some(slow, 60_000)
    cut(reports, tmp_path / "lake", *[1500] * 39, rows=1500)
    command = ["tally", "lake", "-o", "x.tally", "--resume", "notes"]
    program = (
        "import deniable.engines.tallying as t, deniable.engines.local as l; t.PACE = 0.0\n"
        "l.MOST_TOGETHER = 1\n"
        "from deniable.cli import main; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, *command], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    end = time.monotonic() + 120
    while not (tmp_path / "notes").exists() and time.monotonic() < end:
        time.sleep(0.005)
    if how == "kill":
        process.kill()
        process.communicate()
    else:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 130, said
        assert "What was counted is in notes. Run the same command again to go on." in said
        assert "Traceback" not in said
    assert not (tmp_path / "x.tally").exists()
    run(*command, cwd=tmp_path)
    assert read(tmp_path / "x.tally") == slow.tally(reports)
    assert not (tmp_path / "notes").exists()
