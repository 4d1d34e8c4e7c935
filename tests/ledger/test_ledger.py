"""The ledger: never under-charges, only grows, and refuses what it cannot explain."""

import csv
import io
import json
import math
import os
import shutil
import sqlite3
import stat
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import deniable as dn
from deniable.cli import main
from deniable.errors import (
    BudgetSpent,
    CorruptData,
    InvalidArgument,
    MismatchError,
    StoreUnavailable,
)
from deniable.ledger import Ledger, chain
from deniable.ledger.summary import summary_rows
from deniable.ledger.terms import Terms
from deniable.ledger.units import micro_budget, micro_cost
from deniable.ledger.witness import Head
from deniable.mechanisms.questionnaire import Questionnaire
from deniable.privacy import Guarantee, exp_below, sequential
from deniable.storage import database

#: Computed with hashlib and hmac alone, as docs/ledger.md says.
PINNED = [
    "6fc3363f6bb129934bc01a2f47a2fcdf",
    "dedfc392c1de6d5704afd25875382cb4",
    "4a42568ca1a1d09571ec602a6369adbafbf22c9a70b1c14e10825eb079536b16",
    "9874d791c91c688063ebb9ef9eb865519ef2f4e71079b0de0aaca0e6818eeeb5",
]
PEOPLE = ["ann", "bob", "cem", "dora"]
COLLECTIONS = ["phones", "health"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger"


@pytest.fixture
def ledger(path):
    return Ledger.create(path, 4.0)


def beside(path):
    return path.with_name(f"{path.name}.witness")


# ---- integers


@pytest.mark.slow
@given(st.lists(st.fractions(min_value=1, max_value=10**9), min_size=1, max_size=20))
def test_integers_never_under_charge(ratios):
    """In exact numbers: the product of the ratios is at most e^(sum of the integer costs)."""
    costs = [micro_cost(Guarantee(ratio)) for ratio in ratios]
    assert exp_below(Fraction(sum(costs), 10**6)) >= math.prod(ratios) * (1 - Fraction(1, 10**40))
    assert sum(costs) >= micro_cost(sequential(map(Guarantee, ratios))) - 1
    assert all(
        cost <= 10**6 * math.log(ratio) + 2 for cost, ratio in zip(costs, ratios, strict=True)
    )


@given(st.lists(st.floats(1e-9, 1e6), min_size=1, max_size=20))
def test_floats_are_rounded_up_and_budgets_down(epsilons):
    exact = [Fraction(epsilon) for epsilon in epsilons]
    costs = [micro_cost(epsilon) for epsilon in epsilons]
    assert sum(map(Fraction, costs)) >= 10**6 * sum(exact)
    assert all(cost - 1 < 10**6 * x <= cost for cost, x in zip(costs, exact, strict=True))
    for epsilon, x in zip(epsilons, exact, strict=True):
        if x >= Fraction(1, 10**6):
            assert micro_budget("budget", epsilon) <= 10**6 * x


def test_what_things_cost():
    m = dn.LOSUE(4, 2.0, 0.5)
    assert micro_cost(dn.OUE(4, 1.0)) == micro_cost(dn.OUE(4, 1.0).guarantee) == 10**6
    assert micro_cost(m) == micro_cost(m.guarantee) == 2 * 10**6
    assert micro_cost(m.once) == 500_000
    rappor = dn.BasicRAPPOR(4, 1.0)
    assert micro_cost(rappor) == micro_cost(rappor.permanent_guarantee) > micro_cost(rappor.once)
    both = Questionnaire({"a": dn.GRR(3, 0.5), "b": dn.GRR(3, 0.25)})
    assert micro_cost(both) == 750_000
    assert micro_cost(Guarantee(Fraction(1))) == 0
    assert micro_cost(Fraction(1, 10)) == 100_000
    assert micro_cost(0.1) == 100_001  # the float is a little more than a tenth


def test_why_memoised_reports_are_not_charged_one_by_one():
    """Reports from one draw can cost more together than as many times the first."""
    g = dn.LGRR(100, 2.0, 0.1).guarantee
    assert max(g.after(t) / (t * g.once.epsilon) for t in (2, 5, 10)) > 3
    assert all(micro_cost(g) >= 10**6 * g.after(t) for t in (1, 2, 5, 10, None))


# ---- charges


def test_charges_are_deducted(ledger, path):
    assert ledger.charge("ann", "phones", 1.5) == 1
    ledger.charge("ann", "health", 1.0)
    assert (ledger.spent("ann"), ledger.left("ann")) == (2.5, 1.5)
    assert (ledger.spent("ann", "phones"), ledger.left("ann", "phones")) == (1.5, 1.5)
    assert (ledger.spent("bob"), ledger.left("bob", "new")) == (0.0, 4.0)
    with pytest.raises(BudgetSpent, match=r"2 is asked .*the subject has .* least: 1.5\); nobody"):
        ledger.charge("ann", "phones", 2.0)
    assert Ledger(path).left("ann") == 1.5
    assert ledger.charge("ann", "phones", 1.5) == 1
    assert ledger.left("ann") == 0


def test_all_or_nobody(ledger):
    ledger.charge("bob", "phones", 3.5)
    with pytest.raises(BudgetSpent, match="1 of 3 have not enough left") as refusal:
        ledger.charge_all(["ann", "bob", "cem"], "phones", 1.0)
    assert refusal.value.places == (1,)
    assert (ledger.spent("ann"), ledger.entries) == (0.0, 1)
    assert ledger.charge_all(["ann", "cem", "ann"], "phones", 1.0) == 3
    assert (ledger.spent("ann"), ledger.spent("cem")) == (2.0, 1.0)
    with pytest.raises(BudgetSpent):
        ledger.charge_all(["ann"] * 3, "phones", 1.0)
    assert ledger.charge_all([], "phones", 1.0) == 0


def test_a_token_is_charged_once(ledger, path):
    m = dn.LOSUE(4, 1.5, 0.5)
    assert [ledger.charge("ann", "phones", m, "key 1") for _ in range(3)] == [1, 0, 0]
    assert Ledger(path).charge("ann", "phones", m, b"key 1") == 0
    assert ledger.spent("ann") == 1.5
    assert ledger.charge_all(["ann", "bob", "bob"], "phones", m, "key 1") == 1
    assert ledger.charge("ann", "health", m, "key 1") == 1
    assert ledger.spent("ann") == 3.0
    with pytest.raises(BudgetSpent):
        ledger.charge("ann", "phones", m, "key 2")
    with pytest.raises(BudgetSpent):  # another cost is another charge: never free
        ledger.charge("ann", "phones", 1.6, "key 1")
    assert ledger.charge("ann", "phones", m, "key 1") == 0, "a spent budget still repeats"


def test_collections_that_were_agreed_upon(path):
    ledger = Ledger.create(path, 2.0, {"phones": 1.5, "health": 5.0})
    ledger.charge("ann", "phones", 1.0)
    assert (ledger.left("ann", "phones"), ledger.left("ann", "health")) == (0.5, 1.0)
    with pytest.raises(BudgetSpent, match=r"least: 0\.5"):
        ledger.charge("ann", "phones", 0.75)
    ledger.charge("ann", "health", 1.0)
    with pytest.raises(InvalidArgument, match="agreed upon: health, phones"):
        Ledger(path).charge("bob", "phone", 0.1)


def test_a_table_is_charged_before_it_is_randomised(ledger):
    m = dn.OUE(["yes", "no"], 1.5)
    assert len(ledger.privatize(m, ["yes", "no"], ["ann", "bob"], "table")) == 2
    assert ledger.spent("bob") == 1.5
    for values, subjects in ((["yes", "never"], PEOPLE[:2]), (["yes"], PEOPLE[:2])):
        with pytest.raises(InvalidArgument):
            ledger.privatize(m, values, subjects, "table")
    ledger.privatize(m, ["yes"], ["bob"], "table")
    with pytest.raises(BudgetSpent):
        ledger.privatize(m, ["no", "no"], ["ann", "bob"], "table")
    assert (ledger.spent("ann"), ledger.spent("bob")) == (1.5, 3.0)


@pytest.mark.slow
def test_many_subjects_at_once(ledger, path):
    subjects = [f"person {i}" for i in range(20_000)]
    assert ledger.charge_all(subjects, "phones", 1.0, "round 1") == 20_000
    assert Ledger(path).charge_all(subjects, "phones", 1.0, "round 1") == 0
    assert ledger.entries == 1
    [row] = ledger.summary("phones")
    assert (row["subjects"], row["to"], row["total"]) == (20_000, 1.0, 20_000.0)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: x.charge("", "a", 1.0), "subject"),
        (lambda x: x.charge(7, "a", 1.0), "subject"),
        (lambda x: x.charge("\ud800", "a", 1.0), "subject"),
        (lambda x: x.charge("ann", "", 1.0), "collection"),
        (lambda x: x.charge("ann", None, 1.0), "collection"),
        (lambda x: x.charge("ann", "a\x1b[2J", 1.0), "collection"),
        (lambda x: x.charge("ann", "a", 0.0), "cost"),
        (lambda x: x.charge("ann", "a", -1), "cost"),
        (lambda x: x.charge("ann", "a", math.inf), "cost"),
        (lambda x: x.charge("ann", "a", math.nan), "cost"),
        (lambda x: x.charge("ann", "a", "1"), "cost"),
        (lambda x: x.charge("ann", "a", True), "cost"),
        (lambda x: x.charge("ann", "a", 1.0, ""), "token"),
        (lambda x: x.charge("ann", "a", 1.0, 3), "token"),
        (lambda x: x.charge_all("ann", "a", 1.0), "subjects"),
        (lambda x: x.summary("a"), "collection"),
        (lambda x: x.summary(threshold=0), "threshold"),
    ],
)
def test_refusals(ledger, call, name):
    with pytest.raises(InvalidArgument) as refusal:
        call(ledger)
    assert refusal.value.name == name
    assert ledger.entries == 0


