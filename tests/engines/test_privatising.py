"""Files of answers become files of reports, and no answer is ever randomised twice."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.core.mechanism import CHUNK
from deniable.engines import LocalEngine, tally_files
from deniable.engines.files import Piece, find
from deniable.engines.privatising import (
    MARK,
    UNFINISHED,
    JobKeys,
    Plan,
    PrivatiseJob,
    digest,
    privatise_files,
    report_name,
    reports_of,
)
from deniable.errors import CorruptData, InvalidArgument, MismatchError
from deniable.randomness import WORD_BYTES, ByteCoins, Keystream, derived_key
from spark_toys import DrawsAnew, Seen, Through

SMOKING = dn.GRR(["daily", "sometimes", "never"], 1.0)
AGE = dn.OUE(dn.Bins([20, 40, 60]), 1.0)
ASKED = {"smoking": SMOKING, "age": AGE}


def write(path, seed, rows=1000, **more):
    rng = np.random.default_rng(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {
        "name": [f"person {i}" for i in range(rows)],
        "smoking": rng.choice(["daily", "sometimes", "never"], rows, p=[0.2, 0.3, 0.5]).tolist(),
        "age": rng.integers(0, 80, rows),
        "city": rng.choice(["Bern", "Basel"], rows).tolist(),
    }
    pq.write_table(pa.table(columns | more), path, row_group_size=max(1, rows // 3))


@pytest.fixture
def answers(tmp_path):
    for number in range(4):
        write(tmp_path / "in" / f"region=r{number % 2}" / f"{number}.parquet", number)
    return tmp_path / "in"


def contents(folder):
    """The bytes of each file of reports, by name."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in reports(folder)}


def reports(folder):
    return sorted(path for path in folder.rglob("*.parquet") if UNFINISHED not in path.parts)


def a_secret(path, byte=7):
    path.write_bytes(bytes([byte]) * 32)
    path.chmod(0o600)
    return path


def privatised(answers, folder, name, **more):
    """What a run with a known secret writes."""
    secret = a_secret(folder / f"{name}.secret")
    privatise_files([answers], more.pop("asked", ASKED), folder / name, secret=secret, **more)
    assert not secret.exists(), "deleted on success"
    return contents(folder / name)


# ---- what is written


def test_the_reports_are_those_of_the_answers(tmp_path):
    n = 60_000
    write(tmp_path / "in" / "one.parquet", 1, n)
    privatise_files([tmp_path / "in"], ASKED, tmp_path / "out")
    (tally,) = tally_files([tmp_path / "out" / "smoking"]).values()
    assert tally.n == n
    truth = [0.2, 0.3, 0.5]
    # Standard errors are about 0.004; the chance of six of them is below 2e-9.
    assert np.abs(tally.estimate("unbiased").frequencies - truth).max() < 6 * 0.0045


def test_nothing_else_of_the_input_is_written(answers, tmp_path):
    privatise_files([answers], ASKED, tmp_path / "out", keep=["region", "city"])
    for path in reports(tmp_path / "out"):
        assert path.parent.name.startswith("region=r")
        with pq.ParquetFile(path) as file:
            assert file.schema_arrow.names == ["report", "city"]
            assert set(file.schema_arrow.metadata) == {b"deniable.mechanism"}
        assert b"person" not in path.read_bytes()
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == [MARK, "age", "smoking"]
    groups = tally_files([tmp_path / "out" / "age"], by=["region"])
    assert {group: tally.n for group, tally in groups.items()} == {("r0",): 2000, ("r1",): 2000}


def test_kept_columns_stay_beside_their_reports(tmp_path):
    """With a budget that hides nothing, a report is the answer: copies of it show the order."""
    rows = 5000
    told = ["daily" if i % 3 else "never" for i in range(rows)]
    write(tmp_path / "in" / "a.parquet", 1, rows, smoking=told, city=told)
    m = dn.GRR(SMOKING.domain, 32.0)
    privatise_files([tmp_path / "in"], {"smoking": m}, tmp_path / "out", keep=["city"])
    (path,) = reports(tmp_path / "out")
    table = pq.read_table(path)
    found = [m.domain.label(one) for one in table["report"].to_pylist()]
    assert found == table["city"].to_pylist()
    assert found != told, "the order of the input"
    assert sorted(found) == sorted(told)


