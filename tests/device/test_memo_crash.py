"""Memos on real machines: killed processes, full disks, folders without rights, many at once.

The parts that fork run in a process of their own (`apart`): the test runner has threads.
"""

import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from deniable.device.memo import MemoryMemo
from deniable.errors import BudgetSpent, InvalidArgument, StoreUnavailable
from memo_toys import TELLTALE, enrol, open_memo, record
from processes import fork

pytestmark = [
    pytest.mark.crash,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and kill"),
]
HERE = Path(__file__).parent


def command(function, *arguments):
    call = f"import test_memo_crash as t; t.{function.__name__}(*{arguments!r})"
    return [sys.executable, "-c", call]


def apart(function, *arguments, before=()):
    """What a function prints (JSON) in a process of its own."""
    done = subprocess.run(
        [*before, *command(function, *map(str, arguments))],
        cwd=HERE, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def send(out, report):
    """A report leaves the device: one line in one write."""
    os.write(out, (" ".join(map(str, report)) + "\n").encode())


def sent(log):
    """The reports that left, as (mark, key) -> the set of permanent answers."""
    found = {}
    for line in Path(log).read_text().splitlines():
        mark, key, kept = map(int, line.split())
        found.setdefault((mark, key), set()).add(kept)
    return found


def log_of(folder):
    return os.open(Path(folder) / "sent", os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def killed(action, seconds):
    """Do something in a child, kill -9 after so many seconds: whether it was still at work."""
    child = fork(action)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert status == 0, "the child failed"
            return False
        time.sleep(1e-4)
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def lasting(action):
    """The seconds that a child needs in peace."""
    start = time.monotonic()
    assert os.waitpid(fork(action), 0)[1] == 0
    return time.monotonic() - start


def load_cipher():
    """Once, or every child would spend its short life on it."""
    MemoryMemo(TELLTALE, "any").report(0)


def homes(folder, count):
    """The places of some devices' memos, and logs of what they send."""
    load_cipher()
    for device in range(count):
        home = Path(folder) / str(device)
        home.mkdir()
        yield home / "memo", log_of(home)


# ---- kill -9


def report_at_random(path, out, rng, times):
    memo = open_memo(path)
    for _ in range(times):
        with suppress(BudgetSpent):
            send(out, memo.report(rng.randrange(20)))


def kill_reporters(folder, seed):
    """Eight devices, five short lives each, and a last one in peace."""
    rng = random.Random(int(seed))
    lives = journals = 0
    for path, out in homes(folder, 8):
        enrol(path, most=15)
        pace = lasting(partial(report_at_random, path, out, random.Random(rng.random()), 3))
        for _ in range(5):
            life = partial(report_at_random, path, out, random.Random(rng.random()), 10**6)
            lives += killed(life, 2 * pace * rng.random())
            journals += path.with_name("memo-journal").exists()
        report_at_random(path, out, rng, 100)
    print(json.dumps([lives, journals]))


def test_kill_9_while_reporting(tmp_path):
    """Every report that left has its key on record, and its permanent answer never changed.

    The last life asks for 100 of 20 values, and meets all 15 that the budget allows.
    """
    lives, journals = apart(kill_reporters, tmp_path, 1)
    assert lives == 40
    assert journals > 0, "no kill fell into a transaction"
    for home in tmp_path.iterdir():
        memo, reports = open_memo(home / "memo"), sent(home / "sent")
        assert {key for _, key in reports} <= set(record(home / "memo")["keys"])
        assert memo.keys_used == 15
        assert all(len(kept) == 1 for kept in reports.values())
        assert len({mark for mark, _ in reports}) == 1


def consent(path, out):
    """What an app does when the respondent agrees, perhaps again after a crash."""
    try:
        memo = enrol(path, most=3)
    except InvalidArgument:
        memo = open_memo(path)
    send(out, memo.report(1))


def kill_enrolments(folder, seed):
    rng = random.Random(int(seed))
    counts = {"killed": 0, "nothing yet": 0, "memo alone": 0, "both": 0}
    for number, (path, out) in enumerate(homes(folder, 600)):
        pace = lasting(partial(consent, path.with_name("other"), os.open(os.devnull, os.O_WRONLY)))
        for _ in range(2):
            counts["killed"] += killed(partial(consent, path, out), 1.3 * pace * rng.random())
            there = path.exists() + path.with_name("memo.enrolled").exists()
            counts[["nothing yet", "memo alone", "both"][there]] += 1
        consent(path, out)
        if number >= 30 and all(counts.values()):  # a kill falls between them now and then
            break
    print(json.dumps(counts))


def test_kill_9_while_enrolling(tmp_path):
    """The device enrols or opens afterwards, and there was one secret only."""
    counts = apart(kill_enrolments, tmp_path, 2)
    assert counts["killed"] > 0
    assert counts["nothing yet"] > 0
    assert counts["memo alone"] > 0, counts
    for home in tmp_path.iterdir():
        assert record(home / "memo")["number"] == record(home / "memo.enrolled")["number"] == 1
        reports = sent(home / "sent")
        assert len(reports) == 1
        assert all(len(kept) == 1 for kept in reports.values())


def mishap(path, rng):
    """One of the two files suffers; the other still tells."""
    file = rng.choice([path, path.with_name("memo.enrolled")])
    if file.exists() and rng.random() < 0.5:
        os.truncate(file, rng.randrange(5000))
    else:
        file.unlink(missing_ok=True)


def charge(path, out):
    send(out, open_memo(path, "charge").report(2))


def kill_charges(folder, seed):
    rng = random.Random(int(seed))
    lives = 0
    for path, out in homes(folder, 12):
        send(out, enrol(path, most=3).report(1))
        path.unlink()
        pace = lasting(partial(charge, path, out))
        for _ in range(6):
            if record(path) and record(path.with_name("memo.enrolled")):
                mishap(path, rng)
            lives += killed(partial(charge, path, out), 1.5 * pace * rng.random())
        charge(path, out)
    print(json.dumps(lives))


def test_kill_9_while_charging(tmp_path):
    """No secret that is not counted, by the memo and by the witness; and the device goes on."""
    assert apart(kill_charges, tmp_path, 3) > 0
    for home in tmp_path.iterdir():
        reports = sent(home / "sent")
        secrets = len({mark for mark, _ in reports})
        memo = open_memo(home / "memo")
        number = record(home / "memo")["number"]
        assert 2 <= secrets <= number == record(home / "memo.enrolled")["number"] <= 8
        assert memo.spent == (number - 1) * 6.0 + 2.0 * memo.keys_used
        assert all(len(kept) == 1 for kept in reports.values())


# ---- on the disk before it leaves


def report_thrice(path):
    memo = enrol(path)
    for value in (5, 5, 6):
        send(1, memo.report(value))


CALLS = "fsync,fdatasync,unlink,write,link"


def traced(path, trace):
    """The calls of a device, as words: what it did to which file."""
    line = ["strace", "-f", "-y", "-s", "9", "-e", f"trace={CALLS}", "-o", str(trace)]
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed: only the order of commit and coins is checked")
    done = subprocess.run(
        [*line, *command(report_thrice, str(path))], cwd=HERE, capture_output=True, text=True
    )
    if "ptrace" in done.stderr.lower():
        pytest.skip(f"strace may not trace here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return re.findall(r"^\d+ +(\w+)\((.*)\) += \d", trace.read_text(), re.MULTILINE)


def test_syncs_come_before_the_report(tmp_path):
    """A new key: journal, its name, the memo, and the end of the journal; then the report."""
    path, steps = tmp_path / "home" / "memo", []
    path.parent.mkdir()
    for call, rest in traced(path, tmp_path / "trace"):
        if call == "write" and rest.startswith("1<"):
            steps.append("report")
        elif str(path.parent) in rest and call != "write":
            name = re.findall(rf"{path.parent}/?([\w.-]*)", rest)[-1]
            kind = "sync" if call.endswith("sync") else call
            steps.append(f"{kind} {re.sub('[.]new.*', '.new', name) or 'folder'}")
    place = ["sync {}.new", "link {}", "unlink {}.new", "sync folder"]
    placed = [step.format(file) for file in ("memo", "memo.enrolled") for step in place]
    assert steps[:8] == placed
    first, again, second, rest = " / ".join(steps[8:]).split("report")
    order = "sync memo-journal .* sync memo / unlink memo-journal / sync folder / $"
    assert re.search(order, first)
    assert re.search(order, second)
    assert (again, rest) == (" / ", "")


# ---- no room, no rights


def try_to_report(path, room):
    """Report new keys until it fails; then an old key; then make room and go on."""
    path, out = Path(path), {"sent": 0}
    memo = open_memo(path)
    first = memo.report(0)
    try:
        for value in range(1, 1000):
            memo.report(value)
            out["sent"] = value
    except StoreUnavailable as error:
        out["error"] = str(error)
    out["recorded"] = len(record(path)["keys"])
    out["old keys go on"] = memo.report(0) == first
    if room == "disk":
        (path.parent / "ballast").unlink()
    else:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    memo.report(999)
    out["afterwards"] = open_memo(path).keys_used
    print(json.dumps(out))


def check_full(found):
    assert "cannot be used now, and no report was made" in found["error"]
    assert found["recorded"] == found["sent"] + 1
    assert found["old keys go on"]
    assert found["afterwards"] == found["recorded"] + 1


def fill_disk(path):
    enrol(path).report(0)
    with (Path(path).parent / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
        while True:
            ballast.write(bytes(512))
    try_to_report(path, "disk")


def test_a_full_disk(tmp_path):
    """A real one of 96 KiB, mounted for this process only."""
    mount = f'mount -t tmpfs -o size=96k none "{tmp_path}" && exec "$@"'
    before = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh"]
    if shutil.which("unshare") is None or subprocess.run([*before, "true"]).returncode:
        pytest.skip("no right to mount a small disk: see the test of a limit on files")
    found = apart(fill_disk, tmp_path / "memo", before=before)
    check_full(found)
    assert "disk is full" in found["error"]


def limit_files(path):
    enrol(path).report(0)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, resource.RLIM_INFINITY))
    try_to_report(path, "limit")


def test_files_that_may_not_grow(tmp_path):
    """RLIMIT_FSIZE: no file grows beyond 4000 bytes, hence no journal."""
    check_full(apart(limit_files, tmp_path / "memo"))


def names(folder):
    return sorted(file.name for file in folder.iterdir())


def enrol_without_room(path):
    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, resource.RLIM_INFINITY))
    try:
        enrol(path)
    except StoreUnavailable as error:
        print(json.dumps([str(error), names(Path(path).parent)]))


