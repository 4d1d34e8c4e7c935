"""The Python client: what is on the disk before anything leaves, and what is sent again."""

import json
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import deniable as dn
from deniable.answers import Choice
from deniable.collection import transport
from deniable.collection.client import MOST_EPSILON
from deniable.collection.manifest import After, Collection, Field
from deniable.collection.survey import survey_of
from deniable.collection.wire import Submission
from deniable.errors import (
    AlreadyAnswered,
    CollectionChanged,
    CorruptData,
    InvalidArgument,
    ManifestRefused,
    MemoLost,
    MismatchError,
    Refused,
    StoreUnavailable,
    TooMuch,
)
from deniable.storage.database import Database
from memo_toys import record
from places import VECTORS

WAY = {"name": "way", "ask": "?", "kind": "choice", "answers": ["a", "b", "c"]}


def collection(mechanism="lgrr", epsilon=4.0, rounds=5, changes=1, title="t"):
    again = {"rounds": rounds, "changes": changes} if rounds > 1 else {}
    questions = [{**WAY, "mechanism": mechanism}]
    data = {"title": title, "epsilon": epsilon, **again, "questions": questions}
    return survey_of(data).collection


class Server(ThreadingHTTPServer):
    """A collector that answers as it was told, and remembers what it was sent."""

    daemon_threads = True

    def __init__(self, served):
        super().__init__(("127.0.0.1", 0), Handler)
        self.manifest, self.statuses, self.bodies, self.seen = served.manifest, [], [], None
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply(200, self.server.manifest)

    def do_POST(self):
        if self.server.seen:
            self.server.seen()
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        status = self.server.statuses.pop(0) if self.server.statuses else 201
        if status == "cut":
            self.connection.close()
        elif status == "garbage":
            self.wfile.write(b"\xff\xfe nothing like HTTP\r\n\r\n")
        else:
            self.reply(status, b"{}")

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(transport, "FIRST_PAUSE", 0.0)
    with Server(collection()) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.02,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def enrolled(server, tmp_path):
    """A folder, and how clients of it are made."""

    def make(**options):
        return dn.Client(server.url, memo=tmp_path / "memo", attempts=1, **options)

    make().enrol()
    return make


def keys(folder):
    """The keys that memos have on record, read without the code under test."""
    (memo,) = folder.glob("*-way")
    return record(memo)["keys"]


