"""Composition: what several releases cost together, exactly, and as the channels that run."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deniable as dn
from deniable.errors import InvalidArgument
from deniable.mechanisms.questionnaire import MODES, Questionnaire
from deniable.privacy import (
    Guarantee,
    MemoisedGuarantee,
    exp_below,
    parallel,
    sequential,
    split,
)
from deniable.privacy.guarantee import log_above
from deniable.randomness import WORD_BYTES, ByteCoins

RATIOS = st.fractions(min_value=1, max_value=10**6)
GUARANTEES = st.lists(RATIOS.map(Guarantee), min_size=1, max_size=6)
MEMOISED = dn.LOSUE(4, 2.0, 0.5).guarantee


# ---- guarantees as data


@pytest.mark.slow
@given(GUARANTEES)
def test_ratios_multiply_or_the_largest_counts(guarantees):
    ratios = [guarantee.ratio for guarantee in guarantees]
    assert sequential(guarantees).ratio == math.prod(ratios)
    assert parallel(guarantees).ratio == max(ratios)


@pytest.mark.slow
@given(GUARANTEES, st.integers(1, 1000), st.integers(0, 5))
def test_rounds_of_a_composition(guarantees, reports, changes):
    """The composed ratio, so many times: the logarithm of one number, whatever the order."""
    for compose in (sequential, parallel):
        found = compose(guarantees)
        assert found.after(reports, changes) == Guarantee(found.ratio).after(reports, changes)
    assert sequential(guarantees[::-1]).after(reports) == sequential(guarantees).after(reports)


@pytest.mark.slow
@given(GUARANTEES, GUARANTEES)
def test_compositions_can_be_composed(first, second):
    for compose in (sequential, parallel):
        assert compose([compose(first), *second]).ratio == compose(first + second).ratio


def test_what_lasts_in_a_composition_lasts():
    """Memoised parts stay bounded for any number of reports; one fresh part is enough to grow."""
    both = sequential([MEMOISED, MEMOISED])
    assert isinstance(MEMOISED, MemoisedGuarantee)
    assert both.after() == pytest.approx(2 * MEMOISED.epsilon, rel=1e-15)
    assert both.after(5, 1) == pytest.approx(2 * MEMOISED.after(5, 1), rel=1e-15)
    assert both.after(1) < both.epsilon
    fresh = Guarantee(Fraction(2))
    assert sequential([MEMOISED, fresh]).after() == math.inf
    assert sequential([MEMOISED, fresh]).after(7) == pytest.approx(
        MEMOISED.after(7) + 7 * math.log(2), rel=1e-15
    )
    assert parallel([MEMOISED, fresh]).after(1) == pytest.approx(math.log(2), rel=1e-15)
    assert parallel([MEMOISED, Guarantee(Fraction(11, 10))]).after(3) == MEMOISED.after(3)


@pytest.mark.slow
@given(
    st.floats(0.01, 32),
    st.lists(st.fractions(min_value=Fraction(1, 20), max_value=20), min_size=1, max_size=9),
)
def test_parts_never_add_up_to_more_than_the_whole(epsilon, shares):
    parts = split(epsilon, {f"q{i}": share for i, share in enumerate(shares)})
    exact = {f"q{i}": Fraction(epsilon) * share / sum(shares) for i, share in enumerate(shares)}
    assert sum(map(Fraction, parts.values())) <= Fraction(epsilon)
    assert all(exact[q] * (1 - Fraction(1, 2**52)) <= Fraction(parts[q]) <= exact[q] for q in parts)


@pytest.mark.parametrize("shares", [[1, 1, 1], [1, 2, 7], [0.1, 0.2, 0.3]])
def test_split_mechanisms_keep_the_whole_epsilon(shares):
    parts = split(1.0, dict(zip("abc", shares, strict=True)))
    asked = Questionnaire({q: dn.GRR(3, epsilon) for q, epsilon in parts.items()})
    assert asked.guarantee.ratio <= exp_below(1.0)
    assert asked.guarantee.epsilon == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: sequential([]), "guarantees"),
        (lambda: parallel([1.0]), "guarantees"),
        (lambda: split(0, {"a": 1}), "epsilon"),
        (lambda: split(1.0, {}), "shares"),
        (lambda: split(1.0, [1, 2]), "shares"),
        (lambda: split(1.0, {"a": 0}), "share"),
        (lambda: split(1.0, {"a": math.nan}), "share"),
        (lambda: split(1.0, {"a": True}), "share"),
        (lambda: split(1.0, {"a": 1, "b": 1e-9}), "epsilon of b"),
        (lambda: Questionnaire({}), "questions"),
        (lambda: Questionnaire({"a": 1.0}), "questions"),
        (lambda: Questionnaire({"a": dn.GRR(3, 1.0)}, "both"), "mode"),
        (lambda: Questionnaire({"a": dn.GRR(3, 1.0)}).respond({"b": 1}), "answers"),
        (lambda: Questionnaire({"a": dn.GRR(3, 1.0)}).respond({"a": 3}), "a: values[0]"),
        (lambda: Questionnaire({"a": dn.LGRR(3, 1.0)}, "sampled"), "branches"),
    ],
)
def test_refusals(call, name):
    with pytest.raises(InvalidArgument) as refusal:
        call()
    assert refusal.value.name == name


# ---- questionnaires: the channel that runs

#: A question that may be drawn keeps nothing, so these can only be split.
REMEMBERED = {"a": dn.LGRR(3, 2.0, 0.5), "b": dn.BasicRAPPOR(2, 1.0)}
SMALL = [
    {"a": dn.GRR(3, 1.0), "b": dn.BRR(2, 0.5)},
    {"a": dn.OUE(2, 1.0), "b": dn.GRR(4, 2.0)},
    {"a": dn.SS(3, 1.0), "b": dn.SUE(2, 0.7), "c": dn.BRR(2, 1.5)},
    REMEMBERED,
]


@pytest.mark.parametrize(
    ("questions", "mode"),
    [(q, mode) for q in SMALL for mode in MODES if mode == "split" or q is not REMEMBERED],
    ids=lambda x: x if isinstance(x, str) else "-".join(m.name for m in x.values()),
)
def test_the_composed_channel_has_the_composed_ratio(questions, mode):
    """All coins of all tuples of answers, exhausted: the stated ratio is reached, exactly.

    (A family like SS states a bound that its channel misses by the rounding of its draws.)
    """
    asked = Questionnaire(questions, mode)
    channel = asked.channel()
    assert all(sum(row) == 1 for row in channel.matrix)
    compose = sequential if mode == "split" else parallel
    assert channel.ratio == compose(Guarantee(m.channel().ratio) for m in questions.values()).ratio
    assert channel.ratio <= asked.guarantee.ratio
    if all(m.channel().ratio == m.once.ratio for m in questions.values()):
        assert channel.ratio == asked.guarantee.ratio
    else:
        assert "ss" in {m.name for m in questions.values()}
        assert asked.guarantee.epsilon == pytest.approx(log_above(channel.ratio), rel=1e-12)


def test_a_sampled_report_depends_on_its_own_answer_only():
    """The law of (question, report), given the question's answer, is the same for all others."""
    asked = Questionnaire({"a": dn.GRR(3, 1.0), "b": dn.BRR(2, 0.5)}, "sampled")
    channel = asked.channel()
    for j, (place, _) in enumerate(channel.outputs):
        laws = {}
        for row, answers in zip(channel.matrix, np.ndindex(3, 2), strict=True):
            laws.setdefault(answers[place], set()).add(row[j])
        assert all(len(law) == 1 for law in laws.values())


