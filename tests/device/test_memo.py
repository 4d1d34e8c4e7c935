"""Memos: what is remembered never changes, and no budget starts unnoticed."""

import hashlib
import hmac
import json
import math
import os
import shutil
import sqlite3
import stat
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from scipy.stats import chi2

import deniable as dn
from deniable.answers import Text
from deniable.core.domain import Domain
from deniable.device.memo import MemoryMemo, recall_begun, recall_kept
from deniable.device.memo_file import FileMemo
from deniable.errors import (
    BudgetSpent,
    InvalidArgument,
    MemoLost,
    MismatchError,
    StoreUnavailable,
)
from deniable.mechanisms.two_step.memoised import MemoisedSupports
from deniable.privacy import exact_channel
from deniable.randomness import SCALE
from deniable.storage import database
from deniable.storage.box import Box
from memo_toys import COLLECTION, TELLTALE, Cells, Telltale, TwiceGRR, enrol, open_memo, record

SECRET = bytes(range(32))
REAL = [
    *(f(9, 2.0) for f in dn.mechanisms().values() if issubclass(f, MemoisedSupports)),
    dn.RAPPOR(Text(), 1.0),
    dn.LDRR(dn.Number(0, 8), 2.0),
]


# ---- the derivation of permanent answers


class Raw(Telltale):
    """Says which words it got."""

    begin_words = 3

    def begin(self, coins):
        return [coins.choice(SCALE) for _ in range(3)]

    def memoise(self, begun, key, coins):
        return [coins.choice(SCALE) for _ in range(2)]


def in_hex(words):
    return b"".join(word.to_bytes(8, "little") for word in words).hex()


def test_permanent_answers_are_these_bytes():
    """Pinned: another derivation would redraw every answer that was ever kept."""
    m = Raw(Domain(4))
    begun = recall_begun(m, SECRET)
    kept = {key: in_hex(recall_kept(m, SECRET, begun, key)) for key in (0, 1, 2**64 - 1)}
    assert in_hex(begun) == "322f2574f3d515e4721427a146d2f55a0ad2ade056e4aed2"
    assert kept == {
        0: "0632a2d11f8fb7d445755a07afb65a1c",
        1: "149144dc71a12e7e32c49208ba2c69f7",
        2**64 - 1: "851299ede7f2471e3898e265c779c526",
    }


@pytest.mark.parametrize("key", [0, 7, 2**63 + 5])
def test_the_derivation_is_the_one_in_the_documents(key):
    """HMAC-SHA-256 with a label, then AES-256-CTR from the block (key, 0), written out."""

    def stream(label, index, count):
        derived = hmac.new(SECRET, label, hashlib.sha256).digest()
        block = index.to_bytes(8, "big") + bytes(8)
        return Cipher(algorithms.AES(derived), modes.CTR(block)).encryptor().update(bytes(count))

    m = Raw(Domain(4))
    begun = recall_begun(m, SECRET)
    assert in_hex(begun) == stream(b"deniable memo begin", 0, 24).hex()
    kept = in_hex(recall_kept(m, SECRET, begun, key))
    assert kept == stream(b"deniable memo keep", key, 16).hex()


def test_a_family_that_draws_other_words_than_it_says_is_stopped():
    class Greedy(Telltale):
        memoise_words = 1

    class Sparing(Telltale):
        instant_words = 3

    with pytest.raises(RuntimeError, match="ran out"):
        MemoryMemo(Greedy(Domain(4)), "a").report(0)
    with pytest.raises(RuntimeError, match="were used"):
        MemoryMemo(Sparing(Domain(4)), "a").report(0)


# ---- what every memo does


@pytest.fixture(params=["memory", "file"])
def begin(request, tmp_path):
    def begun(mechanism, most=None):
        if request.param == "memory":
            return MemoryMemo(mechanism, "any", most)
        return FileMemo.enrol(tmp_path / "memo", mechanism, "any", most)

    return begun


def test_a_permanent_answer_stays(begin):
    memo = begin(Telltale(Domain(["a", "b", "c"])))
    first = {value: memo.report(value) for value in "abc"}
    assert all(memo.report(value) == first[value] for value in "abcabc")
    assert len({mark for mark, _, _ in first.values()}) == 1
    assert len({kept for *_, kept in first.values()}) == 3


