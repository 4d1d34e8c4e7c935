"""The pages as people see them: Chromium answers the questionnaire and watches the dashboard."""

import gzip
import json
import re
import threading
import time
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from browsers import browsing, programs, seen
from collectors import Collector
from deniable.canonical import canonical
from deniable.collection.client import Client
from deniable.collection.example import EXAMPLE
from deniable.collection.manifest import Collection, Field
from deniable.collection.survey import survey_of
from deniable.service.scripts import client_files, client_module
from deniable.service.store import open_store
from hostile import Site, serving
from page_collectors import PARTNER_KEY, collecting
from places import ROOT

pytestmark = pytest.mark.network
OUT = ROOT / "out" / "pages"
SURVEY = """
title = "Health at work"
about = "Among the people of a large company. Nobody, not even we, will ever hold your answer."
epsilon = 6.0
respondents = 20000
[[questions]]
name = "smoking"
ask = "How often do you smoke?"
kind = "choice"
answers = ["never", "sometimes", "daily"]
[[questions]]
name = "sick"
ask = "Were you off sick last month?"
kind = "yes/no"
[[questions]]
name = "sleep"
ask = "How many hours do you sleep?"
kind = "number"
edges = [5, 6, 7, 8]
[[questions]]
name = "team"
ask = "Where do you work?"
kind = "choice"
answers = ["Accounting", "Canteen", "Design", "Engineering", "Legal", "Marketing", "Operations",
           "Purchasing", "Sales"]
[[questions]]
name = "medicine"
ask = "Which medicine do you take most often?"
kind = "text"
candidates = ["aspirin", "ibuprofen", "none"]
"""
#: Its words would like to be more than words.
SAMPLED = """
title = "One <i>question</i> each"
epsilon = 1.0
divide = "sampled"
questions = [
  {name = "a", ask = "Is <b>this</b> right?", kind = "yes/no"},
  {name = "b", ask = "<script>hacked=1</script>", kind = "choice", answers = ["<img src=x onerror=hacked=1>", "no", "a\u2028b"]},
]
"""  # noqa: E501
ROUNDS = """
title = "Every month"
epsilon = 3.0
rounds = 3
changes = 1
questions = [
  {name = "mood", ask = "How is it?", kind = "choice", answers = ["good", "bad", "so so"], mechanism = "lgrr"},
]
"""  # noqa: E501


@pytest.fixture(scope="module")
def collector(tmp_path_factory):
    programs()
    with collecting(tmp_path_factory.mktemp("collector"), SURVEY) as found:
        # Making the chart library takes seconds; meanwhile the tests go on.
        threading.Thread(target=found.get, args=("/vega.js",), daemon=True).start()
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("browser")


@pytest.fixture(scope="module")
def browser(folder):
    with browsing(folder) as found:
        yield found


def open_questionnaire(browser, url, rest=""):
    browser.driver.get("about:blank")
    browser.driver.get(f"{url}/answer{rest}")
    shown = "#ask, #kept, #changed, #trouble"
    browser.wait(lambda: any(part.is_displayed() for part in browser.all(shown)))


@pytest.fixture
def stranger(browser, collector):
    """A browser that has answered nothing here."""
    browser.driver.get("about:blank")
    forgotten = {"origin": collector.url, "storageTypes": "indexeddb"}
    browser.driver.execute_cdp_cmd("Storage.clearDataForOrigin", forgotten)


def pictures(browser, name):
    """Wide and narrow, light and dark; nothing is wider than the window."""
    for width, dark in ((1280, False), (1280, True), (390, True), (390, False)):
        browser.look(width=width, dark=dark)
        browser.driver.execute_async_script("setTimeout(arguments[0], 300)")  # it redraws
        browser.picture(OUT / f"{name}-{width}-{'dark' if dark else 'light'}.png")
        wide = "return document.documentElement.scrollWidth"
        assert browser.driver.execute_script(wide) <= width
    browser.look(width=1280, dark=False)


def quiet(browser, collector):
    """No error, no warning, and since the last such look no request to anybody else."""
    assert browser.complaints() == []
    assert browser.hosts() == {f"127.0.0.1:{collector.port}"}


def leave(browser):
    """Nothing of this page is seen by the next test."""
    browser.driver.get("about:blank")
    browser.complaints()
    browser.hosts()


def test_a_missing_answer_is_asked_for(browser, collector):
    browser.look(width=1280, dark=False)
    open_questionnaire(browser, collector.url)
    assert browser.text("#title") == "Health at work"
    browser.one("#smoking-0").click()
    browser.one("#form button").click()
    focused = browser.driver.switch_to.active_element
    assert focused.get_attribute("id") == "sick-0"
    box = browser.one("fieldset[aria-invalid=true]")
    assert browser.text(f"#{box.get_attribute('aria-describedby')}") == "Please choose one."
    assert not browser.one("#check").is_displayed()


def test_answers_by_mouse_are_shown_before_they_are_sent(browser, stranger, collector):
    open_questionnaire(browser, collector.url)
    pictures(browser, "answer")
    browser.one("#smoking-1").click()
    browser.one("#sick-0").click()
    browser.one("#field-team").send_keys("Legal")
    browser.one("#field-medicine").send_keys("melatonin")
    browser.one("#sleep-3").click()
    browser.one("#form button").click()
    browser.wait(lambda: browser.one("#check").is_displayed())
    answers = [node.text for node in browser.all("#reports .pair > div:first-child dd")]
    assert answers[2] == "7 to 8"
    assert browser.driver.switch_to.active_element.text == "This is what leaves"
    assert count(collector) == 0
    body = browser.one("#body").get_attribute("textContent")
    assert set(body) & {" "} == set()
    assert '"round":1}' in body
    assert browser.text("#total").endswith("as likely with your answers as with any others.")
    pictures(browser, "check")
    browser.one("#send").click()
    browser.wait(lambda: browser.one("#done").is_displayed())
    assert browser.driver.switch_to.active_element.text == "Thank you"
    assert "melatonin" not in browser.driver.page_source
    assert count(collector) == 1
    quiet(browser, collector)


