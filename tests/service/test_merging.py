"""Stores and tallies that are merged: every id counts once, or the merge is refused."""

from datetime import timedelta

import numpy as np
import pytest

import deniable as dn
from collection_toys import batch, packed, submission, survey, surveyed
from command import run
from deniable.errors import CorruptData, InvalidArgument, MismatchError
from deniable.service.access import new_token
from deniable.service.store import Outcome, open_store
from deniable.service.store.base import EPOCH, today
from deniable.service.store.merging import merge_stores

pytestmark = pytest.mark.slow
TOYS = survey()
RNG = np.random.default_rng(5)
ENTRIES = [packed(TOYS, submission(TOYS, RNG)) for _ in range(30)]
BATCHES = [batch(TOYS, 40, seed) for seed in (1, 2)]


def made(address, entries, batches=(), purged=False):
    """A store with some submissions, purged or not."""
    store = open_store(str(address), surveyed())
    store.add(entries)
    for one in batches:
        store.add_batch(bytes.fromhex(one.id), one.body, store.count_batch(one.body))
    if purged:
        store.purge("2999-01-01")
    store.close()
    return str(address)


def counts(store):
    return {place: (tally.counts.tolist(), tally.n) for place, tally in store.tallies().items()}


def merged(tmp_path, *sources):
    """What a merge makes, which must verify, and be what one collector would have counted."""
    target = tmp_path / f"all{len(list(tmp_path.iterdir()))}.db"
    found = merge_stores(sources, str(target))
    store = open_store(str(target))
    assert store.verify() == []
    return found, store


@pytest.fixture
def expected(tmp_path):
    (tmp_path / "one").mkdir()
    store = open_store(made(tmp_path / "one" / "store.db", ENTRIES, BATCHES))
    return counts(store)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def north(request, tmp_path):
    """Where the first store is made."""
    if request.param == "sqlite":
        return str(tmp_path / "north.db")
    return request.getfixturevalue("server").database()


def test_ids_in_both_stores_count_once(tmp_path, north, expected):
    made(north, ENTRIES[:20], BATCHES[:1])
    first = open_store(north)
    new_token(first, "ann")
    first.close()
    south = made(tmp_path / "south.db", ENTRIES[12:], BATCHES)
    found, store = merged(tmp_path, north, south)
    assert found == (32, 9)
    assert counts(store) == expected
    assert store.tokens() == {}
    assert store.texts.document == surveyed().texts.document
    assert store.add(ENTRIES) == [Outcome.known] * 30
    assert open_store(str(store.path), surveyed()).collection.digest == TOYS.digest


@pytest.mark.parametrize("order", [1, -1])
def test_a_report_that_was_purged_in_one_store_counts_there(tmp_path, expected, order):
    north = made(tmp_path / "north.db", ENTRIES[:20], BATCHES, purged=True)
    south = made(tmp_path / "south.db", ENTRIES[12:], BATCHES[1:])
    found, store = merged(tmp_path, *[north, south][::order])
    assert found == (32, 9)
    assert counts(store) == expected
    assert sum(store.purged().values()) == 4 * 100
    assert store.purged_before() == EPOCH + timedelta(days=today() + 1)
    assert sum(map(len, store.singles())) == 10


def test_a_report_that_was_purged_in_two_stores_is_refused(tmp_path):
    north = made(tmp_path / "north.db", ENTRIES[:20], purged=True)
    apart = made(tmp_path / "apart.db", ENTRIES[20:], purged=True)
    south = made(tmp_path / "south.db", ENTRIES[19:], purged=True)
    _, store = merged(tmp_path, north, apart)
    assert store.numbers() == store.purged()
    for sources in (
        (north, south),
        (north, north),
        (made(tmp_path / "x.db", ENTRIES), north, south),
    ):
        with pytest.raises(MismatchError, match="both purged its report"):
            merge_stores(sources, str(tmp_path / "all.db"))
    assert not list(tmp_path.glob("all.db*")), "it appears complete or not at all"


