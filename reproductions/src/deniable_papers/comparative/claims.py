"""What the text says, tried on its own tables, on its settings, and on correct ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product

from deniable_papers.cells import Notebook
from deniable_papers.comparative.designs import AS_PUBLISHED, READINGS, choices
from deniable_papers.comparative.findings import PAPER
from deniable_papers.comparative.grids import FIGURES, GEOMETRIC, PANELS, SHARPER, Grid
from deniable_papers.comparative.losses import Loss, losses
from deniable_papers.comparative.published import (
    ATTRIBUTES,
    LOSSES,
    MECHANISMS,
    ROUNDING,
    TABLES,
)
from deniable_papers.datasets import Dataset
from deniable_papers.results import Cell, Result, Trial, claimed, compared

#: "Best": at most this share worse than any other. The printed digits tell no less apart: half a
#: unit of 0.01.
NEGLIGIBLE = 0.05
#: "Competitive", "comparable": at most this share worse.
COMPARABLE = 0.2
#: "Generally", "most", "often": in this share of the cells, by the means as the paper counts.
GENERALLY = 0.5
FAILING = "as published, bits failing as on the census"
DIRECT, BITS = ("k-RR", "k-subset", "HR"), ("bRAPPOR", "CMS")

#: Mean, standard error, and the runs that it comes from, by mechanism.
Known = tuple[float, float, float]
Field = Mapping[str, Known]
#: A field for each attribute and epsilon, or each n, epsilon and figure.
Fields = Mapping[tuple[str, float], Field]


def best(place: str, field: Field, name: str) -> Trial:
    """A mechanism is the best, up to `NEGLIGIBLE`."""
    return ahead(place, field, (name,), tuple(other for other in field if other != name))


def ahead(place: str, field: Field, some: tuple[str, ...], others: tuple[str, ...]) -> Trial:
    """The best of some is at most `NEGLIGIBLE` worse than the best of others."""
    one, rival = (min(names, key=lambda name: field[name][0]) for names in (some, others))
    return _trial(f"{place}, {rival}", field[one], field[rival], NEGLIGIBLE)


def comparable(place: str, field: Field, name: str, other: str) -> Trial:
    """A mechanism is at most `COMPARABLE` worse than another."""
    return _trial(f"{place}, {name}", field[name], field[other], COMPARABLE)


def _trial(place: str, one: Known, other: Known, margin: float) -> Trial:
    value = one[0] - (1 + margin) * other[0]
    error = math.hypot(one[1], (1 + margin) * other[1])
    return Trial(place, value, error, min(one[2], other[2]))


def all_claims(grid: Grid, data: Mapping[str, Dataset], notebook: Notebook) -> Iterator[Result]:
    """Claims of section III and the conclusion."""
    real = _real(grid, data, notebook)
    if real:
        yield from _of_tables("its own numbers", _printed())
    for reading, fields in real.items():
        yield from _of_tables(reading, fields)
        yield from _winners(f"real data, {reading}", fields)
    for name, words in ((GEOMETRIC, "mean d/5"), (SHARPER, "mean d/20")):
        for reading in READINGS:
            synthetic = _synthetic(grid, notebook, reading, name)
            yield from _of_figures(f"{reading}, geometric of {words}", synthetic)
            if reading == AS_PUBLISHED:
                failing = {number: _failing(number, f) for number, f in synthetic.items()}
                yield from _of_figures(f"{FAILING}, geometric of {words}", failing)
            everything = {
                (f"figure {number}, {place}", epsilon): field
                for number, fields in synthetic.items()
                for (place, epsilon), field in fields.items()
            }
            yield from _winners(f"geometric of {words}, {reading}", everything)


def _printed() -> Fields:
    """Tables II-IV; rounding to three digits has a standard deviation of its own."""
    found: dict[tuple[str, float], Field] = {}
    for epsilon, one in product(TABLES, ATTRIBUTES):
        field = {}
        for mechanism in MECHANISMS:
            mean, std = LOSSES[epsilon][one.data, one.name, mechanism]
            error = math.hypot(std / one.runs**0.5, ROUNDING / 3**0.5)
            field[mechanism] = mean, error, one.runs
        found[f"{one.data} {one.name}", epsilon] = field
    return found


def _real(grid: Grid, data: Mapping[str, Dataset], notebook: Notebook) -> dict[str, Fields]:
    found: dict[str, dict[tuple[str, float], Field]] = {}
    for (one, epsilon), settings in grid.tables(data).items():
        values = losses(settings, notebook[settings])
        for reading in READINGS:
            field = _field(values, reading, one.d, epsilon)
            found.setdefault(reading, {})[f"{one.data} {one.name}", epsilon] = field
    return dict(found)


def _field(values: Mapping[str, Loss], reading: str, d: int, epsilon: float) -> Field:
    some = {name: values[choice] for name, choice in choices(reading, d, epsilon).items()}
    return {name: (loss.mean, loss.error, loss.runs) for name, loss in some.items()}


def _synthetic(grid: Grid, notebook: Notebook, reading: str, name: str) -> dict[int, Fields]:
    found: dict[int, Fields] = {}
    for number in FIGURES:
        fields = {}
        for settings in grid.figure(number, name):
            d, epsilon, n = (settings[name] for name in ("d", "epsilon", "n"))
            values = losses(settings, notebook[settings])
            fields[f"d {d} n {n}", epsilon] = _field(values, reading, d, epsilon)
        found[number] = fields
    return found


def _failing(number: int, fields: Fields) -> Fields:
    """A guess, made after all else had been seen: bits fail on large data as on the census.

    There the l1 loss of Basic RAPPOR and CMS for Race is published as 1 and more.
    """
    d, small = FIGURES[number]
    if small:
        return fields
    race = next(one for one in ATTRIBUTES if one.d == 63)
    found = {}
    for (place, epsilon), field in fields.items():
        l1 = {m: race.d * LOSSES[epsilon][race.data, race.name, m][0] for m in BITS}
        found[place, epsilon] = {
            **field,
            **{m: (loss / d, 0.0, math.inf) for m, loss in l1.items()},
        }
    return found


def _at(fields: Fields, epsilon: float, *words: str) -> list[tuple[str, Field]]:
    """The fields of an epsilon, of places that begin with one of the words."""
    return [
        (place, field)
        for (place, e), field in fields.items()
        if e == epsilon and (not words or place.startswith(words))
    ]


def _say(
    where: str,
    reading: str,
    claim: str,
    trials: list[Trial],
    generally: bool = True,
    note: str = f"best: at most {NEGLIGIBLE:.0%} worse than any other",
) -> Iterator[Result]:
    """One row, if there are cells at all."""
    if not trials:
        return
    least = 1.0
    if generally:
        least, note = GENERALLY, f"{note}; counted by the means"
        trials = [Trial(trial.name, trial.value, 0.0) for trial in trials]
    yield claimed(PAPER, f"{where}, claim", f"{reading}: {claim}", trials, note, least)


def _of_tables(reading: str, fields: Fields) -> Iterator[Result]:
    high, medium, low = (_at(fields, epsilon) for epsilon in TABLES)
    few = _at(fields, 1.0, "Statlog", "Adult")
    many = _at(fields, 1.0, "USCensus1990")
    claim = "bRAPPOR is the best on most data at epsilon 0.5"
    yield from _say("Table II", reading, claim, [best(*one, "bRAPPOR") for one in high])
    claim = "k-RR is the best with few samples at epsilon 1"
    yield from _say("Table III", reading, claim, [best(*one, "k-RR") for one in few])
    note = f"competitive: at most {COMPARABLE:.0%} worse"
    claim = "k-subset and HR are competitive with k-RR on many samples at epsilon 1"
    trials = [comparable(*one, name, "k-RR") for one in many for name in ("k-subset", "HR")]
    yield from _say("Table III", reading, claim, trials, False, note)
    yield from _conclusion(reading, medium)
    claim = "k-RR is generally the best at epsilon 2"
    yield from _say("Table IV", reading, claim, [best(*one, "k-RR") for one in low])


def _conclusion(reading: str, medium: list[tuple[str, Field]]) -> Iterator[Result]:
    claim = "k-RR, k-subset and HR are generally better than bRAPPOR and CMS at epsilon 1"
    trials = [ahead(*one, (name,), BITS) for one in medium for name in DIRECT]
    yield from _say("section IV", reading, claim, trials)


def _of_figures(reading: str, fields: Mapping[int, Fields]) -> Iterator[Result]:
    at_high: list[tuple[int, str, bool]] = [
        (2, "bRAPPOR", True), (3, "HR", False), (4, "k-subset", False), (5, "bRAPPOR", True),
    ]  # fmt: skip
    for number, name, generally in at_high:
        words = "generally the best" if generally else "the best"
        claim = f"{name} is {words} at epsilon 0.5, d {FIGURES[number][0]}"
        trials = [best(*one, name) for one in _at(fields[number], 0.5)]
        yield from _say(f"Figure {number}{PANELS[0.5]}", reading, claim, trials, generally)
    medium, low = ([one for f in fields.values() for one in _at(f, e)] for e in (1.0, 2.0))
    claim = "k-RR, k-subset or HR is generally the best at epsilon 1"
    yield from _say("Figures 2b-5b", reading, claim, [ahead(*one, DIRECT, BITS) for one in medium])
    claim = "k-RR is generally the best at epsilon 2"
    yield from _say("Figures 2c-5c", reading, claim, [best(*one, "k-RR") for one in low])
    claim = "k-subset and HR are often comparable with k-RR at epsilon 2"
    note = f"comparable: at most {COMPARABLE:.0%} worse"
    trials = [comparable(*one, name, "k-RR") for one in low for name in ("k-subset", "HR")]
    yield from _say("Figures 2c-5c", reading, claim, trials, True, note)


def _winners(what: str, fields: Fields) -> Iterator[Result]:
    """The loss over the least of all mechanisms, as a geometric mean of the cells.

    ``best in``: cells with no other mean below by more than `NEGLIGIBLE`; ``surely not in``: those
    where chance cannot explain it.
    """
    for epsilon, name in product(TABLES, MECHANISMS):
        some = _at(fields, epsilon)
        trials = [best(place, field, name) for place, field in some]
        logs = [math.log(f[name][0] / min(known[0] for known in f.values())) for _, f in some]
        cell: Cell = {
            "epsilon": epsilon,
            "mechanism": name,
            "cells": len(trials),
            "best in": sum(trial.value <= 0 for trial in trials),
            "surely not in": sum(trial.against for trial in trials),
        }
        ratio = math.exp(sum(logs) / len(logs))
        yield compared(PAPER, f"loss / least loss, {what}", cell, None, ratio)
