"""A collector in a process of its own, for those who look at its pages.

As a script it serves a survey (TOML) on a free port of this machine and prints port and token.
"""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from places import ROOT

SOURCES = ROOT / "src"
#: What every collector here asks of partners.
PARTNER_KEY = "p" * 40


@dataclass(frozen=True)
class Collector:
    """Where it is, and what an analyst needs."""

    process: subprocess.Popen[str]
    port: int
    token: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str, **headers: str) -> tuple[int, Any, bytes]:
        """Status, headers and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request("GET", path, headers=sent)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()


@contextmanager
def collecting(folder: Path, survey: str, key: str = "") -> Iterator[Collector]:
    """Serve a survey until the block ends."""
    file = folder / "survey.toml"
    file.write_text(survey)
    process = subprocess.Popen(
        [sys.executable, __file__, str(file), str(folder / "reports.db"), key],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )
    with process:
        try:
            port, token = process.stdout.readline().split()  # type: ignore[union-attr]
            yield Collector(process, int(port), token)
        finally:
            process.terminate()


def main() -> None:
    from deniable.collection.survey import read_survey
    from deniable.service.access import new_token
    from deniable.service.app import Settings, create_app
    from deniable.service.run import bind, serve
    from deniable.service.store import open_store

    survey, file, key = sys.argv[1:]
    store = open_store(file, read_survey(survey))
    app = create_app(store, Settings(key=key or None, partner_key=PARTNER_KEY))
    listening = bind("127.0.0.1", 0)
    print(listening.getsockname()[1], new_token(store, "tests"), flush=True)
    serve(app, listening)


if __name__ == "__main__":
    main()
