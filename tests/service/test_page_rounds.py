"""The page answers the round of its link, and no other."""

import json

import pytest

from browsers import browsing
from page_collectors import collecting

pytestmark = pytest.mark.network
SURVEY = """
title = "Every week"
epsilon = 4.0
rounds = 12
changes = 0
questions = [
  {name = "mood", ask = "How is it?", kind = "choice", answers = ["good", "bad", "so so"], mechanism = "lgrr"},
]
"""  # noqa: E501


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    with collecting(folder, SURVEY) as collector, browsing(folder) as browser:
        yield collector, browser


def opened(page, rest):
    collector, browser = page
    browser.driver.get("about:blank")
    browser.driver.get(f"{collector.url}/answer{rest}")
    browser.wait(lambda: browser.one("#ask").is_displayed() or browser.text("#trouble"))
    return browser


def posted(browser):
    """The bodies that the page has sent since the last call."""
    events = [json.loads(entry["message"]) for entry in browser.driver.get_log("performance")]
    sent = [
        event["message"]["params"]["request"]
        for event in events
        if event["message"]["method"] == "Network.requestWillBeSent"
    ]
    return [json.loads(request["postData"]) for request in sent if request["method"] == "POST"]


def answered(page, rest):
    """What the page shows before it sends, and what it sends."""
    browser = opened(page, rest)
    said = browser.text("#promise")
    browser.one("#mood-1").click()
    browser.one("#form button").click()
    browser.wait(lambda: browser.one("#check").is_displayed())
    shown = json.loads(browser.one("#body").get_attribute("textContent"))
    posted(browser)
    browser.one("#send").click()
    browser.wait(lambda: browser.one("#done").is_displayed())
    return said, shown, posted(browser)


@pytest.mark.parametrize(
    ("rest", "number"), [("", 1), ("?round=2", 2), ("?round=10", 10), ("?round=12&from=mail", 12)]
)
def test_the_round_of_the_link_is_posted(page, rest, number):
    said, shown, sent = answered(page, rest)
    assert f"Round {number} of 12." in said
    assert sent == [shown]
    assert shown["round"] == number


@pytest.mark.parametrize("given", ["0", "13", "-1", "1.5", "two", "", "1e1000", "0x", "65537"])
def test_other_rounds_are_refused(page, given):
    browser = opened(page, f"?round={given}")
    assert "no such round" in browser.text("#trouble")
    assert not browser.one("#ask").is_displayed()
    assert posted(browser) == []