def test_answers_by_keyboard_alone(browser, stranger, collector):
    from selenium.webdriver.common.keys import Keys

    open_questionnaire(browser, collector.url)
    tab, space, down, enter = Keys.TAB, Keys.SPACE, Keys.ARROW_DOWN, Keys.ENTER
    browser.keys(tab, space, down, tab, space, tab, down, down, tab, "Design", tab, "none", enter)
    browser.wait(lambda: browser.one("#check").is_displayed())
    answers = [node.text for node in browser.all("#reports .pair > div:first-child dd")]
    assert answers == ["sometimes", "yes", "6 to 7", "Design", "none"]
    browser.keys(*[tab] * 5)  # over the details of each report
    browser.keys(tab, tab, tab, enter)  # over what is sent, byte for byte
    browser.wait(lambda: browser.one("#done").is_displayed())
    assert count(collector) == 2
    quiet(browser, collector)


def test_a_usual_client_is_at_most_8000_bytes_with_all_that_it_loads_later(browser):
    """Whatever is loaded until the report is sent, compressed; texts are the page's."""
    survey = survey_of(EXAMPLE)
    manifest = survey.collection.manifest
    with serving(Site(manifest, texts=survey.texts.document)) as site:
        open_questionnaire(browser, site.url)
        for choice in browser.all("#fields fieldset"):
            choice.find_element("css selector", "input").click()
        for written in browser.all("#fields input[type=text]"):
            written.send_keys("7")
        browser.one("#form button").click()
        browser.wait(lambda: browser.one("#check").is_displayed())
        press(browser, "#send")
        assert len(site.bodies()) == 1
        asked = "return performance.getEntriesByType('resource').map(({ name }) => name)"
        loaded = re.findall(r"/client/(\w+\.js)", " ".join(browser.driver.execute_script(asked)))
        leave(browser)
    files = {**client_files(), "client.js": client_module(manifest).encode()}
    names = {"client.js", *loaded} - {"texts.js"}
    assert {"core.js", "direct.js"} <= names
    assert sum(len(gzip.compress(files[name], 9)) for name in names) <= 8000


def test_going_back_and_loading_again_keep_the_coins(browser, stranger, collector):
    """The same answers show the same report, byte for byte; others have the same coins and id."""
    before, bodies = count(collector), []
    for sick in ("#sick-1", "#sick-0", "#sick-1"):
        open_questionnaire(browser, collector.url)
        check(browser, sick=sick)
        bodies.append(browser.one("#body").get_attribute("textContent"))
        browser.one("#back").click()
        browser.one("#form button").click()
        browser.wait(lambda: browser.one("#check").is_displayed())
        assert browser.one("#body").get_attribute("textContent") == bodies[-1]
    assert bodies[0] == bodies[2]
    assert len({json.loads(body)["id"] for body in bodies}) == 1
    assert count(collector) == before


def check(browser, sick="#sick-1", medicine="none"):
    """Answer everything, up to what would be sent."""
    for css in ("#smoking-0", sick, "#sleep-4"):
        browser.one(css).click()
    for name, text in (("team", "Sales"), ("medicine", medicine)):
        browser.one(f"#field-{name}").send_keys(text)
    browser.one("#form button").click()
    browser.wait(lambda: browser.one("#check").is_displayed())


def test_texts_are_not_changed(browser, stranger, collector):
    open_questionnaire(browser, collector.url)
    check(browser, medicine=" none ")
    answer = browser.all("#reports .pair > div:first-child dd")[-1]
    assert answer.get_attribute("textContent") == " none "


def small(epsilon=1.0, rounds=1):
    """A manifest with one question."""
    mechanism = dn.GRR(["never", "sometimes", "daily"], epsilon)
    return Collection.split({"smoking": mechanism}, epsilon * rounds, rounds=rounds).manifest


def answer_small(browser, site, rest=""):
    """Up to what would be sent."""
    open_questionnaire(browser, site.url, rest)
    browser.one("#smoking-1").click()
    browser.one("#form button").click()
    browser.wait(lambda: browser.one("#check").is_displayed())


def press(browser, button):
    """Send, and wait for what comes of it."""
    browser.one(button).click()
    browser.wait(lambda: browser.one("#done").is_displayed() or browser.text("#trouble"))
    browser.wait(lambda: not browser.all(button) or browser.one(button).is_enabled())


def test_whatever_a_collector_says_it_gets_one_report(browser):
    """It refuses as often as it likes; people send again, load the page again, answer again."""
    # Statuses that are not tried again at once.
    statuses = [422, 400, 401, 403, 409, 413, 415, 404, 410, 418, 422, 200]
    with serving(Site(small(), statuses=list(statuses))) as site:
        answer_small(browser, site)
        body = browser.one("#body").get_attribute("textContent")
        button = "#send"
        for number, status in enumerate(statuses, 1):
            press(browser, button)
            assert len(site.bodies()) == number
            if status == 200:
                break
            assert not any(back.is_displayed() for back in browser.all("#back"))
            assert browser.text(button) == "Send the same again"
            if number % 3 == 0:
                open_questionnaire(browser, site.url)
                assert not browser.one("#ask").is_displayed()
                assert "already answered" in browser.text("#kept")
                assert browser.one("#same").get_attribute("textContent") == body
                button = "#resend"
        assert "Your answers had been counted before" in browser.text("#thanks")
        assert set(site.bodies()) == {body.encode()}
        leave(browser)


