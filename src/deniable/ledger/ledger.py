"""The ledger: a file that charges people's budgets before anything about them is released.

Its entries only grow in number, and each carries a hash of all before it. A second file, the
witness, knows the last entry after which something may have been released. Whatever cannot be
explained is refused; a charge whose release never happened counts as spent.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from deniable.core.mechanism import Mechanism
from deniable.errors import BudgetSpent, CorruptData, InvalidArgument, MismatchError, require_type
from deniable.ledger.chain import Chain, Entry, empty_file
from deniable.ledger.summary import THRESHOLD, summary_rows
from deniable.ledger.terms import Terms, require_name
from deniable.ledger.units import epsilon_of, micro_budget, micro_cost
from deniable.ledger.witness import Head, Witness
from deniable.randomness import draw_key
from deniable.storage.database import Database

if TYPE_CHECKING:
    from deniable.core.reports import Reports
    from deniable.privacy import Guarantee

FilePath = str | os.PathLike[str]
Subject = str | bytes


class Ledger:
    """Budgets of any number of subjects; any number of threads and processes may share the file.

    All entries are read and checked when it is opened; afterwards, only what others wrote since.
    """

    def __init__(self, path: FilePath, witness: FilePath | None = None) -> None:
        """Open a ledger that `create` made."""
        self._file, self._witness = _files(path, witness)
        self._chain: Chain | None = None
        with self._held():
            pass

    @classmethod
    def create(
        cls,
        path: FilePath,
        budget: float,
        collections: Mapping[str, float] | None = None,
        witness: FilePath | None = None,
    ) -> Self:
        """Start a ledger that allows every subject ``budget`` in all.

        With ``collections`` only these may charge, each up to its own part of the budget.
        """
        each = None
        if collections is not None:
            require_type("collections", collections, Mapping)
            each = {
                require_name(name): micro_budget(name, own) for name, own in collections.items()
            }
        terms = Terms(draw_key(None), micro_budget("budget", budget), each)
        files = _files(path, witness)
        try:
            for trace in (file for one in files for file in one.traces()):
                raise FileExistsError(trace)
            files[0].place_file(empty_file(terms))
        except FileExistsError:
            allowed = "free, and without a witness; open a ledger with Ledger(...)"
            raise InvalidArgument("path", str(path), allowed) from None
        return cls(path, witness)

    @classmethod
    def witness_anew(cls, path: FilePath, witness: FilePath | None = None) -> Self:
        """Open a ledger whose witness is lost, on the caller's word that it is the newest copy."""
        file, other = _files(path, witness)
        with file.connection() as connection:
            chain = Chain.load(connection)
        try:
            other.read()
        except (FileNotFoundError, CorruptData):
            other.set_aside("lost")
            other.place(Head.of(chain, chain.number, chain.link).record())
        return cls(path, witness)

    # ---- charges

    def charge(
        self,
        subject: Subject,
        collection: str,
        cost: Guarantee | Mechanism | float,
        token: str | bytes | None = None,
    ) -> int:
        """Charge one subject; see `charge_all`."""
        return self.charge_all([subject], collection, cost, token)

    def charge_all(
        self,
        subjects: Iterable[Subject],
        collection: str,
        cost: Guarantee | Mechanism | float,
        token: str | bytes | None = None,
    ) -> int:
        """Charge ``cost`` to each of the subjects, or to none; the number of those charged.

        Release nothing before this returns: then the charge is on the disk. A subject that is named
        twice is charged twice. A ``token`` names a release that is repeated with the same noise,
        such as the reports of a memoised answer: for the same subject, collection and cost it is
        charged only once. Raises `BudgetSpent` if any subject has less left.
        """
        terms, units = self._terms, micro_cost(cost)
        allowed, name = terms.allowed(collection), None if token is None else terms.token(token)
        names = [terms.pseudonym(subject) for subject in _listed(subjects)]
        marks = [terms.mark(one, collection, units, name) for one in names] if name else []
        with self._held() as (chain, connection):
            places = _due(chain, names, marks)
            _afford(chain, names, places, collection, units, allowed)
            number, link = chain.number, chain.link
            if places:
                number += 1
                due, new = ([some[i] for i in places] if some else [] for some in (names, marks))
                entry = Entry(number, collection, units, b"".join(due), b"".join(new))
                link = chain.write(entry, connection)
        self._settle(Head.of(chain, number, link), bool(places))
        return len(places)

    def privatize(
        self, mechanism: Mechanism, values: Any, subjects: Iterable[Subject], collection: str
    ) -> Reports:
        """Charge every subject for one report with fresh coins, then make the reports."""
        require_type("mechanism", mechanism, Mechanism)
        n, names = len(mechanism.domain.encode(values)), _listed(subjects)
        if len(names) != n:
            raise InvalidArgument("subjects", len(names), f"as many as there are values: {n}")
        self.charge_all(names, collection, mechanism.once)
        return mechanism.privatize(values)

    # ---- balances

    def spent(self, subject: Subject, collection: str | None = None) -> float:
        """The epsilon that a subject may have spent, in all or for a collection."""
        with self._held() as (chain, _):
            return epsilon_of(_spent(chain, chain.terms.pseudonym(subject), collection))

    def left(self, subject: Subject, collection: str | None = None) -> float:
        """The epsilon that a subject can still spend, in all or for a collection."""
        with self._held() as (chain, _):
            name = chain.terms.pseudonym(subject)
            left = chain.terms.budget - _spent(chain, name, None)
            if collection is not None:
                left = min(left, chain.terms.allowed(collection) - _spent(chain, name, collection))
            return epsilon_of(left)

    @property
    def budget(self) -> float:
        """What every subject may spend in all."""
        return epsilon_of(self._terms.budget)

    @property
    def entries(self) -> int:
        """The number of entries."""
        with self._held() as (chain, _):
            return chain.number

    @property
    def witnessed(self) -> int:
        """The entries that the witness has seen; after a crash it may lack some of the last."""
        with self._held() as (chain, connection):
            return self._witness.check(chain, connection).number

    def summary(
        self, collection: str | None = None, threshold: int = THRESHOLD
    ) -> list[dict[str, Any]]:
        """How many subjects spent how much, in all (collection None) and by collection.

        One row for all subjects, then bands of at least ``threshold`` subjects, from the least to
        the most spent; fewer subjects than that are only told to be fewer.
        """
        with self._held() as (chain, _):
            return summary_rows(chain, collection, threshold)

    def __repr__(self) -> str:
        """Without the number of entries: the file is not opened to be shown."""
        named = self._terms.collections
        only = "" if named is None else f" for {', '.join(named)}"
        return f"<ledger {self._file.path}, {self.budget:g} a subject{only}>"

    # ---- the file and its witness

    @property
    def _terms(self) -> Terms:
        assert self._chain is not None
        return self._chain.terms

    @contextmanager
    def _held(self) -> Iterator[tuple[Chain, sqlite3.Connection]]:
        """The checked chain. The lock of the file also keeps threads from it."""
        with self._file.connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                if self._chain is None:
                    self._chain = Chain.load(connection)
                else:
                    self._chain.catch_up(connection)
                self._witness.check(self._chain, connection)
            except (CorruptData, MismatchError) as error:
                raise type(error)(f"{self._file.path} is refused: {error}") from error
            yield self._chain, connection
            connection.execute("COMMIT")

    def _settle(self, head: Head, written: bool) -> None:
        """The witness, too, knows the entry before anything is released.

        Who wrote an earlier entry may have died before its last sync: then it is done here.
        """
        if not written:
            self._file.sync_folder()
        if not self._witness.advance(head):
            self._witness.sync_folder()


