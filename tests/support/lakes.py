"""Files of reports as a lake has them: cut, in row groups, in folders with keys."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import deniable as dn
from deniable.conformance.members import design_of, large, reports_of, values_of
from deniable.core.mechanism import Mechanism
from deniable.core.reports import Reports


def write(path: Path, reports: Reports, rows: int = 100) -> Path:
    """A file with row groups of this size."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(reports.to_arrow(), path, row_group_size=rows)
    return path


def member(name: str) -> Mechanism:
    """A member of a realistic size, but with few cohorts: each costs time in every batch."""
    m = next(large(dn.mechanisms()[name], 500))
    few = {**design_of(m), "cohorts": 8}
    return m.over(m.domain, **few) if "cohorts" in m.design else m


def some(m: Mechanism, n: int = 500, seed: int = 1, *, ids: bool = False) -> Reports:
    """Reports whose coins and ids are the same in every run."""
    reports = reports_of(m, values_of(m), n, seed)
    if not ids:
        return reports
    names = np.random.default_rng(seed).integers(0, 256, (n, 16), dtype=np.uint8)
    return Reports(m, reports.data, names)


def cut(reports: Reports, folder: Path, *sizes: int, rows: int = 100) -> list[Path]:
    """Reports in files of these sizes, and the rest in a last one."""
    edges = [0, *np.cumsum(sizes).tolist(), len(reports)]
    parts = [reports[a:b] for a, b in pairwise(edges)]
    return [write(folder / f"part-{i:03}.parquet", part, rows) for i, part in enumerate(parts)]
