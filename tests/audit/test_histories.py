"""Whole histories of answers: what the epsilon of a collection with rounds is about, and is."""

import json
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest

import deniable as dn
from deniable.answers import Listed
from deniable.audit.exact.histories import Device, pattern, worst_histories
from deniable.canonical import canonical
from deniable.cli.explain import sentences
from deniable.collection.manifest import Collection
from deniable.collection.recommend import Requirements
from deniable.collection.survey import survey_of
from deniable.core.domain import Domain
from deniable.device import memo as memo_module
from deniable.device.memo import MemoryMemo
from deniable.errors import InvalidArgument, ManifestRefused
from deniable.mechanisms.two_step.memoised import Memoised
from deniable.privacy import KeptBit, MemoisedGuarantee
from deniable.privacy.enumeration import enumerate_reports
from deniable.privacy.guarantee import CONTEXT, as_decimal, float_above
from deniable.privacy.memoised import log_replaced
from deniable.randomness import SCALE

SHARED = [
    name
    for name, family in dn.mechanisms().items()
    if family.on_devices and not family.key_is_value
]
#: Chosen for answers that are asked for again, if they are listed.
AGAIN = [name for name, f in dn.mechanisms().items() if f.remembers and Listed in f.automatic]


def asking(m, epsilon, rounds, changes=0):
    return Collection.split({"way": m}, epsilon, rounds=rounds, changes=changes)


def panel(**changes):
    data = {"title": "t", "epsilon": 1.0, "rounds": 12, "changes": 2}
    answers = [f"answer {i}" for i in range(200)]
    question = {"name": "way", "ask": "?", "kind": "choice", "answers": answers}
    return {**data, "questions": [{**question, **changes}]}


# ---- the enumeration is that of the code that ships


def reports_of_memo(m, most, history, coins):
    """The reports of a device whose permanent coins are explored, too."""
    memo = MemoryMemo(m, "any", most)
    drawn = {}

    def recall_begun(_, secret):
        return drawn.setdefault("begun", "begun" in drawn or m.begin(coins))

    def recall_kept(_, secret, begun, key):
        if key not in drawn:
            drawn[key] = m.memoise(begun, key, coins)
        return drawn[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memo_module, "recall_begun", recall_begun)
        patch.setattr(memo_module, "recall_kept", recall_kept)
        return tuple(memo.report_always(value, coins) for value in history)


@pytest.mark.slow
@pytest.mark.parametrize("history", [(0, 1, 0), (0, 1, 2), (2, 2, 1)])
@pytest.mark.parametrize("most", [1, 2])
def test_the_law_is_that_of_the_memo(history, most):
    """Every branch of `report_always`, permanent coins included, against the sum of products."""
    m = dn.LGRR(3, 2.0, 1.5)
    exact = enumerate_reports(partial(reports_of_memo, m, most), history)
    law = Device(m, (), most, tuple(range(m.domain.size))).law(history)
    scale = law.sum()
    assert len(exact) == law.size == 27
    for reports, chance in exact.items():
        assert chance == Fraction(law[reports], scale)


def test_patterns():
    assert pattern(3, (4, 4, 7, 4)) == pattern(3, (1, 1, 0, 1)) != pattern(3, (1, 1, 0, 2))
    assert pattern(2, (0, 1, 2, 3)) == pattern(2, (1, 0, 2, 2)) != pattern(2, (0, 1, 2, 0))
    assert pattern(1, (0, 1)) == pattern(1, (0, 0))


# ---- keys in use that stand for others