def test_the_instantaneous_step_is_drawn_anew(begin):
    """Null hypothesis: a report of GRR with 3/4 among 1000 values equals the next one with
    probability below 0.6; 200 in a row do with probability below 1e-44."""
    memo = begin(TwiceGRR(Domain(1000)))
    assert len({memo.report(5) for _ in range(200)}) > 1


def test_the_budget_counts_keys_not_values(begin):
    memo = begin(Cells(Domain(9)))
    assert (memo.keys_used, memo.spent) == (0, 0.0)
    for value in range(9):
        memo.report(value)
    assert (memo.keys_used, memo.spent) == (3, 6.0)


def test_a_spent_budget_refuses_new_keys_only(begin):
    memo = begin(TELLTALE, most=2)
    first = memo.report(10)
    memo.report(11)
    with pytest.raises(BudgetSpent, match="2 permanent answers are in use"):
        memo.report(12)
    assert (memo.keys_used, memo.spent, memo.most) == (2, 4.0, 2)
    assert memo.report(10) == first


def test_keys_of_64_bits(begin):
    memo = begin(Telltale(Text()))
    reports = {memo.report(text) for text in ("one", "two", "one")}
    assert len(reports) == memo.keys_used == 2


def test_numpy_keys_are_kept_as_plain_ones(begin):
    class Whole(Telltale):
        def key(self, begun, value):
            return np.uint64(value)

    memo = begin(Whole(Domain(5)))
    assert memo.report(np.int64(3)) == memo.report(3)


@pytest.mark.parametrize(
    ("mechanism", "collection", "most", "name"),
    [
        ("oue", "a", None, "mechanism"),
        (TELLTALE, "", None, "collection"),
        (TELLTALE, 7, None, "collection"),
        (TELLTALE, "a", 0, "most"),
        (TELLTALE, "a", 2.0, "most"),
    ],
)
def test_what_a_memo_cannot_be_is_refused(tmp_path, mechanism, collection, most, name):
    for start in (
        lambda: MemoryMemo(mechanism, collection, most),
        lambda: FileMemo.enrol(tmp_path / "memo", mechanism, collection, most),
    ):
        with pytest.raises(InvalidArgument) as refusal:
            start()
        assert refusal.value.name == name
    assert list(tmp_path.iterdir()) == []


def test_wrong_answers_and_keys_are_refused_and_not_recorded(begin):
    class Wide(Telltale):
        def key(self, begun, value):
            return SCALE + value

    memo = begin(Wide(Domain(5)))
    for answer in (5, "a", None, 1.5):
        with pytest.raises(InvalidArgument, match="values"):
            memo.report(answer)
    with pytest.raises(InvalidArgument, match="key"):
        memo.report(0)
    assert memo.keys_used == 0


def test_a_simulation_is_reproducible():
    def reports(seed):
        memo = MemoryMemo(TwiceGRR(Domain(1000)), "any", rng=np.random.default_rng(seed))
        return [memo.report(value) for value in range(20)]

    assert reports(3) == reports(3) != reports(4)


@pytest.mark.parametrize("m", REAL, ids=str)
def test_real_mechanisms_are_remembered(begin, m):
    """What is kept is a function of secret and key; `spent` is what the guarantee says."""
    memo = begin(m, most=2)
    answers = ["one", "two"] if isinstance(m.domain, Text) else [0, 1]
    for _ in range(3):
        reports = [memo.report(answer) for answer in answers]
        assert m.tally(dn.Reports(m, m.pack(reports))).n == 2
    assert memo.keys_used <= 2
    assert memo.spent == m.permanent_guarantee.after(changes=memo.keys_used - 1)


@pytest.mark.slow
def test_reports_from_a_memo_follow_the_law_of_the_device():
    """Null hypothesis: pairs of reports of one memo have the enumerated law; chi-square, 1e-9."""
    m, rng, pairs = dn.LGRR(2, 2.0), np.random.default_rng(1), []
    for _ in range(4000):
        memo = MemoryMemo(m, "any", rng=rng)
        pairs.append((memo.report(0), memo.report(0)))

    def twice(value, coins):
        kept = m.memoise((), value, coins)
        return m.instant((), kept, coins), m.instant((), kept, coins)

    channel = exact_channel(twice, [0])
    found = np.array([pairs.count(output) for output in channel.outputs])
    expected = 4000 * np.array(channel.matrix[0], dtype=np.float64)
    assert chi2.sf(((found - expected) ** 2 / expected).sum(), found.size - 1) > 1e-9


