"""The pages that a collector serves: a dashboard for analysts, a questionnaire for respondents.

They are static files; what they show comes from the endpoints. Nothing is fetched from elsewhere,
and the headers forbid it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from deniable.service.vega import vega_route

_HERE = Path(__file__).parent
STATIC = _HERE / "static"
#: The modules of the client. In a wheel they lie beside the pages, under these names; in a checkout
#: they are where they are written.
_CLIENT = {"client.js": "deniable.js", "promise.js": "promise.js", "book.js": "book.js"}
_WRITTEN = _HERE.parents[2] / "clients" / "js"
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


def page_files() -> dict[str, Path]:
    """The files of the pages, by the place where they are served."""
    names = sorted(path.name for path in STATIC.iterdir() if path.suffix in _TYPES)
    files = {f"/{name}": STATIC / name for name in names if not name.endswith(".html")}
    for name, written in _CLIENT.items():
        files.setdefault(f"/{name}", _WRITTEN / written)
    return {**files, "/": STATIC / "dashboard.html", "/answer": STATIC / "answer.html"}


def page_routes() -> list[Route]:
    """Routes of the pages, and of the files that they need."""
    routes = [Route(place, _serving(path)) for place, path in page_files().items()]
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


def _serving(path: Path) -> Callable[[Request], Awaitable[Response]]:
    body = path.read_bytes()
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {**headers_for(path.name), "ETag": tag}

    async def serve(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(b"", 304, headers)
        return Response(body, 200, headers)

    return serve
