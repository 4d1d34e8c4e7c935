"""Repeated collection: rounds, their series, pooling, and what changed."""

import csv
import io
import json
from fractions import Fraction
from itertools import pairwise
from math import comb

import numpy as np
import pytest
from scipy.stats import binom, chi2

import deniable as dn
from deniable import cli
from deniable.core.tally import seal, unseal
from deniable.errors import CorruptData, InvalidArgument, MismatchError
from deniable.mechanisms.frequency import FrequencyOracle, frequency_oracles
from deniable.mechanisms.two_step.memoised import MemoisedSupports
from deniable.privacy import exact_channel
from deniable.rounds import rounds as module
from deniable.rounds.changes import holm
from deniable.rounds.rounds import Rounds
from deniable.rounds.series import Series
from deniable.rounds.tests import RoundEstimate, conditional_p_values, p_values

RARE = 1e-6
LABELS = ["car", "train", "bus"]


def collect(m, histograms, rng, labels=None):
    """Rounds of fresh coins: one histogram of answers a round."""
    rounds = Rounds(m)
    for r, h in enumerate(histograms):
        tally = dn.Tally.of_counts(m, m.simulate(h, rng), int(np.sum(h)))
        rounds.add(r if labels is None else labels[r], tally)
    return rounds


def panels(m, answers, runs, rng):
    """The rounds of many small panels: one large panel, cut into ``runs`` of them.

    ``answers[r]`` are those of a small panel in round r; who gives -1 misses the round.
    """
    panel = dn.Panel(m, runs * len(answers[0]), rng)
    parts = []
    for row in np.tile(answers, runs):
        who = np.flatnonzero(row >= 0)
        reports = panel.privatize(row[who], None if who.size == panel.n else who)
        parts.append(np.split(reports.data, runs))
    for data in zip(*parts, strict=True):
        rounds = Rounds(m)
        for r, one in enumerate(data):
            rounds.add(r, dn.Tally.of_counts(m, m.count(one), len(one)))
        yield rounds


# ---- the covariance of two rounds


REMEMBERING = {name: f for name, f in dn.mechanisms().items() if issubclass(f, MemoisedSupports)}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in REMEMBERING if name != "rappor"])
def test_a_memo_repeats_its_noise_exactly_as_stated(name):
    """The device enumerated: the covariance of what two reports of one memo say about a value."""
    family = REMEMBERING[name]
    m = family(3, 2.0, **family.small_design)

    def twice(value, coins):
        begun = m.begin(coins)
        kept = m.memoise(begun, m.key(begun, value), coins)
        return m.instant(begun, kept, coins), m.instant(begun, kept, coins)

    channel = exact_channel(twice, (0, 1))
    law = np.array(channel.matrix, dtype=np.float64)
    first, second = (
        np.array([m.unbiased(m.count(m.pack([pair[i]])), 1)[0] for pair in channel.outputs])
        for i in (0, 1)
    )
    own, other = law @ (first * second) - (law @ first) * (law @ second)
    f = np.array([0.0, 0.3, 1.0])
    a, b = m.repeated_line(f)
    assert a + b * f == pytest.approx(other + (own - other) * f, rel=1e-9)


@pytest.mark.parametrize("hashes", [1, 2])
def test_a_memo_of_hashed_cells_is_noise_of_its_permanent_step_alone(hashes):
    """The law of a Bloom filter whose bits have the permanent step only: ORAPPOR of that epsilon.

    Of one person alone (n = 1) no hash function is shared.
    """
    shape = {"cohorts": 8, "width": 16, "hashes": hashes}
    m = dn.RAPPOR(5, 2.0, epsilon_inf=3.0, **shape)
    once = dn.ORAPPOR(5, 3.0, **shape)
    f = np.array([0.5, 0.3, 0.2, 0.0, 0.0])
    own, other = once.moments[:2]
    a, b = m.repeated_line(f)
    assert a + b * f == pytest.approx(other + (own - other) * f, rel=1e-9)
    for value in (np.eye(5)[0], np.eye(5)[1]):
        assert once.variance(1, value)[0] == pytest.approx((a + b * value)[0], rel=1e-6)
    asked = dn.RAPPOR(dn.Text(), 2.0, epsilon_inf=3.0, **shape).among(["x", "y"])
    a, b = asked.repeated_line(np.array([0.5, 0.2, 0.3]))
    assert (a[-1], b[-1]) == pytest.approx((a[0] + a[1] + 0.7 * b[0], 0.0))


def test_fresh_coins_repeat_nothing():
    for name, family in frequency_oracles().items():
        if name not in REMEMBERING:
            a, b = family(family.only_size or 4, 1.0).repeated_line(np.zeros(2))
            assert not a.any()
            assert not b.any()


# ---- rounds


def some_rounds(seed, labels=(3, "a", 1)):
    rng = np.random.default_rng(seed)
    rounds = Rounds(dn.GRR(LABELS, 1.0))
    for label in labels:
        rounds.add(label, rounds.mechanism.privatize(rng.choice(LABELS, 20), rng).with_ids())
    return rounds