@pytest.mark.parametrize("budget", [0, -1, 1e-7, math.inf, "4", None])
def test_budgets_that_are_none(path, budget):
    with pytest.raises(InvalidArgument):
        Ledger.create(path, budget)
    with pytest.raises(InvalidArgument):
        Ledger.create(path, 4.0, {"a": budget})
    assert not path.exists()


def test_threads_share_one_budget(ledger):
    def want(i):
        with suppress(BudgetSpent):
            return ledger.charge(PEOPLE[i % 2], "any", 0.5)
        return 0

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(want, range(32))) == 16
    assert [ledger.left(person) for person in PEOPLE] == [0.0, 0.0, 4.0, 4.0]
    assert ledger.entries == ledger.witnessed == 16


# ---- the file


def test_the_file_names_nobody(ledger, path):
    ledger.charge_all(PEOPLE, "phones", 1.0, "the answer is yes")
    for file in (path, beside(path)):
        contents = file.read_bytes()
        assert not any(word in contents for word in (b"ann", b"dora", b"answer"))
        if os.name == "posix":
            assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_names_and_links_are_those_in_the_documents():
    """Pinned: other names would give everyone a new budget."""
    terms = Terms(bytes(range(32)), 4_000_000, None)
    ann = terms.pseudonym("ann")
    mark = terms.mark(ann, "phones", 250_000, b"key 1")
    entry = chain.Entry(1, "phones", 250_000, ann, mark)
    assert terms.record() == (
        b'{"budget":4000000,"collections":null,"format":1,'
        b'"secret":"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"}'
    )
    assert [part.hex() for part in (ann, mark, terms.link, entry.link(terms.link))] == PINNED


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET cost = 1",
        "DELETE FROM entries",
        "UPDATE terms SET record = x'00'",
        "DELETE FROM terms",
        "INSERT INTO terms SELECT record FROM terms",
    ],
)
def test_the_file_itself_refuses_to_forget(ledger, path, statement):
    ledger.charge("ann", "phones", 1.0)
    with (
        closing(sqlite3.connect(path)) as connection,
        pytest.raises(sqlite3.IntegrityError, match="only grows"),
    ):
        connection.execute(statement)