def test_a_lost_memo_without_a_limit_may_have_spent_anything(tmp_path):
    """Any text has 2**64 keys: as good as infinitely many."""
    m = dn.RAPPOR(Text(), 1.0)
    FileMemo.enrol(tmp_path / "memo", m, "any")
    (tmp_path / "memo").unlink()
    assert FileMemo(tmp_path / "memo", m, "any", lost="charge").spent == math.inf


# ---- files


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memo"


@pytest.fixture
def witness(path):
    return path.with_name("memo.enrolled")


def test_a_memo_is_remembered(path):
    before = enrol(path, most=3).report(7)
    memo = open_memo(path)
    assert memo.report(7) == before
    assert (memo.keys_used, memo.most) == (1, 3)


def test_files_are_for_their_owner_only(path, witness):
    previous = os.umask(0)
    try:
        enrol(path).report(1)
    finally:
        os.umask(previous)
    for file in (path, witness):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(path.parent.iterdir()) == [path, witness]


def test_the_witness_knows_no_secret(path, witness):
    enrol(path, most=3).report(1)
    assert set(record(path)) - set(record(witness)) == {"secret", "keys"}
    assert record(witness)["number"] == 1


def test_a_respondent_enrols_once(path, witness):
    enrol(path)
    for remaining in (path, witness):
        with pytest.raises(InvalidArgument, match="enrols once"):
            enrol(path)
        remaining.unlink()
    enrol(path)


def test_a_stray_journal_stops_enrolment(path):
    """It would be played into the new file."""
    path.with_name("memo-journal").write_bytes(b"old pages")
    with pytest.raises(InvalidArgument) as refusal:
        enrol(path)
    assert refusal.value.value.endswith("memo-journal")


def test_without_any_trace_nothing_is_opened(path):
    for lost in ("refuse", "charge"):
        with pytest.raises(MemoLost, match="never enrolled here, or every trace is lost"):
            open_memo(path, lost)
    assert list(path.parent.iterdir()) == []


def spoil(how, path):
    if how == "missing":
        path.unlink()
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "truncated":
        path.write_bytes(path.read_bytes()[:4096])
    elif how == "foreign":
        path.write_bytes(b"something else\n" * 1000)
    else:  # a digit of the secret
        data = bytearray(path.read_bytes())
        place = data.index(b'"secret":"') + 12
        data[place] ^= 1
        path.write_bytes(data)


SPOILT = ["missing", "empty", "truncated", "foreign", "altered"]


@pytest.mark.parametrize("how", SPOILT)
def test_a_lost_memo_is_refused_or_charged(path, witness, how):
    memo = enrol(path, most=3)
    (mark, *_), left = memo.report(1), memo.report(2)
    spoil(how, path)
    for act in (lambda: memo.report(2), lambda: open_memo(path)):
        with pytest.raises(MemoLost, match="is missing" if how == "missing" else "is damaged"):
            act()
    again = open_memo(path, "charge")
    assert again.spent == 3 * 2.0
    assert again.report(2) != left
    assert again.report(2)[0] != mark
    assert (again.keys_used, again.most, again.spent) == (1, 3, 4 * 2.0)
    assert record(witness)["number"] == record(path)["number"] == 2
    aside = path.with_name("memo.lost-1")
    assert aside.exists() == (how != "missing")
    assert open_memo(path).report(2) == memo.report(2) == again.report(2)


@pytest.mark.parametrize(
    ("mechanism", "most", "in_all"),
    [
        (TELLTALE, 5, 10.0),
        (TELLTALE, None, 2000.0),
        (Cells(Domain(9)), None, 6.0),
        (Cells(Domain(9)), 10, 6.0),
        (Telltale(Text()), 5, 10.0),
        (Telltale(Text()), None, math.inf),
    ],
)
def test_a_lost_memo_costs_all_that_it_could_have(path, mechanism, most, in_all):
    FileMemo.enrol(path, mechanism, "any", most)
    for number in (1, 2):
        path.unlink()
        memo = FileMemo(path, mechanism, "any", lost="charge")
        assert memo.spent == number * in_all


@pytest.mark.parametrize("how", SPOILT[:-1])
def test_a_lost_witness_is_restored(path, witness, how):
    enrol(path, most=3)
    path.unlink()
    before = open_memo(path, "charge").report(1)
    spoil(how, witness)
    memo = open_memo(path)
    assert record(witness)["number"] == 2
    assert memo.report(1) == before
    path.unlink()
    with pytest.raises(MemoLost, match=r"says that memo 2 was begun.*lost='charge'"):
        open_memo(path)