def test_the_dictionary_of_a_kept_column_does_not_show_the_order(tmp_path):
    told = [f"city {i}" for i in range(1000)]
    write(tmp_path / "in" / "a.parquet", 1, city=pa.array(told).dictionary_encode())
    privatise_files([tmp_path / "in"], ASKED, tmp_path / "out", keep=["city"])
    for path in reports(tmp_path / "out"):
        found = pq.read_table(path)["city"].combine_chunks()
        shown = found.dictionary if pa.types.is_dictionary(found.type) else found
        assert sorted(shown.to_pylist()) == sorted(told)
        assert shown.to_pylist() != told


@pytest.mark.parametrize(
    "name", ["../smoking", "..", "a/b", "_unfinished", "_privatised", ".x", ""]
)
def test_columns_that_name_no_folder_are_refused(tmp_path, name):
    write(tmp_path / "in" / "a.parquet", 1, **{name: ["never"] * 1000})
    with pytest.raises(InvalidArgument, match="the name of a folder"):
        privatise_files([tmp_path / "in"], {name: SMOKING}, tmp_path / "deep" / "out")
    assert [one.name for one in tmp_path.iterdir()] == ["in"]


def test_a_report_is_that_of_its_coins(tmp_path):
    """Each part of a file has a key; then the rows are reordered."""
    rows = CHUNK + 20  # the second part is short: it takes the path of single reports
    write(tmp_path / "in" / "a.parquet", 1, rows)
    a_secret(tmp_path / "secret")
    (place,) = find([tmp_path / "in"])
    privatise_files(
        [tmp_path / "in"], {"smoking": SMOKING}, tmp_path / "out", secret=tmp_path / "secret"
    )
    (path,) = reports(tmp_path / "out")
    plan = Plan(reports_of({"smoking": SMOKING}))

    def key(use):
        channel = (report_name(plan.reports[0]), str(plan.part))
        file = ("", place.path, digest(place))
        return derived_key(bytes([7]) * 32, "deniable files", use, *channel, *file)

    def keystream(use, number):
        return Keystream(derived_key(key(use), number.to_bytes(8, "big")))

    values = SMOKING.domain.encode(pq.read_table(place.path)["smoking"])
    bulk = np.empty(CHUNK, dtype=np.uint8)
    SMOKING.fill(values[:CHUNK], bulk, keystream("coins", 0))
    stream = keystream("coins", 1)
    single = [
        SMOKING.report(value, ByteCoins(stream.bytes(WORD_BYTES * SMOKING.coin_words)))
        for value in values[CHUNK:].tolist()
    ]
    expected = []
    for number, made in enumerate((bulk, np.array(single, dtype=np.uint8))):
        words = keystream("order", number).bytes(WORD_BYTES * len(made))
        expected.append(made[np.argsort(np.frombuffer(words, "<u8"))])
    assert path.name == key("name")[:16].hex() + ".parquet"
    assert np.array_equal(dn.Reports.from_parquet(path).data, np.concatenate(expected))


def test_drawn_questions_and_collections(answers, tmp_path):
    joint = dn.Joint.of_questions(ASKED)
    privatise_files([answers], {"both": joint}, tmp_path / "joint")
    (tally,) = tally_files([tmp_path / "joint" / "both"]).values()
    assert tally.n == 4000
    collection = dn.Collection.split(ASKED, 2.0)
    privatise_files([answers], collection, tmp_path / "survey")
    assert {path.name for path in (tmp_path / "survey").iterdir()} == {MARK, "age", "smoking"}


# ---- coins


