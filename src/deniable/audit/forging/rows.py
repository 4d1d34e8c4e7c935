"""Forged reports that say something about every value: bits, sets, bytes, answered questions."""

from __future__ import annotations

from math import floor
from typing import Any

import numpy as np
from numpy.random import Generator

from deniable.arrays import Bools, Data, Floats, Integers
from deniable.audit.forging.admissible import AdmissibleReports, Products, SupportReports, ranks
from deniable.audit.forging.tails import binomial_pvalue
from deniable.mechanisms import SHE, SS, DBitFlip
from deniable.mechanisms.histogram import TOP
from deniable.mechanisms.packed import unpacked
from deniable.mechanisms.unary import UnaryEncoding
from deniable.randomness import SCALE


def packed(rows: Bools, row_bytes: int) -> Data:
    """Rows of bits as a mechanism sends them."""
    found = np.packbits(rows, axis=1, bitorder="little")
    return np.pad(found, ((0, 0), (0, row_bytes - found.shape[1])))


class BitReports(SupportReports):
    """Unary encodings: any set of values is admissible."""

    uncorrelated = True

    def supported(self, weights: Integers) -> tuple[Any, Any]:
        return np.minimum(weights, 0).sum(axis=-1), np.maximum(weights, 0).sum(axis=-1)

    def any(self, weights: Integers, rng: Generator) -> Data:
        return self._packed(rng.random((len(weights), self.mechanism.domain.size)) < 0.5)

    def best(self, weights: Integers, rng: Generator) -> Data:
        """All targets, and others up to the mean size of a genuine row."""
        m = self.mechanism
        usual = floor(m.p + (m.domain.size - 1) * m.q)
        return self._filled(weights, np.full(len(weights), usual), weights > 0, rng)

    def hidden(self, weights: Integers, rng: Generator) -> Data:
        """As many bits as a genuine row has, of which targets are the first."""
        m, n = self.mechanism, len(weights)
        own = rng.random(n) < float(m.p)
        sizes = own + rng.binomial(m.domain.size - 1, float(m.q), n)
        return self._filled(weights, sizes, np.zeros(weights.shape, dtype=bool), rng)

    def _filled(self, weights: Integers, sizes: Integers, always: Bools, rng: Generator) -> Data:
        chosen = (ranks(weights, rng) < sizes[:, None]) & (weights >= 0)
        return self._packed(chosen | always)

    def _packed(self, rows: Bools) -> Data:
        return packed(rows, self.mechanism.row_bytes)

    def contributions(self, data: Data) -> Floats:
        m = self.mechanism
        return np.asarray((unpacked(data, m.domain.size) - float(m.q)) / float(m.p - m.q))

    def sizes(self, data: Data) -> Integers:
        return np.asarray(np.bitwise_count(data).sum(axis=1, dtype=np.int64))

    def size_law(self) -> Floats:
        """One coin with p and k - 1 with q, whatever the answer."""
        m = self.mechanism
        return one_and_others(float(m.p), float(m.q), m.domain.size)