def forge(path, statement):
    """Change a ledger behind its triggers."""
    with closing(sqlite3.connect(path)) as connection:
        triggers = connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY rowid"
        ).fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement)
        for _, sql in triggers:
            connection.execute(sql)
        connection.commit()


FORGERIES = {
    "UPDATE entries SET cost = 1 WHERE number = 2": "chain breaks after entry 1",
    "UPDATE entries SET cost = -1 WHERE number = 2": "chain breaks after entry 1",
    "UPDATE entries SET collection = 'x' WHERE number = 3": "chain breaks after entry 2",
    "UPDATE entries SET subjects = x'00' WHERE number = 1": "chain breaks after entry 0",
    "UPDATE entries SET marks = 'text' WHERE number = 1": "chain breaks after entry 0",
    "DELETE FROM entries WHERE number = 2": "chain breaks after entry 1",
    "DELETE FROM entries WHERE number = 3": "truncated or an old copy",
    "DELETE FROM entries": "truncated or an old copy",
    "INSERT INTO entries VALUES (0, 'a', 1, x'', x'', x'')": "chain breaks after entry 0",
    "UPDATE terms SET record = replace(record, '4000000', '9000000')": "terms are damaged",
    "UPDATE terms SET record = CAST(replace(record, '4000000', '9000000') AS BLOB)": "chain breaks",
    "UPDATE terms SET record = CAST(record || ' ' AS BLOB)": "terms were altered",
    "UPDATE terms SET record = x'7b7d'": "terms are unreadable",
    "UPDATE terms SET record = CAST(replace(record, 't\":1', 't\":2') AS BLOB)": "another format",
    "DELETE FROM terms": "terms are damaged",
    "CREATE TABLE more (x)": "not a ledger",
}


