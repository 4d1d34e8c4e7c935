"""What is kept of a submission is counted where it belongs: its round, and its questions."""

import numpy as np
import pytest

from collection_toys import by_region, packed, submission, survey
from deniable.errors import CorruptData
from deniable.service.encoding import Packing, TallyKey

#: Past a byte, and the last that there can be.
ROUNDS = [1, 2, 127, 128, 255, 256, 257, 511, 512, 32768, 65534, 65535]


def check_rounds(packing, collection):
    rng = np.random.default_rng(6)
    sent = [submission(collection, rng, number) for number in ROUNDS]
    found = dict(packing.count([packed(collection, one)[1] for one in sent]))
    asked = {report.name: report.mechanism for report in collection.reports}
    assert set(found) == {TallyKey(name, number) for name in asked for number in ROUNDS}
    for one in sent:
        for name, row in one.reports.items():
            tally = found[TallyKey(name, one.round)]
            m = asked[name]
            data = np.frombuffer(row, dtype=np.uint8).view(m.dtype.base).reshape(1, *m.dtype.shape)
            assert tally.n == 1
            assert tally.counts.tolist() == m.count(data).tolist()


def test_every_round_is_counted_as_itself():
    collection = survey(rounds=65535)
    check_rounds(Packing(collection), collection)


def test_rounds_of_one_byte_are_caught(monkeypatch):
    pack, collection = Packing.pack, survey(rounds=65535)
    monkeypatch.setattr(
        Packing, "pack", lambda self, number, *rest: pack(self, number & 255, *rest)
    )
    with pytest.raises((AssertionError, CorruptData)):  # there is no round 0
        check_rounds(Packing(collection), collection)


def test_every_drawn_question_is_counted_as_itself():
    collection, rng = survey("sampled"), np.random.default_rng(7)
    sent = [submission(collection, rng) for _ in range(60)]
    found = dict(Packing(collection).count([packed(collection, one)[1] for one in sent]))
    assert set(found) == {TallyKey("all")}
    drawn = [one.reports["all"][0] for one in sent]
    for place, question in enumerate(collection.questions):
        assert collection.asked(question.name).tally(found[TallyKey("all")]).n == drawn.count(place)


def test_every_stratum_is_counted_as_itself():
    collection, rng = by_region(), np.random.default_rng(8)
    strata = [0, 1, 5, 5, 3]
    sent = [submission(collection, rng, fields=collection.fields_of(s)) for s in strata]
    found = dict(Packing(collection).count([packed(collection, one)[1] for one in sent]))
    names = [report.name for report in collection.reports]
    assert {place: tally.n for place, tally in found.items()} == {
        TallyKey(name, 1, s): strata.count(s) for name in names for s in set(strata)
    }