def test_rounds_are_a_commutative_monoid():
    a, b, c = some_rounds(1), some_rounds(2, ("b", "a")), some_rounds(3, (1, "z"))
    empty = Rounds(a.mechanism)
    assert a.merge(b) == b.merge(a)
    assert a.merge(b).merge(c) == a.merge(b.merge(c))
    assert a.merge(empty) == a == empty.merge(a)
    assert a.merge(b)["a"] == a["a"].merge(b["a"])
    assert a.merge(b).n == a.n + b.n
    before = a.to_bytes()
    a.merge(b).add("a", b["a"])
    assert a.to_bytes() == before


def test_adding_in_pieces_is_adding_at_once():
    m = dn.OUE(5, 1.0)
    reports = m.privatize(np.arange(50) % 5, np.random.default_rng(1))
    at_once = Rounds(m).add("x", reports)
    pieces = Rounds(m).add("x", reports[:20]).add("x", m.tally(reports[20:]))
    assert pieces == at_once
    assert at_once["x"] == m.tally(reports)


def test_rounds_are_in_the_order_of_their_labels():
    labels = ["week 10", 7, "week 9", -2, "2026-05-01", "week 09", "2026-04-30"]
    rounds = some_rounds(1, labels)
    expected = [-2, 7, "2026-04-30", "2026-05-01", "week 09", "week 9", "week 10"]
    assert list(rounds) == expected
    assert rounds == some_rounds(1, []).merge(rounds)
    assert len(rounds) == 7


@pytest.mark.parametrize("label", ["", None, 1.5, True, "a\n", 1 << 60, "\ud800", "9" * 5000])
def test_what_names_no_round_is_refused(label):
    with pytest.raises(InvalidArgument, match="'label' must be a printable text"):
        some_rounds(1).add(label, Rounds(dn.GRR(LABELS, 1.0)).mechanism.tally())


def test_strangers_are_refused_and_change_nothing():
    rounds = some_rounds(1)
    before = rounds.to_bytes()
    other = dn.GRR(LABELS, 2.0)
    for stranger in (other.privatize(["car"]), other.tally()):
        with pytest.raises(MismatchError):
            rounds.add("new", stranger)
    for wrong in (None, [1], "car"):
        with pytest.raises(InvalidArgument, match="'reports' must be"):
            rounds.add("new", wrong)
    with pytest.raises(MismatchError):
        rounds.merge(Rounds(other))
    with pytest.raises(InvalidArgument, match="'other' must be"):
        rounds.merge(rounds["a"])
    with pytest.raises(InvalidArgument, match=r"'label' must be one of \(1, 3, 'a'\)"):
        rounds["new"]
    with pytest.raises(InvalidArgument, match="'mechanism' must be"):
        Rounds("grr")
    assert rounds.to_bytes() == before


def test_bytes_come_back():
    for rounds in (some_rounds(1), Rounds(dn.HR(9, 2.0))):
        again = Rounds.from_bytes(rounds.to_bytes())
        assert again == rounds
        assert again.labels == rounds.labels
        assert Rounds.from_bytes(rounds.to_bytes(), rounds.mechanism) == rounds
        with pytest.raises(MismatchError):
            Rounds.from_bytes(rounds.to_bytes(), dn.GRR(LABELS, 3.0))


def test_altered_bytes_are_refused():
    data = some_rounds(1).to_bytes()
    for place in range(0, len(data), 7):
        altered = bytearray(data)
        altered[place] ^= 1
        for wrong in (bytes(altered), data[:place]):
            with pytest.raises(CorruptData):
                Rounds.from_bytes(wrong)
    with pytest.raises(CorruptData, match="not a collection of rounds"):
        Rounds.from_bytes(some_rounds(1)["a"].to_bytes())
    with pytest.raises(InvalidArgument, match="'data' must be bytes"):
        Rounds.from_bytes("DNROUND")


ROUNDS = some_rounds(1)


def forge(change):
    """Bytes with a valid digest and an altered header."""
    header, content = unseal(module.MAGIC, ROUNDS.to_bytes(), "collection of rounds")
    return seal(module.MAGIC, change(header), content)


@pytest.mark.parametrize(
    "change",
    [
        lambda h: [],
        lambda h: {"rounds": h["rounds"]},
        lambda h: {**h, "rounds": 5},
        lambda h: {**h, "rounds": []},
        lambda h: {**h, "rounds": h["rounds"][::-1]},
        lambda h: {**h, "rounds": h["rounds"][:2]},
        lambda h: {**h, "rounds": [[1, 5]] * 3},
        lambda h: {**h, "rounds": [["", size] for _, size in h["rounds"]]},
        lambda h: {**h, "rounds": [[label, str(size)] for label, size in h["rounds"]]},
        lambda h: {**h, "rounds": [[[label], size] for label, size in h["rounds"]]},
        lambda h: {**h, "rounds": [[*h["rounds"][0], 1], *h["rounds"][1:]]},
        lambda h: {**h, "mechanism": dn.GRR(LABELS, 2.0).to_spec()},
    ],
)
def test_forged_headers_are_refused(change):
    assert Rounds.from_bytes(forge(lambda h: h)) == ROUNDS
    with pytest.raises(CorruptData):
        Rounds.from_bytes(forge(change))


