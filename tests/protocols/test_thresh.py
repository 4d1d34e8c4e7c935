"""THRESH: the promise by enumeration, the decision by exact tails, many devices against one."""

import dataclasses
import itertools
import json
import math
import subprocess
import sys
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from deniable.errors import InvalidArgument
from deniable.privacy import enumerate_reports
from deniable.protocols.thresh import (
    SimulatedDevices,
    Thresh,
    ThreshDevice,
    ThreshServer,
    bernoulli_counts,
    detection,
    published_gaps,
    simulate,
    users_needed,
    yes_share,
)
from deniable.protocols.thresh.plan import WASTED, chance_of_gap, level_of, odds
from deniable.randomness import SCALE, ByteCoins
from places import ROOT

MANY = 1 << 30


def transcript(device, counts, calls, coins):
    """All that a device sends when the server calls updates in these epochs."""
    sent = []
    for epoch, (count, call) in enumerate(zip(counts, calls, strict=True), start=1):
        vote, device = device.vote(epoch, count, coins)
        sent.append(vote)
        for _ in range(call):
            report, device = device.estimate(count, coins)
            sent.append(report)
    return tuple(sent)


def laws(device, calls):
    """The exact law of the transcript under every stream of counts."""
    plan = device.plan
    for counts in itertools.product(range(plan.samples + 1), repeat=len(calls)):
        yield enumerate_reports(
            lambda _, coins, counts=counts: transcript(device, counts, calls, coins), 0
        )


def worst_ratios(device, epochs, calls_an_epoch=1):
    """For each number of calls: the largest likelihood ratio of a transcript, over all streams.

    A server that decides as it goes adds nothing: a transcript names the calls that led to it, and
    its probability is that under the same calls made in advance.
    """
    worst = {}
    for calls in itertools.product(range(calls_an_epoch + 1), repeat=epochs):
        of_streams = list(laws(device, calls))
        for sent in of_streams[0]:
            chances = [law.get(sent, Fraction(0)) for law in of_streams]
            ratio = max(chances) / min(chances)
            worst[sum(calls)] = max(worst.get(sum(calls), ratio), ratio)
    return worst


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epochs", "samples", "updates", "votes", "gaps"),
    [(4, 1, 1, 1, (1,)), (4, 1, 2, 1, (1,)), (3, 2, 1, 1, (1, 2)), (3, 2, 3, 2, (2,))],
)
def test_no_transcript_breaks_the_promise(epochs, samples, updates, votes, gaps):
    """The device that ships, all transcripts, all pairs of streams, all calls of the server.

    The promise is reached exactly wherever there are epochs enough for two streams to say yes
    ``votes`` times each, apart from each other, after the first collection.
    """
    plan = Thresh(1.0, epochs, samples, MANY, updates, votes=votes, gaps=gaps)
    worst = worst_ratios(ThreshDevice(plan), epochs)
    assert 1.0 - 1e-12 < plan.guarantee.epsilon <= 1.0
    for called, ratio in worst.items():
        assert ratio <= plan.spent(epochs, called).ratio <= plan.guarantee.ratio
    if epochs > 2 * votes:
        assert max(worst.values()) == plan.guarantee.ratio


@pytest.mark.slow
def test_a_server_that_calls_twice_learns_no_more():
    plan = Thresh(1.0, 3, 1, MANY, 2, votes=1, gaps=(1,))
    worst = worst_ratios(ThreshDevice(plan), 3, calls_an_epoch=2)
    assert max(worst.values()) == plan.guarantee.ratio


@pytest.mark.slow
def test_enumeration_catches_a_device_that_votes_too_often():
    class Eager(ThreshDevice):
        def vote(self, epoch, count, coins):
            vote, device = super().vote(epoch, count, coins)
            return vote, dataclasses.replace(device, votes=0)

    plan = Thresh(1.0, 4, 1, MANY, 1, votes=1, gaps=(1,))
    assert max(worst_ratios(Eager(plan), 4).values()) > plan.guarantee.ratio


