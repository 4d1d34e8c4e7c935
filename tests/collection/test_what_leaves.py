"""Everything that leaves a device, found again in the randomness that it was given.

The operating system's random bytes are replaced by a recorded stream, every other source is
refused, and clocks stand still or stop. What is sent must then be a function of the answers, the
memo and the stream, and every coin and every id must be in the stream.
"""

import json
import socket
import threading
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2

import deniable as dn
from collection_toys import one_question, survey
from deniable.collection.batches import read_batch
from deniable.collection.reporting import coin_words, encoded, respond
from deniable.collection.survey import survey_of
from deniable.conformance import small
from deniable.device.memo import Memory, MemoryMemo, recall_begun, recall_kept
from deniable.mechanisms.frequency import frequency_oracles
from deniable.randomness import WORD_BYTES, ByteCoins, Keystream
from memo_toys import record as memo_record
from recorded import record

#: Of the toys; none is the last of its list.
ANSWERS = {"way": "car", "ever": True, "hours": 5.5, "pets": "pet 3"}
FALSE_ALARM = 1e-9


def client_of(collection, tmp_path, kind=dn.Client, **options):
    path = tmp_path / "manifest.json"
    path.write_bytes(collection.manifest)
    return kind(path, **options)


def found_again(client, made, answers, pieces):
    """Check that the id and all coins of a submission are these pieces, and nothing else is."""
    collection = client.collection
    coins = list(pieces)
    assert bytes.fromhex(made.id) in coins
    coins.remove(bytes.fromhex(made.id))
    words = ByteCoins(b"".join(coins))
    rows = respond(collection, encoded(collection, answers), words, {})
    words.finish()
    assert made.reports == rows


def check_single(monkeypatch, tmp_path, collection, answers, kind=dn.Client):
    """Every coin and the id of a submission are random bytes of the operating system."""
    client = client_of(collection, tmp_path, kind)
    with monkeypatch.context() as patch:
        recorded = record(patch)
        for _ in range(3):
            made = client.prepare(answers)
            found_again(client, made, answers, recorded.taken())


def check_pure(monkeypatch, tmp_path, collection, answers, kind=dn.Client):
    """The same stream makes the same bytes, whatever the time is."""
    client, bodies = client_of(collection, tmp_path, kind), []
    for clock in (1, 1_700_000_000):
        with monkeypatch.context() as patch:
            record(patch, clock=clock)
            bodies.append([client.prepare(answers).to_json() for _ in range(3)])
    assert bodies[0] == bodies[1]
    assert len(set(bodies[0])) == 3


@pytest.mark.parametrize("law", [check_single, check_pure])
@pytest.mark.parametrize(
    "name", [name for name, family in frequency_oracles().items() if family.on_devices]
)
def test_coins_of_every_mechanism(monkeypatch, tmp_path, name, law):
    law(monkeypatch, tmp_path, one_question(2 if name == "brr" else 12, name), {"q": "a1"})


@pytest.mark.parametrize("law", [check_single, check_pure])
def test_coins_of_a_number(monkeypatch, tmp_path, law):
    asked = {"name": "q", "ask": "?", "kind": "number", "lo": 0, "hi": 24, "mechanism": "drr"}
    collection = survey_of({"title": "t", "epsilon": 1.0, "questions": [asked]}).collection
    law(monkeypatch, tmp_path, collection, {"q": 7.5})


@pytest.mark.parametrize("law", [check_single, check_pure])
@pytest.mark.parametrize("divide", ["split", "sampled"])
def test_coins_of_several_questions(monkeypatch, tmp_path, divide, law):
    law(monkeypatch, tmp_path, survey(divide), ANSWERS)


class ClockInId(dn.Client):
    """Half of the id tells when it was made."""

    def prepare(self, answers, round=1):  # noqa: A002
        made = super().prepare(answers, round)
        return replace(made, id=f"{time.time_ns():016x}{made.id[16:]}")


class CountedId(dn.Client):
    """The last bytes of the id tell how many there were before."""

    count = 0

    def prepare(self, answers, round=1):  # noqa: A002
        made = super().prepare(answers, round)
        self.count += 1
        return replace(made, id=f"{made.id[:-4]}{self.count:04x}")


class CoinsFromTheClock(dn.Client):
    def prepare(self, answers, round=1):  # noqa: A002
        made, collection = super().prepare(answers, round), self.collection
        key = int(time.time() * 1e6).to_bytes(32, "big")
        coins = ByteCoins(Keystream(key).bytes(coin_words(collection) * WORD_BYTES))
        return replace(made, reports=respond(collection, encoded(collection, answers), coins, {}))


