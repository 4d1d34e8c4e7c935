"""From simulated cells to rows: Propositions 3-4, Figures 1-3, and the claims of their text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import product

import numpy as np

from deniable_papers.cells import Notebook, Settings
from deniable_papers.kairouz import theory
from deniable_papers.kairouz.closed import Losses
from deniable_papers.kairouz.grids import NAMES, READINGS, Grid, N, S, distribution
from deniable_papers.results import Cell, Result, Trial, claimed, compared

PAPER = "kairouz"
MECHANISMS = ("k-RR", "k-RAPPOR")
#: "Matches" and "nearly indistinguishable" in the text: within this share of a loss.
NEAR = 0.05
#: "Best": no other has a loss that is smaller by more than this share.
NEGLIGIBLE = 0.01
BEST = f"best: at most {NEGLIGIBLE:.0%} worse than any other"
#: Designs: which values an integer may have.
Some = Mapping[str, tuple[int, ...]]
Chosen = Mapping[tuple[str, str, float], Settings]


def propositions(grid: Grid, notebook: Notebook) -> Iterator[Result]:
    """Formula and simulation; the last cell is about the norm."""
    *cells, last = grid.propositions()
    for one in cells:
        p = distribution(one["distribution"], one["k"], np.random.default_rng())
        number = 3 if one["mechanism"] == "k-RR" else 4
        for loss in ("l1", "l2"):
            formula = theory.LOSSES[one["mechanism"]][loss](p, one["n"], one["epsilon"])
            ours, error = notebook[one][loss]
            cell = {"loss": loss, **_named(one, "distribution", "k", "n", "epsilon")}
            reason = "the formula is a limit for large n" if loss == "l1" else ""
            yield compared(
                PAPER, f"Proposition {number}", cell, formula, ours, error, reason=reason
            )
    norm, error = notebook[last]["norm"]
    reason = "a slip: the sum is 1; negative entries make the l1 norm larger"
    cell = _named(last, "distribution", "k", "n", "epsilon")
    yield compared(PAPER, "section 4.1, l1 norm of k-RR", cell, 1.0, norm, error, reason=reason)


def _named(settings: Settings, *names: str) -> dict[str, str | int | float]:
    return {name: settings[name] for name in names}


def decoders(grid: Grid, notebook: Notebook) -> Iterator[Result]:
    """Figures 1 and 2 and section 4.4."""
    figures = [(one, Losses(notebook[one])) for one in grid.figures()]
    yield from _figure_1(figures)
    yield from _figure_2(figures)
    others = [(one, Losses(notebook[one])) for one in grid.others()]
    yield from _other_distributions(others)


Found = list[tuple[Settings, Losses]]


def _figure_1(figures: Found) -> Iterator[Result]:
    some = [pair for pair in figures if pair[0]["distribution"] == "geometric"]
    for mechanism in MECHANISMS:
        for one, losses in some:
            if one["n"] == 30_000:
                cell = {"mechanism": mechanism, **_named(one, "k", "epsilon")}
                yield compared(PAPER, "Figure 1", cell, None, *losses.gain(mechanism))
        for n in (100, 30_000):
            trials = [_best(one, losses, mechanism) for one, losses in some if one["n"] == n]
            claim = f"{mechanism}, geometric, n {n}: the projected decoder is the best"
            yield claimed(PAPER, "Figure 1, claim", claim, trials, BEST)


def _best(one: Settings, losses: Losses, mechanism: str, decoder: str = "projected") -> Trial:
    """A decoder is best: at most `NEGLIGIBLE` worse than any other of its mechanism."""
    name = f"{mechanism} {decoder}"
    rival = losses.best(mechanism, name)
    value, error = losses.difference(name, rival)
    return Trial(_place(one), value - NEGLIGIBLE * losses.means[rival], error)


def _place(one: Settings) -> str:
    return f"n {one['n']} k {one['k']} epsilon {one['epsilon']:g}"


def _figure_2(figures: Found) -> Iterator[Result]:
    panels: dict[tuple[str, int], Found] = {}
    for one, losses in figures:
        panels.setdefault((one["distribution"], one["n"]), []).append((one, losses))
    for (name, n), found in panels.items():
        for one, losses in found:
            value, error = losses.advantage()
            cell = {"distribution": name, "n": n, **_named(one, "k", "epsilon")}
            yield compared(PAPER, "Figure 2", cell, None, value, error)
        yield from _sides(f"{name}, n {n}", found)
    for name in ("geometric", "dirichlet"):
        yield _shrinks(name, panels[name, 100], panels[name, 30_000])


def _sides(panel: str, found: Found) -> Iterator[Result]:
    """The two triangles of a panel."""
    low = [(o, x.advantage()) for o, x in found if o["k"] < math.exp(o["epsilon"])]
    trials = [Trial(_place(one), *pair) for one, pair in low]
    claim = f"{panel}: k-RR is better where k < e^eps"
    yield claimed(PAPER, "Figure 2, claim", claim, trials)
    high = [(o, x.advantage()) for o, x in found if o["k"] > 16 * math.exp(o["epsilon"])]
    trials = [Trial(_place(one), -value, error) for one, (value, error) in high]
    claim = f"{panel}: k-RAPPOR is better where k > 16 e^eps"
    note = "the text gives no boundary: for relatively large k and low epsilon"
    yield claimed(PAPER, "Figure 2, claim", claim, trials, note)


def _shrinks(name: str, few: Found, many: Found) -> Result:
    trials = []
    for (one, at_few), (_, at_many) in zip(few, many, strict=True):
        if one["k"] < math.exp(one["epsilon"]):
            (a, error_a), (b, error_b) = at_few.advantage(), at_many.advantage()
            trials.append(Trial(_place(one), a - b, math.hypot(error_a, error_b)))
    claim = f"{name}: k-RR's advantage where k < e^eps is smaller at n 30000 than at n 100"
    return claimed(PAPER, "Figure 2, claim", claim, trials)


def _other_distributions(others: Found) -> Iterator[Result]:
    """Section 4.4.1: projected is best everywhere but for Dirichlet, where normalized is."""
    for mechanism, name in product(MECHANISMS, NAMES + READINGS):
        best = "normalized" if name == "dirichlet" else "projected"
        trials = [
            _best(one, losses, mechanism, best)
            for one, losses in others
            if one["distribution"] == name
        ]
        where = f"section 4.4.1, {'other reading' if name in READINGS else 'claim'}"
        claim = f"{mechanism}, {name}: the {best} decoder is the best"
        yield claimed(PAPER, where, claim, trials, BEST)


def open_alphabets(grid: Grid, notebook: Notebook, chosen: Chosen) -> Iterator[Result]:
    """Figure 3 and section 5.3."""
    medians: dict[tuple[str, str, float], tuple[float, float]] = {}
    for line, one in chosen.items():
        design = "/".join(str(one[name]) for name in ("cohorts", "width", "hashes"))
        yield _point(line, notebook[one]["losses"][0], design, medians)
    for one in grid.plain():
        for epsilon, losses in zip(one["epsilons"], notebook[one]["losses"], strict=True):
            yield _point(("closed", one["mechanism"], epsilon), losses, "-", medians)
    yield from _baselines()
    yield from _figure_3_claims(grid, medians)
    yield from _design_claims(grid, notebook, _spread(chosen, notebook))
    yield from _by_cohorts(grid, notebook)


def _point(
    line: tuple[str, str, float],
    losses: list[float],
    design: str,
    medians: dict[tuple[str, str, float], tuple[float, float]],
) -> Result:
    """The median of the samples; its error is that of a mean times sqrt(pi / 2)."""
    error = math.sqrt(math.pi / 2) * float(np.std(losses, ddof=1)) / len(losses) ** 0.5
    medians[line] = float(np.median(losses)), error
    low, high = np.quantile(losses, (0.05, 0.95))
    cell: Cell = {
        "alphabet": line[0],
        "mechanism": line[1],
        "epsilon": line[2],
        "low": float(low),
        "high": float(high),
        "cohorts/width/hashes": design,
    }
    return compared(PAPER, "Figure 3", cell, None, *medians[line])


def _baselines() -> Iterator[Result]:
    """The expected loss of the respondents' own sample, and the loss of the uniform guess."""
    p = distribution("geometric", S, np.random.default_rng())
    sample = float(np.sqrt(2 * p * (1 - p) / (math.pi * N)).sum())
    uniform = float(np.abs(p - 1 / S).sum())
    for name, value in (("sample", sample), ("uniform guess", uniform)):
        yield compared(PAPER, "Figure 3, baseline", {"mechanism": name}, None, value)