#: The ids of the page's own parts, as names of questions.
PARTS = ("title", "trouble", "ask", "form", "check", "reports", "total", "body", "sending", "send",
         "back", "again", "kept", "same", "changed", "agree", "done", "constructor")  # fmt: skip


def test_questions_may_be_named_like_parts_of_the_page(browser):
    """Everything that is sent is shown, and every button works."""
    mechanisms = {name: dn.GRR(dn.Bins([5]), 0.1) for name in PARTS}
    asked = Collection.split(mechanisms, 0.1 * len(PARTS) + 0.1)
    with serving(Site(asked.manifest)) as site:
        open_questionnaire(browser, site.url)
        for label in browser.all("#fields label"):
            label.click()  # it leads to its own field
            browser.keys("6")
        for _ in range(2):
            browser.one("#form button").click()
            browser.wait(lambda: browser.one("section#check").is_displayed())
            assert len(browser.all("div#reports article")) == len(PARTS)
            assert "All of it together" in browser.text("p#total")
            body = browser.one("pre#body").get_attribute("textContent")
            browser.one("button#back").click()
            assert browser.one("section#ask").is_displayed()
        browser.one("#form button").click()
        browser.wait(lambda: browser.one("section#check").is_displayed())
        browser.one("button#send").click()
        browser.wait(lambda: browser.one("section#done").is_displayed())
        assert site.bodies() == [body.encode()]
        assert sorted(json.loads(body)["reports"]) == sorted(PARTS)
        leave(browser)


def test_a_collector_cannot_make_the_page_say_that_nothing_was_sent(browser):
    for word in ("memo", "coins", "prepared", "constructor", "toString", "__proto__"):
        problem = json.dumps({"type": f"urn:deniable:{word}", "detail": "No"}).encode()
        with serving(Site(small(), statuses=[422], problem=problem)) as site:
            answer_small(browser, site)
            press(browser, "#send")
            words = "That did not work: No. Sending the same again is safe: it is counted once."
            assert browser.text("#trouble") == words
            leave(browser)


def test_a_redirect_is_no_receipt(browser):
    with serving(Site(small(), statuses=[302], location="/answer")) as site:
        answer_small(browser, site)
        press(browser, "#send")
        assert "That did not work" in browser.text("#trouble")
        site.statuses, site.location = [201], ""
        press(browser, "#send")
        assert "Your answers were counted" in browser.text("#thanks")
        assert len(set(site.bodies())) == 1
        leave(browser)


def test_people_are_told_in_words_why_a_page_does_not_open(browser):
    with serving(Site(small())) as site:
        for path in ("/v2/admission", "/v2/manifest", "/v2/texts"):
            site.gone = {path}
            open_questionnaire(browser, site.url)
            words = "The collector does not answer. Please try again later."
            assert browser.text("#trouble") == words
        site.gone = set()
        open_questionnaire(browser, site.url, "#key=%D0%BA%D0%BB%D1%8E%D1%87")
        assert "needs a key" in browser.text("#trouble")
        browser.driver.execute_script("sessionStorage.clear()")
        leave(browser)


class Hanging(Site):
    """It does not say whom it admits as long as the page waits."""

    waited = threading.Event()

    def answer(self, path, headers):
        if path == "/v2/admission":
            self.waited.wait(10)
        return super().answer(path, headers)


def test_a_collector_that_hangs_is_one_that_does_not_answer(browser):
    impatient = (
        "AbortSignal.timeout = ((real) => () => real(200))(AbortSignal.timeout.bind(AbortSignal));"
    )
    with scripted(browser, impatient), serving(Hanging(small())) as site:
        open_questionnaire(browser, site.url)
        assert "does not answer" in browser.text("#trouble")
        site.waited.set()
        leave(browser)


@contextmanager
def scripted(browser, source):
    """This runs before the scripts of every page."""
    name = "Page.addScriptToEvaluateOnNewDocument"
    added = browser.driver.execute_cdp_cmd(name, {"source": source})
    try:
        yield
    finally:
        browser.driver.execute_cdp_cmd(name.replace("add", "remove"), added)


#: What browsers do that refuse all storage, and what those have that lack it.
NO_STORAGE = (
    """for (const place of ['sessionStorage', 'indexedDB']) {
         Object.defineProperty(window, place, { get() { throw new DOMException('denied'); } });
       }""",
    "Object.defineProperty(window, 'indexedDB', { value: null });",
)


@pytest.mark.parametrize("without", NO_STORAGE)
def test_nothing_is_sent_where_nothing_can_be_kept(browser, without):
    with scripted(browser, without), serving(Site(small())) as site:
        open_questionnaire(browser, site.url)
        assert "cannot keep what it has to remember" in browser.text("#trouble")
        assert not browser.one("#ask").is_displayed()
        leave(browser)


def test_no_number_on_the_page_is_smaller_than_what_it_bounds(browser):
    with serving(Site(small(0.004))) as site:
        answer_small(browser, site)
        assert "at most e^0.004 = 1.01 times" in browser.text("#total")
        press(browser, "#send")
        for epsilon, words in ((1.2341, "1.24"), (0.3, "0.3")):
            site.manifest = small(epsilon)
            open_questionnaire(browser, site.url)
            assert "up to epsilon 0.004 about you" in browser.text("#budgets")
            assert f"up to epsilon {words} more" in browser.text("#budgets")
        leave(browser)


def test_two_clicks_agree_once(browser):
    with serving(Site(small())) as site:
        answer_small(browser, site)
        press(browser, "#send")
        site.manifest = small(2.0)
        open_questionnaire(browser, site.url)
        asked = len(site.got("/v2/manifest"))
        browser.driver.execute_script("agree.click(); agree.click();")
        browser.wait(lambda: browser.one("#ask").is_displayed())
        assert len(site.got("/v2/manifest")) == asked + 1
        leave(browser)


