"""Simulated collections: what error to expect, before anybody is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InvalidArgument
from deniable.mechanisms import Mechanism

#: Shapes of a population of k values; each is normalised.
DISTRIBUTIONS: dict[str, Callable[[int], NDArray[np.floating[Any]]]] = {
    "uniform": lambda k: np.ones(k),
    "zipf": lambda k: 1.0 / np.arange(1, k + 1),
    "geometric": lambda k: 0.9 ** np.arange(k),
    "gaussian": lambda k: np.exp(-((np.arange(k) - k / 2) ** 2) / (2 * (k / 8) ** 2)),
    "spike": lambda k: np.where(np.arange(k) < min(5, k - 1), 1.0, 0.0),
}


def population(distribution: str, k: int, n: int, rng: np.random.Generator) -> NDArray[np.uint32]:
    """n values of 0..k-1 with shares as near to the distribution as whole people allow,
    shuffled."""
    if distribution not in DISTRIBUTIONS:
        raise InvalidArgument("distribution", distribution, f"one of {', '.join(DISTRIBUTIONS)}")
    shape = DISTRIBUTIONS[distribution](k)
    edges = np.rint(np.cumsum(shape / shape.sum()) * n).astype(np.int64)
    values = np.repeat(np.arange(k, dtype=np.uint32), np.diff(edges, prepend=0))
    rng.shuffle(values)
    return values


def runs(
    mechanism: Mechanism,
    values: NDArray[np.uint32],
    method: str | None,
    rng: np.random.Generator,
    count: int,
) -> Iterator[dict[str, float]]:
    """Collect the same answers ``count`` times; the errors of each collection."""
    truth = np.bincount(values, minlength=mechanism.domain.size) / len(values)
    for _ in range(count):
        estimate = mechanism.estimate(mechanism.privatize(values, rng), method)
        error = estimate.frequencies - truth
        low, high = estimate.intervals.T
        yield {
            "mse": float(np.mean(error**2)),
            "mae": float(np.mean(np.abs(error))),
            "worst": float(np.max(np.abs(error))),
            "coverage": float(np.mean((low <= truth) & (truth <= high))),
        }


def summary(
    mechanism: Mechanism, values: NDArray[np.uint32], errors: list[dict[str, float]]
) -> dict[str, Any]:
    """The row of one mechanism: average errors beside what the variance formula predicts."""
    truth = np.bincount(values, minlength=mechanism.domain.size) / len(values)
    mean = {key: float(np.mean([run[key] for run in errors])) for key in errors[0]}
    predicted = float(np.mean(mechanism.variance(len(values), truth)))
    return {
        "mechanism": mechanism.name,
        "bits": mechanism.bits_per_report,
        "rmse": mean["mse"] ** 0.5,
        "predicted": predicted**0.5,
        "mae": mean["mae"],
        "worst": mean["worst"],
        "coverage": mean["coverage"],
    }