@pytest.mark.parametrize("lost", ["refuse", "charge"])
def test_when_both_are_unreadable_nothing_starts(path, witness, lost):
    enrol(path)
    spoil("empty", path)
    spoil("foreign", witness)
    with pytest.raises(MemoLost, match="every trace is lost"):
        open_memo(path, lost)
    with pytest.raises(InvalidArgument):
        enrol(path)


def test_an_old_copy_of_an_earlier_memo_is_a_lost_memo(path, witness):
    memo = enrol(path, most=3)
    shutil.copy(path, path.with_name("backup"))
    path.unlink()
    memo = open_memo(path, "charge")
    shutil.copy(path.with_name("backup"), path)
    for act in (lambda: memo.report(2), lambda: open_memo(path)):
        with pytest.raises(MemoLost, match="is an old copy"):
            act()
    assert open_memo(path, "charge").spent == 2 * 6.0
    assert record(witness)["number"] == 3


def test_a_rollback_redraws_nothing(path):
    memo = enrol(path)
    shutil.copy(path, path.with_name("backup"))
    before = memo.report(4)
    shutil.copy(path.with_name("backup"), path)
    assert open_memo(path).report(4) == before


def test_an_old_witness_catches_up(path, witness):
    enrol(path, most=3)
    shutil.copy(witness, path.with_name("backup"))
    path.unlink()
    open_memo(path, "charge")
    shutil.copy(path.with_name("backup"), witness)
    assert open_memo(path).spent == 6.0
    assert record(witness)["number"] == 2


def test_the_journal_of_a_lost_memo_does_not_reach_the_next(path, witness):
    enrol(path, most=3)
    path.unlink()
    journal = path.with_name("memo-journal")
    journal.write_bytes(b"old pages")
    assert open_memo(path, "charge").spent == 6.0
    assert not journal.exists()
    assert path.with_name("memo.lost-1-journal").read_bytes() == b"old pages"


def test_the_witness_may_live_elsewhere(path, tmp_path):
    (tmp_path / "other").mkdir()
    place = {"witness": tmp_path / "other" / "seen"}
    enrol(path, **place)
    path.unlink()
    with pytest.raises(MemoLost, match="other/seen"):
        open_memo(path, **place)
    with pytest.raises(InvalidArgument) as refusal:
        enrol(path, **place)
    assert refusal.value.value == str(place["witness"])
    with pytest.raises(InvalidArgument, match="another file than the memo"):
        open_memo(path, witness=path)


@pytest.mark.parametrize("gone", [None, "memo", "memo.enrolled"])
def test_a_memo_is_bound_to_its_collection_and_mechanism(path, gone):
    enrol(path)
    if gone is not None:
        path.with_name(gone).unlink()
    names = sorted(path.parent.iterdir())
    for mechanism, collection, name in (
        (TELLTALE, "another", "collection"),
        (Telltale(Domain(999)), COLLECTION, "mechanism"),
        (TwiceGRR(Domain(1000)), COLLECTION, "mechanism"),
    ):
        with pytest.raises(MismatchError, match=f"another {name}"):
            FileMemo(path, mechanism, collection, lost="charge")
    assert sorted(path.parent.iterdir()) == names


def test_a_witness_is_no_memo(path, witness):
    enrol(path)
    with pytest.raises(MismatchError, match="not a memo"):
        open_memo(witness, witness=path)


@pytest.mark.parametrize("name", ["memo", "memo.enrolled"])
def test_another_format_is_refused_and_left_alone(path, name):
    enrol(path)
    file = path.with_name(name)
    with Box(file).held() as contents:
        contents.record = json.dumps({"format": 2, "news": []}).encode()
    before = file.read_bytes()
    with pytest.raises(MismatchError, match="format 2; this is format 1"):
        open_memo(path, "charge")
    assert file.read_bytes() == before


def test_other_ways_of_losing_are_unknown(path):
    enrol(path)
    with pytest.raises(InvalidArgument, match="'refuse' or 'charge'"):
        open_memo(path, "forgive")