@pytest.mark.parametrize("mode", MODES)
@given(data=st.data())
def test_a_report_is_a_function_of_answers_and_words(mode, data):
    questions = {"a": dn.OUE(5, 1.0), "b": dn.OLH(9, 1.0), "c": dn.GRR(3, 1.0)}
    asked = Questionnaire(questions, mode)
    size = asked.coin_words * WORD_BYTES
    words = data.draw(st.binary(min_size=size, max_size=size))
    answers = [data.draw(st.integers(0, m.domain.size - 1)) for m in questions.values()]
    reports = []
    for _ in range(2):
        coins = ByteCoins(words)
        reports.append(asked.report(answers, coins))
        coins.finish()
    assert reports[0] == reports[1]
    if mode == "sampled":
        place = reports[0][0]
        others = [answer if i == place else 0 for i, answer in enumerate(answers)]
        assert asked.report(others, ByteCoins(words)) == reports[0]


def test_a_person_responds():
    questions = {"sex": dn.GRR(["f", "m"], 1.0), "age": dn.OUE(4, 1.0)}
    answers = {"age": 3, "sex": "f"}
    every = Questionnaire(questions).respond(answers)
    assert list(every) == ["sex", "age"]
    assert every["sex"] in (0, 1)
    rng = np.random.default_rng(1)
    asked = Questionnaire(questions, "sampled")
    drawn = [asked.respond(answers, rng) for _ in range(60)]
    assert all(len(one) == 1 for one in drawn)
    # Null hypothesis: either question with probability 1/2; one of them never with 2**-59.
    assert {name for one in drawn for name in one} == {"sex", "age"}