# ---- series


def test_a_series_is_the_estimate_of_each_round():
    rounds = some_rounds(1)
    choices = {"confidence": 0.9, "errors": "exact", "population": "everyone", "simultaneous": True}
    series = rounds.estimate("projected", **choices)
    assert series.rounds == (1, 3, "a")
    assert series.values == tuple(LABELS)
    assert series.n == (20, 20, 20)
    for r, label in enumerate(rounds):
        one = rounds[label].estimate("projected", **choices)
        assert np.array_equal(series.frequencies[r], one.frequencies)
        assert np.array_equal(series.standard_errors[r], one.standard_errors)
        assert np.array_equal(series.intervals[r], one.intervals)
    assert series.interval_words == "90 % simultaneous exact intervals about everyone"


def test_reports_tell_a_series_more_than_tallies():
    m = dn.OUE(LABELS, 2.0)
    reports = m.privatize(LABELS * 50, np.random.default_rng(1))
    series = Series.of({"x": reports}, "likelihood")
    assert np.array_equal(series.frequencies[0], m.estimate(reports, "likelihood").frequencies)
    with pytest.raises(InvalidArgument, match="reports: the counts of OUE"):
        Rounds(m).add("x", reports).estimate("likelihood")


def test_exports_are_long():
    series = some_rounds(1).estimate()
    columns = ["round", "value", "frequency", "standard_error", "low", "high", "n"]
    frame = series.to_pandas()
    assert list(frame) == columns
    assert frame["round"].tolist() == ["1"] * 3 + ["3"] * 3 + ["a"] * 3
    assert frame["value"].tolist() == LABELS * 3
    assert np.array_equal(frame["frequency"], series.frequencies.ravel())
    table = series.to_arrow()
    assert table.column_names == columns
    assert table.schema.metadata[b"deniable.rounds"] == b"3"
    assert len(list(csv.DictReader(io.StringIO(series.to_csv())))) == 9
    read = json.loads(series.to_json())
    assert read["method"] == "bayes"
    assert read["values"][4] == series.rows()[4]
    assert "9 values" not in series._repr_html_()
    assert [row["round"] for row in some_rounds(1, (2, 1)).estimate().rows()] == [1] * 3 + [2] * 3


def printed(thing, width=80):
    from rich.console import Console

    console = Console(width=width, record=True, file=io.StringIO())
    console.print(thing)
    return console.export_text()


def words(thing):
    return " ".join(printed(thing).split())


@pytest.mark.slow
def test_series_are_shown(tmp_path):
    rng = np.random.default_rng(2)
    rounds = collect(dn.OUE(12, 1.0), [[100 * (v + 1) for v in range(12)]] * 3, rng)
    series, found = rounds.estimate(), rounds.changes()
    assert "2 of 12 values" in words(series)
    assert "1 of 12 values" in words(series.table(values=[5]))
    assert "any false alarm: at most 5 %" in words(found)
    file = series.save(tmp_path / "x.svg", truth=np.arange(1, 13) / 78, changes=found)
    drawn = file.read_text()
    assert "Dotted lines show the simulated truth." in drawn
    assert "6 of 12 values" in drawn
    assert collect(dn.GRR(3, 1.0), [[5, 5, 5]], rng).estimate().plot().to_dict()


@pytest.mark.parametrize("respondents", [100, 1_000_000])
def test_tables_fit_a_narrow_terminal(respondents):
    """Nothing is cropped with labels of 8 characters; what does not fit is said."""
    values = ["abcdefgh", "ijklmnop", "n", "round", "[bold]"]
    shares = np.array([[0.6, 0.1, 0.1, 0.1, 0.1], [0.1, 0.6, 0.1, 0.1, 0.1]])
    h = (respondents * shares).round().astype(int)
    m, rng = dn.GRR(values, 3.0), np.random.default_rng(1)
    rounds = collect(m, h, rng, ["week-009", "week-010"])
    series = rounds.estimate()
    text = printed(series)
    assert "2 of 5 values" in words(series)
    assert "±" not in text
    for label, row in zip(series.rounds, series.intervals, strict=True):
        (line,) = [line for line in text.splitlines() if label in line]
        digits = 3 if respondents == 100 else 4
        shown = {f"[{low:.{digits}f}, {high:.{digits}f}]" for low, high in row}
        assert sum(cell in line for cell in shown) == 2
    wide = printed(series.table(width=200), 200)
    assert all(value in wide for value in values)
    found = printed(rounds.changes())
    assert "p-value " in found
    assert "flagged " not in found.split("p-value")[1]
    for row in rounds.changes().rows():
        if row["flagged"]:
            assert f"{row['difference']:+.4f}   {row['low']:+.4f} .. {row['high']:+.4f}" in found
    for table in (text, found):
        assert "…" not in table
        assert max(map(len, table.splitlines())) <= 80


