"""What engines promise: each piece once, also after an interruption; planted bugs break that."""

import pickle

import pytest

import deniable as dn
from deniable.core.tally import Tally
from deniable.engines import Engine, LocalEngine, Partial, tally_files, tallying
from deniable.errors import CorruptData, InvalidArgument, MismatchError
from lakes import cut, some

M = dn.GRR(4, 1.0)
REPORTS = some(M, 600, ids=True)


@pytest.fixture
def lake(tmp_path):
    cut(REPORTS, tmp_path / "lake", *[50] * 11)
    return tmp_path / "lake"


@pytest.fixture
def bare(tmp_path):
    """Without ids, nothing else would show a report that counts twice."""
    cut(some(M, 600), tmp_path / "bare", *[50] * 11)
    return tmp_path / "bare"


class OneByOne(Engine):
    """One result per piece, in an order that no one would expect; planted bugs change it."""

    def results(self, job, pieces):
        found = [Partial(frozenset([i]), job.read(piece)) for i, piece in pieces]
        yield from self.changed(found[1::2] + found[::2], job)

    def changed(self, found, job):
        return found


class Twice(OneByOne):
    """Returns a piece again, as a task that was retried would."""

    def changed(self, found, job):
        return [*found, found[3]]


class TwiceInside(OneByOne):
    """Merges a retried piece with others before it returns them."""

    def changed(self, found, job):
        pieces = found[0].pieces | found[1].pieces
        return [Partial(pieces, job.merge(found[0].value, found[1].value)), *found[1:]]


class Losing(OneByOne):
    """Loses a piece."""

    def changed(self, found, job):
        return found[1:]


class Strange(OneByOne):
    """Returns a piece that nobody asked for."""

    def changed(self, found, job):
        return [*found, Partial(frozenset([99]), found[0].value)]


def test_the_order_of_results_does_not_matter(lake):
    found = tally_files([lake], engine=OneByOne())
    assert found == tally_files([lake], engine=LocalEngine(2))


def refuses(engine, told, lake):
    with pytest.raises(CorruptData, match=told):
        tally_files([lake], engine=engine())


@pytest.mark.parametrize(
    ("engine", "told"),
    [
        (Twice, "returned piece . of a job more than once"),
        (TwiceInside, "returned piece . of a job more than once"),
        (Losing, "returned 11 of the 12 pieces"),
        (Strange, "returned 13 of the 12 pieces"),
    ],
)
def test_an_engine_that_counts_a_piece_twice_or_not_at_all_is_refused(engine, told, bare):
    refuses(engine, told, bare)


@pytest.mark.parametrize("engine", [Twice, TwiceInside])
def test_a_merge_that_counts_a_retried_piece_twice_is_found(engine, bare, monkeypatch):
    """Planted: results merge whatever pieces they are made of."""

    def careless(self, other, job):
        return Partial(self.pieces | other.pieces, job.merge(self.value, other.value))

    monkeypatch.setattr(Partial, "merge", careless)
    assert tally_files([bare], engine=engine())[()].n == 650
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        refuses(engine, "more than once", bare)


def counts_no_file_twice(tally):
    with pytest.raises(MismatchError, match="their reports would count twice"):
        tally.merge(tally)


def test_a_merge_that_ignores_sources_is_found(lake, monkeypatch):
    """Planted: tallies merge whatever files they were counted from."""
    tally = tally_files([lake])[()]
    counts_no_file_twice(tally)

    def careless(self, other):
        both = Tally(self.mechanism)
        both._absorb(self.counts + other.counts, self.n + other.n, 0, 0)
        return both

    monkeypatch.setattr(Tally, "merge", careless)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        counts_no_file_twice(tally)


class Interrupted(Exception):
    """As if somebody had pressed Ctrl-C."""


class Stopping(LocalEngine):
    """Is interrupted after some results; notes which pieces it was asked for."""

    def __init__(self, after):
        super().__init__(1)
        self.after, self.asked = after, []

    def results(self, job, pieces):
        for number, (i, piece) in enumerate(pieces):
            if number == self.after:
                raise Interrupted
            self.asked.append(i)
            yield Partial(frozenset([i]), job.read(piece))


