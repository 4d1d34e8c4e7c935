"""The JavaScript client: its own tests, and reports of every shape under a server's eyes."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import deniable as dn
from deniable.collection.rows import row_check

CLIENT = Path(__file__).parents[1] / "clients" / "js"
OLDEST = 18


def node_version():
    """The major version of Node, or 0."""
    if shutil.which("node") is None:
        return 0
    told = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False)
    found = re.match(r"v(\d+)\.", told.stdout)
    return int(found[1]) if found else 0


pytestmark = pytest.mark.skipif(
    node_version() < OLDEST, reason=f"the JavaScript client needs Node {OLDEST} or newer"
)


def test_the_clients_own_tests_pass():
    done = subprocess.run(
        ["node", "--test"], cwd=CLIENT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]


@pytest.mark.parametrize("name", ["grr", "ss", "olh", "hr", "she", "orr", "rappor", "dbitflippm"])
def test_a_server_takes_what_javascript_reports(name, tmp_path):
    """Rows made with fresh coins have the length and the contents that a server asks for."""
    m = dn.mechanism(name, 11, 1.0)
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(m.to_spec()))
    done = subprocess.run(
        ["node", CLIENT / "bin" / "report.js", spec],
        input="".join(f"{v % m.domain.size}\n" for v in range(60)),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows = [bytes.fromhex(json.loads(line)) for line in done.stdout.splitlines()]
    assert [row_check(m)(row) for row in rows] == [None] * 60