def test_another_collection_at_the_same_address_is_asked_about(browser):
    with serving(Site(small())) as site:
        answer_small(browser, site)
        press(browser, "#send")
        site.manifest = small(2.5)
        for _ in range(2):
            open_questionnaire(browser, site.url)
            assert not browser.one("#ask").is_displayed()
            budgets = browser.text("#budgets")
            assert "epsilon 1 about you" in budgets
            assert "epsilon 2.5 more" in budgets
        assert len(site.bodies()) == 1
        pictures(browser, "changed")
        browser.one("#agree").click()
        browser.wait(lambda: browser.one("#ask").is_displayed())
        assert not browser.one("#changed").is_displayed()
        browser.one("#smoking-0").click()
        browser.one("#form button").click()
        browser.wait(lambda: browser.one("#check").is_displayed())
        press(browser, "#send")
        assert len(set(site.bodies())) == 2
        open_questionnaire(browser, site.url)
        assert "already answered" in browser.text("#kept")
        pictures(browser, "kept")
        site.manifest = small()  # the first one comes back: nothing new to agree to
        open_questionnaire(browser, site.url)
        assert "already answered" in browser.text("#kept")
        leave(browser)


def lying(**more):
    """A manifest that declares less than its integers reveal."""
    return canonical({**json.loads(small(4.0)), **more})


def test_a_manifest_that_breaks_its_promise_is_not_asked(browser):
    unknown = small().replace(b'"name":"grr"', b'"name":"toy"')
    cases = [
        (lying(epsilon=1.0), "than they promise"),
        (small(1.0, rounds=9), "epsilon above 8"),
        (unknown, "does not know this kind of question"),
    ]
    with serving(Site()) as site:
        for manifest, words in cases:
            site.manifest = manifest
            open_questionnaire(browser, site.url)
            assert words in browser.text("#trouble")
            assert not browser.one("#ask").is_displayed()
        leave(browser)


#: All kinds, each of which may be skipped.
SKIPPABLE = {
    "smoking": dn.GRR(dn.Choice(["never", "daily"], optional=True), 1.0),
    "sick": dn.GRR(dn.YesNo(optional=True), 1.0),
    "sleep": dn.OUE(dn.Bins([5, 6.5], optional=True), 1.0),
    "height": dn.DRR(dn.Number(0, 2500, 0.5, optional=True), 1.0),
    "content": dn.DRR(dn.Number(0, 1, 0.1, optional=True), 0.5),
    "drug": dn.ORR(dn.Text("case", 12, optional=True), 1.0, cohorts=64, width=3),
}
#: In two languages; the words of one would like to be more than words.
GERMAN = {
    "title": "Gesundheit",
    "about": "<b>Alles</b>",
    "questions": [
        {"name": "smoking", "ask": "Rauchen Sie?", "answers": ["nie", "<i>täglich</i>"]},
        {"name": "sick", "ask": "Waren Sie krank?", "answers": ["ja", "nein"]},
    ],
    "fields": [{"name": "region", "ask": "Wo?", "answers": ["Norden", "Süden"]}],
    "later": 1,
}


def worded():
    """A site with every kind of question, a public field, and texts in two languages."""
    region = Field("region", ("north", "south"))
    asked = Collection.split(SKIPPABLE, 6.0, fields=(region,))
    measured = [{"name": "height", "unit": "mm"}, {"name": "sleep", "unit": "hours"}]
    languages = {"de": GERMAN, "en": {"title": "Health", "questions": measured}}
    texts = {"deniable": 2, "collection": asked.digest, "languages": languages, "candidates": {}}
    return Site(asked.manifest, texts=canonical(texts))


def speaking(browser, language):
    """The browser reads this language from here on."""
    agent = browser.driver.execute_script("return navigator.userAgent")
    told = {"userAgent": agent, "acceptLanguage": language}
    browser.driver.execute_cdp_cmd("Emulation.setUserAgentOverride", told)


def test_every_kind_of_question_can_be_skipped(browser):
    with serving(worded()) as site:
        open_questionnaire(browser, site.url)
        assert browser.text("#title") == "Health"
        for css in ("#smoking-2", "#sick-2", "#sleep-3", "#content-11"):
            browser.one(css).click()
        browser.one("#form button").click()
        assert browser.text("#error-height").endswith("Or tick the box.")
        for name in ("height", "drug"):
            browser.one(f"#skip-{name}").click()
            assert not browser.one(f"#field-{name}").is_enabled()
        browser.one("#form button").click()
        assert browser.text("#error-region") == "Please choose one."
        assert "not protected" in browser.text("#hint-region")
        assert "but for what is sent as it is" in browser.text("#promise")
        browser.one("#region-1").click()
        browser.one("#form button").click()
        browser.wait(lambda: browser.one("#check").is_displayed())
        answers = [node.text for node in browser.all("#reports .pair > div:first-child dd")]
        assert answers == ["I would rather not answer"] * 6
        assert browser.text("#open") == "Sent as it is: region south."
        assert "these reports" not in browser.text("#check")
        assert "but for what is sent as it is" in browser.text("#stays")
        assert "All of it together, but for what is sent as it is, is" in browser.text("#total")
        assert json.loads(browser.text("#body"))["fields"] == {"region": "south"}
        pictures(browser, "skipped")
        leave(browser)


