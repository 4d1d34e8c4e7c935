"""Whose numbers: histograms of answers from 0 to k - 1, made up or from public data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from deniable.arrays import Floats
from deniable_papers.datasets import Dataset

#: Data set, column and unit: answers are multiples of it, and moved to the nearest of 0..k - 1.
COLUMNS = {
    "age": ("adult", "age", 1, 128),
    "hours": ("adult", "hours_per_week", 1, 128),
    "capital gain": ("adult", "capital_gain", 400, 256),
    "income": ("acs-income", "PINCP", 1_000, 256),
}
NEEDED = {"adult": ("age", "hours_per_week", "capital_gain"), "acs-income": ("PINCP",)}


def histograms(known: Mapping[str, Dataset]) -> dict[str, list[float]]:
    """The share of each answer."""
    points = np.arange(256) / 255
    found = {
        "even": np.full(256, 1 / 256),
        "normal": _normalised(np.exp(-0.5 * ((points - 0.45) / 0.12) ** 2)),
        "exponential": _normalised(np.exp(-points / 0.12)),
    }
    for name, (source, column, unit, size) in COLUMNS.items():
        if source in known:
            found[name] = _of(known[source], column, unit, size)
    return {name: [float(f"{share:.9g}") for share in f] for name, f in found.items()}


def _of(data: Dataset, name: str, unit: int, size: int) -> Floats:
    label = next(label for label in data.columns if label.lower() == name.lower())
    column = data.column(label)
    known = np.array([_is_number(text) for text in column.labels])
    answers = np.array([float(text) if _is_number(text) else 0.0 for text in column.labels])
    places = np.clip(np.round(answers / unit), 0, size - 1).astype(int)
    return _normalised(np.bincount(places, 1.0 * column.histogram * known, minlength=size))


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _normalised(weights: Any) -> Floats:
    return np.asarray(weights / weights.sum())