def test_one_id_with_two_reports_is_refused(tmp_path):
    other = next(body for _, body in ENTRIES if body != ENTRIES[0][1])
    north = made(tmp_path / "north.db", ENTRIES[:20])
    south = made(tmp_path / "south.db", [(ENTRIES[0][0], other)])
    told = run("merge", north, south, "-o", tmp_path / "all.db", code=2).stderr
    assert f"the id {ENTRIES[0][0].hex()}, with different reports" in told
    assert not list(tmp_path.glob("all.db*"))


def test_other_collections_damage_and_files_that_exist_are_refused(tmp_path):
    north = made(tmp_path / "north.db", ENTRIES[:20])
    rounds = str(tmp_path / "rounds.db")
    open_store(rounds, survey(rounds=2)).close()
    with pytest.raises(MismatchError, match="different collections"):
        merge_stores([north, rounds], str(tmp_path / "all.db"))
    south = made(tmp_path / "south.db", ENTRIES[20:])
    with pytest.raises(InvalidArgument, match="does not exist yet"):
        merge_stores([north, south], south)
    store = open_store(south)
    with store._transaction() as connection:
        connection.execute("UPDATE submissions SET day = day + 1")
    store.close()
    with pytest.raises(CorruptData, match=r"south\.db is damaged: submissions"):
        merge_stores([north, south], str(tmp_path / "all.db"))


# ---- tallies

GRR = dn.GRR(["a", "b", "c"], epsilon=1.0)


def tally(path, n, seed, ids=None):
    rng = np.random.default_rng(seed)
    reports = GRR.privatize(["a"] * n, rng=rng)
    if ids is not None:
        reports = dn.Reports(GRR, reports.data, ids)
    made = GRR.tally(reports)
    path.write_bytes(made.to_bytes())
    return made


def test_tallies_are_merged_into_a_new_file(tmp_path):
    one, other = tally(tmp_path / "a.tally", 50, 1), tally(tmp_path / "b.tally", 70, 2)
    files = [tmp_path / "a.tally", tmp_path / "b.tally"]
    done = run("merge", *files, "-o", tmp_path / "c.tally")
    assert dn.Tally.from_bytes((tmp_path / "c.tally").read_bytes()) == one.merge(other)
    assert "c.tally: 120 reports" in done.stdout.replace("\n", "")
    assert "names neither files nor ids" in done.stderr
    assert "does not exist yet" in run("merge", *files, "-o", files[0], code=2).stderr


def test_tallies_that_share_ids_or_files_are_refused(tmp_path):
    ids = np.random.default_rng(3).integers(0, 256, (50, 16), dtype=np.uint8)
    files = [tmp_path / name for name in ("a.tally", "b.tally", "c.tally")]
    tally(files[0], 50, 1, ids)
    tally(files[1], 50, 2, ids[::-1])
    told = run("merge", *files[:2], "-o", files[2], code=2).stderr
    assert "the same ids" in told
    tally(files[1], 50, 2, np.roll(ids, 1, axis=1))
    told = run("merge", *files[:2], "-o", tmp_path / "d.tally").stderr
    assert told.count("names no files: nothing shows if others count some of its reports") == 2
    for file, seed in zip(files, (1, 2), strict=False):
        made = tally(file, 50, seed)
        made.sources = frozenset(["0" * 32, f"{seed:032x}"])
        file.write_bytes(made.to_bytes())
    told = run("merge", *files[:2], "-o", files[2], code=2).stderr
    assert "1 file was counted before" in told
    assert not files[2].exists()


def test_a_tally_and_a_store_are_not_merged(tmp_path):
    tally(tmp_path / "a.tally", 50, 1)
    north = made(tmp_path / "north.db", ENTRIES[:2])
    told = run("merge", tmp_path / "a.tally", north, "-o", tmp_path / "c", code=2).stderr
    assert "all stores, or all tallies" in told
    assert "two or more" in run("merge", north, "-o", tmp_path / "c", code=2).stderr