def test_numbers_say_what_happens_beyond_their_range(browser):
    with serving(worded()) as site:
        open_questionnaire(browser, site.url)
        beyond = "Only this range counts: your device moves answers beyond it to its ends."
        hint = browser.text("#hint-height")
        assert hint == f"From 0 to 2\u202f500 mm. {beyond} It rounds them to steps of 0.5."
        assert "Only the range from 0 to 1 counts" in browser.text("#hint-content")
        assert browser.text("#hint-sleep").startswith("In hours. A number on a limit")
        for css in ("#smoking-0", "#sick-0", "#sleep-1", "#content-3", "#region-0"):
            browser.one(css).click()
        browser.one("#field-drug").send_keys("thirteen ages")
        allowed = "from 0 to 2\u202f500."
        without = "without a comma or point after the thousands:"
        refused = {"1,000": f"{without} 1000.", "12.500": f"{without} 12500."}
        for unclear in ("", "1 00", "seven", "9" * 400, *refused):
            browser.one("#field-height").send_keys(unclear)
            browser.one("#form button").click()
            told = f"Please write a number {refused.get(unclear, allowed)} Or tick the box."
            assert browser.text("#error-height") == told
            assert "at most 12 bytes" in browser.text("#error-drug")
            browser.one("#field-height").clear()
        assert len(site.bodies()) == 0
        browser.one("#field-height").send_keys("3 000,5")
        browser.one("#field-drug").clear()
        browser.one("#field-drug").send_keys("tea")
        browser.one("#form button").click()
        browser.wait(lambda: browser.one("#check").is_displayed())
        answers = [seen(node.text) for node in browser.all("#reports .pair > div:first-child dd")]
        assert answers == ["never", "yes", "5 to 6.5", "3\u202f000.5 mm", "0.3", "tea"]
        says = [seen(node.text) for node in browser.all("#reports .leaves dd")]
        assert says[0] in ("“never”", "“daily”", "“no answer”")
        for said in says[3:5]:
            assert re.fullmatch(r"“(no answer|[\d.]+ to [\d.]+)”", said)
        press(browser, "#send")
        assert len(site.bodies()) == 1
        leave(browser)


def test_so_many_answers_are_ticked_and_not_one_more(browser):
    from selenium.webdriver.common.keys import Keys

    tools = dn.Items(["phone", "laptop", "tablet", "desktop", "paper"], 2, optional=True)
    asked = {
        "tools": dn.SetSelect(tools, 1.0),
        "fruit": dn.JointBits(dn.Items(["fig", "kiwi"]), 1.0),
    }
    with serving(Site(Collection.split(asked, 2.0).manifest)) as site:
        open_questionnaire(browser, site.url)
        assert browser.text("#hint-tools") == "Tick up to 2."
        assert browser.text("#hint-fruit") == "Tick all that apply."
        browser.one("#form button").click()
        assert browser.text("#error-tools") == "Please tick what applies, or “None of these”."
        assert browser.driver.switch_to.active_element.get_attribute("id") == "tools-0"
        browser.keys(Keys.SPACE, Keys.TAB, Keys.SPACE)
        assert browser.text("#error-tools") == ""
        boxes = [browser.one(f"#tools-{place}") for place in range(7)]
        assert [box.is_enabled() for box in boxes] == [True] * 2 + [False] * 3 + [True] * 2
        assert "You have ticked 2." in browser.text("fieldset [role=status]")
        browser.keys(Keys.TAB)  # over those that wait
        assert browser.driver.switch_to.active_element.get_attribute("id") == "tools-5"
        for alone in (5, 6):  # none of these, and a skip
            boxes[alone].click()
            assert [box.is_selected() for box in boxes].index(True) == alone
            assert all(box.is_enabled() for box in boxes)
        boxes[1].click()
        assert [place for place in range(7) if boxes[place].is_selected()] == [1]
        browser.one("#fruit-2").click()
        browser.one("#form button").click()
        browser.wait(lambda: browser.one("#check").is_displayed())
        answers = [seen(node.text) for node in browser.all("#reports .pair > div:first-child dd")]
        assert answers == ["laptop", "None of these"]
        press(browser, "#send")
        assert len(site.bodies()) == 1
        leave(browser)


def test_the_direction_of_an_answer_turns_no_other_words(browser):
    """An answer that writes to the left, and one that would end what keeps it apart."""
    left, tricky = "\u202eleft", "a\u2069\u202eb"
    asked = Collection.split({"q": dn.GRR([left, tricky], 1.0)}, 1.0)
    with serving(Site(asked.manifest)) as site:
        open_questionnaire(browser, site.url)
        browser.one("#q-1").click()
        browser.one("#form button").click()
        browser.wait(lambda: browser.one("#check").is_displayed())
        marked = {f"“\u2068{left}\u2069”", "“\u2068a\u202eb\u2069”"}
        for css in (".leaves dd", "details p", "details p + p"):
            text = browser.one(f"#reports {css}").get_attribute("textContent")
            assert set(re.findall("“[^”]*”", text)) < marked
            assert text.count("\u2068") == text.count("\u2069") == 1
        leave(browser)


def test_people_read_their_language_and_words_stay_words(browser):
    with serving(worded()) as site:
        speaking(browser, "de-AT,de")
        try:
            open_questionnaire(browser, site.url)
            assert browser.text("#title") == "Gesundheit"
            assert browser.text("#about") == "<b>Alles</b>"
            assert browser.one("#fields").get_attribute("lang") == "de"
            asked = [node.text for node in browser.all("legend")]
            assert asked == ["Rauchen Sie?", "Waren Sie krank?", "sleep", "content", "Wo?"]
            labels = [node.text for node in browser.all("#fields fieldset:first-child .radio")]
            assert labels == ["nie", "<i>täglich</i>", "I would rather not answer"]
            assert browser.text("label[for=field-height]") == "height"  # no words: its name
            assert browser.all("#fields i, #about b") == []
        finally:
            speaking(browser, "en-US,en")
        leave(browser)


