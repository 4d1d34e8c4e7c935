"""The frame of reproductions: verdicts, files, and cells that are simulated once."""

import inspect
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from scipy.special import ndtr

import deniable_papers
from deniable.cli.commands.reproduce import reproduce
from deniable.errors import CorruptData, InvalidArgument
from deniable_papers import STUDIES, find
from deniable_papers.cells import Notebook, finish, generator, key_of
from deniable_papers.command import check_folders, load_sets
from deniable_papers.results import (
    SURELY,
    Trial,
    Verdict,
    claimed,
    compared,
    counts,
    read,
    surely,
    write,
)
from deniable_papers.views import SHOWN, differing, overview


def test_verdicts_know_rounding_and_error():
    def verdict(published, ours, error=0.0, rounding=0.0):
        return compared("p", "Table 1", {"k": 3}, published, ours, error, rounding).verdict

    assert verdict(None, 0.5) is Verdict.no_number
    assert verdict(0.5, 0.5) is Verdict.reproduced
    assert verdict(0.5, 0.501) is Verdict.differs
    assert verdict(0.5, 0.5004, rounding=0.0005) is Verdict.reproduced
    assert verdict(0.5, 0.539, error=0.01) is Verdict.reproduced
    assert verdict(0.5, 0.541, error=0.01) is Verdict.differs
    assert compared("p", "t", {}, 0.5, 0.53, 0.01).difference == pytest.approx(3.0)
    assert compared("p", "t", {}, 0.5, 0.53).difference is None


def test_published_values_have_errors_of_their_own():
    row = compared("p", "t", {}, 0.5, 0.55, 0.003, published_error=0.004)
    assert row.difference == pytest.approx(10.0)
    assert row.verdict is Verdict.differs
    row = compared("p", "t", {}, 0.5, 0.5199, 0.003, published_error=0.004)
    assert row.verdict is Verdict.reproduced


def test_few_runs_know_their_error_badly():
    """Two runs: t has one degree of freedom, and 1 / tan(pi tail) is its quantile."""
    assert surely() == SURELY
    assert surely(2) == pytest.approx(1 / math.tan(math.pi * (1 - ndtr(4.0))), rel=1e-3)
    assert 4 < surely(100) < 4.3 < surely(10) < surely(4)
    assert compared("p", "t", {}, 0.5, 0.55, 0.01).verdict is Verdict.differs
    assert compared("p", "t", {}, 0.5, 0.55, 0.01, runs=4).verdict is Verdict.reproduced
    assert Trial("a", 0.5, 0.1).against
    assert not Trial("a", 0.5, 0.1, runs=4).against
    assert not Trial("a", -0.5, 0.1, runs=4).clear


def test_claims_are_refused_only_by_what_is_sure():
    doubtful = [Trial("a", -1.0, 0.1), Trial("b", 0.3, 0.1)]
    row = claimed("p", "Figure 1", "it is smaller", doubtful)
    assert (row.verdict, row.ours, row.cell["clearly"]) == (Verdict.reproduced, 1.0, 1)
    row = claimed("p", "Figure 1", "it is smaller", [*doubtful, Trial("c", 0.5, 0.1)], "note")
    assert (row.verdict, row.cell["against"]) == (Verdict.differs, 1)
    assert row.ours == pytest.approx(2 / 3)
    assert row.reason == "note; against: c (+0.5)"
    assert differing([row])[0][0]["ours"] == "2 of 3"


def test_what_is_so_generally_may_fail_in_some_cells():
    trials = [Trial("a", -1.0, 0.1), Trial("b", 1.0, 0.1)]
    row = claimed("p", "Figure 1", "it is generally smaller", trials, least=0.5)
    assert (row.verdict, row.published, row.ours) == (Verdict.reproduced, 0.5, 0.5)
    row = claimed("p", "Figure 1", "it is mostly smaller", trials, least=0.6)
    assert row.verdict is Verdict.differs
    assert differing([row])[0][0]["published"] == "at least 60%"


def test_a_terminal_shows_counts_and_what_differs():
    rows = [compared("p", "Table 1", {"k": k}, 0.5, 0.5 + k, 0.1, reason="more") for k in range(60)]
    (line,) = overview(rows)
    assert line == {"where": "Table 1", "rows": 60, **counts(rows)}
    shown, reasons = differing([*rows, *(replace(row, where="Table 2") for row in rows)])
    assert [row["where"] for row in shown] == ["Table 1"] * SHOWN + ["Table 2"] * SHOWN
    assert shown[0] == {"where": "Table 1", "what": "k 1", "published": "0.5", "ours": "1.5 ± 0.1",
                        "s.e. away": "+10.0", "why": "(1)"}  # fmt: skip
    assert reasons == ["(1) more"]


