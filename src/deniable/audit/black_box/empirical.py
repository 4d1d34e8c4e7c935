"""The audit of a black box: a lower bound on the epsilon that it really has.

n reports of each of some values are drawn, in mixed order. The first half looks for events that
are much more likely under one value u than under another v; the second half, which nobody has
looked at, bounds both probabilities (Clopper and Pearson 1934), and

    epsilon >= ln(lower bound of P(event | u) / upper bound of P(event | v))

holds with the stated confidence for all events together: the error is divided by the number of
events that are taken over to the second half, and of the tests of independence (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deniable.audit.black_box.encoding import Encoded, encode
from deniable.audit.black_box.findings import Audit
from deniable.audit.black_box.independence import TESTS, alarms
from deniable.audit.black_box.proof import judged, search
from deniable.audit.black_box.sources import (
    Decoder,
    Draw,
    mixed_order,
    of_command,
    of_devices,
    of_function,
    of_mechanism,
    supports,
)
from deniable.audit.exact.spot_checks import walked
from deniable.errors import InvalidArgument, require_int, require_type
from deniable.mechanisms import Mechanism
from deniable.privacy import check_epsilon

if TYPE_CHECKING:
    from numpy.random import Generator

#: Reports of each value: unless said otherwise, and the fewest and most that are allowed.
USUAL = 20_000
LEAST, MOST = 40, 10_000_000
CONFIDENCE = 0.999


@dataclass(frozen=True)
class AuditOptions:
    """How a black box is audited, whatever it is: see `audit`."""

    n: int = USUAL
    confidence: float = CONFIDENCE
    decoder: Decoder | None = None
    entropy: float | None = None
    rng: Generator | None = None
    #: Whether reports without a decoder are compared with independent bits. Those of a device that
    #: draws one of several kinds of reports are not: the short ones are mostly zeros.
    alike: bool = True


def audit(
    report: Callable[[Any], Any],
    values: Sequence[Any],
    epsilon: float,
    *,
    n: int = USUAL,
    confidence: float = CONFIDENCE,
    decoder: Decoder | None = None,
    entropy: float | None = None,
    rng: Generator | None = None,
) -> Audit:
    """Audit a function of the value; ``epsilon`` is what one report promises.

    ``n`` are the reports of each value, ``confidence`` is that of all bounds together, ``decoder``
    reads numbers that reports do not show as they are. ``entropy``: the bits of collision entropy,
    -log2 P(two reports are equal), that an honest report of one value has at least; if it is not
    given, reports of at least 16 bits are compared with independent bits. ``rng`` draws the order
    in which values are asked; without it, the kernel does.
    """
    options = AuditOptions(n, confidence, decoder, entropy, rng)
    return audit_source(of_function(report), values, epsilon, options, _name(report))


def audit_devices(
    make: Callable[[], Callable[[Any], Any]],
    values: Sequence[Any],
    epsilon: float,
    reports: int,
    *,
    n: int = USUAL,
    confidence: float = CONFIDENCE,
    decoder: Decoder | None = None,
    entropy: float | None = None,
    rng: Generator | None = None,
) -> Audit:
    """Audit devices that remember: ``make()`` is a fresh one, and reports so many times.

    ``epsilon`` is what all these reports of one answer promise together; options as of `audit`.
    """
    options = AuditOptions(n, confidence, decoder, entropy, rng)
    return audit_source(of_devices(make, reports), values, epsilon, options, _name(make))


def audit_mechanism(
    mechanism: Mechanism,
    values: Sequence[Any] | None = None,
    *,
    reports: int = 1,
    n: int = USUAL,
    confidence: float = CONFIDENCE,
    entropy: float | None = None,
    rng: Generator | None = None,
) -> Audit:
    """Audit a mechanism through the code that makes many reports at once.

    Its own guarantee after so many ``reports`` is the promise; ``rng`` draws its coins, too; other
    options as of `audit`.
    """
    require_type("mechanism", mechanism, Mechanism)
    asked = some_values(mechanism) if values is None else values
    mechanism.domain.encode(list(asked))  # unknown answers are refused by their place here
    draw = of_mechanism(mechanism, reports, rng)
    promise = mechanism.lasting.after(reports)
    decoder, alike = supports(mechanism, asked), mechanism.places == 1
    options = AuditOptions(n, confidence, decoder, entropy, rng, alike)
    return audit_source(draw, asked, promise, options, str(mechanism))


def audit_command(
    command: str | Sequence[str],
    values: Sequence[Any],
    epsilon: float,
    reports: int = 1,
    *,
    n: int = USUAL,
    confidence: float = CONFIDENCE,
    decoder: Decoder | None = None,
    entropy: float | None = None,
    rng: Generator | None = None,
) -> Audit:
    """Audit a program that reads a value a line and prints its report on a line.

    If a device is asked for several ``reports``, they are a line together, a JSON array, and
    ``epsilon`` is what all of them promise. Options as of `audit`.
    """
    name = command if isinstance(command, str) else " ".join(command)
    options = AuditOptions(n, confidence, decoder, entropy, rng)
    return audit_source(of_command(command, reports), values, epsilon, options, name)


def some_values(mechanism: Mechanism) -> list[Any]:
    """The first two answers, one of the middle and the last, where errors at the ends show."""
    return [mechanism.domain.answer(value) for value in walked(mechanism)]


def audit_source(
    draw: Draw, values: Sequence[Any], epsilon: float, options: AuditOptions, name: str
) -> Audit:
    """Audit whatever `draw` draws from; ``name`` is what the findings call it."""
    n, decoder, entropy = require_int("n", options.n, LEAST, MOST), options.decoder, options.entropy
    promised, alpha = check_epsilon(epsilon), 1 - _checked(options.confidence)
    if len(values) < 2:
        raise InvalidArgument("values", values, "at least two values")
    if entropy is not None and not (isinstance(entropy, (int, float)) and entropy >= 0):
        raise InvalidArgument("entropy", entropy, "a number of bits, from 0 on")
    drawn = _drawn(draw, values, n, decoder, options.rng)
    searched, held = ([e.part(*part) for e in drawn] for part in ((0, n // 2), (n // 2, n)))
    features, chosen = search(searched, values, decoder, alpha)
    error = alpha / (len(chosen) + TESTS)
    samples = [features.sample(part) for part in held]
    return Audit(
        subject=name,
        promised=promised,
        values=tuple(values),
        n=n,
        rounds=samples[0].rounds,
        confidence=options.confidence,
        findings=tuple(judged(event, samples, values, error, pair) for event, pair in chosen),
        alarms=alarms(drawn, values, error, entropy, judge_bits=options.alike and decoder is None),
        constant=tuple(v for v, e in zip(values, drawn, strict=True) if len(set(e.keys)) == 1),
    )


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _checked(confidence: Any) -> float:
    if not isinstance(confidence, float) or not 0.5 <= confidence < 1:
        raise InvalidArgument("confidence", confidence, "a number of 0.5 up to, but not, 1")
    return confidence


def _drawn(
    draw: Draw, values: Sequence[Any], n: int, decoder: Decoder | None, rng: Generator | None
) -> list[Encoded]:
    """n reports of each value; asked in one sequence of mixed order, then sorted by value."""
    order = mixed_order(len(values), n, rng)
    rounds = draw([values[i] for i in order.tolist()])
    extra = [decoder.read(column) for column in rounds] if decoder else None
    everyone = encode(rounds, extra)
    return [everyone.take(np.flatnonzero(order == i)) for i in range(len(values))]
