"""`deniable privatize`: a partner's files of answers, on the command line."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from command import run
from deniable.engines import tally_files


@pytest.fixture
def answers(tmp_path):
    rng = np.random.default_rng(1)
    for region in ("north", "south"):
        folder = tmp_path / "in" / f"region={region}"
        folder.mkdir(parents=True)
        smoking = rng.choice(["daily", "never"], 500).tolist()
        pq.write_table(pa.table({"smoking": smoking, "name": ["x"] * 500}), folder / "a.parquet")
    return tmp_path / "in"


def test_one_column_with_one_mechanism(answers, tmp_path):
    m = dn.GRR(["daily", "never"], 1.0)
    (tmp_path / "m.json").write_text(json.dumps(m.to_spec()))
    said = run(
        "privatize", answers, "-m", tmp_path / "m.json", "--column", "smoking", "-o",
        tmp_path / "out", "--keep", "region", "--secret", tmp_path / "secret",
    )  # fmt: skip
    assert said.stdout.splitlines() == [
        f"{tmp_path / 'out'}: 1,000 people",
        "  smoking  GRR, k = 2, epsilon = 1",
        "  Each person spends epsilon 1, all reports together.",
    ]
    assert not (tmp_path / "secret").exists()
    found = tally_files([tmp_path / "out"], by=["region"])
    assert {group: tally.n for group, tally in found.items()} == {("north",): 500, ("south",): 500}


def test_the_questions_of_a_survey(answers, tmp_path):
    survey = tmp_path / "survey.toml"
    survey.write_text(
        'title = "Habits"\nepsilon = 1.0\n[[questions]]\nname = "smoking"\nkind = "choice"\n'
        'answers = ["daily", "never"]\nask = "Do you smoke?"\n'
    )
    run("privatize", answers, "--survey", survey, "-o", tmp_path / "out")
    (tally,) = tally_files([tmp_path / "out" / "smoking"]).values()
    assert tally.n == 1000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "--mechanism together with --column"),
        (("--survey", "s.toml", "--column", "x"), "left out with --survey"),
        (("--column", "smoking", "-m", "m.json", "--engine", "dask"), "one of local, spark"),
        (("--column", "smoking", "-m", "m.json", "--master", "yarn"), "left out with the engine"),
    ],
)
def test_what_does_not_go_together_is_refused(answers, tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.json").write_text(json.dumps(dn.GRR(["daily", "never"], 1.0).to_spec()))
    said = run("privatize", answers, "-o", tmp_path / "out", *options, code=2)
    assert words in said.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("secret", "advice"), [(True, "same command again"), (False, "start anew")]
)
def test_an_interruption_says_how_to_go_on(answers, tmp_path, monkeypatch, secret, advice):
    (tmp_path / "m.json").write_text(json.dumps(dn.GRR(["daily", "never"], 1.0).to_spec()))

    def interrupted(*given, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr("deniable.engines.privatising.privatise_files", interrupted)
    more = ["--secret", tmp_path / "secret"] if secret else []
    said = run(
        "privatize", answers, "-m", tmp_path / "m.json", "--column", "smoking", "-o",
        tmp_path / "out", *more, code=130,
    )  # fmt: skip
    assert said.stderr.startswith("Stopped. ")
    assert advice in said.stderr
