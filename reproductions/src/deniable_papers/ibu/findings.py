"""Tables 2 and 3, Figures 1-4, and what explains them: rows from the gains that were found."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from deniable.mechanisms import LGRR
from deniable_papers.ibu.designs import MECHANISMS, ONE_TIME, settings_of
from deniable_papers.ibu.gains import AS_RUN, CORRECTED, Average, Found, How, mean_of
from deniable_papers.ibu.populations import REAL, SYNTHETIC
from deniable_papers.ibu.published import AVERAGE, DISTRIBUTIONS, METRICS, TABLES
from deniable_papers.results import Cell, Result, compared

PAPER = "ibu"
#: Published gains are whole percents.
ROUNDING = 0.5
STAND_IN = "incomes of other persons and another year than in the paper"
TEXT = "as the text prints it; the authors' software does otherwise"
FOR_TWO = "the second step is calibrated for two values; more privacy than asked for, less accuracy"
HOWS = {"as run": AS_RUN, "corrected": CORRECTED}
#: Where Figures 1 and 2 are.
N, K = 20_000, 100
#: By what the rows call them.
DECODERS = {
    "IBU, 10^4 steps": "update",
    "IBU, limit": "limit",
    "projected": "projected",
    "bayes": "bayes",
}
#: (how, mechanism, distribution) -> percent.
Reading = Callable[[How, str, str], float]


def tables(found: Found) -> Iterator[Result]:
    """Tables 2 and 3: as run, as the text prints the mechanisms, and corrected."""
    for table, (mechanisms, published) in TABLES.items():
        differing = [name for name in mechanisms if "text" in settings_of(name)]
        for metric in METRICS:
            numbers = {place[:2]: x for place, x in published.items() if place[2] == metric}
            run = _averages(found, replace(AS_RUN, metric=metric), mechanisms)
            yield from _compared(table, metric, run, numbers)
            right = _averages(found, replace(CORRECTED, metric=metric), mechanisms)
            yield from _compared(f"{table}, corrected", metric, right, {})
            text = _averages(found, How("text", "update", metric), differing)
            some = {place: one for place, one in text.items() if place[1] != AVERAGE}
            yield from _compared(f"{table}, text", metric, some, numbers, TEXT)


def label(distribution: str) -> str:
    """A distribution by the name it has in the tables."""
    return "Real" if distribution == REAL else distribution


def _averages(found: Found, how: How, mechanisms: Sequence[str]) -> dict[tuple[str, str], Average]:
    """The cells of a table, with its last row (if all distributions are there) and column."""
    names = list(found.distributions)
    cells = {
        (row, column): found.average(how, column, distribution=row)
        for row in names
        for column in mechanisms
    }
    if len(names) == len(DISTRIBUTIONS):
        for column in mechanisms:
            cells[AVERAGE, column] = mean_of([cells[row, column] for row in names])
        names.append(AVERAGE)
    for row in names:
        cells[row, AVERAGE] = mean_of([cells[row, column] for column in mechanisms])
    return cells


def _compared(
    where: str,
    metric: str,
    cells: dict[tuple[str, str], Average],
    published: dict[tuple[str, str], float],
    reason: str = "",
) -> Iterator[Result]:
    """The published numbers come from 20 runs, too: the error of a row is that of the difference
    of two numbers with our error."""
    for (row, column), average in cells.items():
        number = published.get((label(row), column))
        error = average.error * (1.0 if number is None else math.sqrt(2))
        about = "; ".join(part for part in (reason, STAND_IN if row == REAL else "") if part)
        cell: Cell = {"distribution": row, "mechanism": column, "metric": metric}
        yield compared(PAPER, where, cell, number, average.value, error, ROUNDING, about)


def figures(found: Found) -> Iterator[Result]:
    """All points of Figures 1-4; none of them is published as a number.

    Figures 1-2 have the gain of the mean losses, Figures 3-4 the mean of the gains of the runs: so
    the authors' software has it.
    """
    for number, (mechanisms, _) in enumerate(TABLES.values(), 1):
        if REAL in found.distributions:
            for setting, how in HOWS.items():
                yield from _real(found, f"Figure {number}", setting, how, mechanisms)
        for setting, how in HOWS.items():
            yield from _varied(found, f"Figure {number + 2}", setting, how, mechanisms)


def gain_of_means(found: Found, how: How, mechanism: str, epsilon: float) -> tuple[float, float]:
    """100 (1 - ratio of mean losses), 0 if negative, on incomes at the n and k of Figures 1-2."""
    ratio, error = found.log_ratio(how, mechanism, distribution=REAL, n=N, k=K, epsilon=epsilon)
    return 100 * max(0.0, 1 - math.exp(ratio)), 100 * math.exp(ratio) * error


def average_gain(
    found: Found, how: How, mechanisms: Sequence[str], epsilon: float
) -> tuple[float, float]:
    """AvgGain of a panel of Figures 1-2, whose mechanisms share their samples."""
    gains = [gain_of_means(found, how, name, epsilon) for name in mechanisms]
    value, error = np.mean(gains, axis=0)
    return float(value), float(error)


def _real(
    found: Found, where: str, setting: str, how: How, mechanisms: Sequence[str]
) -> Iterator[Result]:
    for epsilon in found.axis("epsilon"):
        for name in mechanisms:
            value, error = gain_of_means(found, how, name, epsilon)
            cell: Cell = {"setting": setting, "mechanism": name, "epsilon": epsilon}
            yield compared(PAPER, where, cell, None, value, error, reason=STAND_IN)
        value, error = average_gain(found, how, mechanisms, epsilon)
        cell = {"setting": setting, "epsilon": epsilon}
        yield compared(PAPER, f"{where}, AvgGain", cell, None, value, error, reason=STAND_IN)


def _varied(
    found: Found, where: str, setting: str, how: How, mechanisms: Sequence[str]
) -> Iterator[Result]:
    for name in found.distributions:
        for axis in ("epsilon", "n", "k"):
            for value in found.axis(axis):
                gain = found.overall(how, mechanisms, distribution=name, **{axis: value})
                cell: Cell = {"setting": setting, "distribution": name, "varied": axis, axis: value}
                about = STAND_IN if name == REAL else ""
                yield compared(PAPER, where, cell, None, gain.value, gain.error, reason=about)


def clipping(found: Found) -> Iterator[Result]:
    """How much of an average gain is only that gains below 0 count as 0 in every run.

    The signed gain is 1 less the geometric mean of the ratios of mean losses: two decoders that are
    equally good have 0. A mean of clipped gains is positive even then.
    """
    for table, (mechanisms, _) in TABLES.items():
        for setting, how in HOWS.items():
            for k in found.axis("k"):
                clipped = found.overall(how, mechanisms, k=k)
                both = {
                    "clipped": (clipped.value, clipped.error),
                    "signed": _signed(found, how, mechanisms, k),
                }
                for kind, value in both.items():
                    cell: Cell = {"setting": setting, "k": k, "gain": kind}
                    yield compared(PAPER, f"{table}, clipping", cell, None, *value)


def _signed(found: Found, how: How, mechanisms: tuple[str, ...], k: float) -> tuple[float, float]:
    value, error = np.mean([found.log_ratio(how, name, k=k) for name in mechanisms], axis=0)
    ratio = math.exp(value)
    return 100 * (1 - ratio), 100 * ratio * float(error)


def decoders(found: Found) -> Iterator[Result]:
    """What of the gain is what: early stopping, the limit, and other decoders, on right mechanisms.

    All numbers are MSEs relative to that of matrix inversion (clipped and normalised): geometric
    means over distributions, n and k > 2. With two values all decoders nearly agree.
    """
    for title, decoder in DECODERS.items():
        if decoder in found.cells[0][1]["GRR corrected"]["MSE"]:
            how = How("corrected", decoder)
            yield from _by_distribution(found, title, how)
            yield from _by_mechanism(found, title, how)
    yield from _corrections(found)


def _relative(
    found: Found, how: How, names: tuple[str, ...], **wanted: object
) -> tuple[float, float]:
    """exp of the mean log ratio, and its error (as in `Found.log_ratio`)."""
    sizes = [k for k in found.axis("k") if k > 2]
    pairs = [found.log_ratio(how, name, k=k, **wanted) for name in names for k in sizes]
    value, error = np.mean(pairs, axis=0)
    return math.exp(value), math.exp(value) * float(error)


def _by_distribution(found: Found, title: str, how: How) -> Iterator[Result]:
    for name in found.distributions:
        for epsilon in found.axis("epsilon"):
            value = _relative(found, how, ONE_TIME, distribution=name, epsilon=epsilon)
            cell: Cell = {"decoder": title, "distribution": name, "epsilon": epsilon}
            about = STAND_IN if name == REAL else ""
            yield compared(PAPER, "MSE relative to MI", cell, None, *value, reason=about)


def _by_mechanism(found: Found, title: str, how: How) -> Iterator[Result]:
    for name in ONE_TIME:
        for epsilon in found.axis("epsilon"):
            value = _relative(found, how, (name,), epsilon=epsilon)
            cell: Cell = {"decoder": title, "mechanism": name, "epsilon": epsilon}
            yield compared(PAPER, "MSE relative to MI", cell, None, *value)


def _corrections(found: Found) -> Iterator[Result]:
    """MSE of the corrected mechanism and the limit over that of IBU as run."""
    for name in MECHANISMS:
        if "software" not in settings_of(name):
            continue
        for epsilon in found.axis("epsilon"):
            logs = []
            for settings, values in found.where(epsilon=epsilon):
                if settings["k"] > 2:
                    new = values[f"{name} corrected"]["MSE"]["limit"]["loss"]
                    old = values[f"{name} software"]["MSE"]["update"]["loss"]
                    logs.append((math.log(new[0] / old[0]), math.hypot(new[1], old[1])))
            value, error = np.mean(logs, axis=0)
            mean = math.exp(value)
            cell: Cell = {"mechanism": name, "epsilon": epsilon}
            where = "MSE, corrected over as run"
            yield compared(PAPER, where, cell, None, mean, mean * float(error))


def promises(found: Found) -> Iterator[Result]:
    """The exact epsilon of a first report of L-GRR beside the epsilon_1 that it is designed for."""
    for k in found.axis("k"):
        for epsilon in found.axis("epsilon"):
            m = LGRR(int(k), 2 * epsilon, epsilon, calibration="paper")
            cell: Cell = {"mechanism": "L-GRR", "k": k, "epsilon_1": epsilon}
            where = "section 3.2, epsilon of a first report"
            yield compared(PAPER, where, cell, epsilon, m.once.epsilon, 0, 1e-6, FOR_TWO)


def readings(found: Found, equal: Found) -> Iterator[Result]:
    """The mean distance, in points, between our synthetic cells and the published ones.

    The text leaves open what a bucket is and of what an average gain is the average; and it prints
    other formulas than the authors' software has.
    """

    def runs(how: How, mechanism: str, distribution: str) -> float:
        return found.average(how, mechanism, distribution=distribution).value

    def even(how: How, mechanism: str, distribution: str) -> float:
        return equal.average(how, mechanism, distribution=distribution).value

    def means(how: How, mechanism: str, distribution: str) -> float:
        entry = how.key(mechanism)
        cells = [values[entry] for _, values in found.where(distribution=distribution)]
        logs = [values[how.metric][how.decoder]["log"][0] for values in cells]
        return 100 * float(np.mean([max(0.0, 1 - math.exp(log)) for log in logs]))

    for table in TABLES:
        yield _distance(table, "as run", "software", runs)
        yield _distance(table, "gains of mean losses", "software", means)
        differing = [name for name in TABLES[table][0] if "text" in settings_of(name)]
        for name, setting in (("software", "software"), ("text", "text")):
            title = f"formulas of the {name}, where they differ"
            yield _distance(table, title, setting, runs, differing)
        if equal.cells:
            yield _distance(table, "k buckets of equal width", "software", even)


def _distance(
    table: str, name: str, setting: str, reading: Reading, some: Sequence[str] = ()
) -> Result:
    """Over all mechanisms, or some."""
    mechanisms, published = TABLES[table]
    distances = [
        abs(reading(How(setting, AS_RUN.decoder, metric), one, row) - published[row, one, metric])
        for one in some or mechanisms
        for row in SYNTHETIC
        for metric in METRICS
    ]
    cell: Cell = {"reading": name, "cells": len(distances)}
    where = f"{table}, distance to the published cells"
    return compared(PAPER, where, cell, None, float(np.mean(distances)))
