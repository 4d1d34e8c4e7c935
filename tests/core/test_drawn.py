"""One branch is drawn by public weights, whatever the answers: `Drawn`, `Joint`, questionnaires."""

import json
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import chi2

import deniable as dn
from deniable.core.drawn import WEIGHTS, Branch
from deniable.errors import BrokenPromise, InvalidArgument, Unsupported
from deniable.mechanisms.joint import branches_of
from deniable.privacy import exp_below
from deniable.randomness import SCALE, WORD_BYTES, ByteCoins, Keystream

FALSE_ALARM = 1e-9

COFFEE = dn.GRR(["tea", "coffee", "none"], 1.0)
SLEEP = dn.DRR(dn.Number(0, 24, optional=True), 0.7, fine=3, shown=1)
SMALL = {
    "two lists": dn.Joint.of_questions({"a": COFFEE, "b": dn.OUE(2, 0.5)}),
    "weighted": dn.Joint.of_questions({"a": dn.BRR(2, 1.0), "b": COFFEE}, {"a": 1, "b": 65535}),
    "a number": dn.Joint.of_questions({"sleep": SLEEP, "drink": COFFEE}),
    "three": dn.Joint.of_questions({"a": dn.GRR(2, 1), "b": dn.GRR(2, 2), "c": dn.BRR(2, 0.5)}),
    "one": dn.Joint.of_questions({"a": COFFEE}),
    "twice": dn.Joint(
        dn.Several({"a": 3, "b": 2}),
        1.0,
        [
            Branch(30_000, ("a",), dn.GRR(3, 1.0)),
            Branch(30_000, ("b",), dn.BRR(2, 1.0)),
            Branch(5_536, ("a",), dn.OUE(3, 0.5)),
        ],
    ),
}  # fmt: skip
LARGE = dn.Joint.of_questions(
    {
        "way": dn.OUE(100, 1.0),
        "sleep": dn.DRR(dn.Number(0, 24, 0.25, optional=True), 1.0),
        "drug": dn.ORR(dn.Text(), 1.0, cohorts=64, width=3),
        "home": dn.OLH(500, 1.0),
        "remote": dn.BRR(dn.YesNo(), 0.5),
    },
    {"way": 10_000, "sleep": 20_000, "drug": 5_000, "home": 536, "remote": 30_000},
)
PEOPLE = [
    {"way": i % 100, "sleep": None if i % 9 == 0 else i % 24, "drug": f"d{i % 5}", "home": i % 500,
     "remote": i % 3 == 0}
    for i in range(4_000)
]  # fmt: skip


def exactly(m, value, coins):
    """A report that must draw exactly the declared words."""
    drawn = ByteCoins(coins)
    report = m.report(value, drawn)
    drawn.finish()
    return report


# ---- the channel


@pytest.mark.parametrize("m", SMALL.values(), ids=SMALL)
def test_the_exact_channel_has_the_largest_ratio_of_the_branches(m):
    channel = m.channel()
    assert all(sum(row) == 1 for row in channel.matrix)
    assert channel.ratio == max(branch.mechanism.channel().ratio for branch in m.branches)
    assert channel.ratio == m.guarantee.ratio <= exp_below(m.epsilon)


@pytest.mark.parametrize("m", SMALL.values(), ids=SMALL)
def test_a_branch_has_its_weight_and_its_own_law_whatever_the_other_answers_are(m):
    channel, values = m.channel(), m.domain.sample()
    numbers = {name: place for place, name in enumerate(m.domain.parts)}
    for row, value in zip(channel.matrix, values, strict=True):
        law = dict(zip(channel.outputs, row, strict=True))
        for place, branch in enumerate(m.branches):
            inner, own = branch.mechanism, value[numbers[branch.of[0]]]
            alone = inner.channel()
            chances = alone.matrix[list(inner.domain.sample()).index(own)]
            share = Fraction(branch.weight, WEIGHTS)
            for output, chance in zip(alone.outputs, chances, strict=True):
                assert law.get((place, output), 0) == share * chance


