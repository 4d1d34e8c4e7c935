"""The contract that every mechanism fulfils.

A mechanism is a frozen value: a domain, the target epsilon, and the integers of its channel. A
family says in one file how a report is made (`report`, and `fill` for many at once), how reports
are counted (`count`), and what the counts mean (`p` and `q`, or `unbiased` and `variance_line`).
Everything else follows here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.domain import Candidates, Domain, DomainLike, Label, Text, in_order
from deniable.errors import InvalidArgument, require_int, require_type
from deniable.privacy import Channel, Guarantee, check_epsilon, exact_channel, exp_below
from deniable.randomness import (
    BLOCK_WORDS,
    SCALE,
    WORD_BYTES,
    ByteCoins,
    Coins,
    Keystream,
    Words,
    draw_key,
    require_generator,
)

if TYPE_CHECKING:
    from numpy.random import Generator

    from deniable.estimation import Estimate
    from deniable.reports import Reports
    from deniable.tally import Tally

SPEC_VERSION = 1
#: Up to here reports are made one by one, which is slower but needs no compiled kernel.
SMALL_JOB = 32
#: Reports a chunk; a multiple of 8, so that packed rows of any width fill whole words.
CHUNK = 1 << 17
#: Reports, and bytes of reports, that a kernel works on before it moves on: what the cache holds.
BATCH = 1 << 14
CACHE_BYTES = 1 << 18

Floats = NDArray[np.float64]
#: One number for each answer: in their order, or with labels of its own (see `domain.in_order`).
Labelled: TypeAlias = ArrayLike | Mapping[Any, Any]
Counts = NDArray[np.int64]


class Mechanism(ABC):
    """An epsilon-LDP channel from a domain to reports."""

    #: Name in the registry and in specs, e.g. "oue".
    name: ClassVar[str]
    #: One line each for the table of mechanisms.
    paper: ClassVar[str]
    good_for: ClassVar[str]
    #: The targets of epsilon, as the constructor takes them after the domain.
    budgets: ClassVar[tuple[str, ...]] = ("epsilon",)
    #: Integers that choose the shape of the channel, and those that are probabilities out of 2**64.
    design: ClassVar[tuple[str, ...]] = ()
    thresholds: ClassVar[tuple[str, ...]] = ()
    #: The only number of answers that the family allows, if there is one.
    only_size: ClassVar[int | None] = None
    #: Whether a report is `once.ratio` times as likely under each value that it supports as under
    #: each other: then the exact likelihood of reports is known.
    two_valued: ClassVar[bool] = False
    #: Whether the channel uses all of epsilon; where not, `guarantee` says what it uses.
    spends_all: ClassVar[bool] = True
    #: Whether a count of supports is a sum of independent coins. It is not where respondents share
    #: hash functions: then frequencies are unbiased, and variances hold, over the choice of these.
    independent: ClassVar[bool] = True
    #: Whether answers may be any `Text`, too.
    takes_text: ClassVar[bool] = False
    #: Design integers that make the channel enumerable, where a small domain alone does not.
    small_design: ClassVar[dict[str, int]] = {}

    domain: Domain
    epsilon: float

    def __init__(self, domain: DomainLike, epsilon: float, **integers: int | None) -> None:
        """Freeze the fields; every integer that is None is derived from epsilon."""
        vars(self).update(domain=Domain.of(domain), epsilon=check_epsilon(epsilon))
        self._check_domain()
        for name, given in integers.items():
            low, high = (1, SCALE - 1) if name in self.thresholds else (-1, SCALE)
            integer = self._derive(name) if given is None else given
            vars(self)[name] = require_int(name, integer, low, high)
        if self.guarantee.ratio > exp_below(self.epsilon):
            found = f"these give {self.guarantee.epsilon}"
            self._refuse_thresholds(f"such that epsilon = {self.epsilon} holds ({found})")
        if getattr(self, "p", 1) <= getattr(self, "q", 0):
            self._refuse_thresholds("such that a report supports its own value more than others")

    def _check_domain(self) -> None:
        name = type(self).__name__
        if isinstance(self.domain, Text):
            if not self.takes_text:
                raise InvalidArgument("domain", self.domain, f"a list of answers for {name}")
        elif self.domain.size != (self.only_size or self.domain.size):
            raise InvalidArgument("domain", self.domain, f"{self.only_size} answers for {name}")

    def _refuse_thresholds(self, allowed: str) -> None:
        thresholds = {name: getattr(self, name) for name in self.thresholds}
        raise InvalidArgument("thresholds", thresholds, allowed)

    # ---- what a family says

    @abstractmethod
    def _derive(self, name: str) -> int:
        """The value of the design integer or threshold ``name`` that suits epsilon best."""

    @abstractmethod
    def report(self, value: int, coins: Coins) -> Any:
        """The randomised report of the value with this index; run on the respondent's device.

        A pure function of the value and the coins that always draws `coin_words` words. The value
        is an index as `Domain.encode` gives it; `privatize` checks answers, this function does not.
        """

    @property
    @abstractmethod
    def coin_words(self) -> int:
        """The number of 64-bit words that one report draws, whatever the value."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """The NumPy type of one report in a column."""

    @property
    @abstractmethod
    def bits_per_report(self) -> int:
        """The bits that one report needs on the wire."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What the integer channel promises."""

    @property
    def once(self) -> Guarantee:
        """What one report costs; less than `guarantee` where that is about many."""
        return self.guarantee

    @property
    def epsilon_1(self) -> float:
        """The target for one report."""
        return self.epsilon

    @property
    @abstractmethod
    def p(self) -> Fraction:
        """The probability that a report supports its own value, p*."""

    @property
    @abstractmethod
    def q(self) -> Fraction:
        """The probability that a report supports a given other value, q*."""

    @abstractmethod
    def count(self, data: NDArray[Any]) -> Counts:
        """The counts of a column of reports; refuses reports that the mechanism cannot make."""

    @property
    def cells(self) -> int:
        """The length of `count`'s result."""
        return self.domain.size

    def possible_counts(self, counts: Counts, n: int) -> bool:
        """Whether n reports can have these counts; families say more where more is known."""
        return bool(np.all((counts >= 0) & (counts <= n)))

    def fill(self, values: NDArray[Any], out: NDArray[Any], keystream: Keystream) -> None:
        """Write the reports of many values; families override it with a kernel.

        ``out`` may be longer than ``values``, up to a multiple of 8; what follows is not used.
        """
        out[: len(values)] = self._one_by_one(values, keystream)

    # ---- what follows: numbers

    def supports(self, counts: Counts, n: int) -> Counts | None:
        """How many reports support each value, with p and q; None without a single q."""
        return counts if self.cells == self.domain.size else None

    def unbiased(self, counts: Counts, n: int) -> Floats:
        """Unbiased frequencies: f_v = (c_v / n - q) / (p - q) with the supports c."""
        supports = np.asarray(self.supports(counts, n))
        return (supports / n - float(self.q)) / float(self.p - self.q)

    def response(self) -> Floats:
        """Row u: the mean of `unbiased` when all answer u. The identity, but for shared hashes."""
        return np.eye(self.domain.size)

    def variance_line(self, f: Floats, n: int) -> tuple[Floats, Floats]:
        """(A, B) with n Var(f_v) = A_v + B_v f_v for n people with frequencies f.

        For supports with p and q: A = q (1 - q) / (p - q)^2 and B = (1 - p - q) / (p - q).
        """
        return support_line(self.p, self.q, f)

    def repeated_line(self, f: Floats) -> tuple[Floats, Floats]:
        """(A, B) with n Cov = A_v + B_v f_v for the unbiased frequencies of two rounds.

        In both the same n people give the same answers. Zero where every report has fresh coins.
        """
        return np.zeros(f.shape), np.zeros(f.shape)

    def estimated_line(
        self, counts: Counts, n: int, unbiased: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """`variance_line` of an unknown population, from its counts.

        ``unbiased`` is what `unbiased` says, for callers who know it already: it may take long.
        """
        f = self.unbiased(counts, n) if unbiased is None else unbiased
        return self.variance_line(np.clip(f, 0.0, 1.0), n)

    def variance(self, n: int, f: Labelled | None = None) -> Floats:
        """The variance of each unbiased frequency from n reports of a fixed population.

        ``f`` holds the true frequencies (default: uniform); a single number stands for a
        value with that frequency while the others share the rest equally.
        """
        n = require_int("n", n, 1, 1 << 62)
        k = self.domain.size
        frequencies = self._frequencies(np.full(k, 1 / k) if f is None else f)
        one = frequencies.ndim == 0
        line = self.variance_at if one else self.variance_line
        a, b = line(frequencies, n)
        return np.asarray((a + b * frequencies) / n)

    def variance_at(self, f: Floats, n: int) -> tuple[Floats, Floats]:
        """`variance_line` of one value with frequency f while the others share the rest equally."""
        return self.variance_line(f, n)

    def channel(self) -> Channel:
        """The exact channel matrix, inputs x outputs, by running `report`; for small domains."""
        return exact_channel(self.report, range(self.domain.size))

    # ---- what follows: simulation

    def simulate(self, histogram: Labelled, rng: Generator) -> Counts:
        """Random counts of the reports of a population with ``histogram[v]`` respondents of v.

        The law is that of `tally` on their reports; families draw it without making any.
        """
        if isinstance(self.domain, Candidates):
            raise InvalidArgument("domain", self.domain, "any text or a list: candidates are asked")
        counts = np.asarray(in_order("histogram", histogram, self.domain.listed))
        whole = counts.shape == (self.domain.size,) and counts.dtype.kind in "iu"
        if not whole or np.any(counts < 0) or counts.astype(np.float64).sum() > 2**53:
            allowed = f"{self.domain.size} integers of at least 0 that sum to at most 2**53"
            raise InvalidArgument("histogram", histogram, allowed)
        require_generator(rng)
        return self._simulate(counts.astype(np.int64), rng)

    def _simulate(self, histogram: Counts, rng: Generator) -> Counts:
        """`simulate`, by making and counting reports; families override it where they can."""
        indices = np.repeat(np.arange(self.domain.size, dtype=np.uint32), histogram)
        return self.count(self.randomise(indices, draw_key(rng), 1))

    # ---- what follows: the trip of a report

    def privatize(
        self, values: Any, rng: Generator | None = None, *, threads: int | None = None
    ) -> Reports:
        """Randomise answers. Secure coins, unless a simulation passes ``rng``."""
        from deniable.kernels.threads import thread_count
        from deniable.reports import Reports

        thread_count(threads)
        return Reports(self, self.randomise(self.domain.encode(values), draw_key(rng), threads))

    def tally(self, reports: Reports | None = None, *, threads: int | None = None) -> Tally:
        """The counts of ``reports``, or an empty tally."""
        from deniable.tally import Tally

        tally = Tally(self)
        return tally if reports is None else tally.add(reports, threads=threads)

    def estimate(self, reports: Reports, method: str | None = None, **choices: Any) -> Estimate:
        """Frequencies with errors, straight from reports; choices as in `deniable.combine`."""
        from deniable.estimation import combine
        from deniable.reports import Reports, require_same

        require_type("reports", reports, Reports)
        require_same(self, reports.mechanism)
        return combine([reports], method, **choices)

    def among(self, candidates: Iterable[str]) -> Self:
        """The same mechanism for any text, asked about some texts and everything else together."""
        if not isinstance(self.domain, Text):
            raise InvalidArgument("candidates", candidates, "left out: the answers are listed")
        integers = {name: getattr(self, name) for name in (*self.design, *self.thresholds)}
        return type(self)(Candidates.of(candidates), self.epsilon, **integers)

    def pack(self, reports: Sequence[Any]) -> NDArray[Any]:
        """Single reports as a column of `dtype`."""
        return _column(reports, self.dtype)

    def randomise(
        self, indices: NDArray[Any], key: bytes, threads: int | None = None
    ) -> NDArray[Any]:
        """A column of reports of values that `Domain.encode` has checked, with a fresh key."""
        if len(indices) <= SMALL_JOB:
            return self._one_by_one(indices, Keystream(key))
        return self._in_bulk(indices, key, threads)

    def _one_by_one(self, indices: NDArray[Any], keystream: Keystream) -> NDArray[Any]:
        reports = []
        for value in indices.tolist():
            coins = ByteCoins(keystream.bytes(self.coin_words * WORD_BYTES))
            reports.append(self.report(value, coins))
            coins.finish()
        return self.pack(reports)

    def _in_bulk(self, indices: NDArray[Any], key: bytes, threads: int | None) -> NDArray[Any]:
        from deniable.kernels.threads import run, thread_count

        n = len(indices)
        data = np.empty(-(-n // 8) * 8, dtype=self.dtype)
        chunks = -(-n // CHUNK)
        workers = min(thread_count(threads), chunks)

        def work(first: int) -> None:
            keystream = Keystream(key)
            for chunk in range(first, chunks, workers):
                part = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
                keystream.seek(chunk)
                self.fill(indices[part].astype(self.domain.dtype), data[part], keystream)

        run(work, range(workers))
        return data[:n]

    def _frequencies(self, f: Labelled) -> Floats:
        k = self.domain.size
        given = as_floats("f", f, self.domain.listed)
        fits = given.shape in ((), (k,)) and np.all(given >= 0) and given.sum() <= 1 + 1e-9
        if not fits:
            raise InvalidArgument("f", f, f"a number of 0..1 or {k} that sum to at most 1")
        return given

    # ---- what follows: a value that can be shared

    def to_spec(self) -> dict[str, Any]:
        """Everything a client or server needs, as JSON data.

        Thresholds are decimal strings: many JSON readers cut integers to 53 bits.
        """
        return {
            "deniable": SPEC_VERSION,
            "mechanism": self.name,
            "domain": self.domain.to_spec(),
            **{name: getattr(self, name) for name in self.budgets},
            "design": {name: getattr(self, name) for name in self.design},
            "thresholds": {name: str(getattr(self, name)) for name in self.thresholds},
        }

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        numbers = (*self.budgets, *self.design, *self.thresholds)
        return (type(self), self.domain, *(getattr(self, name) for name in numbers))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a mechanism cannot be changed: {name!r} is fixed")

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Mechanism) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        free = isinstance(self.domain, (Text, Candidates))
        answers = str(self.domain) if free else f"k = {self.domain.size}"
        epsilons = "".join(f", {name} = {getattr(self, name):g}" for name in self.budgets)
        return f"{type(self).__name__}, {answers}{epsilons}"

    def __repr__(self) -> str:
        numbers = "".join(f", {name}={getattr(self, name)}" for name in self.budgets + self.design)
        return f"{type(self).__name__}({self.domain!r}{numbers})"


def _column(values: Sequence[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.names:
        data = np.empty(len(values), dtype=dtype)
        for place, name in enumerate(dtype.names):
            data[name] = _column([value[place] for value in values], dtype[name])
        return data
    if dtype.subdtype is not None:
        flat = np.frombuffer(b"".join(values), dtype=np.uint8)
        return flat.reshape(len(values), *dtype.shape).copy()
    return np.array(list(values), dtype=dtype)


def as_floats(name: str, values: Labelled, labels: Sequence[Label] | None = None) -> Floats:
    """``values`` as floating-point numbers, in the order of ``labels`` (see `in_order`)."""
    ordered = in_order(name, values, labels)
    try:
        return np.asarray(ordered, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(name, values, "a number or numbers") from None


def support_line(p: Fraction, q: Fraction, f: Floats) -> tuple[Floats, Floats]:
    """`Mechanism.variance_line` of supports with probabilities p and q."""
    a = float(q * (1 - q) / (p - q) ** 2)
    b = float((1 - p - q) / (p - q))
    return np.full(f.shape, a), np.full(f.shape, b)


def mixture_keep(epsilon: float, outcomes: int, favoured: Fraction = Fraction(1)) -> int:
    """The largest threshold T for "favoured outcomes with T / 2**64, else any of all outcomes".

    Outcomes drawn by `Coins.choice` weigh at least floor(2**64 / outcomes) =: w, so the likelihood
    ratio is at most 1 + T 2**64 / ((2**64 - T) favoured w), which must not exceed e**epsilon.
    """
    return int(SCALE * mixture_share(exp_below(epsilon), outcomes, favoured))


def mixture_share(ratio: Fraction, outcomes: int, favoured: Fraction = Fraction(1)) -> Fraction:
    """T / 2**64 for a likelihood ratio, before it is rounded."""
    odds = (ratio - 1) * favoured * (SCALE // outcomes) / SCALE
    return odds / (1 + odds)


def mixture_ratio(share: Fraction, outcomes: int, favoured: Fraction = Fraction(1)) -> Fraction:
    """The likelihood ratio of the channel with this share."""
    return 1 + share / (1 - share) * SCALE / (SCALE // outcomes) / favoured


def batches(
    values: NDArray[Any], out: NDArray[Any], keystream: Keystream, words: int
) -> Iterator[tuple[NDArray[Any], NDArray[Any], Words]]:
    """Cut a chunk into cache-sized pieces, each with its coins, ``words`` a report."""
    for some, rows in pieces(values, out, BLOCK_WORDS // words):
        yield some, rows, keystream.words(words * len(some))


def pieces(
    values: NDArray[Any], out: NDArray[Any], most: int = BATCH
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Cut a chunk into cache-sized pieces of at most ``most`` reports."""
    report_bytes = out.nbytes // len(out)
    step = max(8, min(BATCH, most, CACHE_BYTES // report_bytes) // 8 * 8)
    for start in range(0, len(values), step):
        piece = slice(start, start + step)
        yield values[piece], out[piece]