class SubsetReports(SupportReports):
    """Sets of exactly omega values."""

    def supported(self, weights: Integers) -> tuple[Any, Any]:
        ordered, omega = np.sort(weights, axis=-1), self.mechanism.omega
        return ordered[..., :omega].sum(axis=-1), ordered[..., -omega:].sum(axis=-1)

    def diameter(self) -> float:
        m = self.mechanism
        return float(2 * min(m.omega, m.domain.size - m.omega) / (m.p - m.q))

    def unchecked(self, weights: Integers) -> float:
        """A set of all targets."""
        return self.scaled(float(np.maximum(weights, 0).sum()), weights)

    def any(self, weights: Integers, rng: Generator) -> Data:
        return self.best(np.zeros_like(weights), rng)

    def best(self, weights: Integers, rng: Generator) -> Data:
        """As many targets as there is room for, and else any values."""
        return packed(ranks(weights, rng) < self.mechanism.omega, self.mechanism.row_bytes)

    hidden = best

    def contributions(self, data: Data) -> Floats:
        m = self.mechanism
        return np.asarray((unpacked(data, m.domain.size) - float(m.q)) / float(m.p - m.q))

    def _together(self) -> tuple[Floats, Floats]:
        """P(both), P(the first only), P(neither): without the own value, and with it first."""
        m, p, q = self.mechanism, float(self.mechanism.p), float(self.mechanism.q)
        k, omega = m.domain.size, m.omega
        both = (omega - 1) * (p * (omega - 2) + (1 - p) * omega) / ((k - 1) * (k - 2))
        own = p * (omega - 1) / (k - 1)
        without, having = (both, q - both, q - both), (own, p - own, q - own)
        return tuple(np.array([*x, 1 - sum(x)]) for x in (without, having))  # type: ignore[return-value]

    def _shift(self) -> float:
        """The s for which E (X_u - s) (X_v - s) is the same with and without the own value."""
        without, having = self._together()
        return float((having[0] - without[0]) / float(self.mechanism.p - self.mechanism.q))

    def scores(self, data: Data) -> Floats:
        return np.asarray(unpacked(data, self.mechanism.domain.size) - self._shift(), np.float64)

    def products(self) -> Products | None:
        """None for sets of one value, or of all but one: what they hold together is fixed."""
        if not 1 < self.mechanism.omega < self.mechanism.domain.size - 1:
            return None
        s = self._shift()
        values = np.array([(1 - s) ** 2, -s * (1 - s), -s * (1 - s), s * s])
        mean = float(self._together()[0] @ values)
        squares = (values - mean) ** 2
        variance = max(float(law @ squares) for law in self._together())
        return Products(mean, variance, float(np.sqrt(squares.max())))


class ByteReports(AdmissibleReports):
    """Noisy histograms: any byte up to the last is admissible for each value."""

    alike = True
    uncorrelated = True

    def _share(self, byte: int) -> float:
        """The contribution of a byte."""
        m = self.mechanism
        return float((byte - m.moment(1)) / m.gap)

    def extremes(self, weights: Integers) -> tuple[float, float]:
        low, high = self._share(0), self._share(self.mechanism.last)
        plus, minus = np.maximum(weights, 0).sum(), np.minimum(weights, 0).sum()
        return float(plus * low + minus * high), float(plus * high + minus * low)

    def diameter(self) -> float:
        m = self.mechanism
        return float(m.domain.size * m.last / m.gap)

    def unchecked(self, weights: Integers) -> float:
        """A byte may say 255."""
        return float(np.maximum(weights, 0).sum()) * self._share(TOP)

    def any(self, weights: Integers, rng: Generator) -> Data:
        return rng.integers(0, self.mechanism.last + 1, weights.shape).astype(np.uint8)

    def best(self, weights: Integers, rng: Generator) -> Data:
        return np.where(weights > 0, self.mechanism.last, self._noise(weights, rng)).astype("u1")

    def hidden(self, weights: Integers, rng: Generator) -> Data:
        """Every target has the noise of an own value."""
        noise = self._noise(weights, rng)
        return np.where(weights > 0, self.mechanism.last - noise, noise).astype(np.uint8)

    def _noise(self, weights: Integers, rng: Generator) -> Integers:
        return rng.choice(self.mechanism.last + 1, weights.shape, p=self._law)

    @property
    def _law(self) -> Floats:
        law = np.array(self.mechanism.weights, dtype=np.float64) / SCALE
        return np.asarray(law / law.sum())

    def contributions(self, data: Data) -> Floats:
        m = self.mechanism
        return np.asarray((data - float(m.moment(1))) / float(m.gap))

    def sizes(self, data: Data) -> Integers:
        return np.asarray(data.sum(axis=1, dtype=np.int64))

    def size_law(self) -> Floats:
        """The law of the sum of k bytes, one of them mirrored, by Fourier transforms."""
        k = self.mechanism.domain.size
        length = self.mechanism.last * k + 1
        own, other = (np.fft.rfft(law, length) for law in (self._law[::-1], self._law))
        return np.maximum(np.fft.irfft(own * other ** (k - 1), length), 0.0)


