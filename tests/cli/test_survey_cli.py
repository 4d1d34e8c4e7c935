"""The commands of a collection, as people type them."""

import contextlib
import json
import math
import os
import pty
import select
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import date, timedelta
from functools import partial

import numpy as np
import pytest
from psycopg.conninfo import conninfo_to_dict

import deniable as dn
from command import run
from deniable.cli.commands.collect import _written
from deniable.cli.explain import sentences
from deniable.cli.interview import certainty, suggestion
from deniable.cli.verdicts import verdicts
from deniable.collection.batches import read_batch
from deniable.collection.example import EXAMPLE, to_toml
from deniable.collection.manifest import Collection, Field
from deniable.collection.survey import mechanism_of, read_survey, survey_of
from deniable.service.intake import Intake
from deniable.service.store import open_store
from deniable.service.store.base import EPOCH, today

ANSWERS = {"smoking": "daily", "sick": True, "sleep": 6.5, "medicine": "aspirin"}


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    path = tmp_path_factory.mktemp("survey") / "survey.toml"
    run("init", path, "--example")
    return path


@pytest.fixture
def store(survey, tmp_path):
    """A store with 20 single submissions and a batch of 30."""
    client = dn.Client(survey)
    path = tmp_path / "survey.db"
    opened = open_store(str(path), read_survey(survey))
    intake = Intake(client.collection)
    opened.add([intake.single(client.prepare(ANSWERS).to_json()) for _ in range(20)])
    import pyarrow as pa

    (batch,) = client.privatize_table(pa.table({name: [a] * 30 for name, a in ANSWERS.items()}))
    name, counts = intake.batch(batch.body)
    opened.add_batch(name, batch.body, counts)
    opened.close()
    return path


def counts(path):
    opened = open_store(str(path))
    found = opened.numbers()
    opened.close()
    return found


def test_check_explains_and_publishes(survey, tmp_path):
    manifest = tmp_path / "manifest.json"
    text = run("check", survey, "--manifest", manifest).stdout
    assert "20000" in text  # as many as the survey expects
    assert "does not exist yet" in run("check", survey, "--manifest", survey, code=2).stderr
    assert "One person spends at most epsilon 4" in text
    assert "98.2 %" in text
    rows = json.loads(run("check", manifest, "-f", "json").stdout)
    assert [row["question"] for row in rows] == list(ANSWERS)
    assert read_survey(manifest).collection == read_survey(survey).collection


def textbook_error(k, epsilon, n):
    """Of k-ary randomised response: 1.96 standard errors of an answer that 10 % give."""
    p = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
    q = (1 - p) / (k - 1)
    variance = q * (1 - q) / (p - q) ** 2 + 0.1 * (1 - p - q) / (p - q)
    return 1.959963985 * math.sqrt(variance / n)


@pytest.mark.parametrize("n", [500, 2000, 20_000])
@pytest.mark.slow
def test_check_says_what_is_hopeless_and_what_would_help(n, tmp_path):
    """The needs are the least that bring the error to 5 points, from the variance alone."""
    questions = [{"name": "mood", "ask": "How is it?", "kind": "choice", "answers": list("abcd"),
                  "mechanism": "grr"}]  # fmt: skip
    data = {"title": "T", "epsilon": 1.0, "respondents": n, "questions": questions}
    file = tmp_path / "survey.toml"
    file.write_text(to_toml(data))
    error = textbook_error(4, 1.0, n)
    hopeless = error >= 0.1
    text = " ".join(run("check", file, code=int(hopeless)).stdout.split())
    (row,) = json.loads(run("check", file, "-f", "json", code=int(hopeless)).stdout)
    assert row["error"] == pytest.approx(error, rel=1e-6)
    assert hopeless == (n == 500)
    if n == 20_000:
        assert row["verdict"] == "good"
        assert row["people_needed"] is row["epsilon_needed"] is None
        words = "An answer that 10 % of people give will show as 10 % ± 1.8 points (20,000 people"
        assert f"mood: good. {words}, epsilon 1)." in text
        return
    people, epsilon = row["people_needed"], row["epsilon_needed"]
    assert textbook_error(4, 1.0, people) <= 0.05 < textbook_error(4, 1.0, people - 100)
    assert textbook_error(4, epsilon, n) <= 0.05 < textbook_error(4, epsilon - 0.25, n)
    assert f"you need about {people:,} people, or epsilon {epsilon:g}." in text.lower()
    assert ("too few people. With 500 respondents the error is ± 11 points." in text) == hopeless