@pytest.mark.parametrize("count", [0, 3, 10])
@pytest.mark.parametrize("reference", [None, 0, 10])
def test_every_epoch_draws_the_same_number_of_words(count, reference):
    device = ThreshDevice(Thresh(1.0, 8, 10, MANY, 1), reference)
    for words, send in (
        (1, lambda c: device.vote(1, count, c)),
        (2, lambda c: device.estimate(count, c)),
    ):
        coins = ByteCoins(bytes(8 * words))
        send(coins)
        coins.finish()


def test_limits_are_kept_on_the_device():
    plan = Thresh(1.0, 8, 1, MANY, 1, votes=2, gaps=(1,))
    yes, no = ByteCoins(bytes(800)), 0
    _, device = ThreshDevice(plan).estimate(no, yes)
    sent = []
    for epoch in range(2, 6):
        vote, device = device.vote(epoch, 1, yes)
        sent.append(vote)
    assert sent == [1, 1, 0, 0]
    assert device.estimate(1, yes)[0] == 0, "the second update gets a coin for 0"


def test_the_ruler_of_levels():
    assert [level_of(t, 3) for t in range(1, 9)] == [2, 1, 2, 0, 2, 1, 2, 0]
    assert {level_of(t, 1) for t in range(1, 9)} == {0}


@pytest.mark.parametrize("levels", [1, 3, 6])
def test_gaps_waste_no_more_than_planned(levels):
    plan = Thresh(1.0, 50, 40, MANY, 3, levels=levels)
    assert sum(plan.chance(t) for t in range(1, 51)) <= WASTED
    assert list(plan.gaps) == sorted(plan.gaps)
    tighter = dataclasses.replace(plan, gaps=tuple(gap - 1 for gap in plan.gaps))
    assert sum(tighter.chance(t) for t in range(1, 51)) > WASTED


@pytest.mark.parametrize("gap", [1, 2, 5, 9])
def test_chance_is_largest_at_one_half(gap):
    """P(|X - Y| >= gap) by summing both binomial laws, for many means."""
    x = np.arange(10)
    far = np.abs(x[:, None] - x[None, :]) >= gap
    exact = [binom.pmf(x, 9, m) @ far @ binom.pmf(x, 9, m) for m in np.linspace(0, 1, 41)]
    assert max(exact) == pytest.approx(chance_of_gap(gap, 9), rel=1e-12)
    assert exact[20] == max(exact)


def test_the_quorum_is_the_least_that_chance_respects():
    plan = Thresh(2.0, 64, 50, 100_000, 3, delta=0.01)
    k, rate = plan.quorum(7, 12_345), plan.yes_rate(plan.chance(7))
    tail = 0.01 / (64 * 63 / 2)
    assert binom.sf(k, 12_345, rate) <= tail < binom.sf(k - 1, 12_345, rate)


def test_a_published_plan_can_be_compared():
    gaps = published_gaps(256, 100, 100_000, 0.05)
    assert len(gaps) == 9
    assert gaps[0] == math.floor(200 * math.sqrt(math.log(12 * 1e5 * 256 / 0.05) / 200)) + 1
    assert gaps[1] > 100, "of 100 bits, not even all can move a count beyond the second level"
    assert Thresh(2.0, 256, 100, 100_000, 4, gaps=gaps).chance(256) < 1e-9


def test_simulated_devices_spend_what_devices_spend():
    """Which votes are yes is no matter of chance: equal, person by person."""
    rng = np.random.default_rng(3)
    plan = Thresh(1.0, 12, 6, MANY, 2, votes=2, gaps=(2, 4))
    columns = rng.integers(0, 7, size=(12, 60))
    simulated, devices = SimulatedDevices(plan, 60, rng), [ThreshDevice(plan)] * 60
    for epoch, column in enumerate(columns, start=1):
        coins = ByteCoins(rng.bytes(8 * 3 * 60))
        simulated.vote(epoch, column)
        devices = [d.vote(epoch, int(c), coins)[1] for d, c in zip(devices, column, strict=True)]
        if epoch in (1, 6, 9):
            simulated.estimate(column)
            devices = [d.estimate(int(c), coins)[1] for d, c in zip(devices, column, strict=True)]
    assert simulated.votes.tolist() == [device.votes for device in devices]
    assert {1, 2} <= set(simulated.votes.tolist())


