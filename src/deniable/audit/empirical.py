"""The audit of a black box: a lower bound on the epsilon that it really has.

n reports of each of some values are drawn. The first half looks for events that are much more
likely under one value u than under another v; the second half, which nobody has looked at, bounds
both probabilities (Clopper and Pearson 1934), and

    epsilon >= ln(lower bound of P(event | u) / upper bound of P(event | v))

holds with the stated confidence for all events together: the error is divided by the number of
events that are taken over to the second half, and of the tests of independence (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable.audit.encoding import Encoded, aligned, encode
from deniable.audit.events import Event, Features, Sample, candidates
from deniable.audit.findings import Audit, Finding
from deniable.audit.independence import Alarm, bit_chance, collisions, repeats
from deniable.audit.sources import (
    Decoder,
    Draw,
    of_command,
    of_devices,
    of_function,
    of_mechanism,
    supports,
)
from deniable.domain import Text
from deniable.errors import InvalidArgument, require_int, require_type
from deniable.estimation.exact import binomial_bounds
from deniable.mechanisms import Mechanism
from deniable.mechanisms.memoised import Memoised
from deniable.privacy import check_epsilon

if TYPE_CHECKING:
    from numpy.random import Generator

Floats = NDArray[np.float64]

#: Tests of independence beside the events: repeats and collisions.
OTHER_TESTS = 2
#: About the parts that the error will be divided into; the search may guess, as it proves nothing.
SHARES = 20
LEAST, MOST = 40, 10_000_000


def audit(
    report: Callable[[Any], Any], values: Sequence[Any], epsilon: float, **options: Any
) -> Audit:
    """Audit a function of the value; ``epsilon`` is what one report promises."""
    name = getattr(report, "__name__", type(report).__name__)
    return audit_source(of_function(report), values, epsilon, name=name, **options)


def audit_devices(
    make: Callable[[], Callable[[Any], Any]],
    values: Sequence[Any],
    epsilon: float,
    reports: int,
    **options: Any,
) -> Audit:
    """Audit devices that remember: ``make()`` is a fresh one, and reports so many times.

    ``epsilon`` is what all these reports of one answer promise together.
    """
    reports = require_int("reports", reports, 1, 1000)
    name = getattr(make, "__name__", type(make).__name__)
    return audit_source(of_devices(make, reports), values, epsilon, name=name, **options)


def audit_mechanism(
    mechanism: Mechanism,
    values: Sequence[Any] | None = None,
    *,
    reports: int = 1,
    rng: Generator | None = None,
    **options: Any,
) -> Audit:
    """Audit a mechanism through the code that makes many reports at once."""
    require_type("mechanism", mechanism, Mechanism)
    asked = some_values(mechanism) if values is None else values
    promise = mechanism.once.after(reports)
    if isinstance(mechanism, Memoised):
        promise = mechanism.permanent_guarantee.after(reports)
    draw = of_mechanism(mechanism, reports, rng)
    decoder = supports(mechanism, asked)
    return audit_source(draw, asked, promise, name=str(mechanism), decoder=decoder, **options)


def audit_command(
    command: str | Sequence[str], values: Sequence[Any], epsilon: float, **options: Any
) -> Audit:
    """Audit a program that reads one value a line and prints one report a line."""
    name = command if isinstance(command, str) else " ".join(command)
    return audit_source(of_command(command), values, epsilon, name=name, **options)


def some_values(mechanism: Mechanism) -> list[Any]:
    """The first two answers, one of the middle and the last, where errors at the ends show."""
    if isinstance(mechanism.domain, Text):
        raise InvalidArgument("values", None, "given: the answers are any text")
    k = mechanism.domain.size
    return [mechanism.domain.label(i) for i in sorted({0, 1, k // 2, k - 1})]


def audit_source(
    draw: Draw,
    values: Sequence[Any],
    epsilon: float,
    *,
    n: int = 20_000,
    confidence: float = 0.999,
    decoder: Decoder | None = None,
    entropy: float | None = None,
    name: str = "black box",
) -> Audit:
    """Audit whatever `draw` draws from.

    ``entropy``: the bits of collision entropy, -log2 P(two reports are equal), that an honest
    report of one value has at least. If it is not given, reports of at least 16 bits are compared
    with independent bits.
    """
    n = require_int("n", n, LEAST, MOST)
    promised, alpha = check_epsilon(epsilon), 1 - _checked(confidence)
    if len(values) < 2:
        raise InvalidArgument("values", values, "at least two values")
    extra = len(decoder.names) if decoder else 0
    drawn = aligned([_drawn(draw, value, n, decoder) for value in values], extra)
    searched, held = ([e.part(*part) for e in drawn] for part in ((0, n // 2), (n // 2, n)))
    features, chosen = search(searched, values, decoder, alpha)
    tests = len(chosen) + OTHER_TESTS
    samples = [features.sample(part) for part in held]
    findings = [judged(event, samples, values, alpha / tests, pair) for event, pair in chosen]
    alarms = _alarms(drawn, values, alpha / tests, entropy, judge_bits=decoder is None)
    constant = tuple(v for v, e in zip(values, drawn, strict=True) if len(set(e.keys)) == 1)
    rounds = samples[0].rounds
    return Audit(
        name, promised, tuple(values), n, rounds, confidence, tuple(findings), alarms, constant
    )


def _checked(confidence: Any) -> float:
    if not isinstance(confidence, float) or not 0.5 <= confidence < 1:
        raise InvalidArgument("confidence", confidence, "a number of 0.5 up to, but not, 1")
    return confidence


def _drawn(draw: Draw, value: Any, n: int, decoder: Decoder | None) -> Encoded:
    rounds = draw(value, n)
    extra = [decoder.read(column) for column in rounds] if decoder else None
    return encode(rounds, extra)


def search(
    parts: Sequence[Encoded], values: Sequence[Any], decoder: Decoder | None, alpha: float
) -> tuple[Features, list[tuple[Event, tuple[int, int]]]]:
    """The best event of each kind, with its values: learned on one half, chosen on the other."""
    half = len(parts[0]) // 2
    features = Features.of([p.part(0, half) for p in parts], decoder.names if decoder else ())
    learned, tried = (
        [features.sample(p.part(*rows)) for p in parts]
        for rows in ((0, half), (half, len(parts[0])))
    )
    best: dict[str, tuple[float, Event, tuple[int, int]]] = {}
    events = candidates(features, learned, values)
    hits = np.array([[event.test(s).sum() for s in tried] for event in events]).reshape(
        -1, len(values)
    )
    low, high = binomial_bounds(hits, len(tried[0]), alpha / SHARES)
    for event, lows, highs in zip(events, low, high, strict=True):
        u, v = int(np.argmax(lows)), int(np.argmin(highs))
        found = _log_ratio(lows[u], highs[v])
        if u != v and found > best.get(event.kind, (-np.inf,))[0]:
            best[event.kind] = (found, event, (u, v))
    return features, [(event, pair) for _, event, pair in best.values()]


def judged(
    event: Event,
    samples: Sequence[Sample],
    values: Sequence[Any],
    error: float,
    pair: tuple[int, int],
) -> Finding:
    """The bound that unseen reports give; half of the error for each of its two probabilities."""
    u, v = pair
    hits = np.array([event.test(samples[i]).sum() for i in pair])
    low, high = binomial_bounds(hits, len(samples[0]), error / 2)
    epsilon = max(0.0, _log_ratio(low[0], high[1]))
    shares = hits / len(samples[0])
    return Finding(
        event.kind, event.words, values[u], values[v], float(shares[0]), float(shares[1]), epsilon
    )


def _log_ratio(low: float, high: float) -> float:
    return float(np.log(low / high)) if low > 0 else -np.inf


def _alarms(
    drawn: Sequence[Encoded],
    values: Sequence[Any],
    error: float,
    entropy: float | None,
    judge_bits: bool,
) -> tuple[Alarm, ...]:
    """Alarms whose p-value is below the error, divided by the number of values."""
    tests = []
    for value, part in zip(values, drawn, strict=True):
        tests.append(repeats(value, part.keys))
        half = len(part) // 2
        first = part.keys if part.places.shape[1] == 1 else [key[0] for key in part.keys]
        if entropy is not None:
            why = f"entropy {entropy:g} bits"
            tests.append(collisions(value, first, 2.0**-entropy, why))
        elif judge_bits and (chance := bit_chance(part.places[:half, 0])) is not None:
            why = "a thousand times what independent bits have"
            tests.append(collisions(value, first[half:], chance, why))
    return tuple(test for test in tests if test.p_value <= error / len(values))
