"""The pages as people see them: Chromium answers the questionnaire and watches the dashboard."""

import json
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from browsers import browsing, programs
from deniable.collection.client import Client
from deniable.mechanisms import from_spec
from page_collectors import PARTNER_KEY, collecting

VECTORS = Path(__file__).parent / "vectors" / "v1"
OUT = Path(__file__).parents[1] / "out" / "pages"
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
    browser.wait(lambda: browser.one("#ask").is_displayed() or browser.text("#trouble"))


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


def test_answers_by_mouse_are_shown_before_they_are_sent(browser, collector):
    open_questionnaire(browser, collector.url)
    pictures(browser, "answer")
    browser.one("#smoking-1").click()
    browser.one("#sick-0").click()
    browser.one("#team").send_keys("Legal")
    browser.one("#medicine").send_keys("aspirin")
    for unclear in ("", "1,000", "12.500", "seven", "9" * 400):
        browser.one("#sleep").send_keys(unclear)
        browser.one("#form button").click()
        assert browser.text("#error-sleep").startswith("Please write a number")
        browser.one("#sleep").clear()
    browser.one("#sleep").send_keys("7,5")
    browser.one("#form button").click()
    browser.wait(lambda: browser.one("#check").is_displayed())
    answers = [node.text for node in browser.all("#reports .pair > div:first-child dd")]
    assert answers[2] == "7.5"
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
    assert "aspirin" not in browser.driver.page_source
    assert count(collector) == 1
    quiet(browser, collector)


def test_answers_by_keyboard_alone(browser, collector):
    from selenium.webdriver.common.keys import Keys

    open_questionnaire(browser, collector.url)
    tab, space, down, enter = Keys.TAB, Keys.SPACE, Keys.ARROW_DOWN, Keys.ENTER
    browser.keys(tab, space, down, tab, space, tab, "6", tab, "Design", tab, "none", enter)
    browser.wait(lambda: browser.one("#check").is_displayed())
    answers = [node.text for node in browser.all("#reports .pair > div:first-child dd")]
    assert answers == ["sometimes", "yes", "6", "Design", "none"]
    browser.keys(tab, tab, tab, enter)  # over what is sent, byte for byte
    browser.wait(lambda: browser.one("#done").is_displayed())
    assert count(collector) == 2
    quiet(browser, collector)


def test_going_back_takes_new_coins(browser, collector):
    open_questionnaire(browser, collector.url)
    bodies = []
    for smoking in ("#smoking-0", "#smoking-2"):
        for css in (smoking, "#sick-1"):
            browser.one(css).click()
        for name, text in (("sleep", "8"), ("team", "Sales"), ("medicine", "none")):
            browser.one(f"#{name}").send_keys(text if not bodies else "")
        browser.one("#form button").click()
        browser.wait(lambda: browser.one("#check").is_displayed())
        bodies.append(browser.one("#body").get_attribute("textContent"))
        browser.one("#back").click()
    assert bodies[0] != bodies[1]
    assert count(collector) == 2


def check(browser, sick="#sick-1", medicine="none"):
    """Answer everything, up to what would be sent."""
    for css in ("#smoking-0", sick):
        browser.one(css).click()
    for name, text in (("sleep", "8"), ("team", "Sales"), ("medicine", medicine)):
        browser.one(f"#{name}").send_keys(text)
    browser.one("#form button").click()
    browser.wait(lambda: browser.one("#check").is_displayed())


def test_texts_are_not_changed(browser, collector):
    open_questionnaire(browser, collector.url)
    check(browser, medicine=" none ")
    answer = browser.all("#reports .pair > div:first-child dd")[-1]
    assert answer.get_attribute("textContent") == " none "


def test_after_a_lost_answer_only_the_same_can_be_sent(browser, tmp_path):
    """Otherwise one person would be counted twice, and spend twice."""
    lose = """window.real = window.fetch;
        window.fetch = async (...request) => {
          await real(...request);
          return new Response(null, { status: arguments[0], headers: { 'retry-after': '3600' } });
        };"""
    with collecting(tmp_path, SURVEY) as collector:
        open_questionnaire(browser, collector.url)
        check(browser)
        body = browser.one("#body").get_attribute("textContent")
        browser.driver.execute_script(lose, 503)
        browser.one("#send").click()
        browser.wait(lambda: browser.text("#trouble"))
        assert count(collector) == 1
        back = browser.one("#back")
        assert not back.is_displayed()
        assert not back.is_enabled()
        # A refusal that comes later says nothing about what was sent before.
        browser.driver.execute_script("window.fetch = real;" + lose, 401)
        browser.one("#send").click()
        browser.wait(lambda: browser.one("#send").is_enabled() and browser.text("#trouble"))
        assert not back.is_displayed()
        assert browser.text("#send") == "Send the same again"
        assert browser.one("#body").get_attribute("textContent") == body
        browser.driver.execute_script("window.fetch = real")
        browser.one("#send").click()
        browser.wait(lambda: browser.one("#done").is_displayed())
        assert "had been counted before" in browser.text("#thanks")
        assert count(collector) == 1
        browser.complaints()  # about 401
        browser.hosts()


