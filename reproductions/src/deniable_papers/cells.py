"""Cells of an experiment: each is simulated once, noted in a file, and never again.

A cell is known by its settings (and the seed), and draws from a generator made from these. So an
interrupted run goes on where it ended, in whatever order and on however many processes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

Settings = Mapping[str, Any]
Values = dict[str, Any]
Work = Callable[[Settings, np.random.Generator], Values]


def key_of(settings: Settings, seed: int) -> str:
    """The name of a cell: the same settings in any order have the same."""
    return json.dumps({**settings, "seed": seed}, sort_keys=True)


def generator(settings: Settings, seed: int) -> np.random.Generator:
    """The coins of a cell."""
    digest = hashlib.sha256(key_of(settings, seed).encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, dtype=np.uint32))


class Notebook:
    """The finished cells of a seed, in a file with one JSON object a line."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path, self.seed = path, seed
        self._finished: dict[str, Values] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        for line in path.read_text().splitlines() if path.exists() else ():
            try:
                noted = json.loads(line)
                self._finished[noted["key"]] = noted["values"]
            except (ValueError, KeyError, TypeError):
                continue  # cut off when the run was interrupted: the cell is simulated again

    def __contains__(self, settings: Settings) -> bool:
        return key_of(settings, self.seed) in self._finished

    def __getitem__(self, settings: Settings) -> Values:
        return self._finished[key_of(settings, self.seed)]

    def add(self, settings: Settings, values: Values) -> None:
        """Note a finished cell, on a line of its own even after one that was cut off."""
        key = key_of(settings, self.seed)
        self._finished[key] = values
        with self.path.open("a") as file:
            file.write(f"\n{json.dumps({'key': key, 'values': values})}\n")


def finish(
    cells: Sequence[Settings], work: Work, notebook: Notebook, processes: int = 1
) -> Iterator[None]:
    """Simulate the cells that the notebook lacks; yields once for each cell."""
    missing = [settings for settings in cells if settings not in notebook]
    yield from (None for _ in range(len(cells) - len(missing)))
    if processes == 1 or len(missing) < 2:
        for settings in missing:
            notebook.add(settings, work(settings, generator(settings, notebook.seed)))
            yield None
        return
    # One core each: threads of BLAS beside other processes would only wait, busily.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        pending = {
            pool.submit(work, settings, generator(settings, notebook.seed)): settings
            for settings in missing
        }
        try:
            for done in as_completed(pending):
                notebook.add(pending[done], done.result())
                yield None
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
