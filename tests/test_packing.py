"""What is kept of a submission is counted where it belongs: its round, and its questions."""

import numpy as np
import pytest

from collection_toys import packed, submission, survey
from deniable.errors import CorruptData
from deniable.service.packing import Packing

#: Past a byte, and the last that there can be.
ROUNDS = [1, 2, 127, 128, 255, 256, 257, 511, 512, 32768, 65534, 65535]


def check_rounds(packing, collection):
    rng = np.random.default_rng(6)
    sent = [submission(collection, rng, number) for number in ROUNDS]
    found = packing.count([packed(collection, one)[1] for one in sent])
    asked = {q.name: q.mechanism for q in collection.questions}
    assert set(found) == {(name, number) for name in asked for number in ROUNDS}
    for one in sent:
        for name, row in one.reports.items():
            counts, n = found[name, one.round]
            m = asked[name]
            data = np.frombuffer(row, dtype=np.uint8).view(m.dtype.base).reshape(1, *m.dtype.shape)
            assert n == 1
            assert counts.tolist() == m.count(data).tolist()


def test_every_round_is_counted_as_itself():
    collection = survey(rounds=65535)
    check_rounds(Packing(collection), collection)


def test_rounds_of_one_byte_are_caught(monkeypatch):
    pack, collection = Packing.pack, survey(rounds=65535)
    monkeypatch.setattr(Packing, "pack", lambda self, number, rows: pack(self, number & 255, rows))
    with pytest.raises((AssertionError, CorruptData)):  # there is no round 0
        check_rounds(Packing(collection), collection)


def test_every_drawn_question_is_counted_as_itself():
    collection, rng = survey("sampled"), np.random.default_rng(7)
    sent = [submission(collection, rng) for _ in range(60)]
    found = Packing(collection).count([packed(collection, one)[1] for one in sent])
    drawn = [name for one in sent for name in one.reports]
    assert {name: n for (name, _), (_, n) in found.items()} == {q: drawn.count(q) for q in drawn}
    assert len(found) == len(collection.questions)