def test_keys_belong_to_all_that_they_are_for(answers):
    """The contents of the file, its path and the report: each gives other coins."""
    plan = Plan(reports_of(ASKED))
    base = Piece(find([answers])[0], "ab", 0, 1, 0, 10)
    coins = JobKeys(bytes(32), plan)
    others = [
        (coins, Piece(find([answers])[1], "ab", 0, 1, 0, 10), plan.reports[0], "coins"),
        (coins, Piece(base.place, "ac", 0, 1, 0, 10), plan.reports[0], "coins"),
        (coins, base, plan.reports[1], "coins"),
        (coins, base, plan.reports[0], "order"),
        (JobKeys(bytes(31) + b"1", plan), base, plan.reports[0], "coins"),
        (coins, base, replace(plan.reports[0], mechanism=dn.GRR(SMOKING.domain, 2.0)), "coins"),
    ]
    keys = [coins.key("coins", base, plan.reports[0])]
    keys += [one.key(use, piece, report) for one, piece, report, use in others]
    assert len(set(keys)) == len(keys)
    moved = Piece(base.place, "ab", 3, 4, 99, 7)
    assert coins.key("coins", moved, plan.reports[0]) == keys[0]


def test_other_questions_and_kept_columns_do_not_randomise_an_answer_again(answers, tmp_path):
    """Whoever goes on with a secret but asks for more gets the same reports again."""
    before = privatised(answers, tmp_path, "one", asked={"smoking": SMOKING})
    after = privatised(answers, tmp_path, "more", keep=["city"])
    for name, data in before.items():
        again = pq.read_table(pa.BufferReader(after[name]))["report"]
        assert again == pq.read_table(pa.BufferReader(data))["report"]


def test_the_secret_is_not_shown():
    assert "secret" not in repr(PrivatiseJob(JobKeys(b"secret", Plan(reports_of(ASKED))), "out"))


def test_any_order_and_number_of_threads_gives_the_same_bytes(answers, tmp_path):
    first = privatised(answers, tmp_path, "a", engine=LocalEngine(1))
    second = privatised(answers, tmp_path, "b", engine=LocalEngine(3))
    assert first == second
    assert len(first) == 8
    secret = a_secret(tmp_path / "c.secret")
    privatise_files(sorted(answers.rglob("*.parquet"))[::-1], ASKED, tmp_path / "c", secret=secret)
    assert contents(tmp_path / "c") == first


def test_fresh_secrets_give_other_reports(answers, tmp_path):
    for name in ("a", "b"):
        privatise_files([answers], ASKED, tmp_path / name)
    first, second = contents(tmp_path / "a"), contents(tmp_path / "b")
    assert not set(first) & set(second)
    assert not set(first.values()) & set(second.values())


def versions(folder):
    """What an onlooker saw under each name."""
    names = {path.parent for path in folder.rglob("*") if path.is_file()}
    return [{one.read_bytes() for one in name.iterdir()} for name in names]


def test_attempts_at_the_same_time_write_the_same(answers, tmp_path):
    """As speculation does: two workers on one piece, and both come to an end."""

    class Twice(LocalEngine):
        def results(self, job, pieces):
            list(super().results(job, [*pieces, *pieces]))
            return super().results(job, pieces)

    def seen(job):
        return Seen(job, str(tmp_path / "seen"))

    found = privatised(answers, tmp_path, "out", engine=Through(Twice(4), seen))
    assert found == privatised(answers, tmp_path, "plain")
    assert [len(one) for one in versions(tmp_path / "seen")] == [1] * 8


def test_a_retry_that_draws_anew_is_caught(answers, tmp_path):
    class Twice(LocalEngine):
        def results(self, job, pieces):
            list(super().results(job, pieces))
            return super().results(job, pieces)

    def planted(job):
        coins = DrawsAnew(job.coins.secret, job.plan)
        return Seen(PrivatiseJob(coins, job.folder), str(tmp_path / "seen"))

    privatise_files([answers], ASKED, tmp_path / "out", engine=Through(Twice(2), planted))
    assert [len(one) for one in versions(tmp_path / "seen")] == [2] * 8


# ---- interrupted, again, and refused


class Interrupted(Exception):
    pass


def interrupt(answers, folder, secret, after=2, **more):
    def watch(done, total):
        if done >= after * total // 4:
            raise Interrupted

    with pytest.raises(Interrupted):
        privatise_files(
            [answers], ASKED, folder, secret=secret, progress=watch, engine=LocalEngine(1), **more
        )


