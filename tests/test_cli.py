"""The command, as a user meets it."""

import csv
import io
import json
import os
import subprocess
import sys
import time

import pytest

import deniable


def run(*arguments, code=0, env=None, **options):
    result = subprocess.run(
        [sys.executable, "-m", "deniable", *arguments],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "COLUMNS": "100", "PYTHONUTF8": "1", **(env or {})},
        timeout=300,
        **options,
    )
    assert result.returncode == code, result.stderr
    return result


def test_version_and_help():
    assert run("--version").stdout.strip() == f"deniable {deniable.__version__}"
    text = run("--help").stdout
    for command in ("demo", "simulate", "mechanisms", "bench"):
        assert command in text


def test_help_loads_nothing_heavy():
    script = "import sys, deniable.cli; print([m for m in ('numba', 'numpy', 'pyarrow', 'altair', 'rich.table') if m in sys.modules])"  # fmt: skip  # noqa: E501
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"


def test_one_answer_needs_no_compiler():
    script = (
        "import sys, deniable as dn; dn.OUE(9, 1.0).privatize([3]); print('numba' in sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "False"


def test_mechanisms_as_json_and_csv():
    rows = json.loads(run("mechanisms", "-k", "32", "--format", "json").stdout)
    assert {row["name"] for row in rows} == set(deniable.mechanisms())
    assert next(row for row in rows if row["name"] == "oue")["bits"] == 32
    table = list(csv.DictReader(io.StringIO(run("mechanisms", "-f", "csv").stdout)))
    assert len(table) == len(rows)


def test_simulate_is_reproducible_and_draws(tmp_path):
    chart = tmp_path / "errors.svg"
    command = ("simulate", "-m", "grr", "-m", "oue", "-n", "2000", "--runs", "3", "--seed", "5", "-f", "json")  # fmt: skip  # noqa: E501
    first = json.loads(run(*command, "-c", str(chart)).stdout)
    assert first == json.loads(run(*command).stdout)
    assert [row["mechanism"] for row in first] == ["grr", "oue"]
    assert 0.5 < first[0]["rmse"] / first[0]["predicted"] < 2
    assert chart.read_text().startswith("<svg")


def test_demo_shows_tables_and_saves_charts(tmp_path):
    text = run("demo", "-n", "3000", "--charts", str(tmp_path / "charts")).stdout
    assert "95% interval" in text
    assert "truth" in text
    files = sorted(path.name for path in (tmp_path / "charts").iterdir())
    assert files == ["question-1.html", "question-1.png", "question-2.html", "question-2.png"]
    page = (tmp_path / "charts" / "question-1.html").read_text()
    assert 'src="http' not in page, "the chart must work offline"
    rows = json.loads(run("demo", "-n", "500", "-f", "json", cwd=tmp_path).stdout)
    assert {"question", "value", "frequency", "low", "high", "truth"} <= set(rows[0])


def test_bench_measures(tmp_path):
    rows = json.loads(run("bench", "-k", "16", "-n", "20000", "-f", "json").stdout)
    assert {row["step"] for row in rows} == {"client", "server"}
    assert all(row["ns_per_report"] > 0 for row in rows)


def test_a_plain_terminal_is_enough(tmp_path):
    plain = {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "LC_ALL": "C", "COLUMNS": "60"}
    text = run("demo", "-n", "100", "--charts", str(tmp_path), env=plain).stdout
    assert "0.1" in text


def test_charts_are_checked_before_the_work(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = run("simulate", "-m", "grr", "-c", str(blocked / "x.png"), code=2)
    assert not result.stdout
    run("simulate", "-m", "grr", "-n", "50", "--runs", "1", "-c", str(tmp_path / "x.PNG"))
    assert (tmp_path / "x.PNG").read_bytes().startswith(b"\x89PNG")


def test_the_table_of_mechanisms_takes_huge_domains():
    rows = json.loads(run("mechanisms", "-k", "2147483646", "-f", "json").stdout)
    assert next(row for row in rows if row["name"] == "hr")["n_variance"] > 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("simulate", "-m", "magic"), "'mechanism' must be one of"),
        (("simulate", "-k", "1"), "'domain' must be"),
        (("simulate", "-e", "0"), "'epsilon' must be"),
        (("simulate", "-d", "odd", "-m", "grr"), "'distribution' must be one of"),
        (("simulate", "--method", "odd", "-m", "grr"), "'method' must be one of"),
        (("simulate", "-m", "grr", "--runs", "1", "-c", "x.pdf"), "'chart' must be"),
        (("simulate", "-m", "brr"), "2 answers for BRR"),
        (("mechanisms", "--format", "xml"), "xml"),
        (("demo", "-n", "0"), "greater than or"),
    ],
)
def test_bad_options_get_one_clear_line(arguments, message, tmp_path):
    result = run(*arguments, code=2, cwd=tmp_path)
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def test_help_is_quick():
    """Not a benchmark: only far too slow (a heavy import) fails."""
    run("--help")
    start = time.perf_counter()
    run("--help")
    assert time.perf_counter() - start < 5
