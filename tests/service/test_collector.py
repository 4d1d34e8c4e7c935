"""A collector over real HTTP: what it answers, what it refuses, and what it never writes down."""

import asyncio
import contextlib
import functools
import hashlib
import json
import os
import re
import signal
import socket
import sqlite3
import stat
import struct
import threading
import time
import tracemalloc
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import uvicorn
from starlette.requests import Request
from uvicorn.server import ServerState

import floods
from collection_toys import batch, one_question, packed, submission, survey
from collectors import ARROW, JSON, PARTNER_KEY, Collector, problem_of, request_bytes
from command import run
from deniable.collection.survey import survey_of
from deniable.core.tally import Tally
from deniable.errors import InvalidArgument
from deniable.service import analysis
from deniable.service.access import new_token
from deniable.service.app import Service, Settings, Submissions, create_app
from deniable.service.connections import limited_protocol
from deniable.service.encoding import TallyKey
from deniable.service.limits import PART, Limits
from deniable.service.origins import check_origin
from deniable.service.problems import Problem
from deniable.service.run import bind, check_host
from deniable.service.store import open_store
from deniable.service.store.base import hash_token, token_fits
from mutations import mutated
from places import ROOT

pytestmark = pytest.mark.network
TOYS = survey()
ASK = b"GET /v2/manifest HTTP/1.1\r\nHost: x\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked"
MARKER = "telltale-5d1c"
CLIENT = ROOT / "clients" / "js" / "deniable.js"


@functools.cache
def long_manifest():
    """A collection with a long manifest, which takes a second to make."""
    return one_question(60_000, stem="answer ")


def sent(seed):
    return submission(TOYS, np.random.default_rng(seed)).to_json()


def made(folder, name="store.db"):
    """An empty store, and the token of an analyst."""
    store = open_store(str(folder / name), TOYS)
    token = new_token(store, "ada")
    store.close()
    return str(folder / name), token


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """One collector for all tests that do not need another."""
    path, token = made(tmp_path_factory.mktemp("running"))
    with Collector(path) as collector:
        collector.token = token
        assert collector.post(sent(0)) == 201  # estimates need a report
        yield collector


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    """A collector with a key and small limits, behind a proxy."""
    path, _ = made(tmp_path_factory.mktemp("limited"))
    limits = {"single_bytes": 2_000, "batch_bytes": 20_000, "at_once": 4, "batches_at_once": 30_000}
    limits |= {"single_seconds": 1.0, "batch_seconds": 2.0, "batch_pace": 1e6}
    options = {"limits": limits, "key": "k" * 40, "secure": True}
    with Collector(path, **options) as collector:
        yield collector


ALLOWED = {"authorization": "Bearer " + "k" * 40, "x_forwarded_proto": "https"}
PARTNER = {**ALLOWED, "authorization": f"Bearer {PARTNER_KEY}"}


def analyst(collector):
    return {"authorization": f"Bearer {collector.token}"}


# ---- what is counted


def numbers(collector):
    """The reports of each question."""
    answer = collector.ask("GET", "/v2/status", **analyst(collector))
    return {q["name"]: q["reports"]["1"] for q in json.loads(answer[2])["questions"]}


def test_retries_are_counted_once(running):
    body, before = sent(1), numbers(running)
    assert [running.post(body) for _ in range(3)] == [201, 200, 200]
    other = json.loads(body)
    other["reports"]["ever"] = f"{1 - int(other['reports']['ever'], 16):02x}"
    answer = running.ask("POST", "/v2/submissions", json.dumps(other).encode(), content_type=JSON)
    assert (answer[0], problem_of(answer)) == (409, "id-used")
    whole = batch(TOYS, 100)
    assert [running.post(whole.body, "/v2/batches") for _ in range(2)] == [201, 200]
    assert numbers(running) == {name: n + 101 for name, n in before.items()}


