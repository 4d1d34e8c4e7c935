"""The examples run as their documentation says."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd

WORDS = Path(__file__).parents[1] / "examples" / "words.py"


def run(*given):
    command = [sys.executable, WORDS, *map(str, given)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_words_are_found(tmp_path):
    words = [f"w{i}" for i in range(200)]
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


def test_missing_data_is_said_in_one_line(tmp_path):
    done = run("--data", tmp_path / "nothing.parquet")
    assert done.returncode != 0
    assert "no file" in done.stderr
    assert len(done.stderr.splitlines()) == 1