def test_a_memo_is_not_reached_through_a_link(path):
    """Nobody who can plant a link chooses the file; a folder may be a link, as on macOS."""
    real = path.parent / "real"
    real.mkdir()
    path.symlink_to(real / "memo")
    with pytest.raises(InvalidArgument, match="not a symbolic link"):
        enrol(path)
    assert list(real.iterdir()) == []
    folder = path.parent / "linked"
    folder.symlink_to(real)
    before = enrol(folder / "memo").report(1)
    assert open_memo(real / "memo").report(1) == before


def test_a_memo_that_is_held_too_long_is_a_clear_error(path, monkeypatch):
    memo = enrol(path)
    monkeypatch.setattr(database, "PATIENCE", 0.05)
    with (
        Box(path).held(),
        pytest.raises(StoreUnavailable, match="no report was made: database is locked"),
    ):
        memo.report(1)
    assert memo.keys_used == 0


# ---- the order of things


def test_the_connection_in_use_syncs(path):
    enrol(path)
    with Box(path).connection() as connection:
        found = [
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "fullfsync")
        ]
    assert found == ["delete", 3, 1]


def test_the_key_is_committed_before_coins_are_drawn(path, monkeypatch):
    """Another connection sees it when the instantaneous step asks the kernel for coins."""
    memo = enrol(path)
    seen = []
    draw = os.urandom

    def looking(count):
        seen.append(record(path)["keys"])
        return draw(count)

    monkeypatch.setattr(os, "urandom", looking)
    memo.report(8)
    memo.report(9)
    assert seen == [[8], [8, 9]]


def test_threads_share_a_memo(path):
    memo = enrol(path, most=10)

    def ask(value):
        try:
            return memo.report(value)
        except BudgetSpent:
            return None

    with ThreadPoolExecutor(8) as pool:
        reports = {report for report in pool.map(ask, [*range(15)] * 4) if report}
    assert len(reports) == memo.keys_used == 10
    assert set(record(path)["keys"]) == {key for _, key, _ in reports}


# ---- any sequence of mishaps

FILES = st.sampled_from(["memo", "memo.enrolled"])
BUDGETS = st.sampled_from([None, 1, 3])
#: Anywhere in a file, or at its end, where the record is.
PLACES = st.floats(0, 1, exclude_max=True) | st.floats(0.96, 1, exclude_max=True)
REFUSALS = (MemoLost, StoreUnavailable, BudgetSpent)


