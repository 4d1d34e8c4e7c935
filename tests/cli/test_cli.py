"""The command, as a user meets it."""

import csv
import html
import inspect
import io
import json
import os
import re
import subprocess
import sys
import time
from typing import get_args, get_type_hints

import numpy as np
import pyarrow.parquet as parquet
import pytest

import deniable
from command import run
from deniable.cli import app
from deniable.views import save


def apart(*arguments, code=0, env=None, **options):
    """The command in a process of its own."""
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


@pytest.mark.slow
def test_version_and_help():
    assert apart("--version").stdout.strip() == f"deniable {deniable.__version__}"
    text = run("--help").stdout
    for command in (
        "demo",
        "init",
        "check",
        "serve",
        "verify-store",
        "import",
        "simulate",
        "estimate",
        "methods",
        "mechanisms",
        "bench",
    ):
        assert command in text


#: Every command by its words, with those of groups: "test mean".
COMMANDS = {
    " ".join(filter(None, [group, info.name])): info.callback
    for group, of in [("", app), *((one.name, one.typer_instance) for one in app.registered_groups)]
    for info in of.registered_commands
}


@pytest.mark.slow
@pytest.mark.parametrize("command", ["", "test", *COMMANDS])
def test_help_shows_no_types_of_python(command):
    """Switches take no value; a list is of texts, numbers or paths."""
    text = run(*command.split(), "--help").stdout
    shown = set(re.findall(r"<\w[^<>=]*>", text))
    assert shown <= {"<text>", "<number>", "<path>", "<table|json|csv>"}
    for line in text.splitlines():
        if " --help " in line or " --version " in line:
            assert "<" not in line
    assert "Default:" not in text  # written as (default: ...) or [default: ...]


def test_every_option_says_what_it_is():
    """An option without a word is only a name."""
    for command, function in COMMANDS.items():
        hints = get_type_hints(function, include_extras=True)
        for name in inspect.signature(function).parameters:
            (about,) = get_args(hints[name])[1:]
            assert about.help, (command, name)


@pytest.mark.network
def test_help_loads_nothing_heavy():
    script = "import sys, deniable.cli; print([m for m in ('numba', 'numpy', 'pyarrow', 'altair', 'rich.table') if m in sys.modules])"  # fmt: skip  # noqa: E501
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"


@pytest.mark.slow
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


@pytest.mark.slow
def test_simulate_is_reproducible_and_draws(tmp_path):
    chart = tmp_path / "errors.svg"
    command = ("simulate", "-m", "grr", "-m", "oue", "-n", "2000", "--runs", "3", "--seed", "5", "-f", "json")  # fmt: skip  # noqa: E501
    first = json.loads(run(*command, "-c", str(chart)).stdout)
    assert first == json.loads(run(*command).stdout)
    assert [row["mechanism"] for row in first] == ["grr", "oue"]
    assert 0.5 < first[0]["rmse"] / first[0]["predicted"] < 2
    assert chart.read_text().startswith("<svg")


@pytest.mark.slow
def test_the_demonstration_collects_over_http_and_saves_charts(tmp_path):
    done = run("demo", "-n", "300", "-f", "json", "--charts", tmp_path / "charts")
    rows = json.loads(done.stdout)
    assert {"question", "value", "frequency", "low", "high", "truth"} <= set(rows[0])
    assert "sent over HTTP" in done.stderr
    files = sorted(path.name for path in (tmp_path / "charts").iterdir())
    assert files == [f"question-{i}.{end}" for i in (1, 2, 3) for end in ("html", "png")]
    page = (tmp_path / "charts" / "question-1.html").read_text()
    assert "How do you usually get to work?" in page
    assert 'src="http' not in page, "the chart must work offline"