def snapshot(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


# ---- previews


def test_a_preview_leaves_nothing_about_the_answers(enrolled, server, tmp_path):
    client = enrolled()
    shown = {answer: client.prepare({"way": answer}, round=2).to_json() for answer in "abc"}
    assert keys(tmp_path / "memo") == []
    before = snapshot(tmp_path / "memo")
    for answer in "abcabc":
        assert client.prepare({"way": answer}, round=2).to_json() == shown[answer]
        assert enrolled().prepare({"way": answer}, round=2).to_json() == shown[answer]
    assert snapshot(tmp_path / "memo") == before
    assert server.bodies == []
    assert client.prepare({"way": "a"}, round=3).id != client.prepare({"way": "a"}, round=2).id


def test_a_preview_may_be_followed_by_another_answer(enrolled, server, tmp_path):
    client = enrolled()
    client.prepare({"way": "a"})
    client.prepare({"way": "b"})
    chosen = client.prepare({"way": "c"})
    assert client.send(chosen)
    assert keys(tmp_path / "memo") == [2]
    assert server.bodies == [chosen.to_json()]
    assert not list((tmp_path / "memo").glob("*.coins"))


def test_keys_and_bytes_are_on_the_disk_before_the_first_byte_leaves(enrolled, server, tmp_path):
    seen = []

    def look():
        (kept,) = (tmp_path / "memo").glob("*-round-1")
        noted = record(tmp_path / "memo" / "book")["addresses"]
        ((entry,),) = [here.values() for here in noted.values()]
        seen.append((keys(tmp_path / "memo"), kept.read_bytes(), entry["rounds"], entry["spent"]))

    server.seen = look
    client = enrolled()
    prepared = client.prepare({"way": "b"})
    client.send(prepared)
    assert seen == [([1], prepared.to_json(), [1], pytest.approx(2.0))]


@pytest.mark.parametrize("broken", ["place_file", "sync_folder"])
def test_a_disk_that_fails_sends_nothing(enrolled, server, monkeypatch, broken):
    client = enrolled()
    prepared = client.prepare({"way": "a"})

    def fail(self, *given):
        raise StoreUnavailable("full")

    with monkeypatch.context() as patch:
        patch.setattr(Database, broken, fail)
        with pytest.raises(StoreUnavailable, match="full") as failed:
            client.send(prepared)
    assert failed.value.prepared == prepared
    assert server.bodies == []
    assert client.send(prepared)
    assert server.bodies == [prepared.to_json()]


# ---- only the same bytes


@pytest.mark.parametrize("status", [400, 401, 409, 413, 422, 500, 503, "cut"])
def test_after_a_refusal_only_the_same_bytes_are_sent(enrolled, server, tmp_path, status):
    server.statuses = [status] * 7
    for answer in "abcabca":
        with pytest.raises((Refused, StoreUnavailable)):
            enrolled().answer({"way": answer}, round=2)
    assert enrolled().answer({"way": "b"}, round=2)
    assert len(server.bodies) == 8
    assert len(set(server.bodies)) == 1
    assert keys(tmp_path / "memo") == [0]


def test_another_preview_of_a_sent_round_is_refused(server, tmp_path):
    server.manifest = collection("grr", rounds=1).manifest
    client, late = (dn.Client(server.url, memo=tmp_path / "memo") for _ in range(2))
    with client._book.held():
        pass
    client._coins(1).place_file(bytes(16 + 16))  # zeros keep every answer as it is
    first, second = (client.prepare({"way": answer}) for answer in "ab")
    assert first.reports != second.reports
    client.send(second)
    for other in (client, late):
        with pytest.raises(MismatchError, match="round 1 was sent already") as refused:
            other.send(first)
        assert refused.value.prepared == second
        assert other.prepare({"way": "a"}) == second
        assert other.send(refused.value.prepared)
    assert set(server.bodies) == {second.to_json()}


def test_what_was_prepared_elsewhere_is_prepared_again(enrolled, server, tmp_path):
    prepared = enrolled().prepare({"way": "a"})
    other = enrolled()
    with pytest.raises(InvalidArgument, match="prepare it again"):
        other.send(Submission.from_json(prepared.to_json()))
    assert keys(tmp_path / "memo") == []
    assert other.prepare({"way": "a"}) == prepared
    assert other.send(prepared)
    with pytest.raises(MismatchError, match="prepared for collection"):
        other.send(Submission("0" * 64, prepared.id, prepared.reports))


def test_a_preview_that_no_longer_holds_is_not_sent(server, tmp_path):
    """There was room for its key when it was shown, and there is none now."""
    server.manifest = collection(changes=0).manifest
    for number in range(30):  # two answers have the same permanent answer with probability 0.25
        client = dn.Client(server.url, memo=tmp_path / f"memo {number}")
        client.enrol()
        client._coins(2).place_file(bytes(16 + 3 * 8))  # zeros report what is kept as it is
        shown = [client.prepare({"way": answer}, round=2) for answer in "ab"]
        if shown[0].reports != shown[1].reports:
            break
    client.answer({"way": "a"}, round=1)
    with pytest.raises(InvalidArgument, match="prepare it again"):
        client.send(shown[1])
    assert client.prepare({"way": "b"}, round=2) == shown[0]
    assert len(server.bodies) == 1


def test_a_spent_budget_is_not_exceeded_and_nobody_falls_silent(enrolled, server):
    client = enrolled()
    for number, answer in enumerate(["a", "b", "c", "c", "a"], 1):
        assert client.answer({"way": answer}, round=number)
    memo = client._memos()["way"]
    assert len(server.bodies) == 5
    assert memo.keys_used == 2
    assert memo.spent <= 4.0


def test_many_at_once_send_one_submission(enrolled, server, tmp_path):
    def answer(letter):
        return enrolled().answer({"way": letter}, round=1)

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(answer, "abcabc"))
    assert len(server.bodies) == 6
    assert len(set(server.bodies)) == 1
    assert len(keys(tmp_path / "memo")) == 1