def test_the_chances_that_are_shown_are_those_of_the_channel(browser, collector):
    """What the page computes from thresholds is the channel that Python computes."""
    script = """const [spec, done] = arguments;
        import('/odds.js').then(({ chances }) => done(spec.domain.labels.map((_, y) => {
          const { own, other } = chances(spec, y);
          return [String(own), String(other)];
        })));"""
    for mechanism in (dn.BRR(["yes", "no"], 1.3), dn.GRR(["a", "b", "c", "d", "e"], 0.7)):
        exact = mechanism.channel().matrix
        found = browser.driver.execute_async_script(script, mechanism.to_spec())
        for y, (own, other) in enumerate(found):
            assert Fraction(int(own), 2**128) == exact[y][y]
            assert Fraction(int(other), 2**128) == exact[y - 1][y]


def in_page(browser, file, body, *arguments):
    """What a function body makes of ``found``, the module, and ``given``, the arguments."""
    script = f"""const given = [...arguments], done = given.pop();
        const say = (error) => done(String(error));
        import('{file}').then((found) => {{ {body} }}).then(done, say);"""
    return browser.driver.execute_async_script(script, *arguments)


def test_the_page_knows_what_every_mechanism_spends(browser, collector):
    """From the integers alone, as Python reckons it; doubles have 15 digits."""
    open_questionnaire(browser, collector.url)
    vectors = json.loads((VECTORS / "reports.json").read_text())
    every = [from_spec(vector["spec"]) for vector in vectors]
    every += [dn.mechanism(m.name, 300, 6.0) for m in every if m.name != "brr"]
    assert len({m.name for m in every}) == 28
    body = (
        "return given[0].map((spec) => [found.once, found.forever].map((f) => Math.log(f(spec))))"
    )
    logs = in_page(browser, "/budget.js", body, [m.to_spec() for m in every])
    for m, (once, forever) in zip(every, logs, strict=True):
        assert once == pytest.approx(m.once.epsilon, abs=1e-12), m
        if "epsilon_inf" in m.to_spec():
            assert forever == pytest.approx(m.permanent_guarantee.epsilon, abs=1e-12), m


def test_manifests_that_break_an_epsilon_are_not_asked(browser, collector):
    def honest(manifest):
        return in_page(browser, "/budget.js", "return found.honest(given[0])", manifest)

    every = [json.loads(one["manifest"]) for one in json.loads((VECTORS / "wire.json").read_text())]
    assert [honest(manifest) for manifest in every] == [True] * len(every)
    for manifest in every:
        assert not honest(manifest | {"epsilon": 0.4})
        for place, question in enumerate(manifest["questions"]):
            for name in ("epsilon", "epsilon_1", "epsilon_inf"):
                spec = question["mechanism"]
                if name in spec:
                    less = question | {"mechanism": spec | {name: 0.8 * spec[name]}}
                    others = manifest["questions"][:place] + manifest["questions"][place + 1 :]
                    assert not honest(manifest | {"questions": [less, *others]})


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
    browser.wait(lambda: browser.text("#card-sleep figcaption").startswith("Bars: unbiased"))
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
    wanted = browser.one("#wanted-medicine")
    wanted.send_keys("\n padded \n")
    browser.keys("\t")
    asked = """return performance.getEntriesByType('resource').map(({ name }) => name)
        .filter((name) => name.includes('candidate=none&candidate=+padded+'))"""
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
            assert "any others" not in browser.text("#total")
            assert "Whether and when an answer changed is not hidden." in browser.text("#total")
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


def test_only_the_drawn_question_is_asked_and_the_key_is_needed(browser, other):
    before = count(other)
    for rest, heading in (("", "needs a key"), ("#key=open%20sesame", "Thank you")):
        open_questionnaire(browser, other.url, rest)
        assert "1 of 2 questions" in browser.text("#promise")
        browser.one("fieldset input").click()
        browser.one("#form button").click()
        browser.wait(lambda: browser.one("#check").is_displayed())
        browser.one("#send").click()
        browser.wait(lambda heading=heading: heading in browser.text("main"))
        assert "sesame" not in browser.driver.current_url
        refused = heading == "needs a key"  # for certain: nothing was counted
        assert browser.all("#back:enabled") == browser.all("#back")
        assert len([back for back in browser.all("#back") if back.is_displayed()]) == refused
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
    body = collector.get("/v1/status", authorization=f"Bearer {collector.token}")[2]
    found = [sum(q["reports"].values()) for q in json.loads(body)["questions"]]
    return sum(found) if json.loads(body)["divide"] == "sampled" else found[0]


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