def test_the_place_is_the_first_word_and_edges_are_weights_times_2_to_the_48():
    m = SMALL["twice"]
    edges = [30_000 << 48, 60_000 << 48]
    rest = bytes(WORD_BYTES * (m.coin_words - 1))
    words = (0, edges[0] - 1, edges[0], edges[1] - 1, edges[1], SCALE - 1)
    for word, place in zip(words, (0, 0, 1, 1, 2, 2), strict=True):
        coins = word.to_bytes(8, "little") + rest
        assert {exactly(m, value, coins)[0] for value in m.domain.sample()} == {place}
        assert m.asks(("a", "b"), ByteCoins(coins)) == m.branches[place].of


def test_every_branch_draws_as_many_words_and_burns_the_rest():
    assert LARGE.coin_words == 1 + 100
    words = [branch.mechanism.coin_words for branch in LARGE.branches]
    assert words == [100, 3, 3, 5, 1]
    stream = Keystream(bytes(32))
    value = LARGE.domain.encode([PEOPLE[7]]).tolist()[0]
    for place, needed in enumerate(words):
        first = sum(branch.weight for branch in LARGE.branches[:place]) << 48
        coins = first.to_bytes(8, "little") + stream.bytes(8 * 100)
        report = exactly(LARGE, value, coins)
        assert report[0] == place
        # Words that the branch does not need change nothing.
        cut = 8 * (1 + needed)
        assert exactly(LARGE, value, coins[:cut] + bytes(len(coins) - cut)) == report
        inner = LARGE.branches[place].mechanism
        assert report[1] == exactly(inner, value[place], coins[8:cut])


# ---- rows


def test_rows_are_place_report_and_zeros():
    m = LARGE
    assert m.dtype.itemsize == 1 + 16  # a row of 100 bits has 16 bytes
    assert m.layout.row((4, 1)).hex() == "0401" + 15 * "00"
    assert m.layout.row((1, 0x0122)).hex() == "012201" + 14 * "00"
    assert m.layout.refusal(m.layout.row((1, 0x0122))) is None
    many = dn.Joint.of_questions({f"q{i}": dn.BRR(2, 1.0) for i in range(257)})
    assert many.layout.row((256, 1)).hex() == "000101"
    assert dn.Joint.of_questions({f"q{i}": dn.BRR(2, 1.0) for i in range(256)}).dtype.itemsize == 2


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("05" + 16 * "00", "a branch of 0..4"),
        ("0402" + 15 * "00", "an index of 0..1"),
        ("0401" + 14 * "00" + "01", "padding that is zero"),
        ("040101" + 14 * "00", "padding that is zero"),
        ("010004" + 14 * "00", "an index of 0..1023"),
        ("00" + 15 * "00" + "80", "bits from 100 on that are zero"),
        ("0400", "17 bytes"),
        ("", "17 bytes"),
    ],
)
def test_impossible_rows_are_refused(row, words):
    data = bytes.fromhex(row)
    assert LARGE.layout.refusal(data) == words
    if len(data) == LARGE.dtype.itemsize:
        good = LARGE.privatize(PEOPLE[:50], np.random.default_rng(1)).data
        column = np.concatenate([good, np.frombuffer(data, dtype=np.uint8)[None]])
        tally = LARGE.tally()
        with pytest.raises(InvalidArgument, match="'reports' must be"):
            tally.add(dn.Reports(LARGE, column))
        assert tally == LARGE.tally()


# ---- many at once


def test_many_reports_draw_branches_by_their_weights():
    """Null hypothesis: places follow the weights and each branch has the law of its mechanism."""
    n = 200_000
    value = LARGE.domain.encode([PEOPLE[7]])
    data = LARGE.randomise(np.repeat(value, n), b"\3" * 32)
    counts = LARGE.by_branch(LARGE.count(data))
    expected = np.array([n * branch.weight / WEIGHTS for branch in LARGE.branches])
    found = np.array([size for size, _ in counts])
    assert found.sum() == n
    assert chi2.sf(np.sum((found - expected) ** 2 / expected), 4) > FALSE_ALARM
    size, (yes, no) = counts[4]
    p = float(LARGE.branches[4].mechanism.p)
    kept = no if PEOPLE[7]["remote"] is False else yes
    assert chi2.sf((kept - size * p) ** 2 / (size * p * (1 - p)), 1) > FALSE_ALARM