CRASH = """
import os, sys
import deniable as dn
from deniable.storage.database import Database
place, left = Database.place_file, int(sys.argv[3])

def fatal(self, contents):
    global left
    left -= 1
    if left == 0:
        os._exit(9)
    place(self, contents)

Database.place_file = fatal
dn.Client(sys.argv[1], memo=sys.argv[2], attempts=1).answer({"way": "a"}, round=2)
"""


@pytest.mark.slow
@pytest.mark.parametrize("left", [1, 2])
def test_a_killed_process_goes_on_with_the_same(enrolled, server, tmp_path, left):
    """Killed before its coins, or before its submission, is on the disk: nothing was sent."""
    folder = tmp_path / "memo"
    given = [sys.executable, "-c", CRASH, server.url, str(folder), str(left)]
    assert subprocess.run(given, check=False).returncode == 9
    assert server.bodies == []
    assert enrolled().answer({"way": "a"}, round=2)
    assert keys(folder) == [0]
    assert len(server.bodies) == 1


ENROL = """
import os, sys
import deniable as dn
from deniable.storage.database import Database
place, left = Database.place_file, int(sys.argv[3])

def fatal(self, contents):
    global left
    left -= 1
    if left == 0:
        os._exit(9)
    place(self, contents)

Database.place_file = fatal
dn.Client(sys.argv[1], memo=sys.argv[2], attempts=1).enrol()
"""
TWO = survey_of(
    {
        "title": "t",
        "epsilon": 4.0,
        "rounds": 5,
        "changes": 1,
        "questions": [{**WAY, "mechanism": "lgrr"}, {**WAY, "name": "back", "mechanism": "losue"}],
    }
).collection


@pytest.mark.slow
@pytest.mark.parametrize("left", range(1, 6))  # the book, two memos, two witnesses
def test_enrolling_that_was_killed_is_finished_by_enrolling_again(server, tmp_path, left):
    server.manifest = TWO.manifest
    given = [sys.executable, "-c", ENROL, server.url, str(tmp_path / "memo"), str(left)]
    assert subprocess.run(given, check=False).returncode == 9
    before = {file: record(file) for file in (tmp_path / "memo").glob("*-[bw]a[yc]*")}
    client = dn.Client(server.url, memo=tmp_path / "memo")
    if left < 5:
        client.enrol()
    assert client.answer({"way": "a", "back": "b"})
    with pytest.raises(InvalidArgument, match="a respondent enrols once"):
        client.enrol()
    for file, found in before.items():  # nothing was begun twice
        assert record(file).get("secret") == found.get("secret")


@pytest.mark.parametrize("used", ["sent", "recorded"])
def test_a_memo_that_was_used_is_not_begun_anew(server, tmp_path, used):
    """A program that enrols whenever a memo is lost would begin a second budget."""
    server.manifest = TWO.manifest
    client = dn.Client(server.url, memo=tmp_path / "memo")
    client.enrol()
    for file in (tmp_path / "memo").glob("*-back*"):  # unused, it may be begun again
        file.unlink()
    client.enrol()
    client.answer({"way": "a", "back": "b"})
    gone = "*-back*" if used == "recorded" else "*-[bw]a[yc]*"
    for file in [*(tmp_path / "memo").glob(gone)]:
        file.unlink()
    if used == "recorded":
        client._round(1).path.unlink()
    with pytest.raises(MemoLost, match="no other one is begun"):
        client.enrol()
    with pytest.raises(MemoLost):
        client.answer({"way": "c", "back": "c"}, round=2)
    assert not list((tmp_path / "memo").glob("*-back"))
    assert len(server.bodies) == 1


