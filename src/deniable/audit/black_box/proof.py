"""Search on one part of the reports, proof on another that nobody has looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deniable.audit.black_box.encoding import Encoded
from deniable.audit.black_box.events import Event, Features, Sample, candidates
from deniable.audit.black_box.findings import Finding
from deniable.audit.black_box.sources import Decoder
from deniable.estimation.frequencies.errors.exact import binomial_bounds

#: About the parts that the error will be divided into; the search may guess, as it proves nothing.
SHARES = 20


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
