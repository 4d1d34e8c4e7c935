"""The laws can fail: each planted bug is caught by the law that is meant to catch it."""

from bisect import bisect_left
from fractions import Fraction

import numpy as np
import pytest

import deniable as dn
from deniable.conformance import LawBroken
from deniable.conformance import channel as laws
from deniable.conformance import distributions as of_distributions
from deniable.conformance import frequencies as of_frequencies
from deniable.conformance import memory as of_memory
from deniable.conformance import numbers as of_means
from deniable.core import tally as tally_module
from deniable.core.layout import Bits, Record
from deniable.core.mechanism import CHUNK
from deniable.core.tally import Tally
from deniable.device.memo import Memory
from deniable.errors import InvalidArgument
from deniable.estimation.frequencies.evidence import Decoded
from deniable.estimation.frequencies.methods import Method
from deniable.estimation.frequencies.mle.likelihood import Maximum, maximise
from deniable.mechanisms import (
    CMS,
    DRR,
    GRR,
    HH,
    HR,
    LBLH,
    LDRR,
    LGRR,
    LOLH,
    OLH,
    OUE,
    SHE,
    SS,
    DBitFlipPM,
    Joint,
)
from deniable.mechanisms.frequency import Line
from deniable.privacy import Guarantee
from deniable.randomness import ByteCoins, Keystream


class LastBitTruthful(OUE):
    """The mistake of a well-known library: noise for all bits but the last."""

    def report(self, value, coins):
        row = bytearray(super().report(value, coins))
        last = self.domain.size - 1
        row[last >> 3] &= ~(1 << (last & 7))
        row[last >> 3] |= (value == last) << (last & 7)
        return bytes(row)


class LastBitTruthfulInBulk(OUE):
    def fill(self, values, out, keystream):
        super().fill(values, out, keystream)
        last = self.domain.size - 1
        out[:, last >> 3] &= 255 ^ (1 << (last & 7))
        truthful = (values == last).astype(np.uint8) << (last & 7)
        out[: len(values), last >> 3] |= truthful


class SwappedOnTheDevice(OUE):
    def report(self, value, coins):
        return self.sets.of(
            v for v in range(self.domain.size) if coins.below(self.zero if v == value else self.one)
        )


class SwappedOnTheServer(OUE):
    def derive_zero(self):
        return OUE(self.domain, self.epsilon).zero

    @property
    def p(self):
        return super().q

    @property
    def q(self):
        return super().p

    @property
    def guarantee(self):
        odds = self.q / (1 - self.q) / (self.p / (1 - self.p))
        return Guarantee(odds)


class RoundedUp(GRR):
    def derive_keep(self):
        return super().derive_keep() + 1


class RoundedUpAndDenied(RoundedUp):
    @property
    def guarantee(self):
        return GRR(self.domain, self.epsilon).guarantee


class WastefulThreshold(GRR):
    def derive_keep(self):
        return super().derive_keep() * 99 // 100


class BiasedDrawInBulk(GRR):
    """Eight random bits and a multiplication: the first values come a little too often."""

    def fill(self, values, out, keystream):
        size = self.domain.size
        for i in range(0, len(values), 1 << 12):
            some = values[i : i + (1 << 12)]
            words = keystream.words(2 * len(some)).reshape(-1, 2)
            drawn = ((words[:, 0] & np.uint64(255)) * np.uint64(size)) >> np.uint64(8)
            kept = words[:, 1] < np.uint64(self.keep)
            out[i : i + len(some)] = np.where(kept, some, drawn)


class DrawsOnlyIfNeeded(GRR):
    def report(self, value, coins):
        return value if coins.below(self.keep) else coins.choice(self.domain.size)


class HalfVariance(OUE):
    def variance_line(self, f, n):
        a, b = super().variance_line(f, n)
        return Line(a / 2, b)


class LosesEveryEighthValue(OUE):
    def count(self, data):
        return super().count(data & np.uint8(127))


class MirrorsNothing(SHE):
    """Simulated respondents of a value add noise like all others, and not its mirror."""

    def simulated_counts(self, histogram, rng):
        return self._sums(np.full_like(histogram, histogram.sum()), rng)


class NoNoise(OUE):
    """Simulated counts are what reports count on average."""

    def simulated_counts(self, histogram, rng):
        others = histogram.sum() - histogram
        return np.rint(histogram * float(self.p) + others * float(self.q)).astype(np.int64)