KILLED = """
import os, pathlib, sys
import deniable as dn
remove = pathlib.Path.unlink

def fatal(self, *given, **named):
    if ".coins.new" in self.name:
        os._exit(9)
    remove(self, *given, **named)

pathlib.Path.unlink = fatal
dn.Client(sys.argv[1], memo=sys.argv[2]).prepare({"way": "a"})
"""


def test_no_other_name_of_the_coins_is_left(enrolled, server, tmp_path):
    """Whoever is killed while coins are put into place leaves them under two names."""
    folder = tmp_path / "memo"
    given = [sys.executable, "-c", KILLED, server.url, str(folder)]
    assert subprocess.run(given, check=False).returncode == 9
    assert len(list(folder.glob("*coins*"))) == 2
    server.seen = lambda: server.statuses.append(422 if list(folder.glob("*coins*")) else 201)
    assert enrolled().answer({"way": "a"})


def test_folders_that_cannot_be_used(enrolled, server, tmp_path):
    file = tmp_path / "file"
    file.touch()
    for folder in (file, file / "inside"):
        client = dn.Client(server.url, memo=folder)
        for use in (client.enrol, lambda: client.prepare({"way": "a"})):  # noqa: B023
            with pytest.raises(StoreUnavailable, match="cannot be used now"):
                use()
    client = enrolled()
    for blocked in (client._round(3), client._coins(4)):
        blocked.path.mkdir()
    for number in (3, 4):
        with pytest.raises(StoreUnavailable, match="cannot be used now"):
            client.answer({"way": "a"}, round=number)
    for bad in ("", 5, b"memo"):
        with pytest.raises(InvalidArgument, match="'memo' must be a folder"):
            dn.Client(server.url, memo=bad)
    assert server.bodies == []


def test_a_round_whose_bytes_are_gone_is_not_sent_anew(enrolled, server):
    client = enrolled()
    client.answer({"way": "a"}, round=2)
    client._round(2).path.unlink()
    for use in (client.answer, client.prepare):
        with pytest.raises(MemoLost, match="round 2 was sent: nothing else is sent in it"):
            use({"way": "b"}, round=2)
    assert len(server.bodies) == 1
    assert client.answer({"way": "b"}, round=3)


def test_a_book_that_is_gone_is_missed(enrolled, server, tmp_path):
    """Without it nobody could know that another collection was answered at this address."""
    client = enrolled()
    (tmp_path / "memo" / "book").unlink()
    server.manifest = collection("grr", rounds=1).manifest
    for use in (enrolled, client.enrol, lambda: client.answer({"way": "a"})):
        with pytest.raises(MemoLost, match=r"book is missing, and .* was used"):
            use()
    assert server.bodies == []
    assert not (tmp_path / "memo" / "book").exists()


def test_damaged_files_are_refused(enrolled, server, tmp_path):
    client = enrolled()
    client.prepare({"way": "a"})
    (coins,) = (tmp_path / "memo").glob("*.coins")
    coins.write_bytes(b"short")
    with pytest.raises(CorruptData, match="5 bytes"):
        client.answer({"way": "a"})
    (tmp_path / "memo" / coins.name.removesuffix(".coins")).write_bytes(b"{}")
    with pytest.raises(CorruptData, match="not a submission"):
        client.prepare({"way": "a"})
    (tmp_path / "memo" / "book").write_bytes(b"no database")
    with pytest.raises(CorruptData):
        enrolled()
    assert server.bodies == []


# ---- errors carry what to send again