def test_counts_are_those_of_the_branches_one_after_the_other():
    reports = LARGE.privatize(PEOPLE, np.random.default_rng(2))
    tally = LARGE.tally(reports)
    assert tally.counts.size == LARGE.cells == sum(1 + b.mechanism.cells for b in LARGE.branches)
    made = list(reports)
    for place, (branch, own) in enumerate(zip(LARGE.branches, LARGE.tallies(tally), strict=True)):
        alone = dn.Reports.of(branch.mechanism, [inner for at, inner in made if at == place])
        assert own == branch.mechanism.tally(alone)
    halves = LARGE.tally(reports[:1234]).merge(LARGE.tally(reports[1234:]))
    assert halves == tally == dn.Tally.from_bytes(tally.to_bytes(), LARGE)


def test_impossible_counts_are_refused():
    tally = SMALL["two lists"].tally(
        SMALL["two lists"].privatize([{"a": "tea", "b": 1}] * 200, np.random.default_rng(3))
    )
    m, counts = tally.mechanism, tally.counts
    assert m.possible_counts(counts, 200)
    assert not m.possible_counts(counts, 201)
    for place, change in ((0, 1), (1, 1), (4, -1), (5, 200), (0, -1000)):
        other = counts.copy()
        other[place] += change
        assert not m.possible_counts(other, 200)
        moved = dn.Tally.of_counts(m, other, 200)
        with pytest.raises(ValueError, match="these counts are not those"):
            dn.Tally.from_bytes(moved.to_bytes())


def test_estimates_are_asked_of_a_branch():
    tally = LARGE.tally(LARGE.privatize(PEOPLE, np.random.default_rng(4)))
    with pytest.raises(InvalidArgument, match="asked about its parts"):
        tally.estimate()
    way, _, drug, _, remote = LARGE.tallies(tally)
    assert way.estimate("unbiased").n == way.n
    assert drug.estimate("unbiased", candidates=["d1", "d9"]).n == drug.n
    assert remote.estimate("projected").frequencies.sum() == pytest.approx(1)


# ---- what is refused


def test_columns_of_answers_are_complete():
    m = SMALL["two lists"]
    with pytest.raises(InvalidArgument, match="a: values"):
        m.privatize([{"a": "water", "b": 0}])
    with pytest.raises(InvalidArgument, match="has no answer"):
        m.privatize([{"a": "tea", "b": 0}, {"a": "tea"}])
    assert len(m.privatize({"a": ["tea", "none"], "b": [0, 1]})) == 2


@pytest.mark.parametrize("weights", [(65535, 0), (1, 2), (65536, 1), (32768.0, 32768), (-1, 65537)])
def test_weights_are_whole_and_sum_to_65536(weights):
    with pytest.raises(InvalidArgument, match="weights integers that sum to 65536"):
        dn.Joint.of_questions({"a": COFFEE, "b": COFFEE}, dict(zip("ab", weights, strict=True)))


def test_weights_belong_to_questions():
    weighted = {"b": 65535, "a": 1}
    m = dn.Joint.of_questions({"a": COFFEE, "b": dn.BRR(2, 1.0)}, weighted)
    assert [(b.of, b.weight) for b in m.branches] == [(("a",), 1), (("b",), 65535)]
    with pytest.raises(InvalidArgument, match="one for each of a, b"):
        dn.Joint.of_questions({"a": COFFEE, "b": COFFEE}, {"a": WEIGHTS})


@pytest.mark.parametrize("number", [1, 2, 3, 7, 256, 4096])
def test_equal_weights_are_as_equal_as_integers_can_be(number):
    weights = [b.weight for b in branches_of({f"q{i}": COFFEE for i in range(number)})]
    assert sum(weights) == WEIGHTS
    assert max(weights) - min(weights) <= 1


