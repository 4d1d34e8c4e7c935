"""The endpoint of single submissions, without a framework around it: here every microsecond counts.

Routing, request and response objects cost as much as all that is done with a submission.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

PATH = "/v2/submissions"
Submit = Callable[[Scope, Receive], Awaitable[Response]]


class Submissions:
    """Answers at `PATH` itself, and leaves everything else to the application."""

    def __init__(self, app: ASGIApp, submit: Submit) -> None:
        self._app, self._submit = app, submit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == PATH:
            response = await self._submit(scope, receive)
            await response(scope, receive, send)
        else:
            await self._app(scope, receive, send)