class Told(Memoised, dn.GRR):
    """What is kept is told in every report: a permanent k-RR."""

    name = "told"

    def memoise(self, begun, key, coins):
        return dn.GRR.report(self, key, coins)

    def instant(self, begun, kept, coins):
        return kept

    memoise_words, instant_words = 2, 0
    permanent_p = permanent_q = Fraction(1)

    @property
    def permanent_guarantee(self):
        other = (1 - Fraction(self.keep, SCALE)) * Fraction(SCALE // self.domain.size, SCALE)
        own = Fraction(self.keep, SCALE) + other
        return MemoisedGuarantee.of((KeptBit(own, other, None),), self.domain.size)

    guarantee = permanent_guarantee


def test_what_replaced_answers_tell_is_in_the_guarantee():
    """Three keys do not divide 2**64: the draw among them is worth one weight in the last place."""
    m = Told([str(i) for i in range(4)], 1.0)
    declared = m.permanent_guarantee.log_always(4, 2)
    alone = m.permanent_guarantee.log_after(None, 2)
    exact = CONTEXT.ln(as_decimal(worst_histories(m, 4, 2)))
    assert alone < exact
    assert abs(exact - declared) < Decimal("1e-50")
    assert Decimal(asking(m, 4.0, 4, 2).spent) >= exact


def test_what_replaced_answers_cost():
    ratio = Fraction(-(-SCALE // 3), SCALE // 3)
    assert log_replaced(7, 3) == CONTEXT.multiply(4, CONTEXT.ln(as_decimal(ratio)))
    assert log_replaced(7, 4) == log_replaced(7, 1) == log_replaced(2, 3) == 0
    two = dn.LGRR(2, 1.0).permanent_guarantee  # there are no answers beyond both
    assert two.log_always(100, 1) == two.log_after(None, 1)


@pytest.mark.parametrize("name", [name for name in AGAIN if name not in SHARED])
def test_designs_leave_room_for_replaced_answers(name):
    for rounds, changes in ((65_535, 32_766), (100, 2), (7, 4)):
        for epsilon in (0.7, 3.0):
            domain = Domain([str(i) for i in range(9)])
            m = Requirements(domain, epsilon, 10_000, rounds, min(changes, 7)).build(name)
            found = asking(m, epsilon, rounds, min(changes, 7))
            assert epsilon * (1 - 1e-5) < found.spent <= epsilon


@pytest.mark.slow
def test_designs_leave_room_where_keys_are_many():
    m = Requirements(dn.Text(), 3.0, 10_000, 65_535, 32_768).build("rappor")
    whole = m.permanent_guarantee.log_always(65_535, 32_768)
    assert float_above(whole) <= 3.0
    assert log_replaced(65_535, 32_769) > Decimal("5e-11")


# ---- answers that share a draw


def test_mechanisms_say_whether_answers_share_a_draw():
    assert sorted(SHARED) == ["dbitflippm", "lblh", "lolh"]
    rng = np.random.default_rng(1)
    for family in dn.mechanisms().values():
        if issubclass(family, Memoised) and family.key_is_value:
            m = family(3, 1.0, **family.small_design)
            begun = next(iter(enumerate_reports(lambda _, coins, m=m: m.begin(coins), 0)))
            values = rng.integers(3, size=8)
            assert [m.key(begun, int(v)) for v in values] == values.tolist()
            assert m.permanent_guarantee.keys == m.domain.size
    assert dn.RAPPOR(dn.Text(), 1.0).permanent_guarantee.keys == SCALE


@pytest.mark.parametrize("name", SHARED)
def test_shared_draws_are_refused_where_answers_change(name):
    m = dn.mechanism(name, ["a", "b", "c"], 0.2)
    published = json.loads(asking(m, 1.0, 3).manifest)
    published["changes"] = 1
    refusal = "'way: mechanism' must be one with a permanent draw for each answer .*changes = 0"
    for make in (
        lambda: asking(m, 1.0, 3, 1),
        lambda: Collection.from_manifest(canonical(published)),
        lambda: survey_of(panel(mechanism=name)),
    ):
        with pytest.raises((InvalidArgument, ManifestRefused), match=refusal):
            make()


@pytest.mark.slow
def test_auto_never_takes_a_shared_draw_where_answers_change():
    """200 answers, epsilon 1, 12 rounds, 2 changes: this was LOLH, and cost 5.57."""
    for size, changes, epsilon in product((3, 200, 5_000), (0, 1, 11), (1.0, 6.0)):
        terms = Requirements(Domain([str(i) for i in range(size)]), epsilon, 10_000, 12, changes)
        assert not changes or terms.choose().name not in SHARED
    assert survey_of(panel()).collection.asked("way").mechanism.name not in SHARED


# ---- what people are told


def test_check_says_which_histories_the_number_covers():
    told = " ".join(sentences(survey_of(panel(mechanism="losue")).collection))
    assert "if both stay the same, change, and come back in the same rounds." in told
    assert "Not hidden: that an answer changed, when, and that an earlier answer came back." in told
    plain = " ".join(sentences(survey_of({**panel(mechanism="losue"), "changes": 0}).collection))
    assert "come back" not in plain
    assert "Not hidden" not in plain
