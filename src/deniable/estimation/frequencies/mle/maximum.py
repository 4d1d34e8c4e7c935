"""The maximum of the likelihood as an estimate, and as evidence for other decoders."""

from __future__ import annotations

import numpy as np

from deniable.arrays import Floats
from deniable.errors import InvalidArgument
from deniable.estimation.frequencies.errors.score import analytic
from deniable.estimation.frequencies.evidence import Decoded, Evidence, Part, Uncertainty
from deniable.estimation.frequencies.intervals import two_sided_z
from deniable.estimation.frequencies.mle.likelihood import Maximum, efficient, maximise
from deniable.estimation.frequencies.mle.shared import held_by_reports

#: Values up to which the k x k information is made, for its own sake and to help another decoder.
LARGEST, HELPFUL = 1024, 256


def likelihood_estimate(evidence: Evidence, *, tolerance: float, most_passes: int) -> Decoded:
    """The frequencies of the largest likelihood; their errors come from the information."""
    found = maximise(evidence.sources, tolerance=tolerance, most_passes=most_passes)

    def own(confidence: float, sampling: bool) -> Uncertainty:
        # A frequent answer that nobody listed is not spread evenly, as the likelihood has it.
        is_open = evidence.domain.is_open
        sharp = None if is_open else sharpened(evidence, found)
        if sharp is None:
            return analytic(evidence, confidence, sampling)
        x, variances = sharp
        f = found.frequencies
        deviations = np.sqrt(variances + sampling / evidence.n * f * (1 - f))
        half = two_sided_z(confidence) * deviations
        return Uncertainty("information", deviations, np.stack([x - half, x + half], axis=1))

    return Decoded(found.frequencies, own, found.certificate)


def sharper(evidence: Evidence) -> tuple[Floats, Floats] | None:
    """`sharpened` where it is worth its price: None for counts that do not hold the likelihood,
    for randomised response, whose unbiased frequencies are as sharp, and for large domains."""
    direct = len(evidence.parts) == 1 and evidence.parts[0].mechanism.direct
    if direct or evidence.k > HELPFUL or not all(map(_holds_likelihood, evidence.parts)):
        return None
    return sharpened(evidence, maximise(evidence.sources))


def _holds_likelihood(part: Part) -> bool:
    read = part.reports is not None and held_by_reports(part.mechanism)
    return part.mechanism.two_likelihoods and (part.mechanism.counts_suffice or read)


def sharpened(evidence: Evidence, maximum: Maximum) -> tuple[Floats, Floats] | None:
    """Nearly unbiased frequencies with the least variance, and their variances.

    None where the matrix would be too large, where the reports do not determine it, and where it
    cannot be trusted: an efficient estimate differs from another by the difference of their
    variances (Hausman 1978), on average over the k values; far more than that means that the
    likelihood is not yet quadratic, as with few reports at a large epsilon.
    """
    if evidence.k > LARGEST:
        return None
    try:
        x, covariance = efficient(evidence.sources, maximum)
    except InvalidArgument:
        return None
    variances = np.diag(covariance)
    gained = float(np.mean(evidence.variances - variances))
    apart = float(np.mean((x - evidence.unbiased) ** 2))
    if variances.min() < 0 or apart > gained * (1 + 3 * np.sqrt(2 / evidence.k)):
        return None
    return x, variances