HOURS = {"name": "hours", "ask": "How long?", "kind": "number", "lo": 0, "hi": 24,
         "wants": "mean"}  # fmt: skip


@pytest.mark.parametrize(
    ("n", "verdict", "told"),
    [
        (100, "too few people", "With 100 respondents the error is ± 5.1. You need"),
        (2000, "rough", "A mean of 12 will show as 12 ± 1.1 (2,000 people, epsilon 1). For ± 0.6"),
        (20_000, "good", "A mean of 12 will show as 12 ± 0.34 (20,000 people, epsilon 1)."),
    ],
)
@pytest.mark.slow
def test_check_judges_a_mean_in_its_own_unit(n, verdict, told, tmp_path):
    """A dithered bit has the variance 1 / 12, and e / (e - 1)^2 when it is randomised.

    That is for endless strata of offsets; as many as reports allow cost at most 10 % more.
    """
    file = tmp_path / "survey.toml"
    file.write_text(to_toml({"title": "T", "epsilon": 1.0, "respondents": n, "questions": [HOURS]}))
    code = int(verdict == "too few people")
    text = " ".join(run("check", file, code=code).stdout.split())
    assert f"hours: {verdict}. {told}" in text
    assert "numbers from 0 to 24" in text
    (row,) = json.loads(run("check", file, "-f", "json", code=code).stdout)
    assert (row["verdict"], row["kind"], row["mechanism"]) == (verdict, "number", "DRR")
    bit = 1.959963985 * 24 * math.sqrt((math.e / (math.e - 1) ** 2 + 1 / 12) / n)
    assert bit < row["error"] < 1.1 * bit
    if row["people_needed"]:
        again = run("check", file, "-n", row["people_needed"], "-f", "json").stdout
        assert json.loads(again)[0]["verdict"] == "good"


def test_check_tells_who_answers_what(survey, tmp_path):
    assert "Each person answers all 4 questions." in run("check", survey).stdout
    file = tmp_path / "drawn.toml"
    file.write_text(survey.read_text().replace('"split"', '"sampled"'))
    text = " ".join(run("check", file).stdout.split())
    assert "answers one of smoking, sick, sleep and medicine, which their device draws." in text
    rows = json.loads(run("check", file, "-f", "json").stdout)
    assert [row["reports"] for row in rows] == [5000] * 4
    assert [row["epsilon"] for row in rows] == pytest.approx([4.0] * 4)
    assert len({row["bytes"] for row in rows}) == 1  # which question was drawn does not show


