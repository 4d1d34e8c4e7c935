"""The dashboard while something is missing: answers, a server, a token."""

import threading

import pandas as pd
import pytest

from browsers import browsing, programs
from deniable.collection.client import Client
from page_collectors import PARTNER_KEY, collecting

pytestmark = pytest.mark.network
#: Names that every object of JavaScript has.
AWKWARD = ["__proto__", "constructor", "toString", "hasOwnProperty"]
SURVEY = f"""
title = "Six questions"
epsilon = 8.0
questions = [
  {{name = "odd", ask = "Which?", kind = "choice", answers = {AWKWARD}}},
  {", ".join(f'{{name = "q{i}", ask = "And {i}?", kind = "yes/no"}}' for i in range(5))},
]
"""
#: A mean and texts, of which every device draws one; words that differ from ids.
MIXED = """
title = "Mixed"
epsilon = 6.0
divide = "sampled"
questions = [
  {name = "hours", ask = "How long?", kind = "number", lo = 0, hi = 24, mechanism = "hh", design = {bins = 8}},
  {name = "drink", ask = "What?", kind = "text", candidates = ["tea"]},
  {name = "way", ask = "How?", kind = "choice", answers = ["car", "train"]},
]
[texts.en.way]
answers = ["By car", "By train"]
"""  # noqa: E501
#: Before a page's scripts: answers wait in `held` while their path contains the text `hold`,
#: `most` is how many waited at once, and no server is there while `gone`.
HOLD = """
window.held = []; window.most = 0; window.gone = false; window.hold = '%s';
const real = window.fetch;
window.fetch = async (path, ...rest) => {
  if (window.gone) throw new TypeError('no server');
  if (window.hold && String(path).includes(window.hold)) {
    await new Promise((resolve) => {
      window.most = Math.max(window.most, window.held.push(resolve));
    });
  }
  return real(path, ...rest);
};
window.release = (next) => { window.hold = next; window.held.splice(0).forEach((go) => go()); };
"""