class SharedCoins(GRR):
    """Every chunk reads the same stream: the coins of one person are those of another."""

    def _in_bulk(self, indices, key, threads):
        class Stuck(Keystream):
            def seek(self, index):
                super().seek(0)

        data = np.empty(len(indices), dtype=self.dtype)
        stream = Stuck(key)
        for start in range(0, len(indices), CHUNK):
            stream.seek(start)
            part = slice(start, start + CHUNK)
            self.fill(indices[part].astype(np.uint32), data[part], stream)
        return data


class OwnStreams(GRR):
    """The bulk path, with a way to choose the stream of each chunk."""

    def place(self, chunk, stream):
        stream.seek(chunk)

    def _in_bulk(self, indices, key, threads):
        data, stream = np.empty(-(-len(indices) // 8) * 8, dtype=self.dtype), Keystream(key)
        for chunk in range(-(-len(indices) // CHUNK)):
            self.place(chunk, stream)
            part = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
            self.fill(indices[part].astype(np.uint32), data[part], stream)
        return data[: len(indices)]


class WrapsAfterFour(OwnStreams):
    def place(self, chunk, stream):
        stream.seek(chunk % 4)


class TwoShareAStream(OwnStreams):
    def place(self, chunk, stream):
        stream.seek(2 if chunk == 4 else chunk)


class ShiftedByOne(OwnStreams):
    """Every chunk begins one respondent later in the same stream."""

    def place(self, chunk, stream):
        stream.seek(0)
        stream.words(self.coin_words * (chunk + 1))


class NeverTheLast(GRR):
    """Of more than 64 answers the last is only told by those whose answer it is."""

    def report(self, value, coins):
        drawn = coins.choice(self.domain.size - (self.domain.size > 64))
        return value if coins.below(self.keep) else drawn


class NeverOneOfThem(GRR):
    """An answer in the middle is only told by those whose answer it is."""

    def report(self, value, coins):
        drawn = coins.choice(self.domain.size)
        drawn -= drawn == 100
        return value if coins.below(self.keep) else drawn


class NeverTheLastInBulk(GRR):
    def fill(self, values, out, keystream):
        super().fill(values, out, keystream)
        made, last = out[: len(values)], self.domain.size - 1
        made[(made == last) & (values != last) & (last > 255)] = 0


class LastBlockMissingInBulk(HR):
    """With many blocks the last one is only told by those whose answer is in it."""

    def fill(self, values, out, keystream):
        super().fill(values, out, keystream)
        made = out[: len(values)]
        made[(made >= self.cells - self.block) & (self.blocks > 60) & (values == 0)] = 0


class LastSetMissing(SS):
    def report(self, value, coins):
        others = [v for v in range(self.domain.size) if v != value]
        for i in range(self.omega):
            j = i + coins.choice(len(others) - i - (len(others) > 64))
            others[i], others[j] = others[j], others[i]
        chosen = others[: self.omega]
        if coins.below(self.keep):
            chosen[-1] = value
        return self.sets.of(chosen)


class ClearFrom512(OUE):
    """The words are drawn, but the bits from 512 on are the truth."""

    def report(self, value, coins):
        row = super().report(value, coins)
        truth = self.sets.of([value])
        return row[:64] + truth[64:]


class ClearFrom512InBulk(OUE):
    def fill(self, values, out, keystream):
        super().fill(values, out, keystream)
        out[:, 64:] = 0


class MirroredByItsLastByte(SHE):
    """The noise of an answer above 255 is that of another."""

    def report(self, value, coins):
        return super().report(value & 255, coins)


class FewCohorts(CMS):
    """Respondents share the hash functions of the first four cohorts."""

    def report(self, value, coins):
        cohort = coins.choice(4)
        return cohort, self._randomised(self.cells_of(value, cohort), coins)


class EqualWhateverThresholds(GRR):
    @property
    def _key(self):
        return type(self), self.domain, self.epsilon


class EqualWhateverDesign(SS):
    @property
    def _key(self):
        return type(self), self.domain, self.epsilon, self.keep


class EqualWhateverAnswers(GRR):
    @property
    def _key(self):
        return type(self), self.domain.size, self.epsilon, self.keep


class Mutable(GRR):
    def __setattr__(self, name, value):
        vars(self)[name] = value


class PaddingTakenInColumns(OUE):
    """A column is not looked at as closely as a row."""

    @property
    def layout(self):
        class Careless(Bits):
            def fault(self, column):
                return None

        return Careless(self.domain.size)


class PaddingTakenInRows(OUE):
    @property
    def layout(self):
        class Careless(Bits):
            def _inside(self, row):
                return None

        return Careless(self.domain.size)


class PaddingCounted(OUE):
    """Refused wherever somebody looks, but counted."""

    def count(self, data):
        rows = np.ascontiguousarray(data)
        return np.unpackbits(rows, axis=1, bitorder="little").sum(axis=0)[: self.domain.size]


class RowsInAnotherOrder(OLH):
    @property
    def layout(self):
        class Backwards(Record):
            def row(self, report):
                return super().row(report[2::-1] + report[3:])

        return Backwards(super().layout.fields)


class BranchFromTheAnswer(Joint):
    """The question that is asked depends on the first answer."""

    def report(self, value, coins):
        coins.pick(self._edges)
        place = min(1, value[0])
        drawn = self.branches[place].mechanism
        report = drawn.report(value[place], coins)
        for _ in range(self.coin_words - 1 - drawn.coin_words):
            coins.choice(1)
        return place, report


class NoWordsBurnt(Joint):
    def report(self, value, coins):
        place = coins.pick(self._edges)
        return place, self.branches[place].mechanism.report(value[place], coins)


class EqualBranchesInBulk(Joint):
    """Many reports at once draw the branches with equal chances."""

    def fill(self, values, out, keystream):
        equal = Joint.of_questions(dict(zip(self.domain.parts, self.parts, strict=True)))
        equal.fill(values, out, keystream)


class SkipAsAnEnd(DRR):
    """Who skips is counted as the largest number."""

    def cell(self, value, offset):
        return min(super().cell(value, offset), self.ell)


class CellRoundedDown(DRR):
    """The offset is shown, but not used: cells are too low on average."""

    def cell(self, value, offset):
        return super().cell(value, 0)


class FlooredTooHigh(DRR):
    """The least variance is that of numbers at the ends, where DRR has the most noise."""

    trials = 2  # no simulation is needed

    def least_variance(self, mean, n):
        return super().least_variance(0.0, n)


class OffsetInBulkOnly(LDRR):
    """Single devices forget their offset, and round all numbers down."""

    def key(self, begun, value):
        return self.cell(value, 0)


class CellsTakenForNumbers(LDRR):
    """Each number is said to have a draw of its own, so that changes would be paid for."""

    key_is_value = True


class NodesErrAlone(HH):
    """Errors of the nodes of a level are said to have nothing to do with each other."""

    def noise(self, level, rows):
        own = super().noise(level, np.eye(rows.shape[1]))
        return rows**2 @ own


class LastBinInTheOneBefore(HH):
    """On the finest level the last bin is never told."""

    def seen(self, place, values):
        found, last = super().seen(place, values), self.tree.sizes[place] - 1
        finest = place == len(self.tree.sizes) - 1
        return found - (found == last) if finest else found


class NarrowShares(HH):
    """Intervals as if there were nine times as many reports."""

    trials = 30

    def noise(self, level, rows):
        return super().noise(level, rows) / 9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "law"),
    [
        (LastBitTruthful, laws.exact_epsilon),
        (LastBitTruthful, of_frequencies.exact_moments),
        (LastBitTruthfulInBulk, laws.bulk_channel),
        (LastBitTruthfulInBulk, of_frequencies.bulk_supports),
        (SwappedOnTheDevice, of_frequencies.exact_moments),
        (RoundedUpAndDenied, laws.exact_epsilon),
        (WastefulThreshold, laws.exact_epsilon),
        (BiasedDrawInBulk, laws.bulk_channel),
        (HalfVariance, of_frequencies.exact_moments),
        (HalfVariance, of_frequencies.simulated_errors),
        (HalfVariance, of_frequencies.coverage),
        (LosesEveryEighthValue, of_frequencies.simulated_errors),
        (MirrorsNothing, of_frequencies.simulated_counts),
        (NoNoise, of_frequencies.simulated_counts),
        (SharedCoins, laws.reproducible),
        (SharedCoins, laws.fresh_coins),
        (WrapsAfterFour, laws.fresh_coins),
        (TwoShareAStream, laws.fresh_coins),
        (ShiftedByOne, laws.fresh_coins),
        (NeverTheLast, laws.exact_at_scale),
        (NeverTheLast, of_frequencies.single_supports),
        (NeverOneOfThem, of_frequencies.unbiased_at_scale),
        (NeverTheLastInBulk, of_frequencies.bulk_supports),
        (NeverTheLastInBulk, laws.exact_at_scale),
        (LastBlockMissingInBulk, laws.exact_at_scale),
        (LastSetMissing, of_frequencies.single_supports),
        (ClearFrom512, laws.exact_at_scale),
        (ClearFrom512, of_frequencies.single_supports),
        (ClearFrom512, laws.one_path),
        (ClearFrom512InBulk, of_frequencies.bulk_supports),
        (MirroredByItsLastByte, laws.one_path),
        (FewCohorts, laws.one_path),
        (EqualWhateverThresholds, laws.every_part_counts),
        (EqualWhateverDesign, laws.every_part_counts),
        (EqualWhateverAnswers, laws.every_part_counts),
        (Mutable, laws.value_semantics),
        (PaddingTakenInColumns, laws.layout),
        (PaddingTakenInRows, laws.layout),
        (PaddingCounted, laws.layout),
        (RowsInAnotherOrder, laws.layout),
        (BranchFromTheAnswer, laws.exact_epsilon),
        (EqualBranchesInBulk, laws.bulk_channel),
        (EqualBranchesInBulk, laws.one_path),
        (SkipAsAnEnd, laws.bulk_channel),
        (SkipAsAnEnd, of_means.exact_skips),
        (CellRoundedDown, laws.bulk_channel),
        (CellRoundedDown, of_means.exact_moments),
        (FlooredTooHigh, of_means.simulated_errors),
        (OffsetInBulkOnly, laws.bulk_channel),
        (OffsetInBulkOnly, of_means.exact_moments),
        (CellsTakenForNumbers, of_memory.exact_histories),
        (NodesErrAlone, of_distributions.exact_shares),
        (LastBinInTheOneBefore, of_distributions.exact_shares),
        (NarrowShares, of_distributions.covered_shares),
    ],
    ids=lambda thing: thing.__name__,
)
def test_planted_bug_is_caught(family, law):
    with pytest.raises(LawBroken):
        law(family)


def test_the_planted_way_to_choose_streams_is_sound():
    laws.fresh_coins(OwnStreams)


def test_a_number_of_coins_that_depends_on_the_value_is_caught():
    with pytest.raises(RuntimeError, match="random bytes were used"):
        laws.fixed_coins(DrawsOnlyIfNeeded)


def test_a_branch_that_burns_no_words_is_caught():
    with pytest.raises(RuntimeError, match="random bytes were used"):
        laws.fixed_coins(NoWordsBurnt)


def test_p_and_q_swapped_on_the_server_cannot_even_be_built():
    with pytest.raises(InvalidArgument, match="supports its own value more than others"):
        SwappedOnTheServer(5, 1.0)


def test_bytes_without_a_digest_are_caught(monkeypatch):
    monkeypatch.setattr(tally_module, "_digest", lambda body: bytes(16))
    with pytest.raises(LawBroken):
        laws.tally_bytes(OUE)


def test_a_column_that_loses_a_report_is_caught(monkeypatch):
    whole = tally_module.Reports.from_arrow.__func__
    short = classmethod(lambda cls, table, m=None: whole(cls, table, m)[:-1])
    monkeypatch.setattr(tally_module.Reports, "from_arrow", short)
    with pytest.raises(LawBroken):
        laws.columns(GRR)


def test_threshold_rounded_up_cannot_even_be_built():
    with pytest.raises(InvalidArgument, match="'thresholds' must be such that epsilon"):
        RoundedUp(5, 1.0)


@pytest.mark.parametrize(
    "biased",
    [
        lambda self, size: self._word() % size,
        lambda self, size: (self._word() & 255) * size >> 8,
        lambda self, size: int(self._word() / 2**64 * size),
    ],
    ids=["modulo", "eight bits", "floating point"],
)
def test_biased_draw_is_caught(monkeypatch, biased):
    monkeypatch.setattr(ByteCoins, "choice", biased)
    with pytest.raises(LawBroken):
        laws.exact_coins()


def test_below_or_equal_is_caught(monkeypatch):
    monkeypatch.setattr(ByteCoins, "below", lambda self, threshold: self._word() <= threshold)
    with pytest.raises(LawBroken):
        laws.exact_coins()


def test_pick_that_counts_edges_below_is_caught(monkeypatch):
    monkeypatch.setattr(ByteCoins, "pick", lambda self, edges: bisect_left(edges, self._word()))
    with pytest.raises(LawBroken):
        laws.exact_coins()


def test_merge_that_counts_twice_is_caught(monkeypatch):
    merge = Tally.merge
    monkeypatch.setattr(Tally, "merge", lambda self, other: merge(merge(self, other), other))
    with pytest.raises(LawBroken):
        laws.monoid(GRR)


def test_tally_that_changes_on_refusal_is_caught(monkeypatch):
    def careless(self, reports, *, threads=None):
        self.n += len(reports)
        return add(self, reports, threads=threads)

    add = Tally.add
    monkeypatch.setattr(Tally, "add", careless)
    with pytest.raises(LawBroken):
        laws.bad_input(GRR)


def test_a_family_without_a_kernel_obeys_every_law_of_the_channel():
    """A newcomer writes `report` and gets the bulk path for free."""

    class Plain(GRR):
        name = "plain"
        fill = dn.Mechanism.fill

    for law in (laws.exact_epsilon, laws.fixed_coins, of_frequencies.exact_moments, laws.monoid):
        law(Plain)
    assert Plain(3, 1.0).guarantee.ratio < Fraction(272, 100)


@pytest.mark.slow
def test_a_loop_that_forgets_a_value_in_fifty_is_caught(monkeypatch):
    """Of a family without a kernel fewer reports are looked at."""

    def forgetful(self, values, out, keystream):
        loop(self, np.where(np.arange(len(values)) % 50 == 0, 0, values), out, keystream)

    loop = dn.Mechanism.fill
    monkeypatch.setattr(dn.Mechanism, "fill", forgetful)

    class Plain(GRR):
        fill = dn.Mechanism.fill

    with pytest.raises(LawBroken):
        laws.bulk_channel(Plain)


@pytest.mark.parametrize(
    "wrong",
    [lambda f: f, lambda f: f * np.nan, lambda f: np.maximum(f, 0)],
    ids=["negative", "not a number", "sum"],
)
def test_a_decoder_that_breaks_its_word_is_caught(monkeypatch, wrong):
    broken = Method(lambda evidence: Decoded(wrong(evidence.unbiased)), "none", "broken")
    monkeypatch.setitem(of_frequencies.METHODS, "projected", broken)
    with pytest.raises(LawBroken):
        of_frequencies.decoders(OUE)


def test_a_maximum_that_is_none_is_caught(monkeypatch):
    lazy = lambda parts: Maximum(np.full(16, 1 / 16), 0.0, 1, 0.0)  # noqa: E731
    monkeypatch.setattr(of_frequencies, "maximise", lazy)
    with pytest.raises(LawBroken, match="is better by"):
        of_frequencies.largest_likelihood(OUE)


def test_a_solver_that_stops_early_is_caught(monkeypatch):
    early = lambda parts: maximise(parts, most_passes=1)  # noqa: E731
    monkeypatch.setattr(of_frequencies, "maximise", early)
    with pytest.raises(LawBroken, match="gap"):
        of_frequencies.largest_likelihood(OUE)


class NotTwoValued(OUE):
    """Sends the first bit without noise one time in two: a third likelihood."""

    def report(self, value, coins):
        row = bytearray(super().report(value, coins))
        row[0] = row[0] & ~1 | (coins.below(1 << 63) & 1)
        return bytes(row)


@pytest.mark.slow
@pytest.mark.parametrize("family", [LOLH, LBLH, DBitFlipPM], ids=lambda family: family.name)
def test_answers_that_share_a_draw_unsaid_are_caught(family):
    class Pretending(family):
        key_is_value = True

    with pytest.raises(LawBroken, match=r"1 changes cost (3\.|Infinity)"):
        of_memory.exact_histories(Pretending)


@pytest.mark.parametrize(
    "careless",
    [
        lambda self, key, coins: key,
        lambda self, key, coins: key if self.allows(key) else min(self.keys),
    ],
    ids=["a key too many", "the smallest key"],
)
def test_a_memo_that_tells_new_answers_is_caught(monkeypatch, careless):
    monkeypatch.setattr(Memory, "always", careless)
    monkeypatch.setattr(Memory, "use", lambda self, key: self.keys.add(key))
    with pytest.raises(LawBroken, match="exact_histories"):
        of_memory.exact_histories(LGRR)


def test_a_permanent_draw_that_is_not_kept_is_caught():
    class Forgetful(LGRR):
        """Reports from the answer, not from what was kept for it."""

        def memoise(self, begun, key, coins):
            super().memoise(begun, key, coins)
            return key

    with pytest.raises(LawBroken):
        of_memory.exact_histories(Forgetful)


def test_a_family_with_more_than_two_likelihoods_is_caught():
    with pytest.raises(LawBroken):
        of_frequencies.two_likelihoods(NotTwoValued)
