"""What an observer can do with all the reports of a respondent: infer the answer, or follow it.

Both attacks are the most powerful there are (Neyman and Pearson): they know the mechanism, who
sent which report, and compute exact likelihoods. No averaging of reports can do better.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InvalidArgument, require_type
from deniable.mechanisms import DBitFlipPM
from deniable.mechanisms.bit_chains import ChainedBits
from deniable.mechanisms.chains import HashedChain, RandomisedChain
from deniable.reports import Reports, require_same

Floats = NDArray[np.float64]


def answer_loglikelihoods(rounds: Sequence[Reports]) -> Floats:
    """Row i: the log-likelihood of every answer, given report i of each round.

    The reports of a row are those of one device that gave one answer in all rounds, made from one
    kept draw. Up to a constant that no answer changes.
    """
    mechanism = _mechanism(rounds)
    columns = [part.data for part in rounds]
    if isinstance(mechanism, RandomisedChain):
        return _randomised(mechanism, columns)
    if isinstance(mechanism, ChainedBits):
        return _bits(mechanism, columns)
    return _flipped(mechanism, columns)


def link_loglikelihoods(earlier: Sequence[Reports], later: Sequence[Reports], f: Floats) -> Floats:
    """Entry i: the log-likelihood ratio of "row i of ``later`` is the device of row i of
    ``earlier``, with the same answer" to "it is another respondent".

    ``f`` are the frequencies of the answers in the population. Up to a constant.
    """
    require_same(_mechanism(earlier), _mechanism(later))
    together, first, second = (
        _marginal(answer_loglikelihoods(part), f) for part in ([*earlier, *later], earlier, later)
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
    mechanism = rounds[0].mechanism
    if not isinstance(mechanism, (RandomisedChain, ChainedBits, DBitFlipPM)):
        allowed = "of a longitudinal mechanism with listed answers"
        raise InvalidArgument("mechanism", mechanism, allowed)
    return mechanism


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


def _randomised(m: RandomisedChain, columns: list[NDArray[Any]]) -> Floats:
    """L_v = t1 A_v + (1 - t1) mean A over outcomes, A_y = r^(how often y was reported)."""
    hashed = isinstance(m, HashedChain)
    said = np.stack([data["y"] if hashed else data for data in columns]).astype(np.int64)
    n = said.shape[1]
    places = (np.arange(n) * m.outcomes + said).ravel()
    times = np.bincount(places, minlength=n * m.outcomes).reshape(n, m.outcomes)
    odds = m.permanent_guarantee.clues[0].odds
    logs = times * np.log(float(odds or 1))
    share = float(m.permanent_share)
    rest = np.logaddexp.reduce(logs, axis=1) + np.log((1 - share) / m.outcomes)
    likelihoods = np.asarray(np.logaddexp(logs + np.log(share), rest[:, None]))
    if not hashed:
        return likelihoods
    begun = np.repeat(columns[0], m.domain.size)
    cells = m.keys_of(begun, np.tile(np.arange(m.domain.size), n)).reshape(n, -1)
    return np.asarray(np.take_along_axis(likelihoods, cells.astype(np.int64), axis=1))


def _bits(m: ChainedBits, columns: list[NDArray[Any]]) -> Floats:
    """L_v = prod_b L_b(other) times L_v(own) / L_v(other), bits being independent."""
    ones = sum(_unpacked(data, m.domain.size).astype(np.int64) for data in columns)
    zeros = len(columns) - ones
    p2, q2 = m.one / 2**64, m.zero / 2**64
    one = ones * np.log(p2) + zeros * np.log1p(-p2)
    zero = ones * np.log(q2) + zeros * np.log1p(-q2)
    own, other = (
        np.logaddexp(one + np.log(float(p1)), zero + np.log1p(-float(p1)))
        for p1 in (m.permanent_p, m.permanent_q)
    )
    return np.asarray(other.sum(axis=1)[:, None] + own - other)


def _flipped(m: DBitFlipPM, columns: list[NDArray[Any]]) -> Floats:
    """One report tells all: a bit that was asked about is right with p = keep / 2**64."""
    asked, yes = (_unpacked(columns[0][name], m.domain.size) for name in ("asked", "yes"))
    right, wrong = np.log(m.keep / 2**64), np.log1p(-m.keep / 2**64)
    other = asked * np.where(yes, wrong, right)
    own = asked * np.where(yes, right, wrong)
    return np.asarray(other.sum(axis=1)[:, None] + own - other)


def _unpacked(rows: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    return np.unpackbits(rows, axis=1, count=size, bitorder="little")