def _figure_3_claims(
    grid: Grid, medians: Mapping[tuple[str, str, float], tuple[float, float]]
) -> Iterator[Result]:
    def trials(alphabet: str, one: str, others: Iterable[str]) -> list[Trial]:
        """One is at most `NEAR` worse than each other."""
        found = []
        for epsilon in grid.open_epsilons:
            for other in others:
                a, b = medians[alphabet, one, epsilon], medians[alphabet, other, epsilon]
                error = math.hypot(a[1], b[1])
                place = f"epsilon {epsilon:g}, {other} {b[0]:.3g}"
                found.append(Trial(place, a[0] - (1 + NEAR) * b[0], error))
        return found

    note = f"'matches': at most {NEAR:.0%} worse"
    claim = "open alphabet: O-RR matches or exceeds O-RAPPOR"
    yield claimed(PAPER, "Figure 3a, claim", claim, trials("open", "O-RR", ["O-RAPPOR"]), note)
    claim = "closed alphabet: O-RR matches or exceeds all others"
    rivals = ["k-RR", "k-RAPPOR", "O-RAPPOR"]
    yield claimed(PAPER, "Figure 3b, claim", claim, trials("closed", "O-RR", rivals), note)
    alike = trials("closed", "O-RAPPOR", ["k-RAPPOR"]) + trials("closed", "k-RAPPOR", ["O-RAPPOR"])
    claim = "closed alphabet: k-RAPPOR and O-RAPPOR are nearly indistinguishable"
    yield claimed(PAPER, "Figure 3b, claim", claim, alike, note)


