"""The audit command: what to audit, how, and what to print."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from deniable.errors import InvalidArgument
from deniable.studio.formats import Format

#: Reports of each value, unless said otherwise.
REPORTS = 20_000
#: Verdicts that end the command with code 1.
BAD = ("violated", "suspicious")


@dataclass(frozen=True)
class Subject:
    """What is audited: one kind of thing, and which."""

    kind: str
    which: str

    @classmethod
    def of(
        cls,
        mechanism: str | None,
        every: bool,
        command: str | None,
        function: str | None,
        library: str | None,
    ) -> Subject:
        """The one that was given."""
        named = {
            "mechanism": mechanism,
            "all": "all" if every else None,
            "command": command,
            "callable": function,
            "library": library,
        }
        given = [cls(kind, which) for kind, which in named.items() if which is not None]
        if len(given) != 1:
            allowed = "one of: a mechanism, --all, --command, --callable, --library"
            raise InvalidArgument("subject", [one.kind for one in given], allowed)
        return given[0]


@dataclass(frozen=True)
class Settings:
    """How it is audited."""

    size: int
    epsilon: float
    value: list[str] | None
    n: int | None
    reports: int
    confidence: float
    seed: int | None
    quick: bool

    @property
    def values(self) -> list[Any]:
        """The answers to compare; integers if all of them are."""
        if not self.value:
            k = self.size
            return sorted({0, 1, k // 2, k - 1})
        whole = all(one.removeprefix("-").isdigit() for one in self.value)
        return [int(one) for one in self.value] if whole else list(self.value)

    @property
    def options(self) -> dict[str, Any]:
        return {"n": self.n or REPORTS, "confidence": self.confidence}

    @property
    def rng(self) -> Any:
        """Secure coins without a seed."""
        import numpy as np

        return None if self.seed is None else np.random.default_rng(self.seed)


@dataclass(frozen=True)
class Outcome:
    """Rows of many audits, or the one audit that was made."""

    title: str
    rows: list[dict[str, Any]]
    audit: Any = None

    @property
    def ok(self) -> bool:
        return all(row["verdict"] not in BAD for row in self.rows)

    def show(self, layout: Format) -> None:
        """Print; the audit of a black box has exports of its own."""
        from rich.console import Console

        from deniable.studio.tables import show

        alone = self.audit is not None and len(self.rows) == 1
        if alone and layout is not Format.table:
            print(self.audit.to_json() if layout is Format.json else self.audit.to_csv().rstrip())
        elif layout is not Format.table:
            show(self.rows, layout)
        elif not alone:
            show([{k: v for k, v in row.items() if k != "words"} for row in self.rows], layout)
            for row in self.rows:
                if self.audit is not None or row["verdict"] in BAD:
                    print(f"{row['mechanism']}: {row['words']}")
        if self.audit is not None and layout is Format.table:
            Console().print(self.audit.table())

    def chart(self) -> Any:
        from deniable.studio.audit_views import survey_chart

        return survey_chart(self.rows, self.title) if self.audit is None else self.audit.plot()


def run(subject: Subject, settings: Settings) -> Outcome:
    """Audit the subject."""
    if subject.kind == "all":
        return _all(settings)
    if subject.kind == "library":
        return _library(subject.which, settings)
    if subject.kind == "mechanism":
        return _mechanism(subject.which, settings)
    return _black_box(subject, settings)


def _all(settings: Settings) -> Outcome:
    from deniable.audit.survey import steps, survey

    found = survey(
        settings.size,
        settings.epsilon,
        quick=settings.quick,
        n=settings.n,
        confidence=settings.confidence,
        rng=settings.rng,
    )
    title = f"epsilon = {settings.epsilon:g}, confidence {100 * settings.confidence:g} % each"
    return Outcome(title, list(_tracked(found, steps())))


def _library(name: str, settings: Settings) -> Outcome:
    from deniable.audit.peers import peers

    values = settings.values
    listed = peers(name, settings.size, settings.epsilon, values)
    rows = (_row(peer.audit(values, **settings.options), peer.name, settings) for peer in listed)
    return Outcome(f"{name}, epsilon = {settings.epsilon:g}", list(_tracked(rows, len(listed))))


def _mechanism(name: str, settings: Settings) -> Outcome:
    from deniable.audit.empirical import audit_mechanism
    from deniable.audit.survey import exact_row
    from deniable.mechanisms import find, mechanism

    size = find(name).only_size or settings.size
    m = mechanism(name, size, settings.epsilon)
    values = settings.values if settings.value else None
    found = audit_mechanism(
        m, values, reports=settings.reports, rng=settings.rng, **settings.options
    )
    rows = [exact_row(m), _row(found, m.name, settings)]
    return Outcome(str(m), rows, found)


def _black_box(subject: Subject, settings: Settings) -> Outcome:
    from deniable.audit.empirical import audit, audit_command

    make = audit_command if subject.kind == "command" else audit
    box: Any = subject.which if subject.kind == "command" else _imported(subject.which)
    found = make(box, settings.values, settings.epsilon, **settings.options)
    return Outcome(subject.which, [_row(found, subject.which, settings)], found)


def _imported(name: str) -> Any:
    """A function by "module:name"; modules of the current folder count."""
    module, _, attribute = name.partition(":")
    if not attribute:
        raise InvalidArgument("callable", name, "module:function")
    sys.path.insert(0, "")
    found = getattr(importlib.import_module(module), attribute, None)
    if not callable(found):
        raise InvalidArgument("callable", name, "the name of a function")
    return found


def _row(found: Any, name: str, settings: Settings) -> dict[str, Any]:
    from deniable.audit.survey import row_of

    return row_of(found, name, settings.size)


def _tracked(rows: Iterable[dict[str, Any]], total: int) -> Iterator[dict[str, Any]]:
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    quiet = not console.is_terminal
    return iter(
        track(rows, "auditing", total=total, console=console, transient=True, disable=quiet)
    )
