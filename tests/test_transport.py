"""HTTP of the Python client, against servers that are slow, odd or hostile."""

import socket
import threading

import pytest

from deniable.collection import transport
from deniable.collection.transport import Transport
from deniable.errors import InvalidArgument

OK = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"


class Server:
    """Answers each request with what ``reply`` makes of its body; notes who sent it."""

    def __init__(self, reply):
        self.reply, self.seen, self.ended = reply, [], threading.Event()
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
    client = Transport(url)
    assert (client._host, client._port) == (host or "127.0.0.1", 80)


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
