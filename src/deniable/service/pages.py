"""The pages that a collector serves: a dashboard for analysts, a questionnaire for respondents.

They are static files; what they show comes from the endpoints. Nothing is fetched from elsewhere,
and the headers forbid it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from deniable.service.scripts import client_files, client_module
from deniable.service.vega import vega_route

STATIC = Path(__file__).parent / "static"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_ALLOWED = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
#: No text becomes markup or code; the dashboard's charts are drawn by a library that does not ask.
_TRUSTED = {"require-trusted-types-for": "'script'", "trusted-types": "'none'"}
_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True)
class File:
    """A file as it is served."""

    name: str
    body: bytes


def page_files(manifest: bytes) -> dict[str, File]:
    """The files of the pages of a collection, by the place where they are served."""
    files = {path.name: path.read_bytes() for path in STATIC.iterdir() if path.suffix in _TYPES}
    dashboard, questionnaire = (files.pop(f"{name}.html") for name in ("dashboard", "answer"))
    client = {f"client/{name}": body for name, body in client_files().items()}
    own = {"client.js": client_module(manifest).encode()}
    return {
        **{f"/{name}": File(name, body) for name, body in {**files, **client, **own}.items()},
        "/": File("dashboard.html", dashboard),
        "/answer": File("answer.html", questionnaire),
    }


def page_routes(manifest: bytes) -> list[Route]:
    """Routes of the pages, and of the files that they need."""
    routes = [Route(place, _serving(file)) for place, file in page_files(manifest).items()]
    return [*routes, vega_route(headers_for("vega.js"))]


def headers_for(name: str) -> dict[str, str]:
    """What a browser is told about a file."""
    policy = _ALLOWED | ({} if name == "dashboard.html" else _TRUSTED)
    words = "; ".join(f"{directive} {source}" for directive, source in policy.items())
    return {
        **_ALWAYS,
        "Content-Security-Policy": words,
        "Content-Type": _TYPES[Path(name).suffix],
        "Cache-Control": "no-cache",
    }


def _serving(file: File) -> Callable[[Request], Awaitable[Response]]:
    tag = f'"{hashlib.sha256(file.body).hexdigest()[:32]}"'
    headers = {**headers_for(file.name), "ETag": tag}

    async def serve(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(b"", 304, headers)
        return Response(file.body, 200, headers)

    return serve
