"""A key of a memo is 64 bits: each of them is counted, kept, and decides about the answer.

Keys are values, cells, or the codes of texts. Two keys that differ in any bit are two permanent
answers, each of which costs.
"""

from itertools import combinations, pairwise

import pytest

import deniable as dn
from deniable.answers import Text
from deniable.device.memo import Memory, MemoryMemo, recall_begun, recall_kept
from deniable.errors import BudgetSpent
from deniable.mechanisms import RAPPOR
from deniable.randomness import Keystream
from memo_toys import Telltale
from memo_toys import record as memo_record

#: Zero, each bit alone, all bits, and both ends of a byte, of two, and of four.
KEYS = sorted({0, (1 << 64) - 1, *(1 << bit for bit in range(64)), 0xFF, 0xFFFF, 0xFFFFFFFF})


class Spoken(Telltale):
    """A text is its own key, written in digits."""

    def key(self, begun, value):
        return self.numbers[value]


def spoken():
    m = Spoken(Text())
    texts = [str(key) for key in KEYS]
    codes = m.domain.encode(texts).tolist()
    Spoken.numbers = dict(zip(codes, KEYS, strict=True))
    return m, texts


def memos(tmp_path, m, most):
    return [
        MemoryMemo(m, "phones", most=most),
        dn.FileMemo.enrol(tmp_path / f"memo {most}", m, "phones", most=most),
    ]


def check_counted(tmp_path):
    m, texts = spoken()
    for memo in memos(tmp_path, m, len(KEYS)):
        reports = [memo.report(text) for text in texts]
        assert [key for _, key, _ in reports] == KEYS
        assert len({kept for *_, kept in reports}) == len(KEYS)
        assert memo.keys_used == len(KEYS)
        assert memo.spent == len(KEYS) * m.permanent_guarantee.epsilon
        assert [memo.report(text) for text in texts] == reports
        assert memo.keys_used == len(KEYS)
    assert memo_record(tmp_path / f"memo {len(KEYS)}")["keys"] == KEYS


def check_budget(tmp_path):
    """Whoever has used one key has none left for another, however alike the two are."""
    m, texts = spoken()
    for one, other in (*pairwise(texts), *((texts[0], text) for text in texts[1:])):
        memo = MemoryMemo(m, "phones", most=1)
        memo.report(one)
        with pytest.raises(BudgetSpent):
            memo.report(other)
        assert memo.keys_used == 1


def check_recalled(tmp_path):
    """Permanent answers are drawn from streams of their own.

    Two rows of 128 bits from the same coins differ in the cells of their keys only; from other
    coins in 8 bits or fewer with a probability below 1e-20.
    """
    m, secret = RAPPOR(Text(), 1.0, width=128), bytes(range(32))
    begun = recall_begun(m, secret)
    rows = [recall_kept(m, secret, begun, key) for key in KEYS]
    others = (bytes([*secret[:i], secret[i] ^ 1, *secret[i + 1 :]]) for i in range(32))
    rows += [recall_kept(m, other, begun, 0) for other in others]
    for one, other in combinations([int.from_bytes(row, "big") for row in rows], 2):
        assert (one ^ other).bit_count() > 8


LAWS = [check_counted, check_budget, check_recalled]


@pytest.mark.parametrize("law", LAWS)
def test_keys(tmp_path, law):
    law(tmp_path)


@pytest.mark.parametrize("bits", [8, 16, 32, 63])
def test_keys_that_are_counted_by_fewer_bits_are_caught(monkeypatch, tmp_path, bits):
    use = Memory.use
    monkeypatch.setattr(Memory, "use", lambda self, key: use(self, key % (1 << bits)))
    for law in (check_counted, check_budget):
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            law(tmp_path)


@pytest.mark.parametrize("bits", [8, 16, 32, 63])
def test_streams_of_fewer_bits_are_caught(monkeypatch, tmp_path, bits):
    seek = Keystream.seek
    monkeypatch.setattr(Keystream, "seek", lambda self, index: seek(self, index % (1 << bits)))
    for law in (check_counted, check_recalled):
        with pytest.raises(AssertionError):
            law(tmp_path)