def test_many_at_once_are_counted_once(running):
    """The same 40 submissions from 8 threads: 40 times 201 in all."""
    bodies, found = [sent(100 + i) for i in range(40)], []

    def send(seed):
        for place in np.random.default_rng(seed).permutation(len(bodies)):
            found.append(running.post(bodies[place]))

    threads = [threading.Thread(target=send, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (found.count(201), found.count(200), len(found)) == (40, 280, 320)


def test_the_manifest_is_what_its_digest_says(running):
    status, headers, body = running.ask("GET", "/v2/manifest")
    assert status == 200
    assert hashlib.sha256(body).hexdigest() == TOYS.digest == headers["etag"].strip('"')


def test_texts_are_what_their_digest_says(running):
    status, headers, body = running.ask("GET", "/v2/texts")
    assert (status, headers["content-type"]) == (200, JSON)
    assert hashlib.sha256(body).hexdigest() == headers["etag"].strip('"')
    assert json.loads(body)["collection"] == TOYS.digest


@pytest.mark.parametrize("name", ["manifest", "admission", "submissions", "status", "health"])
def test_the_first_version_is_gone(running, name):
    answer = running.ask("GET", f"/v1/{name}")
    assert (answer[0], problem_of(answer)) == (404, "not-found")


def test_a_chart_is_a_vega_lite_document(running):
    running.post(batch(TOYS, 500, seed=7).body, "/v2/batches")
    path = "/v2/estimates/pets?format=chart&most=3&method=unbiased"
    status, headers, body = running.ask("GET", path, **analyst(running))
    assert (status, headers["content-type"]) == (200, JSON)
    spec = json.loads(body)
    assert spec["title"]["text"] == ["pets"]  # a manifest has no words
    assert [len(cells) for cells in spec["usermeta"]["columns"].values()] == [3] * 4
    assert "The 3 most frequent of 20 values are shown." in spec["usermeta"]["caption"]
    assert "config" in spec


def test_estimates_in_every_layout(running):
    running.post(batch(TOYS, 500, seed=7).body, "/v2/batches")
    for layout, kind in (("json", JSON), ("csv", "text/csv; charset=utf-8"), ("arrow", ARROW)):
        path = f"/v2/estimates/way?format={layout}"
        status, headers, body = running.ask("GET", path, **analyst(running))
        assert (status, headers["content-type"]) == (200, kind)
        assert body


def test_only_the_most_frequent_if_that_is_wanted(running):
    running.post(batch(TOYS, 500, seed=7).body, "/v2/batches")

    def values(query):
        body = running.ask("GET", f"/v2/estimates/way?{query}", **analyst(running))[2]
        return json.loads(body)["values"]

    everything = values("")
    assert values("most=1000") == everything
    wanted = sorted(everything, key=lambda row: -row["frequency"])[:2]
    assert values("most=2") == wanted


def test_refusals_are_counted(tmp_path):
    path, token = made(tmp_path)
    with Collector(path, limits={"rate": 20}) as collector:
        headers = {"authorization": f"Bearer {token}"}
        assert collector.ask("GET", "/v2/nothing")[0] == 404
        assert collector.ask("GET", "/v2/submissions")[0] == 405
        assert 429 in [collector.ask("GET", "/v2/manifest")[0] for _ in range(60)]
        time.sleep(0.1)
        text = collector.ask("GET", "/v2/metrics", **headers)[2].decode()
    for kind in ("not-found", "method", "busy"):
        assert f'deniable_refusals_total{{type="{kind}"}}' in text


@pytest.mark.parametrize(
    "query",
    [
        "round=0", "round=2", "round=x", "round=" + "9" * 5_000, "confidence=nan", "confidence=inf",
        "confidence=1", "confidence=x", "method=magic", "method=%00", "simultaneous=maybe",
        "candidates=a", "candidate=a", "candidates=%ff", "format=xml", "methd=unbiased",
        "most=0", "most=-1", "most=x",
    ],
)  # fmt: skip
def test_odd_queries_are_refused(running, query):
    answer = running.ask("GET", f"/v2/estimates/ever?{query}", **analyst(running))
    assert (answer[0], problem_of(answer)) == (422, "invalid-choice"), query


def test_an_estimate_that_others_forget_at_once_is_answered(tmp_path, monkeypatch):
    """With many analysts a remembered estimate may be gone before it is returned."""
    monkeypatch.setattr(analysis, "REMEMBERED", 0)
    store = open_store(str(tmp_path / "s.db"), TOYS)
    store.add([packed(TOYS, submission(TOYS, np.random.default_rng(1)))])
    assert analysis.Analysis(store).estimate(analysis.EstimateQuery("ever")).n == 1
    store.close()


def test_estimates_of_long_texts_are_remembered_within_the_limit(tmp_path, monkeypatch):
    """The texts that analysts ask for are kept with what was found."""
    words = survey_of(
        {
            "title": "Words",
            "epsilon": 2.0,
            "questions": [{"name": "word", "ask": "?", "kind": "text", "candidates": ["tea"]}],
        }
    )
    store = open_store(str(tmp_path / "s.db"), words)
    made = batch(words.collection, 5)
    store.add_batch(bytes.fromhex(made.id), made.body, store.count_batch(made.body))
    found = analysis.Analysis(store)
    monkeypatch.setattr(analysis, "REMEMBERED", 1 << 19)
    found.estimate(analysis.EstimateQuery("word", method="unbiased"))
    tracemalloc.start()
    try:
        for number in range(100):
            texts = ("tea", f"{number}" + "x" * 14_000)
            found.estimate(
                analysis.EstimateQuery("word", method="unbiased", choices=(("candidates", texts),))
            )
        assert tracemalloc.get_traced_memory()[0] < 2 << 19
    finally:
        tracemalloc.stop()
    store.close()


# ---- who may


@pytest.mark.parametrize("path", ["/v2/status", "/v2/metrics", "/v2/estimates/ever"])
@pytest.mark.parametrize("token", [None, "", "Bearer", "Bearer x", "Basic {}", "Bearer {}x", "{}"])
def test_analysts_need_their_token(running, path, token):
    headers = {} if token is None else {"authorization": token.format(running.token)}
    answer = running.ask("GET", path, **headers)
    assert (answer[0], problem_of(answer)) == (401, "no-token")
    assert answer[1]["www-authenticate"] == "Bearer"
    assert running.ask("GET", path, **analyst(running))[0] == 200


def test_a_removed_token_opens_nothing(tmp_path):
    path, token = made(tmp_path)
    with Collector(path, constants={"access.FRESH": 0}) as collector:
        bearer = {"authorization": f"Bearer {token}"}
        assert collector.ask("GET", "/v2/status", **bearer)[0] == 200
        store = open_store(path)
        store.remove_token("ada")
        store.close()
        assert collector.ask("GET", "/v2/status", **bearer)[0] == 401


def test_respondents_need_the_key(limited):
    body = sent(2)
    for wrong in ({}, {"authorization": "Bearer k"}, {"authorization": "k" * 40}):
        headers = {"x_forwarded_proto": "https", "content_type": JSON, **wrong}
        answer = limited.ask("POST", "/v2/submissions", body, **headers)
        assert (answer[0], problem_of(answer)) == (401, "no-key")
    assert limited.post(body, **ALLOWED) == 201


def test_partners_need_a_key_of_their_own(limited):
    """Neither nobody's nor a respondent's key opens what takes a million reports at once."""
    body = batch(TOYS, 10, seed=3).body
    for headers in ({**ALLOWED, "authorization": ""}, ALLOWED):
        answer = limited.ask("POST", "/v2/batches", body, content_type=ARROW, **headers)
        assert (answer[0], problem_of(answer)) == (401, "no-key")
    assert limited.post(sent(12), **PARTNER) == 401
    assert limited.post(body, "/v2/batches", **PARTNER) == 201


def test_without_a_key_of_partners_there_are_no_batches(tmp_path):
    path, token = made(tmp_path)
    with Collector(path, partner_key=None) as collector:
        for bearer in ("", "Bearer", "Bearer None", f"Bearer {token}", f"Bearer {PARTNER_KEY}"):
            body = batch(TOYS, 10).body
            answer = collector.ask(
                "POST", "/v2/batches", body, content_type=ARROW, authorization=bearer
            )
            assert (answer[0], problem_of(answer)) == (401, "no-key")


@pytest.mark.parametrize(
    "key",
    ["", " ", "\n", "a long key\n", " a long key", "a long key\t", "a\nlong\nkey", "short",
     "a" * 1001, "schlüssel", "ключ ключ", "a\x7flong key", "a\0long key"],
)  # fmt: skip
def test_keys_that_no_client_can_send_are_refused_at_the_start(tmp_path, key):
    """And an empty variable must not open what was to be closed."""
    store = open_store(str(tmp_path / "s.db"), TOYS)
    for name, settings in (
        ("DENIABLE_KEY", Settings(key=key)),
        ("DENIABLE_PARTNER_KEY", Settings(partner_key=key)),
    ):
        with pytest.raises(InvalidArgument, match=f"{name}.*printable ASCII") as refused:
            create_app(store, settings)
        assert not key.strip() or key not in str(refused.value)
    store.close()
    assert not token_fits("", [hash_token("")])


def test_two_keys_that_are_equal_are_refused(tmp_path):
    store = open_store(str(tmp_path / "s.db"), TOYS)
    with pytest.raises(InvalidArgument, match="another key"):
        create_app(store, Settings(key="k" * 40, partner_key="k" * 40))
    store.close()


def test_keys_that_are_taken_can_be_sent(tmp_path):
    """With every character that they may have."""
    path, _ = made(tmp_path)
    key = "!" + "".join(map(chr, range(32, 127)))
    with Collector(path, key=key) as collector:
        assert collector.post(sent(1), authorization=f"Bearer {key}") == 201
        assert collector.post(sent(2), authorization=f"Bearer {key[:-1]}") == 401


def test_respondents_learn_at_the_door_what_they_need(running, limited):
    status, headers, body = running.ask("GET", "/v2/admission")
    assert (status, json.loads(body)) == (200, {"needs": "nothing", "open": True})
    assert headers["cache-control"] == "no-store"
    assert running.ask("GET", "/v2/admission", authorization="Bearer any")[0] == 200
    for headers in (ALLOWED, {"x_forwarded_proto": "https"}):
        answer = limited.ask("GET", "/v2/admission", **headers)
        assert (answer[0], json.loads(answer[2])) == (200, {"needs": "key", "open": True})
    for wrong in ("", "Bearer", "Bearer k", PARTNER["authorization"]):
        headers = {"x_forwarded_proto": "https", "authorization": wrong}
        answer = limited.ask("GET", "/v2/admission", **headers)
        assert (answer[0], problem_of(answer)) == (401, "no-key")


HOME = "https://pages.example.org"


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """A collector with names of its own, and pages elsewhere."""
    path, token = made(tmp_path_factory.mktemp("named"))
    options = {"hosts": ["Survey.example.org", "[::1]"], "origins": [HOME, "http://127.0.0.1:9"]}
    with Collector(path, **options) as collector:
        collector.token = token
        yield collector


def test_only_requests_to_a_known_host_are_answered(named):
    """Else a page of a name that is made to point here could read what only this machine may."""
    for host in ("survey.example.org", "SURVEY.example.org:8000", "[::1]:1", "[::1]"):
        assert named.ask("GET", "/v2/manifest", host=host)[0] == 200
        assert named.post(sent(1), host=host) in (200, 201)
    for host in ("127.0.0.1", "example.org", "survey.example.org.evil.org", "", "x:y", "::1"):
        for method, path in (("GET", "/v2/manifest"), ("POST", "/v2/submissions"), ("GET", "/")):
            answer = named.ask(method, path, sent(2), host=host, content_type=JSON)
            assert (answer[0], problem_of(answer)) == (421, "other-host")
    twice = ASK.replace(b"Host: x", b"Host: survey.example.org\r\nHost: evil.org")
    assert named.raw(twice).startswith(b"HTTP/1.1 421")
    assert named.raw(ASK.replace(b"Host: x\r\n", b"")).startswith(b"HTTP/1.1 421")


@pytest.mark.parametrize("host", ["", "https://example.org", "example.org:80", "a b", "::1", "*"])
def test_odd_names_of_hosts_are_refused_at_the_start(tmp_path, host):
    store = open_store(str(tmp_path / "s.db"), TOYS)
    with pytest.raises(InvalidArgument, match="--allow-host"):
        create_app(store, Settings(hosts=(host,)))
    store.close()


def crossing(collector, method, path, origin, **headers):
    """The status and the headers about origins of a request from a page."""
    usual = {"host": "[::1]", "origin": origin, "content_type": JSON}
    status, found, _ = collector.ask(method, path, sent(5), **{**usual, **headers})
    return status, {name: found[name] for name in found if name.startswith("access-control")}


def test_pages_of_a_known_origin_may_take_part(named):
    wanted = {
        "access_control_request_method": "POST",
        "access_control_request_headers": "content-type,authorization",
    }
    for path, method in (("manifest", "GET"), ("admission", "GET"), ("submissions", "POST")):
        status, told = crossing(named, method, f"/v2/{path}", HOME)
        assert status in (200, 201)
        assert told["access-control-allow-origin"] == HOME
        status, told = crossing(named, "OPTIONS", f"/v2/{path}", HOME, **wanted)
        assert status == 200
        assert told["access-control-allow-origin"] == HOME
        assert told["access-control-allow-methods"] == "GET, POST"
        allowed = told["access-control-allow-headers"].lower()
        assert {"content-type", "authorization"} <= set(allowed.split(", "))
        assert "access-control-allow-credentials" not in told
    refused = crossing(named, "POST", "/v2/submissions", HOME, content_type="text/plain")
    assert (refused[0], refused[1]["access-control-allow-origin"]) == (415, HOME)


def test_what_browsers_ask_beforehand_passes_the_gate(named):
    wanted = {"access_control_request_method": "POST", "host": "evil.org"}
    assert crossing(named, "OPTIONS", "/v2/submissions", HOME, **wanted) == (421, {})


def test_nothing_is_told_to_other_origins_or_elsewhere(named, running):
    wanted = {"access_control_request_method": "POST"}
    for origin in ("https://evil.org", f"{HOME}:444", HOME.upper(), f"{HOME}.evil.org", "null", ""):
        for path in ("/v2/manifest", "/v2/admission", "/v2/submissions"):
            assert crossing(named, "OPTIONS", path, origin, **wanted) == (405, {})
        assert crossing(named, "GET", "/v2/manifest", origin) == (200, {})
    for path in ("/v2/status", "/v2/estimates/ever", "/v2/batches", "/v2/metrics", "/", "/answer"):
        for method in ("GET", "OPTIONS"):
            assert crossing(named, method, path, HOME, **analyst(named))[1] == {}
    assert crossing(running, "GET", "/v2/manifest", HOME) == (200, {})


@pytest.mark.parametrize(
    "origin",
    ["", "*", "null", "example.org", "https://", "https://*.example.org", "https://example.org/",
     "https://example.org/page", "https://Example.org", "https://example.org:443", "http://example.org",
     "https://a@example.org", "https://example.org:x", "ftp://example.org", "https://exämple.org",
     " https://example.org", "https://[::1"],
)  # fmt: skip
def test_odd_origins_are_refused_at_the_start(tmp_path, origin):
    store = open_store(str(tmp_path / "s.db"), TOYS)
    with pytest.raises(InvalidArgument, match="--allow-origin"):
        create_app(store, Settings(origins=(origin,)))
    for good in (HOME, "https://example.org:8443", "http://localhost:3000", "http://[::1]:5"):
        check_origin(good)
    store.close()


def test_the_command_takes_hosts_and_origins(tmp_path):
    survey_at = tmp_path / "survey.toml"
    run("init", survey_at, "--example")
    for option, value in (("--allow-host", "a:1"), ("--allow-origin", "*")):
        found = run("serve", survey_at, "--port", "0", option, value, code=2)
        assert option in found.stderr


def test_bad_requests_fill_no_log(tmp_path):
    """A line a second of each kind, whatever comes."""
    path, _ = made(tmp_path)
    with Collector(path) as collector:
        start = time.monotonic()
        for _ in range(100):
            collector.raw(b"GET\r\n\r\n")
            collector.raw(ASK.replace(b"Host: x", b"Upgrade: websocket\r\nConnection: Upgrade"))
        seconds = time.monotonic() - start
        lines = collector.stop()[1].splitlines()
    assert 1 <= len(lines) <= 2 + seconds


def test_there_are_files_for_all_connections(tmp_path):
    """The usual limit of a system is 1,024; where it cannot be raised, fewer connections are."""
    path, _ = made(tmp_path)
    for limit, most in (("ulimit -S -n 300", 400), ("ulimit -n 250", 50)):
        before = ("sh", "-c", f'{limit}; exec "$@"', "sh")
        server = {"connections": 400, "idle": 20.0}
        with (
            Collector(path, before=before, server=server) as collector,
            contextlib.ExitStack() as stack,
        ):
            at = ("127.0.0.1", collector.port)
            for _ in range(450):
                stack.enter_context(socket.create_connection(at, 10))
            assert collector.ask("GET", "/v2/health")[0] == 200
            assert most <= files_of(collector) < most + 100
            assert "out of system resource" not in collector.stop()[1]


def test_plain_requests_are_refused_where_a_proxy_encrypts(limited):
    for header in ({}, {"x_forwarded_proto": "http"}, {"x_forwarded_proto": "http, https"}):
        answer = limited.ask("GET", "/v2/manifest", **header)
        assert (answer[0], problem_of(answer)) == (403, "insecure")
    for twice in (("http", "https"), ("https", "http"), ("https", "https")):
        lines = "".join(f"X-Forwarded-Proto: {value}\r\n" for value in twice)
        request = f"GET /v2/manifest HTTP/1.1\r\nHost: x\r\n{lines}\r\n"
        assert limited.raw(request.encode()).startswith(b"HTTP/1.1 403")
    assert limited.ask("GET", "/v2/manifest", x_forwarded_proto="https")[0] == 200


def test_only_this_machine_is_listened_to_without_encryption():
    """Behind a proxy, too: the header that it sends can be sent by anybody who passes it by."""
    for proxied in (False, True):
        check_host("127.0.0.1", proxied=proxied, plain=False)
        check_host("0.0.0.0", proxied=proxied, plain=True)
        with pytest.raises(InvalidArgument, match="--plain-http"):
            check_host("0.0.0.0", proxied=proxied, plain=False)


# ---- limits


@pytest.mark.parametrize("path", ["/v2/submissions", "/v2/batches"])
def test_long_bodies_are_not_read(limited, path):
    kind, headers = (JSON, ALLOWED) if path == "/v2/submissions" else (ARROW, PARTNER)
    headers = {**headers, "content_type": kind}
    answer = limited.ask("POST", path, b"x" * 20_001, **headers)
    assert (answer[0], problem_of(answer)) == (413, "too-large")
    head = request_bytes(b"", path, kind).replace(b"Content-Length: 0", b"Content-Length: 9999999")
    extra = "X-Forwarded-Proto: https\r\n\r\n"
    if kind == JSON:
        extra = f"Authorization: {ALLOWED['authorization']}\r\n{extra}"
    answer = exchange(limited, head[:-2] + extra.encode())  # nothing of the body was sent
    assert answer.startswith(b"HTTP/1.1 413")
    chunked = re.sub(rb"Content-Length: \d+", b"Transfer-Encoding: chunked", head)[:-2]
    chunk = b"%x\r\n%s\r\n" % (5_000, b"x" * 5_000)
    answer = exchange(limited, chunked + extra.encode() + chunk * 5)
    assert answer.startswith(b"HTTP/1.1 413")


def exchange(collector, data, seconds=10):
    """The first bytes of the answer to bytes, on a connection that stays open."""
    with socket.create_connection(("127.0.0.1", collector.port), timeout=seconds) as connection:
        connection.sendall(data)
        return connection.recv(1 << 16)


@pytest.mark.parametrize(
    "kind", [None, "", "text/plain", "application/jsonp", "application/json, x", ARROW]
)
def test_other_types_are_refused(running, kind):
    headers = {} if kind is None else {"content_type": kind}
    answer = running.ask("POST", "/v2/submissions", sent(3), **headers)
    assert (answer[0], problem_of(answer)) == (415, "media-type")


def test_parameters_of_the_type_do_not_matter(running):
    body = sent(4)
    assert running.post(body, content_type="Application/JSON; charset=utf-8") == 201


def test_the_rate_is_limited_and_recovers(tmp_path):
    path, _ = made(tmp_path)
    with Collector(path, limits={"rate": 20}) as collector:
        answers = [collector.ask("GET", "/v2/manifest") for _ in range(60)]
        busy = [answer for answer in answers if answer[0] == 429]
        assert {answer[0] for answer in answers} == {200, 429}
        assert {problem_of(answer) for answer in busy} == {"busy"}
        assert {answer[1]["retry-after"] for answer in busy} == {"1"}
        time.sleep(0.1)
        assert collector.ask("GET", "/v2/manifest")[0] == 200


def half(path="/v2/batches", kind=ARROW, size=15_000, first=b"x"):
    head = request_bytes(b"", path, kind).replace(
        b"Content-Length: 0", b"Content-Length: %d" % size
    )
    extra = "X-Forwarded-Proto: https\r\n\r\n"
    if kind == JSON:
        extra = f"Authorization: {ALLOWED['authorization']}\r\n{extra}"
    return head[:-2] + extra.encode() + first


def begin(connection, data):
    """Send a request that is not whole; its body is waited for when this returns."""
    connection.settimeout(10)
    head, end, first = data.partition(b"\r\n\r\n")
    connection.sendall(head + b"\r\nExpect: 100-continue" + end)
    assert connection.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.sendall(first)


def test_bodies_that_do_not_end_keep_nobody_out(limited):
    """More of them than there are slots: others are counted meanwhile, and the slow are let go."""
    stalled = [socket.create_connection(("127.0.0.1", limited.port)) for _ in range(8)]
    for connection in stalled:
        begin(connection, half("/v2/submissions", JSON, 1_500))
    assert limited.post(sent(20), **ALLOWED) == 201
    for connection in stalled:
        connection.settimeout(10)
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 429")
        connection.close()


def test_the_body_that_comes_longest_gives_way_whole(tmp_path):
    """Its own last bytes find no room: it is told to come again, not that it was malformed."""
    path, _ = made(tmp_path)
    body, at_once = sent(21), 2_000
    half = len(body) // 2
    filling = at_once - 2 * PART - half - 10
    with Collector(path, limits={"singles_at_once": at_once}) as collector:
        at = ("127.0.0.1", collector.port)
        with socket.create_connection(at, 10) as first, socket.create_connection(at, 10) as other:
            begin(first, request_bytes(body)[:-half])
            begin(other, request_bytes(b" " * at_once)[: filling - at_once])
            time.sleep(0.2)
            first.sendall(body[-half:])
            assert first.recv(1 << 16).startswith(b"HTTP/1.1 429")
        assert collector.post(body) == 201


def test_few_are_worked_on_at_once(tmp_path):
    """While the store waits, two are inside; a third is told to come again, health is answered."""
    path, _ = made(tmp_path)
    with Collector(path, limits={"at_once": 2}) as collector, contextlib.ExitStack() as stack:
        assert collector.post(sent(1)) == 201
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        inside = []
        for seed in (2, 3):
            at = ("127.0.0.1", collector.port)
            inside.append(stack.enter_context(socket.create_connection(at, 20)))
            inside[-1].sendall(request_bytes(sent(seed)))
            time.sleep(0.2)
        answer = collector.ask("POST", "/v2/submissions", sent(4), content_type=JSON)
        assert (answer[0], problem_of(answer)) == (429, "busy")
        assert collector.ask("GET", "/v2/health")[0] == 200
        other.close()
        for connection in inside:
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 201")
        assert collector.post(sent(4)) == 201


@pytest.mark.parametrize(
    ("path", "kind", "seconds"), [("/v2/submissions", JSON, 1), ("/v2/batches", ARROW, 2)]
)
def test_a_body_that_only_trickles_is_let_go(limited, path, kind, seconds):
    """The whole body has a deadline: a byte now and then does not put it off."""
    start = time.monotonic()
    with socket.create_connection(("127.0.0.1", limited.port)) as connection:
        connection.sendall(half(path, kind, 1_500))
        connection.settimeout(0.1)
        answer = b""
        while not answer and time.monotonic() - start < 20:
            connection.sendall(b"x")
            with contextlib.suppress(TimeoutError):
                answer = connection.recv(1 << 16)
    assert answer.startswith(b"HTTP/1.1 429")
    assert seconds <= time.monotonic() - start < seconds + 5


def test_batches_leave_room_for_single_submissions(limited):
    stalled = [socket.create_connection(("127.0.0.1", limited.port)) for _ in range(2)]
    for connection in stalled:
        connection.sendall(half(first=b"x" * 14_990))
    time.sleep(0.3)
    assert exchange(limited, half(first=b"x" * 14_000)).startswith(b"HTTP/1.1 429")
    assert limited.post(sent(15), **ALLOWED) == 201
    for connection in stalled:
        connection.close()
    time.sleep(0.2)


def test_the_bytes_of_all_bodies_are_limited(limited):
    stalled = [socket.create_connection(("127.0.0.1", limited.port)) for _ in range(2)]
    for connection in stalled:
        connection.sendall(half(first=b"x" * 14_000))
    time.sleep(0.3)
    answer = exchange(limited, half(first=b"x" * 14_000))
    assert answer.startswith(b"HTTP/1.1 429")
    for connection in stalled:
        connection.close()
    time.sleep(0.2)
    assert limited.post(sent(5), **ALLOWED) == 201
    assert limited.post(batch(TOYS, 50).body, "/v2/batches", **PARTNER) == 201


# ---- HTTP oddities


def test_chunked_bodies_are_read(running):
    body = sent(6)
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (body[:1], body[1:70], body[70:]))
    head = request_bytes(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    assert exchange(running, head + chunks + b"0\r\n\r\n").startswith(b"HTTP/1.1 201")
    assert running.post(body) == 200


def test_a_body_byte_by_byte_is_read(running):
    body = sent(7)
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in request_bytes(body):
            connection.sendall(bytes([byte]))
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 201")


def test_no_body_is_malformed(running):
    head = request_bytes(b"").replace(b"Content-Length: 0\r\n", b"")
    assert exchange(running, head).startswith(b"HTTP/1.1 400")


def test_a_body_that_ends_early_is_not_counted(running):
    body = sent(8)
    running.raw(request_bytes(body)[:-1], wait=False)
    running.raw(request_bytes(body)[:-20])
    assert running.post(body) == 201


@pytest.mark.parametrize(
    "data",
    [
        b"\0" * 100, b"\xff" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 100,
        b"GET /v2/manifest HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 20_000 + b"\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /v2/submissions HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /v2/submissions HTTP/1.1\r\nContent-Length: " + b"9" * 50 + b"\r\n\r\n",
        b"POST /v2/submissions HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nabcdefg",
        b"POST /v2/submissions HTTP/1.1\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /v2/manifest HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    ],
    ids=range(12),
)  # fmt: skip
def test_broken_http_hurts_nobody(running, data):
    answer = running.raw(data)
    assert not re.match(rb"HTTP/1.. 5", answer)
    assert running.ask("GET", "/v2/health")[0] == 200


def test_other_methods_and_places(running):
    for method, path, status, kind in (
        ("GET", "/v2/submissions", 405, "method"),
        ("DELETE", "/v2/manifest", 405, "method"),
        ("POST", "/v2/manifest", 405, "method"),
        ("GET", "/v2/nothing", 404, "not-found"),
        ("POST", "/v2/submissions/", 404, "not-found"),
        ("GET", "/v2/../etc/passwd", 404, "not-found"),
        ("GET", "/v2/estimates/%00", 422, "invalid-choice"),
    ):
        headers = {"content_type": JSON, **analyst(running)}
        answer = running.ask(method, path, b"{}" if method == "POST" else b"", **headers)
        assert (answer[0], problem_of(answer)) == (status, kind), path
    status, headers, body = running.ask("HEAD", "/v2/manifest")
    assert (status, body) == (200, b"")
    assert int(headers["content-length"]) == len(TOYS.manifest)


def test_a_key_that_comes_twice_is_malformed(running):
    body = sent(9)
    doubled = body.replace(b'"round":1', b'"round":1,"round":1')
    assert [running.post(doubled), running.post(body)] == [400, 201]


@pytest.mark.parametrize("coding", ["gzip", "identity", ""])
def test_encoded_bodies_are_refused(running, coding):
    """A few bytes of gzip can stand for any number, and nothing here would read them."""
    for path, kind in (("/v2/submissions", JSON), ("/v2/batches", ARROW)):
        headers = {"content_type": kind, "authorization": f"Bearer {PARTNER_KEY}"}
        answer = running.ask("POST", path, sent(3), content_encoding=coding, **headers)
        assert (answer[0], problem_of(answer)) == (415, "media-type")


def test_answers_do_not_wait_for_the_client():
    """Without TCP_NODELAY an answer in two parts takes 40 ms on any network."""
    with bind("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        connection, _ = listening.accept()
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        connection.close()


def test_connections_that_ask_nothing_are_closed(tmp_path):
    """Also one that is answered and then silent, and one that sends a head byte by byte."""
    path, _ = made(tmp_path)
    with Collector(path, server={"idle": 0.5}) as collector:
        at = ("127.0.0.1", collector.port)
        with (
            socket.create_connection(at, 10) as silent,
            socket.create_connection(at, 10) as served,
            socket.create_connection(at, 10) as slow,
        ):
            served.sendall(request_bytes(sent(1)))
            assert served.recv(1 << 16).startswith(b"HTTP/1.1 201")
            start = time.monotonic()
            with contextlib.suppress(OSError):
                for byte in b"POST / HTTP/1.1\r\nHost: " + b"x" * 1000:
                    slow.sendall(bytes([byte]))
                    time.sleep(0.02)
            assert time.monotonic() - start < 15
            assert silent.recv(1) == b""
            assert b"201" not in _rest(served)


def test_the_waiting_make_room_and_the_answered_stay(tmp_path):
    """Whoever is waited for longest goes, also in the middle of a body; a whole request stays."""
    path, _ = made(tmp_path)
    with Collector(path, server={"connections": 2}) as collector, contextlib.ExitStack() as stack:

        def join():
            at = ("127.0.0.1", collector.port)
            return stack.enter_context(socket.create_connection(at, 20))

        assert collector.post(sent(1)) == 201
        slow, idle = join(), join()
        begin(slow, request_bytes(sent(2))[:-1])
        assert collector.post(sent(3)) == 201  # in the place of the one that sent nothing
        assert idle.recv(1) == b""
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        busy = []
        for seed in (4, 5):
            busy.append(join())
            busy[-1].sendall(request_bytes(sent(seed)))
            time.sleep(0.2)
        assert slow.recv(1) == b""
        assert join().recv(1) == b""  # now all are busy
        other.close()
        for connection in busy:
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 201")


@pytest.fixture(scope="module")
def wordy(tmp_path_factory):
    """A store with a manifest of 0.9 MB, and reports for each of 60,000 answers."""
    path = str(tmp_path_factory.mktemp("wordy") / "store.db")
    store = open_store(path, long_manifest())
    counts = np.random.default_rng(4).integers(0, 9, 60_000)
    tally = Tally.of_counts(long_manifest().reports[0].mechanism, counts, int(counts.sum()))
    store.add_batch(bytes(16), b"", {TallyKey("q"): tally})
    store.add_token("ada", hash_token("a" * 40))
    store.close()
    return path


def test_those_who_do_not_read_are_let_go(wordy):
    """An answer longer than what the system keeps for a client must not wait for it for ever."""
    with (
        Collector(wordy, server={"connections": 2, "idle": 1.0}) as collector,
        contextlib.ExitStack() as stack,
    ):
        assert collector.ask("GET", "/v2/health")[0] == 200  # now it has all its files open
        before = files_of(collector)
        for _ in range(6):
            with contextlib.suppress(OSError):
                deaf = stack.enter_context(socket.socket())
                deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                deaf.connect(("127.0.0.1", collector.port))
                deaf.sendall(ASK)
            time.sleep(0.05)
            assert files_of(collector) <= before + 3
        wait_until(lambda: files_of(collector) <= before)
        assert collector.ask("GET", "/v2/health")[0] == 200


def test_who_reads_slowly_gets_everything(wordy):
    """It takes several times as long as a connection may be idle."""
    with Collector(wordy, server={"idle": 0.5}) as collector, socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", collector.port))
        slow.sendall(ASK)
        slow.settimeout(10)
        length, start = 0, time.monotonic()
        while part := slow.recv(1 << 14):
            length += len(part)
            if time.monotonic() - start < 2:
                time.sleep(0.02)
    assert time.monotonic() - start > 1.5
    assert length > len(long_manifest().manifest)


def test_one_thing_is_asked_at_a_time(running):
    """Whoever sends more before the answer gets the first answer and no other; later is fine."""
    at = ("127.0.0.1", running.port)
    with socket.create_connection(at, 10) as hasty, socket.create_connection(at, 10) as patient:
        hasty.sendall(ASK * 3)
        found = b""
        with contextlib.suppress(ConnectionResetError):
            while part := hasty.recv(1 << 16):
                found += part
        assert found.count(b"HTTP/1.1 ") <= 1
        for _ in range(3):
            patient.sendall(ASK)
            assert patient.recv(1 << 16).startswith(b"HTTP/1.1 200")


@pytest.fixture(scope="module")
def flooded(wordy):
    """A collector at a tenth of the usual size."""
    with Collector(wordy, limits={"at_once": 100}, server={"connections": 105}) as collector:
        rng = np.random.default_rng(1)
        collector.bodies = iter(lambda: submission(long_manifest(), rng).to_json(), None)
        assert collector.post(next(collector.bodies)) == 201
        yield collector


def test_an_estimate_of_very_many_answers_keeps_nobody_waiting(flooded):
    """It is computed, written and sent in pieces: 8 MB, and others are served meanwhile."""
    honest = floods.Honest(flooded.port, flooded.bodies, pause=0.01)
    honest.start()
    status, _, body = flooded.ask("GET", "/v2/estimates/q", authorization="Bearer " + "a" * 40)
    honest.end()
    assert status == 200
    assert len(json.loads(body)["values"]) == 60_000
    assert max(honest.seconds) < 1


def test_estimates_that_are_not_read_are_few(wordy):
    """Each is kept until it was read: 2.9 MB of 60,000 answers."""
    path, token = "/v2/estimates/q?method=unbiased", {"authorization": "Bearer " + "a" * 40}
    asking = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {token['authorization']}\r\n\r\n"
    with Collector(wordy, constants={"responses.SENT": 5_000_000}) as collector:
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.connect(("127.0.0.1", collector.port))
            deaf.sendall(asking.encode())
            assert deaf.recv(12) == b"HTTP/1.1 200"
            assert problem_of(collector.ask("GET", path, **token)) == "busy"
            assert collector.ask("GET", f"{path}&most=5", **token)[0] == 200
        deadline = time.monotonic() + 10
        while (status := collector.ask("GET", path, **token)[0]) == 429:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert status == 200


@pytest.mark.parametrize(
    ("attack", "growth"),
    [
        (floods.trailers(4, 2_000_000), 20),
        (floods.trailers(4, 8_000_000, lines=False), 20),
        (floods.pipelines(20, 250_000), 30),
        (floods.deaf(100, 0.5), 30),
        (floods.heads(100, 62_000, 0.5), 30),
        (floods.wide_paths(100, 62_000, 0.5), 15),
        (floods.slow_bodies(150, 3), 30),
        (floods.slow_bodies(60, 2, size=1_000_000, first=900_000), 45),
    ],
    ids=["trailers", "a trailer", "pipelined", "deaf", "heads", "paths", "slow", "slow and large"],
)
def test_floods_take_neither_memory_nor_time(flooded, attack, growth):
    """At a tenth of the size of benchmarks/attacks_http.py; a busy machine may add to the delay."""
    found = floods.suffered(flooded, attack, flooded.bodies)
    assert found["growth_mb"] < growth, found
    assert found["kept"] >= 1, found
    assert found["slowest_s"] < 3, found


def test_bodies_in_crumbs_are_read_in_sips():
    """A chunk of one byte takes as long as a hundred bytes of a body that comes in one piece."""

    async def sizes(*chunks):
        config = uvicorn.Config(Submissions(None, endless), http=limited_protocol(5, 5.0))
        one = config.http(config, ServerState(), {})
        one.connection_made(Mock(get_extra_info=Mock(return_value=None)))
        found = []
        for data in (request_bytes(b"").replace(b"Content-Length: 0", CHUNKED), *chunks):
            place = one.get_buffer(-1)
            found.append(len(place))
            place[: len(data)] = data
            one.buffer_updated(len(data))
        one.connection_lost(None)
        return [*found, len(one.get_buffer(-1))]

    async def endless(scope, receive):
        await asyncio.Event().wait()

    large = b"3e8\r\n" + b" " * 1_000 + b"\r\n"
    assert asyncio.run(sizes(large * 10, large * 10))[-1] > 16_000
    assert asyncio.run(sizes(b"1\r\n \r\n" * 1_000, large))[-2:] == [1_024, 1_024]


def test_a_head_without_end_is_not_read(running):
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        with pytest.raises(OSError, match=r"reset|pipe"):
            connection.sendall((b"A: " + b"b" * 1_000 + b"\r\n") * 50_000)


@pytest.mark.parametrize(
    ("target", "more", "status"),
    [
        (b"/v2/health?" + b"a" * 14_000, b"", b"200"),
        (b"/v2/health", b"a: " + b"b" * 16_000 + b"\r\n", b"200"),
        (b"/v2/health", b"a: " + b"b" * 16_384 + b"\r\n", b""),
        (b"/v2/health?" + b"a" * 16_384, b"", b""),
        (b"/" + b"a" * 1_000, b"", b"404"),
        (b"/" + b"a" * 1_024, b"", b"400"),
    ],
)
def test_heads_have_the_length_that_is_stated(running, target, more, status):
    """However many parts they come in."""
    head = b"GET " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + more + b"\r\n"
    for first in (0, 900, 9_000, 16_000):
        with socket.create_connection(("127.0.0.1", running.port), timeout=10) as connection:
            with contextlib.suppress(OSError):
                connection.sendall(head[:first])
                time.sleep(0.05 if first else 0)
                connection.sendall(head[first:])
            answer = b""
            with contextlib.suppress(ConnectionError):
                answer = connection.recv(1 << 16)
            assert answer[9:12] == status


def test_clients_that_leave_before_the_answer_are_no_news(tmp_path):
    """A reset while an answer is on its way fills no log."""
    path, _ = made(tmp_path)
    asks = b"GET /v2/manifest HTTP/1.1\r\nHost: x\r\n\r\n" * 20
    with Collector(path) as collector:
        for _ in range(100):
            with socket.create_connection(("127.0.0.1", collector.port), 10) as connection:
                reset = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                connection.sendall(asks)
        assert collector.ask("GET", "/v2/health")[0] == 200
        assert collector.stop() == ("", "")


def files_of(collector):
    """How many files and connections are open."""
    return len(list(Path(f"/proc/{collector.pid}/fd").iterdir()))


def wait_until(true, seconds=20):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def _rest(connection):
    """What still comes until the other side closes."""
    parts = []
    while part := connection.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


# ---- failures of the store


def test_a_damaged_store_is_unavailable(tmp_path):
    """Not a crash, and the reason is in the log, not in the answer."""
    path, token = made(tmp_path)
    with Collector(path) as collector:
        assert collector.post(sent(1)) == 201
        with sqlite3.connect(path) as connection:
            connection.execute("ALTER TABLE tallies RENAME TO lost")
        connection.close()
        answer = collector.ask("POST", "/v2/submissions", sent(2), content_type=JSON)
        assert (answer[0], problem_of(answer)) == (503, "unavailable")
        assert b"tallies" not in answer[2]
        with sqlite3.connect(path) as connection:
            connection.execute("ALTER TABLE lost RENAME TO tallies")
        connection.close()
        assert collector.post(sent(2)) == 201
        text = collector.ask("GET", "/v2/metrics", authorization=f"Bearer {token}")[2]
        assert b'deniable_refusals_total{type="unavailable"} 1' in text
        assert "no such table: tallies" in collector.stop()[1]


def test_a_stalled_client_does_not_keep_a_collector_from_ending(tmp_path):
    path, _ = made(tmp_path)
    with Collector(path, server={"timeout_graceful_shutdown": 1}) as collector:
        with socket.create_connection(("127.0.0.1", collector.port)) as connection:
            begin(connection, half())
            start = time.monotonic()
            collector.stop()
        assert time.monotonic() - start < 15
        assert collector.process.returncode in (0, -15)  # by choice, not by force


def test_who_waits_when_a_collector_ends_is_told_to_come_again(tmp_path):
    """Any other answer than 503 would be final, and the submission may be counted."""
    path, _ = made(tmp_path)
    with Collector(path, server={"timeout_graceful_shutdown": 1}) as collector:
        assert collector.post(sent(1)) == 201
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with socket.create_connection(("127.0.0.1", collector.port), 20) as connection:
            connection.sendall(request_bytes(sent(2)))
            time.sleep(0.3)
            os.kill(collector.pid, signal.SIGTERM)
            answer = connection.recv(1 << 16)
        other.close()
        assert answer.startswith(b"HTTP/1.1 503")
        assert "Traceback" not in collector.stop()[1]


# ---- what is never written


def test_nothing_about_clients_is_written_down(tmp_path):
    """Headers, addresses and broken bodies leave no trace in the output or in the store's files."""
    path, token = made(tmp_path)
    with Collector(path) as collector:
        headers = {
            "user_agent": MARKER, "x_forwarded_for": MARKER, "cookie": MARKER, "referer": MARKER,
            "forwarded": f"for={MARKER}",
        }  # fmt: skip
        assert collector.post(sent(1), **headers) == 201
        assert collector.post(b'{"' + MARKER.encode() + b'":1}', **headers) == 400
        assert collector.ask("GET", f"/v2/{MARKER}?{MARKER}", **headers)[0] == 404
        collector.ask("GET", "/v2/status", authorization=f"Bearer {MARKER}", **headers)
        status = collector.ask("GET", "/v2/status", authorization=f"Bearer {token}", **headers)[0]
        assert status == 200
        collector.raw(f"BAD {MARKER}\r\n\r\n".encode())
        files = {name: file.read_bytes() for name, file in _files(tmp_path)}
        out, err = collector.stop()
    files |= {name: file.read_bytes() for name, file in _files(tmp_path)}
    text = out + err
    assert MARKER not in text
    assert "127.0.0.1" not in text
    assert token not in text
    for content in files.values():
        assert MARKER.encode() not in content
        assert b"127.0.0.1" not in content
        assert token.encode() not in content


@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
def test_only_the_owner_reads_the_store_and_its_copies(tmp_path):
    before = os.umask(0o022)
    try:
        path, _ = made(tmp_path)
        store = open_store(path)
        store.add([])
        new_token(store, "bo")
        store.backup(str(tmp_path / "copy.db"))
        modes = {name: stat.S_IMODE(file.stat().st_mode) for name, file in _files(tmp_path)}
        store.close()
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(["store.db", "store.db-wal", "store.db-shm", "copy.db"], 0o600)


def _files(folder):
    return [(path.name, path) for path in folder.iterdir() if path.is_file()]


def test_memory_stays_flat(running):
    """Refused and accepted batches leave nothing behind: less than 40 MB after 150 MB."""
    body = batch(TOYS, 200_000).body
    running.post(body, "/v2/batches")
    running.post(body[:-9], "/v2/batches")
    before = running.memory
    for _ in range(60):
        assert running.post(body, "/v2/batches") == 200
        assert running.post(body[:-9], "/v2/batches") in (200, 400, 409)
    assert running.memory - before < 40 << 20


# ---- the OpenAPI document


def test_the_document_is_sound_and_complete(running):
    schemathesis = pytest.importorskip("schemathesis")
    document = json.loads(running.ask("GET", "/v2/openapi.json")[2])
    jsonschema_rs = pytest.importorskip("jsonschema_rs")
    jsonschema_rs.meta.validate(document["components"]["schemas"]["Submitted"])
    schemathesis.openapi.from_dict(document).validate()
    good = json.loads(sent(1))
    validator = jsonschema_rs.validator_for(document["components"]["schemas"]["Submitted"])
    assert validator.is_valid(good)
    assert not validator.is_valid({**good, "round": 2})


def test_batches_are_counted_one_at_a_time(tmp_path, monkeypatch):
    """Each takes several times its length in memory while it is counted."""
    inside, most = [], []

    def slow(self, body):
        inside.append(body)
        most.append(len(inside))
        time.sleep(0.05)
        inside.remove(body)
        raise Problem("malformed", "counted")

    monkeypatch.setattr("deniable.service.intake.Intake.batch", slow)
    headers = [
        (b"content-type", ARROW.encode()),
        (b"authorization", f"Bearer {PARTNER_KEY}".encode()),
    ]

    async def send(service, number):
        async def receive():
            return {"type": "http.request", "body": bytes([number])}

        with pytest.raises(Problem, match="counted"):
            await service.submit_batch(Request({"type": "http", "headers": headers}, receive))

    async def send_all():
        service = Service(
            open_store(str(tmp_path / "s.db"), TOYS), Settings(partner_key=PARTNER_KEY)
        )
        await asyncio.gather(*(send(service, number) for number in range(4)))
        service.close()

    asyncio.run(send_all())
    assert most == [1, 1, 1, 1]


def test_generated_requests_get_documented_answers(tmp_path):
    """Schemathesis: no 5xx, and only statuses and media types that the document names."""
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st

    store = open_store(str(tmp_path / "s.db"), TOYS)
    token = new_token(store, "ada")
    app = create_app(store, Settings(Limits(rate=1e9), partner_key=PARTNER_KEY))
    whole = [batch(TOYS, 3).body]
    streams = st.sampled_from(whole) | mutated(whole) | st.binary()
    schemathesis.openapi.media_type(ARROW, streams)
    schema = schemathesis.openapi.from_asgi("/v2/openapi.json", app)
    from schemathesis import checks as known

    checks = [
        known.not_a_server_error, known.status_code_conformance, known.content_type_conformance,
        known.response_schema_conformance,
    ]  # fmt: skip
    operations = [result.ok() for result in schema.get_all_operations()]
    assert len(operations) >= 7  # this document need not describe itself
    for operation in operations:

        @settings(max_examples=25, suppress_health_check=list(HealthCheck), database=None)
        @given(operation.as_strategy())
        def answered(case):
            key = PARTNER_KEY if case.path == "/v2/batches" else token
            headers = {"Authorization": f"Bearer {key}"}
            case.call_and_validate(headers=headers, checks=checks)

        answered()
    assert store.verify() == []