def test_interrupted_work_goes_on_with_its_secret(answers, tmp_path):
    whole = privatised(answers, tmp_path, "whole")
    secret = a_secret(tmp_path / "secret")
    interrupt(answers, tmp_path / "out", secret)
    before = contents(tmp_path / "out")
    assert 0 < len(before) < len(whole)
    assert before.items() <= whole.items()
    assert secret.exists()
    privatise_files([answers], ASKED, tmp_path / "out", secret=secret)
    assert contents(tmp_path / "out") == whole
    assert not secret.exists()


def test_work_without_a_file_for_its_secret_leaves_all_or_nothing(answers, tmp_path):
    interrupt(answers, tmp_path / "out", None)
    assert list((tmp_path / "out").iterdir()) == []
    assert len(privatised(answers, tmp_path, "out")) == 8
    later = tmp_path / "later"

    def taken(job):
        (later / MARK).write_text("0" * 64)
        (later / "smoking").mkdir()
        return job

    with pytest.raises(MismatchError, match="has reports of another run"):
        privatise_files([answers], ASKED, later, engine=Through(LocalEngine(1), taken))
    assert (later / "smoking").is_dir(), "it is another run's"


def test_a_folder_takes_one_secret_plan_and_release(answers, tmp_path, monkeypatch):
    secret = tmp_path / "secret"
    interrupt(answers, tmp_path / "out", secret)
    assert secret.stat().st_mode & 0o777 == 0o600
    before = contents(tmp_path / "out")
    with pytest.raises(MismatchError, match="has reports of another run"):
        privatise_files([answers], ASKED, tmp_path / "out")
    with pytest.raises(MismatchError, match="has reports of another run"):
        privatise_files([answers], ASKED, tmp_path / "out", secret=tmp_path / "another")
    assert not (tmp_path / "another").exists()
    for asked in ({"smoking": SMOKING}, ASKED | {"age": dn.OUE(AGE.domain, 1.5)}):
        with pytest.raises(MismatchError, match="has reports of another run"):
            privatise_files([answers], asked, tmp_path / "out", secret=secret)
    with pytest.raises(MismatchError, match="has reports of another run"):
        privatise_files([answers], ASKED, tmp_path / "out", secret=secret, keep=["city"])
    monkeypatch.setattr("deniable.engines.privatising.__version__", "99.0")
    with pytest.raises(MismatchError, match="another release"):
        privatise_files([answers], ASKED, tmp_path / "out", secret=secret)
    assert contents(tmp_path / "out") == before
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    for taken in (tmp_path / "other", tmp_path / "other" / "file"):
        with pytest.raises(InvalidArgument, match="empty, or a new one"):
            privatise_files([answers], ASKED, taken, secret=tmp_path / "another")
        assert not (tmp_path / "another").exists(), "refused before a secret is drawn"


def test_answers_that_change_between_two_runs_are_refused(answers, tmp_path):
    secret = tmp_path / "secret"
    interrupt(answers, tmp_path / "out", secret)
    write(sorted(answers.rglob("*.parquet"))[0], 99)
    with pytest.raises(MismatchError, match="made from a file that changed or is gone since"):
        privatise_files([answers], ASKED, tmp_path / "out", secret=secret)


def test_answers_that_change_while_they_are_read_are_refused(answers, tmp_path):
    class Meddling(LocalEngine):
        def results(self, job, pieces):
            if isinstance(job, PrivatiseJob):
                write(sorted(answers.rglob("*.parquet"))[-1], 99)
            return super().results(job, pieces)

    with pytest.raises(CorruptData, match="changed while it was read: nothing of it is kept"):
        privatise_files(
            [answers], ASKED, tmp_path / "out", secret=tmp_path / "secret", engine=Meddling(1)
        )
    assert len(reports(tmp_path / "out")) == 6
    assert list((tmp_path / "out" / UNFINISHED).iterdir()) == []


