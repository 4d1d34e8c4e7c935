"""What the text says of the gains, tried on them as run and corrected."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from deniable_papers.ibu.designs import LONGITUDINAL, MECHANISMS, ONE_TIME
from deniable_papers.ibu.findings import HOWS, PAPER, STAND_IN, K, N, average_gain, label
from deniable_papers.ibu.gains import Average, Found, How, mean_of
from deniable_papers.ibu.populations import REAL
from deniable_papers.results import Result, Trial, claimed

#: "Similar" gains: within so many percent points. The text does not say.
SIMILAR = 5.0
#: "Similar results": mean squared errors that differ by at most this share.
CLOSE = 0.1
#: A longitudinal mechanism and the one-time one that its first report should be.
TWINS = {"L-GRR": "GRR", "L-SUE": "SUE", "L-OSUE": "OUE", "L-BLH": "BLH", "L-OLH": "OLH"}
_KINDS = {"one-time": ONE_TIME, "longitudinal": LONGITUDINAL}


def rows(found: Found) -> Iterator[Result]:
    """All claims in both settings."""
    for setting, how in HOWS.items():
        several = [_by_mechanism(found, how), _varied(found, how), _by_distribution(found, how)]
        if REAL in found.distributions:
            several.append(_on_incomes(found, how))
        for where, claim, trials, note in (claim for some in several for claim in some):
            yield claimed(PAPER, f"{where}, claim", f"{setting}: {claim}", trials, note)


Claim = tuple[str, str, list[Trial], str]


def _trial(name: str, difference: Average) -> Trial:
    return Trial(name, difference.value, difference.error, len(difference.runs))


def _similar(name: str, difference: Average) -> Trial:
    return replace(_trial(name, difference), value=abs(difference.value) - SIMILAR)


def _least(names: Sequence[str], found: dict[str, Average], first: str) -> list[Trial]:
    """The first is below all others."""
    return [_trial(name, found[first] - found[name]) for name in names if name != first]


def _most(names: Sequence[str], found: dict[str, Average], first: str) -> list[Trial]:
    return [_trial(name, found[name] - found[first]) for name in names if name != first]


def _by_mechanism(found: Found, how: How) -> Iterator[Claim]:
    """Section 4.2 on the last rows of the tables."""
    gains = {name: found.average(how, name) for name in MECHANISMS}
    rest = [name for name in ONE_TIME if name != "THE"]
    yield "Table 2", "THE has the highest gain", _most(ONE_TIME, gains, "THE"), ""
    yield "Table 2", "SUE has the second highest gain", _most(rest, gains, "SUE"), ""
    yield "Table 2", "GRR has the lowest gain", _least(ONE_TIME, gains, "GRR"), ""
    yield "Table 3", "L-SUE has the highest gain", _most(LONGITUDINAL, gains, "L-SUE"), ""
    yield "Table 3", "L-GRR has the lowest gain", _least(LONGITUDINAL, gains, "L-GRR"), ""
    trials = [
        _trial(f"{lh} over {ue}", gains[lh] - gains[ue])
        for ue in LONGITUDINAL[1:5]
        for lh in ("L-BLH", "L-OLH")
    ]
    yield "Table 3", "L-UE gain more than L-LH", trials, ""
    note = f"'similar': at most {SIMILAR:g} points apart"
    ue, lh = (mean_of([gains[name] for name in some]) for some in (("SUE", "OUE"), ("BLH", "OLH")))
    trials = [_similar("UE, LH", ue - lh)]
    yield "Table 2", "UE and LH gain similarly", trials, note
    trials = []
    for name, twin in TWINS.items():
        apart = gains[name] - gains[twin]
        trials.append(_similar(f"{name}, {twin}", apart))
    yield "section 4.1", "one-time and longitudinal versions gain similarly", trials, note


def _varied(found: Found, how: How) -> Iterator[Claim]:
    """Section 4.2 on Figures 3 and 4; averages over mechanisms, a trial for each distribution."""
    for number, (kind, mechanisms) in enumerate(_KINDS.items(), 3):
        words = {
            "epsilon": f"{kind}: the lower epsilon, the higher the gain",
            "n": f"{kind}: the more respondents, the higher the gain",
            "k": f"{kind}: the more values, the higher the gain",
        }
        for axis, claim in words.items():
            trials = [
                trial
                for name in found.distributions
                for trial in _ordered(found, how, mechanisms, name, axis)
            ]
            yield f"Figure {number}", claim, trials, ""


def _ordered(
    found: Found, how: How, mechanisms: Sequence[str], name: str, axis: str
) -> Iterator[Trial]:
    values = sorted(found.axis(axis), reverse=axis == "epsilon")
    gains = [found.overall(how, mechanisms, distribution=name, **{axis: value}) for value in values]
    for (low, high), (a, b) in zip(pairwise(values), pairwise(gains), strict=True):
        yield _trial(f"{label(name)}, {axis} {low:g} over {high:g}", a - b)


def _by_distribution(found: Found, how: How) -> Iterator[Claim]:
    """Section 4.2 says one thing of Figures 3-4 and another of the tables."""
    for number, (kind, mechanisms) in enumerate(_KINDS.items(), 2):
        gains = {
            label(name): found.overall(how, mechanisms, distribution=name)
            for name in found.distributions
        }
        for claim, trials, note in _of_figures(gains):
            yield f"Figure {number + 1}", f"{kind}: {claim}", trials, note
        for claim, trials, note in _of_tables(gains):
            yield f"Table {number}", f"{kind}: {claim}", trials, note


def _of_figures(gains: dict[str, Average]) -> Iterator[tuple[str, list[Trial], str]]:
    note = "the text says this of the figures, and that Poisson gains most of the tables"
    yield "the uniform distribution gains most", _most(list(gains), gains, "Unif."), note
    trials = [
        _trial(f"{low} over {name}", gains[low] - gains[name])
        for low in ("Gauss.", "Exp.")
        for name in gains
        if name not in ("Gauss.", "Exp.")
    ]
    yield "Gaussian and Exponential gain least", trials, ""


def _of_tables(gains: dict[str, Average]) -> Iterator[tuple[str, list[Trial], str]]:
    yield "Poisson gains most", _most(list(gains), gains, "Poiss."), ""
    if "Real" in gains:
        rest = [name for name in gains if name != "Poiss."]
        yield "Real gains most after Poisson", _most(rest, gains, "Real"), STAND_IN
    trials = _least(list(gains), gains, "Gauss.")
    trials += _least([name for name in gains if name != "Gauss."], gains, "Triang.")
    yield "Gaussian gains least, then Triangular", trials, ""


def _on_incomes(found: Found, how: How) -> Iterator[Claim]:
    """Section 4.2 on Figures 1 and 2."""

    def ratios(names: Sequence[str], epsilons: Sequence[float]) -> list[Trial]:
        """The logs of the ratios of the losses: negative if IBU is better."""
        place = {"distribution": REAL, "n": N, "k": K}
        return [
            Trial(
                f"{name}, epsilon {e:g}",
                *found.log_ratio(how, name, **place, epsilon=e),
                found.runs,
            )
            for name in names
            for e in epsilons
        ]

    most = found.axis("epsilon")[1:]
    for number, mechanisms in enumerate(_KINDS.values(), 1):
        claim = "IBU is better at epsilon 2 and 4"
        yield f"Figure {number}", claim, ratios(mechanisms, most), STAND_IN
        claim = "the average gain is highest at epsilon 2, then at 4, then at 1"
        yield f"Figure {number}", claim, _average_order(found, how, mechanisms), STAND_IN
    claim = "at epsilon 1 IBU is better for GRR, OUE, SS and OLH"
    yield "Figure 1", claim, ratios(("GRR", "OUE", "SS", "OLH"), [1.0]), STAND_IN
    claim = "at epsilon 1 IBU is similar to MI for SUE and THE"
    close = [_close(trial) for trial in ratios(("SUE", "THE"), [1.0])]
    yield "Figure 1", claim, close, f"'similar': MSEs within {CLOSE:.0%}; {STAND_IN}"
    claim = "at epsilon 1 IBU is worse for BLH"
    yield "Figure 1", claim, [_opposite(one) for one in ratios(["BLH"], [1.0])], STAND_IN
    claim = "at epsilon 1 IBU is not better for L-SUE and L-BLH"
    worse = [_opposite(one) for one in ratios(["L-SUE", "L-BLH"], [1.0])]
    yield "Figure 2", claim, worse, STAND_IN


def _opposite(trial: Trial) -> Trial:
    return replace(trial, value=-trial.value)


def _close(trial: Trial) -> Trial:
    return replace(trial, value=abs(trial.value) - math.log(1 + CLOSE))


def _average_order(found: Found, how: How, mechanisms: Sequence[str]) -> list[Trial]:
    gains = {e: average_gain(found, how, mechanisms, e) for e in (2.0, 4.0, 1.0)}
    return [
        Trial(f"epsilon {b:g} over {a:g}", gains[b][0] - gains[a][0],
              math.hypot(gains[a][1], gains[b][1]), found.runs)
        for a, b in pairwise(gains)
    ]  # fmt: skip
