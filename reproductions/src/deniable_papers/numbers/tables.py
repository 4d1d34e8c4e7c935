"""One table of all systems, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deniable_papers.numbers.systems import DISTRIBUTIONS, MEANS, MISSING
from deniable_papers.results import Result

HEAD = ("system", "section", "for", "in the library", "true epsilon for a stated 1")


def markdown(results: Sequence[Result]) -> str:
    """What each system is here; at the end those that nothing determines."""
    rows = [HEAD, ("---",) * len(HEAD), *_known(results)]
    undetermined = "not determined by the text: "
    rows += [(name, section, undetermined + lacks, "", "") for name, section, lacks in MISSING]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _known(results: Sequence[Result]) -> Iterator[tuple[str, ...]]:
    enumerated = {
        str(one.cell["system"]): (str(one.cell["mechanism"]), one.ours)
        for one in results
        if one.where == "true epsilon, enumerated" and one.published == 1.0
    }
    systems = {name: one.section for name, one in MEANS.items()}
    systems |= {name: one.section for name, one in DISTRIBUTIONS.items()}
    for name, section in systems.items():
        mechanism, epsilon = enumerated[name]
        what = "the mean" if name in MEANS else "the distribution"
        yield name, section, what, f"`{mechanism}`", f"{epsilon:.6g}"
