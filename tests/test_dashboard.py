"""The dashboard while something is missing: answers, a server, a token."""

import threading

import pandas as pd
import pytest

from browsers import browsing, programs
from deniable.collection.client import Client
from page_collectors import PARTNER_KEY, collecting

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
    assert all(caption.startswith("Bars: ") for caption in captions(browser))


def test_answers_of_any_name_are_drawn(browser, collector, held):
    held(collector, "nothing")
    browser.wait(lambda: len(browser.all(".chart svg")) == 6)
    texts = [node.text for node in browser.all("#card-odd .role-axis-label text")]
    assert [text for text in texts if not text.endswith("%")] == AWKWARD
    assert len(browser.all("#card-odd .mark-rect path")) == 4 * 3  # a bar, and an interval's ends
    assert browser.complaints() == []


def test_nothing_is_said_before_it_is_known_and_cards_come_together(browser, collector, held):
    """Not "0 reports", and not one card after the other: four at a time."""
    held(collector, "/v1/status")
    browser.wait(lambda: run(browser, "return held.length") == 1)
    assert browser.text("#state") == "Loading"
    assert browser.all(".card[id^=card]") == []
    run(browser, "release('/v1/estimates')")
    browser.wait(lambda: run(browser, "return held.length") == 4)
    assert counts(browser) == {"100"}
    assert captions(browser) == {"Estimating …"}
    assert browser.text("#state") == "Loading"
    run(browser, "release('/v1/estimates')")
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


def test_a_new_token_is_tried_at_once(browser, collector):
    browser.driver.get("about:blank")
    browser.driver.get(f"{collector.url}/#token=wrong")
    browser.wait(lambda: "does not know this token" in browser.text("#refused"))
    assert browser.text("#state") == "Waiting for a token"
    browser.keys(collector.token, "\n")
    browser.wait(lambda: browser.text("#state") == "Live")