def test_a_table_says_that_nothing_is_flagged():
    rounds = collect(dn.GRR(LABELS, 1.0), [[30, 30, 30]] * 2, np.random.default_rng(1))
    text = words(rounds.changes())
    assert "0 changes flagged in 3 comparisons" in text
    assert "nothing is flagged, the clearest comparison is shown" in text


def test_one_is_singular_and_shown_in_words():
    m = dn.GRR(LABELS, 1.0)
    rounds = Rounds(m).add("x", m.privatize(["car"]))
    assert repr(rounds).startswith("<1 round with 1 report of GRR")
    assert repr(rounds.estimate()).startswith("bayes frequencies of 1 report in 1 round, GRR")
    assert rounds.pooled().source.endswith("; 1 round of same respondents")
    found = rounds.add("y", m.privatize(["bus"])).changes()
    assert repr(found) == str(found)
    assert "0 changes flagged" in repr(found)


def test_flagged_changes_are_marked():
    """Above the interval of what became more frequent, below that of what became less."""
    rng = np.random.default_rng(2)
    rounds = collect(dn.GRR(LABELS, 3.0), [[500, 300, 200], [200, 300, 500]], rng)
    spec = rounds.estimate().chart(values=["car", "bus"], changes=rounds.changes())
    rows = spec["data"]["values"]
    up, down = spec["layer"][-2:]
    assert (up["encoding"]["y"]["field"], up["mark"]["yOffset"] < 0) == ("high", True)
    assert (down["encoding"]["y"]["field"], down["mark"]["yOffset"] > 0) == ("low", True)
    marks = {(row["round"], row["value"]): row["change"] for row in rows}
    assert marks == {("0", "car"): "", ("0", "bus"): "", ("1", "car"): "down", ("1", "bus"): "up"}


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda r: Rounds(r.mechanism).estimate(), "rounds"),
        (lambda r: r.add("empty", r.mechanism.tally()).estimate(), "rounds"),
        (lambda r: r.add("empty", r.mechanism.tally()).changes(), "rounds"),
        (lambda r: r.estimate("magic"), "method"),
        (lambda r: r.estimate().plot(truth=[1.0, 0.0]), "truth"),
        (lambda r: r.estimate().plot(truth=[10, 20, 30]), "truth"),
        (lambda r: r.estimate().plot(values=["plane"]), "values"),
        (lambda r: r.estimate().table(values=[]), "values"),
        (lambda r: r.pooled(respondents="others"), "respondents"),
        (lambda r: r.pooled(errors="exact"), "errors"),
        (lambda r: r.pooled("likelihood", errors="information"), "errors"),
        (lambda r: r.pooled(confidence=2), "confidence"),
        (lambda r: r.pooled(population="nobody"), "population"),
        (lambda r: Rounds(r.mechanism).pooled(), "rounds"),
        (lambda r: r.add("empty", r.mechanism.tally()).pooled(), "rounds"),
        (lambda r: r.changes(respondents=None), "respondents"),
        (lambda r: r.changes(0), "false_alarm"),
        (lambda r: r.changes(1.0), "false_alarm"),
        (lambda r: r.changes("often"), "false_alarm"),
        (lambda r: r.changes(5e-11), "false_alarm"),
        (lambda r: r.changes(baseline="new"), "baseline"),
        (lambda r: some_rounds(1, ("one",)).changes(), "rounds"),
        (lambda r: r.changes(candidates=["car"]), "candidates"),
    ],
)
def test_what_cannot_be_is_refused(call, name):
    with pytest.raises(InvalidArgument) as refusal:
        call(some_rounds(1))
    assert refusal.value.name == name


# ---- pooling

M = dn.BasicRAPPOR(4, 1.5, epsilon_inf=2.0)
PANEL = [900, 600, 400, 100]


def people(histogram):
    """Answers with this histogram."""
    return np.repeat(np.arange(len(histogram)), histogram)


def test_fresh_rounds_are_merged():
    rounds = some_rounds(4)
    merged = rounds[1].merge(rounds[3]).merge(rounds["a"])
    for method in ("bayes", "likelihood", "unbiased", "projected", "ibu"):
        one = rounds.pooled(method, respondents="fresh")
        expected = merged.estimate(method)
        assert np.array_equal(one.frequencies, expected.frequencies)
        assert np.array_equal(one.intervals, expected.intervals)
        assert one.errors == expected.errors
    assert one.n == merged.n
    assert one.source.endswith("3 rounds of fresh respondents")


def test_without_memos_a_panel_is_as_good_as_fresh_people():
    rounds = some_rounds(4)
    same = rounds.pooled("unbiased")
    fresh = rounds.pooled("unbiased", respondents="fresh", errors="score")
    assert np.array_equal(same.intervals, fresh.intervals)
    assert np.array_equal(same.frequencies, fresh.frequencies)
    # But for everyone a panel is one sample.
    same = rounds.pooled("unbiased", population="everyone").standard_errors
    fresh = rounds.pooled("unbiased", population="everyone", respondents="fresh").standard_errors
    assert np.all(same > fresh)


