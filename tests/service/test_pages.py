"""The pages of a collector, without a browser: what is served, and what it may do."""

import asyncio
import gzip
import re
import tomllib

import pytest
from starlette.requests import Request

from deniable.collection.survey import survey_of
from deniable.service import vega
from deniable.service.pages import STATIC, page_routes
from deniable.service.problems import Problem
from deniable.service.scripts import client_folder
from page_collectors import collecting

pytestmark = pytest.mark.network
SURVEY = """
title = "<script>alert(1)</script>"
epsilon = 1.0
[[questions]]
name = "sick"
ask = "Were you <b>sick</b>?"
kind = "yes/no"
"""
MANIFEST = survey_of(tomllib.loads(SURVEY)).collection.manifest
PLACES = [route.path for route in page_routes(MANIFEST) if route.path != "/vega.js"]
#: What a program would use to turn text into markup or code.
DANGERS = ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function(",
           "createContextualFragment", "DOMParser", "srcdoc", "javascript:"]  # fmt: skip


@pytest.fixture(scope="module")
def collector(tmp_path_factory):
    with collecting(tmp_path_factory.mktemp("pages"), SURVEY) as found:
        yield found


@pytest.mark.parametrize("place", PLACES)
def test_every_file_is_served_with_strict_headers(collector, place):
    status, headers, body = collector.get(place)
    assert status == 200
    assert body
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert not {"unsafe-eval", "unsafe-inline", "*", "http:", "https:", "data:"} & set(
        headers["Content-Security-Policy"].replace("'", " ").split()
    )
    assert ("trusted-types" in policy) == (place != "/")


@pytest.mark.parametrize(
    ("place", "kind"),
    [("/", "text/html"), ("/answer", "text/html"), ("/client.js", "text/javascript"),
     ("/style.css", "text/css"), ("/icon.svg", "image/svg+xml")],
)  # fmt: skip
def test_files_say_what_they_are(collector, place, kind):
    _, headers, _ = collector.get(place)
    assert headers["Content-Type"].partition(";")[0] == kind


def test_what_a_browser_has_is_not_sent_again(collector):
    _, headers, _ = collector.get("/style.css")
    status, _, body = collector.get("/style.css", if_none_match=headers["ETag"])
    assert (status, body) == (304, b"")


@pytest.mark.parametrize("place", PLACES)
def test_nothing_comes_from_elsewhere(collector, place):
    text = collector.get(place)[2].decode()
    assert set(re.findall(r"(?:https?:)?//[\w.]+\.[\w/]+", text)) <= {"http://www.w3.org/2000/svg"}


SCRIPTS = sorted([*STATIC.glob("*.js"), *client_folder().glob("*.js")])


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_no_text_becomes_markup_or_code(path):
    text = path.read_text()
    assert not [danger for danger in DANGERS if danger in text]


@pytest.mark.parametrize("name", ["dashboard.html", "answer.html"])
def test_pages_hold_no_code_and_nothing_of_the_collection(name):
    text = (STATIC / name).read_text()
    assert not re.search(r"<script(?! type=\"module\" src=)|<style|\son\w+=|\sstyle=", text)
    assert "{" not in text  # nothing is filled in


def test_the_words_of_a_collection_are_not_in_the_pages(collector):
    for place in ("/", "/answer"):
        assert b"alert(1)" not in collector.get(place)[2]


@pytest.mark.parametrize("name", ["dashboard", "answer"])
def test_scripts_find_what_they_look_for(name):
    ids = set(re.findall(r' id="(\w+)"', (STATIC / f"{name}.html").read_text()))
    script = (STATIC / f"{name}.js").read_text()
    assert set(re.findall(r"byId\('(\w+)'\)", script)) <= ids


FILES = sorted(path for path in STATIC.iterdir() if path.is_file())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_name_only_files_that_are_served(path):
    asked = re.findall(r"""(?:from |src: |src=|href=)['"](/[\w./]*)['"]""", path.read_text())
    assert set(asked) <= {*PLACES, "/vega.js"}


def test_the_modules_of_the_client_are_served(collector):
    """Beside each other, as they import each other; a collection has the modules it needs."""
    module = collector.get("/client.js")[2].decode()
    needed = re.findall(r"'\.(/client/\w+\.js)'", module)
    assert {"/client/core.js", "/client/direct.js"} <= set(needed) <= set(PLACES)
    assert "again" not in module
    for place in PLACES:
        if place.startswith("/client/"):
            text = collector.get(place)[2].decode()
            asked = re.findall(r"(?:from|import|import\()'\.(/\w+\.js)'", text)
            assert {f"/client{name}" for name in asked} <= set(PLACES)


def test_the_chart_library_is_made_once_and_travels_compressed(collector):
    status, headers, packed = collector.get("/vega.js", accept_encoding="br, gzip")
    assert (status, headers["Content-Encoding"]) == (200, "gzip")
    assert int(re.search(r"max-age=(\d+)", headers["Cache-Control"])[1]) >= 86_400
    assert len(packed) < 400_000
    _, plain_headers, plain = collector.get("/vega.js")
    assert plain == gzip.decompress(packed)
    assert "Content-Encoding" not in plain_headers
    assert collector.get("/vega.js", if_none_match=headers["ETag"])[0] == 304
    assert b"window.vegaEmbed=" in plain


def test_without_the_chart_library_the_collector_says_so_and_does_not_try_again(monkeypatch):
    """A process for every request would be a way to keep the machine busy."""
    monkeypatch.setattr(vega, "_MAKE", "import nothing_of_this_name")
    tried, make = [], vega._make

    async def counted():
        tried.append(1)
        return await make()

    monkeypatch.setattr(vega, "_make", counted)

    async def ask_twice():
        bundle = vega.Bundle()
        for _ in range(2):
            with pytest.raises(Problem, match=r"pip install 'deniable\[plot\]'"):
                await bundle.script()

    asyncio.run(ask_twice())
    assert tried == [1]


def test_the_chart_library_is_unpacked_once(monkeypatch):
    """In the loop of the collector, 8 ms for each request would hold up everybody."""
    unpacked, unpack = [], gzip.decompress
    monkeypatch.setattr(
        vega, "_MAKE", "import gzip, sys; sys.stdout.buffer.write(gzip.compress(b'x'))"
    )
    monkeypatch.setattr(vega.gzip, "decompress", lambda data: unpacked.append(1) or unpack(data))

    async def ask_often():
        route = vega.vega_route({})
        request = Request({"type": "http", "headers": []})
        return [(await route.endpoint(request)).body for _ in range(3)]

    assert asyncio.run(ask_often()) == [b"x"] * 3
    assert unpacked == [1]
