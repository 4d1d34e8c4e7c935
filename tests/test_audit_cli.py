"""The audit command and the adapters of other libraries."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import deniable
from deniable.audit.peers import peers
from deniable.errors import InvalidArgument

LIAR = """
import random, sys
for line in sys.stdin:
    print(int(line) if random.random() < 0.95 else 1 - int(line))
"""


def run(*arguments, code=0, **options):
    result = subprocess.run(
        [sys.executable, "-m", "deniable", "audit", "--confidence", "0.9999995", *arguments],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "COLUMNS": "140", "PYTHONUTF8": "1"},
        timeout=300,
        **options,
    )
    assert result.returncode == code, result.stdout + result.stderr
    return result


def test_one_mechanism_with_a_chart(tmp_path):
    chart = tmp_path / "audit.html"
    found = run("oue", "-k", "8", "-n", "2000", "--seed", "1", "-c", str(chart)).stdout
    assert "ok: one report: epsilon 1, declared 1" in found
    assert "nothing found: epsilon is at least" in found
    assert chart.stat().st_size > 10_000


def test_json_and_csv():
    rows = json.loads(run("losue", "-t", "3", "-n", "1000", "--seed", "2", "-f", "json").stdout)
    assert [row["method"] for row in rows] == ["from thresholds", "sampled"]
    assert rows[1]["reports"] == 3
    text = run("grr", "-n", "1000", "--seed", "3", "-f", "csv").stdout
    assert [row["verdict"] for row in csv.DictReader(io.StringIO(text))] == ["ok", "nothing found"]


def test_all_mechanisms_keep_their_promise(tmp_path):
    chart = str(tmp_path / "all.svg")
    choices = ("--seed", "4", "-f", "json", "-c", chart)
    found = json.loads(run("--all", "--quick", *choices).stdout)
    assert {row["mechanism"] for row in found} == set(deniable.mechanisms())
    assert {row["verdict"] for row in found} == {"ok", "ok from thresholds", "nothing found"}


def test_a_program_that_lies_too_rarely_ends_with_code_1(tmp_path):
    script = tmp_path / "client.py"
    script.write_text(LIAR)
    command = f'"{sys.executable}" "{script}"'
    found = run("--command", command, "-k", "2", "-n", "2000", code=1).stdout
    assert "violated: epsilon is at least" in " ".join(found.split())
    honest = run("--command", command, "-k", "2", "-n", "2000", "-e", "4", "-f", "json").stdout
    assert json.loads(honest)["verdict"] == "nothing found"


def test_a_function_of_the_current_folder(tmp_path):
    (tmp_path / "client.py").write_text("def report(value):\n    return {'said': value}\n")
    values = ("-v", "yes", "-v", "no", "-n", "500")
    environment = {**os.environ, "PYTHONPATH": str(Path(deniable.__file__).parents[1])}
    result = subprocess.run(
        [sys.executable, "-m", "deniable", "audit", "--callable", "client:report", *values],
        capture_output=True,
        encoding="utf-8",
        cwd=tmp_path,
        env=environment,
        timeout=120,
    )
    assert result.returncode == 1, result.stderr
    assert "reports are deterministic" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "one of: a mechanism, --all"),
        (("oue", "--all"), "one of: a mechanism, --all"),
        (("--callable", "json"), "module:function"),
        (("--callable", "json:nothing"), "the name of a function"),
        (("--library", "nobody"), "multi-freq-ldpy, pure-ldp, opendp"),
        (("nobody",), "'mechanism' must be one of"),
    ],
)
def test_refusals(arguments, words):
    assert words in run(*arguments, code=2).stderr


def test_subset_selection_of_multi_freq_ldpy_leaks_through_its_order():
    pytest.importorskip("multi_freq_ldpy")
    named = {peer.name: peer for peer in peers("multi-freq-ldpy", 16, 1.0, [0, 8])}
    assert named["SS, as returned"].audit([0, 8], n=1_000).verdict == "violated"
    found = named["SS, as a set"].audit([0, 8], n=1_000, confidence=0.9999995)
    assert found.ok
    with pytest.raises(InvalidArgument, match="promises nothing for more"):
        named["GRR"].audit([0, 8], reports=2)


def test_rappor_of_pure_ldp_never_clears_a_true_bit():
    pytest.importorskip("pure_ldp")
    named = {peer.name: peer for peer in peers("pure-ldp", 16, 1.0, [0, 8])}
    assert named["RAPPOR"].audit([0, 8], n=1_000).verdict == "violated"


def test_opendp_randomised_response():
    pytest.importorskip("opendp")
    for peer in peers("opendp", 4, 1.0, [0, 3]):
        found = peer.audit([0, 3], n=400, confidence=0.9999995)
        assert found.ok, found.words