def test_one_round_is_itself():
    (rounds,) = panels(M, [people(PANEL)], 1, np.random.default_rng(1))
    for population in ("respondents", "everyone"):
        choices = {"errors": "score", "population": population}
        one, same = rounds[0].estimate(**choices), rounds.pooled(**choices)
        assert one.intervals == pytest.approx(same.intervals, abs=1e-15)


@pytest.mark.slow
def test_the_variance_of_a_panel_with_holes_is_as_stated():
    """H0: the sum over runs of ((pooled - truth) / s.e.)^2 is chi-square (normal errors).

    Part of the panel misses the second round, and a part of that the third: nested, the worst case.
    """
    rng = np.random.default_rng(3)
    everyone = people(PANEL)
    third = np.where(np.arange(2000) % 2, everyone, -1)
    second = np.where(np.arange(2000) % 4 == 1, everyone, -1)
    given = [everyone, second, third]
    answers = np.concatenate(given)
    truth = np.bincount(answers[answers >= 0]) / np.sum(answers >= 0)
    runs, total = 400, 0.0
    for rounds in panels(M, given, runs, rng):
        one = rounds.pooled("unbiased")
        total += float(np.sum(((one.frequencies - truth) / one.standard_errors) ** 2))
    low, high = chi2.ppf([RARE / 2, 1 - RARE / 2], 4 * runs)
    assert low < total < high, f"{total / (4 * runs)}: chance does this with {RARE}"


@pytest.mark.slow
def test_intervals_of_a_panel_hold_and_those_of_fresh_people_do_not():
    """H0: "same" covers at least 94.5 % (nominally 95 %); the control: "fresh" at most 70 %.

    Eight rounds of one panel; the values of a run are independent (one coin a bit). The permanent
    step has n Var = 0.92 of 1.70, so "fresh" believes in a variance 4.8 times too small and covers
    with P(|Z| < 1.96 / 2.19) = 63 %.
    """
    rng = np.random.default_rng(4)
    truth = np.array(PANEL) / sum(PANEL)
    runs, held = 500, {"same": 0, "fresh": 0}
    for rounds in panels(M, [people(PANEL)] * 8, runs, rng):
        for kind in held:
            low, high = rounds.pooled("unbiased", respondents=kind).intervals.T
            held[kind] += int(np.sum((low <= truth) & (truth <= high)))
    trials = 4 * runs
    assert binom.cdf(held["same"], trials, 0.945) > RARE, held
    assert binom.sf(held["fresh"] - 1, trials, 0.7) > RARE, held


# ---- changes


def test_conditional_p_values_are_exact():
    c, d = np.array([0, 3, 7, 12, 20]), np.array([4, 3, 15, 0, 30])
    n, m = 20, 40
    for x, y, found in zip(c.tolist(), d.tolist(), conditional_p_values(c, n, d, m), strict=True):
        ways = [comb(n, j) * comb(m, x + y - j) for j in range(x + y + 1)]
        tails = (sum(ways[: x + 1]), sum(ways[x:]))
        exact = min(Fraction(1), 2 * Fraction(min(tails), comb(n + m, x + y)))
        assert found == pytest.approx(float(exact), rel=1e-12)


def test_holm_by_hand():
    p = np.array([[0.01, 0.04], [0.03, 0.005]])
    assert holm(p) == pytest.approx(np.array([[0.03, 0.06], [0.06, 0.02]]))
    assert holm(np.array([0.5, 0.6, 0.9])) == pytest.approx([1, 1, 1])


def fresh_counts(m, truth, sizes, runs, rng):
    """Runs x rounds x cells: the counts of samples; in bulk where a family has no shortcut."""
    histograms = np.stack([rng.multinomial(n, f, runs) for n, f in zip(sizes, truth, strict=True)])
    if type(m).simulated_counts is not FrequencyOracle.simulated_counts:
        return [[m.simulate(h, rng) for h in run] for run in histograms.swapaxes(0, 1)]
    values = np.tile(np.arange(m.domain.size, dtype=np.uint32), (runs, 1)).ravel()
    data = [m.privatize(np.repeat(values, h.ravel()), rng).data for h in histograms]
    batches = [np.split(d, runs) for d in data]
    return [[m.count(batch[run]) for batch in batches] for run in range(runs)]