@pytest.mark.parametrize("statement", FORGERIES)
def test_forgeries_are_found(ledger, path, statement):
    for person in PEOPLE[:3]:
        ledger.charge(person, "phones", 1.0, "token")
    forge(path, statement)
    with pytest.raises((CorruptData, MismatchError), match=FORGERIES[statement]) as refusal:
        Ledger(path)
    assert str(path) in str(refusal.value)


def test_numbers_have_no_gaps(ledger, path):
    """Not even with the right link."""
    with ledger._held() as (found, connection):
        found.write(chain.Entry(2, "phones", 1, bytes(16), b""), connection)
    with pytest.raises(CorruptData, match="chain breaks after entry 0"):
        Ledger(path)


def test_an_old_copy_is_refused(ledger, path, tmp_path):
    ledger.charge("ann", "phones", 1.0)
    shutil.copy(path, tmp_path / "old")
    ledger.charge("ann", "phones", 2.0)
    shutil.copy(tmp_path / "old", path)
    for use in (lambda: ledger.charge("bob", "phones", 1.0), lambda: Ledger(path)):
        with pytest.raises(CorruptData, match="old copy"):
            use()
    with pytest.raises(CorruptData, match="old copy"):
        Ledger.witness_anew(path)


def test_a_clone_that_went_its_own_way_is_refused(ledger, path, tmp_path):
    """Two copies share a witness: whoever charges second is found out."""
    ledger.charge("ann", "phones", 1.0)
    clone = tmp_path / "clone"
    shutil.copy(path, clone)
    other = Ledger(clone, beside(path))
    ledger.charge("ann", "phones", 1.0)
    with pytest.raises(CorruptData, match="old copy"):
        other.charge("ann", "phones", 1.0)
    clone.unlink()
    shutil.copy(path, clone)
    shutil.copy(beside(path), tmp_path / "w")
    Ledger(clone, tmp_path / "w").charge("bob", "phones", 1.0)
    ledger.charge("ann", "phones", 1.0)
    with pytest.raises(CorruptData, match="entry 3 is not the one"):
        Ledger(clone, beside(path))


@pytest.mark.slow
def test_every_byte_of_a_small_ledger(ledger, path):
    """Flipped one after the other: refused, or harmless. The terms and entries are all covered."""
    ledger.charge("ann", "phones", 1.0, "token")
    whole, refused = path.read_bytes(), 0
    places = [i for i, byte in enumerate(whole) if byte]
    for place in places:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x81]) + whole[place + 1 :])
        try:
            assert Ledger(path).spent("ann") == 1.0
        except (CorruptData, MismatchError, StoreUnavailable):
            refused += 1
        for trace in path.parent.glob("*-*"):
            trace.unlink()
    assert refused > 0.9 * len(places)


@pytest.mark.parametrize("how", ["missing", "empty", "damaged"])
def test_a_lost_witness_needs_a_word(ledger, path, how):
    ledger.charge("ann", "phones", 1.0)
    spoil(beside(path), how)
    for use in (lambda: Ledger(path), lambda: ledger.charge("ann", "phones", 1.0)):
        with pytest.raises(CorruptData, match=r"nobody can tell .* Ledger\.witness_anew"):
            use()
    anew = Ledger.witness_anew(path)
    assert (anew.spent("ann"), anew.witnessed) == (1.0, 1)
    assert ledger.charge("ann", "phones", 1.0) == 1


