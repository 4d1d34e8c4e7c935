"""The audit command and the adapters of other libraries."""

import csv
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

import deniable
from deniable.audit.black_box.empirical import audit_mechanism
from deniable.audit.black_box.everything import row_of
from deniable.audit.black_box.peers import peers
from deniable.cli import main
from deniable.errors import InvalidArgument
from deniable.mechanisms import GRR
from deniable.views.audit.findings import survey_table

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


def inside(monkeypatch, capsys, *arguments):
    """The command in this process: exit code, output and errors."""
    monkeypatch.setattr(sys, "argv", ["deniable", "audit", *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    return left.value.code or 0, *capsys.readouterr()


@pytest.mark.slow
def test_one_mechanism_with_a_chart(tmp_path):
    chart = tmp_path / "audit.html"
    found = run("oue", "-k", "8", "-n", "2000", "--seed", "1", "-c", str(chart)).stdout
    assert "ok: one report: epsilon 1, declared 1" in found
    assert "nothing found: epsilon is at least" in found
    assert chart.stat().st_size > 10_000


@pytest.mark.slow
def test_json_and_csv(monkeypatch, capsys):
    sure = ("-n", "1000", "--confidence", "0.9999995")
    asked = ("losue", "-t", "3", "--seed", "2", "-f", "json", *sure)
    rows = json.loads(inside(monkeypatch, capsys, *asked)[1])
    assert [row["method"] for row in rows] == [
        "from thresholds",
        *["enumerated"] * 7,
        "walks",
        "sampled",
    ]
    assert [row["k"] for row in rows] == [16, 2, 2, 2, 3, 3, 3, 5, 16, 16]
    assert rows[2]["what"] == "what is kept"
    assert rows[-1]["reports"] == 3
    text = inside(monkeypatch, capsys, "grr", "--seed", "3", "-f", "csv", *sure)[1]
    assert [row["verdict"] for row in csv.DictReader(io.StringIO(text))] == ["ok", "nothing found"]


def test_verdicts_are_not_broken_where_it_is_narrow(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = inside(monkeypatch, capsys, "grr", "-k", "1000", "-n", "100", "--seed", "5")
    assert code == 0
    assert "from thresholds" in out
    assert sum(line.rstrip().endswith(("  ok", "nothing found")) for line in out.splitlines()) >= 5
    assert out.splitlines()[-1] == "for a chart, add: -c audit.html"
    sampled = row_of(audit_mechanism(GRR(2, 1.0), n=40), "basicrappor", 100_000)
    Console().print(survey_table([sampled, {**sampled, "mechanism": "grr"}], "two"))
    assert capsys.readouterr().out.count("nothing found") == 2


@pytest.mark.slow
def test_all_mechanisms_keep_their_promise(tmp_path):
    chart = str(tmp_path / "all.svg")
    choices = ("--seed", "4", "-f", "json", "-c", chart)
    found = json.loads(run("--all", "--quick", *choices).stdout)
    assert {row["mechanism"] for row in found} == set(deniable.mechanisms())
    assert {row["verdict"] for row in found} == {"ok", "nothing found"}


class Shifted:
    """Coins whose thresholds are more than declared, by 2**-64."""

    def __init__(self, coins):
        self._coins = coins

    def below(self, threshold):
        return self._coins.below(threshold + 1)


@pytest.fixture
def lie(monkeypatch):
    """OUE draws with what is not declared from 400 answers on: only walks at that size see it."""
    honest = deniable.OUE.report

    def report(self, value, coins):
        return honest(self, value, coins if self.domain.size < 400 else Shifted(coins))

    monkeypatch.setattr(deniable.OUE, "report", report)
    monkeypatch.setattr(
        "deniable.audit.black_box.everything.mechanisms", lambda: {"oue": deniable.OUE}
    )


@pytest.mark.slow
@pytest.mark.usefixtures("lie")
@pytest.mark.parametrize("subject", [("oue",), ("--all", "--quick")])
@pytest.mark.parametrize("layout", ["table", "json", "csv"])
def test_a_suspicious_walk_has_a_row_and_ends_with_code_1(monkeypatch, capsys, subject, layout):
    monkeypatch.setenv("COLUMNS", "140")
    sure = ("-n", "100", "--seed", "1", "--confidence", "0.9999995")
    asked = (*subject, "-f", layout, *sure)
    code, out, said = inside(monkeypatch, capsys, *asked, "-k", "400")
    assert code == 1
    assert "which is not declared" in " ".join(out.split() if layout == "table" else said.split())
    if layout == "table":
        assert re.search(r"400 +the code +141 walks +suspicious", out)
    else:
        rows = json.loads(out) if layout == "json" else csv.DictReader(io.StringIO(out))
        (found,) = (row for row in rows if row["method"] == "walks")
        shown = (found["what"], str(found["k"]), str(found["n"]), found["verdict"])
        assert shown == ("the code", "400", "141", "suspicious")
        assert "141 walks with the values 0, 1, 200, 399; 0 draws with" in found["words"]
    code, out, _ = inside(monkeypatch, capsys, *asked, "-k", "300")
    assert code == 0
    assert "suspicious" not in out
    assert "walks" in out


@pytest.mark.slow
def test_walks_are_not_drawn_but_the_chart_is(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(
        "deniable.audit.black_box.everything.mechanisms", lambda: {"oue": deniable.OUE}
    )
    chart = tmp_path / "all.svg"
    code, *_ = inside(monkeypatch, capsys, "--all", "--quick", "-n", "100", "-c", str(chart))
    assert code == 0
    assert chart.stat().st_size > 1_000


@pytest.mark.network
@pytest.mark.parametrize("layout", ["table", "json", "csv"])
@pytest.mark.parametrize("source", ["--command", "--callable"])
def test_suspicious_coins_of_a_black_box_end_with_code_1(
    monkeypatch, capsys, tmp_path, source, layout
):
    """A clock as the seed: epsilon holds, but reports come again."""
    (tmp_path / "again.py").write_text(
        "import itertools, random, sys\n\n"
        "clock = itertools.count()\n\n\n"
        "def report(value):\n"
        "    return random.Random(next(clock) // 50).getrandbits(64)\n\n\n"
        "if __name__ == '__main__':\n"
        "    for line in sys.stdin:\n        print(report(line))\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "again", raising=False)
    program = f'"{sys.executable}" "{tmp_path / "again.py"}"'
    which = program if source == "--command" else "again:report"
    asked = (source, which, "-k", "2", "-n", "2000", "-e", "4", "-f", layout)
    code, out, said = inside(monkeypatch, capsys, *asked)
    assert code == 1
    assert "equal the one before" in " ".join(out.split() if layout == "table" else said.split())


@pytest.mark.slow
def test_a_program_that_lies_too_rarely_ends_with_code_1(monkeypatch, capsys, tmp_path):
    script = tmp_path / "client.py"
    script.write_text(LIAR)
    command = ("--command", f'"{sys.executable}" "{script}"', "-k", "2", "-n", "2000")
    code, found, _ = inside(monkeypatch, capsys, *command)
    assert code == 1
    assert "violated: epsilon is at least" in " ".join(found.split())
    sure = ("-e", "4", "-f", "json", "--confidence", "0.9999995")
    code, honest, _ = inside(monkeypatch, capsys, *command, *sure)
    assert code == 0
    assert json.loads(honest)["verdict"] == "nothing found"


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", "one of: a mechanism, --all"),
        ("oue --all", "one of: a mechanism, --all"),
        ("--callable json", "module:function"),
        ("--callable json:nothing", "the name of a function"),
        ("--callable json:__name__", "the name of a function"),
        ("--callable nobody:f", "No module named 'nobody'"),
        ("--callable boom:f", "ZeroDivisionError"),
        ("--callable fine:fails -k 2", "no report of the value [01]: KeyError: 'nobody'"),
        ("--callable fine:fails -k 2 -t 2", "no device was made: TypeError"),
        ("--callable fine:deep -k 2", "nested too deeply"),
        ("--callable fine:fails -k 2 -n 0", "'n' must be an integer of 40"),
        ("--library nobody", "multi-freq-ldpy, pure-ldp, opendp"),
        ("nobody", "'mechanism' must be one of"),
        ("oue --quick", "'--quick' must be left out with a mechanism"),
        ("brr -k 3", "2 answers"),
        ("oue -v 1 -v 99", "'values.1.' must be an integer of 0..15"),
        ("oue -n 0", "'n' must be an integer of 40"),
        ("--all -n 0 --quick", "'n' must be an integer of 40"),
        ("--all -v 1 -v 2", "'--value' must be left out with --all"),
        ("--all -t 2", "'--reports' must be left out with --all"),
        ("--command cat --seed 1", "'--seed' must be left out with --command"),
        ("--command cat --quick", "'--quick' must be left out with --command"),
        ("--command cat -k 3 -v 1 -v 2", "'--size' must be left out with --value"),
        ("--command cat -v 1 -v 1", "different answers"),
        ("--command cat -k 2 -n 40 -t 2", "a JSON array of 2 reports"),
        ("--command yes -k 2 -n 40", "printed 81 lines or more for 80 values"),
        ("--command 'cat /dev/zero' -k 2 -n 40", "a line of 16,777,216 bytes or more"),
        ("--command 'ls /nobody' -k 2 -n 40", "failed with code 2: ls: .*/nobody"),
        ("--command '\"cat' -k 2", "No closing quotation"),
        ("--callable fine:leaves -k 2", "no report of the value [01]: SystemExit: 0"),
        ("grr -k 2147483646", "'size' must be an integer of 2..1048576"),
        ("--library opendp --seed 1", "'--seed' must be left out with --library"),
    ],
)
def test_refusals_are_one_line(monkeypatch, capsys, tmp_path, arguments, words):
    (tmp_path / "boom.py").write_text("1 / 0\n")
    (tmp_path / "fine.py").write_text(
        "def fails(value):\n    return {}['nobody']\n\n\n"
        "def leaves(value):\n    raise SystemExit(0)\n\n\n"
        "def deep(value):\n    found = []\n    found.append(found)\n    return found\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "fine", raising=False)
    code, _, said = inside(monkeypatch, capsys, *shlex.split(arguments))
    assert code == 2
    assert re.search(words, said)
    assert len(said.splitlines()) == 1


@pytest.mark.slow
def test_devices_by_name(monkeypatch, capsys, tmp_path):
    """A factory of devices that keep what they said: ln 3, whatever the number of reports."""
    (tmp_path / "kept.py").write_text(
        "import random\n\n\ndef device():\n    lie = random.random() < 0.25\n"
        "    return lambda value: 1 - value if lie else value\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    options = ("-k", "2", "-n", "1000", "-e", "1.1", "-t", "9", "--confidence", "0.9999995")
    code, out, _ = inside(monkeypatch, capsys, "--callable", "kept:device", *options, "-f", "json")
    assert code == 0
    assert json.loads(out)["rounds"] == 9


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