def any_flag(m, truth, sizes, runs, rng, watched=slice(None)):
    """In how many series of fresh samples anything (of the ``watched`` values) is flagged."""
    p = []
    for counts in fresh_counts(m, truth, sizes, runs, rng):
        tallies = [dn.Tally.of_counts(m, c, n) for c, n in zip(counts, sizes, strict=True)]
        p.append([RoundEstimate.of(tally) for tally in tallies])
    pairs = list(pairwise(range(len(sizes))))
    if p[0][0].supports is None:
        found = np.array([[p_values(run[r], run[s], False) for r, s in pairs] for run in p])
    else:
        c = np.array([[side.supports for side in run] for run in p])
        both = [conditional_p_values(c[:, r], sizes[r], c[:, s], sizes[s]) for r, s in pairs]
        found = np.stack(both, axis=1)
    return sum(bool(np.any(holm(run)[:, watched] <= 0.05)) for run in found)


def test_flags_are_those_of_all_comparisons_together():
    rng = np.random.default_rng(1)
    for m in (dn.OUE(4, 1.0), dn.HR(16, 4.0), dn.SHE(4, 1.0), dn.CMS(4, 1.0)):
        k = m.domain.size
        rounds = collect(m, [[50] * k, [80] + [40] * (k - 1), [50] * k], rng)
        sides = [RoundEstimate.of(tally) for tally in rounds.tallies().values()]
        each = np.array([p_values(r, s, False) for r, s in pairwise(sides)])
        found = rounds.changes(0.2)
        assert np.array_equal(found.p_values, holm(each))
        assert np.array_equal(found.flagged, holm(each) <= 0.2)
        assert found.test == ("exact" if m.name == "oue" else "normal")


def skewed(k):
    f = np.arange(1, k + 1.0) ** -1.5
    return f / f.sum()


STABLE = [
    ("grr", 6, 1.0, (1000, 1000, 1000)),
    ("grr", 4, 8.0, (50, 200, 50)),
    ("oue", 6, 0.1, (400, 800, 400)),
    ("oue", 8, 6.0, (100_000, 100_000)),
    ("olh", 6, 1.0, (150, 150)),
    ("hr", 7, 1.0, (500, 500, 500)),
    ("hr", 16, 4.0, (400, 400)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "k", "epsilon", "sizes"), STABLE)
def test_false_alarms_are_as_rare_as_stated(name, k, epsilon, sizes):
    """H0: a stable series has any flag with probability at most 5 %."""
    m = dn.mechanism(name, k, epsilon)
    runs, rng = 2000, np.random.default_rng(5)
    bad = any_flag(m, [skewed(k)] * len(sizes), sizes, runs, rng)
    assert binom.sf(bad - 1, runs, 0.05) > RARE, f"{bad} of {runs}"


@pytest.mark.slow
def test_values_that_did_not_change_are_left_alone_by_those_that_did():
    """H0: with two values trading places, any other is flagged with probability at most 5 %."""
    before, after = np.array([0.5, 0.2, 0.15, 0.1, 0.05]), np.array([0.2, 0.5, 0.15, 0.1, 0.05])
    m, runs = dn.GRR(5, 2.0), 2000
    bad = any_flag(m, [before, after], (1500, 1500), runs, np.random.default_rng(6), [2, 3, 4])
    assert binom.sf(bad - 1, runs, 0.05) > RARE, f"{bad} of {runs}"


def test_a_real_change_is_seen_where_it_was():
    """A change of 26 standard deviations of the difference, where 2.6 are flagged."""
    rng = np.random.default_rng(7)
    before, after = [6000, 3000, 1000], [4000, 3000, 3000]
    found = collect(dn.GRR(LABELS, 2.0), [before, before, after], rng).changes()
    assert found.pairs == ((0, 1), (1, 2))
    assert found.flagged.tolist() == [[False] * 3, [True, False, True]]
    assert found.test == "exact"
    row = found.rows()[3]
    assert (row["from"], row["to"], row["value"], row["flagged"]) == (1, 2, "car", True)
    assert row["low"] < -0.2 < row["high"] < 0
    assert "2 changes flagged in 6 comparisons" in str(found)
    assert json.loads(found.to_json())["comparisons"][3] == row
    assert found.to_arrow().num_rows == len(found.to_pandas()) == 6
    assert found._repr_html_().count("<tr>") == 7


@pytest.mark.slow
def test_intervals_of_differences_hold_together():
    """H0: all intervals of a series hold the true changes with at least 94 % (nominally 95 %)."""
    rng, runs, held = np.random.default_rng(10), 1000, 0
    m = dn.BasicRAPPOR(3, 2.0, epsilon_inf=2.5)
    before, after = [300, 200, 100], [250, 200, 150]
    samples = [rng.multinomial(600, np.array(h) / 600, runs) for h in (before, after)]
    for pair in zip(*samples, strict=True):
        low, high = collect(m, pair, rng).changes().intervals[0].T
        change = (np.array(after) - before) / 600
        held += bool(np.all((low <= change) & (change <= high)))
    assert binom.cdf(held, runs, 0.94) > RARE, f"{held} of {runs}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "m",
    [
        dn.LOSUE(4, 2.2, 2.0),
        dn.LGRR(4, 2.2, 2.0),
        dn.LOLH(4, 2.2, 2.0),
        dn.DBitFlipPM(4, 2.0, w=2),
        dn.DBitFlipPM(4, 2.0, w=1),
    ],
    ids=str,
)
@pytest.mark.parametrize("movers", [0, 40, 400])
def test_intervals_of_a_panel_hold_however_many_move(m, movers):
    """H0: all intervals hold with at least 94 % (nominally 95 %), 300 panels of 1000."""
    rng, runs = np.random.default_rng(movers), 300
    first = np.repeat(np.arange(4), [500, 200, 200, 100])
    second = np.where(np.arange(1000) < movers, 1, first)
    change = np.array([-movers, movers, 0, 0]) / 1000
    held = 0
    for rounds in panels(m, [first, second], runs, rng):
        low, high = rounds.changes(respondents="same").intervals[0].T
        held += bool(np.all((low <= change) & (change <= high)))
    assert binom.cdf(held, runs, 0.94) > RARE, f"{held} of {runs}"