@pytest.mark.slow
def test_bench_measures(tmp_path):
    rows = json.loads(
        run("bench", "-m", "grr", "-m", "cms", "-k", "16", "-n", "20000", "-f", "json").stdout
    )
    assert {row["step"] for row in rows} == {"client", "server"}
    assert all(row["ns_per_report"] > 0 for row in rows)


@pytest.mark.slow
def test_a_plain_terminal_is_enough(tmp_path):
    plain = {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "LC_ALL": "C", "COLUMNS": "60"}
    text = apart("demo", "-n", "100", "--charts", str(tmp_path), env=plain).stdout
    assert "0.1" in text
    assert "95 % interval" in text
    assert "truth" in text


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


HUGE = "1" + "0" * 400


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("simulate", "-m", "magic"), "'mechanism' must be one of"),
        (("simulate", "-m", "joint"), "one that estimates frequencies"),
        (("manipulate", "drr"), "one that estimates frequencies"),
        (("simulate", "-k", "1"), "'domain' must be"),
        (("simulate", "-e", "0"), "'epsilon' must be"),
        (("simulate", "-d", "odd", "-m", "grr"), "'distribution' must be one of"),
        (("simulate", "--methods", "odd", "-m", "grr"), "'method' must be one of"),
        (("simulate", "-m", "grr", "--runs", "1", "-c", "x.pdf"), "'chart' must be"),
        (("simulate", "-m", "brr"), "2 answers for BRR"),
        (("simulate", "-m", "grr", "-k", "2000000000"), "'size' must be an integer of 2..16777216"),
        (("simulate", "-m", "grr", "-n", HUGE), "'respondents' must be an integer of 1.."),
        (("simulate", "-m", "grr", "--runs", HUGE), "less than or equal to 1048576"),
        (("manipulate", "grr", "-n", HUGE), "'respondents' must be an integer of 1.."),
        (("mechanisms", "--format", "xml"), "xml"),
        (("demo", "-n", "0"), "greater than or"),
        (("budget", "-m", "grr"), "one that remembers: basicrappor, dbitflippm"),
        (("budget", "-m", "loue", "-1", "1.9"), "'epsilon_1' must be below 1.66001"),
        (("budget", "--changes", "-1"), "'changes' must be"),
    ],
)
def test_bad_options_get_one_clear_line(arguments, message, tmp_path):
    result = run(*arguments, code=2, cwd=tmp_path)
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def test_a_file_that_is_nested_too_deeply_gets_one_line(tmp_path):
    (tmp_path / "deep.toml").write_text("a = " + "[" * 100_000)
    said = run("check", str(tmp_path / "deep.toml"), code=2).stderr
    assert said.startswith("deniable: ")
    assert len(said.splitlines()) == 1


def test_help_is_quick():
    """Not a benchmark: only far too slow (a heavy import) fails."""
    run("--help")
    start = time.perf_counter()
    run("--help")
    assert time.perf_counter() - start < 5


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("collection")
    answers = ["car"] * 300 + ["train"] * 150 + ["bus"] * 50
    strong, weak = (deniable.OUE(["car", "train", "bus"], epsilon) for epsilon in (2.0, 0.5))
    reports = strong.privatize(answers)
    reports.to_parquet(folder / "reports.parquet")
    bare = reports.to_arrow().replace_schema_metadata(None)
    parquet.write_table(bare, folder / "bare.parquet")
    (folder / "weak.tally").write_bytes(weak.tally(weak.privatize(answers)).to_bytes())
    (folder / "spec.json").write_text(json.dumps(strong.to_spec()))
    (folder / "list.json").write_text("[]")
    (folder / "none.json").write_text("")
    (folder / "cut.tally").write_bytes((folder / "weak.tally").read_bytes()[:-1])
    return folder


