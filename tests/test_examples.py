"""The examples run as their documentation says."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

EXAMPLES = Path(__file__).parents[1] / "examples"
ROUNDS = EXAMPLES / "rounds.py"


def run(*given):
    return run_example(EXAMPLES / "words.py", *given)


def run_example(path, *given):
    command = [sys.executable, path, *map(str, given)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_words_are_found(tmp_path):
    words = [f"w{i}" for i in range(199)] + ["W1"]  # one answer twice
    counts = pd.DataFrame({"word": words, "count": [10_000 // (i + 1) for i in range(200)]})
    counts.to_parquet(tmp_path / "words.parquet")
    given = ("--people", 20_000, "--epsilon", 4)
    done = run("--data", tmp_path / "words.parquet", "--out", tmp_path, *given)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "words.json").read_text())
    for summary in found["summary"]:
        assert summary["found"] >= 3
        assert summary["not on the list"] == 5
    fates = {row["word"]: row["fate"] for row in found["words"] if row["mechanism"] == "ORR"}
    assert (fates["w0"], fates["w1"]) == ("not on the list", "found")
    assert (tmp_path / "words.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.network
@pytest.mark.slow
def test_missing_data_is_said_in_one_line(tmp_path):
    done = run("--data", tmp_path / "nothing.parquet")
    assert done.returncode != 0
    assert "no file" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_thirty_rounds_are_drawn(tmp_path):
    done = run_example(ROUNDS, "--out", tmp_path, "--people", 3_000, "--seed", 3)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "of the 150 intervals of this panel hold the truth" in said
    assert "of those of 20 other panels of 1,000 people" in said
    assert (tmp_path / "rounds.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_intervals_of_thirty_rounds_hold():
    """H0: in each round and for each value 95 % intervals hold with at least 93 %, 60 panels.

    Panels are independent; within one of them the rounds are not.
    """
    spec = importlib.util.spec_from_file_location("rounds_example", ROUNDS)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    runs = 60
    held = example.held_by_panels(runs, 500, np.random.default_rng(1)).sum(axis=0)
    assert held.shape == (30, 5)
    assert binom.cdf(held, runs, 0.93).min() > 1e-6 / held.size
