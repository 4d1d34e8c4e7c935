"""Exact verification: of mechanisms, of plain functions, and of what is composed from them."""

import json
import math

import numpy as np
import pytest

import deniable as dn
from deniable.audit.black_box.everything import usual_domain
from deniable.audit.exact.branches import few_runs
from deniable.audit.exact.verify import relatives, verify, verify_function
from deniable.errors import InvalidArgument
from deniable.mechanisms import GRR, LGRR, LOSUE, OUE, UE
from deniable.mechanisms.questionnaire import Questionnaire, Sampled
from deniable.privacy import Guarantee, MemoisedGuarantee
from deniable.randomness import SCALE
from twins import TWINS


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(dn.mechanisms().keys() - TWINS.keys()))
def test_every_mechanism_keeps_its_promise(name):
    family = dn.mechanisms()[name]
    found = verify(family.example(usual_domain(family, 40), 1.5), most_runs=20_000)
    instead = "" if found.method == "enumerated" else f" {found.method}"
    assert found.verdict == f"ok{instead}", found.words
    assert found.worst.declared.epsilon <= found.checks[0].declared.epsilon + 1e-9


@pytest.mark.slow
def test_what_is_enumerated_and_what_follows_from_thresholds():
    small, large = verify(OUE(5, 1.0)), verify(OUE(500, 1.0))
    assert small.method == "enumerated"
    assert len(small.checks) == 1
    assert large.method == "from thresholds"
    assert [check.method for check in large.checks[1:]] == ["enumerated"] * 3
    assert "2.71828 times as likely under" in small.words
    assert "(from thresholds; enumerated for 2, 3 and 5 answers; " in large.words
    assert "walks at the real size found nothing)" in large.words
    partly = verify(LGRR(20, 1.0))
    assert (partly.verdict, partly.method) == ("ok", "enumerated")
    assert "(memory enumerated for 2 and 3 answers; " in partly.words


def test_mechanisms_for_any_text_are_verified_on_listed_relatives():
    found = verify(dn.ORR(dn.Text(), 1.0))
    assert found.verdict == "ok from thresholds"
    assert "enumerated for 2, 3 and 5 answers of a smaller design" in found.words
    assert [check.method for check in found.checks[1:]] == ["enumerated"] * 3


def test_a_memo_is_verified_draw_and_reports():
    found = verify(LOSUE(3, 2.0, 0.5))
    assert [check.what for check in found.checks] == ["one report", "what is kept", "two reports"]
    one, kept, two = (check.worst.epsilon for check in found.checks)
    m = LOSUE(3, 2.0, 0.5)
    assert (one, kept) == (0.5, m.guarantee.epsilon)
    assert abs(two - m.guarantee.after(reports=2)) < 1e-12


