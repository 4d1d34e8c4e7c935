"""How many respondents a test needs, before anybody is asked."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Any

import numpy as np

from deniable.arrays import Floats
from deniable.core.mechanism import Mechanism
from deniable.core.task import MOST_PEOPLE, SKIPPED_SHARE
from deniable.errors import InvalidArgument, is_number, require_int, require_share, require_type
from deniable.estimation.frequencies.intervals import check_confidence
from deniable.estimation.testing.normal import check_alternative, clear_distance
from deniable.mechanisms.numbers import NumberMechanism

#: Reports of a sample, at least: fewer are not tested.
LEAST_REPORTS = 30
#: The standard deviation of numbers of 0..1 that is reckoned with unless another is planned.
USUAL_SD = 0.2
#: Numbers that stand for those that are expected.
PLANNED = 500


def sample_size(
    mechanism: Mechanism,
    difference: float,
    *,
    power: float = 0.8,
    confidence: float = 0.95,
    alternative: str = "two-sided",
    **plan: Any,
) -> int:
    """How many respondents each sample of a test needs to find a ``difference`` with some power.

    The ``difference`` is in the unit of what is estimated. What else is planned depends on the task
    of the mechanism. A mean: ``samples`` (1, the default: against a number; 2: against each other),
    and the ``mean`` and ``sd`` that are expected of the answers (default: the middle of the range,
    and a fifth of it), and the share of those who skip a question that they may (``skipped``).
    """
    require_type("mechanism", mechanism, Mechanism)
    return mechanism.task.sample_size(
        mechanism,
        difference,
        power=require_share("power", power),
        confidence=check_confidence(confidence),
        alternative=check_alternative(alternative),
        **plan,
    )


def mean_sample_size(
    mechanism: NumberMechanism,
    difference: float,
    *,
    power: float,
    confidence: float,
    alternative: str,
    samples: int = 1,
    mean: float | None = None,
    sd: float | None = None,
    skipped: float = SKIPPED_SHARE,
) -> int:
    """The least n of each sample with (z_a + z_b) sqrt(samples V(n)) <= difference.

    V(n) is the variance of the mean of n respondents who are a sample of everyone: what the
    mechanism adds for numbers that are Beta distributed with this mean and sd, and sd^2 / n. It is
    the largest there is where a test of so few reports has to assume that.
    """
    domain, several = mechanism.domain, require_int("samples", samples, 1, 2)
    width = domain.hi - domain.lo
    if not is_number(difference) or not 0 < difference < width:
        allowed = f"a number above 0 and below hi - lo = {width:.12g}"
        raise InvalidArgument("difference", difference, allowed)
    distance = clear_distance(power, confidence, alternative)
    x = _numbers(mechanism, mean, sd)
    allowed_error = float(difference) / width / distance

    require_share("skipped", skipped)

    def variance(n: int) -> float:
        shown = mechanism.shows_variance(n)
        if domain.optional:
            if shown:
                return mechanism.variance_among(x, n, skipped, sampled=True)
            return mechanism.worst_among(float(x.mean()), n) / (1 - skipped) ** 2
        if shown:
            return mechanism.variance_for(x, n) + float(x.var()) / n
        return mechanism.worst_variance(n, sampled=True)

    def enough(n: int) -> bool:
        return math.sqrt(several * variance(n)) <= allowed_error

    if not enough(MOST_PEOPLE):
        allowed = f"larger: {MOST_PEOPLE:,} respondents would not be enough"
        raise InvalidArgument("difference", difference, allowed)
    return bisect_left(range(MOST_PEOPLE), True, lo=LEAST_REPORTS, key=enough)


def _numbers(mechanism: NumberMechanism, mean: float | None, sd: float | None) -> Floats:
    """Equally frequent numbers of 0..1 that stand for a Beta law with this mean and sd."""
    from scipy.stats import beta

    domain = mechanism.domain
    width = domain.hi - domain.lo
    middle = domain.lo + width / 2 if mean is None else mean
    if not is_number(middle) or not domain.lo < middle < domain.hi:
        raise InvalidArgument("mean", mean, f"between {domain.lo:.12g} and {domain.hi:.12g}")
    mu = (float(middle) - domain.lo) / width
    most = width * math.sqrt(mu * (1 - mu))
    spread = min(USUAL_SD * width, most / 2) if sd is None else sd
    if not is_number(spread) or not 0 < spread < most:
        allowed = f"above 0 and below {most:.4g}, the most that answers with this mean can have"
        raise InvalidArgument("sd", sd, allowed)
    total = mu * (1 - mu) / (float(spread) / width) ** 2 - 1
    places = (np.arange(PLANNED) + 0.5) / PLANNED
    return np.asarray(beta.ppf(places, mu * total, (1 - mu) * total))