@pytest.mark.parametrize("status", [100, 204, 206, 301, 400, 401, 403, 404, 409, 413, 422, 501])
def test_a_final_answer_carries_what_was_sent(server, status):
    server.statuses = [status]
    server.manifest = collection(rounds=1, mechanism="grr").manifest
    if status == 100:  # no answer at all
        server.statuses = ["garbage"]
    client = dn.Client(server.url, attempts=1)
    prepared = client.prepare({"way": "a"})
    with pytest.raises((Refused, StoreUnavailable)) as failed:
        client.send(prepared)
    assert failed.value.prepared is prepared
    assert server.bodies == [prepared.to_json()]


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, "cut", "garbage"])
def test_what_may_pass_is_tried_again_with_the_same_bytes(server, status):
    server.manifest = collection(rounds=1, mechanism="grr").manifest
    client = dn.Client(server.url, attempts=3)
    server.statuses = [status, status]
    assert client.answer({"way": "a"})
    assert len(server.bodies) == 3
    assert len(set(server.bodies)) == 1
    server.statuses = [status] * 3
    with pytest.raises(StoreUnavailable, match="3 attempts") as failed:
        client.answer({"way": "a"})
    assert failed.value.prepared.to_json() == server.bodies[-1]
    assert client.send(failed.value.prepared)
    assert len(set(server.bodies[3:])) == 1


@pytest.mark.slow
def test_silence_and_closed_doors_carry_what_was_sent(server, tmp_path):
    server.manifest = collection(rounds=1, mechanism="grr").manifest
    pause = threading.Event()
    server.seen = lambda: pause.wait(5)
    slow = dn.Client(server.url, attempts=1, timeout=0.2)
    file = tmp_path / "manifest.json"
    file.write_bytes(server.manifest)
    closed = dn.Client(file, url="http://127.0.0.1:9", attempts=1)
    for client in (slow, closed):
        with pytest.raises(StoreUnavailable) as failed:
            client.answer({"way": "a"})
        assert isinstance(failed.value.prepared, Submission)
    pause.set()


# ---- another collection at the same address


def test_another_manifest_is_another_budget_and_is_asked_for(enrolled, server, tmp_path):
    """A collector that forgets its memory got 28.0 in 9 rounds where 1.0 was agreed to."""
    server.manifest = collection(epsilon=1.0, rounds=9, changes=0).manifest
    client = dn.Client(server.url, memo=tmp_path / "other")
    client.enrol()
    client.answer({"way": "a"}, round=1)
    swapped = collection("grr", epsilon=8.0, rounds=8, changes=0)
    server.manifest = swapped.manifest
    for number in range(2, 9):
        with pytest.raises(CollectionChanged, match="epsilon 1 was spent so far") as changed:
            dn.Client(server.url, memo=tmp_path / "other").answer({"way": "a"}, round=number)
    assert len(server.bodies) == 1
    found = changed.value
    assert (found.type, found.digest, found.epsilon) == ("changed", swapped.digest, 8.0)
    assert found.spent == pytest.approx(1.0)
    assert str(pickle.loads(pickle.dumps(found))) == str(found)
    with pytest.raises(CollectionChanged):
        dn.Client(server.url, memo=tmp_path / "other", another=client.collection.digest)
    agreed = dn.Client(server.url, memo=tmp_path / "other", another=swapped.digest)
    agreed.answer({"way": "a"}, round=2)
    assert len(server.bodies) == 2
    dn.Client(server.url, memo=tmp_path / "other")  # agreed to once and for all
    server.manifest = collection("grr", epsilon=0.5, rounds=2, changes=0).manifest
    with pytest.raises(CollectionChanged, match="epsilon 2 was spent"):
        dn.Client(server.url, memo=tmp_path / "other")


def test_a_swap_under_way_is_noticed_when_it_is_sent(enrolled, server, tmp_path):
    """Both clients were made before either had answered."""
    first = dn.Client(server.url, memo=tmp_path / "new")
    server.manifest = collection("grr", rounds=1).manifest
    second = dn.Client(f"{server.url}/", memo=tmp_path / "new")
    shown = second.prepare({"way": "a"})
    first.enrol()
    for send in (lambda: second.send(shown), lambda: second.answer({"way": "a"})):
        with pytest.raises(CollectionChanged):
            send()
    assert server.bodies == []
    assert not list((tmp_path / "new").glob(f"{second.collection.digest[:16]}-round-1"))