def test_enrolment_without_room_leaves_nothing(tmp_path):
    error, left = apart(enrol_without_room, tmp_path / "memo")
    assert "File too large" in error
    assert left == []


def without_rights():
    """As nobody, in a folder that nobody may read but not write."""
    home = Path(tempfile.mkdtemp())
    path = home / "memo"
    enrol(path).report(1)
    if os.getuid() == 0:
        for file in (home, *home.iterdir()):
            os.chown(file, 65534, 65534)
        os.setresuid(65534, 65534, 0)
    home.chmod(0o500)
    memo, errors = open_memo(path), []
    for act in (lambda: memo.report(2), lambda: enrol(home / "other")):
        try:
            act()
        except StoreUnavailable as error:
            errors.append(str(error))
    home.chmod(0o700)
    memo.report(3)
    print(json.dumps([errors, record(path)["keys"], names(home)]))
    os.setresuid(*[os.getresuid()[2]] * 3)
    shutil.rmtree(home)


def test_a_folder_that_may_not_be_written():
    errors, keys, files = apart(without_rights)
    assert len(errors) == 2
    assert all("no report was made" in error for error in errors)
    assert keys == [1, 3]
    assert files == ["memo", "memo.enrolled"]


# ---- many at once


def crowd(action):
    """Four processes that start at once."""
    gate, start = os.pipe()
    children = [fork(partial(wait_and_do, gate, action)) for _ in range(4)]
    os.write(start, b"1234")
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4