def test_data_that_are_missing_are_named(tmp_path, capsys):
    australian = " ".join("1" * 15)
    (tmp_path / "australian.dat").write_text(f"{australian}\n" * 3)
    assert load_sets({"australian": ("A4",)}, None) == {}
    assert "left out: what needs australian. --data FOLDER has to hold" in capsys.readouterr().err
    wanted = {"australian": ("A4",), "census1990": ("RACE",)}
    assert list(load_sets(wanted, tmp_path)) == ["australian"]
    assert "left out: what needs census1990. US Census 1990" in capsys.readouterr().err
    assert load_sets({"australian": ("A99",)}, tmp_path) == {}
    assert "3 rows (no checksum is known) has no A99" in capsys.readouterr().err


def test_folders_are_looked_at_first(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    for data, out in ((tmp_path / "none", tmp_path), (file, tmp_path), (None, file)):
        with pytest.raises(InvalidArgument, match="must be a folder"):
            check_folders(data, out)
    check_folders(tmp_path, tmp_path / "new")
    check_folders(None, tmp_path)


def test_results_are_read_as_they_were_written(tmp_path):
    rows = [
        compared("p", "Table 1", {"k": 3, "epsilon": 0.5}, 0.25, 0.26, 0.01),
        compared("p", "Table 1", {"k": 4, "epsilon": 0.5}, None, 0.125),
    ]
    path = write(rows, tmp_path / "new" / "p.json", {"paper": "P", "seed": 1})
    assert read(path) == rows
    assert json.loads(path.read_text())["paper"] == "P"
    assert counts(rows) == {"reproduced": 1, "differs": 0, "not published as a number": 1}
    path.write_text("{}")
    with pytest.raises(CorruptData, match="holds no results"):
        read(path)


def square(settings, rng):
    if settings["x"] < 0:
        raise ValueError("no")
    return {"y": settings["x"] ** 2, "coin": int(rng.integers(1 << 30))}


def run(cells, notebook, processes=1):
    return len(list(finish(cells, square, notebook, processes)))


def test_cells_are_simulated_once(tmp_path):
    path, cells = tmp_path / "cells.jsonl", [{"x": x} for x in range(4)]
    first = Notebook(path, seed=1)
    assert run(cells[:3], first) == 3
    again = Notebook(path, seed=1)
    assert cells[2] in again
    assert cells[3] not in again
    size = path.stat().st_size
    assert run(cells[:3], again) == 3
    assert path.stat().st_size == size
    assert cells[0] not in Notebook(path, seed=2)
    assert again[cells[1]] == first[cells[1]]


def test_an_interrupted_run_goes_on(tmp_path):
    """What was finished is kept, also if the last line was cut off in the middle."""
    path, cells = tmp_path / "cells.jsonl", [{"x": 1}, {"x": 2}, {"x": -1}]
    with pytest.raises(ValueError, match="no"):
        run(cells, Notebook(path, seed=1))
    whole = Notebook(path, seed=1)
    assert {"x": 2} in whole
    path.write_text(path.read_text()[:-10])
    cut = Notebook(path, seed=1)
    assert {"x": 1} in cut
    assert {"x": 2} not in cut
    run(cells[:2], cut)
    assert Notebook(path, seed=1)[{"x": 2}] == whole[{"x": 2}]


def test_neither_order_nor_processes_change_a_cell(tmp_path):
    cells = [{"x": x, "name": "a"} for x in range(3)]
    alone, pool = Notebook(tmp_path / "a", 7), Notebook(tmp_path / "b", 7)
    run(cells, alone)
    run(cells[::-1], pool, processes=2)
    assert all(alone[cell] == pool[cell] for cell in cells)
    assert key_of({"a": 1, "b": 2}, 0) == key_of({"b": 2, "a": 1}, 0)
    draws = {int(generator(cell, seed).integers(1 << 62)) for cell in cells for seed in (1, 2)}
    assert len(draws) == 6


def test_the_help_names_all_papers():
    (paper,) = inspect.get_annotations(reproduce, eval_str=True)["paper"].__metadata__
    words = paper.help.removeprefix("Paper: ").removesuffix(".")
    assert re.split(", | or ", words) == sorted(STUDIES)


def test_unknown_papers_are_refused():
    with pytest.raises(InvalidArgument, match="'paper' must be one of comparative"):
        find("novel")


@pytest.mark.parametrize("paper", STUDIES)
def test_papers_do_not_import_each_other(paper):
    """What two of them need is in the frame, or in the library."""
    folder = Path(deniable_papers.__file__).parent / paper
    text = "".join(file.read_text() for file in folder.glob("*.py"))
    imported = set(re.findall(r"(?:from|import) deniable_papers\.(\w+)", text))
    assert paper in imported
    assert not imported & (set(STUDIES) - {paper})
