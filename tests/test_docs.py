"""What the documents show runs as it is pasted."""

import re
from pathlib import Path

import pytest

HOME = Path(__file__).parents[1]
PAGES = {
    path.name: blocks
    for path in [HOME / "README.md", *sorted((HOME / "docs").glob("*.md"))]
    if (blocks := re.findall(r"^```python\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE))
}


@pytest.mark.parametrize("page", PAGES)
def test_examples_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for block in PAGES[page]:
        exec(block, namespace)


def test_no_page_has_gaps():
    """A word of capitals alone on its line stands for something that was never written."""
    for path in (HOME / "docs").glob("*.md"):
        assert not re.search(r"^[A-Z]{4,}$", path.read_text(), re.MULTILINE), path.name


def test_what_papers_say_is_in_their_results():
    """(row: WHERE | part, part) names a row: its place, and parts of its cell."""
    from deniable.studio.papers.results import read

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