def wait_and_do(gate, action):
    os.read(gate, 1)
    action()


def report_all(path, out):
    memo = open_memo(path)
    values = list(range(40))
    random.Random(os.getpid()).shuffle(values)
    for value in values:
        with suppress(BudgetSpent):
            send(out, memo.report(value))


def share(folder):
    for path, out in homes(folder, 3):
        enrol(path, most=25)
        crowd(partial(report_all, path, out))
    print("true")


def test_processes_share_one_budget(tmp_path):
    apart(share, tmp_path)
    for home in tmp_path.iterdir():
        reports = sent(home / "sent")
        assert len(reports) == 25
        assert {key for _, key in reports} == set(record(home / "memo")["keys"])
        assert all(len(kept) == 1 for kept in reports.values())


def race(folder, lost):
    for path, out in homes(folder, 6):
        if lost != "nothing":
            enrol(path, most=25)
            path.with_name(lost).unlink()
        crowd(partial(consent if lost == "nothing" else charge, path, out))
    print("true")


@pytest.mark.parametrize(("lost", "number"), [("memo", 2), ("memo.enrolled", 1), ("nothing", 1)])
def test_processes_charge_and_enrol_once_together(tmp_path, lost, number):
    """After a loss the first one charges; without one, the first one enrols. None waits long."""
    apart(race, tmp_path, lost)
    for home in tmp_path.iterdir():
        assert [len(kept) for kept in sent(home / "sent").values()] == [1]
        assert record(home / "memo")["number"] == record(home / "memo.enrolled")["number"] == number