def test_addresses_have_books_of_their_own(enrolled, server, tmp_path):
    """Another path or name is another address; the way it is written is not."""
    file = tmp_path / "manifest.json"
    file.write_bytes(collection("grr", rounds=1).manifest)
    port = server.server_address[1]
    for url in (server.url, f"HTTP://127.0.0.1:{port}///"):
        with pytest.raises(CollectionChanged):
            dn.Client(file, url=url, memo=tmp_path / "memo")
    for url in (f"{server.url}/other", f"http://localhost:{port}"):
        dn.Client(file, url=url, memo=tmp_path / "memo")
    dn.Client(file, url=server.url, memo=tmp_path / "fresh")
    dn.Client(file, memo=tmp_path / "memo")  # nothing can be sent from here


def test_what_was_spent_so_far():
    for mechanism, changes in (("lgrr", 1), ("grr", 0)):
        found = collection(mechanism, 4.0, 5, changes)
        spent = [found.spent_after(rounds) for rounds in range(6)]
        assert spent[0] == 0.0
        assert spent == sorted(spent)
        assert spent[5] == found.spent
        assert spent[1] == pytest.approx(2.0 if mechanism == "lgrr" else 0.8)


# ---- how much at most


def test_a_collection_that_spends_too_much_is_refused(server, tmp_path):
    assert MOST_EPSILON == 8.0
    server.manifest = collection("grr", epsilon=8.001, rounds=1).manifest
    with pytest.raises(
        TooMuch, match=r"may spend epsilon 8\.001, and at most 8 is allowed"
    ) as much:
        dn.Client(server.url)
    assert much.value.type == "too-much"
    assert dn.Client(server.url, max_epsilon=8.001).answer({"way": "a"})
    with pytest.raises(TooMuch):
        dn.Client(server.url, max_epsilon=8)
    server.manifest = collection("grr", epsilon=8.0, rounds=1).manifest
    dn.Client(server.url)
    for bad in (0, -1, True, "8", float("nan"), 10**400):
        with pytest.raises(InvalidArgument, match="'max_epsilon' must be"):
            dn.Client(server.url, max_epsilon=bad)


def test_a_collection_that_is_refused_leaves_no_connection_open(server, monkeypatch):
    closed = []
    monkeypatch.setattr(transport.Transport, "close", lambda one: closed.append(one))
    server.manifest = collection("grr", epsilon=4.0, rounds=1).manifest
    for options in ({"max_epsilon": 3}, {"digest": "0" * 64}):
        with pytest.raises((TooMuch, MismatchError)):
            dn.Client(server.url, **options)
    server.manifest = b"{}"
    with pytest.raises(ManifestRefused):
        dn.Client(server.url)
    assert len(closed) == 3


def test_memos_that_are_lost_answer_nothing(enrolled, server, tmp_path):
    for file in (tmp_path / "memo").glob("*-way"):
        file.unlink()
    with pytest.raises(MemoLost):
        enrolled().answer({"way": "a"})
    assert server.bodies == []


def test_the_book_says_what_was_spent(enrolled, server, tmp_path):
    client = enrolled()
    for number in (3, 1, 3):
        client.answer({"way": "a"}, round=number)
    (here,) = record(tmp_path / "memo" / "book")["addresses"].values()
    digest = client.collection.digest
    assert here == {digest: {"epsilon": 4.0, "root": digest, "rounds": [1, 3], "spent": 4.0}}