class QuestionReports(AdmissibleReports):
    """d-bit flipping: exactly w questions, and any answers to them."""

    alike = True
    uncorrelated = True

    def _gains(self, weights: Integers) -> tuple[Floats, Floats]:
        """What a question about each value can add at most, and take away at most."""
        m = self.mechanism
        yes, no = weights * (1 - m.flipped) * m.gain, -weights * m.flipped * m.gain
        return np.maximum(yes, no), np.minimum(yes, no)

    def extremes(self, weights: Integers) -> tuple[float, float]:
        more, less = (np.sort(part) for part in self._gains(weights))
        return float(less[: self.mechanism.w].sum()), float(more[-self.mechanism.w :].sum())

    def diameter(self) -> float:
        """Yeses to different questions, and opposite answers to those that must be the same."""
        m = self.mechanism
        same = max(0, 2 * m.w - m.domain.size)
        return float((2 * (m.w - same) * (1 - m.flipped) + same) * m.gain)

    def unchecked(self, weights: Integers) -> float:
        """Questions about all targets."""
        more, _ = self._gains(weights)
        return float(more.sum())

    def any(self, weights: Integers, rng: Generator) -> Data:
        answers = rng.random(weights.shape) < 0.5
        return self._answered(np.zeros_like(weights), answers, rng)

    def best(self, weights: Integers, rng: Generator) -> Data:
        """Questions about targets first, all answered with yes, and others as they come."""
        return self._answered(weights, (weights > 0) | self._flips(weights, rng), rng)

    def hidden(self, weights: Integers, rng: Generator) -> Data:
        """The questions are drawn as they should be."""
        yes = (weights > 0) | self._flips(weights, rng)
        return self._answered(np.zeros_like(weights), yes, rng)

    def _flips(self, weights: Integers, rng: Generator) -> Bools:
        return np.asarray(rng.random(weights.shape) < self.mechanism.flipped)

    def _answered(self, first: Integers, yes: Bools, rng: Generator) -> Data:
        m = self.mechanism
        asked = ranks(first, rng) < m.w
        data = np.empty(len(first), dtype=m.dtype)
        data["asked"], data["yes"] = packed(asked, m.row_bytes), packed(asked & yes, m.row_bytes)
        return data

    def contributions(self, data: Data) -> Floats:
        m = self.mechanism
        asked, yes = (unpacked(data[name], m.domain.size) for name in ("asked", "yes"))
        return np.asarray((yes - m.flipped * asked) * m.gain)

    def sizes(self, data: Data) -> Integers:
        return np.asarray(np.bitwise_count(data["yes"]).sum(axis=1, dtype=np.int64))

    def size_law(self) -> Floats:
        """The own value is among the w that are asked about with probability w / k."""
        m = self.mechanism
        keep, share = m.keep / SCALE, m.w / m.domain.size
        own = one_and_others(keep, 1 - keep, m.w)
        return np.asarray(share * own + (1 - share) * one_and_others(1 - keep, 1 - keep, m.w))

    def draws(self, data: Data) -> list[float]:
        """Every value is asked about with probability w / k."""
        k, w = self.mechanism.domain.size, self.mechanism.w
        if w == k:
            return []
        asked = unpacked(data["asked"], k).sum(axis=0, dtype=np.int64)
        return [binomial_pvalue(asked, len(data), w / k)]


def one_and_others(p: float, q: float, k: int) -> Floats:
    """The law of the number of ones among a coin with p and k - 1 coins with q."""
    from scipy.stats import binom

    others = binom.pmf(np.arange(k + 1), k - 1, q)
    return np.asarray((1 - p) * others + p * np.concatenate([[0.0], others[:-1]]))


ROWS: dict[type, type[AdmissibleReports]] = {
    UnaryEncoding: BitReports,
    SS: SubsetReports,
    SHE: ByteReports,
    DBitFlip: QuestionReports,
}
