"""HTTP of the Python client, against servers that are slow, odd or hostile."""

import os
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from deniable.collection import transport
from deniable.collection.transport import Transport
from deniable.errors import InvalidArgument, Refused, StoreUnavailable

pytestmark = pytest.mark.network
OK = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"


class Server:
    """Answers each request with what ``reply`` makes of its body; notes who sent it."""

    def __init__(self, reply):
        self.reply, self.seen, self.lines, self.ended = reply, [], [], threading.Event()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            try:
                connection, sender = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection, sender), daemon=True).start()

    def serve(self, connection, sender):
        with connection, connection.makefile("rb") as lines:
            while line := lines.readline():
                length = 0
                while (line := lines.readline().lower()) not in (b"\r\n", b""):
                    self.lines.append(line)
                    if line.startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                body = lines.read(length)
                self.seen.append((body, sender))
                try:
                    for part in self.reply(body):
                        connection.sendall(part)
                except OSError:
                    return


@pytest.fixture
def serving(monkeypatch):
    monkeypatch.setattr(transport, "FIRST_PAUSE", 0.0)
    servers = []

    def serve(reply):
        servers.append(Server(reply))
        return servers[-1]

    yield serve
    for server in servers:
        server.ended.set()
        server.socket.close()


# ---- addresses


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://example.org", "https://example.org:443"),
        ("HTTPS://Example.ORG.:443/a/", "https://example.org:443/a"),
        ("https://bücher.example", "https://xn--bcher-kva.example:443"),
        ("https://XN--Bcher-kva.example", "https://xn--bcher-kva.example:443"),
        ("http://[::1]", "http://[::1]:80"),
        ("https://[2001:DB8:0::1]/x", "https://[2001:db8::1]:443/x"),
        ("http://127.0.0.1:8000///", "http://127.0.0.1:8000"),
        ("http://localhost.:09", "http://localhost:9"),
    ],
)
def test_an_address_is_written_in_one_way(url, address):
    assert Transport(url).address == address
    assert Transport(address).address == address


@pytest.mark.parametrize(("url", "host"), [("http://[::1]", "::1"), ("http://127.0.0.1", None)])
def test_without_a_port_it_is_the_usual_one(url, host):
    """Of ::1 the standard library would make port 1 of the host ":"."""
    connection = Transport(url)._connection()
    assert (connection.host, connection.port) == (host or "127.0.0.1", 80)


@pytest.mark.parametrize(
    "url",
    [
        "http://[:9",
        "https://example.org:99999",
        "https://example.org:0",
        "https://example.org:-1",
        "https://ada@example.org",
        "https://@example.org",
        "https://example.org/?survey=3",
        "https://example.org/answer#key=secret",
        "https://example.org/a b",
        "https://example.org/é",
        "https://example.org/\ud800",
        "https://a..b",
        "https://.",
        "https://ex ample",
        "https://*",
        f"https://{'a' * 70}.org",
        "ftp://example.org",
        "example.org",
        5,
        None,
    ],
)
def test_other_addresses_are_refused_at_once(url):
    with pytest.raises(InvalidArgument, match="'url' must be"):
        Transport(url)


@pytest.mark.parametrize("scheme", ["postgresql", "https", "http", "x"])
def test_passwords_in_addresses_are_not_shown(scheme):
    for rest in ("host/x", "host:99999", "[:9", "host?x@y"):
        with pytest.raises(InvalidArgument) as refused:
            Transport(f"{scheme}://ada:s3cret@{rest}")
        assert "s3cret" not in str(refused.value)


# ---- one connection, one caller


def test_threads_do_not_read_each_others_answers(serving):
    """Each body is answered with itself."""

    def echo(body):
        time.sleep(0.001)
        return [b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)]

    server = serving(echo)
    client = Transport(server.url, attempts=1, timeout=5)

    def ask(number):
        body = b"%d" % number
        return client.post("/", body, {}).body == body

    with closing(client), ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(300)))
    assert len({sender for _, sender in server.seen}) <= 8