def spoil(file, how):
    if how == "missing":
        file.unlink()
    elif how == "empty":
        os.truncate(file, 0)
    else:
        file.write_bytes(file.read_bytes()[:-200] + bytes(200))


def test_a_new_ledger_without_its_witness_opens(ledger, path):
    """A crash during `create`; nothing can have been released."""
    beside(path).unlink()
    assert Ledger(path).witnessed == 0
    assert beside(path).exists()


def test_an_entry_that_the_witness_missed_counts(ledger, path, tmp_path, monkeypatch):
    """The crash between charge and release: spent, and the next charge brings the witness up."""
    monkeypatch.setattr(Ledger, "_settle", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        ledger.charge("ann", "phones", 3.0)
    monkeypatch.undo()
    again = Ledger(path)
    assert (again.spent("ann"), again.entries, again.witnessed) == (3.0, 1, 0)
    again.charge("bob", "phones", 1.0)
    assert again.witnessed == 2


def test_a_repeated_token_leaves_only_with_the_witness(ledger, path, monkeypatch):
    """Even if another process charged it, and died before the witness knew."""
    monkeypatch.setattr(Ledger, "_settle", lambda *_: None)
    ledger.charge("ann", "phones", 3.0, "key")
    monkeypatch.undo()
    assert Ledger(path).witnessed == 0
    assert ledger.charge("ann", "phones", 3.0, "key") == 0
    assert Ledger(path).witnessed == 1


def test_the_witness_never_goes_back(ledger):
    """A slower process settles an entry after another one settled the next."""
    ledger.charge("ann", "phones", 1.0)
    with ledger._held() as (found, _):
        first = Head.of(found, found.number, found.link)
    ledger.charge("ann", "phones", 1.0)
    assert not ledger._witness.advance(first)
    assert ledger.witnessed == 2


def test_foreign_files_are_refused(ledger, path, tmp_path):
    other = Ledger.create(tmp_path / "other", 4.0)
    other.charge("ann", "phones", 1.0)
    with pytest.raises(MismatchError, match="witness of another ledger"):
        Ledger(path, tmp_path / "other.witness")
    with pytest.raises(CorruptData, match="not a ledger"):
        Ledger(beside(path), path)
    with pytest.raises(CorruptData, match="damaged"):
        Ledger(path, path.with_name("other"))
    (tmp_path / "text").write_text("This is a text. " * 100)
    with pytest.raises(CorruptData, match="not a database"):
        Ledger(tmp_path / "text")
    with pytest.raises(FileNotFoundError, match="is missing"):
        Ledger(tmp_path / "nothing")
    shutil.copy(tmp_path / "other", path)
    with pytest.raises(CorruptData, match="another ledger took its place"):
        ledger.spent("ann")
    for witness in (path, f"{path}-journal"):
        with pytest.raises(InvalidArgument, match="another file than the ledger"):
            Ledger(path, witness)


def test_nothing_starts_twice(ledger, path):
    for gone in (None, path, beside(path)):
        if gone:
            kept = gone.read_bytes()
            gone.unlink()
        with pytest.raises(InvalidArgument, match="'path' must be free"):
            Ledger.create(path, 4.0)
        if gone:
            gone.write_bytes(kept)


def test_a_ledger_that_is_held_too_long_is_a_clear_error(ledger, path, monkeypatch):
    monkeypatch.setattr(database, "PATIENCE", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="no report was made: database is locked"):
            ledger.charge("ann", "phones", 1.0)
    assert ledger.spent("ann") == 0


# ---- any history, against a model


class Histories(RuleBasedStateMachine):
    """A ledger says what the model says. Of files that suffered it refuses all but the harmless."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "ledger"
        self.copies = []

    def teardown(self):
        shutil.rmtree(self.folder)

    @initialize(limited=st.booleans())
    def create(self, limited):
        self.limits = {"phones": 3_000_000} if limited else {}
        agreed = {"phones": 3.0, "health": 9.0} if limited else None
        self.ledger = Ledger.create(self.path, 4.0, agreed)
        self.spent, self.tokens, self.entries = Counter(), set(), 0

    def model_charge(self, people, collection, cost, token):
        """(number of those charged, or None if refused) as it must be."""
        due = people
        if token is not None:
            due = [
                p for p in dict.fromkeys(people) if (p, collection, cost, token) not in self.tokens
            ]
        after = self.spent.copy()
        for person in due:
            after[person, collection] += cost
        for person in due:
            in_all = sum(after[person, where] for where in COLLECTIONS)
            if in_all > 4_000_000 or after[person, collection] > self.limits.get(collection, 1e9):
                return None
        self.spent, self.entries = after, self.entries + bool(due)
        self.tokens |= {(p, collection, cost, token) for p in people if token is not None}
        return len(due)

    @rule(
        people=st.lists(st.sampled_from(PEOPLE), min_size=1, max_size=5),
        collection=st.sampled_from(COLLECTIONS),
        cost=st.sampled_from([1, 250_000, 333_333, 1_000_000, 2_500_000]),
        token=st.sampled_from([None, None, "a", "b"]),
    )
    def charge_all(self, people, collection, cost, token):
        expected = self.model_charge(people, collection, cost, token)
        try:
            found = self.ledger.charge_all(people, collection, Fraction(cost, 10**6), token)
        except BudgetSpent:
            found = None
        assert found == expected

    @rule(person=st.sampled_from(PEOPLE), cost=st.sampled_from([500_000, 1_500_000]))
    def charge(self, person, cost):
        self.charge_all([person], "phones", cost, None)

    @rule()
    def reopen(self):
        self.ledger = Ledger(self.path)

    @rule()
    def keep_a_copy(self):
        self.copies.append((self.entries, self.path.read_bytes()))

    def refused(self, words):
        for use in (lambda: Ledger(self.path), lambda: self.ledger.charge("eve", "phones", 1.0)):
            with pytest.raises((CorruptData, MismatchError), match=words):
                use()

    @rule(data=st.data())
    def put_an_old_copy_back(self, data):
        if not self.copies:
            return
        entries, contents = data.draw(st.sampled_from(self.copies))
        now = self.path.read_bytes()
        self.path.write_bytes(contents)
        if entries < self.entries:
            self.refused("old copy")
        else:
            Ledger(self.path)
        self.path.write_bytes(now)

    @rule(share=st.floats(0, 0.999))
    def truncate(self, share):
        """Found by whoever opens it, unless nothing was lost but zeros."""
        now = self.path.read_bytes()
        os.truncate(self.path, int(share * len(now)))
        with suppress(CorruptData):
            self.agree(Ledger(self.path))
            assert not any(now[int(share * len(now)) :])
        self.path.write_bytes(now)

    @rule(data=st.data(), file=st.sampled_from(["ledger", "ledger.witness"]))
    def flip_bits(self, data, file):
        """Somewhere in the pages; what is read in spite of it must be right."""
        file = self.folder / file
        now = file.read_bytes()
        place = data.draw(st.integers(0, len(now) - 1))
        flipped = now[place] ^ data.draw(st.integers(1, 255))
        file.write_bytes(now[:place] + bytes([flipped]) + now[place + 1 :])
        with suppress(CorruptData, MismatchError, StoreUnavailable):
            self.agree(Ledger(self.path))
        for trace in self.folder.glob("*-*"):
            trace.unlink()
        file.write_bytes(now)

    @rule()
    def delete_the_witness(self):
        witness = beside(self.path)
        now = witness.read_bytes()
        witness.unlink()
        if self.entries:
            self.refused("nobody can tell")
        else:
            Ledger(self.path)
        witness.write_bytes(now)

    def agree(self, ledger):
        rows = ledger.summary(threshold=1)
        in_all = sum(self.spent.values())
        assert (rows[0]["total"] if self.entries else 0) == in_all / 10**6
        with ledger._held() as (found, _):
            known = {p: found.spent.get(found.terms.pseudonym(p), 0) for p in PEOPLE}
            assert found.number == self.entries
        for person in PEOPLE:
            assert known[person] == sum(self.spent[person, where] for where in COLLECTIONS)
            assert known[person] <= 4_000_000

    @invariant()
    def model_and_ledger_agree(self):
        if hasattr(self, "ledger"):
            self.agree(self.ledger)


TestHistories = Histories.TestCase
TestHistories.pytestmark = pytest.mark.slow
TestHistories.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)


# ---- who may have spent what


class Some:
    """What the summary looks at."""

    def __init__(self, **collections):
        names = {who for spent in collections.values() for who in spent}
        self.collections = collections
        self.spent = {who: sum(c.get(who, 0) for c in collections.values()) for who in names}


@pytest.mark.slow
@given(
    st.dictionaries(st.integers(0, 99), st.integers(1, 9).map(lambda x: x * 10**5), max_size=80),
    st.integers(1, 9),
)
def test_bands_of_a_summary(spent, threshold):
    """Every band is large enough, bands do not overlap, and nobody is left out."""
    rows = summary_rows(Some(any=spent), "any", threshold)
    if len(spent) < threshold:
        assert [row["subjects"] for row in rows] == [f"<{threshold}"]
        assert rows[0]["total"] is rows[0]["to"] is None
        return
    whole, *bands = rows
    assert (whole["subjects"], whole["total"]) == (len(spent), sum(spent.values()) / 10**6)
    assert whole["to"] == max(spent.values(), default=0) / 10**6
    if bands:
        assert all(band["subjects"] >= threshold for band in bands)
        assert sum(band["subjects"] for band in bands) == len(spent)
        assert all(a["to"] < b["from"] for a, b in pairwise(bands))
        assert (bands[0]["from"], bands[-1]["to"]) == (whole["from"], whole["to"])
        assert len(bands) <= 20
        assert all(band["total"] is None for band in bands)


def test_totals_do_not_tell_those_of_a_few():
    """All less the shown collections would be the hidden one."""
    many = dict.fromkeys(range(9), 10**6)
    rows = summary_rows(Some(phones=many, health=many), None, 5)
    assert [row["total"] for row in rows] == [18.0, 9.0, 9.0]
    rows = summary_rows(Some(phones=many, health=many, small={1: 5}), None, 5)
    assert [row["total"] for row in rows if row["group"] == "all"] == [None, 9.0, 9.0, None]


# ---- the command


@pytest.fixture
def filled(ledger, path):
    people = [f"person {i}" for i in range(12)]
    ledger.charge_all(people, "phones", 1.0)
    ledger.charge_all(people[:6], "phones", 0.5)
    ledger.charge_all(people[:3], "health", 0.25)
    return path


@pytest.fixture
def run(monkeypatch, capsys):
    """What the command prints, to the stream of its exit code."""
    monkeypatch.setenv("COLUMNS", "100")

    def command(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["deniable", "ledger", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == code
        return capsys.readouterr()[bool(code)]

    return command


def test_ledgers_and_questionnaires_are_shown_in_words(ledger, path):
    assert repr(ledger) == f"<ledger {path}, 4 a subject>"
    agreed = Ledger.create(path.with_name("other"), 2.0, {"phones": 1.0, "health": 2.0})
    assert repr(agreed).endswith("/other, 2 a subject for health, phones>")
    asked = Questionnaire({"age": dn.GRR(2, 1.0)}, "sampled")
    assert repr(asked) == f"Questionnaire({{'age': {dn.GRR(2, 1.0)!r}}}, mode='sampled')"
    assert str(dn.GRR(2, 1.0).estimate(dn.GRR(2, 1.0).privatize([1]))).startswith(
        "bayes frequencies of 1 report, "
    )


def test_the_command_shows_a_summary(filled, run):
    every, one = (" ".join(run(filled, *by).split()) for by in ((), ("--collection", "phones")))
    assert "epsilon spent of 4 a subject; 3 entries; no name: all together" in every
    assert "epsilon spent on phones; all collections have 4 a subject" in one
    assert "all together" not in one
    rows = json.loads(run(filled, "-f", "json"))
    assert rows == Ledger(filled).summary()
    assert [(row["collection"], row["subjects"]) for row in rows] == [
        (None, "not told"),
        ("phones", 12), ("phones", 6), ("phones", 6), ("health", "<5"),
    ]  # fmt: skip
    [row] = csv.DictReader(io.StringIO(run(filled, "--collection", "health", "-f", "csv")))
    assert (row["collection"], row["subjects"], row["total"]) == ("health", "<5", "")
    assert "one that charged: phones, health" in run(filled, "--collection", "none", code=2)


def test_the_command_verifies(filled, run):
    text = run(filled, "--verify")
    assert "the chain of 3 entries is sound; the witness has seen 3" in text
    forge(filled, "UPDATE entries SET cost = 1 WHERE number = 2")
    error = run(filled, "--verify", code=2)
    assert "the chain breaks after entry 1" in error
    assert len(error.strip().splitlines()) == 1
    assert "is missing" in run(filled.with_name("none"), code=2)
