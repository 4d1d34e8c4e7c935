"""Coins and keystreams."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

import deniable as dn
from deniable import randomness
from deniable.core.mechanism import CHUNK
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


# ---- no two places of a column share coins

KEY = bytes(range(32))
#: Every stream that a column of up to 38 million reports reads, and those around every bit.
INDICES = sorted({*range(300), *(2**bit + d for bit in range(9, 64) for d in (-1, 0, 1))})


def counters(stream_bytes):
    """The counters whose encryption these bytes are: AES-256, block by block, backwards."""
    plain = Cipher(algorithms.AES256(KEY), modes.ECB()).decryptor().update(stream_bytes)
    return [int.from_bytes(plain[i : i + 16], "big") for i in range(0, len(plain), 16)]


def check_streams_never_meet():
    """Exact: every stream has 2**64 blocks of its own, which is more than anybody reads."""
    stream, starts = Keystream(KEY), set()
    for index in INDICES:
        stream.seek(index)
        first, second = counters(stream.bytes(32))
        assert second == first + 1
        assert first % SCALE == 0
        starts.add(first)
    assert len(starts) == len(INDICES)


def all_different(data):
    """Whether no two blocks of 16 bytes are alike, by their first halves.

    Of the 2 million that are looked at most, independent ones are with probability 1e-7.
    """
    halves = np.sort(np.frombuffer(data, dtype="<u8")[::2])
    return not (halves[1:] == halves[:-1]).any()


def check_no_block_comes_twice():
    """2 MiB of each of 12 streams, read in all ways, have no block in common."""
    stream, found = Keystream(KEY), []
    for index in range(12):
        stream.seek(index)
        found.append(stream.words(BLOCK_WORDS).tobytes())
        lent = stream.lend(1000)[:998].tobytes()
        stream.use(998)
        found.append(lent + stream.words(BLOCK_WORDS - 1000).tobytes())
        found.append(stream.words(2).tobytes() + stream.bytes(1 << 20))
    assert all_different(b"".join(found))


def check_streams_of_a_column():
    """Every chunk of a column reads a stream that no other reads, whatever the threads."""

    class Probe(dn.GRR):
        name = "probe"

        def fill(self, values, out, keystream):
            seen.append(keystream.bytes(1 << 12))

    seen, chunks = [], 300
    for threads in (1, 2, 5):
        seen.clear()
        Probe(3, 1.0).randomise(np.zeros(chunks * CHUNK, dtype=np.uint8), KEY, threads)
        assert len(seen) == chunks
        assert all_different(b"".join(seen))


STREAM_LAWS = [check_streams_never_meet, check_no_block_comes_twice, check_streams_of_a_column]


@pytest.mark.parametrize("law", STREAM_LAWS)
def test_streams(law):
    law()


def plant(monkeypatch, place):
    """Streams whose index is chosen by ``place``, or whose first blocks are skipped by it."""
    seek = Keystream.seek

    def planted(self, index):
        where, skipped = place(index)
        seek(self, where)
        self.bytes(16 * skipped)

    monkeypatch.setattr(Keystream, "seek", planted)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "laws"),
    [
        (lambda index: (index % 4, 0), STREAM_LAWS),
        (lambda index: (index & 0xFF, 0), [check_streams_never_meet, check_streams_of_a_column]),
        (lambda index: (2 if index == 3 else index, 0), STREAM_LAWS),
        (lambda index: (0, index % (1 << 12)), STREAM_LAWS),
        (lambda index: (index - index % 2, 5 * (index % 2)), STREAM_LAWS),
        (lambda index: (index - index % 2, index % 2 << 16), STREAM_LAWS[:2]),
    ],
    ids=["wraps", "one byte", "shared", "shifted", "shifted pairs", "shifted far"],
)
def test_streams_that_share_coins_are_caught(monkeypatch, place, laws):
    plant(monkeypatch, place)
    for law in laws:
        with pytest.raises(AssertionError):
            law()


def test_threads_share_no_stream():
    """Twenty threads at once read what each would have read alone."""

    def read(index):
        stream = Keystream(KEY, index)
        return b"".join(stream.words(1000).tobytes() + stream.bytes(160) for _ in range(100))

    with ThreadPoolExecutor(20) as pool:
        together = list(pool.map(read, range(20)))
    assert together == [read(index) for index in range(20)]
    assert all_different(b"".join(together))


# ---- keys


def check_keys_are_whole(monkeypatch):
    """All 32 bytes of a key are the operating system's, and each decides about the coins."""
    given = bytes(range(100, 132))
    monkeypatch.setattr(os, "urandom", lambda count: given[:count])
    assert randomness.draw_key(None) == given
    first = Keystream(given).bytes(16)
    for place in range(32):
        other = bytearray(given)
        other[place] ^= 1
        assert Keystream(bytes(other)).bytes(16) != first


def test_keys_are_whole(monkeypatch):
    check_keys_are_whole(monkeypatch)


@pytest.mark.parametrize("short", [4, 8, 16])
def test_a_short_key_is_caught(monkeypatch, short):
    monkeypatch.setattr(randomness, "draw_key", lambda rng: os.urandom(short) + bytes(32 - short))
    with pytest.raises(AssertionError):
        check_keys_are_whole(monkeypatch)