class Mishaps(RuleBasedStateMachine):
    """A device in a world that deletes, garbles and restores its files.

    The model only knows the reports that left: the marks of the secrets they came from, and the
    keys of each. A secret is admitted if some file that can be read counts it. When no file that
    can be read counts all of them, every trace of one was destroyed: then nothing is promised, but
    that without any readable file nothing opens.
    """

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "memo"
        self.memo = None
        self.copies = {}
        self.forget()

    def forget(self):
        self.kept, self.most = {}, None
        self.destroyed = self.rolled_back = False

    def teardown(self):
        shutil.rmtree(self.folder)

    @property
    def marks(self):
        return {mark for mark, _ in self.kept}

    def admitted(self):
        found = [record(self.folder / name) for name in ("memo", "memo.enrolled")]
        return max((one["number"] for one in found if one), default=0)

    def tampered(self):
        self.destroyed |= self.admitted() < len(self.marks)

    @initialize(most=BUDGETS)
    def begin(self, most):
        self.enrol(most)
        self.report(0)
        for name in ("memo", "memo.enrolled"):
            self.back_up(name)

    @rule(most=BUDGETS)
    def enrol(self, most):
        traces = Box(self.path).traces() + Box(self.folder / "memo.enrolled").traces()
        try:
            self.memo = enrol(self.path, most)
        except InvalidArgument:
            assert traces
            return
        assert not traces
        # Whatever was there was deleted by hand: a new consent.
        self.copies = {}
        self.forget()
        self.most = most

    @rule(lost=st.sampled_from(["refuse", "charge"]))
    def open(self, lost):
        before = self.admitted()
        try:
            self.memo = open_memo(self.path, lost)
        except (MemoLost, StoreUnavailable):
            self.memo = None
            return
        assert before, "opened without any trace"
        assert self.admitted() - before in ((0, 1) if lost == "charge" else (0,))
        assert record(self.folder / "memo.enrolled")["number"] == record(self.path)["number"]
        self.report(0)

    @precondition(lambda self: self.memo)
    @rule(value=st.integers(0, 5))
    def report(self, value):
        try:
            mark, key, kept = self.memo.report(value)
        except REFUSALS:
            return
        assert self.kept.setdefault((mark, key), kept) == kept
        assert key in record(self.path)["keys"]

    @rule(name=FILES)
    def delete(self, name):
        (self.folder / name).unlink(missing_ok=True)
        self.tampered()

    @rule(found_again=st.booleans())
    def lose_and_go_on(self, found_again):
        self.delete("memo")
        self.open("charge")
        if found_again:
            self.restore("memo")
            self.open("charge")

    @rule()
    def clear(self):
        for file in self.folder.iterdir():
            file.unlink()
        self.tampered()

    @rule(name=FILES, part=st.integers(0, 7))
    def truncate(self, name, part):
        file = self.folder / name
        if file.exists():
            os.truncate(file, file.stat().st_size * part // 8)
        self.tampered()

    @rule(name=FILES, place=PLACES, change=st.integers(1, 255))
    def garble(self, name, place, change):
        file = self.folder / name
        data = bytearray(file.read_bytes() if file.exists() else b"")
        if data:
            data[int(place * len(data))] ^= change
            file.write_bytes(data)
        self.tampered()

    @rule(name=FILES)
    def back_up(self, name):
        if record(self.folder / name):
            self.copies[name] = (self.folder / name).read_bytes()

    @rule(name=FILES)
    def restore(self, name):
        if name in self.copies:
            (self.folder / name).write_bytes(self.copies[name])
            self.rolled_back |= name == "memo"
        self.tampered()

    @invariant()
    def every_budget_is_admitted(self):
        if not self.destroyed:
            assert len(self.marks) <= self.admitted()

    @invariant()
    def budgets_hold(self):
        """An old copy of a memo forgets keys, though it redraws nothing."""
        keys = [mark for mark, _ in self.kept]
        if self.most is not None and not self.rolled_back:
            assert all(keys.count(mark) <= self.most for mark in self.marks)
        if self.memo and not self.destroyed and not self.rolled_back:
            with suppress(*REFUSALS):
                assert self.memo.spent >= 2.0 * len(keys)


TestMishaps = Mishaps.TestCase
TestMishaps.pytestmark = pytest.mark.slow
TestMishaps.settings = settings(max_examples=30, stateful_step_count=25)


def test_a_record_that_sqlite_calls_healthy_is_still_checked(path, witness):
    enrol(path)
    for statement in ("DELETE FROM memo", "UPDATE memo SET record = 'text', seal = 7"):
        connection = sqlite3.connect(path)
        connection.execute(statement)
        connection.commit()
        connection.close()
        with pytest.raises(MemoLost, match="its checksum is wrong"):
            open_memo(path)
        open_memo(path, "charge")


def rewrite(path, **changes):
    """Edit a record by hand, and seal it as the code does."""
    found = json.dumps({**record(path), **changes}, sort_keys=True, separators=(",", ":")).encode()
    with closing(sqlite3.connect(path)) as connection:
        seal = hashlib.sha256(found).digest()
        connection.execute("UPDATE memo SET record = ?, seal = ?", (found, seal))
        connection.commit()


@pytest.mark.parametrize("most", [3, None])
def test_a_budget_raised_by_hand_is_refused(path, witness, most):
    memo = enrol(path, most=2)
    memo.report(1), memo.report(2)
    rewrite(path, most=most)
    before = path.read_bytes()
    with pytest.raises(MismatchError, match=rf"has most = {most}, its witness 2"):
        memo.report(3)
    for lost in ("refuse", "charge"):
        with pytest.raises(MismatchError, match="one of them was edited"):
            open_memo(path, lost)
    assert path.read_bytes() == before
    rewrite(path, most=2)
    rewrite(witness, most=most)
    with pytest.raises(MismatchError, match=rf"has most = 2, its witness {most}"):
        open_memo(path)


@pytest.mark.parametrize(
    "shared", [{"collection": "other"}, {"mechanism": "0" * 64}, {"format": 2}]
)
@pytest.mark.parametrize("file", ["memo", "witness"])
def test_other_terms_by_hand_are_refused(path, witness, file, shared):
    memo = enrol(path)
    rewrite(path if file == "memo" else witness, **shared)
    with pytest.raises(MismatchError):
        open_memo(path, "charge")
    if file == "memo":
        with pytest.raises(MismatchError):
            memo.report(1)