#: What docs/wire-format.md says that a browser adds.
ADDED = re.compile(
    "host|connection|content-(type|length)|user-agent|sec-ch-ua.*|accept(-language|-encoding)?|origin"
    "|sec-fetch-.*|cache-control|pragma"
)


def test_a_second_load_tells_the_collector_nothing_about_the_first(browser):
    """A manifest's ETag would name a browser as a cookie does."""
    texts = canonical({"deniable": 2})
    with serving(Site(small(), admission={"needs": "nothing", "open": True}, texts=texts)) as site:
        for _ in range(3):
            open_questionnaire(browser, site.url)
        answer_small(browser, site)
        press(browser, "#send")
        assert browser.all("a") == []
        browser.one("#done summary").click()
        assert json.loads(browser.text("#manifest")) == json.loads(small())
        asked = {"manifest": 4, "texts": 4, "admission": 4, "submissions": 1}
        for name, times in asked.items():
            found = site.got(f"/v2/{name}")
            assert len(found) == times  # none came from a cache, either
            assert [
                header for headers in found for header in headers if not ADDED.fullmatch(header)
            ] == []
        leave(browser)


def test_who_has_no_key_is_told_at_the_door(browser):
    door = {"needs": "key", "open": True}
    with serving(Site(small(), admission=door, key="open sesame")) as site:
        for rest in ("", "#key=wrong"):
            open_questionnaire(browser, site.url, rest)
            assert "needs a key" in browser.text("#trouble")
            assert not browser.one("#ask").is_displayed()
            browser.driver.execute_script("sessionStorage.clear()")
        assert site.got("/v2/manifest") == []
        open_questionnaire(browser, site.url, "#key=open%20sesame")
        assert browser.one("#ask").is_displayed()
        door["open"] = False
        open_questionnaire(browser, site.url)
        assert "closed" in browser.text("#trouble")
        browser.driver.execute_script("sessionStorage.clear()")
        leave(browser)


#: Begins a memo in each of many places, at moments that all tabs know, and notes every secret.
RACE = """const [manifests, base, done] = arguments;
    (async () => {
      await import('/client/again.js');
      const { Client, browserBook } = await import('/client/core.js');
      const seen = {};
      for (const [trial, manifest] of manifests.entries()) {
        const book = { update: (change) => browserBook.update((pages) => {
          const after = change(pages);
          const { memos } = after[client.digest];
          for (const { secret } of Object.values(memos)) (seen[trial] ??= []).push(secret);
          return after;
        }) };
        const to = `https://example.org/${Math.random()}/submissions`; // in each tab another
        const client = await Client.load(new TextEncoder().encode(manifest), { book, to });
        while (Date.now() < base + 40 * trial); // tabs that nobody sees have slow timers
        const sheets = await Promise.all([1, 2].map((round) => client.begin(round)));
        await Promise.all(sheets.map((sheet) => sheet.prepare({ mood: 'bad' })));
      }
      return seen;
    })().then((seen) => { window.seen = seen; }, (error) => { window.seen = String(error); });
    done();"""


def test_tabs_that_begin_at_once_begin_one_memo(browser, collector):
    """As often as they race there is one secret, and so one budget."""
    mood = {"mood": dn.LGRR(["good", "bad", "so so"], 2.0, 1.0)}
    manifests = [
        Collection.split(mood, 4.1 + trial / 100, rounds=3, changes=1).manifest.decode()
        for trial in range(40)
    ]
    first = browser.driver.current_window_handle
    browser.driver.get(f"{collector.url}/icon.svg")
    tabs = [first]
    for _ in range(2):
        browser.driver.switch_to.new_window("tab")
        browser.driver.get(f"{collector.url}/icon.svg")
        tabs.append(browser.driver.current_window_handle)
    base = int(time.time() * 1000) + 500
    for tab in tabs:
        browser.driver.switch_to.window(tab)
        browser.driver.execute_async_script(RACE, manifests, base)
    found = []
    for tab in tabs:
        browser.driver.switch_to.window(tab)
        found.append(browser.wait(lambda: browser.driver.execute_script("return window.seen")))
        if tab != first:
            browser.driver.close()
    browser.driver.switch_to.window(first)
    for trial in map(str, range(len(manifests))):
        assert len({secret for seen in found for secret in seen[trial]}) == 1
    leave(browser)


@contextmanager
def pinned_page(collector, digest):
    """The example on a host of its own."""
    folder = ROOT / "clients" / "js"
    paths = [folder / "deniable.js", *(folder / "client").glob("*.js")]
    files = {f"/{path.relative_to(folder)}": path.read_bytes() for path in paths}
    page = (ROOT / "examples" / "pinned.html").read_text()
    page = page.replace("https://survey.example", collector)
    page = re.sub(r"DIGEST = '.*'", f"DIGEST = '{digest}'", page)
    with serving(Site(files={**files, "/pinned.html": page.encode()})) as own:
        yield own


def test_a_collector_takes_what_a_page_from_elsewhere_sends(browser, tmp_path):
    """A real one: it must allow the origin of the page, which is known when the page is there."""
    asked = Collection.from_manifest(small())
    store = open_store(str(tmp_path / "reports.db"), asked)
    with pinned_page("http://127.0.0.1:1", asked.digest) as own:
        with Collector(store.place, origins=[own.url]) as collector:
            url = f"http://127.0.0.1:{collector.port}"
            page = own.files["/pinned.html"].replace(b"http://127.0.0.1:1'", f"{url}'".encode())
            own.files["/pinned.html"] = page
            browser.driver.get(f"{own.url}/pinned.html")
            browser.one("label").click()
            browser.keys("daily")
            browser.one("button").click()
            browser.wait(lambda: "the collector counted it" in browser.text("#said"))
        leave(browser)
    assert set(store.numbers().values()) == {1}
    store.close()


