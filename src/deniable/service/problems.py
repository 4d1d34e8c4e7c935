"""Refusals as problem documents (RFC 9457): what was wrong, where, and nothing about anybody."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

#: Every type of problem with its status and title; docs/wire-format.md says when.
TYPES = {
    "malformed": (400, "The body is not what it should be"),
    "no-key": (401, "This collection asks for a key"),
    "no-token": (401, "This needs a token of an analyst"),
    "insecure": (403, "This must not travel without encryption"),
    "not-found": (404, "There is nothing here"),
    "method": (405, "This cannot be done here"),
    "other-collection": (409, "This is the report of another collection"),
    "id-used": (409, "Another submission has this id"),
    "too-large": (413, "The body is too long"),
    "media-type": (415, "The content type is another one"),
    "other-host": (421, "This collector has another name"),
    "impossible-report": (422, "No device makes such a report"),
    "invalid-choice": (422, "This cannot be estimated"),
    "busy": (429, "Too much at once"),
    "unavailable": (503, "The store cannot be used now"),
}
MEDIA_TYPE = "application/problem+json"


class Problem(ValueError):
    """A request that is refused; nothing was counted."""

    def __init__(self, kind: str, detail: str, pointer: str | None = None) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.pointer = kind, detail, pointer

    @property
    def status(self) -> int:
        return TYPES[self.kind][0]

    def response(self) -> Response:
        status, title = TYPES[self.kind]
        document: dict[str, Any] = {"type": f"urn:deniable:{self.kind}", "title": title}
        document |= {"status": status, "detail": self.detail}
        if self.pointer is not None:
            document["pointer"] = self.pointer
        headers = {"Retry-After": "1"} if status in (429, 503) else {}
        if status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return Response(msgspec.json.encode(document), status, headers, MEDIA_TYPE)
