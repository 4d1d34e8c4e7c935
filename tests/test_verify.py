"""Exact verification: of mechanisms, of plain functions, and of what is composed from them."""

import json
import math

import numpy as np
import pytest

import deniable as dn
from deniable.audit.exact import relatives, verify, verify_function
from deniable.audit.runs import few_runs
from deniable.errors import InvalidArgument
from deniable.mechanisms import GRR, LGRR, LOSUE, OUE, UE
from deniable.privacy import Guarantee, Lasting
from deniable.randomness import SCALE


@pytest.mark.parametrize("name", dn.mechanisms())
def test_every_mechanism_keeps_its_promise(name):
    family = dn.mechanisms()[name]
    found = verify(family(family.only_size or 40, 1.5), most_runs=20_000)
    assert found.verdict == "ok", found.words
    assert found.worst.declared.epsilon <= found.checks[0].declared.epsilon + 1e-9


def test_what_is_enumerated_and_what_follows_from_thresholds():
    small, large = verify(OUE(5, 1.0)), verify(OUE(500, 1.0))
    assert small.method == "enumerated"
    assert len(small.checks) == 1
    assert large.method == "from thresholds"
    assert [check.method for check in large.checks[1:]] == ["enumerated"] * 3
    assert "2.71828 times as likely under" in small.words


def test_mechanisms_for_any_text_are_verified_on_listed_relatives():
    found = verify(dn.ORR(dn.Text(), 1.0))
    assert found.verdict == "ok"
    assert found.method == "from thresholds"
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
        return self.pack_bits(
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
        return self.pack_bits(
            v for v in bits if coins.below(self.one + 1 if v == value else self.zero)
        )


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
    assert isinstance(stated, Lasting)
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
            return self.pack_bits([0] if value == 0 else [])

        @property
        def coin_words(self):
            return 30

    found = verify(Hidden(16, 1.0))
    assert (found.verdict, found.ok) == ("not enumerated", False)
    assert "too many branches" in found.words
