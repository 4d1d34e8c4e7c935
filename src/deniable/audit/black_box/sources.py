"""Where reports come from: a function, devices that remember, a mechanism, a program."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryFile
from threading import Thread, Timer
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Indices
from deniable.audit.black_box.encoding import Column
from deniable.core.layout import Bits
from deniable.errors import CorruptData, InvalidArgument, require_int, shorten
from deniable.mechanisms import Mechanism
from deniable.mechanisms.frequency import oracle_of
from deniable.mechanisms.two_step.memoised import require_memoised
from deniable.randomness import WORD_BYTES, Keystream, draw_key
from deniable.rounds.panel import Panel

if TYPE_CHECKING:
    from numpy.random import Generator

#: ``draw(answers)``: the reports of fresh respondents with these answers, a column a round.
Draw = Callable[[Sequence[Any]], list[Column]]
#: Seconds that a program may take for all of its reports.
PATIENCE = 600
#: Bytes that a line may have.
LONGEST = 1 << 24
MOST_ROUNDS = 1000


@dataclass(frozen=True)
class Decoder:
    """Numbers that a report does not show as it is, such as what a hash supports."""

    names: tuple[str, ...]
    read: Callable[[Column], NDArray[Any]]


def mixed_order(values: int, n: int, rng: Generator | None = None) -> Indices:
    """Each of 0..values-1 n times, in an order that is random and is drawn before any report.

    So a counter, a clock or a state that drifts is the same for all values, but for chance. Both
    halves of the time have their share of each value: the second is in random order whatever the
    first has shown.
    """
    coins = Keystream(draw_key(rng))
    halves = []
    for part in (n // 2, n - n // 2):
        places = np.repeat(np.arange(values), part)
        words = np.frombuffer(coins.bytes(WORD_BYTES * places.size), dtype="<u8")
        halves.append(places[np.argsort(words)])
    return np.concatenate(halves)


def of_function(report: Callable[[Any], Any]) -> Draw:
    """Reports of a function of the value."""
    return lambda answers: [[_asked(report, value) for value in answers]]


def of_devices(make: Callable[[], Callable[[Any], Any]], reports: int) -> Draw:
    """``make()`` is a fresh device; it is a function of the value that may remember."""
    require_int("reports", reports, 1, MOST_ROUNDS)

    def draw(answers: Sequence[Any]) -> list[Column]:
        rows = [_of_device(make, value, reports) for value in answers]
        return [list(column) for column in zip(*rows, strict=True)]

    return draw


def _of_device(make: Callable[[], Callable[[Any], Any]], value: Any, reports: int) -> list[Any]:
    device = _made(make, "no device was made")
    if not callable(device):
        raise InvalidArgument("device", device, "a function of the value, as the factory makes it")
    return [_asked(device, value) for _ in range(reports)]


def _asked(report: Callable[[Any], Any], value: Any) -> Any:
    return _made(partial(report, value), f"no report of the value {shorten(value)}")


def _made(make: Callable[[], Any], failed: str) -> Any:
    """What a foreign function returns, or one line about how it failed."""
    try:
        return make()
    except (Exception, SystemExit) as error:  # one that leaves would end the audit, too
        said = f"{type(error).__name__}: {error}".rstrip(": ")
        raise CorruptData(f"{failed}: {said}") from error


def of_mechanism(m: Mechanism, reports: int = 1, rng: Generator | None = None) -> Draw:
    """Reports of a mechanism, many at once; those of one memo if it has any."""
    require_int("reports", reports, 1, MOST_ROUNDS)

    def draw(answers: Sequence[Any]) -> list[Column]:
        if reports > 1 and m.remembers:
            panel = Panel(require_memoised(m), len(answers), rng)
            return [panel.privatize(answers).data for _ in range(reports)]
        return [m.privatize(answers, rng).data for _ in range(reports)]

    return draw


def of_command(command: str | Sequence[str], reports: int = 1) -> Draw:
    """A program that reads a value a line and prints its report (JSON, or any text) on a line.

    Where a device reports several times, the line is a JSON array of so many reports.
    """
    require_int("reports", reports, 1, MOST_ROUNDS)
    words = _words(command)
    if not words:
        raise InvalidArgument("command", command, "a program and its arguments")

    def draw(answers: Sequence[Any]) -> list[Column]:
        lines = _run(words, "".join(f"{value}\n" for value in answers), len(answers))
        if len(lines) != len(answers):
            found = f"{len(lines)} lines{' or more' if len(lines) > len(answers) else ''}"
            raise CorruptData(f"{words[0]!r} printed {found} for {len(answers)} values")
        if reports == 1:
            return [[_parsed(line) for line in lines]]
        return [list(column) for column in zip(*(_several(x, reports) for x in lines), strict=True)]

    return draw


def _words(command: str | Sequence[str]) -> list[str]:
    try:
        return shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError as error:
        allowed = f"a program and its arguments ({error})"
        raise InvalidArgument("command", command, allowed) from None


def _run(words: list[str], text: str, count: int) -> list[str]:
    """The lines that a program prints: of one that prints more than ``count``, one more."""
    with TemporaryFile() as given:
        given.write(text.encode(errors="surrogateescape"))
        given.seek(0)
        try:
            process = subprocess.Popen(
                words, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except (OSError, ValueError) as error:
            allowed = f"a program that starts ({error})"
            raise InvalidArgument("command", words, allowed) from error
    said: deque[bytes] = deque(maxlen=16)
    errors: Any = process.stderr
    listening = Thread(
        target=said.extend, args=[iter(partial(errors.read1, 4096), b"")], daemon=True
    )
    with process:
        listening.start()
        try:
            lines = _watched(process, words[0], count)
        finally:
            listening.join(1)  # a program of the program may hold it open
    if process.returncode and len(lines) <= count:
        raise CorruptData(f"{words[0]!r} failed with code {process.returncode}: {_told(said)}")
    return lines


def _watched(process: subprocess.Popen[bytes], name: str, count: int) -> list[str]:
    """The lines of a program, which is ended if it takes too long or prints without end."""
    patience = Timer(PATIENCE, process.kill)
    patience.start()
    try:
        lines = _lines(process.stdout, name, count + 1)
        if len(lines) <= count:
            process.wait()
        if not patience.is_alive():
            raise CorruptData(f"{name!r} was not done after {PATIENCE:g} seconds")
    finally:
        patience.cancel()
        process.kill()
    return lines


def _lines(output: Any, name: str, most: int) -> list[str]:
    found: list[str] = []
    while len(found) < most:
        line: bytes = output.readline(LONGEST)
        if len(line) == LONGEST:
            raise CorruptData(f"{name!r} printed a line of {LONGEST:,} bytes or more")
        if not line.endswith(b"\n"):
            break
        found.append(line[:-1].decode(errors="surrogateescape"))
    return found


def _told(said: Iterable[bytes]) -> str:
    """The line of an error, or the last one."""
    lines = b"".join(said).decode(errors="replace").strip().splitlines() or ["no message"]
    return next((line.strip() for line in lines if "Error" in line), lines[-1])


def _parsed(line: str) -> Any:
    """JSON in one of its two usual forms; anything else, blanks included, is text as it stands."""
    try:
        report = json.loads(line)
    except (ValueError, RecursionError):
        return line
    usual = (json.dumps(report), json.dumps(report, separators=(",", ":")))
    return report if line in usual else line


def _several(line: str, reports: int) -> list[Any]:
    """The reports of one device; how their line is written is not looked at."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = line
    if not isinstance(found, list) or len(found) != reports:
        raise CorruptData(f"a line must be a JSON array of {reports} reports; got {shorten(line)}")
    return found


def supports(m: Mechanism, values: Sequence[Any]) -> Decoder | None:
    """What a report of the mechanism says about each of the values; None if its bits say so."""
    oracle = oracle_of(m)
    if oracle is None or not oracle.domain.is_listed or isinstance(oracle.layout, Bits):
        return None
    places = oracle.domain.encode(list(values))
    names = tuple(f"support of {value!r}" for value in values)
    return Decoder(names, lambda column: oracle.told(np.asarray(column), places))
