"""The library that draws the dashboard's charts, as one script without anything from elsewhere.

The bundle is made by `vl_convert`. That takes seconds and a JavaScript engine of 150 MB, so another
process does it, once, when somebody first looks at the dashboard.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import sys

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from deniable.service.problems import Problem

#: Only `vegaEmbed` is needed, and it brings an interpreter: expressions are not compiled by `eval`.
_MAKE = """
import gzip, sys, vl_convert
bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
sys.stdout.buffer.write(gzip.compress(bundle.encode(), 9, mtime=0))
"""
_DAYS = 7


class Bundle:
    """The script, compressed; it is made once."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._packed = b""

    async def packed(self) -> bytes:
        async with self._lock:
            if not self._packed:
                self._packed = await _make()
        return self._packed


async def _make() -> bytes:
    pipe, nowhere = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    maker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _MAKE, stdin=nowhere, stdout=pipe, stderr=nowhere
    )
    packed, _ = await maker.communicate()
    if maker.returncode:
        raise Problem("unavailable", "Charts need vl-convert: pip install 'deniable[serve]'.")
    return packed


def vega_route(headers: dict[str, str]) -> Route:
    """The route of the script."""
    bundle = Bundle()

    async def serve(request: Request) -> Response:
        packed = await bundle.packed()
        tag = f'"{hashlib.sha256(packed).hexdigest()[:32]}"'
        known = {**headers, "ETag": tag, "Vary": "Accept-Encoding"}
        known["Cache-Control"] = f"public, max-age={_DAYS * 24 * 3600}"
        if request.headers.get("if-none-match") == tag:
            return Response(b"", 304, known)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(packed, 200, {**known, "Content-Encoding": "gzip"})
        return Response(gzip.decompress(packed), 200, known)

    return Route("/vega.js", serve)
