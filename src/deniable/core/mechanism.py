"""The contract that every mechanism fulfils.

A mechanism is a frozen value: a kind of answer, the target epsilon, and the integers of its
channel. It turns one encoded answer into one report with a layout, and reports into one vector of
integers that adds. What goes in is said by its domain, what the sums mean by its task.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.arrays import Counts, Floats
from deniable.core.domain import Domain, DomainLike, Label, in_order
from deniable.core.integers import Design, Threshold, declared
from deniable.core.layout import Layout
from deniable.core.task import Task, find_task
from deniable.errors import BrokenPromise, InvalidArgument, require_type
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
)

if TYPE_CHECKING:
    from numpy.random import Generator

    from deniable.core.reports import Reports
    from deniable.core.stored import Source
    from deniable.core.tally import Tally
    from deniable.estimation import Estimate

SPEC_VERSION = 2
#: Up to here reports are made one by one, which is slower but needs no compiled kernel.
SMALL_JOB = 32
#: Reports a chunk; a multiple of 8, so that packed rows of any width fill whole words.
CHUNK = 1 << 17
#: Reports, and bytes of reports, that a kernel works on before it moves on: what the cache holds.
BATCH = 1 << 14
CACHE_BYTES = 1 << 18

#: One number for each answer: in their order, or with labels of its own (see `domain.in_order`).
Labelled: TypeAlias = ArrayLike | Mapping[Any, Any]


class Mechanism(ABC):
    """An epsilon-LDP channel from a domain to reports."""

    #: Name in the registry and in specs, e.g. "oue".
    name: ClassVar[str]
    #: Other names of the same mechanism, for which `core.registry` finds this family, too.
    also: ClassVar[tuple[str, ...]] = ()
    #: One line each for the table of mechanisms.
    paper: ClassVar[str]
    good_for: ClassVar[str]
    #: The kinds of answers that it randomises.
    takes: ClassVar[tuple[type[Domain], ...]]
    #: What its sums are good for, by name (`core.task`); the first one unless another is named.
    tasks: ClassVar[tuple[str, ...]]
    #: The kinds of answers that ``mechanism = "auto"`` may choose it for.
    automatic: ClassVar[tuple[type[Domain], ...]] = ()
    #: Whether devices may run it; if not, it is there for comparison only.
    on_devices: ClassVar[bool] = True
    #: Whether a device keeps a draw for many reports; see `mechanisms.two_step`.
    remembers: ClassVar[bool] = False
    #: If a device keeps draws: whether every value has one of its own. Where several values share
    #: one (a hash cell), enough reports show which values do: no epsilon bounds what changes tell.
    key_is_value: ClassVar[bool] = True
    #: The targets of epsilon, as the constructor takes them after the domain.
    budgets: ClassVar[tuple[str, ...]] = ("epsilon",)
    #: Integers that choose the shape of the channel, and those that are probabilities out of 2**64:
    #: the names of those that the family declares.
    design: ClassVar[tuple[str, ...]] = ()
    thresholds: ClassVar[tuple[str, ...]] = ()
    #: Whether the channel uses all of epsilon; where not, `guarantee` says what it uses.
    spends_all: ClassVar[bool] = True
    #: Design integers that make the channel enumerable, where a small domain alone does not.
    small_design: ClassVar[dict[str, int]] = {}

    domain: Domain
    epsilon: float

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        integers = declared(cls)
        cls.design = tuple(name for name, one in integers.items() if isinstance(one, Design))
        cls.thresholds = tuple(name for name, one in integers.items() if isinstance(one, Threshold))

    def __init__(self, domain: DomainLike, epsilon: float, **integers: int | None) -> None:
        """Freeze the fields; every integer that is None or left out is derived from epsilon."""
        declared = (*self.design, *self.thresholds)
        if unknown := integers.keys() - set(declared):
            words = f"{type(self).__name__}() got an unexpected keyword argument {min(unknown)!r}"
            raise TypeError(words)
        found = Domain.of(domain)
        vars(self).update(domain=found, epsilon=check_epsilon(epsilon), given=integers)
        if allowed := self.unsuited(found):
            raise InvalidArgument("domain", found, allowed)
        for name in declared:
            getattr(self, name)
        del vars(self)["given"]
        self._check()

    @classmethod
    def unsuited(cls, domain: Domain) -> str | None:
        """What is allowed instead, if the family does not randomise answers of this kind."""
        if isinstance(domain, cls.takes):
            return None
        return f"{' or '.join(kind.noun for kind in cls.takes)} for {cls.__name__}"

    @classmethod
    def tasks_for(cls, domain: Domain) -> tuple[str, ...]:
        """Those of `tasks` that can be estimated of these answers: all, but where a family says so.

        Run by the collector and the analyst.
        """
        return cls.tasks

    @classmethod
    def advised(
        cls, domain: Domain, epsilon: float, n: int, tasks: tuple[str, ...] = ()
    ) -> dict[str, int]:
        """Design integers for n expected respondents and some of the family's tasks.

        Where a good design does not depend on these, there are none. Run by the collector.
        """
        return {}

    @classmethod
    def example(cls, domain: Domain, epsilon: float, **design: int) -> Self:
        """A member for these answers, where only epsilon is known: what laws are tried on."""
        return cls(domain, epsilon, **design)

    def _check(self) -> None:
        """Refuse integers that break epsilon."""
        if self.guarantee.ratio > exp_below(self.epsilon):
            found = f"these give {self.guarantee.epsilon}"
            self._refuse_thresholds(f"such that epsilon = {self.epsilon} holds ({found})")

    def _refuse_thresholds(self, allowed: str) -> None:
        thresholds = {name: getattr(self, name) for name in self.thresholds}
        raise BrokenPromise("thresholds", thresholds, allowed)

    # ---- what a family says

    @abstractmethod
    def report(self, value: Any, coins: Coins) -> Any:
        """The randomised report of an encoded answer. Run by the device.

        A pure function of the value and the coins that always draws `coin_words` words. The value
        is what `Domain.encode` gives; `privatize` checks answers, this function does not.
        """

    @property
    @abstractmethod
    def coin_words(self) -> int:
        """The number of 64-bit words that one report draws, whatever the value.

        Run by the device.
        """

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """What a report looks like. Run by the device, the collector and the analyst."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What the integer channel promises. Run by the device, the collector and the analyst."""

    @property
    def once(self) -> Guarantee:
        """What one report costs; less than `guarantee` where that is about many."""
        return self.guarantee

    @property
    def lasting(self) -> Guarantee:
        """What several reports of one answer cost: ``lasting.after(reports=5)``."""
        return self.once

    @property
    def epsilon_1(self) -> float:
        """The target for one report."""
        return self.epsilon

    def count(self, data: NDArray[Any]) -> Counts:
        """The counts of a column of reports; refuses reports that the mechanism cannot make.

        Run by the collector and the analyst.
        """
        return self.layout.count(data)

    @property
    def cells(self) -> int:
        """The length of `count`'s result. Run by the collector and the analyst."""
        return self.layout.cells

    def possible_counts(self, counts: Counts, n: int) -> bool:
        """Whether n reports can have these counts; families say more where more is known.

        Run by the analyst.
        """
        return self.layout.possible(counts, n)

    def fill(self, values: NDArray[Any], out: NDArray[Any], keystream: Keystream) -> None:
        """Write the reports of many values; families override it with a kernel.

        ``out`` may be longer than ``values``, up to a multiple of 8; what follows is not used.
        Run by the device.
        """
        out[: len(values)] = self._one_by_one(values, keystream)

    def channel(self) -> Channel:
        """The exact channel matrix, inputs x outputs, by running `report`; for small domains."""
        return exact_channel(self.report, self.domain.sample())

    @property
    def places(self) -> int:
        """The number of branches that a device draws one of; 1 where nothing is drawn."""
        return 1

    def asks(self, of: tuple[str, ...], coins: Coins) -> tuple[str, ...]:
        """Which of the questions ``of`` a report with these coins depends on: all, unless drawn.

        Run by the device.
        """
        return of

    def log_spent(self, rounds: int, changes: int) -> Decimal:
        """What a respondent spends who answers so many rounds and changes the answer so often.

        Recomputed from the integers, so that a device can check what it is asked to spend.
        Run by the device and the collector.
        """
        return self.once.log_after(rounds, 0)

    @property
    def parts(self) -> tuple[Mechanism, ...]:
        """The mechanisms that it brings together, if it is made of others."""
        return ()

    def made_of(self, parts: Sequence[Mechanism]) -> Self:
        """The same with others in the place of its first `parts`, and without the rest."""
        raise InvalidArgument("mechanism", self, "one that is made of others")

    # ---- what follows: the family, for other answers

    @classmethod
    def small_domains(cls) -> Iterator[Domain]:
        """Domains that the family takes, for which its channel can be enumerated."""
        found = (domain for kind in cls.takes for domain in kind.smalls())
        return (domain for domain in found if cls.unsuited(domain) is None)

    def over(self, domain: DomainLike, **integers: int) -> Self:
        """The same family and budgets for other answers; integers are derived unless given."""
        return type(self)(domain, *(getattr(self, name) for name in self.budgets), **integers)

    # ---- what follows: the trip of a report

    def privatize(
        self, values: Any, rng: Generator | None = None, *, threads: int | None = None
    ) -> Reports:
        """Randomise answers. Secure coins, unless a simulation passes ``rng``.

        Run by the device.
        """
        from deniable.core.reports import Reports
        from deniable.kernels.threads import thread_count

        thread_count(threads)
        return Reports(self, self.randomise(self.domain.encode(values), draw_key(rng), threads))

    def tally(self, reports: Reports | None = None, *, threads: int | None = None) -> Tally:
        """The counts of ``reports``, or an empty tally. Run by the analyst."""
        from deniable.core.tally import Tally

        tally = Tally(self)
        return tally if reports is None else tally.add(reports, threads=threads)

    def estimate(self, reports: Reports, method: str | None = None, **choices: Any) -> Estimate:
        """An estimate with errors, straight from reports; choices as in `deniable.combine`.

        Run by the analyst.
        """
        from deniable.core.reports import Reports, require_same

        require_type("reports", reports, Reports)
        require_same(self, reports.mechanism)
        return self.task.estimate([reports], method, **choices)

    def about(self, question: str, source: Source) -> Source:
        """What its reports, or their tally, say about one of several questions.

        Run by the analyst.
        """
        raise InvalidArgument("question", question, "left out: each report is about one question")

    def among(self, candidates: Iterable[str]) -> Self:
        """The same reports about any text, asked about some texts and everything else together.

        Run by the analyst.
        """
        raise InvalidArgument("candidates", candidates, "left out: the answers are not any text")

    @property
    def task(self) -> Task:
        """What its sums mean. Run by the analyst."""
        if not self.tasks:
            allowed = "asked about its parts: all of its sums together have no meaning"
            raise InvalidArgument("mechanism", self, allowed)
        return find_task(self.tasks[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy type of one report in a column."""
        return self.layout.dtype

    @property
    def bits_per_report(self) -> int:
        """The bits that one report needs on the wire."""
        return self.layout.bits

    def pack(self, reports: Sequence[Any]) -> NDArray[Any]:
        """Single reports as a column."""
        return self.layout.pack(reports)

    def randomise(
        self, indices: NDArray[Any], key: bytes, threads: int | None = None
    ) -> NDArray[Any]:
        """A column of reports of values that `Domain.encode` has checked, with a fresh key.

        Run by the device.
        """
        if len(indices) <= SMALL_JOB:
            return self._one_by_one(indices, Keystream(key))
        return self._in_bulk(indices, key, threads)

    def _one_by_one(self, indices: NDArray[Any], keystream: Keystream) -> NDArray[Any]:
        size = self.coin_words * WORD_BYTES
        return self.report_each(indices, (keystream.bytes(size) for _ in range(len(indices))))

    def report_each(self, indices: NDArray[Any], coins: Iterable[bytes]) -> NDArray[Any]:
        """A column of reports of checked values, each with coins of its own. Run by the device."""
        reports = []
        for value, words in zip(indices.tolist(), coins, strict=True):
            drawn = ByteCoins(words)
            reports.append(self.report(value, drawn))
            drawn.finish()
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
                values = np.ascontiguousarray(indices[part], dtype=self.domain.dtype)
                self.fill(values, data[part], keystream)

        run(work, range(workers))
        return data[:n]

    # ---- what follows: a value that can be shared

    def to_spec(self) -> dict[str, Any]:
        """Everything a client or server needs, as JSON data."""
        return {
            "deniable": SPEC_VERSION,
            "domain": self.domain.to_spec(),
            "mechanism": self.to_leaf(),
        }

    def to_leaf(self) -> dict[str, Any]:
        """The mechanism beside its domain, as a manifest carries it.

        Thresholds are decimal strings: many JSON readers cut integers to 53 bits.
        Run by the collector.
        """
        return {
            "name": self.name,
            **{name: getattr(self, name) for name in self.budgets},
            "design": {name: getattr(self, name) for name in self.design},
            "thresholds": {name: str(getattr(self, name)) for name in self.thresholds},
        }

    @classmethod
    def from_leaf(cls, domain: Domain, leaf: Mapping[str, Any]) -> Self:
        """The member that `to_leaf` described; refuses one that breaks its epsilon.

        Run by the device, the collector and the analyst.
        """
        from deniable.core.registry import check_keys, check_number, read_integers

        check_keys("mechanism", leaf, {"name", *cls.budgets, "design", "thresholds"})
        for name in cls.budgets:
            check_number(name, leaf[name])
        integers = {
            **read_integers(leaf, "design", cls.design, int),
            **read_integers(leaf, "thresholds", cls.thresholds, str),
        }
        try:
            return cls(domain, *(leaf[name] for name in cls.budgets), **integers)
        except InvalidArgument as refused:
            raise BrokenPromise(refused.name, refused.value, refused.allowed) from None

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        return self._identity

    @property
    def _identity(self) -> tuple[Any, ...]:
        """What makes two mechanisms equal."""
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
        epsilons = "".join(f", {name} = {getattr(self, name):g}" for name in self.budgets)
        return f"{type(self).__name__}, {self.domain.short}{epsilons}"

    def __repr__(self) -> str:
        numbers = "".join(f", {name}={getattr(self, name)}" for name in self.budgets + self.design)
        return f"{type(self).__name__}({self.domain!r}{numbers})"


def as_floats(name: str, values: Labelled, labels: Sequence[Label] | None = None) -> Floats:
    """``values`` as floating-point numbers, in the order of ``labels`` (see `in_order`)."""
    ordered = in_order(name, values, labels)
    try:
        return np.asarray(ordered, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(name, values, "a number or numbers") from None


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