def test_relatives_keep_the_calibration_and_thresholds_without_k():
    paper = LGRR(1_000, 2.0, 1.0, calibration="paper")
    assert not any(one.exact for one in relatives(paper))
    own = UE(500, 1.0, one=SCALE // 2, zero=SCALE * 2 // 5)
    assert {one.zero for one in relatives(own)} == {SCALE * 2 // 5}


class SevenBits(OUE):
    """Probabilities are rounded to 7 bits on the device; the promise does not know."""

    def report(self, value, coins):
        return self.sets.of(
            v
            for v in range(self.domain.size)
            if coins.below(_rounded(self.one if v == value else self.zero))
        )


def _rounded(threshold, bits=7):
    unit = SCALE >> bits
    return (threshold + unit // 2) // unit * unit


class LastBitTruthful(OUE):
    def report(self, value, coins):
        row = bytearray(super().report(value, coins))
        last = self.domain.size - 1
        row[last >> 3] &= ~(1 << (last & 7))
        row[last >> 3] |= (value == last) << (last & 7)
        return bytes(row)


class LieWithP(GRR):
    """p and q swapped: the answer is told as often as a lie should be."""

    def report(self, value, coins):
        told, other = not coins.below(self.keep), coins.choice(self.domain.size)
        return value if told else other


class Redrawn(LOSUE):
    """The permanent layer is drawn anew for every report."""

    def memoise(self, begun, key, coins):
        return key

    def instant(self, begun, kept, coins):
        return super().instant(begun, super().memoise(begun, kept, coins), coins)


class Understated(OUE):
    """One unit of 2**-64 more than declared."""

    def report(self, value, coins):
        bits = range(self.domain.size)
        return self.sets.of(
            v for v in bits if coins.below(self.one + 1 if v == value else self.zero)
        )


@pytest.mark.slow
@pytest.mark.parametrize("family", [SevenBits, LastBitTruthful, LieWithP, Redrawn, Understated])
@pytest.mark.parametrize("k", [3, 5, 60])
def test_planted_bug_is_caught_exactly(family, k):
    found = verify(family(k, 1.0))
    assert found.verdict == "violated", found.words
    assert not found.ok


def test_words_name_the_worst_pair_and_report():
    found = verify(LastBitTruthful(3, 1.0))
    assert found.worst.worst.ratio is None
    assert "is possible under 0, impossible under 2" in found.words
    seven = verify(SevenBits(3, 1.0)).worst.worst
    assert seven.epsilon == pytest.approx(math.log(94 / 34), abs=1e-12)


def test_unused_budget_is_called_loose():
    assert verify_function(GRR(3, 1.0).report, range(3), 1.2).verdict == "loose"
    assert verify_function(GRR(3, 1.0).report, range(3), 1.0).verdict == "ok"
    assert verify_function(GRR(3, 1.0).report, range(3), 0.99).verdict == "violated"


def test_a_chain_of_two_mechanisms():
    """Two k-RR in a row: the ratio is that of the product of both matrices."""
    first, second = GRR(3, 2.0), GRR(3, 1.0)

    def chain(value, coins):
        return second.report(first.report(value, coins), coins)

    a, b = (np.array(m.channel().matrix, dtype=float) for m in (first, second))
    product = a @ b
    epsilon = float(np.log(product.max(axis=0) / product.min(axis=0)).max())
    assert verify_function(chain, range(3), epsilon + 1e-9).ok
    assert verify_function(chain, range(3), epsilon - 1e-9).verdict == "violated"


def test_a_questionnaire_splits_its_budget_or_asks_one_question():
    colour, age = GRR(2, 0.5), OUE(3, 1.0)
    both = [(c, a) for c in range(2) for a in range(3)]

    def all_questions(answers, coins):
        return {"colour": colour.report(answers[0], coins), "age": age.report(answers[1], coins)}

    def one_question(answers, coins):
        if coins.below(SCALE // 2):
            return ["colour", GRR(2, 1.0).report(answers[0], coins)]
        return ["age", age.report(answers[1], coins)]

    assert verify_function(all_questions, both, 1.5).verdict == "ok"
    assert verify_function(all_questions, both, 1.49).verdict == "violated"
    assert verify_function(one_question, both, 1.0).verdict == "ok"
    worst = verify_function(all_questions, both, 1.0).worst.worst
    assert worst.value[0] != worst.other[0]
    assert worst.value[1] != worst.other[1]


def test_a_length_that_depends_on_the_value_is_caught():
    m = GRR(3, 1.0)

    def report(value, coins):
        return bytes([m.report(value, coins)]) + bytes(value == 0 and coins.below(SCALE // 20))

    assert verify_function(report, range(3), 1.0).worst.worst.ratio is None


def test_what_cannot_be_enumerated_is_refused_before_the_work():
    small, large = OUE(8, 1.0), OUE(64, 1.0)
    assert few_runs(small.report, range(8), 8 * 2**8)
    assert not few_runs(small.report, range(8), 8 * 2**8 - 1)
    with pytest.raises(InvalidArgument, match="of at most 200,000 runs"):
        verify_function(large.report, range(64), 1.0)
    with pytest.raises(InvalidArgument, match="at least two values"):
        verify_function(large.report, [1], 1.0)
    with pytest.raises(InvalidArgument, match="of type Mechanism"):
        verify(large.report)


def test_exports():
    found = verify(LOSUE(3, 1.0))
    rows = json.loads(found.to_json())
    assert rows["verdict"] == "ok"
    assert len(rows["checks"]) == 3
    assert found.to_csv().startswith("what,subject,method,epsilon,declared,allowed,verdict,worst\n")
    assert found.table().row_count == 3
    assert "one report" in found._repr_html_()


def test_exact_ratios_are_those_of_the_limit():
    stated = LOSUE(3, 2.0, 0.5).guarantee
    assert isinstance(stated, MemoisedGuarantee)
    assert isinstance(stated.exactly(1), Guarantee)
    for reports in (1, 2, 7):
        assert stated.exactly(reports).epsilon == pytest.approx(stated.after(reports), abs=1e-12)


def test_broken_coins_are_refused():
    """A probability above 1, or edges out of order, would have negative weights."""
    for broken in (
        lambda v, coins: coins.below(SCALE * 3 // 2) if v == 0 else coins.below(SCALE // 2),
        lambda v, coins: coins.pick([SCALE * 3 // 4, SCALE // 4]),
        lambda v, coins: coins.pick([-1]),
    ):
        with pytest.raises(InvalidArgument):
            verify_function(broken, [0, 1], 1.1)


def test_endless_draws_are_refused():
    def rejecting(value, coins):
        while coins.below(SCALE // 2):
            pass
        return value

    with pytest.raises(InvalidArgument, match="at most 100000 draws"):
        verify_function(rejecting, [0, 1], 1.0)


def test_branches_are_counted_without_walking_on():
    drawn = []

    def report(value, coins):
        for _ in range(100_000):
            drawn.append(coins.below(SCALE // 2))

    assert not few_runs(report, range(2), 200_000)
    assert len(drawn) < 25


def test_what_nobody_enumerated_is_not_called_sound():
    """Thirty idle coins hide that the first bit is the truth: too many branches to look at."""

    class Hidden(dn.OUE):
        name = "hidden"

        def report(self, value, coins):
            for _ in range(30):
                coins.below(SCALE // 2)
            return self.sets.of([0] if value == 0 else [])

        @property
        def coin_words(self):
            return 30

    found = verify(Hidden(16, 1.0))
    assert (found.verdict, found.ok) == ("suspicious", False)
    assert "reports of value 0 support their own, declared 0.5 of them" in found.words
    assert "too many branches" in found.words


def test_what_nobody_enumerated_is_not_called_sound_even_if_it_is():
    class Idle(dn.OUE):
        name = "idle"

        def report(self, value, coins):
            for _ in range(30):
                coins.below(self.one)
            return super().report(value, coins)

        @property
        def coin_words(self):
            return 30 + self.domain.size

    found = verify(Idle(16, 1.0))
    assert (found.verdict, found.ok) == ("not enumerated", False)
    assert "too many branches" in found.words


# ---- lies that small domains do not show: walks at the real size


def large(m):
    return m.domain.size > 100


class TruthfulWhenLarge(GRR):
    def report(self, value, coins):
        told = super().report(value, coins)
        return value if large(self) else told


class TruthfulHash(dn.OLH):
    def report(self, value, coins):
        *hashed, told = super().report(value, coins)
        return *hashed, self.key(hashed, value) if large(self) else told


class TruthfulBits(OUE):
    """The coins are tossed, and the true row is sent."""

    def report(self, value, coins):
        told = super().report(value, coins)
        return self.sets.of([value]) if large(self) else told


class LastBitWhenLarge(LastBitTruthful):
    def report(self, value, coins):
        honest = OUE.report(self, value, coins)
        return honest if not large(self) or value < self.domain.size - 1 else _last(self, honest)


def _last(m, row):
    last = m.domain.size - 1
    return row[: last >> 3] + bytes([row[last >> 3] | 1 << (last & 7)]) + row[(last >> 3) + 1 :]


class OneMoreWhenLarge(OUE):
    """A threshold that is larger by one unit of 2**-64."""

    def report(self, value, coins):
        one = self.one + large(self)
        bits = range(self.domain.size)
        return self.sets.of(v for v in bits if coins.below(one if v == value else self.zero))


class LouderWhenLarge(GRR):
    def report(self, value, coins):
        drawn = coins.choice(self.domain.size)
        return value if coins.below(self.keep * (3 if large(self) else 1)) else drawn


class TwoBitsWhenLarge(OUE):
    """Declared thresholds, of which one is used for two bits: epsilon is twice as large."""

    def report(self, value, coins):
        ones = {value, self.domain.size - 1 - value} if large(self) else {value}
        return self.randomised(ones, coins)


class KeptWhenLarge(LOSUE):
    """The row that is kept is the true one."""

    def memoise(self, begun, key, coins):
        kept = super().memoise(begun, key, coins)
        return self.sets.of([key]) if large(self) else kept


class ChattyWhenLarge(GRR):
    """One word more for the first value: its length of coins tells."""

    def report(self, value, coins):
        if large(self) and value == 0:
            coins.choice(2)
        return super().report(value, coins)


LIES = {
    TruthfulWhenLarge: "support their own",
    TruthfulHash: "support their own",
    TruthfulBits: "support their own",
    LastBitWhenLarge: "draw with other thresholds, too",
    OneMoreWhenLarge: "which is not declared",
    LouderWhenLarge: "which is not declared",
    TwoBitsWhenLarge: "declared 2.71828",
    KeptWhenLarge: "draw with other thresholds, too",
    ChattyWhenLarge: "words, declared 2",
}


@pytest.mark.slow
@pytest.mark.parametrize("family", LIES)
def test_a_lie_that_only_large_domains_tell_is_suspicious(family):
    found = verify(family(400, 1.0), most_runs=20_000)
    assert (found.verdict, found.ok) == ("suspicious", False), found.words
    assert LIES[family] in found.words
    assert verify(family(5, 1.0)).ok


def test_what_walks_cannot_catch():
    """The value in a coefficient of the hash: thresholds and the share of truth are as declared."""

    class Whispered(dn.OLH):
        def report(self, value, coins):
            a, b, c = self.begin(coins)
            if large(self):
                c = c % (1 << 30) // 512 * 512 + value
            drawn = coins.choice(self.g)
            return a, b, c, self.key((a, b, c), value) if coins.below(self.keep) else drawn

    assert verify(Whispered(400, 1.0)).verdict == "ok from thresholds"


# ---- numbers


class LouderAtZero(dn.DRR):
    """The least number is kept more often than declared."""

    def report(self, value, coins):
        offset, drawn = coins.choice(1 << self.fine), coins.choice(self.outcomes)
        kept = coins.below(self.keep + (SCALE - self.keep) // 2 if value == 0 else self.keep)
        cell = self.cell(value, offset) if kept else drawn
        return (cell << self.shown) | (offset >> (self.fine - self.shown))


class OffsetTells(dn.DRR):
    """The offset is public, and is the number."""

    def report(self, value, coins):
        told = super().report(value, coins) >> self.shown
        return (told << self.shown) | (min(value, (1 << 32) - 1) >> (32 - self.shown))


def test_a_number_is_verified_on_a_coarse_offset():
    found = verify(dn.DRR(dn.Number(0, 24, optional=True), 1.0))
    assert (found.verdict, found.ok) == ("ok from thresholds", True)
    assert "enumerated for numbers from 0 to 1 and numbers from -2 to 2 of a smaller" in found.words
    coarse = verify(dn.DRR(dn.Number(0, 24), 1.0, fine=3))
    assert (coarse.verdict, coarse.method) == ("ok", "enumerated")


@pytest.mark.parametrize("family", [LouderAtZero, OffsetTells])
@pytest.mark.parametrize("design", [{}, {"fine": 3}])
def test_a_lying_number_is_caught(family, design):
    assert verify(family(dn.Number(0, 24), 1.0, **design)).verdict == "violated"


# ---- questionnaires


@pytest.mark.parametrize("mode", ["split", "sampled"])
def test_a_small_questionnaire_is_enumerated(mode):
    q = Questionnaire({"colour": GRR(2, 0.5), "age": OUE(3, 1.0)}, mode)
    found = dn.verify(q)
    assert (found.verdict, found.method) == ("ok", "enumerated")
    assert found.worst.worst.epsilon == pytest.approx({"split": 1.5, "sampled": 1.0}[mode])


@pytest.mark.parametrize("mode", ["split", "sampled"])
def test_a_large_questionnaire_is_verified_from_its_parts(mode):
    q = Questionnaire(
        {"colour": GRR(2, 0.5), "age": OUE(90, 1.0), "home": dn.ORR(dn.Text(), 1.0)}, mode
    )
    found = dn.verify(q)
    assert (found.verdict, found.ok) == ("ok from parts", True)
    assert found.checks[0].declared.epsilon == q.guarantee.epsilon
    assert [check.method for check in found.checks[:2]] == ["from parts", "enumerated"]
    assert "3 yes/no questions enumerated; from thresholds; enumerated for 2, 3" in found.words


@pytest.mark.parametrize("mode", ["split", "sampled"])
@pytest.mark.parametrize("size", [3, 90])
def test_one_lying_question_is_enough(mode, size):
    found = dn.verify(Questionnaire({"a": GRR(2, 1.0), "b": Understated(size, 1.0)}, mode))
    assert found.verdict == "violated"
    found = dn.verify(Questionnaire({"a": GRR(2, 1.0), "b": TruthfulBits(200, 1.0)}, mode))
    assert found.verdict == "suspicious"


@pytest.mark.parametrize("size", [3, 90])
def test_a_weighted_draw_of_several_questions(size):
    """Of any kind: the rare ones spend as much as the others."""
    parts = {"a": OUE(size, 1.0), "b": dn.DRR(dn.Number(0, 1), 0.5, fine=3)}
    found = verify(dn.Joint.of_questions(parts, {"a": 1, "b": (1 << 16) - 1}))
    assert (found.verdict, found.ok) == ("ok" if size == 3 else "ok from parts", True)
    assert found.worst.worst.epsilon == pytest.approx(1.0)
    lying = {"a": Understated(size, 1.0), "b": GRR(2, 0.5)}
    assert verify(dn.Joint.of_questions(lying)).verdict == "violated"


@pytest.mark.parametrize("size", [3, 90])
def test_a_questionnaire_that_looks_at_the_answers(size):
    """The question that is asked depends on the first answer."""

    class Nosy(Sampled):
        def report(self, answers, coins):
            place = min(answers[0], 1)
            coins.choice(2)
            return place, self.parts[place].report(answers[place], coins)

    found = dn.verify(Nosy({"a": OUE(size, 1.0), "b": OUE(size, 1.0)}))
    assert found.verdict == "violated"
    assert "impossible under" in found.words
