"""A survey is designed once: what a store keeps is served, and only wordings may change."""

import hashlib
import json
import sqlite3

import pytest

from collection_toys import survey, surveyed
from deniable.collection.example import EXAMPLE, to_toml
from deniable.collection.survey import Survey, read_survey
from deniable.collection.wording import Texts
from deniable.errors import CorruptData, MismatchError
from deniable.service.store import open_store
from deniable.service.store.published import difference

TOYS, OTHERS = survey(), survey(rounds=2)


def named(title):
    return surveyed(title=title)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def address(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    return request.getfixturevalue("server").database()


def opened(address, source=None):
    store = open_store(address, source)
    store.close()
    return store


@pytest.mark.slow
def test_the_kept_manifest_is_served_and_not_that_of_another_design(address):
    """A later release may choose other mechanisms for the same survey."""
    opened(address, named("One"))
    for source in (None, named("One"), TOYS):
        found = opened(address, source)
        assert (found.collection.digest, found.texts.title) == (TOYS.digest, "One")
    later = Survey(survey("sampled"), surveyed("sampled").texts, surveyed().skeleton)
    found = opened(address, later)
    assert found.collection.manifest == TOYS.manifest
    assert found.texts.collection == TOYS.digest


def test_wordings_may_be_corrected_and_every_version_is_kept(address):
    for words in ("One", "Two", "Two", "One"):
        assert opened(address, named(words)).texts.title == words
        assert opened(address).texts.title == words
        assert opened(address, TOYS).texts.title == words
    store = open_store(address)
    assert store.verify() == []
    with store._reading() as connection:
        rows = store._run(connection, "SELECT number, digest, document FROM texts ORDER BY 1")
        kept = [(n, Texts.from_document(words), digest) for n, digest, words in rows.fetchall()]
    assert [(n, texts.title) for n, texts, _ in kept] == [(1, "One"), (2, "Two"), (3, "One")]
    assert all(texts.digest == digest for _, texts, digest in kept)
    store.close()


def test_answers_in_other_words_are_a_correction(address):
    opened(address, surveyed())
    words = {"en": {"way": {"answers": ["a car", "a train", "none of these"]}}}
    found = opened(address, surveyed(texts=words))
    assert found.collection.digest == TOYS.digest
    assert found.texts.first.questions["way"].answers == ("a car", "a train", "none of these")


@pytest.mark.parametrize(
    ("skeleton", "key"),
    [
        ({"epsilon": 3}, "divide"),
        ({**json.loads(surveyed().skeleton), "epsilon": 3}, "epsilon"),
        ({**json.loads(surveyed().skeleton), "rounds": 2}, "rounds"),
        ({**json.loads(surveyed().skeleton), "a": 1, "b": 2}, "a"),
    ],
)
def test_another_skeleton_is_refused_by_its_first_key(address, skeleton, key):
    opened(address, named("One"))
    other = Survey(TOYS, named("Two").texts, json.dumps(skeleton).encode())
    with pytest.raises(MismatchError, match=rf"\({key} differs\).*--store another.db"):
        open_store(address, other)
    assert opened(address).texts.title == "One"


def test_a_question_that_changed_is_named(address):
    opened(address, surveyed())
    data = json.loads(surveyed().skeleton)
    data["questions"][0]["answers"][1] = "bus"
    with pytest.raises(MismatchError, match=r"\(questions\[1\]\.answers\[2\] differs\)"):
        open_store(address, Survey(TOYS, surveyed().texts, json.dumps(data).encode()))


def test_keys_are_named_as_in_the_file():
    one = {"questions": [{"name": "a"}, {"name": "b", "answers": ["x", "y"]}]}
    two = {"questions": [{"name": "a"}, {"name": "b", "answers": ["x", "z"]}]}
    assert difference(one, two) == "questions[2].answers[2]"
    assert difference(one, {"questions": one["questions"][:1]}) == "questions"


def test_a_manifest_must_be_the_kept_one(address):
    opened(address, surveyed())
    assert opened(address, TOYS).collection.digest == TOYS.digest
    with pytest.raises(MismatchError, match=TOYS.digest[:12]):
        open_store(address, OTHERS)


def test_a_store_of_a_manifest_takes_the_survey_that_makes_it(address):
    assert opened(address, TOYS).texts.title.endswith(TOYS.digest[:12])
    assert opened(address, named("One")).texts.title == "One"
    with pytest.raises(MismatchError, match=OTHERS.digest[:12]):
        open_store(address, surveyed(rounds=2))


@pytest.mark.parametrize("version", [1, 2])
def test_stores_of_the_first_version_are_refused(tmp_path, version):
    """Their tables named version 2 as well."""
    file = tmp_path / "old.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE collection (version INTEGER, manifest BLOB)")
        connection.execute("INSERT INTO collection VALUES (?, ?)", (version, b"{}"))
    connection.close()
    for source in (None, TOYS, surveyed()):
        with pytest.raises(MismatchError, match=r"made by version 0\.1, which was never released"):
            open_store(str(file), source)


@pytest.mark.parametrize(
    "change", ["document = 5", "document = 'x'", "document = x'7b7d'", "number = 'x'"]
)
def test_texts_that_are_no_document_are_not_served(tmp_path, change):
    file = str(tmp_path / "store.db")
    opened(file, named("One"))
    with sqlite3.connect(file) as connection:
        connection.execute(f"UPDATE texts SET {change}")
    connection.close()
    with pytest.raises(CorruptData):
        open_store(file)


def test_a_store_says_what_made_it(tmp_path):
    from deniable import __version__

    file = tmp_path / "store.db"
    opened(str(file), named("One"))
    with sqlite3.connect(file) as connection:
        (row,) = connection.execute("SELECT * FROM collection").fetchall()
        ((digest, words),) = connection.execute("SELECT digest, document FROM texts").fetchall()
    connection.close()
    assert row == (3, TOYS.manifest, surveyed().skeleton, __version__)
    assert digest == hashlib.sha256(words).hexdigest()


def test_nothing_is_designed_anew(address, tmp_path, monkeypatch):
    """A survey of the same skeleton is served as it was kept, even if none could design it."""
    file = tmp_path / "survey.toml"
    file.write_text(to_toml(EXAMPLE))
    digest = opened(address, read_survey(file)).collection.digest

    def never(data):
        raise AssertionError("the survey was designed again")

    monkeypatch.setattr("deniable.collection.survey._designed", never)
    file.write_text(to_toml({**EXAMPLE, "title": "Another title"}))
    again = opened(address, read_survey(file))
    assert again.collection.digest == digest
    assert again.texts.title == "Another title"
