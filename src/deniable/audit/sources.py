"""Where reports come from: a function, devices that remember, a mechanism, a program."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable.audit.encoding import Column
from deniable.domain import Text
from deniable.errors import CorruptData, InvalidArgument
from deniable.estimation.mle.supports import supports_of
from deniable.longitudinal.panel import Panel
from deniable.mechanisms import Mechanism
from deniable.mechanisms.hashing import LocalHashing
from deniable.mechanisms.memoised import Memoised
from deniable.mechanisms.packed import PackedMechanism, unpacked

if TYPE_CHECKING:
    from numpy.random import Generator

#: ``draw(value, n)``: a column of n reports for each round, of n fresh respondents.
Draw = Callable[[Any, int], list[Column]]
#: Seconds that a program may take for all reports of one value.
PATIENCE = 600


@dataclass(frozen=True)
class Decoder:
    """Numbers that a report does not show as it is, such as what a hash supports."""

    names: tuple[str, ...]
    read: Callable[[Column], NDArray[Any]]


def of_function(report: Callable[[Any], Any]) -> Draw:
    """Reports of a function of the value."""
    return lambda value, n: [[report(value) for _ in range(n)]]


def of_devices(make: Callable[[], Callable[[Any], Any]], reports: int) -> Draw:
    """``make()`` is a fresh device; it is a function of the value that may remember."""

    def draw(value: Any, n: int) -> list[Column]:
        devices = [make() for _ in range(n)]
        return [[device(value) for device in devices] for _ in range(reports)]

    return draw


def of_mechanism(m: Mechanism, reports: int = 1, rng: Generator | None = None) -> Draw:
    """Reports of a mechanism, many at once; those of one memo if it has any."""

    def draw(value: Any, n: int) -> list[Column]:
        answers = np.full(n, value) if not isinstance(value, str) else [value] * n
        if reports > 1 and isinstance(m, Memoised):
            panel = Panel(m, n, rng)
            return [panel.privatize(answers).data for _ in range(reports)]
        return [m.privatize(answers, rng).data for _ in range(reports)]

    return draw


def of_command(command: str | Sequence[str]) -> Draw:
    """A program that reads one value a line and prints one report a line (JSON, or any text)."""
    words = shlex.split(command) if isinstance(command, str) else list(command)
    if not words:
        raise InvalidArgument("command", command, "a program and its arguments")

    def draw(value: Any, n: int) -> list[Column]:
        lines = _run(words, f"{value}\n" * n).split("\n")[:-1]
        if len(lines) != n:
            raise CorruptData(f"{words[0]!r} printed {len(lines)} lines for {n} values")
        return [[_parsed(line) for line in lines]]

    return draw


def _run(words: list[str], text: str) -> str:
    try:
        done = subprocess.run(
            words, input=text, capture_output=True, encoding="utf-8", errors="surrogateescape",
            timeout=PATIENCE, check=False,
        )  # fmt: skip
    except OSError as error:
        raise InvalidArgument("command", words, f"a program that starts ({error})") from error
    except subprocess.TimeoutExpired:
        raise CorruptData(f"{words[0]!r} was not done after {PATIENCE:g} seconds") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise CorruptData(f"{words[0]!r} failed with code {done.returncode}: {last}")
    return done.stdout


def _parsed(line: str) -> Any:
    """JSON in one of its two usual forms; anything else, blanks included, is text as it stands."""
    try:
        report = json.loads(line)
    except (ValueError, RecursionError):
        return line
    usual = (json.dumps(report), json.dumps(report, separators=(",", ":")))
    return report if line in usual else line


def supports(m: Mechanism, values: Sequence[Any]) -> Decoder | None:
    """What a report of the mechanism says about each of the values; None if its bits say so."""
    if isinstance(m.domain, Text) or isinstance(m, PackedMechanism):
        return None
    places = m.domain.encode(list(values))
    read: Callable[..., NDArray[Any]] = _hashed if isinstance(m, LocalHashing) else _one_by_one
    if m.dtype.subdtype is not None:
        read = _noisy
    return Decoder(tuple(f"support of {value!r}" for value in values), partial(read, m, places))


def _hashed(m: LocalHashing, places: NDArray[Any], column: Column) -> NDArray[Any]:
    return unpacked(supports_of(m, np.asarray(column)), m.domain.size)[:, places]


def _noisy(m: Mechanism, places: NDArray[Any], column: Column) -> NDArray[Any]:
    """A byte an answer: numbers, not bits."""
    return np.asarray(column)[:, places]


def _one_by_one(m: Mechanism, places: NDArray[Any], column: Column) -> NDArray[Any]:
    """Unbiased frequencies from each single report, computed once for equal ones."""
    known, where = np.unique(np.asarray(column), return_inverse=True)
    rows = [m.unbiased(m.count(known[i : i + 1]), 1)[places] for i in range(len(known))]
    return np.asarray(np.round(np.array(rows), 6)[where.reshape(-1)])