STORIES = json.loads((VECTORS / "bad" / "books.json").read_text())


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story["why"])
def test_stories_of_books(server, tmp_path, story):
    """The last step sends nothing new: the same bytes again, or nothing."""
    *steps, last = story["steps"]
    for step in steps:
        try:
            take(server, tmp_path, step)
        except Refused as refused:
            assert refused.status == step["status"]  # noqa: PT017
        else:
            assert step["status"] == 201
    sent = set(server.bodies)
    assert len(sent) == len(steps)
    if last["manifest"] == steps[-1]["manifest"]:
        assert story["type"] == "answered"
        take(server, tmp_path, last)
    else:
        with pytest.raises((AlreadyAnswered, CollectionChanged)) as refused:
            take(server, tmp_path, last)
        assert refused.value.type == story["type"]
    assert set(server.bodies) == sent


def take(server, folder, step):
    server.manifest, server.statuses = step["manifest"].encode(), [step["status"]]
    url = server.url.replace("127.0.0.1", "localhost") if step.get("elsewhere") else server.url
    client = dn.Client(url, memo=folder / "memo", another=step.get("another"), attempts=1)
    return client.answer(step["answers"], round=step["round"])


def test_nobody_answers_two_steps_at_whatever_address(server, tmp_path):
    """Another address has another book, but a digest is the same everywhere."""
    root = collection("grr", rounds=1)
    server.manifest = root.manifest
    dn.Client(server.url, memo=tmp_path / "memo").answer({"way": "a"})
    after = After(root.digest, root.digest, 2)
    step = Collection.split({"way": dn.GRR(["a", "b"], 1.0)}, 1.0, after=after)
    server.manifest = step.manifest
    other = server.url.replace("127.0.0.1", "localhost")
    with pytest.raises(AlreadyAnswered, match="nobody answers two steps") as refused:
        dn.Client(other, memo=tmp_path / "memo")
    assert refused.value.type == "answered"
    dn.Client(other, memo=tmp_path / "fresh").answer({"way": "a"})
    assert len(server.bodies) == 2


# ---- sheets: what is asked


DRAWN = survey_of(
    {
        "title": "t",
        "epsilon": 1.0,
        "divide": "sampled",
        "questions": [{**WAY, "name": f"q{i}", "mechanism": "grr"} for i in range(8)],
    }
).collection


def places(body):
    """Which question a submission is about, read from its row."""
    return int(json.loads(body)["reports"]["all"][:2], 16)


def test_a_sheet_asks_only_what_was_drawn(server, tmp_path):
    server.manifest = DRAWN.manifest
    asked = []
    for number in range(20):
        memo = {"memo": tmp_path / f"memo {number}"} if number % 2 else {}
        sheet = dn.Client(server.url, **memo).begin()
        (name,) = sheet.questions
        asked.append(name)
        with pytest.raises(InvalidArgument, match=f"no answer; got \\['{name}'\\]"):
            sheet.prepare({})
        with pytest.raises(InvalidArgument, match="'answers' must be for the questions"):
            sheet.prepare({name: "a", "more": "a"})
        assert sheet.answer({name: "a"})
        assert f"q{places(server.bodies[-1])}" == name
    assert len(set(asked)) > 1  # false alarm: 8**-19


def test_a_reload_does_not_draw_again(server, tmp_path):
    server.manifest = DRAWN.manifest
    client = dn.Client(server.url, memo=tmp_path / "memo")
    (name,) = client.begin().questions
    for _ in range(20):  # false alarm if it drew again: 8**-20
        again = dn.Client(server.url, memo=tmp_path / "memo").begin()
        assert again.questions == [name]
    shown = again.prepare({name: "a"})
    assert again.prepare({name: "a"}) == shown
    assert client.begin().prepare({name: "a"}) == shown
    assert again.answer({name: "a"})
    assert server.bodies == [shown.to_json()]
    after = client.begin()
    assert after.questions == []
    assert after.prepare({}) == shown
    after.answer({})
    assert set(server.bodies) == {shown.to_json()}