class CoinsFromTheId(dn.Client):
    """Who knows the id knows the coins."""

    def prepare(self, answers, round=1):  # noqa: A002
        made, collection = super().prepare(answers, round), self.collection
        key = bytes.fromhex(made.id) * 2
        coins = ByteCoins(Keystream(key).bytes(coin_words(collection) * WORD_BYTES))
        return replace(made, reports=respond(collection, encoded(collection, answers), coins, {}))


@pytest.mark.parametrize(
    ("kind", "law"),
    [
        (ClockInId, check_single),
        (ClockInId, check_pure),
        (CountedId, check_single),
        (CoinsFromTheClock, check_single),
        (CoinsFromTheClock, check_pure),
        (CoinsFromTheId, check_single),
    ],
)
def test_planted_clients_are_caught(monkeypatch, tmp_path, kind, law):
    with pytest.raises(AssertionError):
        law(monkeypatch, tmp_path, survey(), ANSWERS, kind)


def test_every_word_changes_what_it_should_and_nothing_else(monkeypatch, tmp_path):
    """With all other coins at their highest, a word of 0 changes the row of its own question."""
    collection = survey()
    client = client_of(collection, tmp_path)
    owners = [r.name for r in collection.reports for _ in range(r.mechanism.coin_words)]
    high = (1 << 8 * WORD_BYTES) - 1

    def prepared(changed, mark=0):
        words = [0 if place == changed else high for place in range(len(owners))]
        coins = b"".join(word.to_bytes(WORD_BYTES, "little") for word in words)

        def given(number, piece):
            return bytes([mark] * len(piece)) if len(piece) == 16 else coins[: len(piece)]

        with monkeypatch.context() as patch:
            recorded = record(patch)
            recorded.change = given
            made = client.prepare(ANSWERS)
            assert Counter(map(len, recorded.pieces)) == Counter([16, len(coins)])
        return made

    base = prepared(None)
    for place, name in enumerate(owners):
        made = prepared(place)
        assert made.id == base.id
        assert [q for q in base.reports if made.reports[q] != base.reports[q]] == [name]
    other = prepared(None, mark=1)
    assert (other.reports, other.id) == (base.reports, "01" * 16)


# ---- batches


def people(n):
    rng = np.random.default_rng(4)
    return {
        "way": rng.choice(["car", "train", "none"], n).tolist(),
        "ever": rng.choice([True, False], n).tolist(),
        "hours": rng.uniform(4, 9, n).tolist(),
        "pets": rng.choice([f"pet {i}" for i in range(20)], n).tolist(),
    }


def places_of(collection, batch):
    """The place of the question that each respondent of a sampled batch drew."""
    return read_batch(collection, batch.body)[1]["all"][:, 0].astype(np.intp)


def values_of(report, table):
    """The encoded answers of a report to all people."""
    answers = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    domain = report.mechanism.domain
    one = [row[report.of[0]] for row in answers] if len(report.of) == 1 else answers
    return domain.encode(one)


@pytest.mark.parametrize("divide", ["split", "sampled"])
def test_every_column_of_a_batch_has_a_key_of_its_own(monkeypatch, tmp_path, divide):
    collection, n = survey(divide), 500
    client, table = client_of(collection, tmp_path), pa.table(people(n))
    list(client.privatize_table(table))  # what is imported and compiled at first
    with monkeypatch.context() as patch:
        recorded = record(patch)
        (batch,) = client.privatize_table(table)
        pieces = recorded.taken()
    columns = read_batch(collection, batch.body)[1]
    assert bytes.fromhex(batch.id) in pieces
    keys = [piece for piece in pieces if piece != bytes.fromhex(batch.id)]
    assert {len(key) for key in keys} == {32}
    for report in collection.reports:
        values, made = values_of(report, people(n)), columns[report.name]
        randomise = report.mechanism.randomise
        fitting = [key for key in keys if np.array_equal(randomise(values, key), made)]
        assert len(fitting) == 1
        keys.remove(fitting[0])
    assert not keys
    if divide == "sampled":
        # The weights of four questions are equal: the first bits of a word of its own choose.
        words = np.frombuffer(Keystream(fitting[0]).bytes(8 * n), dtype="<u8").tolist()
        assert places_of(collection, batch).tolist() == [word >> 62 for word in words]


@pytest.mark.parametrize("n", [5, 500])
def test_a_column_has_one_key(monkeypatch, n):
    for family in dn.mechanisms().values():
        m = next(small(family))
        answers = [m.domain.answer(m.domain.sample()[1])] * n
        m.privatize(answers)
        with monkeypatch.context() as patch:
            recorded = record(patch)
            reports = m.privatize(answers)
            (key,) = recorded.taken()
        assert len(key) == 32
        again = m.randomise(m.domain.encode(answers), key)
        assert again.tobytes() == reports.data.tobytes()