def test_a_baseline_is_compared_with_every_other_round():
    rng = np.random.default_rng(8)
    slowly = [[6000 - 500 * r, 3000, 1000 + 500 * r] for r in range(4)]
    rounds = collect(dn.GRR(LABELS, 2.0), slowly, rng, ["a", "b", "c", "d"])
    found = rounds.changes(baseline="a")
    assert found.pairs == (("a", "b"), ("a", "c"), ("a", "d"))
    assert found.flagged[-1, 0]
    assert found.differences[2] == pytest.approx(
        rounds["d"].estimate("unbiased").frequencies - rounds["a"].estimate("unbiased").frequencies
    )


@pytest.mark.slow
def test_a_panel_sees_more_and_still_keeps_its_word():
    """H0 for the stable panel: any flag with at most 5 %; 3 % of a panel of 4000 then change.

    By the normal law "same" sees either of the two values with 94 %, "fresh" with 0.3 %: 80 % and
    20 % of 200 runs are out of reach of chance (below 1e-9).
    """
    m, rng, runs = dn.BasicRAPPOR(4, 2.0, epsilon_inf=2.2), np.random.default_rng(9), 1000
    before = people([1920, 1200, 600, 280])
    after = np.where(np.arange(4000) < 120, 1, before)
    alarms, seen = 0, {"same": 0, "fresh": 0}
    for stable in panels(m, [before] * 2, runs, rng):
        alarms += bool(stable.changes(respondents="same").flagged.any())
    for moved in panels(m, [before, after], 200, rng):
        for kind in seen:
            seen[kind] += bool(moved.changes(respondents=kind).flagged[0, :2].any())
    assert binom.sf(alarms - 1, runs, 0.05) > RARE, f"{alarms} of {runs}"
    assert seen["same"] > 160, seen
    assert seen["fresh"] < 40, seen


@pytest.mark.slow
@pytest.mark.parametrize("family", [dn.LGRR, dn.LSUE, dn.LOSUE, dn.LOLH, dn.BasicRAPPOR])
def test_devices_with_memos_differ_between_rounds_as_stated(family):
    """H0: (x_2 - x_1)^2 over V_1 + V_2 - 2 C sums to chi-square, value by value."""
    m, rng, n, runs = family(5, 2.0), np.random.default_rng(11), 1000, 300
    values = np.arange(n) % 5
    truth = np.full(5, 1 / 5)
    a, b = m.repeated_line(truth)
    expected = 2 * m.variance(n, truth) - 2 * (a + b * truth) / n
    total = np.zeros(5)
    for _ in range(runs):
        panel = dn.Panel(m, n, rng)
        first, second = (m.unbiased(m.count(panel.privatize(values).data), n) for _ in range(2))
        total += (second - first) ** 2 / expected
    low, high = chi2.ppf([RARE / 2, 1 - RARE / 2], runs)
    assert np.all((low < total) & (total < high)), total / runs


# ---- the command


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rounds")
    m, rng = dn.GRR(LABELS, 3.0), np.random.default_rng(12)
    rounds = Rounds(m)
    for week, shares in enumerate([(0.6, 0.3, 0.1), (0.6, 0.3, 0.1), (0.2, 0.3, 0.5)], 9):
        reports = m.privatize(rng.choice(LABELS, 2000, p=shares), rng)
        rounds.add(week, reports)
        reports.to_parquet(folder / f"week-{week}.parquet")
    (folder / "week-11.tally").write_bytes(m.tally(reports).to_bytes())
    (folder / "all.rounds").write_bytes(rounds.to_bytes())
    (folder / "other.tally").write_bytes(dn.OUE(LABELS, 1.0).tally().to_bytes())
    return folder


@pytest.fixture
def run(files, monkeypatch, capsys):
    """The command, in this process."""
    monkeypatch.chdir(files)
    monkeypatch.setenv("COLUMNS", "80")

    def once(*arguments, code=0):
        monkeypatch.setattr("sys.argv", ["deniable", *arguments])
        with pytest.raises(SystemExit) as end:
            cli.main()
        out, err = capsys.readouterr()
        assert (end.value.code or 0) == code, err
        return out if code == 0 else " ".join(err.split())

    return once