@pytest.mark.slow
def test_estimate_from_reports(files, tmp_path):
    spec = ("--mechanism", str(files / "spec.json"))
    found = run("estimate", str(files / "bare.parquet"), *spec, "-c", str(tmp_path / "x.png"))
    assert "bayes frequencies of 500 reports" in found.stdout
    assert "95 % exact intervals about respondents" in found.stdout
    assert (tmp_path / "x.png").stat().st_size > 1000
    data = run("estimate", str(files / "reports.parquet"), "--method", "likelihood", "-f", "json")
    read = json.loads(data.stdout)
    assert read["certificate"] < 1e-8
    assert sum(value["frequency"] for value in read["values"]) == pytest.approx(1)


def test_estimate_combines_files(files):
    both = [str(files / name) for name in ("reports.parquet", "weak.tally")]
    found = run("estimate", *both, "--method", "unbiased", "--simultaneous", "-f", "json")
    read = json.loads(found.stdout)
    assert read["n"] == 1000
    assert read["simultaneous"]
    table = list(csv.DictReader(io.StringIO(run("estimate", *both, "-f", "csv").stdout)))
    assert [row["value"] for row in table] == ["car", "train", "bus"]


@pytest.mark.slow
def test_estimate_the_mean_of_numbers(tmp_path):
    """5 standard errors: a false alarm in 1.7 million runs; the seed is fixed."""
    rng = np.random.default_rng(5)
    hours = rng.uniform(4, 10, 4000)
    m = deniable.DRR(deniable.Number(0, 24), 2.0)
    m.privatize(hours[:2000], rng).to_parquet(tmp_path / "a.parquet")
    (tmp_path / "b.tally").write_bytes(m.tally(m.privatize(hours[2000:], rng)).to_bytes())
    both = ("estimate", "a.parquet", "b.tally")
    found = json.loads(run(*both, "-f", "json", "-c", "mean.svg", cwd=tmp_path).stdout)
    (row,) = found["values"]
    assert (found["n"], row["statistic"]) == (4000, "mean")
    assert abs(row["estimate"] - hours.mean()) < 5 * row["standard_error"] < 1
    assert "Estimated mean" in (tmp_path / "mean.svg").read_text()
    assert "mean" in run(*both, cwd=tmp_path).stdout
    refused = {
        ("-a", "hour=3"): "one of cdf, quantile, range",
        ("--method", "bayes"): "must be one of",
    }
    for options, message in refused.items():
        assert message in run(*both, *options, code=2, cwd=tmp_path).stderr


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (["bare.parquet"], (), "'mechanism' must be given"),
        (["missing.parquet"], (), "No such file"),
        (["weak.tally", "./weak.tally"], (), "would count twice"),
        (["weak.tally", "cut.tally"], (), "cut.tally: the tally is truncated"),
        (["weak.tally"], ("-m", "none.json"), "none.json: this is not JSON"),
        (
            ["weak.tally"],
            ("--method", "ibu", "-o", "iterations=" + "[" * 9000),
            "'iterations' must",
        ),
        (
            ["weak.tally"],
            ("--method", "ibu", "-o", "iterations=" + "9" * 5000),
            "'iterations' must",
        ),
        (["spec.json"], (), "is not a Parquet file"),
        (["weak.tally"], ("-m", "spec.json"), "different mechanisms"),
        (["weak.tally"], ("-m", "list.json"), "'mechanism' must be a JSON file with a spec"),
        (["weak.tally"], ("--method", "likelihood"), "reports: the counts of OUE"),
        (["weak.tally"], ("--errors", "magic"), "'errors' must be one of score"),
        (["weak.tally"], ("--confidence", "95"), "'confidence' must be"),
        (["weak.tally"], ("-c", "x.pdf"), "'chart' must be"),
        (["weak.tally"], ("-o", "iterations"), "'option' must be NAME=VALUE"),
        (["weak.tally"], ("-o", "iterations=5"), "options of 'bayes': none"),
    ],
)
def test_estimate_refuses_clearly(files, names, options, message):
    result = run("estimate", *names, *options, code=2, cwd=files)
    assert message in result.stderr.replace("\n", " ")
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_methods_are_listed_and_simulated_together(tmp_path):
    listed = {row["name"] for row in json.loads(run("methods", "-f", "json").stdout)}
    command = ("simulate", "-m", "oue", "-m", "hr", "-n", "500", "--runs", "2", "--methods", "all")
    chart = str(tmp_path / "methods.svg")
    rows = json.loads(run(*command, "-f", "json", "-c", chart).stdout)
    assert {row["method"] for row in rows} == listed - {"least-squares", "nnls", "lasso"}
    assert {row["mechanism"] for row in rows} == {"oue", "hr"}