FORK = """
import os, sys
from deniable.collection.transport import Transport
client = Transport(sys.argv[1])
client.post("/", b"parent", {})
child = os.fork()
client.post("/", b"parent" if child else b"child", {})
if child:
    os.waitpid(child, 0)
    client.post("/", b"parent", {})
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_fork_does_not_share_the_connection(serving):
    server = serving(lambda body: [OK])
    subprocess.run([sys.executable, "-c", FORK, server.url], check=True, timeout=60)
    senders = {who: [s for body, s in server.seen if body == who] for who in (b"parent", b"child")}
    assert len(senders[b"parent"]) == 3
    assert len(set(senders[b"parent"])) == 1
    assert len(senders[b"child"]) == 1
    assert senders[b"child"][0] not in senders[b"parent"]


def test_connections_that_died_are_not_all_tried(serving):
    """Several were left open, and the server closed them: one failure is enough to know."""
    server = serving(lambda body: [OK])
    client = Transport(server.url, attempts=2)
    kept = [client._connection() for _ in range(5)]
    for connection in kept:
        connection.connect()
        connection.sock.shutdown(socket.SHUT_RDWR)
    client._idle = kept
    with closing(client):
        assert client.post("/", b"x", {}).status == 201


def test_redirects_are_not_followed_and_cookies_are_not_kept(serving):
    other = serving(lambda body: [OK])
    moved = f"Location: {other.url}/v2/submissions\r\nSet-Cookie: who=ada\r\n".encode()
    server = serving(
        lambda body: [b"HTTP/1.1 %d X\r\n%sContent-Length: 0\r\n\r\n" % (int(body), moved)]
    )
    with closing(Transport(server.url, attempts=2)) as client:
        for status in (301, 302, 303, 307, 308):
            with pytest.raises(Refused, match=str(status)):
                client.post("/v2/submissions", b"%d" % status, {})
        with pytest.raises(StoreUnavailable):
            client.post("/v2/submissions", b"503", {})
    assert other.seen == []
    assert len(server.seen) == 7
    assert not any(b"cookie" in line for line in server.lines)


# ---- servers that do not come to an end


def slowly(server, first, part):
    yield first
    while not server.ended.wait(0.05):
        yield part


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "part"),
    [
        (b"HTTP/1.1 201 Created\r\nContent-Length: 100000\r\n\r\n", b"x"),
        (b"HTTP/1.1 201 Created\r\n", b"a"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    ],
    ids=["body", "head", "continue", "chunks"],
)
def test_an_answer_that_never_ends_is_given_up(serving, first, part):
    server = serving(lambda body: slowly(server, first, part))
    client = Transport(server.url, timeout=0.4, attempts=2)
    begun = time.monotonic()
    with pytest.raises(StoreUnavailable, match=r"2 attempts: no whole answer in 0\.4 seconds"):
        client.post("/", b"x", {})
    assert time.monotonic() - begun < 5
    assert [body for body, _ in server.seen] == [b"x", b"x"]


# ---- words of servers


@pytest.mark.parametrize(
    "answer",
    [
        b'HTTP/1.1 422 X\r\n\r\n{"title": "\\u001b[31mred\\n\\ud800", "type": "\\u001b"}',
        b"HTTP/1.1 422 X\r\n\r\n" + b'{"title": "' + b"x" * 100_000 + b'"}',
        b"\x1b[31m\r\n\r\n",
        b"HTTP/1.1 99 \x1b" + b"x" * 60_000 + b"\r\n\r\n",
    ],
)
def test_messages_hold_no_escape_sequences_and_are_short(serving, answer):
    def once(body):
        yield answer
        raise OSError("the end of this answer")

    server = serving(once)
    client = Transport(server.url, attempts=1, timeout=5)
    with pytest.raises((Refused, StoreUnavailable)) as failed:
        client.post("/", b"x", {})
    message = str(failed.value) + getattr(failed.value, "problem", "")
    assert message.isprintable()
    assert len(message) < 500