@pytest.fixture(scope="module")
def collector(tmp_path_factory):
    """With a hundred answers to each question."""
    programs()
    with collecting(tmp_path_factory.mktemp("dashboard"), SURVEY) as found:
        threading.Thread(target=found.get, args=("/vega.js",), daemon=True).start()
        send(found, 100)
        yield found


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with browsing(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture
def held(browser):
    """Opens a dashboard, where answers whose path contains a text wait."""
    scripts = []

    def opened(collector, text):
        given = {"source": HOLD % text}
        added = browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", given)
        scripts.append(added["identifier"])
        browser.driver.get("about:blank")
        browser.driver.get(f"{collector.url}/#token={collector.token}")

    yield opened
    for script in scripts:
        browser.driver.execute_cdp_cmd(
            "Page.removeScriptToEvaluateOnNewDocument", {"identifier": script}
        )


def send(collector, n):
    people = {"odd": (AWKWARD * n)[:n], **{f"q{i}": [True] * n for i in range(5)}}
    with Client(collector.url, key=PARTNER_KEY, timeout=60) as client:
        client.send_all(client.privatize_table(pd.DataFrame(people)))


def captions(browser):
    return {node.text for node in browser.all("figcaption")}


def counts(browser):
    return {node.text for node in browser.all(".card .facts div:first-child dd")}


def run(browser, script):
    return browser.driver.execute_script(script)


def test_there_are_no_bars_below_the_number_that_the_card_states(browser, held, tmp_path):
    """Of few answers a chart would show chance; of one, a report."""
    with collecting(tmp_path, SURVEY) as collector:
        held(collector, "nothing")
        check_few(browser, collector)
        browser.driver.get("about:blank")


def check_few(browser, collector):
    """Nobody, one, 99 and 100 people have answered."""
    browser.wait(lambda: browser.text("#state") == "Live")
    assert captions(browser) == {"No answers yet. Charts appear from 100 answers."}
    for n, words in ((1, "1 answer"), (99, "99 answers")):
        send(collector, n - (0 if n == 1 else 1))
        wanted = {f"{words} so far. Charts appear from 100 answers."}
        browser.wait(lambda wanted=wanted: captions(browser) == wanted)
        assert browser.all(".chart svg, .card table") == []
    send(collector, 1)
    browser.wait(lambda: len(browser.all(".chart svg")) == 6)
    assert all(caption.startswith("100 answers. Bars show") for caption in captions(browser))


def test_answers_of_any_name_are_drawn(browser, collector, held):
    held(collector, "nothing")
    browser.wait(lambda: len(browser.all(".chart svg")) == 6)
    texts = [node.text for node in browser.all("#card-odd .role-axis-label text")]
    assert [text for text in texts if not text.endswith("%")] == AWKWARD
    assert len(browser.all("#card-odd .mark-rect path")) == 4 * 3  # a bar, and an interval's ends
    assert browser.complaints() == []


def test_nothing_is_said_before_it_is_known_and_cards_come_together(browser, collector, held):
    """Not "0 reports", and not one card after the other: four at a time."""
    held(collector, "/v2/status")
    browser.wait(lambda: run(browser, "return held.length") == 1)
    assert browser.text("#state") == "Loading"
    assert browser.all(".card[id^=card]") == []
    run(browser, "release('/v2/estimates')")
    browser.wait(lambda: run(browser, "return held.length") == 4)
    assert counts(browser) == {"100"}
    assert captions(browser) == {"Estimating …"}
    assert browser.text("#state") == "Loading"
    run(browser, "release('/v2/estimates')")
    browser.wait(lambda: run(browser, "return held.length") == 2)
    run(browser, "release('')")
    browser.wait(lambda: browser.text("#state") == "Live")
    assert run(browser, "return most") == 4
    assert len(browser.all(".chart svg")) == 6


def test_the_corner_says_when_the_collector_is_gone_and_when_it_is_back(browser, collector, held):
    held(collector, "nothing")
    browser.wait(lambda: browser.text("#state") == "Live")
    run(browser, "gone = true")
    words = "The server does not answer. Last update "
    browser.wait(lambda: browser.text("#state").startswith(words))
    assert "Trying again in 4 s." in browser.text("#state")
    assert browser.one("#state").get_attribute("data-kind") == "trouble"
    run(browser, "gone = false")
    browser.wait(lambda: browser.text("#state") == "Live")
    assert browser.one("#state").get_attribute("data-kind") == "live"


def test_what_may_be_asked_and_how_it_looks_comes_from_the_server(browser, held, tmp_path):
    """A number has two charts, and no candidates; the page knows neither."""
    people = {"hours": [7.5] * 6000, "drink": ["tea", "milk"] * 3000, "way": ["car"] * 6000}
    with collecting(tmp_path, MIXED) as collector:
        with Client(collector.url, key=PARTNER_KEY, timeout=60) as client:
            client.send_all(client.privatize_table(pd.DataFrame(people)))
        held(collector, "nothing")
        browser.wait(lambda: len(browser.all(".chart svg")) == 3)
        check_mixed(browser)
        browser.driver.get("about:blank")


def check_mixed(browser):
    assert "the questions that the device draws" in browser.text("#facts")
    assert "33 % of respondents, drawn" in browser.text("#card-hours .facts")
    assert [len(browser.all(f"#card-{name} textarea")) for name in ("hours", "drink", "way")] == [
        3, 1, 0
    ]  # fmt: skip
    assert [browser.one(f"#view-{name}").is_displayed() for name in ("hours", "way")] == [
        True,
        False,
    ]
    assert "the median" in browser.text("#card-hours figcaption")
    browser.one("#view-hours").send_keys("cdf\t")
    browser.wait(lambda: "up to each number" in browser.text("#card-hours figcaption"))
    browser.one("#range-hours").send_keys("6..8\t")
    table = browser.one("#card-hours .scroll")
    browser.wait(lambda: "share from 6 to 8" in table.get_attribute("textContent"))
    heads = [node.get_attribute("textContent") for node in browser.all("#card-hours thead th")]
    assert heads == ["statistic", "estimate", "from", "to"]
    texts = [node.text for node in browser.all("#card-way .role-axis-label text")]
    assert [text for text in texts if not text.endswith("%")] == ["By car", "By train"]
    wanted = browser.one("#candidates-drink")
    assert wanted.get_attribute("value") == "tea"
    wanted.send_keys("\nmilk\t")
    browser.wait(lambda: "milk" in browser.text("#card-drink .chart"))
    assert browser.complaints() == []


def test_charts_have_the_colours_of_the_page(browser, collector, held):
    held(collector, "nothing")
    browser.wait(lambda: len(browser.all(".chart svg")) == 6)
    fill = """return [...document.querySelectorAll('#card-q0 .mark-rect path')]
        .map((path) => path.getAttribute('fill'))"""
    found = {}
    for scheme in ("dark", "light"):
        wanted = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
        bar = run(browser, "return getComputedStyle(document.body).getPropertyValue('--bar')")
        browser.wait(lambda bar=bar: bar.strip() in run(browser, fill))
        found[scheme] = run(browser, fill)
    assert not set(found["dark"]) & set(found["light"])


def test_a_new_token_is_tried_at_once(browser, collector):
    browser.driver.get("about:blank")
    browser.driver.get(f"{collector.url}/#token=wrong")
    browser.wait(lambda: "does not know this token" in browser.text("#refused"))
    assert browser.text("#state") == "Waiting for a token"
    browser.keys(collector.token, "\n")
    browser.wait(lambda: browser.text("#state") == "Live")