def test_what_is_sent_openly_is_told():
    m = dn.GRR(["a", "b"], 1.0)
    fields = (Field("region", ("north", "south")),)
    told = " ".join(sentences(Collection.split({"it": m}, 1.0, fields=fields)))
    assert "Not protected: region." in told


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (b'"deniable":2', b'"deniable":1', "made by version 0.1, which was never released"),
        (b'"epsilon":4,', b'"epsilon":3,', "which is what the reports spend"),
        (b"{", b"{ ", "not written in canonical JSON"),
    ],
)
def test_a_manifest_that_is_refused_gets_one_line(old, new, told, survey, tmp_path):
    manifest = tmp_path / "manifest.json"
    changed = read_survey(survey).collection.manifest.replace(old, new, 1)
    manifest.write_bytes(changed)
    said = run("check", manifest, code=2).stderr
    assert said.startswith("deniable: ")
    assert told in said
    assert len(said.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("extra", [{}, {"divide": "sampled"}, {"rounds": 3, "changes": 1}], ids=str)
def test_what_check_proposes_is_enough(extra, tmp_path):
    """Whoever does as they are told gets a good survey: every kind, divided and repeated."""
    file = tmp_path / "survey.toml"

    def rows(**changed):
        # Designing texts for rounds takes seconds.
        questions = [*EXAMPLE["questions"][: 3 if "rounds" in extra else 4], HOURS]
        data = {**EXAMPLE, "epsilon": 1.0, "respondents": 200, **extra, **changed}
        data["questions"] = questions
        file.write_text(to_toml(data))
        hopeless = 0 if changed else 1
        return json.loads(run("check", file, "-f", "json", code=hopeless).stdout)

    before = rows()
    assert {row["verdict"] for row in before} <= {"rough", "too few people"}
    people = max(row["people_needed"] for row in before)
    assert {row["verdict"] for row in rows(respondents=people)} == {"good"}
    epsilons = [row["epsilon_needed"] for row in before]
    if None not in epsilons:
        assert {row["verdict"] for row in rows(epsilon=max(epsilons))} == {"good"}


@pytest.mark.slow
def test_no_epsilon_is_proposed_that_clients_refuse(tmp_path):
    file = tmp_path / "survey.toml"
    file.write_text(to_toml({**EXAMPLE, "respondents": 50}))
    text = run("check", file, code=1).stdout
    assert "epsilon 15" not in text
    rows = json.loads(run("check", file, "-f", "json", code=1).stdout)
    assert all(row["people_needed"] and row["epsilon_needed"] is None for row in rows)


@pytest.mark.slow
def test_the_error_of_a_text_holds_whatever_else_is_answered():
    """Beside one answer that all others give, simulated; fixed seed, 95 % of 200 runs within."""
    question = {"name": "it", "ask": "Which?", "kind": "text", "candidates": []}
    data = {"title": "T", "epsilon": 2.0, "respondents": 2000, "questions": [question]}
    m, rng = survey_of(data).collection.asked("it").mechanism, np.random.default_rng(1)
    error = m.task.half_width(m, 2000)
    found = []
    for turn in range(200):  # of other texts each time: what collides is chance, too
        answers = [f"rare {turn}"] * 200 + [f"common {turn}"] * 1800
        estimate = m.tally(m.privatize(answers, rng)).estimate("unbiased", candidates=answers[:1])
        found.append(estimate.frequencies[0] - 0.1)
    assert np.mean(np.abs(found) <= error) > 0.9
    assert np.quantile(np.abs(found), 0.95) > error / 1.35


def test_a_manifest_is_judged_but_not_designed_anew(survey, tmp_path):
    manifest = tmp_path / "manifest.json"
    run("check", survey, "--manifest", manifest)
    rows = json.loads(run("check", manifest, "-n", 300, "-f", "json", code=1).stdout)
    assert all(row["people_needed"] > 300 and row["epsilon_needed"] is None for row in rows)


@pytest.mark.slow
def test_the_price_of_skipping_compares_errors_of_the_same_kind():
    """Also where the question would have another mechanism, for a mean, if nobody could skip it."""
    age = {"name": "age", "ask": "How old?", "kind": "number", "lo": 0, "hi": 100, "step": 1,
           "wants": "both", "optional": True}  # fmt: skip
    data = {"title": "T", "epsilon": 0.5, "questions": [age]}
    (verdict,) = verdicts(survey_of(data).collection, 20_000, partial(mechanism_of, data))
    nobody, required = verdict.price.nobody, verdict.price.required
    assert nobody.target == required.target == "± 2.5 points"


@pytest.mark.slow
def test_check_compares_what_else_could_be_wanted():
    """Wishes of one mechanism are one row, and what a mechanism cannot tell has no error."""
    income = {
        "name": "income",
        "ask": "How much?",
        "kind": "number",
        "lo": 0,
        "hi": 20_000,
        "optional": True,
    }
    drinks = {
        "name": "drinks",
        "ask": "Which?",
        "kind": "choices",
        "answers": ["tea", "beer", "milk"],
    }
    data = {"title": "T", "epsilon": 2.0, "questions": [income, {**drinks, "pairs": True}]}
    numbers, sets = verdicts(survey_of(data).collection, 5_000, partial(mechanism_of, data))
    rows = [row["wanted"] for row in numbers.wished]
    assert rows == ["distribution, both (as asked)", "mean"]
    shares, pairs = sets.wished
    assert (shares["wanted"], pairs["wanted"]) == ("shares", "pairs (as asked)")
    assert (shares["pairs"], pairs["pairs"][0]) == ("-", "±")


@pytest.mark.slow
def test_init_asks(tmp_path):
    answers = [
        "Commuting", "many", "5,000", "zero", "2",
        "How do you travel to work?", "To Work", "", "guess", "ch", "choice",
        "car, alone", "", "train", "train", "other", "", "y",
        "How many minutes does it take?", "work", "minutes", "number", "sum",
        "groups", "30, 15", "15, 30", "y",
        "Ever without a ticket?", "", "yes/no", "maybe", "n",
        "n", "3", "5", "1", "y",
    ]  # fmt: skip
    text = run("init", text="\n".join(answers) + "\n", cwd=tmp_path)
    assert "deniable check survey.toml" in text.stdout
    refusals = ["must be a number", "Kind must be one of", "ascending", "from 0 to 2",
                "at least two", "one of groups, distribution, mean, both", "only once",
                "the first a letter", "another than those", "one of yes, no"]  # fmt: skip
    for refused in refusals:
        assert refused in text.stderr
    assert 'thought "50:50" beforehand can be at most 73 % sure afterwards.' in text.stdout
    assert "can be at most 88 % sure" in text.stdout  # the summary of what was chosen
    (judged,) = [line.strip() for line in text.stdout.split("\n") if "work: too few" in line]
    assert judged in " ".join(run("check", "survey.toml", code=1, cwd=tmp_path).stdout.split())
    found = read_survey(tmp_path / "survey.toml").collection
    assert [q.name for q in found.questions] == ["work", "minutes", "ticket"]
    assert found.questions[0].domain.labels == ("car, alone", "train", "other")
    assert (found.rounds, found.changes, found.epsilon) == (3, 1, 2.0)
    assert "survey.toml already exists" in run("init", code=2, cwd=tmp_path).stderr


def test_init_asks_for_the_range_of_a_mean(tmp_path):
    """A range that is none is asked for again, and nothing else; so is the step, if any."""
    answers = [
        "Sleep",
        "",
        "",
        "How many hours?",
        "",
        "number",
        "m",
        "24",
        "0",
        "",
        "0",
        "24",
        "5",
        "0",
        "24",
        "0.5",
        "n",
        "1",
    ]
    text = run("init", text="\n".join([*answers, "y", ""]), cwd=tmp_path)
    assert "Hi must be above lo = 24 (got 0" in text.stderr
    assert "(hours, numbers from 0 to 24)" in text.stdout
    (asked,) = read_survey(tmp_path / "survey.toml").collection.questions
    assert asked.domain == dn.Number(0, 24, 0.5)
    assert (
        "step must be a number above 0 of which hi - lo = 24"
        in " ".join(text.stderr.split()).lower()
    )


YES_NO = ["Do you?", "do", "yes/no"]


@pytest.mark.parametrize(
    ("answers", "refused"),
    [
        # Two spellings of one answer: of a text, and of a list.
        (["1", "Which?", "it", "text", "Aspirin", "ASPIRIN", "", "n", "1", "y"], "only once"),
        (["1", "Where?", "it", "choice", "caf\u00e9", "cafe\u0301", "bar", "", "n", "1", "y"],
         "An answer must be listed only once (got"),
        # Budgets that are too small for as many questions or rounds.
        (["0.000001", *YES_NO, "y", "Do they?", "they", "yes/no", "n", "1", "y"], "Epsilon of do"),
        (["0.0001", *YES_NO, "n", "60000", "59999", "1", "y"], "Do: epsilon must be"),
    ],
    ids=["text", "choice", "questions", "rounds"],
)  # fmt: skip
@pytest.mark.slow
def test_init_does_not_lose_what_was_answered(answers, refused, tmp_path):
    """What the survey would refuse at the end is refused at once, and asked again."""
    asked = run("init", text="\n".join(["Title", "1000", *answers]) + "\n", cwd=tmp_path)
    assert refused in asked.stderr
    assert len(read_survey(tmp_path / "survey.toml").collection.questions) == 1


def test_init_says_what_epsilon_means():
    assert "can be at most 73 % sure" in certainty(1)
    assert "can be at most 99.97 % sure" in certainty(8)
    assert "can be almost 100 % sure" in certainty(30)


@pytest.mark.parametrize("end", ["n\n", ""], ids=["declined", "end of input"])
def test_init_writes_nothing_that_is_not_wanted(end, tmp_path):
    answers = ["Trips", "", "", "Do you travel?", "", "yes/no", "n", "1", ""]
    text = run("init", text="\n".join(answers) + end, cwd=tmp_path, code=1)
    assert text.stderr == "Stopped. Nothing was written.\n"
    assert list(tmp_path.iterdir()) == []


#: The command with the terminal that it was given as its own, so that Ctrl-C reaches it.
ON_A_TERMINAL = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from deniable.cli import main
main()
"""


def at_a_terminal(folder, *keys, words=("init",)):
    """The command, used at a terminal: what it showed, and how it ended."""
    terminal, its_side = pty.openpty()
    command = [sys.executable, "-c", ON_A_TERMINAL, *map(str, words)]
    streams = {"stdin": its_side, "stdout": its_side, "stderr": its_side}
    with subprocess.Popen(command, cwd=folder, start_new_session=True, **streams) as process:
        os.close(its_side)
        try:
            shown = ""
            for expected, typed in keys:
                shown += shown_until(terminal, expected)
                os.write(terminal, typed)
            return shown + shown_until(terminal, None, again=typed), process.wait(30)
        finally:
            process.kill()
            os.close(terminal)


def shown_until(terminal, expected, again=b""):
    """What a terminal shows up to a text, or up to its end (an error, if its process ended).

    An interrupt can be lost between a prompt and the wait for its answer, hence ``again``.
    """
    shown = b""
    with contextlib.suppress(OSError):
        for _ in range(30):
            while select.select([terminal], [], [], 1)[0]:
                shown += os.read(terminal, 1024)
                if expected is not None and expected in shown:
                    return shown.decode()
            os.write(terminal, again)
        pytest.fail(f"{expected} was not shown: {shown}")
    return shown.decode()


@pytest.mark.slow
def test_lines_can_be_edited_at_a_terminal(tmp_path):
    """Arrow keys wrote escape sequences into the question; a pasted list has several lines."""
    left, paste = b"\x1b[D", b"\x1b[200~car, alone\ntrain\x1b[201~"
    _, code = at_a_terminal(
        tmp_path,
        (b"Title of the survey: ", b"Trps" + 2 * left + b"i\n"),
        (b"[10000]: ", b"\n"),
        (b"[2]: ", b"\n"),
        (b"read it: ", b"How do you go?\n"),
        (b"files [", b"\n"),
        (b"[choice]: ", b"\n"),
        (b"1: ", paste),
        (b"train", b"\n"),
        (b"3: ", b"\n"),
        (b"[no]: ", b"\n"),
        (b"[1]: ", b"\n"),
        (b"[yes]: ", b"\n"),
    )
    assert code == 0
    found = read_survey(tmp_path / "survey.toml")
    assert found.texts.title == "Trips"
    assert found.collection.questions[0].domain.labels == ("car, alone", "train")


@pytest.mark.slow
def test_an_interrupt_leaves_no_file(tmp_path):
    shown, code = at_a_terminal(tmp_path, (b"survey: ", b"Trips\n"), (b"[10000]: ", b"\x03"))
    assert shown.strip().splitlines()[-1] == "Stopped. Nothing was written."
    assert "Traceback" not in shown
    assert (code, list(tmp_path.iterdir())) == (1, [])


@pytest.mark.slow
@pytest.mark.parametrize("control", ["\x1b[D", "\n", "\t", "\x00", "\x7f", "\x9b"])
def test_control_characters_are_refused_everywhere(control, tmp_path):
    file = tmp_path / "survey.toml"
    choice = EXAMPLE["questions"][0]
    text = EXAMPLE["questions"][3]
    bad = f"a{control}b"
    for changed in (
        {"title": bad},
        {"about": bad.replace("\n", "\r")},
        {"questions": [choice | {"ask": bad}]},
        {"questions": [choice | {"answers": ["never", bad]}]},
        {"questions": [choice | {"name": bad}]},
        {"questions": [text | {"candidates": [bad]}]},
    ):
        file.write_text(to_toml({**EXAMPLE, **changed}))
        refused = run("check", file, code=2).stderr
        assert "must be" in refused
        assert not {"\x1b", "\x9b", "\x00"} & set(refused)
    typed = bad.replace("\n", "\r")
    keys = [typed, "Trips", "", "", typed]
    stopped = run("init", tmp_path / "other.toml", text="\n".join(keys), code=1)
    assert stopped.stderr.count("without control characters") == 2


@pytest.mark.parametrize("answers", [["", "b"], [" b", "a"], ["a b", "a  b"], ["a", "a", "b"]])
def test_answers_that_look_alike_are_refused(answers, tmp_path):
    file = tmp_path / "survey.toml"
    question = {"name": "it", "ask": "Which?", "kind": "choice", "answers": answers}
    file.write_text(to_toml({**EXAMPLE, "questions": [question]}))
    assert "'it: an answer' must be" in run("check", file, code=2).stderr


def test_about_may_have_lines(tmp_path):
    file = tmp_path / "survey.toml"
    file.write_text(to_toml({**EXAMPLE, "about": "First.\nSecond."}))
    run("check", file)


@pytest.mark.parametrize(
    ("ask", "name"),
    [("How often do you smoke?", "smoke"), ("Quel est votre âge ?", "age"), ("年齢は?", "question"),
     ("Do you smoke?", "smoke_2"), ("Wie groß?", "gross")],
)  # fmt: skip
def test_names_are_suggested(ask, name):
    assert suggestion(ask, {"smoke"} if name == "smoke_2" else set()) == name


def test_tokens_are_made_listed_and_removed(store):
    token = run("token", store, "ann").stdout.strip()
    assert len(token) >= 40
    assert token.encode() not in store.read_bytes()
    assert run("token", store).stdout.split() == ["ann"]
    assert "there is a token of this name" in run("token", store, "ann", code=2).stderr
    run("token", store, "ann", "--remove")
    assert "one of" in run("token", store, "ann", "--remove", code=2).stderr


def test_verify_store_recounts(store):
    assert "smoking, round 1: 50 reports recounted; the tally" in run("verify-store", store).stdout
    opened = open_store(str(store))
    with opened._transaction() as connection:
        connection.execute("UPDATE tallies SET n = 51 WHERE report = 'sick'")
    opened.close()
    text = run("verify-store", store, code=1).stdout
    assert "sick, round 1: the tally has 51 reports, a recount 50" in text


@pytest.mark.slow
def test_export_and_import(store, survey, tmp_path):
    folder = tmp_path / "out"
    assert "no new reports" in run("export", store, folder).stdout
    day = EPOCH + timedelta(days=today())
    assert f"{day}: 200 reports" in run("export", store, folder, "--today").stdout
    assert "1 day was there already" in run("export", store, folder, "--today").stdout
    file = folder / f"question=sick/round=1/day={day}/part-0.parquet"
    rows = json.loads(run("estimate", file, "-f", "json").stdout)
    assert rows["n"] == 50
    copy = tmp_path / "copy.db"
    assert "200 reports were counted" in run("import", copy, folder).stdout
    assert "0 reports were counted" in run("import", copy, folder).stdout
    assert counts(copy) == counts(store)
    run("verify-store", copy)
    opened = open_store(str(store))
    client = dn.Client(survey)
    opened.add([Intake(client.collection).single(client.prepare(ANSWERS).to_json())])
    opened.close()
    run("export", store, tmp_path / "later", "--today")
    assert "holds other reports" in run("import", copy, tmp_path / "later", code=2).stderr
    assert "holds other reports" in run("import", store, folder, code=2).stderr
    assert "204 reports" in run("import", copy, tmp_path / "later", "--add").stdout
    for name, (old, new) in {"worded": ("Health", "Wealth"), "other": ("4.0", "3.0")}.items():
        file = tmp_path / f"{name}.toml"
        file.write_text(survey.read_text().replace(old, new))
        open_store(str(file.with_suffix(".db")), read_survey(file)).close()
    assert "200 reports were counted" in run("import", tmp_path / "worded.db", folder).stdout
    assert "a store of its own" in run("import", tmp_path / "other.db", folder, code=2).stderr


@pytest.mark.slow
def test_estimate_a_question_that_devices_drew(tmp_path):
    """Among 400 who spend epsilon 8 on one of two questions; who drew it is a sample of all.

    At least 130 drew it (7 standard errors); then 0.3 is more than 6 standard errors of a share.
    """
    questions = [HOURS, EXAMPLE["questions"][1]]
    data = {"title": "T", "epsilon": 8.0, "divide": "sampled", "questions": questions}
    made = survey_of(data)
    (report,) = made.collection.reports
    answers = {"hours": [8] * 400, "sick": [True] * 100 + [False] * 300}
    reports = report.mechanism.privatize(answers, np.random.default_rng(8))
    reports.to_parquet(tmp_path / "all.parquet")
    (tmp_path / "all.tally").write_bytes(report.mechanism.tally(reports).to_bytes())
    for source in ("all.parquet", "all.tally"):
        given = ("estimate", tmp_path / source, "-f", "json", "--question")
        hours, sick = (json.loads(run(*given, name).stdout) for name in ("hours", "sick"))
        assert hours["n"] + sick["n"] == 400
        assert abs(sick["values"][0]["frequency"] - 0.25) < 0.3
        assert abs(hours["values"][0]["estimate"] - 8) < 24 * 0.3
        assert hours["population"] == sick["population"] == "everyone"
        assert "one of hours, sick" in run(*given, "sleep", code=2).stderr
        assert "'--question' must be given" in run(*given[:2], code=2).stderr


@pytest.mark.slow
def test_purge_keeps_what_was_counted(store):
    before = counts(store)
    day = (date.today() + timedelta(days=1)).isoformat()
    assert "tomorrow at the latest" in run("purge", store, "--before", "2999-01-01", code=2).stderr
    assert "'before' must be a day" in run("purge", store, "--before", "soon", code=2).stderr
    assert "0 submissions" in run("purge", store, "--before", "2020-01-01").stdout
    assert "21 submissions" in run("purge", store, "--before", day).stdout
    assert counts(store) == before
    assert "0 reports recounted, 50 purged" in run("verify-store", store).stdout
    told = run("export", store, store.with_name("gone"), "--today").stdout
    assert "no new reports" in told
    assert f"reports before {day} are only counted" in told
    assert "--keep-days, and not both" in run("purge", store, code=2).stderr
    assert "0 submissions" in run("purge", store, "--keep-days", "30").stdout


def test_backup_is_a_store(store, tmp_path):
    """It does not show the order of arrival: rows lie in the order of their ids."""
    copy = tmp_path / "copy.db"
    run("backup", store, copy)
    with closing(sqlite3.connect(copy)) as connection:
        ids = [row[0] for row in connection.execute("SELECT id FROM submissions ORDER BY id")]
    places = [copy.read_bytes().index(name) for name in ids]
    assert places in (sorted(places), sorted(places, reverse=True))
    assert counts(copy) == counts(store)
    assert "does not exist yet" in run("backup", store, copy, code=2).stderr


def test_serve_refuses(survey, tmp_path):
    assert "--behind-proxy" in run("serve", survey, "--host", "0.0.0.0", code=2).stderr
    assert "can be read" in run("serve", tmp_path / "none.toml", code=2).stderr
    changed = tmp_path / "changed.toml"
    changed.write_text(survey.read_text().replace("4.0", "3.0"))
    other = tmp_path / "survey.db"
    open_store(str(other), read_survey(survey)).close()
    assert "a store of its own" in run("serve", changed, "--store", other, code=2).stderr
    other.write_bytes(b"no database, certainly not" * 100)
    assert "damaged, or no store" in run("serve", changed, "--store", other, code=2).stderr
    assert "a file that exists" in run("verify-store", tmp_path / "none.db", code=2).stderr


@pytest.mark.slow
def test_serve_shows_whole_links_at_a_terminal(survey, tmp_path, monkeypatch):
    """The key is in the link of the questionnaire, as the page reads it; a log gets neither."""
    monkeypatch.setenv("DENIABLE_KEY", "a/key+with#signs" + "x" * 20)
    store = tmp_path / "my store.db"
    words = ("serve", survey, "--store", store, "--port", 0)
    shown, code = at_a_terminal(tmp_path, (b"Ctrl-C", b"\x03"), words=words)
    assert code == 0
    assert f"/answer#key=a%2Fkey%2Bwith%23signs{'x' * 20}\r\n" in shown
    assert "/#token=" in shown
    again, _ = at_a_terminal(tmp_path, (b"Ctrl-C", b"\x03"), words=words)
    assert f"(make a token: deniable token '{store}' analyst)" in again
    with subprocess.Popen(
        [sys.executable, "-m", "deniable", *map(str, words)], stdout=subprocess.PIPE, text=True
    ) as process:
        log = [process.stdout.readline() for _ in range(5)]
        process.terminate()
    assert "/answer  (followed by #key= and DENIABLE_KEY)\n" in log[1]
    assert "xxx" not in "".join(log)


@pytest.mark.parametrize(
    "address",
    ["postgresql://ann:s3cret?x@db.example:5433/health", "postgresql://ann@db.example:5433/health",
     "postgresql:///health?password=s3cret&user=ann&host=db.example&port=5433&sslpassword=s3cret"],
)  # fmt: skip
def test_the_command_for_a_token_has_no_password(address):
    found = _written(None, address)
    assert "s3cret" not in found
    assert conninfo_to_dict(found) == {
        "host": "db.example", "port": "5433", "user": "ann", "dbname": "health",
    }  # fmt: skip


@pytest.mark.slow
def test_a_batch_is_read_back_as_it_was(store):
    opened = open_store(str(store))
    (body,) = opened.batches()
    about, columns = read_batch(opened.collection, body)
    assert about["deniable.round"] == "1"
    assert {name: len(column) for name, column in columns.items()} == dict.fromkeys(ANSWERS, 30)


def test_verify_store_goes_on_from_a_checkpoint(store, tmp_path, monkeypatch):
    """An interruption keeps what was read; a run that finds damage keeps nothing."""
    from deniable.service.store import damage

    path = tmp_path / "checked"
    asked = ("verify-store", store, "--checkpoint", path)

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(damage, "_counted", stop)
        said = run(*asked, code=130).stderr
        assert "Stopped: 21 of 21 rows verified. Verify with the same checkpoint to go on." in said
        assert "Nothing was kept; see --checkpoint." in run(*asked[:2], code=130).stderr
    kept = path.read_bytes()
    assert "No damage found." in run(*asked).stdout
    assert path.read_bytes() != kept
    kept = path.read_bytes()
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("DELETE FROM submissions WHERE id = (SELECT min(id) FROM submissions)")
    assert "there are 19 rows, 20 were kept" in run(*asked, code=1).stdout
    assert "there are 19 rows, 20 were kept" in run(*asked, "--full", code=1).stdout
    assert path.read_bytes() == kept
