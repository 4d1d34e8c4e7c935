"""Many answers, one by one: words on both sides of every edge decide what they should, exactly.

No sampling: a word is the last that falls below its threshold or the first that does not, the first
or the last that draws an index. Which bits get which is written in the binary digits of their
numbers, and the opposite, so that any two bits differ in some report: a bit that listens to the
word or the threshold of another one shows.
"""

from itertools import accumulate, pairwise

import pytest

import deniable as dn
from deniable.mechanisms.packed import has_bit
from deniable.randomness import SCALE, WORD_BYTES, ByteCoins

SIZES = (65, 300, 1000)


def coins(*words):
    return ByteCoins(b"".join(word.to_bytes(WORD_BYTES, "little") for word in words))


def reported(m, value, words):
    source = coins(*words)
    report = m.report(value, source)
    source.finish()
    return report


def edges(index, size):
    """The first and the last word that draw this index of so many."""
    first, after = -(-index * SCALE // size), -(-(index + 1) * SCALE // size)
    return first, after - 1


def codes(size):
    """Lists of booleans, one for each of ``size`` bits: the digits of their numbers, and not."""
    for digit in range((size - 1).bit_length()):
        yield [bool(v >> digit & 1) for v in range(size)]
        yield [not v >> digit & 1 for v in range(size)]


def below(threshold, wanted):
    """The word at the edge that is below the threshold, or is not."""
    return threshold - 1 if wanted else threshold


def values(m):
    return sorted({0, 64, m.domain.size // 2, m.domain.size - 1})


@pytest.mark.parametrize("size", SIZES)
def test_every_answer_is_drawn_by_its_own_words(size):
    """k-RR: each answer by the words of its place, and the own one if the second word says so."""
    m = dn.GRR(size, 1.0)
    for value in values(m):
        for index in range(size):
            for word in edges(index, size):
                assert reported(m, value, [word, m.keep]) == index
                assert reported(m, value, [word, m.keep - 1]) == value


@pytest.mark.parametrize("size", SIZES)
def test_every_answer_is_drawn_in_both_steps(size):
    m = dn.LGRR(size, 2.0)
    value = size - 1
    for index in range(size):
        first, last = edges(index, size)
        assert reported(m, value, [first, m.permanent_keep, first, m.keep - 1]) == index
        assert reported(m, value, [first, m.permanent_keep - 1, last, m.keep]) == index
        assert reported(m, value, [last, m.permanent_keep - 1, last, m.keep - 1]) == value


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["sue", "oue", "ue", "the"])
def test_every_bit_listens_to_its_own_word(name, size):
    m = dn.mechanism(name, size, 1.0)
    for value in values(m):
        for wanted in codes(size):
            words = [below(m.one if v == value else m.zero, wanted[v]) for v in range(size)]
            row = reported(m, value, words)
            assert [has_bit(row, v) for v in range(size)] == wanted


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["lsue", "losue", "loue", "lsoue", "basicrappor"])
def test_every_kept_and_every_reported_bit_listens_to_its_own_word(name, size):
    m = dn.mechanism(name, size, 1.0)
    for value in values(m)[-2:]:
        for kept in codes(size):
            first = [kept_word(m, v == value, kept[v]) for v in range(size)]
            wanted = [kept[v] ^ bool(v & 1) for v in range(size)]
            second = [below(m.one if kept[v] else m.zero, wanted[v]) for v in range(size)]
            row = m.memoise((), value, coins(*first))
            assert [has_bit(row, v) for v in range(size)] == kept
            row = reported(m, value, first + second)
            assert [has_bit(row, v) for v in range(size)] == wanted


def kept_word(m, own, wanted):
    """A word at the edge with which a bit is kept as 1, or as 0."""
    if isinstance(m, dn.BasicRAPPOR):  # the word says whether the bit is kept or flipped
        return below(m.permanent, own == wanted)
    return below(m.permanent_one if own else m.permanent_zero, wanted)


@pytest.mark.parametrize("size", SIZES)
def test_every_noisy_byte_listens_to_its_own_word(size):
    """Byte y is drawn by the words between two sums of weights; that of the value is mirrored."""
    m = dn.SHE(size, 1.0)
    bounds = list(pairwise((0, *accumulate(m.weights))))
    for value in values(m):
        for shift in (0, 1, 7):
            drawn = [(v * 31 + v // len(bounds) + shift) % len(bounds) for v in range(size)]
            for word in (lambda y: bounds[y][0], lambda y: bounds[y][1] - 1):
                row = list(reported(m, value, [word(y) for y in drawn]))
                assert row.pop(value) == m.last - drawn[value]
                assert row == drawn[:value] + drawn[value + 1 :]


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_every_other_answer_can_be_in_a_set_and_out_of_it(size):
    m = dn.SS(size, 1.0)
    for value in values(m):
        others = [v for v in range(size) if v != value]
        lowest = [0] * (m.omega - 1)
        for place, other in enumerate(others):
            for word in edges(place, size - 1):
                row = reported(m, value, [word, *lowest, m.keep])
                assert has_bit(row, other)
                assert not has_bit(row, value)
        row = reported(m, value, [0, *lowest, m.keep - 1])
        assert has_bit(row, value)
        assert not any(has_bit(row, v) for v in others[m.omega - 1 :])


@pytest.mark.parametrize("name", ["blh", "olh", "lblh", "lolh"])
def test_every_hash_function_and_every_cell_is_drawn(name):
    m = dn.mechanism(name, 1000, 2.0)
    ends = [0, 1, 1 << 12, m.modulus // 2, m.modulus - 1]
    steps = [m.permanent_keep, m.keep] if hasattr(m, "permanent_keep") else [m.keep]
    for a, b, c in [(x, y, z) for x in ends for y in ends for z in ends]:
        hashed = [edges(x, m.modulus)[x % 2] for x in (a, b, c)]
        for cell in range(m.g):
            for word in edges(cell, m.g):
                drawn = [x for keep in steps for x in (word, keep)]
                assert reported(m, 999, [*hashed, *drawn]) == (a, b, c, cell)


@pytest.mark.parametrize("name", ["cms", "hcms", "orr", "orappor", "rappor"])
def test_every_cohort_is_drawn_by_its_own_words(name):
    m = dn.mechanism(name, 1000, 1.0, cohorts=300)
    for cohort in range(300):
        for word in edges(cohort, 300):
            rest = [SCALE - 1] * (m.coin_words - 1)
            assert reported(m, 999, [word, *rest])[0] == cohort


@pytest.mark.parametrize("name", ["dbitflip", "dbitflippm"])
def test_every_question_is_asked_and_answered_by_its_own_word(name):
    m = dn.mechanism(name, 300, 1.0, w=3)
    for place in range(300):
        for word in edges(place, 300):
            for wanted in (True, False):
                told = [below(m.keep, wanted)] * 3
                asked, yes = reported(m, place, [word, 0, 0, *told])
                assert has_bit(asked, place)
                assert has_bit(yes, place) == wanted
