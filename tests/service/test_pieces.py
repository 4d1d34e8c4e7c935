"""Tallies in pieces: a commit rewrites those that it touches, and nothing is lost between them."""

import sqlite3

import numpy as np
import pytest

from collection_toys import mark_submission, marks, one_question, packed
from deniable.core.tally import Tally
from deniable.errors import CorruptData
from deniable.service.encoding import TallyKey
from deniable.service.store import open_store, pieces
from deniable.service.store.pieces import CountKey, Pieces

MANY = marks(3 * pieces.PIECE + 5)


def entry(mark):
    return packed(MANY, mark_submission(MANY, mark, f"{mark:032x}"))


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def address(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    return request.getfixturevalue("server").database()


def rows(store):
    with store._reading() as connection:
        asked = "SELECT piece, n, counts FROM tallies WHERE round > 0 ORDER BY piece"
        return {
            piece: (n, np.frombuffer(counts, "<i8").nonzero()[0].tolist(), len(counts) // 8)
            for piece, n, counts in store._run(connection, asked).fetchall()
        }


@pytest.mark.slow
def test_only_touched_pieces_are_there(address):
    store, size = open_store(address, MANY), pieces.PIECE
    store.add([entry(mark) for mark in (0, 1, 2 * size + 7)])
    assert rows(store) == {0: (3, [0, 1], size), 2: (0, [7], size)}
    store.add([entry(3 * size + 4)])
    assert rows(store) == {0: (4, [0, 1], size), 2: (0, [7], size), 3: (0, [4], 5)}
    (tally,) = store.tallies().values()
    assert tally.counts.nonzero()[0].tolist() == [0, 1, 2 * size + 7, 3 * size + 4]
    assert tally.n == store.tally("mark", 1).n == store.numbers()[TallyKey("mark")] == 4
    assert store.verify() == []
    store.purge("2999-01-01")
    assert store.purged() == store.numbers()
    assert store.verify() == []
    store.close()


def test_the_others_are_not_written(tmp_path):
    """The statements of a commit name the pieces of its own submissions."""
    store, size = open_store(str(tmp_path / "store.db"), MANY), pieces.PIECE
    store.add([entry(mark) for mark in (0, size, 2 * size, 3 * size)])
    said = []
    store._connected().set_trace_callback(said.append)
    store.add([entry(size + 3)])
    store.close()
    written = [text for text in said if "INTO tallies" in text]
    assert len(written) == 1
    for piece in range(4):
        assert (f"'mark', 1, 0, {piece}," in written[0]) == (piece in (0, 1))


def test_numbers_need_no_counts(tmp_path):
    file = str(tmp_path / "store.db")
    store = open_store(file, MANY)
    store.add([entry(5)])
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE tallies SET counts = 'nonsense' WHERE round > 0")
    connection.close()
    assert store.numbers() == {TallyKey("mark"): 1}
    with pytest.raises(CorruptData):
        store.tallies()
    with pytest.raises(CorruptData):
        store.add([entry(6)])
    store.close()


@pytest.mark.parametrize("cells", [1, 4, 5, 8, 9, 13])
def test_pieces_are_the_tally_cut(monkeypatch, cells):
    monkeypatch.setattr(pieces, "PIECE", 4)
    mechanism = one_question(max(cells, 2)).reports[0].mechanism
    counts = np.arange(mechanism.cells, dtype=np.int64)
    tally, found = Tally.of_counts(mechanism, counts, 100), Pieces()
    found.add(TallyKey("q"), tally)
    found.add(TallyKey("q"), tally)
    again = Tally(mechanism)
    for key, counted in found.items():
        pieces.paste(again, key.piece, counted)
    assert again == tally.merge(tally)
    assert [counted[1].size for counted in found.values()] == pieces.piece_sizes(mechanism.cells)


@pytest.mark.parametrize("piece", [-1, 1, 9])
def test_a_piece_of_another_tally_is_refused(piece):
    mechanism = one_question(5).reports[0].mechanism
    with pytest.raises(CorruptData):
        pieces.paste(Tally(mechanism), piece, (1, np.zeros(5, dtype=np.int64)))
    found = Pieces({CountKey("q", 1): (1, np.zeros(1, dtype=np.int64))})
    with pytest.raises(CorruptData):
        found.put(CountKey("q", 1), (1, np.zeros(5, dtype=np.int64)))
