"""The library that draws the dashboard's charts, as one script without anything from elsewhere.

The bundle is made by `vl_convert`. That takes seconds and a JavaScript engine of 150 MB, so another
process does it, once, when somebody first looks at the dashboard.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import sys
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from deniable.errors import MissingExtra
from deniable.service.problems import Problem

#: Only `vegaEmbed` is needed, and it brings an interpreter: expressions are not compiled by `eval`.
_MAKE = """
import gzip, sys, vl_convert
bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
sys.stdout.buffer.write(gzip.compress(bundle.encode(), 9, mtime=0))
"""
_DAYS = 7


@dataclass(frozen=True)
class Script:
    """The script as it travels: to unpack it for each request would hold up everybody."""

    packed: bytes
    plain: bytes
    tag: str


class Bundle:
    """The script; it is tried once to make it."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._made: Script | Problem | None = None

    async def script(self) -> Script:
        async with self._lock:
            if self._made is None:
                self._made = await _make()
        if isinstance(self._made, Problem):
            raise Problem(self._made.kind, self._made.detail)
        return self._made


async def _make() -> Script | Problem:
    pipe, nowhere = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    maker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _MAKE, stdin=nowhere, stdout=pipe, stderr=nowhere
    )
    packed, _ = await maker.communicate()
    if maker.returncode:
        return Problem("unavailable", f"{MissingExtra('vl_convert', 'plot')}.")
    return Script(packed, gzip.decompress(packed), f'"{hashlib.sha256(packed).hexdigest()[:32]}"')


def vega_route(headers: dict[str, str]) -> Route:
    """The route of the script."""
    bundle = Bundle()

    async def serve(request: Request) -> Response:
        script = await bundle.script()
        known = {**headers, "ETag": script.tag, "Vary": "Accept-Encoding"}
        known["Cache-Control"] = f"public, max-age={_DAYS * 24 * 3600}"
        if request.headers.get("if-none-match") == script.tag:
            return Response(b"", 304, known)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(script.packed, 200, {**known, "Content-Encoding": "gzip"})
        return Response(script.plain, 200, known)

    return Route("/vega.js", serve)