def stop(lake, notes, after=5, **choices):
    """Some pieces are counted, and then somebody stops the work."""
    cut(some(M, 600), lake, *[50] * 11)
    with pytest.raises(Interrupted):
        tally_files([lake], engine=Stopping(after), resume=notes, **choices)


@pytest.mark.parametrize("by", [(), ("week",)])
def test_work_goes_on_where_it_ended(by, tmp_path):
    lake, notes = tmp_path / "week=1", tmp_path / "notes"
    stop(lake, notes, by=by)
    expected = tally_files([lake], by=by)
    again = Stopping(3)
    with pytest.raises(Interrupted):
        tally_files([lake], engine=again, resume=notes, by=by)
    assert again.asked == [5, 6, 7]
    last = Stopping(99)
    assert tally_files([lake], engine=last, resume=notes, by=by) == expected
    assert last.asked == [8, 9, 10, 11]
    assert not notes.exists()


def test_work_that_was_stopped_before_anything_is_kept(lake, tmp_path):
    notes = tmp_path / "notes"
    stop(lake, notes, 5)
    kept = notes.read_bytes()
    with pytest.raises(Interrupted):
        tally_files([lake], engine=Stopping(0), resume=notes)
    assert notes.read_bytes() == kept


def test_notes_are_written_while_the_work_goes_on(lake, tmp_path, monkeypatch):
    """What was not killed by an exception, but by the system, goes on as well."""
    monkeypatch.setattr(tallying, "PACE", 0.0)
    cut(some(M, 600), lake, *[50] * 11)
    notes, seen = tmp_path / "notes", []
    tally_files(
        [lake],
        engine=OneByOne(),
        resume=notes,
        progress=lambda *step: seen.append(notes.read_bytes()),
    )
    last = tmp_path / "last"
    last.write_bytes(seen[0])
    again = Stopping(99)
    assert tally_files([lake], engine=again, resume=last) == tally_files([lake])
    assert len(again.asked) == 11


def test_notes_of_other_files_or_options_are_refused(lake, tmp_path):
    notes = tmp_path / "notes"
    stop(lake, notes)
    whole = notes.read_bytes()

    def refused(told, *paths, **choices):
        with pytest.raises(CorruptData, match=told):
            tally_files(list(paths or [lake]), resume=notes, **choices)
        assert notes.read_bytes() == whole

    (tmp_path / "week=1").mkdir()
    cut(some(M, 50, seed=3), tmp_path / "week=1")
    others = "belongs to other files or options"
    refused(others, tmp_path / "week=1")
    refused(others, lake, tmp_path / "week=1")
    refused(others, lake / "part-003.parquet")
    part = lake / "part-002.parquet"
    before = part.read_bytes()
    cut(some(M, 50, seed=4), tmp_path / "new")
    part.write_bytes((tmp_path / "new" / "part-000.parquet").read_bytes())
    refused(others)
    part.write_bytes(before)
    for damage in (whole[:-1], whole[:50] + b"x" + whole[51:], b"something else"):
        notes.write_bytes(damage)
        with pytest.raises(CorruptData, match="file of unfinished work"):
            tally_files([lake], resume=notes)
    notes.write_bytes(whole)
    assert tally_files([lake], resume=notes) == tally_files([lake])


def test_a_place_for_the_notes_is_needed_before_the_work(lake, tmp_path):
    with pytest.raises(InvalidArgument, match="'resume' must be in a folder that exists"):
        tally_files([lake], engine=Stopping(0), resume=tmp_path / "no" / "notes")


def test_what_travels_can_be_pickled(lake):
    seen = []

    class Travelling(LocalEngine):
        def results(self, job, pieces):
            job = pickle.loads(pickle.dumps(job))
            for found in super().results(job, pickle.loads(pickle.dumps(pieces))):
                seen.append(pickle.loads(pickle.dumps(found)))
                yield seen[-1]

    assert tally_files([lake], engine=Travelling(1)) == tally_files([lake])
    assert seen


def test_the_first_error_ends_the_work(lake):
    (lake / "part-001.parquet").write_bytes(b"damaged")
    with pytest.raises(CorruptData, match=r"part-001\.parquet"):
        tally_files([lake], engine=LocalEngine(2))