def _spread(chosen: Chosen, notebook: Notebook) -> float:
    """The relative standard deviation of a sample's loss: the error of the search."""
    losses = [notebook[one]["losses"][0] for one in chosen.values()]
    return max(float(np.std(some, ddof=1) / np.mean(some)) for some in losses)


def _design_claims(grid: Grid, notebook: Notebook, spread: float) -> Iterator[Result]:
    """Section 5.3, from the search: one sample a design, so errors are those of one sample."""
    several, most = grid.cohorts[1:], grid.cohorts[-1:]
    wide, narrow = grid.widths[-1:], grid.widths[:-1]
    claims: list[tuple[str, str, Some, Some]] = [
        ("O-RAPPOR", "one hash function is best", {"hashes": (1,)}, {"hashes": grid.hashes[1:]}),
        ("O-RR", "one cohort is worse than several", {"cohorts": several}, {"cohorts": (1,)}),
        ("O-RAPPOR", "one cohort is worse than several", {"cohorts": several}, {"cohorts": (1,)}),
        ("O-RAPPOR", "the widest is best", {"width": wide}, {"width": narrow}),
        ("O-RAPPOR", f"2 cohorts do for {most[0]}", {"cohorts": (2,)}, {"cohorts": most}),
        ("O-RR", "the most cohorts are best", {"cohorts": most}, {"cohorts": grid.cohorts[:-1]}),
    ]
    note = f"one sample a design, of relative standard deviation {spread:.2g}"
    for mechanism, claim, this, that in claims:
        trials = []
        for place, epsilon in enumerate(grid.open_epsilons):
            a = _least(grid, notebook, mechanism, place, this)
            b = _least(grid, notebook, mechanism, place, that)
            trials.append(Trial(f"epsilon {epsilon:g}", a - b, spread * math.hypot(a, b)))
        yield claimed(PAPER, "section 5.3, claim", f"{mechanism}: {claim}", trials, note)


def _by_cohorts(grid: Grid, notebook: Notebook) -> Iterator[Result]:
    """How much O-RR gains by cohorts: the best width for each number of them, from one sample."""
    for place, epsilon in enumerate(grid.open_epsilons):
        for cohorts in grid.cohorts if epsilon in (1.0, 3.0, 5.0) else ():
            loss = _least(grid, notebook, "O-RR", place, {"cohorts": (cohorts,)})
            cell: Cell = {"mechanism": "O-RR", "epsilon": epsilon, "cohorts": cohorts}
            yield compared(PAPER, "section 5.3, search", cell, None, loss)


def _least(grid: Grid, notebook: Notebook, mechanism: str, place: int, some: Some) -> float:
    """The least loss of some designs for any text, at the epsilon of this place."""
    return min(
        float(notebook[one]["losses"][place][0])
        for one in grid.search()
        if (one["alphabet"], one["mechanism"]) == ("open", mechanism)
        and all(one[name] in values for name, values in some.items())
    )
