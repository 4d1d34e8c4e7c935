"""Coins and keystreams."""

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from deniable.errors import InvalidArgument
from deniable.randomness import (
    BLOCK_WORDS,
    SCALE,
    ByteCoins,
    Keystream,
    choice_weight,
    draw_key,
)


def test_coins_read_little_endian_words():
    coins = ByteCoins(bytes([1, 0, 0, 0, 0, 0, 0, 0]) + bytes([0] * 7 + [128]))
    assert not coins.below(1)
    assert coins.choice(2) == 1
    coins.finish()


def test_coins_that_run_out_or_are_left_over_raise():
    with pytest.raises(RuntimeError, match="ran out after 4 bytes"):
        ByteCoins(bytes(4)).below(1)
    with pytest.raises(RuntimeError, match="only 0 of 8"):
        ByteCoins(bytes(8)).finish()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000, 2**31 - 1])
def test_choice_weights_are_exact(size):
    indices = range(size) if size < 5000 else [0, 1, size // 2, size - 1]
    weights = {choice_weight(i, size) for i in indices}
    assert weights <= {SCALE // size, SCALE // size + 1}
    if size < 5000:
        assert sum(choice_weight(i, size) for i in indices) == SCALE


def reference(key, index, words):
    cipher = Cipher(algorithms.AES256(key), modes.CTR(index.to_bytes(8, "big") + bytes(8)))
    return np.frombuffer(cipher.encryptor().update(bytes(8 * words)), dtype="<u8")


def test_keystream_hands_out_every_word_once_and_in_order():
    key, taken = bytes(range(32)), []
    stream = Keystream(key, 3)
    for count in (5, BLOCK_WORDS, 1, 70_000 % BLOCK_WORDS, BLOCK_WORDS - 3):
        taken.append(stream.words(count).copy())
        lent = stream.lend(10)
        taken.append(lent[:7].copy())
        stream.use(7)
    found = np.concatenate(taken)
    np.testing.assert_array_equal(found, reference(key, 3, len(found)))


def test_streams_of_one_key_differ_and_seek_restarts():
    stream = Keystream(bytes(32), 0)
    first = stream.words(100).copy()
    stream.seek(1)
    assert not np.array_equal(first, stream.words(100))
    stream.seek(0)
    np.testing.assert_array_equal(first, stream.words(100))


def test_keys_come_from_the_kernel_or_the_given_generator():
    assert draw_key(None) != draw_key(None)
    keys = [draw_key(np.random.default_rng(1)) for _ in range(2)]
    assert keys[0] == keys[1]
    assert len(keys[0]) == 32
    for wrong in (7, "seed", np.random, np.random.RandomState(1), np.random.PCG64(1)):
        with pytest.raises(InvalidArgument, match="'rng' must be None"):
            draw_key(wrong)


def test_more_words_than_a_block_are_never_promised():
    stream = Keystream(bytes(32))
    with pytest.raises(ValueError, match="at most"):
        stream.words(BLOCK_WORDS + 1)
    stream.lend(10)
    with pytest.raises(RuntimeError, match="more than were lent"):
        stream.use(BLOCK_WORDS + 1)