def several(**parts):
    return dn.Several({name: m.domain for name, m in parts.items()})


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: dn.Joint(several(a=COFFEE), 0.9, [Branch(WEIGHTS, ("a",), COFFEE)]),
         BrokenPromise, "epsilon = 0.9"),
        (lambda: dn.Joint(several(a=COFFEE), 1.0, [Branch(WEIGHTS, ("b",), COFFEE)]),
         InvalidArgument, "about one of a"),
        (lambda: dn.Joint(several(a=COFFEE, b=COFFEE), 1.0, [Branch(WEIGHTS, ("a",), COFFEE)]),
         InvalidArgument, "about every question"),
        (lambda: dn.Joint(several(a=COFFEE), 1.0, [Branch(WEIGHTS, ("a",), dn.GRR(4, 1.0))]),
         InvalidArgument, "about one of a"),
        (lambda: dn.Joint(several(a=COFFEE), 1.0, [Branch(WEIGHTS, ("a", "a"), COFFEE)]),
         InvalidArgument, "one question for each branch"),
        (lambda: dn.Joint(several(a=COFFEE), 1.0, []), InvalidArgument, "1 to 4096 branches"),
        (lambda: dn.Joint.of_questions({"a": dn.LGRR(3, 1.0)}),
         InvalidArgument, "keep no draw"),
        (lambda: dn.Joint.of_questions({"a": dn.Questionnaire({"b": COFFEE})}),
         Unsupported, "not for comparison"),
        (lambda: dn.Joint(COFFEE.domain, 1.0, [Branch(WEIGHTS, ("a",), COFFEE)]),
         InvalidArgument, "several questions for Joint"),
    ],
)  # fmt: skip
def test_wrong_branches_are_refused(make, kind, words):
    with pytest.raises(kind, match=words):
        make()


# ---- values


def test_a_joint_is_a_value():
    for m in (*SMALL.values(), LARGE):
        again = dn.from_spec(json.loads(json.dumps(m.to_spec())))
        assert again == m
        assert hash(again) == hash(m)
        assert again.to_spec() == m.to_spec()
    two, weighted = SMALL["two lists"], SMALL["weighted"]
    assert two != weighted
    other = dn.Joint.of_questions({"a": COFFEE, "b": dn.OUE(2, 0.5)}, {"a": 32767, "b": 32769})
    assert other != two
    assert str(two) == "Joint, 2 questions, epsilon = 1"


def test_the_sampled_questionnaire_is_a_joint_of_equal_weights():
    questions = {"a": COFFEE, "b": dn.OUE(2, 0.5)}
    asked = dn.Questionnaire(questions, "sampled")
    assert asked == SMALL["two lists"]
    assert asked.to_spec() == SMALL["two lists"].to_spec()
    tally = asked.tally(asked.privatize([{"a": "tea", "b": 0}] * 40))
    assert dn.Tally.from_bytes(tally.to_bytes(), SMALL["two lists"]).n == 40


def test_the_split_questionnaire_concatenates():
    questions = {"a": COFFEE, "b": dn.OUE(2, 0.5), "c": SLEEP}
    asked = dn.Questionnaire(questions)
    assert not asked.on_devices
    people = [{"a": "tea", "b": i % 2, "c": None if i % 3 else 7} for i in range(500)]
    reports = asked.privatize(people, np.random.default_rng(5))
    tally = asked.tally(reports)
    alone = [
        m.count(m.pack([report[place] for report in reports]))
        for place, m in enumerate(questions.values())
    ]
    assert tally.counts.tolist() == np.concatenate(alone).tolist()
    assert dn.Tally.from_bytes(tally.to_bytes(), asked) == tally
    assert asked.guarantee.epsilon == pytest.approx(2.2, rel=1e-9)
    for m, value in product([asked], asked.domain.sample()[:4]):
        coins = Keystream(bytes(32)).bytes(8 * m.coin_words)
        assert len(exactly(m, value, coins)) == 3
