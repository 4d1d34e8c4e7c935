"""Pages that are served elsewhere: which of them may read the manifest and send submissions (CORS).

Browsers keep the answers of a server from the pages of other servers unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from deniable.collection.transport import is_loopback
from deniable.errors import InvalidArgument

#: All that a page for respondents needs.
PATHS = frozenset({"/v2/manifest", "/v2/texts", "/v2/admission", "/v2/submissions"})


class Origins:
    """Tells browsers that pages of these origins may ask here; nothing changes for others.

    It stands on both sides of `RequestFilter`: outside, so that pages can read refusals, too; and
    inside, with ``asked``, to answer what browsers ask beforehand (OPTIONS) like any other request.
    """

    def __init__(self, app: ASGIApp, origins: Collection[str], *, asked: bool = False) -> None:
        self._app, self._origins = app, {check_origin(origin).encode() for origin in origins}
        self._asked = asked
        self._shared = CORSMiddleware(
            app,
            allow_origins=tuple(origins),
            allow_methods=("GET", "POST"),
            allow_headers=("Authorization", "Content-Type"),
            expose_headers=("Retry-After",),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        shared = scope["type"] == "http" and scope["path"] in PATHS
        ours = shared and (scope["method"] == "OPTIONS") is self._asked
        if ours and dict(scope["headers"]).get(b"origin") in self._origins:
            await self._shared(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def check_origin(origin: str) -> str:
    """An origin exactly as browsers write it, or an error."""
    allowed = "like https://example.org or https://example.org:8443; http:// on this machine only"
    try:
        parts = urlsplit(origin)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise InvalidArgument("--allow-origin", origin, allowed) from None
    named = f"[{host}]" if ":" in host else host
    usual = {"https": 443, "http": 80}.get(parts.scheme)
    whole = f"{parts.scheme}://{named}" + (f":{port}" if port not in (None, usual) else "")
    safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    if not (safe and host and origin.isascii() and "*" not in host and origin == whole):
        raise InvalidArgument("--allow-origin", origin, allowed)
    return origin
