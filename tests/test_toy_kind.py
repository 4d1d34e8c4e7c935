"""A kind of answer, a mechanism and a task that only this module knows, from survey to chart.

Run as a script it is the command ``deniable`` with the three registered, and nothing else changed.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import urllib.request
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

import deniable as dn
from deniable import views
from deniable.collection.survey import read_survey
from deniable.conformance import CHANNEL_LAWS
from deniable.core import domain as kinds
from deniable.core import registry
from deniable.core.domain import Domain, Key, refuse_what_is_no_column, to_list
from deniable.core.integers import Threshold
from deniable.core.layout import Index
from deniable.core.mechanism import Mechanism, mixture_keep, mixture_ratio
from deniable.core.task import (
    Expectation,
    Query,
    Task,
    people_needed,
    register_task,
    unregister_task,
)
from deniable.errors import InvalidArgument, require_int
from deniable.estimation import Estimate, Quantity
from deniable.privacy import Guarantee
from deniable.randomness import SCALE


class Clock(Domain, registered=False):
    """A time of day, "07:45"; encoded as one of ``parts`` parts of the day."""

    kind = "clock"
    noun = "a time of day"
    spec_keys = (("parts",),)
    keys = {
        "parts": Key(
            lambda parts: require_int("parts", parts, 2, 1440),
            needed=True,
            prompt="Parts of the day",
            parse=int,
        )
    }
    dtype = np.dtype(np.uint16)

    def __init__(self, parts, *, optional=False):
        self._freeze(parts=require_int("parts", parts, 2, 1440), optional=optional)

    def encode(self, answers):
        refuse_what_is_no_column(answers)
        found = [self._part(place, answer) for place, answer in enumerate(to_list(answers))]
        return np.array(found, dtype=self.dtype)

    def _part(self, place, answer):
        hours, colon, minutes = str(answer).partition(":")
        right = colon and hours.isdecimal() and minutes.isdecimal()
        if not right or int(hours) > 23 or int(minutes) > 59:
            raise InvalidArgument(f"values[{place}]", answer, "a time, such as 07:45")
        return (60 * int(hours) + int(minutes)) * self.parts // 1440

    def to_spec(self):
        return {"kind": self.kind, "optional": self.optional, "parts": self.parts}

    def words(self):
        return f"{self.parts} parts of the day"

    def sample(self):
        return range(self.parts)

    def values(self, most):
        return range(self.parts) if self.parts <= most else ()

    def answer(self, value):
        minutes = -(-value * 1440 // self.parts)
        return f"{minutes // 60:02}:{minutes % 60:02}"

    @classmethod
    def smalls(cls):
        yield cls(2)
        yield cls(5)

    @classmethod
    def larges(cls):
        yield cls(24)
        yield cls(1000)


class Spin(Mechanism):
    """The part of the day, kept with probability keep / 2**64, or any part."""

    name = "spin"
    paper = "none"
    good_for = "a test"
    takes = automatic = (Clock,)
    tasks = ("late",)
    keep = Threshold()

    def derive_keep(self):
        return mixture_keep(self.epsilon, self.domain.parts)

    def report(self, value, coins):
        drawn = coins.choice(self.domain.parts)
        return value if coins.below(self.keep) else drawn

    @property
    def coin_words(self):
        return 2

    @cached_property
    def layout(self):
        return Index(self.domain.parts)

    @property
    def share(self):
        return Fraction(self.keep, SCALE)

    @cached_property
    def guarantee(self):
        return Guarantee(mixture_ratio(self.share, self.domain.parts))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Lateness(Estimate):
    """Which share of the respondents answered a late time."""

    noun = "late shares"


class Late(Task):
    """The share of times from an hour on, noon unless another is asked for."""

    name = "late"
    default = "unbiased"
    queries = {"hour": Query("From hour", "a whole number from 1 to 23", read=int)}

    def methods(self, mechanism):
        return ["unbiased"]

    def estimate(self, parts, method=None, *, confidence=0.95, population="respondents",
                 simultaneous=False, hour=12):  # fmt: skip
        (tally,) = (
            part if isinstance(part, dn.Tally) else part.mechanism.tally(part) for part in parts
        )
        m, n = tally.mechanism, tally.n
        if not n:
            raise InvalidArgument("parts", parts, "at least one report")
        first = m.domain.parts * hour // 24
        late, keep = (m.domain.parts - first) / m.domain.parts, float(m.share)
        seen = tally.counts[first:].sum() / n
        found = (seen - (1 - keep) * late) / keep
        error = math.sqrt(max(seen * (1 - seen), 1 / n) / n) / keep
        values, errors = np.array([found]), np.array([error])
        intervals = np.array([[found - 1.96 * error, found + 1.96 * error]])
        return Lateness(
            labels=(f"from {hour}:00 on",),
            quantities={"share": Quantity(values, errors, intervals, share=True)},
            n=n, method="unbiased", confidence=confidence, source=str(m), errors="normal",
            population=population, simultaneous=simultaneous,
        )  # fmt: skip

    def error(self, mechanism, n, **guess):
        return 0.5 / (float(mechanism.share) * math.sqrt(n))

    def half_width(self, mechanism, n, *, sampled=False, skipped=None):
        return 1.96 * self.error(mechanism, n)

    def expectation(self, mechanism, n, *, sampled=False, skipped=None):
        width = self.half_width(mechanism, n)
        needed = people_needed(lambda people: self.half_width(mechanism, people), n, 0.05)
        error = f"± {100 * width:.2g} points"
        sentence = f"A late share of 50 % will show as 50 % {error}"
        return Expectation(width, 0.05, 0.2, needed, sentence, error, "± 5 points")


@contextmanager
def registered():
    """Know the three for as long as the block runs."""
    with ExitStack() as stack:
        stack.enter_context(kinds.registering(Clock))
        stack.enter_context(registry.registering(Spin))
        register_task(Late())
        stack.callback(unregister_task, Late.name)
        yield


@pytest.fixture(autouse=True)
def known():
    with registered():
        yield


SURVEY = """
title = "Sleep"
epsilon = 8
respondents = 400

