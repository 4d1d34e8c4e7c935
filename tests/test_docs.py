"""What the documents show runs as it is pasted."""

import re
import shlex
from pathlib import Path

import pytest

import deniable as dn
from command import run
from deniable.core.domain import survey_kinds

HOME = Path(__file__).parents[1]
PAGES = {
    path.relative_to(HOME).as_posix(): blocks
    for path in [
        HOME / "README.md",
        HOME / "CONTRIBUTING.md",
        *sorted((HOME / "docs").glob("*.md")),
    ]
    if (blocks := re.findall(r"^```python\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE))
}


#: Pages that other tests run: the tour below, and one with a Spark session.
ELSEWHERE = {"README.md", "docs/spark.md"}


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted(set(PAGES) - ELSEWHERE))
def test_examples_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for block in PAGES[page]:
        exec(block, namespace)


#: Commands of the tour that take longer than a moment.
SLOW = {"demo", "serve", "simulate", "manipulate", "reproduce", "bench"}


@pytest.mark.slow
def test_the_tour_runs_as_it_is_pasted(tmp_path, monkeypatch):
    """The commands of the README, in order, in the folder of its Python example."""
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for block in PAGES["README.md"]:
        exec(block, namespace)
    blocks = re.findall(r"^```sh\n(.*?)^```", (HOME / "README.md").read_text(), re.DOTALL | re.M)
    lines = [shlex.split(line, comments=True) for block in blocks for line in block.splitlines()]
    commands = [words[1:] for words in lines if words[:1] == ["deniable"]]
    assert {"init", "check", "estimate", "series"} <= {words[0] for words in commands}
    for words in commands:
        given = [place for word in words for place in sorted(tmp_path.glob(word)) or [word]]
        run(*given, *(["--help"] if words[0] in SLOW else []))


def test_no_page_has_gaps():
    """A word of capitals alone on its line stands for something that was never written."""
    for path in (HOME / "docs").glob("*.md"):
        assert not re.search(r"^[A-Z]{4,}$", path.read_text(), re.MULTILINE), path.name


def test_the_tree_of_the_readme_is_there():
    tree = re.search(
        r"^```\nsrc/deniable/\n(.*?)^```", (HOME / "README.md").read_text(), re.M | re.S
    )[1]
    inside = re.findall(r"(?<!\S)([a-z_]+)/(?!\S)", "\n".join(re.findall("^  .*", tree, re.M)))
    beside = re.findall(r"(?<!\S)([a-z/]+)/(?!\S)", "\n".join(re.findall(r"^\S.*", tree, re.M)))
    assert inside
    assert beside
    places = [f"src/deniable/{name}" for name in inside] + beside
    assert [place for place in places if not (HOME / place).is_dir()] == []


def test_the_index_links_to_every_page():
    """All pages of docs are in docs/README.md, once, and every link there leads to a file."""
    folder = HOME / "docs"
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", (folder / "README.md").read_text())
    assert len(links) == len(set(links))
    assert [link for link in links if not (folder / link).is_file()] == []
    pages = {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")} - {"README.md"}
    assert pages - set(links) == set()


def test_what_papers_say_is_in_their_results():
    """(row: WHERE | part, part) names a row: its place, and parts of its cell."""
    from deniable_papers.results import read

    folder = HOME / "docs" / "papers"
    found = {path.stem: read(path) for path in folder.glob("*.json")}
    assert {path.stem for path in folder.glob("*.md")} == set(found)
    everything = [row for rows in found.values() for row in rows]
    for page in (HOME / "docs" / "papers.md", *folder.glob("*.md")):
        cited = re.findall(r"\(rows?: ([^|()]+) \| ([^()]+)\)", " ".join(page.read_text().split()))
        assert cited, page.name
        for where, parts in cited:
            wanted = [part.strip() for part in parts.split(",")]
            rows = [row for row in found.get(page.stem, everything) if row.where == where]
            texts = [row.row()["cell"] for row in rows]
            assert any(all(_holds(text, part) for part in wanted) for text in texts), (where, parts)


def _holds(text, part):
    """Whether a cell has the part: "k 2" is not in "k 200"."""
    return re.search(rf"{re.escape(part)}(?![\d.]*\d)", text) is not None


def test_formats_describe_everything_that_devices_know():
    """A row of coins and a row of integers for each mechanism, and a row for each kind."""
    text = (HOME / "docs" / "formats.md").read_text()
    rows = {"kind": [], "mechanism": []}
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        head, _, *body = (line.split("|")[1].strip() for line in table.splitlines())
        if head in rows:
            rows[head].append({name for first in body for name in re.findall("`([^`]+)`", first)})
    devices = {name for name, family in dn.mechanisms().items() if family.on_devices}
    assert rows == {"kind": [{*survey_kinds(), "several"}], "mechanism": [devices, devices]}