def test_options_of_a_method_reach_it(files):
    command = ("estimate", str(files / "weak.tally"), "-f", "json")
    few = run(*command, "--method", "ibu", "-o", "iterations=3", "-o", "rule=mae")
    many = run(*command, "--method", "ibu")
    assert few.stdout != many.stdout
    prior = run(*command, "--method", "calibrate", "-o", "prior=[[0, 0.5], [1, 1]]")
    assert all(value["frequency"] <= 0.5 for value in json.loads(prior.stdout)["values"])


def test_tables_fit_a_narrow_terminal():
    command = ("simulate", "-m", "oue", "-n", "500", "--runs", "2", "--seed", "1", "--methods")
    narrow = run(*command, "bayes,power-ns", columns=80).stdout
    for word in ("mechanism", "power-ns", "coverage", "rmse", "predicted"):
        assert word in narrow
    assert "…" not in narrow
    assert "…" not in run("methods", columns=80).stdout


def test_all_methods_are_those_that_suit_each_mechanism():
    command = ("simulate", "-m", "she", "-m", "sue", "-n", "300", "--runs", "1", "--methods", "all")
    rows = json.loads(run(*command, "-k", "6", "-f", "json").stdout)
    found = {name: {r["method"] for r in rows if r["mechanism"] == name} for name in ("she", "sue")}
    assert found["sue"] - found["she"] == {"ibu", "likelihood"}
    assert not found["she"] - found["sue"]


@pytest.mark.slow
def test_candidates_are_looked_for(tmp_path):
    m = deniable.ORR(deniable.Text(), 4.0, cohorts=32, width=16)
    answers = ["Zürich"] * 3000 + ["Genève"] * 1000 + ["elsewhere"] * 1000
    reports = m.privatize(answers, np.random.default_rng(3))
    reports.to_parquet(tmp_path / "r.parquet")
    (tmp_path / "r.tally").write_bytes(m.tally(reports).to_bytes())
    words = tmp_path / "words.txt"
    words.write_bytes("\ufeffZürich\r\n\nGenève\nBern\nBern\n".encode())
    for source in ("r.parquet", "r.tally"):
        given = ("estimate", str(tmp_path / source), "--candidates", str(words))
        rows = json.loads(run(*given, "-f", "json").stdout)["values"]
        assert [row["value"] for row in rows] == ["Zürich", "Genève", "Bern", "(anything else)"]
        assert rows[0]["low"] < 0.6 < rows[0]["high"]
        assert "anything else" in run(*given, "--method", "nnls").stdout
    assert "'candidates' must be given" in run(*given[:2], code=2).stderr
    asked = run(*given[:2], "-a", "candidates=Zürich", "-a", "candidates=Bern", "-f", "json")
    rows = json.loads(asked.stdout)["values"]
    assert [row["value"] for row in rows] == ["Zürich", "Bern", "(anything else)"]
    assert "one of candidates" in run(*given[:2], "-a", "towns=Bern", code=2).stderr
    assert "left out with --candidates" in run(*given, "-a", "candidates=Bern", code=2).stderr
    words.write_text("  ZU\u0308RICH \n \n", encoding="utf-8")  # another spelling, a blank line
    (found, _) = json.loads(run(*given, "-f", "json").stdout)["values"]
    assert found["value"] == "  ZU\u0308RICH "
    assert found["low"] < 0.6 < found["high"]
    words.write_text("Bern\nBERN\n")
    refused = run(*given, code=2).stderr
    assert "'Bern', 'BERN'" in refused
    assert "different answers" in refused
    words.write_bytes(b"\xff\xfe")
    assert "a text file in UTF-8" in run(*given, code=2).stderr
    words.write_text("\n")
    assert "at least one text" in run(*given, code=2).stderr
    assert "No such file" in run(*given[:3], str(tmp_path / "none"), code=2).stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["losue", "lolh", "basicrappor", "rappor"])
