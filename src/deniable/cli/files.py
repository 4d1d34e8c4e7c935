"""Files with reports or tallies, as the command line gets them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deniable.core.reports import Reports
from deniable.core.stored import Source
from deniable.core.tally import MAGIC, Tally
from deniable.engines.base import Engine
from deniable.engines.duplicates import require_rule
from deniable.engines.files import SUFFIX, Place, about, find, plain
from deniable.engines.progress import Progress
from deniable.engines.stored import by_mechanism
from deniable.engines.tallying import TALLY_SUFFIX
from deniable.errors import CorruptData, InvalidArgument, MismatchError
from deniable.estimation.parts import refuse_shared_files
from deniable.mechanisms import Mechanism, from_spec
from deniable.rounds.rounds import MAGIC as ROUNDS
from deniable.rounds.rounds import Round, Rounds
from deniable.texts import tidy

#: Reports of so many bytes in all are read once and kept; more are read again in every pass.
HELD = 1 << 28


def read_sources(
    paths: Sequence[str],
    spec: Path | None,
    engine: Engine,
    duplicates: str,
    progress: Progress,
) -> list[Source]:
    """The tallies and reports of files, folders and addresses.

    ``spec`` names the mechanism that they must have.
    """
    rule = require_rule(duplicates)
    mechanism = None if spec is None else read_mechanism(spec)
    reports: list[Place] = []
    tallies: list[Tally] = []
    for place in find(paths, SUFFIX, TALLY_SUFFIX):
        found = None if place.path.endswith(SUFFIX) else _tally(place, mechanism)
        if found is None:
            reports.append(place)
        else:
            tallies.append(found)
    stored = by_mechanism(reports, rule, engine, mechanism=mechanism, progress=progress)
    refuse_shared_files([*tallies, *stored])
    return [*tallies, *(part.held() if part.nbytes <= HELD else part for part in stored)]


def read_tallies(paths: Sequence[str]) -> dict[str, Tally]:
    """The tallies of files, by their names."""
    found = {str(place): _tally(place, None) for place in find(paths, TALLY_SUFFIX)}
    for name, tally in found.items():
        if tally is None:
            raise InvalidArgument("files", name, "a tally")
    return {name: tally for name, tally in found.items() if tally is not None}


def _tally(place: Place, mechanism: Mechanism | None) -> Tally | None:
    """The tally of a file, if it is one."""
    with plain(place) as file, about(place):
        start = file.read(max(len(MAGIC), len(ROUNDS)))
        if start.startswith(ROUNDS):
            allowed = "reports or tallies; `deniable series` reads a file of rounds, alone"
            raise InvalidArgument("files", str(place), allowed)
        return Tally.from_bytes(start + file.read(), mechanism) if start.startswith(MAGIC) else None


def about_question(parts: Sequence[Source], question: str | None) -> Sequence[Source]:
    """What all parts say about a question, where devices drew one of several."""
    if question is not None:
        return [part.mechanism.about(question, part) for part in parts]
    if several := next((part.mechanism for part in parts if not part.mechanism.tasks), None):
        allowed = f"given: each report is about one of these ({several.domain!r})"
        raise InvalidArgument("--question", None, allowed)
    return parts


def read_mechanism(file: Path) -> Mechanism:
    """The mechanism of a JSON file with its spec."""
    try:
        spec = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise CorruptData(f"{file}: this is not JSON: {error}") from error
    if not isinstance(spec, dict):
        raise InvalidArgument("mechanism", str(file), "a JSON file with a spec (an object)")
    return from_spec(spec)


def read_candidates(file: Path) -> list[str]:
    """The lines of a text file (UTF-8), without blank ones and repetitions."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidArgument("candidates", str(file), f"a text file in UTF-8 ({error})") from None
    return list(dict.fromkeys(line for line in text.split("\n") if tidy(line)))


def read_options(texts: Sequence[str]) -> dict[str, Any]:
    """Options of a method from texts like ``iterations=100`` (JSON, or else a plain word)."""
    options: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier() or name in options:
            raise InvalidArgument("option", text, "NAME=VALUE, each name once")
        try:
            options[name] = json.loads(value)
        except (ValueError, RecursionError):  # no JSON, or numbers and lists beyond all use
            options[name] = value
    return options


def read_queries(texts: Sequence[str], mechanism: Mechanism) -> dict[str, Any]:
    """What is asked of answers, from texts like ``candidates=Bern``; repeated for several values.

    The names are those of the queries of the mechanism's task.
    """
    known = mechanism.task.queries_of(mechanism)
    given: dict[str, list[str]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in known:
            names = f"NAME=VALUE, and the name one of {', '.join(known)}"
            nothing = "left out: nothing can be asked of these answers"
            raise InvalidArgument("ask", text, names if known else nothing)
        given.setdefault(name, []).append(value)
    return {name: known[name].parse(name, values) for name, values in given.items()}


def read_rounds(files: Sequence[Path], spec: Path | None) -> dict[Round, Tally | Reports]:
    """Each file as a round that is named for it; or the rounds of one file."""
    mechanism = None if spec is None else read_mechanism(spec)
    if len(files) == 1 and _starts_with(files[0], ROUNDS):
        with _named(files[0]):
            return dict(Rounds.from_bytes(files[0].read_bytes(), mechanism).tallies())
    names = [file.stem for file in files]
    if len(set(names)) < len(names):
        raise InvalidArgument("files", names, "files of different names, one per round")
    return {name: _read(file, mechanism) for name, file in zip(names, files, strict=True)}


def _starts_with(file: Path, magic: bytes) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(magic)) == magic


def _read(file: Path, mechanism: Mechanism | None) -> Tally | Reports:
    if _starts_with(file, MAGIC):
        with _named(file):
            return Tally.from_bytes(file.read_bytes(), mechanism)
    if _starts_with(file, ROUNDS):
        allowed = "reports or tallies; `deniable series` reads a file of rounds, alone"
        raise InvalidArgument("files", str(file), allowed)
    with _named(file):
        return Reports.from_parquet(file, mechanism)


@contextmanager
def _named(file: Path) -> Iterator[None]:
    """Say which of several files is damaged or belongs to something else."""
    try:
        yield
    except (CorruptData, MismatchError) as error:
        told = str(error)
        raise type(error)(told if str(file) in told else f"{file}: {told}") from error