def test_copies_are_refused(answers, tmp_path):
    first = sorted(answers.rglob("*.parquet"))[0]
    (answers / "copy.parquet").write_bytes(first.read_bytes())
    with pytest.raises(MismatchError, match=r"copy\.parquet is a copy of|is a copy of .*copy"):
        privatise_files([answers], ASKED, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_somebody_took_over_is_left_alone(answers, tmp_path):
    """A straggler of an older run must not write beside a newer one."""
    secret = a_secret(tmp_path / "secret")

    def taken(job):
        (tmp_path / "out" / MARK).write_text("0" * 64)
        return job

    with pytest.raises(MismatchError, match="has reports of another run"):
        privatise_files(
            [answers], ASKED, tmp_path / "out", secret=secret, engine=Through(LocalEngine(1), taken)
        )
    assert reports(tmp_path / "out") == []
    assert secret.exists()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"asked": {"smoking": dn.LGRR(["a", "b"], 2.0, 1.0)}}, "answered on the devices"),
        ({"asked": {"drinking": SMOKING}}, "has no drinking"),
        ({"asked": {}}, "a mechanism for each of some columns"),
        ({"keep": ["smoking"]}, "'smoking' is no such column"),
        ({"keep": ["id"]}, "'id' is no such column"),
        ({"keep": ["country"]}, "has no country"),
        ({"keep": ["city", "city"]}, "different columns"),
    ],
)
def test_what_cannot_be_privatised_is_refused(answers, tmp_path, more, words):
    asked = more.pop("asked", ASKED)
    with pytest.raises(InvalidArgument, match=words):
        privatise_files([answers], asked, tmp_path / "out", **more)
    assert not (tmp_path / "out").exists()


def test_two_columns_of_one_name_are_refused(tmp_path):
    (tmp_path / "in").mkdir()
    table = pa.table([["never"] * 9, ["daily"] * 9], names=["smoking", "smoking"])
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    with pytest.raises(InvalidArgument, match="has several of that name"):
        privatise_files([tmp_path / "in"], {"smoking": SMOKING}, tmp_path / "out")


def test_a_wrong_answer_is_not_shown(answers, tmp_path):
    write(answers / "wrong.parquet", 9, 3, smoking=["never", "cigars", "never"])
    with pytest.raises(InvalidArgument, match=r"smoking: values\[1\]") as refused:
        privatise_files([answers / "wrong.parquet"], ASKED, tmp_path / "out")
    assert "cigars" not in str(refused.value)
    write(answers / "old.parquet", 9, 3, age=[20.0, float("nan"), 30.0])
    with pytest.raises(InvalidArgument, match="an answer of type float, which is not shown"):
        privatise_files([answers / "old.parquet"], ASKED, tmp_path / "out2")


@pytest.mark.parametrize("damaged", ["page", "footer"])
def test_a_damaged_file_is_named_and_the_others_are_kept(answers, tmp_path, damaged):
    path = sorted(answers.rglob("*.parquet"))[2]
    whole = path.read_bytes()
    page = pq.read_metadata(path).row_group(1).column(1).dictionary_page_offset
    place = page if damaged == "page" else len(whole) - 100
    path.write_bytes(whole[:place] + b"\xff" * 64 + whole[place + 64 :])
    secret = tmp_path / "secret"
    with pytest.raises(CorruptData, match=f"{path} cannot be read as a Parquet file"):
        privatise_files([answers], ASKED, tmp_path / "out", secret=secret)
    path.write_bytes(whole)
    privatise_files([answers], ASKED, tmp_path / "out", secret=secret)
    assert len(reports(tmp_path / "out")) == 8


def test_secrets_of_others_are_refused(answers, tmp_path):
    secret = a_secret(tmp_path / "secret")
    secret.chmod(0o644)
    with pytest.raises(InvalidArgument, match="only its owner may read"):
        privatise_files([answers], ASKED, tmp_path / "out", secret=secret)
    secret.chmod(0o600)
    secret.write_bytes(b"short")
    with pytest.raises(CorruptData, match="not a secret of 32 bytes"):
        privatise_files([answers], ASKED, tmp_path / "out", secret=secret)
    with pytest.raises(InvalidArgument, match="a file outside of"):
        privatise_files([answers], ASKED, tmp_path / "out", secret=tmp_path / "out" / "secret")