def test_a_page_from_elsewhere_pins_what_it_was_told(browser):
    """The example: the collector serves the manifest and takes reports, and nothing else."""
    with serving(Site(small())) as site, pinned_page(site.url, site.digest) as own:
        site.allowed = own.url
        for manifest, words in (
            (small(1.5), "the digest is"),
            (small(), "Your device scrambled your answer"),
            (small(), "Your first answer is the one that counts"),
        ):  # fmt: skip
            site.manifest = manifest
            browser.driver.get(f"{own.url}/pinned.html")
            browser.one("button").click()  # nothing is chosen for anybody
            assert browser.text("#said") == ""
            browser.one("label").click()
            browser.keys("daily")
            browser.one("button").click()
            browser.wait(lambda words=words: words in browser.text("#said"))
        assert len(site.bodies()) == 2
        assert len(set(site.bodies())) == 1
        assert {path for _, path, _, _ in site.asked} == {"/v2/manifest", "/v2/submissions"}
        assert [path for method, path, _, _ in own.asked if method == "POST"] == []
        leave(browser)


def test_the_chances_that_are_shown_are_those_of_the_channel(browser, collector):
    """What the page computes from thresholds is the channel that Python computes."""
    open_questionnaire(browser, collector.url)
    script = """const [spec, done] = arguments;
        (async () => {
          await import('/client.js');
          const { family, p } = await (await import('/client/spec.js')).mechanism(spec);
          done(spec.domain.answers.map((_, y) => family.chances(p, [y]).map(String)));
        })();"""
    for mechanism in (dn.BRR(["yes", "no"], 1.3), dn.GRR(["a", "b", "c", "d", "e"], 0.7)):
        exact = mechanism.channel().matrix
        found = browser.driver.execute_async_script(script, mechanism.to_spec())
        for y, (own, other) in enumerate(found):
            assert Fraction(int(own), 2**128) == exact[y][y]
            assert Fraction(int(other), 2**128) == exact[y - 1][y]


def test_a_wrong_token_is_refused_in_words(browser, collector):
    browser.driver.get(f"{collector.url}/#token=wrong")
    browser.wait(lambda: "does not know this token" in browser.text("#refused"))
    assert browser.driver.switch_to.active_element.get_attribute("id") == "token"
    assert "wrong" not in browser.driver.current_url
    assert [text for text in browser.complaints() if "401" not in text] == []
    browser.keys(collector.token, "\n")
    browser.wait(lambda: len(browser.all(".card[id^=card]")) == 5)
    assert not browser.one("#gate").is_displayed()


def open_dashboard(browser, collector):
    """With some reports, all charts drawn; returns the number of reports."""
    if count(collector) < 100:  # below, there are no charts
        send_many(collector, 100)
    there = count(collector)
    browser.driver.get("about:blank")
    browser.driver.get(f"{collector.url}/#token={collector.token}")
    browser.wait(lambda: reported(browser) == [f"{there:,}"] * 5)
    browser.wait(lambda: len(browser.all(".chart svg")) == 5)
    browser.wait(lambda: browser.text("#state") == "Live")
    return there


def test_the_dashboard_follows_the_reports(browser, collector, folder):
    there = open_dashboard(browser, collector)
    assert "token" not in browser.driver.current_url
    browser.wait(lambda: labels(browser, "smoking") == ["never", "sometimes", "daily"])
    before = bars(browser)
    send_many(collector, 3000)
    browser.wait(lambda: reported(browser) == [f"{there + 3000:,}"] * 5)
    browser.wait(lambda: browser.text("#state") == "Live")
    assert bars(browser) != before
    pictures(browser, "dashboard")
    quiet(browser, collector)


def test_a_dashboard_that_nobody_sees_asks_nothing(browser, collector):
    """It would have asked twice in this time; when it is seen again it asks once."""
    open_dashboard(browser, collector)
    note = """window.said = [];
        const state = document.getElementById('state');
        const asked = () => performance.getEntriesByType('resource').length;
        const write = () => said.push([state.textContent, asked()]);
        new MutationObserver(write).observe(state, {childList: true});"""
    browser.driver.execute_script(note)
    before = browser.driver.current_window_handle
    browser.driver.switch_to.new_window("tab")
    browser.driver.execute_async_script("setTimeout(arguments[0], 4500)")
    browser.driver.close()
    browser.driver.switch_to.window(before)
    browser.wait(lambda: browser.text("#state") == "Live")
    (paused, asked), (live, later) = browser.driver.execute_script("return window.said")
    assert (paused, live) == ("Paused while nobody looks", "Live")
    assert later - asked <= 1


def test_another_decoder_shows_other_numbers_and_files_have_them(browser, collector, folder):
    open_dashboard(browser, collector)
    browser.one("#card-sleep summary").click()
    before = browser.text("#card-sleep table")
    browser.one("#method-sleep").send_keys("unbiased")
    browser.wait(lambda: "unbiased" in browser.text("#card-sleep figcaption small"))
    shares = browser.text("#card-sleep table")
    assert shares != before
    browser.one("#card-sleep .actions button").click()
    file = folder / "sleep-round-1-unbiased.csv"
    browser.wait(file.exists)
    table = pd.read_csv(file)
    assert table.value.tolist() == ["below 5", "5 to 6", "6 to 7", "7 to 8", "8 or more"]
    for share in table.frequency:
        assert f" {100 * share:.1f} %" in shares
    quiet(browser, collector)


def test_analysts_look_for_texts_as_they_are_written(browser, collector):
    open_dashboard(browser, collector)
    wanted = browser.one("#candidates-medicine")
    wanted.send_keys("\n padded \n")
    browser.keys("\t")
    asked = """return performance.getEntriesByType('resource').map(({ name }) => name)
        .filter((name) => name.includes('candidates=none&candidates=+padded+'))"""
    browser.wait(lambda: browser.driver.execute_script(asked))
    browser.wait(lambda: "padded" in browser.text("#card-medicine .chart"))
    quiet(browser, collector)