def test_all_answers_of_a_drawn_round_give_the_draw_that_was_kept(server, tmp_path):
    """Whoever answers everything answers what was drawn at the beginning, too."""
    server.manifest = DRAWN.manifest
    client = dn.Client(server.url, memo=tmp_path / "memo")
    (name,) = client.begin().questions
    client.answer({f"q{i}": "a" for i in range(8)})
    assert f"q{places(server.bodies[0])}" == name


def test_without_a_folder_no_coins_are_used_twice(server):
    """Two answers with the same coins would tell more than epsilon: only the draw is kept."""
    server.manifest = DRAWN.manifest
    sheet = dn.Client(server.url).begin()
    (name,) = sheet.questions
    made = [sheet.prepare({name: "a"}) for _ in range(100)]
    assert len({one.id for one in made}) == 100
    assert {f"q{places(one.to_json())}" for one in made} == {name}
    assert len({one.reports["all"] for one in made}) > 1  # false alarm: keep**99 < 1e-20


def test_coins_that_were_lost_give_no_answer_to_another_question(server, tmp_path):
    server.manifest = DRAWN.manifest
    client = dn.Client(server.url, memo=tmp_path / "memo")
    for _ in range(40):
        sheet = client.begin()
        client._coins(1).path.unlink()
        if client.begin().questions != sheet.questions:
            break
    (name,) = sheet.questions
    with pytest.raises(InvalidArgument, match="these questions were drawn"):
        sheet.prepare({name: "a"})
    assert server.bodies == []


def test_a_sheet_of_remembered_questions_asks_all(enrolled, server):
    sheet = enrolled().begin(2)
    assert sheet.questions == ["way"]
    assert sheet.answer({"way": "a"})
    assert json.loads(server.bodies[0])["round"] == 2
    for bad in (0, 6, "1", True):
        with pytest.raises(InvalidArgument, match="'round' must be"):
            enrolled().begin(bad)


# ---- public fields and skips


REGIONS = Collection.split(
    {"way": dn.GRR(Choice(["a", "b"], optional=True), 1.0)},
    1.0,
    fields=(Field("region", ("north", "south")),),
)


@pytest.mark.parametrize("memo", [False, True])
def test_public_values_are_sent_openly(server, tmp_path, memo):
    server.manifest = REGIONS.manifest
    client = dn.Client(server.url, memo=tmp_path / "memo" if memo else None)
    for bad in (None, {}, {"region": "east"}, {"region": "north", "sex": "f"}):
        with pytest.raises(InvalidArgument):
            client.answer({"way": "a"}, fields=bad)
    assert server.bodies == []
    shown = client.begin().prepare({"way": None}, fields={"region": "south"})
    assert shown.fields == {"region": "south"}
    assert client.send(shown)
    assert json.loads(server.bodies[0])["fields"] == {"region": "south"}
    if memo:
        assert client.prepare({"way": "a"}, fields={"region": "north"}) == shown
        with pytest.raises(MismatchError, match="sent already"):
            client.send(replace(shown, fields={"region": "north"}))
    assert len(server.bodies) == 1


def test_what_was_shown_is_sent_with_its_public_values(server, tmp_path):
    server.manifest = REGIONS.manifest
    client = dn.Client(server.url, memo=tmp_path / "memo")
    shown = client.prepare({"way": "a"}, fields={"region": "south"})
    with pytest.raises(InvalidArgument, match="prepare it again"):
        client.send(replace(shown, fields={"region": "north"}))
    assert server.bodies == []


def test_a_question_is_skipped_where_that_is_allowed(server):
    server.manifest = REGIONS.manifest
    public = {"region": "north"}
    assert dn.Client(server.url).answer({"way": None}, fields=public)
    with pytest.raises(InvalidArgument, match="no answer"):
        dn.Client(server.url).answer({}, fields=public)
    server.manifest = collection("grr", rounds=1).manifest
    with pytest.raises(InvalidArgument, match="'way' must be"):
        dn.Client(server.url).answer({"way": None})
