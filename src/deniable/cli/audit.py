"""The audit command: what to audit, how, and what to print."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from typing import Any

from deniable.cli.progress import tracked
from deniable.core.domain import MAX_SIZE
from deniable.errors import InvalidArgument, require_int
from deniable.views.formats import Format

#: What is used unless something else is said.
SIZE, EPSILON = 16, 1.0
#: Answers of a mechanism that is run here.
MOST_ANSWERS = 1 << 20
#: Verdicts that end the command with code 1.
BAD = ("violated", "suspicious", "not enumerated")
#: Options that a kind of subject has no use for.
UNUSED = {
    "mechanism": ("quick",),
    "all": ("value", "reports"),
    "command": ("seed", "quick"),
    "callable": ("seed", "quick"),
    "library": ("seed", "quick"),
}


@dataclass(frozen=True)
class AuditSubject:
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
    ) -> AuditSubject:
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

    @property
    def words(self) -> str:
        return "a mechanism" if self.kind == "mechanism" else f"--{self.kind}"


@dataclass(frozen=True)
class AuditSettings:
    """How it is audited; None is what was not said."""

    size: int | None
    epsilon: float | None
    value: list[str] | None
    n: int | None
    reports: int | None
    confidence: float
    seed: int | None
    quick: bool

    def given(self, name: str) -> Any:
        """The value of an option, None if it was not given."""
        return getattr(self, name) or None if name == "quick" else getattr(self, name)

    @property
    def k(self) -> int:
        return SIZE if self.size is None else self.size

    @property
    def promise(self) -> float:
        return EPSILON if self.epsilon is None else self.epsilon

    @property
    def rounds(self) -> int:
        return 1 if self.reports is None else self.reports

    @property
    def values(self) -> list[Any]:
        """The answers to compare; integers if all of them are."""
        if not self.value:
            k = require_int("size", self.k, 2, MAX_SIZE)
            return sorted({0, 1, k // 2, k - 1})
        whole = all(one.removeprefix("-").isdecimal() for one in self.value)
        values: list[Any] = [int(one) for one in self.value] if whole else list(self.value)
        if len(set(values)) < len(values):
            raise InvalidArgument("--value", self.value, "different answers")
        return values

    @property
    def options(self) -> dict[str, Any]:
        said = {} if self.n is None else {"n": self.n}
        return {**said, "confidence": self.confidence}

    @property
    def rng(self) -> Any:
        """Secure coins without a seed."""
        import numpy as np

        return None if self.seed is None else np.random.default_rng(self.seed)


@dataclass(frozen=True)
class AuditRows:
    """Rows of many audits, or the one audit that was made; what was proved, in words."""

    title: str
    rows: list[dict[str, Any]]
    audit: Any = None
    proved: str = ""

    @property
    def ok(self) -> bool:
        return not self.faults

    @property
    def faults(self) -> list[str]:
        """What is wrong, a line each."""
        bad = [row for row in self.rows if row["verdict"] in BAD]
        return [f"{row['mechanism']}: {row['words']}" for row in bad]

    def show(self, layout: Format) -> None:
        """Print; the audit of a black box has exports of its own."""
        from deniable.views.tables import show

        alone = self.audit is not None and len(self.rows) == 1
        if layout is Format.table:
            self._show_tables(alone)
        elif alone:
            print(self.audit.to_json() if layout is Format.json else self.audit.to_csv().rstrip())
        else:
            show(self.rows, layout)

    def _show_tables(self, alone: bool) -> None:
        from rich.console import Console

        from deniable.views.audit.findings import survey_table

        if not alone:
            Console().print(survey_table(self.rows, self.title))
        if self.proved:
            print(self.proved)
        if self.audit is not None:
            Console().print(self.audit.table())
        else:
            print(*self.faults, sep="\n", end="\n" if self.faults else "")

    def chart(self) -> Any:
        from deniable.views.audit.findings import survey_chart

        return survey_chart(self.rows, self.title) if self.audit is None else self.audit.chart()


def run(subject: AuditSubject, settings: AuditSettings) -> AuditRows:
    """Audit the subject."""
    if subject.kind in ("all", "mechanism"):
        require_int("size", settings.k, 2, MOST_ANSWERS)
    if subject.kind == "all":
        return _all(settings)
    if subject.kind == "library":
        return _library(subject.which, settings)
    if subject.kind == "mechanism":
        return _mechanism(subject.which, settings)
    return _black_box(subject, settings)


def _all(settings: AuditSettings) -> AuditRows:
    from deniable.audit.black_box.everything import audit_everything, steps

    found = audit_everything(
        settings.k,
        settings.promise,
        quick=settings.quick,
        n=settings.n,
        confidence=settings.confidence,
        rng=settings.rng,
    )
    title = f"epsilon = {settings.promise:g}, confidence {100 * settings.confidence:.6g} % each"
    return AuditRows(title, list(tracked(found, "auditing", steps())))


def _library(name: str, settings: AuditSettings) -> AuditRows:
    """With several reports of a device: what promises something for them."""
    from deniable.audit.black_box.everything import row_of
    from deniable.audit.black_box.peers import peers

    values, several = settings.values, settings.rounds > 1
    if not all(isinstance(one, int) and 0 <= one < settings.k for one in values):
        raise InvalidArgument("--value", settings.value, f"answers of 0..{settings.k - 1}")
    listed = peers(name, settings.k, settings.promise, values)
    listed = [peer for peer in listed if not several or peer.in_all is not None]
    if not listed:
        raise InvalidArgument("--reports", settings.rounds, f"1: {name} promises nothing for more")
    audits = (
        row_of(one.audit(values, reports=settings.rounds, **settings.options), one.name, settings.k)
        for one in listed
    )
    rows = list(tracked(audits, "auditing", len(listed)))
    return AuditRows(f"{name}, epsilon = {settings.promise:g}", rows)


def _mechanism(name: str, settings: AuditSettings) -> AuditRows:
    from deniable.audit.black_box.empirical import audit_mechanism
    from deniable.audit.black_box.everything import exact_rows, row_of, size_of, usual_domain
    from deniable.audit.exact.verify import verify
    from deniable.core.domain import Domain
    from deniable.core.registry import find

    family = find(name)
    domain = usual_domain(family, SIZE) if settings.size is None else Domain(settings.size)
    m = family.example(domain, settings.promise)
    values = settings.values if settings.value else None
    found = audit_mechanism(
        m, values, reports=settings.rounds, rng=settings.rng, **settings.options
    )
    exact = verify(m)
    rows = [*exact_rows(m, exact), row_of(found, m.name, size_of(m))]
    return AuditRows(str(m), rows, found, f"exactly: {exact.words}")


def _black_box(subject: AuditSubject, settings: AuditSettings) -> AuditRows:
    """With several reports of a device, a function makes devices."""
    from deniable.audit.black_box.empirical import audit, audit_command, audit_devices
    from deniable.audit.black_box.everything import row_of

    asked, options = (settings.values, settings.promise), settings.options
    if subject.kind == "command":
        found = audit_command(subject.which, *asked, settings.rounds, **options)
    elif settings.rounds > 1:
        found = audit_devices(_imported(subject.which), *asked, settings.rounds, **options)
    else:
        found = audit(_imported(subject.which), *asked, **options)
    return AuditRows(subject.which, [row_of(found, subject.which, settings.k)], found)


def _imported(name: str) -> Any:
    """A function by "module:name"; modules of the current folder count."""
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise InvalidArgument("callable", name, "module:function")
    sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except (Exception, SystemExit) as error:
        said = f"{type(error).__name__}: {error}"
        raise InvalidArgument("callable", name, f"of a module that is imported ({said})") from error
    if not callable(found):
        raise InvalidArgument("callable", name, "the name of a function")
    return found
