"""Simulated collections: what error to expect, before anybody is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats
from deniable.errors import InvalidArgument, require_int
from deniable.estimation import FREQUENCIES, Frequencies, metrics
from deniable.mechanisms.frequency import FrequencyOracle
from deniable.populations import MOST_ANSWERS, POPULATIONS, people

#: What a simulation can hold in memory.
MOST_RESPONDENTS = 1 << 40


def population(distribution: str, k: int, n: int, rng: np.random.Generator) -> NDArray[np.uint32]:
    """n values of 0..k-1 with shares as near to the distribution as whole people allow,
    shuffled."""
    if distribution not in POPULATIONS:
        raise InvalidArgument("distribution", distribution, f"one of {', '.join(POPULATIONS)}")
    require_int("size", k, 2, MOST_ANSWERS)
    require_int("respondents", n, 1, MOST_RESPONDENTS)
    values = np.repeat(np.arange(k, dtype=np.uint32), people(POPULATIONS[distribution](k), n))
    rng.shuffle(values)
    return values


def runs(
    mechanism: FrequencyOracle,
    values: NDArray[np.uint32],
    methods: Sequence[str],
    rng: np.random.Generator,
    count: int,
) -> Iterator[dict[str, dict[str, float]]]:
    """Collect the same answers ``count`` times; the errors of each method on each collection."""
    truth = np.bincount(values, minlength=mechanism.domain.size) / len(values)
    for _ in range(count):
        reports = mechanism.privatize(values, rng)
        yield {name: _errors(FREQUENCIES.estimate([reports], name), truth) for name in methods}


def _errors(estimate: Frequencies, truth: Floats) -> dict[str, float]:
    low, high = estimate.intervals.T
    return {
        "mse": metrics.mse(truth, estimate.frequencies),
        "mae": metrics.mae(truth, estimate.frequencies),
        "worst": metrics.l_infinity(truth, estimate.frequencies),
        "coverage": float(np.mean((low <= truth) & (truth <= high))),
    }


def summary(
    mechanism: FrequencyOracle,
    values: NDArray[np.uint32],
    errors: Sequence[dict[str, dict[str, float]]],
) -> list[dict[str, Any]]:
    """A row for each method: average errors beside the variance formula of unbiased frequencies."""
    truth = np.bincount(values, minlength=mechanism.domain.size) / len(values)
    predicted = float(np.mean(mechanism.variance(len(values), truth)))
    rows = []
    for name in errors[0]:
        mean = {key: float(np.mean([run[name][key] for run in errors])) for key in errors[0][name]}
        rows.append(
            {
                "mechanism": mechanism.name,
                "method": name,
                "rmse": mean["mse"] ** 0.5,
                "predicted": predicted**0.5,
                "mae": mean["mae"],
                "worst": mean["worst"],
                "coverage": mean["coverage"],
            }
        )
    return rows