def test_ids_of_reports_are_all_random(monkeypatch):
    reports = dn.GRR(3, 1.0).privatize([0] * 300)
    recorded = record(monkeypatch)
    ids = reports.with_ids().ids
    assert ids.tobytes() == b"".join(recorded.taken())
    assert len({row.tobytes() for row in ids}) == 300


# ---- the sampled question of a batch


def drawn_questions(tmp_path, n=30_000):
    """The answers of many people, and which question each of two batches of them drew."""
    collection = survey("sampled")
    table, client = people(n), client_of(collection, tmp_path)
    drawn = []
    for key in (b"\1", b"\2"):
        with pytest.MonkeyPatch.context() as patch:
            record(patch, key=key * 32, clock=0)
            (batch,) = client.privatize_table(pa.table(table), rows=n)
        drawn.append(places_of(collection, batch))
    return table, drawn


def unrelated(one, other):
    """Null: the question is uniform and independent of ``other``, which is known beforehand.

    Chi-square of the table of both against equal shares in every column.
    """
    size, kinds = 4, int(other.max()) + 1
    table = np.bincount(one * kinds + other, minlength=size * kinds).reshape(size, kinds)
    expected = np.broadcast_to(table.sum(axis=0) / size, table.shape)
    statistic = float(np.sum((table - expected) ** 2 / expected))
    return chi2.sf(statistic, (size - 1) * kinds) > FALSE_ALARM


def check_questions(table, first, second):
    n = len(first)
    row = np.arange(n)
    predictors = {f"row modulo {m}": row % m for m in (2, 3, 4, 5, 7, 8, 16, 256)}
    predictors |= {f"row / {n // parts}": row * parts // n for parts in (2, 10, 100)}
    predictors["the other batch"] = second
    for name, answers in table.items():
        order = {answer: place for place, answer in enumerate(sorted(set(answers)))}
        if name != "hours":
            predictors[name] = np.array([order[answer] for answer in answers])
    predictors["hours"] = np.array(table["hours"]).astype(np.intp) - 4
    for name, other in predictors.items():
        assert unrelated(first, other), name
    for lag in (1, 2, 3, 4, 5, 8, 16, 64, 1024, 4096):
        assert unrelated(first[lag:], first[:-lag]), f"lag {lag}"
    pairs = first[:-2] * 4 + first[1:-1]
    assert unrelated(first[2:], pairs), "the two before"


def test_the_question_of_each_row_is_drawn_for_it_alone(tmp_path):
    client = client_of(survey("sampled"), tmp_path)
    list(client.privatize_table(pa.table(people(100))))
    table, (first, second) = drawn_questions(tmp_path)
    check_questions(table, first, second)


@pytest.mark.slow
@pytest.mark.parametrize(
    "planted",
    [
        lambda table, first: np.arange(len(first)) % 4,
        lambda table, first: np.sort(first),
        lambda table, first: np.resize(first[:4096], len(first)),
        lambda table, first: np.where(np.array(table["ever"]), 0, first),
        lambda table, first: np.repeat(first[::2], 2)[: len(first)],
        lambda table, first: np.minimum(first, 2),
        lambda table, first: first * 2 % 4,
    ],
    ids=["row number", "blocks", "period", "answer", "pairs", "never the last", "two of four"],
)
def test_predictable_questions_are_caught(planted):
    rng = np.random.default_rng(1)
    table, n = people(30_000), 30_000
    first, second = rng.integers(4, size=n), rng.integers(4, size=n)
    check_questions(table, first, second)
    with pytest.raises(AssertionError):
        check_questions(table, planted(table, first), second)
    with pytest.raises(AssertionError, match="the other batch"):
        check_questions(table, first, first)


# ---- memos


MEMOISED = [
    name
    for name, family in dn.mechanisms().items()
    if family.on_devices and hasattr(family, "permanent_guarantee")
]


@pytest.mark.parametrize("name", MEMOISED)
def test_secrets_and_coins_of_memos(monkeypatch, tmp_path, name):
    m = dn.mechanism(name, 12, 1.0)
    recorded = record(monkeypatch)
    memo = dn.FileMemo.enrol(tmp_path / "memo", m, "phones")
    (secret,) = recorded.taken()
    assert memo_record(tmp_path / "memo")["secret"] == secret.hex()
    assert len(secret) == 32
    begun = recall_begun(m, secret)
    for value in (3, 3, 11):
        report = memo.report(value)
        (key,) = recorded.taken()
        assert len(key) == 32
        coins = ByteCoins(Keystream(key).bytes(m.instant_words * WORD_BYTES))
        kept = recall_kept(m, secret, begun, m.key(begun, value))
        assert report == m.instant(begun, kept, coins)


@pytest.mark.slow
@pytest.mark.parametrize("name", MEMOISED)
def test_rounds_of_a_client_that_remembers(monkeypatch, tmp_path, name):
    answers = [f"a{i}" for i in range(12)]
    asked = {"name": "q", "ask": "?", "kind": "choice", "answers": answers, "mechanism": name}
    terms = {"title": "t", "epsilon": 2.0, "rounds": 3, "changes": 0}
    collection = survey_of({**terms, "questions": [asked]}).collection
    bodies = []
    for clock in (1, 1_700_000_000):
        folder = tmp_path / str(clock)
        folder.mkdir()
        client = client_of(collection, folder, memo=folder / "memo")
        with monkeypatch.context() as patch:
            recorded = record(patch, clock=clock)
            client.enrol()
            (secret,) = [piece for piece in recorded.taken() if len(piece) == 32]
            memo = MemoryMemo(collection.reports[0].mechanism, "x")
            memo._memory = Memory(secret, 1)
            recorded.taken()
            for number in (1, 2, 3):
                made = client.prepare({"q": "a7"}, number)
                coins = [piece for piece in recorded.taken() if piece.hex() != made.id]
                words = ByteCoins(b"".join(coins))
                assert made.reports == respond(collection, {"q": 7}, words, {"q": memo})
                words.finish()
                bodies.append(made.to_json())
    assert bodies[:3] == bodies[3:]
    assert len({json.loads(body)["id"] for body in bodies}) == 3


# ---- headers


class Listener:
    """A server that keeps what it hears, and answers each request with 201."""

    def __init__(self, manifest):
        self.manifest, self.heads = manifest, []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self):
        connection, _ = self.socket.accept()
        with connection, connection.makefile("rb") as heard:
            while lines := self.head(heard):
                self.heads.append(lines)
                fields = dict(line.lower().split(": ", 1) for line in lines[1:])
                heard.read(int(fields.get("content-length", 0)))
                body = self.manifest if lines[0].startswith("GET") else b""
                answer = f"HTTP/1.1 201 Created\r\nContent-Length: {len(body)}\r\n\r\n"
                connection.sendall(answer.encode() + body)

    @staticmethod
    def head(heard):
        lines = []
        while line := heard.readline().decode().rstrip("\r\n"):
            lines.append(line)
        return lines