def test_rounds_are_answered_by_a_device_that_remembers(browser, tmp_path):
    with collecting(tmp_path, ROUNDS) as collector:
        for number in (1, 2):
            open_questionnaire(browser, collector.url, f"?round={number}")
            assert browser.text("#promise").startswith(f"Round {number} of 3.")
            browser.one("#mood-1").click()
            browser.one("#form button").click()
            browser.wait(lambda: browser.one("#check").is_displayed())
            assert browser.text("#reports .leaves dd") in ("“good”", "“bad”", "“so so”")
            assert "any others" not in browser.text("#total")
            assert "change, and come back when yours do" in browser.text("#total")
            assert "does not hide which rounds have the same answer" in browser.text("#total")
            browser.one("#send").click()
            browser.wait(lambda: browser.one("#done").is_displayed())
        open_questionnaire(browser, collector.url, "?round=4")
        assert "no such round" in browser.text("#trouble")
        browser.driver.get(f"{collector.url}/#token={collector.token}")
        browser.wait(lambda: reported(browser) == ["1"])
        assert browser.one("#round-mood").get_attribute("value") == "2"
        browser.driver.get("about:blank")


@pytest.fixture(scope="module")
def other(tmp_path_factory, browser):
    with collecting(tmp_path_factory.mktemp("other"), SAMPLED, key="open sesame") as found:
        threading.Thread(target=found.get, args=("/vega.js",), daemon=True).start()
        yield found


def test_only_the_drawn_question_is_asked(browser, other):
    before = count(other)
    open_questionnaire(browser, other.url, "#key=open%20sesame")
    assert "1 of 2 questions" in browser.text("#promise")
    asked = browser.text("legend")
    open_questionnaire(browser, other.url)  # a page that is loaded again draws no other one
    assert browser.text("legend") == asked
    browser.one("fieldset input").click()
    browser.one("#form button").click()
    browser.wait(lambda: browser.one("#check").is_displayed())
    press(browser, "#send")
    assert browser.text("#done h2") == "Thank you"
    assert "sesame" not in browser.driver.current_url
    assert count(other) == before + 1


def test_words_stay_words(browser, other):
    browser.complaints()
    people = pd.DataFrame({"a": [True] * 300, "b": ["no"] * 300})  # a hundred for each, surely
    with Client(other.url, key=PARTNER_KEY, timeout=60) as client:
        client.send_all(client.privatize_table(people))
    browser.driver.get(f"{other.url}/#token={other.token}")
    browser.wait(lambda: len(browser.all(".chart svg")) == 2)
    assert browser.text("#ask-a") == "Is <b>this</b> right?"
    assert browser.text("#ask-b") == "<script>hacked=1</script>"
    hover(browser, "#card-b .mark-rect path")
    browser.wait(lambda: "<img" in browser.text("#vg-tooltip-element"))
    assert browser.all("img, main script, main b") == []
    assert browser.driver.execute_script("return window.hacked") is None
    assert browser.complaints() == []


def test_a_collector_that_is_gone_is_noticed(browser, tmp_path):
    with collecting(tmp_path, SAMPLED) as found:
        browser.driver.get(f"{found.url}/#token={found.token}")
        browser.wait(lambda: browser.text("#state") == "Live")
        found.process.terminate()
        browser.wait(lambda: "The server does not answer. Last" in browser.text("#state"))
    assert browser.text("#title") == "One <i>question</i> each"
    browser.complaints()


def reported(browser):
    return [node.text for node in browser.all(".card .facts div:first-child dd")]


def hover(browser, css):
    """Put the mouse on something."""
    from selenium.webdriver import ActionChains

    ActionChains(browser.driver).move_to_element(browser.one(css)).perform()


def bars(browser):
    """All at once: a chart that is drawn anew meanwhile has other nodes."""
    return browser.driver.execute_script(
        """return [...document.querySelectorAll('.chart .mark-rect path')]
            .map((path) => path.getAttribute('d'))"""
    )


def labels(browser, name):
    """The answers beside the bars, from the top."""
    script = """return [...document.querySelectorAll(arguments[0])]
        .map((text) => [text.getBoundingClientRect().y, text.textContent])"""
    found = browser.driver.execute_script(script, f"#card-{name} .role-axis-label text")
    return [text for _, text in sorted(found) if not text.endswith("%")]


def count(collector):
    """All submissions that are counted."""
    body = collector.get("/v2/status", authorization=f"Bearer {collector.token}")[2]
    return sum(json.loads(body)["questions"][0]["reports"].values())


def send_many(collector, n):
    """People in a table, as a partner sends them."""
    rng = np.random.default_rng(7)
    teams = ["Accounting", "Canteen", "Design", "Engineering", "Legal", "Marketing", "Operations",
             "Purchasing", "Sales"]  # fmt: skip
    likely = [0.09, 0.04, 0.08, 0.27, 0.05, 0.1, 0.17, 0.05, 0.15]
    people = pd.DataFrame(
        {
            "smoking": rng.choice(["never", "sometimes", "daily"], n, p=[0.62, 0.23, 0.15]),
            "sick": rng.random(n) < 0.31,
            "sleep": rng.normal(6.9, 1.1, n),
            "team": rng.choice(teams, n, p=likely),
            "medicine": rng.choice(["aspirin", "ibuprofen", "none"], n, p=[0.2, 0.3, 0.5]),
        }
    )
    with Client(collector.url, key=PARTNER_KEY, timeout=60) as client:
        client.send_all(client.privatize_table(people))
