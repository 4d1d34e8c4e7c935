"""A collector that answers as a test says, and remembers what it was asked; never a real one."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from deniable.service.pages import headers_for, page_files


@dataclass
class Site:
    """What is served, and what was asked for: method, path, headers and body of each request."""

    manifest: bytes = b""
    #: What submissions are answered with, the last one for ever.
    statuses: list[int] = field(default_factory=lambda: [201])
    #: What comes with these statuses, and where they lead.
    problem: bytes = b""
    location: str = ""
    #: Paths that get no answer.
    gone: set[str] = field(default_factory=set)
    #: What people read; empty: there are no texts.
    texts: bytes = b""
    #: None: this collector does not say.
    admission: dict[str, Any] | None = None
    key: str = ""
    #: Another origin that may send here.
    allowed: str = ""
    #: Files that are served beside the pages.
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.manifest).hexdigest()

    def bodies(self) -> list[bytes]:
        """What was posted."""
        return [body for method, _, _, body in self.asked if method == "POST"]

    def got(self, path: str) -> list[dict[str, str]]:
        """The headers of the requests for a path."""
        return [headers for method, found, headers, _ in self.asked if found == path]

    def answer(self, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of a GET."""
        if path == "/v2/manifest":
            named = {"ETag": '"the number of this browser"', "Cache-Control": "max-age=3600"}
            return 200, named, self.manifest
        if path == "/v2/texts" and self.texts:
            return 200, {"ETag": '"the number of this browser"'}, self.texts
        if path == "/v2/admission" and self.admission is not None:
            right = headers.get("authorization", "") in ("", f"Bearer {self.key}")
            return (200 if right else 401), {}, json.dumps(self.admission).encode()
        if path in self.files:
            kind = "text/html" if path.endswith(".html") else "text/javascript"
            return 200, {"Content-Type": kind}, self.files[path]
        if self.manifest and (file := page_files(self.manifest).get(path)):
            return 200, headers_for(file.name), file.body
        return 404, {}, b""


class Handler(BaseHTTPRequestHandler):
    """One request to the site of its server."""

    protocol_version = "HTTP/1.1"

    def handle_one(self) -> None:
        site: Site = self.server.site  # type: ignore[attr-defined]
        path = self.path.partition("?")[0]
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        site.asked.append((self.command, path, headers, body))
        if path in site.gone:
            self.close_connection = True
            return
        status, more, found = 204, {}, b""
        if self.command == "GET":
            status, more, found = site.answer(path, headers)
        elif self.command == "POST":
            status = site.statuses.pop(0) if len(site.statuses) > 1 else site.statuses[0]
            more, found = {"Location": site.location} if site.location else {}, site.problem
        if site.allowed:
            more = {**more, "Access-Control-Allow-Origin": site.allowed,
                    "Access-Control-Allow-Headers": "content-type, authorization"}  # fmt: skip
        self.send_response(status)
        for name, value in {**more, "Content-Length": str(len(found))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(found)

    do_GET = do_POST = do_OPTIONS = handle_one  # noqa: N815 - named by the base class

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    """The site on a free port of this machine, until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.site = site  # type: ignore[attr-defined]
    site.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