@pytest.mark.slow
def test_simulated_devices_send_what_devices_send():
    """Null: transcripts of one simulated device have the law that the device's enumeration gives.

    Chi-square over all 64 transcripts; the bound is broken with probability 1e-6.
    """
    plan = Thresh(4.0, 4, 2, MANY, 2, votes=1, gaps=(1,))
    counts, calls, runs = (0, 2, 1, 0), (1, 0, 1, 0), 20_000
    law = enumerate_reports(
        lambda _, coins: transcript(ThreshDevice(plan), counts, calls, coins), 0
    )
    rng = np.random.default_rng(11)

    def run():
        simulated = SimulatedDevices(plan, 1, rng)
        for epoch, (count, call) in enumerate(zip(counts, calls, strict=True), start=1):
            yield simulated.vote(epoch, np.array([count]))
            if call:
                yield simulated.estimate(np.array([count]))

    seen = Counter(tuple(run()) for _ in range(runs))
    assert set(seen) <= set(law)
    expected = [runs * float(law[sent]) for sent in law]
    assert chisquare([seen[sent] for sent in law], expected).pvalue > 1e-6


@pytest.mark.slow
def test_without_a_change_updates_are_rarer_than_delta():
    """Null: a run without change has a second update with probability at most delta = 0.2.

    The people's means differ, and are the worst ones, near 1/2. More than that many of 60 runs has
    a probability below 1e-6.
    """
    rng = np.random.default_rng(5)
    plan = Thresh(8.0, 24, 20, 2000, 3, delta=0.2)
    means = rng.uniform(0.4, 0.6, 2000)
    false = 0
    for _ in range(60):
        counts = (rng.binomial(20, means).astype(np.int32) for _ in range(24))
        false += simulate(plan, counts, rng)[0].updates > 1
    assert binom.sf(false - 1, 60, 0.2) > 1e-6


@pytest.mark.slow
def test_detection_is_what_happens():
    """Null: a change is noticed at once with the probability that `detection` gives."""
    rng = np.random.default_rng(6)
    plan = Thresh(8.0, 16, 30, 3000, 3)
    power = detection(plan, yes_share(plan, 0.3, 0.46))
    assert 0.2 < power < 0.8
    runs = 300
    heard = 0
    for _ in range(runs):
        server, _ = simulate(plan, bernoulli_counts([0.3, 0.46], 30, 3000, rng), rng)
        heard += server.updates == 2
    assert min(binom.cdf(heard, runs, power), binom.sf(heard - 1, runs, power)) > 1e-6


def test_users_needed_are_just_enough():
    plan = Thresh(2.0, 64, 50, 100_000, 3)
    least = users_needed(plan, 0.5)
    assert detection(plan, 0.5, n=least) >= 0.95
    assert detection(plan, 0.5, n=round(0.98 * least)) < 0.95
    with pytest.raises(InvalidArgument, match="above that of chance"):
        users_needed(plan, 0.0)


def test_a_change_is_followed():
    rng = np.random.default_rng(8)
    plan = Thresh(4.0, 12, 60, 50_000, 3)
    means = [0.2] * 5 + [0.6] * 7
    server, simulated = simulate(plan, bernoulli_counts(means, 60, plan.n, rng), rng)
    assert [r.epoch for r in server.history] == list(range(1, 13))
    assert [r.since for r in server.history] == [1] * 5 + [6] * 7
    assert [r.updated for r in server.history] == [t in (1, 6) for t in range(1, 13)]
    last = server.history[-1]
    assert abs(last.mean - 0.6) < 6 * last.standard_error
    assert server.spent == plan.spent(12, 2)
    assert server.spent.ratio == odds(plan.vote_keep) ** 6 * odds(plan.estimate_keep) ** 2
    assert np.median(simulated.votes) == 1


