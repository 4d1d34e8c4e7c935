"""Texts: what people read, apart from the channel."""

import hashlib
import json

import pytest

import deniable as dn
from deniable.canonical import canonical
from deniable.collection.manifest import Collection, Field
from deniable.collection.survey import survey_of
from deniable.collection.wording import MOST_BYTES, Language, Texts, Wording
from deniable.errors import CorruptData, InvalidArgument, MismatchError
from places import VECTORS

CASE = json.loads((VECTORS / "wire" / "kinds.json").read_text())
KINDS = Collection.from_manifest(CASE["manifest"].encode())
GRR = dn.GRR(["car", "train"], 1.0)
REGIONS = Collection.split({"way": GRR}, 1.0, fields=(Field("region", ("north", "south")),))


def of(collection=REGIONS, **language):
    return Texts(collection.digest, {"en": Language(**language)})


def document(**changes):
    return canonical({**json.loads(of().document), **changes})


def test_the_document_is_its_digest():
    texts = of(
        title="T", about="Two\nlines", questions={"way": Wording("How?", ("by car", "by rail"))}
    )
    assert texts.digest == hashlib.sha256(texts.document).hexdigest()
    again = Texts.from_document(texts.document).check(REGIONS)
    assert again == texts
    assert (again.title, again.about, again.ask("way")) == ("T", "Two\nlines", "How?")
    assert json.loads(texts.document) == {
        "deniable": 2,
        "collection": REGIONS.digest,
        "candidates": {},
        "languages": {
            "en": {
                "title": "T",
                "about": "Two\nlines",
                "questions": [{"name": "way", "ask": "How?", "answers": ["by car", "by rail"]}],
                "fields": [],
            }
        },
    }


def test_what_has_no_words_is_shown_as_its_name():
    plain = Texts.plain(REGIONS)
    assert plain.check(REGIONS).ask("way") == "way"
    assert plain.title == f"Collection {REGIONS.digest[:12]}"
    assert plain.about == ""


def test_keys_that_are_not_known_are_ignored():
    texts = Texts.from_document(CASE["texts"].encode()).check(KINDS)
    assert b'"consent"' in texts.document
    assert texts.document == CASE["texts"].encode()
    assert texts.digest == hashlib.sha256(CASE["texts"].encode()).hexdigest()
    assert texts.candidates == {"word": ("tea", "Café")}
    assert texts.ask("way") == "How?"
    assert texts.ask("word") == "word"
    assert texts.languages["fr"].questions["way"].answers == ("car", "train", "other")


def test_texts_of_another_collection_do_not_fit():
    with pytest.raises(MismatchError, match="belong to collection"):
        of().check(KINDS)


@pytest.mark.parametrize(
    ("language", "why"),
    [
        ({"questions": {"path": Wording("?")}}, "'texts.en' must be one of way"),
        ({"fields": {"way": Wording("?")}}, "'texts.en' must be one of region"),
        ({"questions": {"way": Wording("?", ("one",))}}, "'texts.en.way' must be 2 texts"),
        (
            {"fields": {"region": Wording("?", ("a", "b", "c"))}},
            "'texts.en.region' must be 2 texts",
        ),
    ],
)
def test_wordings_fit_what_is_asked(language, why):
    with pytest.raises(InvalidArgument, match=why):
        of(**language).check(REGIONS)


@pytest.mark.parametrize("tag", ["", "e", "english", "en_GB", "en-", "日本", "en "])
def test_languages_have_tags(tag):
    with pytest.raises(InvalidArgument, match="a language tag"):
        Texts(REGIONS.digest, {tag: Language()}).check(REGIONS)


@pytest.mark.parametrize("text", ["a\x1b[31m", "\ud800", 5, None, "a\x00"])
def test_texts_can_be_read(text):
    for make in (
        lambda: Wording(text),
        lambda: Wording("?", (text, "b")),
        lambda: Wording(unit=text),
        lambda: Language(text),
        lambda: Language(about=text),
    ):
        with pytest.raises(InvalidArgument):
            make()


@pytest.mark.parametrize(
    "bad",
    [
        b"", b"[]", b"5", b"{}", b"\xff", document() + b"\n",
        document(deniable=1), document(deniable=3), document(languages={}), document(languages=[]),
        document(languages={"en": []}), document(languages={"en": {"questions": [{}]}}),
        document(languages={"en": {"questions": [{"name": "way", "answers": 5}]}}),
        document(languages={"en": {"questions": [{"name": "way", "unit": 5}]}}),
        document(languages={"en": {"title": 5}}), document(candidates=[]),
        document(candidates={"way": "tea"}), document(candidates={"way": [5]}),
        document(collection=5),
    ],
)  # fmt: skip
def test_other_documents_are_refused(bad):
    with pytest.raises(CorruptData):
        Texts.from_document(bad)


def test_a_document_of_version_1_says_so():
    with pytest.raises(CorruptData, match=r"version 0\.1, which was never released"):
        Texts.from_document(document(deniable=1))


@pytest.mark.slow
def test_texts_have_at_most_1_mib():
    about = "x" * MOST_BYTES
    with pytest.raises(InvalidArgument, match="at most 1048576 bytes together"):
        of(about=about).check(REGIONS)
    short = of(about="x" * (MOST_BYTES - len(of(about="").document)))
    assert len(short.check(REGIONS).document) == MOST_BYTES
    assert Texts.from_document(short.document) == short
    with pytest.raises(CorruptData, match="at most 1048576 bytes"):
        Texts.from_document(short.document + b" ")


def test_all_languages_of_a_survey_are_in_one_document():
    asked = {"name": "way", "ask": "How?", "kind": "choice", "answers": ["car", "train"]}
    german = {
        "title": "Wege",
        "about": "Für alle",
        "way": {"ask": "Wie?", "answers": ["Auto", "Zug"]},
    }
    data = {"title": "Ways", "epsilon": 1.0, "questions": [asked], "texts": {"de": german}}
    texts = survey_of(data).texts
    assert list(texts.languages) == ["en", "de"]
    assert (texts.title, texts.ask("way")) == ("Ways", "How?")
    assert texts.languages["de"] == Language(
        "Wege", "Für alle", {"way": Wording("Wie?", ("Auto", "Zug"))}
    )
    assert Texts.from_document(texts.document).title == "Ways"
    assert survey_of({**data, "language": "fr"}).texts.first.title == "Ways"


@pytest.mark.parametrize("form", [{"edges": [6, 8]}, {"lo": 0, "hi": 24}])
def test_the_unit_of_a_number_is_wording(form):
    """It may be corrected and translated; the collection is the same without it."""
    asked = {"name": "sleep", "ask": "How long?", "kind": "number", **form}
    data = {"title": "Sleep", "epsilon": 1.0, "questions": [asked]}
    texts = {"de": {"sleep": {"unit": "Stunden"}}}
    measured = {**data, "questions": [{**asked, "unit": "hours"}], "texts": texts}
    found = survey_of(measured)
    assert found.collection == survey_of(data).collection
    assert found.skeleton == survey_of(data).skeleton
    units = [one.questions["sleep"].unit for one in found.texts.languages.values()]
    assert units == ["hours", "Stunden"]
    assert Texts.from_document(found.texts.document) == found.texts
    with pytest.raises(InvalidArgument, match="unit"):
        survey_of({**data, "questions": [{**asked, "unit": 5}]})
