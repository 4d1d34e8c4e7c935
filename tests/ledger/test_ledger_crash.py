"""Ledgers on real machines: killed processes, and many at once.

The parts that fork run in a process of their own (`apart`): the test runner has threads.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from deniable.errors import BudgetSpent
from deniable.ledger import Ledger
from processes import fork

pytestmark = [
    pytest.mark.crash,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and kill"),
]
HERE = Path(__file__).parent
BUDGET, COST = 4.0, 0.25
PEOPLE = [f"person {i}" for i in range(6)]


def apart(function, *arguments):
    """What a function prints (JSON) in a process of its own."""
    call = f"import test_ledger_crash as t; t.{function.__name__}(*{tuple(map(str, arguments))!r})"
    done = subprocess.run(
        [sys.executable, "-c", call], cwd=HERE, capture_output=True, text=True, timeout=40
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def release_at_random(path, out, seed, times):
    """Charge, then let something leave: one line in one write. Tokens are released again."""
    ledger, rng = Ledger(path), random.Random(seed)
    for _ in range(times):
        people = sorted(rng.sample(PEOPLE, rng.randint(1, 3)))
        token = rng.choice([None, f"token {rng.randrange(3)}"])
        with suppress(BudgetSpent):
            ledger.charge_all(people, "any", COST, token)
            os.write(out, (json.dumps([people, token]) + "\n").encode())


def owed(log):
    """What each person must have been charged, by the releases that left."""
    found, tokens = dict.fromkeys(PEOPLE, 0.0), set()
    for line in Path(log).read_text().splitlines():
        people, token = json.loads(line)
        for person in people:
            if token is None or (person, token) not in tokens:
                found[person] += COST
            tokens.add((person, token))
    return found


def check(path, log):
    """Sound, nobody above the budget, and every release that left was charged."""
    ledger = Ledger(path)
    for person, due in owed(log).items():
        assert due <= ledger.spent(person) <= BUDGET
    return ledger


def kill_charges(folder, seed):
    """Some ledgers, with short lives of two processes each, both killed; and a life in peace."""
    rng = random.Random(int(seed))
    kills = journals = behind = 0
    for home in map(str, range(4)):
        place = Path(folder) / home
        place.mkdir()
        path, log = place / "ledger", place / "sent"
        Ledger.create(path, BUDGET)
        out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        start = time.monotonic()
        release_at_random(path, out, rng.random(), 2)
        pace = time.monotonic() - start
        for _ in range(5):
            lives = [
                fork(partial(release_at_random, path, out, rng.random(), 10**6)) for _ in range(2)
            ]
            for life in lives:
                time.sleep(1.5 * pace * rng.random())
                os.kill(life, signal.SIGKILL)
                kills += os.WIFSIGNALED(os.waitpid(life, 0)[1])
                journals += bool(list(place.glob("*-journal")))
            ledger = check(path, log)
            behind += ledger.witnessed < ledger.entries
        release_at_random(path, out, rng.random(), 10)
    print(json.dumps([kills, journals, behind]))


def test_kill_9_while_charging(tmp_path):
    kills, journals, _ = apart(kill_charges, tmp_path, 1)
    assert kills == 40
    assert journals > 0, "no kill fell into a transaction"
    for place in tmp_path.iterdir():
        ledger = check(place / "ledger", place / "sent")
        assert ledger.witnessed == ledger.entries
        with pytest.raises(BudgetSpent):
            ledger.charge_all(PEOPLE, "rest", BUDGET)


def kill_creations(folder, seed):
    """A ledger is there and opens, or it is not there and can be created."""
    rng = random.Random(int(seed))
    kills, alone = 0, 0
    start = time.monotonic()
    Ledger.create(Path(folder) / "first", BUDGET)
    pace = time.monotonic() - start
    for i in range(20):
        path = Path(folder) / f"ledger {i}"
        life = fork(partial(Ledger.create, path, BUDGET))
        time.sleep(1.2 * pace * rng.random())
        os.kill(life, signal.SIGKILL)
        kills += os.WIFSIGNALED(os.waitpid(life, 0)[1])
        alone += path.exists() and not path.with_name(f"{path.name}.witness").exists()
        ledger = Ledger(path) if path.exists() else Ledger.create(path, BUDGET)
        assert ledger.charge("a", "b", 1.0) == Ledger(path).spent("a") == 1
    print(json.dumps([kills, alone]))


def test_kill_9_while_creating(tmp_path):
    assert apart(kill_creations, tmp_path, 2)[0] > 0


def crowd(folder):
    """Four processes want more than there is; each charges one person at a time."""
    path, log = Path(folder) / "ledger", Path(folder) / "sent"
    Ledger.create(path, BUDGET)
    out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    children = [fork(partial(want_all, path, out, i)) for i in range(4)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    print("true")


def want_all(path, out, seed):
    ledger, rng = Ledger(path), random.Random(seed)
    wanted = PEOPLE[:3] * 10
    rng.shuffle(wanted)
    for person in wanted:
        with suppress(BudgetSpent):
            ledger.charge(person, "any", COST)
            os.write(out, (json.dumps([[person], None]) + "\n").encode())


def test_processes_share_one_budget(tmp_path):
    """40 charges of 1/4 are asked for each person; exactly 16 leave."""
    apart(crowd, tmp_path)
    assert owed(tmp_path / "sent") == {p: BUDGET if p in PEOPLE[:3] else 0.0 for p in PEOPLE}
    ledger = check(tmp_path / "ledger", tmp_path / "sent")
    assert ledger.entries == ledger.witnessed == 48