@pytest.mark.slow
def test_the_command_shows_the_series_and_what_changed(files, run):
    rounds = ("week-10.parquet", "week-9.parquet", "week-11.tally")
    text = run("series", *rounds, "-c", "chart.svg", "--values", "car, bus")
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    assert text.index("week-9") < text.index("week-10") < text.index("week-11")
    assert "2 changes flagged in 6 comparisons" in text
    assert "Triangles mark changes" in (files / "chart.svg").read_text()
    shape = ("--baseline", "9", "--simultaneous", "--false-alarm", "0.1", "-f", "json")
    read = json.loads(run("series", "all.rounds", *shape))
    assert read["series"]["simultaneous"]
    assert read["changes"]["false_alarm"] == 0.1
    assert [row["round"] for row in read["series"]["values"]] == [9] * 3 + [10] * 3 + [11] * 3
    assert {row["from"] for row in read["changes"]["comparisons"]} == {9}
    assert read["changes"]["respondents"] == "fresh"


def test_the_command_exports_and_pools(run):
    table = list(csv.DictReader(io.StringIO(run("series", "all.rounds", "-f", "csv"))))
    assert len(table) == 9
    choices = ("--pooled", "--method", "projected", "--confidence", "0.9", "-f", "json")
    read = json.loads(run("series", "all.rounds", *choices))
    assert read["n"] == 6000
    assert read["mechanism"].endswith("3 rounds of same respondents")
    assert "changes" not in run("series", "week-9.parquet")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("week-9.parquet", "other.tally"), "rounds have different mechanisms: GRR"),
        (("week-11.parquet", "week-11.tally"), "'files' must be files of different names"),
        (("all.rounds", "week-9.parquet"), "`deniable series` reads a file of rounds, alone"),
        (("all.rounds", "--values", "plane"), "'values' must be some of car, train, bus"),
        (("all.rounds", "--respondents", "us"), "'respondents' must be one of same, fresh"),
        (("all.rounds", "--false-alarm", "5"), "'false_alarm' must be"),
        (("all.rounds", "--baseline", "week"), "'baseline' must be one of"),
        (("all.rounds", "--pooled", "--values", "car"), "'--values' must be left out with --po"),
        (("all.rounds", "--pooled", "--baseline", "9"), "'--baseline' must be left out"),
        (("all.rounds", "--pooled", "--false-alarm", "0.1"), "'--false-alarm' must be left out"),
        (("all.rounds", "-c", "x.pdf"), "'chart' must be"),
    ],
)
def test_the_command_refuses_clearly(run, arguments, message):
    assert message in run("series", *arguments, code=2)


def test_rounds_are_no_tally(run):
    for more in ((), ("week-9.parquet",)):
        said = run("estimate", "all.rounds", *more, code=2)
        assert "`deniable series` reads a file of rounds, alone; got '" in said
        assert "all.rounds'" in said


# ---- means


@pytest.fixture
def weeks():
    m, rng = dn.DRR(dn.Number(0, 24), epsilon=2.0), np.random.default_rng(4)
    rounds = dn.Rounds(m)
    for week, mean in enumerate((6, 8, 10), 1):
        rounds.add(f"week {week}", m.privatize(rng.normal(mean, 1, 5_000), rng))
    return rounds


def test_a_series_of_means(weeks):
    """One estimate a round with its own interval, as a table and as a chart in the unit."""
    series = weeks.estimate(population="everyone")
    assert series.values[0] == "mean"
    for label, numbers, interval in zip(
        series.rounds, series.numbers, series.intervals, strict=True
    ):
        alone = weeks[label].estimate(population="everyone")
        assert (numbers[0], tuple(interval[0])) == (alone.mean, alone.mean_interval)
    assert series.rows()[0]["statistic"] == "mean"
    assert str(series).startswith("unbiased statistics of 15000 reports in 3 rounds")
    with pytest.raises(InvalidArgument, match="one of shares"):
        _ = series.frequencies
    spec = series.chart(truth=[6.0, *[np.nan] * (len(series.values) - 1)])
    assert "Estimated mean in 3 rounds" in spec["description"]
    axis = spec["layer"][1]["encoding"]["y"]
    assert axis["title"] == "answers clipped to [0, 24]"
    assert axis["scale"] == {"zero": False}
    cells = list(series.table().columns[2].cells)
    low, high = series.intervals[0, 0]
    assert str(cells[0]) == f"{series.numbers[0, 0]:.2f} [{low:.2f}, {high:.2f}]"


def test_means_of_rounds_have_a_series_and_nothing_else(weeks, run, tmp_path):
    file = tmp_path / "weeks"
    file.write_bytes(weeks.to_bytes())
    told = json.loads(run("series", str(file), "-f", "json"))
    assert told["changes"] is None
    assert told["series"]["values"][0]["round"] == "week 1"
    for option in ("--pooled", "--baseline=week 1", "--false-alarm=0.1"):
        assert "'mechanism' must be one" in run("series", str(file), option, code=2)