def _due(chain: Chain, names: list[bytes], marks: list[bytes]) -> list[int]:
    """The places of those who were not charged for this token before."""
    if not marks:
        return list(range(len(names)))
    first: dict[bytes, int] = {}
    for place, mark in enumerate(marks):
        if mark not in chain.marks:
            first.setdefault(mark, place)
    return list(first.values())


def _afford(
    chain: Chain, names: list[bytes], places: list[int], collection: str, units: int, allowed: int
) -> None:
    """Refuse a charge that is more than a subject has left."""
    times = Counter(names[place] for place in places)
    left = {
        name: min(
            chain.terms.budget - _spent(chain, name, None),
            allowed - _spent(chain, name, collection),
        )
        for name in times
    }
    short = tuple(place for place in places if times[names[place]] * units > left[names[place]])
    if short:
        least = min(left[names[place]] for place in short)
        who = "the subject has" if len(names) == 1 else f"{len(short)} of {len(names)} have"
        raise BudgetSpent(
            f"{epsilon_of(units):g} is asked for {collection!r}, and {who} not enough left "
            f"(the least: {epsilon_of(least):g}); nobody was charged",
            short,
        )


def _spent(chain: Chain, name: bytes, collection: str | None) -> int:
    if collection is None:
        return chain.spent.get(name, 0)
    return chain.collections.get(collection, {}).get(name, 0)


def _listed(subjects: Iterable[Subject]) -> list[Subject]:
    if isinstance(subjects, (str, bytes)):
        raise InvalidArgument("subjects", subjects, "several; charge one with charge()")
    return list(subjects)


def _files(path: FilePath, witness: FilePath | None) -> tuple[Database, Witness]:
    ledger = Database(path)
    other = Witness(f"{ledger.path}.witness" if witness is None else witness)
    ledger.require_apart(other, "ledger")
    return ledger, other
