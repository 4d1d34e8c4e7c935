"""A PostgreSQL server of one's own, in a folder that is thrown away."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

#: Where Debian keeps the programs of each version.
PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def programs() -> Path | None:
    """The folder with PostgreSQL's programs, if there is one."""
    found = [place for place in PLACES if (place / "initdb").exists()]
    elsewhere = shutil.which("initdb")
    if elsewhere is not None:
        found.append(Path(elsewhere).resolve().parent)
    return found[0] if found else None


def install() -> Path | None:
    """PostgreSQL from Debian's packages, where tests must not be skipped; needs root."""
    subprocess.run(["apt-get", "update", "-qq"], check=True)
    command = ["apt-get", "install", "-qq", "--no-install-recommends", "postgresql"]
    subprocess.run(command, check=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    PLACES[:] = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return programs()


class Postgres:
    """A server that listens on a socket in its folder."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self.folder = Path(tempfile.mkdtemp(prefix="dn-pg-", dir="/tmp"))
        # PostgreSQL refuses to run as root.
        self._as = (
            ()
            if os.getuid()
            else ("setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups")
        )
        if self._as:
            shutil.chown(self.folder, "postgres", "postgres")
        self._run("initdb", "-D", self.data, "-U", "tester", "-A", "trust", "--no-sync")
        self.start()

    @property
    def data(self) -> str:
        return str(self.folder / "data")

    def start(self) -> None:
        command = ["-k", str(self.folder), "-c", "listen_addresses="]
        with (self.folder / "log").open("ab") as log:
            program = str(self._place / "postgres")
            self._process = subprocess.Popen(
                [*self._as, program, "-D", self.data, *command], stdout=log, stderr=log,
                cwd=self.folder,
            )  # fmt: skip
        ready = [str(self._place / "pg_isready"), "-q", "-h", str(self.folder)]
        for _ in range(300):
            if subprocess.run(ready, check=False).returncode == 0:
                return
            time.sleep(0.05)
        raise RuntimeError((self.folder / "log").read_text())

    def stop(self) -> None:
        """Clients are cut off."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(30)

    def crash(self) -> None:
        """All processes of the server are gone at once; the next start recovers from its log."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(30)

    def pause(self) -> None:
        """All processes of the server stop where they are: connections stay open, and silent."""
        self._stopped = [self._process.pid]
        os.kill(self._process.pid, signal.SIGSTOP)  # first, so that it starts no others
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        for pid in map(int, children.read_text().split()):
            os.kill(pid, signal.SIGSTOP)
            self._stopped.append(pid)

    def resume(self) -> None:
        for pid in self._stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def database(self) -> str:
        """The address of an empty database; there is one at a time."""
        self.do("DROP SCHEMA IF EXISTS deniable CASCADE")
        return self.address

    @property
    def address(self) -> str:
        return f"postgresql://tester@/postgres?host={self.folder}"

    def do(self, *statements: str) -> None:
        import psycopg

        with psycopg.connect(self.address, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def configure(self, name: str, value: str | None) -> None:
        """A setting of the server, or with None its default; it has it when this returns."""
        before = self.ask(f"SHOW {name}")
        change = f"RESET {name}" if value is None else f"SET {name} = {value}"
        self.do(f"ALTER SYSTEM {change}", "SELECT pg_reload_conf()")
        while self.ask(f"SHOW {name}") == before:
            time.sleep(0.01)

    def ask(self, statement: str) -> Any:
        """The one value that a statement answers."""
        import psycopg

        with psycopg.connect(self.address) as connection:
            row = connection.execute(statement.encode()).fetchone()
        return None if row is None else row[0]

    def remove(self) -> None:
        if self._process.poll() is None:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self._as, str(self._place / program), *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder)
