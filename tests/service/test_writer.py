"""The writer answers whatever its thread and its store do, and recovers."""

import asyncio
import threading
import time

import pytest

from deniable.errors import StoreUnavailable
from deniable.service import writer as module
from deniable.service.store import Outcome
from deniable.service.writer import Writer

COUNTED = Outcome.counted


class Toy:
    """A store that remembers what it was given."""

    def __init__(self):
        self.kept = []

    def add(self, entries):
        self.kept += entries
        return [COUNTED] * len(entries)

    def add_batch(self, name, body, counts):
        self.kept.append((name, body))
        return COUNTED


async def refused(writer, text):
    with pytest.raises(StoreUnavailable, match=text):
        await writer.add(b"id", b"body")


def test_the_thread_starts_before_the_first_submission():
    writer = Writer(Toy())
    assert writer._thread.is_alive()
    assert writer._thread.daemon, "a thread that hangs would keep the process from ending"
    assert writer.close()


@pytest.mark.parametrize("early", [False, True])
def test_a_thread_that_cannot_start_is_tried_again(monkeypatch, early):
    store = Toy()

    def fail(self):
        raise RuntimeError("can't start new thread")

    async def run():
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", fail)
            writer = Writer(store)
            for _ in range(3):
                await asyncio.gather(*[refused(writer, "no thread") for _ in range(5)])
        assert await asyncio.wait_for(writer.add(b"a", b"b"), 10) is COUNTED
        if early:  # the thread is gone: another one
            assert writer.close()
            assert await asyncio.wait_for(writer.add(b"c", b"d"), 10) is COUNTED
        assert writer.close()

    asyncio.run(run())
    assert (b"a", b"b") in store.kept


@pytest.mark.slow
def test_an_unexpected_error_is_an_answer_and_no_end(monkeypatch):
    """Also one in the writer itself: the number of outcomes is wrong, or they cannot be told."""
    store = Toy()
    tell, wrong = module._tell, [ZeroDivisionError("planted")]

    def tell_once(results):
        if wrong:
            raise wrong.pop()
        tell(results)

    async def run():
        writer = Writer(store)
        for broken in (lambda entries: [], lambda entries: 1 / 0, lambda entries: None):
            with monkeypatch.context() as patch:
                patch.setattr(store, "add", broken)
                await refused(writer, "the store failed")
            assert await asyncio.wait_for(writer.add(b"a", b"b"), 10) is COUNTED
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        monkeypatch.setattr(module, "_tell", tell_once)
        lost = asyncio.create_task(writer.add(b"lost", b"b"))
        await asyncio.sleep(0.1)
        assert await asyncio.wait_for(writer.add(b"c", b"d"), 10) is COUNTED
        lost.cancel()
        assert writer.close()

    asyncio.run(run())


@pytest.mark.slow
def test_a_store_that_hangs_is_answered_for_in_time(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.3)
    monkeypatch.setattr(module, "FINISH", 0.2)
    store, go, entered = Toy(), threading.Event(), threading.Event()
    add = store.add

    def hang(entries):
        entered.set()
        go.wait(30)
        return add(entries)

    async def run():
        monkeypatch.setattr(store, "add", hang)
        writer = Writer(store)
        first = asyncio.create_task(refused(writer, "did not answer within"))
        await asyncio.to_thread(entered.wait, 10)
        await asyncio.gather(first, *[refused(writer, "did not answer") for _ in range(5)])
        start = time.monotonic()
        await refused(writer, "has not answered")
        assert time.monotonic() - start < 0.2
        assert not writer.close(), "it hangs"
        go.set()
        for _ in range(200):
            if not writer._late:
                break
            await asyncio.sleep(0.02)
        assert await asyncio.wait_for(writer.add(b"z", b"z"), 10) is COUNTED
        assert writer.close()

    asyncio.run(run())
    assert store.kept == [(b"id", b"body"), (b"z", b"z")], "what was given up is not kept twice"
