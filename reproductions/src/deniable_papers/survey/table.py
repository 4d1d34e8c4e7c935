"""One table of all mechanisms in Markdown, from the rows of a result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deniable_papers.results import Result, Verdict

#: The table is about this epsilon.
EPSILON = 1.0


def markdown(results: Sequence[Result]) -> str:
    """Variances, sizes and times; of Table 4's rows also how many designs were reproduced."""
    names = list(dict.fromkeys(str(one.cell["mechanism"]) for one in _at(results, "variance")))
    sizes = sorted({int(one.cell["k"]) for one in _at(results, "variance")})
    shown = (sizes[len(sizes) > 2], sizes[-1])
    head = ["mechanism", "Table 4 reproduced"]
    head += [f"n Var, k = {k}: Table 4, formula, measured" for k in shown]
    head += ["order in Table 4", "bits, k = 16; 1024", "bytes", "client", "tally", "decoding"]
    lines = [head, ["---"] * len(head), *(_line(results, name, shown) for name in names)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _at(results: Sequence[Result], part: str) -> list[Result]:
    return [one for one in results if one.where == f"Table 4, {part}"]


def _line(results: Sequence[Result], name: str, sizes: Sequence[int]) -> list[str]:
    own = [one for one in results if one.cell.get("mechanism") == name]
    found = _at(own, "variance")
    right = sum(one.verdict is Verdict.reproduced for one in found)
    share = f"{right} of {len(found)}" if found[0].published is not None else ""
    (size,) = _at(own, "communication")
    bits, packed = (
        "; ".join(str(value) for key, value in size.cell.items() if key.startswith(unit))
        for unit in ("bits", "bytes")
    )
    numbers = [_numbers(found, k) for k in sizes]
    return [name, share, *numbers, str(size.cell["order"]), bits, packed, *_times(own)]


def _numbers(found: Sequence[Result], k: int) -> str:
    """Published, formula and measured n Var of a design."""
    for one in found:
        if (one.cell["k"], one.cell["epsilon"]) == (k, EPSILON):
            published = "" if one.published is None else _digits(one.published)
            three = (published, _digits(float(one.cell["formula"])), _digits(one.ours))
            return ", ".join(part or "-" for part in three)
    return ""


def _times(own: Sequence[Result]) -> list[str]:
    """Client, tally, decoding over those of GRR, at the largest k."""
    timed = _at(own, "times / GRR")
    if not timed:
        return ["", "", ""]
    cell: Any = timed[-1].cell
    return [_digits(value, 2) for value in (timed[-1].ours, cell["tally"], cell["decoding"])]


def _digits(value: float, digits: int = 3) -> str:
    """Some digits, never as a power of ten."""
    return f"{float(f'{value:.{digits}g}'):.6g}"
