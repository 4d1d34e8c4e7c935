"""The estimators by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deniable.arrays import Floats
from deniable.errors import InvalidArgument
from deniable.estimation.frequencies import consistency, shrinkage, simplex
from deniable.estimation.frequencies.evidence import Decoded, Evidence
from deniable.estimation.frequencies.ibu import (
    iterate,
    pooled_supports,
    pure_channel,
    water_filling,
)
from deniable.mechanisms import Mechanism
from deniable.mechanisms.frequency import FrequencyOracle, require_oracle

Decoder = Callable[..., Decoded]


@dataclass(frozen=True)
class Method:
    """A decoder: evidence in, frequencies out; it may take options of its own."""

    decode: Decoder
    paper: str
    about: str
    #: Whether frequencies are never negative and sum to 1.
    feasible: bool = True
    #: The kind of errors it has by default; None: those of the unbiased frequencies.
    errors: str | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """The names of the options."""
        return tuple(inspect.signature(self.decode).parameters)[1:]


def _of_unbiased(function: Callable[[Floats], Floats]) -> Decoder:
    """A decoder that looks at the unbiased frequencies only."""
    return lambda evidence: Decoded(function(evidence.unbiased))


def _of_noise(function: Callable[..., Floats]) -> Decoder:
    """A decoder that knows the variance of the unbiased frequencies, too."""
    return lambda evidence: Decoded(
        function(evidence.unbiased, a=evidence.line.a, b=evidence.line.b + evidence.between)
    )


def _base_cut(evidence: Evidence, false_positives: float = consistency.FALSE_POSITIVES) -> Decoded:
    if not isinstance(false_positives, (int, float)) or not 0 < false_positives < np.inf:
        raise InvalidArgument("false_positives", false_positives, "a positive number")
    return Decoded(
        consistency.base_cut(evidence.unbiased, a=evidence.line.a, false_positives=false_positives)
    )


def _calibrate(evidence: Evidence, prior: shrinkage.Prior | None = None) -> Decoded:
    b = evidence.line.b + evidence.between
    return Decoded(shrinkage.calibrate(evidence.unbiased, a=evidence.line.a, b=b, prior=prior))


def _ibu(
    evidence: Evidence,
    iterations: int | None = None,
    tolerance: float | None = None,
    start: ArrayLike | None = None,
    rule: str | None = None,
) -> Decoded:
    """The limit in closed form; with any option the iterate that the paper reports."""
    given = {"iterations": iterations, "tolerance": tolerance, "start": start, "rule": rule}
    chosen: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    supports = [part.supports for part in evidence.parts]
    known = [part for part in supports if part is not None]
    if chosen and (len(known), len(supports)) != (1, 1):
        allowed = "left out, but for one mechanism with one p and one q"
        raise InvalidArgument("options", sorted(chosen), allowed)
    without = [part.mechanism for part in evidence.parts if part.supports is None]
    if without and len(supports) == 1 and without[0].two_likelihoods:
        # Without a single q (blocks of HR, an outside) the supports themselves have a likelihood.
        return _likelihood(evidence)
    if without:
        names = " and ".join(sorted({type(m).__name__ for m in without}))
        raise InvalidArgument("method", "ibu", f"another: {names} has no supports with one p and q")
    if not chosen:
        return Decoded(pooled_supports(known) if len(known) > 1 else water_filling(*known[0]))
    counts, p, q = known[0]
    return Decoded(iterate(counts, pure_channel(evidence.k, p, q), **chosen).frequencies)


def _likelihood(evidence: Evidence, tolerance: float = 1e-9, most_passes: int = 200) -> Decoded:
    from deniable.estimation.frequencies.mle.maximum import likelihood_estimate

    return likelihood_estimate(evidence, tolerance=tolerance, most_passes=most_passes)


def _bayes(evidence: Evidence) -> Decoded:
    from deniable.estimation.frequencies.bayes import bayes_estimate

    return bayes_estimate(evidence)


def _least_squares(evidence: Evidence) -> Decoded:
    from deniable.estimation.frequencies.regression.least_squares import least_squares

    return least_squares(evidence)


def _nnls(evidence: Evidence) -> Decoded:
    from deniable.estimation.frequencies.regression.least_squares import nnls

    return nnls(evidence)


def _lasso(evidence: Evidence, significance: float = 0.05, penalty: float | None = None) -> Decoded:
    from deniable.estimation.frequencies.regression.lasso import lasso

    return lasso(evidence, significance, penalty)


_WANG = "Wang et al. 2020"

METHODS: dict[str, Method] = {
    "bayes": Method(_bayes, "none", "learns how frequencies are spread; the default"),
    "likelihood": Method(
        _likelihood,
        "Kairouz et al. 2016",
        "maximises the exact likelihood of the reports",
        errors="information",
    ),
    "ibu": Method(
        _ibu, "Arcolezi et al. 2023", "maximises the likelihood of pooled supports, closed form"
    ),
    "unbiased": Method(
        _of_unbiased(lambda x: x), "Wang et al. 2017", "right on average, may be negative", False
    ),
    "projected": Method(_of_unbiased(simplex.project), _WANG, "nearest distribution; Norm-Sub"),
    "normalized": Method(
        _of_unbiased(simplex.clip_and_normalize), _WANG, "negatives to 0, rescaled; Norm-Mul"
    ),
    "norm": Method(_of_unbiased(consistency.norm), _WANG, "shifted to sum 1", False),
    "norm-cut": Method(
        _of_unbiased(consistency.norm_cut), _WANG, "the largest ones, as they are", False
    ),
    "base-pos": Method(_of_unbiased(consistency.base_pos), _WANG, "negatives to 0", False),
    "post-pos": Method(
        _of_unbiased(consistency.post_pos), _WANG, "answers to queries made positive", False
    ),
    "base-cut": Method(_base_cut, _WANG, "what the noise does not explain", False),
    "mle-apx": Method(
        _of_noise(consistency.mle_apx), _WANG, "maximum of an approximate normal likelihood"
    ),
    "power": Method(_of_noise(consistency.power), _WANG, "mean under a fitted power law", False),
    "power-ns": Method(_of_noise(consistency.power_ns), _WANG, "power, then projected"),
    "calibrate": Method(
        _calibrate, "Jia & Gong 2019", "mean under a known prior (option prior)", False
    ),
    "james-stein": Method(
        _of_noise(shrinkage.james_stein), "James & Stein 1961", "shrunk to uniform, then projected"
    ),
    "least-squares": Method(
        _least_squares,
        "Kairouz et al. 2016",
        "cohorts: without collisions, may be negative",
        feasible=False,
        errors="regression",
    ),
    "nnls": Method(
        _nnls, "none", "cohorts: least squares among distributions", errors="regression"
    ),
    "lasso": Method(
        _lasso,
        "Erlingsson et al. 2014",
        "cohorts: the significant ones of many",
        feasible=False,
        errors="regression",
    ),
}
#: Methods for mechanisms whose respondents share hash functions.
OF_COHORTS = ("least-squares", "nnls", "lasso")
DEFAULT_METHOD = "bayes"


def decode(evidence: Evidence, name: str, options: dict[str, Any]) -> Decoded:
    """Run a method with its options."""
    method = find_method(name)
    unknown = sorted(set(options) - set(method.options))
    if unknown:
        allowed = ", ".join(method.options) or "none"
        raise InvalidArgument("options", unknown, f"options of {name!r}: {allowed}")
    return method.decode(evidence, **options)


def methods_for(mechanism: Mechanism) -> list[str]:
    """The methods that suit reports: some need the likelihood of a mechanism, supports, cohorts."""
    from deniable.estimation.frequencies.mle.shared import held_by_reports

    oracle = require_oracle(mechanism)
    unsuited = dict.fromkeys(OF_COHORTS, oracle.independent_supports)
    unsuited |= {
        "likelihood": not held_by_reports(oracle),
        "ibu": not (oracle.two_likelihoods or _has_supports(oracle)),
    }
    return [name for name in METHODS if not unsuited.get(name)]


def methods_of_counts(mechanism: Mechanism) -> list[str]:
    """The methods that suit a tally, where the reports themselves are gone."""
    oracle = require_oracle(mechanism)
    held = oracle.counts_suffice
    unsuited = {"likelihood": not held, "ibu": not (held or _has_supports(oracle))}
    return [name for name in methods_for(oracle) if not unsuited.get(name)]


def _has_supports(oracle: FrequencyOracle) -> bool:
    return oracle.supports(np.zeros(oracle.cells, dtype=np.int64), 0) is not None


def find_method(name: Any) -> Method:
    """The method of this name."""
    if not isinstance(name, str) or name not in METHODS:
        raise InvalidArgument("method", name, f"one of {', '.join(METHODS)}")
    return METHODS[name]
