"""`deniable reproduce` where the package that runs papers is not installed."""

import sys

import pytest

from command import run


@pytest.mark.parametrize("paper", ["kairouz", "novel"])
def test_a_missing_package_is_named_in_one_line(paper, tmp_path, monkeypatch):
    for module in ("deniable_papers", "deniable_papers.command"):
        monkeypatch.setitem(sys.modules, module, None)
    said = run("reproduce", paper, code=2, cwd=tmp_path)
    assert said.stdout == ""
    (line,) = said.stderr.splitlines()
    assert "'deniable_papers' is not installed." in line
    assert "pip install 'deniable[papers]'" in line
    assert not any(tmp_path.iterdir())


def test_the_help_needs_no_package(monkeypatch):
    for module in ("deniable_papers", "deniable_papers.command"):
        monkeypatch.setitem(sys.modules, module, None)
    assert "deniable-papers" in run("reproduce", "--help").stdout