def test_a_budget_has_a_row_for_every_number_of_reports(name, tmp_path):
    chart = tmp_path / "budget.svg"
    rows = json.loads(run("budget", "-m", name, "-t", "4", "-f", "json", "-c", chart).stdout)
    assert [row["reports"] for row in rows] == [1, 2, 3, 4, "any"]
    assert [rows[i]["one answer"] for i in (0, -1)] == pytest.approx([1.0, 2.0])
    assert rows[-1]["2 changes"] == pytest.approx(6.0)
    assert "one answer" in chart.read_text()


#: Names that every object of JavaScript has, where charts are drawn.
AWKWARD = ["__proto__", "constructor", "toString", "hasOwnProperty", 'quoted " \\ <b>', "plain"]


@pytest.mark.slow
def test_charts_draw_answers_of_any_name(tmp_path):
    m = deniable.GRR(AWKWARD, 4.0)
    tally = m.tally(m.privatize(AWKWARD * 50))
    series = deniable.Series.of({"__proto__": tally, "constructor": tally})
    charts = {
        "estimate": (tally.estimate().plot([1 / 6] * 6), AWKWARD),
        "risk": (deniable.inference_risk(m).plot(), AWKWARD),
        "series": (series.plot(), [*AWKWARD, "__proto__", "constructor"]),
    }
    for name, (chart, shown) in charts.items():
        file = save(chart, tmp_path / f"{name}.svg")
        texts = re.findall(r"<text[^>]*>([^<]*)</text>", file.read_text())
        found = [html.unescape(text) for text in texts]
        assert sorted(text for text in found if text in AWKWARD) == sorted(shown)


@pytest.mark.slow
def test_means_are_tested(tmp_path):
    m, rng = deniable.DRR(deniable.Number(0, 100), epsilon=2.0), np.random.default_rng(1)
    for name, mean in (("north", 40), ("south", 50)):
        reports = m.privatize(rng.normal(mean, 10, 3_000), rng)
        (tmp_path / f"{name}.tally").write_bytes(m.tally(reports).to_bytes())
    reports.to_parquet(tmp_path / "south.round-1.parquet")
    told = run("test", "mean", "south.tally", "--value", 40, "-f", "json", cwd=tmp_path)
    one = json.loads(told.stdout)
    assert one["tests"][0]["hypothesis"] == "the mean is 40"
    assert one["sentence"].startswith("The mean differs from 40: it is estimated as")
    two = run("test", "mean", "north.tally", "south.round-1.parquet", cwd=tmp_path).stdout
    assert "The means differ: they are estimated as" in " ".join(two.split())
    less = ("--value", 40, "--alternative", "less", "-f", "csv")
    rows = run("test", "mean", "north.tally", *less, cwd=tmp_path)
    assert "the mean is at least 40" in rows.stdout
    for words, *given in (
        ("'--value' must be given", "north.tally"),
        ("left out with two groups", "north.tally", "south.tally", "--value", 40),
        ("two different ones", "north.tally", "north.tally"),
        ("two rounds of one collection", "south.round-1.parquet", "south.round-2.parquet"),
        ("from 0 to 100", "north.tally", "--value", 140),
    ):
        assert words in run("test", "mean", *given, code=2, cwd=tmp_path).stderr
