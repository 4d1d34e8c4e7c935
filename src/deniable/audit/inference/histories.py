"""What an observer can do with all the reports of a respondent: infer the answer, or follow it.

Both attacks are the most powerful there are (Neyman and Pearson): they know the mechanism, who
sent which report, and compute exact likelihoods. No averaging of reports can do better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats
from deniable.core.mechanism import as_floats
from deniable.core.reports import Reports, require_same
from deniable.errors import InvalidArgument, require_type
from deniable.mechanisms import DBitFlipPM, Mechanism
from deniable.mechanisms.packed import unpacked
from deniable.mechanisms.two_step.bit_chains import ChainedBits
from deniable.mechanisms.two_step.chains import RandomisedChain
from deniable.randomness import SCALE


def answer_loglikelihoods(rounds: Sequence[Reports]) -> Floats:
    """Row i: the log-likelihood of every answer, given report i of each round.

    The reports of a row are those of one device that gave one answer in all rounds, made from one
    kept draw. Up to a constant that no answer changes.
    """
    mechanism = _mechanism(rounds)
    return _likelihoods(mechanism)(mechanism, [part.data for part in rounds])


def link_loglikelihoods(earlier: Sequence[Reports], later: Sequence[Reports], f: Floats) -> Floats:
    """Entry i: the log-likelihood ratio of "row i of ``later`` is the device of row i of
    ``earlier``, with the same answer" to "it is another respondent".

    ``f`` are the frequencies of the answers in the population. Up to a constant.
    """
    mechanism = _mechanism(earlier)
    require_same(mechanism, _mechanism(later))
    share = as_floats("f", f, mechanism.domain.listed)
    whole = share.shape == (mechanism.domain.size,) and np.all(share >= 0)
    if not whole or abs(share.sum() - 1) > 1e-9:
        raise InvalidArgument("f", f, f"{mechanism.domain.size} frequencies that sum to 1")
    together, first, second = (
        _marginal(answer_loglikelihoods(part), share)
        for part in ([*earlier, *later], earlier, later)
    )
    return np.where(_one_device(earlier[0], later[0]), together - first - second, -np.inf)


def _mechanism(rounds: Sequence[Reports]) -> Any:
    if not isinstance(rounds, Sequence) or not rounds:
        raise InvalidArgument("rounds", rounds, "a list of at least one round of reports")
    for part in rounds:
        require_type("rounds", part, Reports)
        require_same(rounds[0].mechanism, part.mechanism)
        if len(part) != len(rounds[0]):
            raise InvalidArgument("rounds", len(part), f"{len(rounds[0])} reports in every round")
    _likelihoods(rounds[0].mechanism)
    return rounds[0].mechanism


def _one_device(earlier: Reports, later: Reports) -> Any:
    """Whether one device can have made both: its hash function, or its bits, are in each."""
    names = [name for name in earlier.data.dtype.names or () if name != "y"]
    pairs = [earlier.data[name] == later.data[name] for name in names]
    same = [pair.reshape(len(earlier), -1).all(axis=1) for pair in pairs]
    return np.logical_and.reduce(same) if same else True


def _marginal(loglikelihoods: Floats, f: Floats) -> Floats:
    """ln sum_v f_v L_v."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.logaddexp.reduce(loglikelihoods + np.log(f), axis=1))


def _likelihoods(mechanism: Mechanism) -> Callable[[Any, list[NDArray[Any]]], Floats]:
    """What is known about the reports of one device under this mechanism."""
    for family in type(mechanism).__mro__:
        if family in LIKELIHOODS and mechanism.domain.is_listed:
            return LIKELIHOODS[family]
    allowed = "of a longitudinal mechanism with listed answers"
    raise InvalidArgument("mechanism", mechanism, allowed)


def _randomised(m: RandomisedChain, columns: list[NDArray[Any]]) -> Floats:
    """L_v = t1 A_v + (1 - t1) mean A over outcomes, A_y = r^(how often y was reported)."""
    hashed = m.dtype.names is not None
    said = np.stack([data["y"] if hashed else data for data in columns]).astype(np.int64)
    n = said.shape[1]
    places = (np.arange(n) * m.outcomes + said).ravel()
    times = np.bincount(places, minlength=n * m.outcomes).reshape(n, m.outcomes)
    odds = m.permanent_guarantee.kept_bits[0].odds
    logs = times * np.log(float(odds or 1))
    rest = np.logaddexp.reduce(logs, axis=1) + _log((1 - m.permanent_share) / m.outcomes)
    likelihoods = np.asarray(np.logaddexp(logs + _log(m.permanent_share), rest[:, None]))
    if not hashed:
        return likelihoods
    begun = np.repeat(columns[0], m.domain.size)  # hash functions are in the reports
    cells = m.keys_of(begun, np.tile(np.arange(m.domain.size), n)).reshape(n, -1)
    return np.asarray(np.take_along_axis(likelihoods, cells.astype(np.int64), axis=1))


def _bits(m: ChainedBits, columns: list[NDArray[Any]]) -> Floats:
    """L_v = prod_b L_b(other) times L_v(own) / L_v(other), bits being independent."""
    ones = sum(unpacked(data, m.domain.size).astype(np.int64) for data in columns)
    zeros = len(columns) - ones
    p2, q2 = Fraction(m.one, SCALE), Fraction(m.zero, SCALE)
    one, zero = (ones * _log(chance) + zeros * _log(1 - chance) for chance in (p2, q2))
    own, other = (
        np.logaddexp(one + _log(p1), zero + _log(1 - p1)) for p1 in (m.permanent_p, m.permanent_q)
    )
    return np.asarray(other.sum(axis=1)[:, None] + own - other)


def _flipped(m: DBitFlipPM, columns: list[NDArray[Any]]) -> Floats:
    """One report tells all: a bit that was asked about is right with p = keep / 2**64."""
    asked, yes = (unpacked(columns[0][name], m.domain.size) for name in ("asked", "yes"))
    right, wrong = _log(Fraction(m.keep, SCALE)), _log(1 - Fraction(m.keep, SCALE))
    other = asked * np.where(yes, wrong, right)
    own = asked * np.where(yes, right, wrong)
    found = other.sum(axis=1)[:, None] + own - other
    repeated = np.logical_and.reduce([data == columns[0] for data in columns])
    return np.asarray(np.where(repeated[:, None], found, -np.inf))


def _log(chance: Fraction) -> float:
    """Of an exact number: in floating point 1 - p loses what a large epsilon leaves."""
    return math.log(chance.numerator) - math.log(chance.denominator)


LIKELIHOODS: dict[type, Callable[[Any, list[NDArray[Any]]], Floats]] = {
    RandomisedChain: _randomised,
    ChainedBits: _bits,
    DBitFlipPM: _flipped,
}