def headers_sent(collection, kind=dn.Client):
    """The lines before the body of a GET, a submission, and a batch; and how long bodies were."""
    heard = Listener(collection.manifest)
    client = kind(heard.url, key="s" * 40, timeout=20)
    made = client.prepare(ANSWERS)
    client.send(made)
    (batch,) = client.privatize_table(pa.table(people(5)))
    client.send(batch)
    client.close()
    heard.thread.join(20)
    heard.socket.close()
    return heard, len(made.to_json()), len(batch.body)


def check_headers(heard, single, batch):
    """Exactly these, whatever the machine, its language and its versions are."""
    host = {"host": heard.url.removeprefix("http://"), "accept-encoding": "identity"}
    posted = {**host, "authorization": f"Bearer {'s' * 40}"}
    arrow = "application/vnd.apache.arrow.stream"
    expected = [
        ("GET /v2/manifest HTTP/1.1", host),
        (
            "POST /v2/submissions HTTP/1.1",
            {**posted, "content-type": "application/json", "content-length": str(single)},
        ),
        (
            "POST /v2/batches HTTP/1.1",
            {**posted, "content-type": arrow, "content-length": str(batch)},
        ),
    ]
    found = []
    for first, *lines in heard.heads:
        pairs = [line.split(": ", 1) for line in lines]
        assert len({name.lower() for name, _ in pairs}) == len(pairs)
        found.append((first, {name.lower(): value for name, value in pairs}))
    assert found == expected


@pytest.mark.network
def test_headers_say_nothing_about_the_machine():
    check_headers(*headers_sent(survey()))


@pytest.mark.network
def test_a_user_agent_is_caught(monkeypatch):
    import http.client

    class Telling(http.client.HTTPConnection):
        def request(self, method, url, body=None, headers=(), **more):
            super().request(method, url, body, {**headers, "User-Agent": "anna's laptop"}, **more)

    monkeypatch.setattr(http.client, "HTTPConnection", Telling)
    with pytest.raises(AssertionError):
        check_headers(*headers_sent(survey()))