def test_intervals_hold_the_mean_of_different_people():
    """Null: the interval misses with probability at most 0.1; the people are all zeros or ones."""
    rng = np.random.default_rng(9)
    plan = Thresh(8.0, 16, 10, 1000, 2)
    column = np.repeat(np.array([0, 10], dtype=np.int32), [700, 300])
    missed = 0
    for _ in range(400):
        server, _ = simulate(plan, [column], rng, confidence=0.9)
        low, high = server.history[0].interval
        missed += not low <= 0.3 <= high
    assert binom.sf(missed - 1, 400, 0.1) > 1e-6


def test_the_server_keeps_the_order_and_stops():
    plan = Thresh(4.0, 3, 20, 50_000, 1)
    server = ThreshServer(plan)
    with pytest.raises(InvalidArgument, match="after a vote"):
        server.estimate(1, 2)
    assert server.vote(0, 1000)
    with pytest.raises(InvalidArgument, match="after the estimate of epoch 1"):
        server.vote(0, 1000)
    first = server.estimate(500, 1000)
    assert first.mean == pytest.approx(0.5)
    assert not server.vote(1000, 1000), "the only update is used up"
    assert not server.vote(0, 1000)
    assert server.history[2] == dataclasses.replace(first, epoch=3)
    with pytest.raises(InvalidArgument, match="epoch"):
        server.vote(0, 1000)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epochs": 1}, "epochs"),
        ({"samples": 3}, "samples"),
        ({"n": 100}, "n"),
        ({"updates": 0}, "updates"),
        ({"updates": 65}, "updates"),
        ({"votes": -1}, "votes"),
        ({"levels": 8}, "levels"),
        ({"delta": 0.0}, "delta"),
        ({"vote_share": 1}, "vote_share"),
        ({"gaps": (3, 2)}, "gaps"),
        ({"gaps": (0,)}, "gaps"),
        ({"gaps": (1.5,)}, "gaps"),
    ],
)
def test_bad_plans_are_refused_by_name(change, name):
    good = {"epsilon": 2.0, "epochs": 64, "samples": 50, "n": 100_000, "updates": 3}
    assert Thresh(**good).votes == 3
    with pytest.raises(InvalidArgument) as refusal:
        Thresh(**(good | change))
    assert refusal.value.name == name


def test_refusals_name_what_is_feasible():
    with pytest.raises(InvalidArgument) as refusal:
        Thresh(2.0, 64, 50, 100, 3)
    least = int(refusal.value.allowed.split()[2].replace(",", ""))
    assert Thresh(2.0, 64, 50, least, 3).n == least
    with pytest.raises(InvalidArgument) as refusal:
        Thresh(2.0, 64, 1, 100_000, 3)
    least = int(refusal.value.allowed.split()[2])
    assert Thresh(2.0, 64, least, 100_000, 3).samples == least


def test_wrong_columns_are_refused():
    plan = Thresh(4.0, 3, 20, 50_000, 1)
    rng = np.random.default_rng(1)
    with pytest.raises(InvalidArgument, match="columns of 50000"):
        simulate(plan, [np.zeros(3, dtype=np.int32)], rng)
    with pytest.raises(InvalidArgument, match="rng"):
        simulate(plan, [], 7)
    assert SCALE // 2 < plan.vote_keep < plan.estimate_keep < SCALE


@pytest.mark.slow
def test_the_example_runs_as_its_documentation_says(tmp_path):
    """Small, and without its study of false updates, which has its own test here."""
    script = ROOT / "examples" / "thresh.py"
    size = ("--people", 20_000, "--epochs", 36, "--runs", 1, "--quiet-runs", 2)
    command = [sys.executable, script, "--out", *map(str, (tmp_path, *size))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    tables = json.loads((tmp_path / "thresh.json").read_text())
    assert [row["changes"] for row in tables["By changes"]] == [0, 1, 3, 8]
    assert tables["By changes"][0]["updates"] == 1
    assert (tmp_path / "thresh.png").read_bytes().startswith(b"\x89PNG")