[[questions]]
name = "bed"
ask = "When did you go to bed?"
kind = "clock"
parts = 24

[[questions]]
name = "tired"
ask = "Are you tired?"
kind = "yes/no"
"""


def command(*options, typed=""):
    """What ``deniable`` prints with these options, in a process that knows the toys."""
    return subprocess.run(
        [sys.executable, __file__, *options],
        capture_output=True,
        text=True,
        input=typed,
        timeout=120,
    )


@contextmanager
def serving(survey):
    """The address of a collector of this survey."""
    process = subprocess.Popen(
        [sys.executable, __file__, "serve", str(survey), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        for line in process.stdout:
            word, _, rest = line.strip().partition(" ")
            if word == "questionnaire":
                address = rest.strip().removesuffix("/answer")
            if word == "store":
                yield address
                break
        else:
            pytest.fail("the collector did not start")
    finally:
        process.terminate()
        process.communicate(timeout=30)


def fetched(address, path, token=None):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"{address}{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read().decode()


@pytest.mark.slow
def test_from_a_survey_to_a_chart(tmp_path):
    survey = Path(tmp_path, "sleep.toml")
    survey.write_text(SURVEY)
    checked = command("check", str(survey))
    assert checked.returncode == 0, checked.stderr
    assert "A late share of 50 % will show as 50 %" in " ".join(checked.stdout.split())
    times = ["23:10"] * 300 + ["07:30"] * 100
    with serving(survey) as address:
        with dn.Client(address) as client:
            for time in times:
                client.answer({"bed": time, "tired": True})
            with pytest.raises(InvalidArgument, match="'bed' must be a time"):
                client.prepare({"bed": "noon", "tired": True})
        # JavaScript does not know the toys: devices refuse the manifest, the collector goes on.
        assert "import" in fetched(address, "/client.js")
        token = command("token", str(survey.with_suffix(".db")), "analyst").stdout.strip()
        status = json.loads(fetched(address, "/v2/status", token))
        asked = {question["name"]: question for question in status["questions"]}["bed"]
        assert asked["methods"] == ["unbiased"]
        assert asked["queries"]["hour"]["label"] == "From hour"
        found = json.loads(fetched(address, "/v2/estimates/bed?hour=20", token))
        (row,) = found["values"]
        # 300 of 400; the standard error is at most 0.5 / (keep sqrt n) < 0.08: five of them.
        assert abs(row["share"] - 0.75) < 0.4
        assert row["value"] == "from 20:00 on"
        chart = json.loads(fetched(address, "/v2/estimates/bed?format=chart", token))
        assert chart["title"]["text"] == ["When did you go to bed?"]
    opened = command("verify-store", str(survey.with_suffix(".db")))
    assert opened.returncode == 0, opened.stdout


@pytest.mark.slow
def test_the_command_line_asks_for_its_keys_and_answers_its_queries(tmp_path):
    answers = [
        "Sleep",
        "400",
        "2",
        "When did you go to bed?",
        "bed",
        "clock",
        "few",
        "24",
        "n",
        "1",
    ]
    asked = command("init", f"{tmp_path}/bed.toml", typed="\n".join([*answers, "yes", ""]))
    assert asked.returncode == 0, asked.stderr
    assert "Parts of the day" in asked.stdout
    assert "(bed, 24 parts of the day)" in asked.stdout
    m = read_survey(tmp_path / "bed.toml").collection.asked("bed").mechanism
    assert m.domain == Clock(24)
    m.privatize(["23:00"] * 500).to_parquet(tmp_path / "bed.parquet")
    found = command("estimate", f"{tmp_path}/bed.parquet", "--ask", "hour=20", "-f", "json")
    assert json.loads(found.stdout)["values"][0]["value"] == "from 20:00 on"
    refused = command("estimate", f"{tmp_path}/bed.parquet", "--ask", "hour=late")
    assert "a whole number from 1 to 23" in refused.stderr
    assert "spin" in command("mechanisms").stdout


def test_the_chart_is_drawn(tmp_path):
    m = Spin(Clock(24), epsilon=2.0)
    estimate = m.estimate(m.privatize(["23:00"] * 500, np.random.default_rng(1)), hour=20)
    views.save(views.chart(estimate, title="Bed?"), tmp_path / "bed.svg")
    assert "Bed?" in (tmp_path / "bed.svg").read_text()
    assert "from 20:00 on" in estimate.to_csv()


@pytest.mark.slow
@pytest.mark.parametrize("law", CHANNEL_LAWS, ids=lambda law: law.__name__)
def test_laws(law):
    law(Spin)


if __name__ == "__main__":
    from deniable.cli import main

    sys.argv[0] = "deniable"
    with registered():
        main()
