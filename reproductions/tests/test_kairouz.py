"""Kairouz et al. 2016: the formulas are exact, the simulations follow the mechanisms."""

import json
import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom
from typer.testing import CliRunner

import deniable as dn
from deniable.cli import app
from deniable.estimation.frequencies.regression.normal import indicators
from deniable.mechanisms import ORAPPOR, ORR
from deniable_papers.cells import Notebook, finish
from deniable_papers.kairouz import closed, hashed, study, theory
from deniable_papers.kairouz.grids import FULL, NAMES, QUICK, Grid, distribution
from deniable_papers.results import Verdict, read

FAMILIES = {"k-RR": dn.GRR, "k-RAPPOR": dn.SUE}
#: Chance breaks a bound with at most this probability.
RARE = 1e-6


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_propositions_3_and_4_are_exact_in_l2(name, epsilon):
    """All pairs of reports of two respondents, with the probabilities of the code that ships."""
    m, p = FAMILIES[name](3, epsilon), np.array([0.5, 0.3, 0.2])
    channel = m.channel()
    law = p @ np.array(channel.matrix, dtype=float)
    columns = [m.count(m.pack([report])) for report in channel.outputs]
    mean = sum(
        law[a] * law[b] * np.square(m.unbiased(columns[a] + columns[b], 2) - p).sum()
        for a, b in product(range(len(law)), repeat=2)
    )
    assert mean == pytest.approx(theory.LOSSES[name]["l2"](p, 2, epsilon), rel=1e-9)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_propositions_3_and_4_are_the_limit_in_l1(name, epsilon):
    """Every count is binomial: its mean absolute deviation, summed, without chance."""
    m, n = FAMILIES[name](8, epsilon), 100_000
    p = distribution("geometric", 8, np.random.default_rng())
    gain, x = float(m.p - m.q), np.arange(n + 1)
    shares = float(m.q) + gain * p
    exact = sum(binom.pmf(x, n, share) @ np.abs(x / n - share) for share in shares) / gain
    assert theory.LOSSES[name]["l1"](p, n, epsilon) == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize("name", FAMILIES)
def test_l1_losses_by_simulation(name):
    """Null: the mean loss is that of the proposition, met to 1e-3 at this n.

    Another report of one respondent moves the loss by at most w / (n (p - q)), with w = 2 for k-RR
    (two counts) and k for k-RAPPOR: McDiarmid's inequality.
    """
    k, n, epsilon, runs = 4, 20_000, 2.0, 10_000
    m, rng = FAMILIES[name](k, epsilon), np.random.default_rng(5)
    p = distribution("geometric", k, rng)
    losses = [
        np.abs(m.unbiased(m.simulate(rng.multinomial(n, p), rng), n) - p).sum() for _ in range(runs)
    ]
    width = (2 if name == "k-RR" else k) / float(m.p - m.q)
    wanted = theory.LOSSES[name]["l1"](p, n, epsilon)
    allowed = width * math.sqrt(math.log(2 / RARE) / (2 * n * runs)) + 1e-3 * wanted
    assert abs(np.mean(losses) - wanted) <= allowed


@pytest.mark.parametrize("name", FAMILIES)
def test_l2_losses_by_simulation(name):
    """Null: the mean loss of collections with one respondent is that of the proposition.

    It adds up over values, so that the counts of all collections together tell it. A loss is at
    most sum_v max(x_v - p_v)^2, where x_v has two values: Hoeffding's inequality.
    """
    k, epsilon, runs = 6, 1.5, 4_000_000
    m, rng = FAMILIES[name](k, epsilon), np.random.default_rng(6)
    p = distribution("geometric", k, rng)
    shares = m.simulate(rng.multinomial(runs, p), rng) / runs
    p_star, q_star = float(m.p), float(m.q)
    yes, no = (np.square((bit - q_star) / (p_star - q_star) - p) for bit in (1, 0))
    found = float(shares @ yes + (1 - shares) @ no)
    allowed = float(np.maximum(yes, no).sum()) * math.sqrt(math.log(2 / RARE) / (2 * runs))
    assert abs(found - theory.LOSSES[name]["l2"](p, 1, epsilon)) <= allowed


def test_both_losses_need_the_same_factor_of_respondents():
    for name, k, epsilon in product(FAMILIES, (2, 10, 1000), (0.1, 1.0, 5.0)):
        l1, l2 = (theory.sample_factor(name, loss, k, epsilon) for loss in ("l1", "l2"))
        assert l1 == pytest.approx(l2, rel=1e-9)


@pytest.mark.parametrize(("k", "epsilon"), [(10, 1.06), (50, 2.51), (100, 3.02), (1000, 4.60)])
def test_proposition_5_is_loose(k, epsilon):
    assert theory.crossing(k) == pytest.approx(epsilon, abs=0.005)
    assert theory.crossing(k, "l1") == pytest.approx(theory.crossing(k))
    assert theory.crossing(k) < math.log(k / 2)
    assert theory.crossing(4) is None


@pytest.mark.parametrize(("k", "epsilon"), list(product((3, 16, 100), (0.5, 1.0, 3.0))))
def test_no_mechanism_is_better_than_the_bound(k, epsilon):
    """The best subset selection reaches it; Proposition 1's rates are of its order."""
    least = theory.least_l2(k, 1, epsilon)
    sampling = theory.sample_l2(k, 1)
    for name in ("grr", "sue", "oue", "ss", "hr", "olh"):
        m = dn.mechanism(name, k, epsilon)
        assert float(m.variance(1).sum()) + sampling >= least * (1 - 1e-9)
    reached = min(
        float(dn.SS(k, epsilon, omega=d).variance(1).sum()) + sampling for d in range(1, k)
    )
    assert reached == pytest.approx(least, rel=1e-9)
    assert theory.least_l1(k, 1, epsilon) <= theory.uniform_loss("k-RR", "l1", k, 1, epsilon) * (
        1 + 1e-12
    )


def test_rates_of_proposition_1():
    assert theory.rate_l2(100, 10**6, 1.0) == pytest.approx(1e-4)
    assert theory.rate_l2(10**6, 10**6, 1.0) == pytest.approx(1e-3)
    assert theory.rate_l1(100, 10**6, 1.0) == pytest.approx(0.1)
    assert theory.rate_l2(3, 1, 0.1) == theory.rate_l1(3, 1, 0.1) == 1.0
    for k, epsilon in product((10, 100), (0.2, 1.0)):
        n = 10**7
        ratio = theory.least_l2(k, n, epsilon) / theory.rate_l2(k, n, epsilon)
        assert 0.5 < ratio < 5


def test_distributions():
    rng = np.random.default_rng(1)
    for name in NAMES:
        p = distribution(name, 50, rng)
        assert p.shape == (50,)
        assert p.sum() == pytest.approx(1)
        assert p.min() >= 0
    assert distribution("geometric", 1000, rng) @ np.arange(1000) == pytest.approx(193.2, abs=0.5)
    assert distribution("binomial 0.3", 11, rng) @ np.arange(11) == pytest.approx(3.0)
    with pytest.raises(ValueError, match="one of geometric"):
        distribution("cauchy", 3, rng)


def test_a_cell_knows_the_errors_of_differences():
    settings = {"distribution": "geometric", "k": 8, "n": 50, "epsilon": 1.0, "runs": 40}
    values = closed.simulate_decoders(settings, np.random.default_rng(3))
    runs = np.array(list(closed._runs(settings, np.random.default_rng(3))))
    losses = closed.Losses(values)
    one, other = closed.DECODERS[2], closed.DECODERS[1]
    value, error = losses.difference(one, other)
    paired = runs[:, 2] - runs[:, 1]
    assert value == pytest.approx(paired.mean(), rel=1e-5)
    assert error == pytest.approx(paired.std(ddof=1) / 40**0.5, rel=1e-3)
    best = min(closed.DECODERS[3:], key=losses.means.__getitem__)
    assert losses.best("k-RAPPOR") == best
    assert losses.best("k-RR", "k-RR ml") in closed.DECODERS[1:3]


@pytest.mark.parametrize(
    "m",
    [
        ORR(20, 1.0, cohorts=8, width=6, seed=3),
        ORR(20, 1.0, cohorts=8, width=6, seed=3, permuted=0),
        ORAPPOR(20, 1.0, cohorts=8, width=16, hashes=3, seed=3),
    ],
    ids=lambda m: f"{m.name}-{m.hashes}-{m.permuted}",
)
def test_expected_counts_decode_to_the_truth(m):
    """Held cells are those of `cells_of`; equation 18 inverts their expectation."""
    rng = np.random.default_rng(4)
    columns = indicators(m, np.arange(m.cohorts), np.arange(20))
    people = rng.integers(0, 9, (m.cohorts, 20))
    held = np.zeros((m.cohorts, m.width), dtype=np.int64)
    for j, v in product(range(m.cohorts), range(20)):
        held[j, list(set(m.cells_of(v, j)))] += people[j, v]
    assert np.array_equal(hashed.held_cells(columns, people, m.width), held)
    p = distribution("geometric", 20, rng)
    n, shares = 1000, (columns @ p).reshape(m.cohorts, m.width)
    expected = n / m.cohorts * (float(m.inner.q) + float(m.inner.p - m.inner.q) * shares)
    (found,) = hashed.decode([m], columns, [expected], n)
    assert found == pytest.approx(p, abs=1e-9)


def test_bits_of_cohorts_are_coins():
    """Null: held cells have p and others q; exact binomial tails over all cohorts."""
    m, rng = ORAPPOR(9, 1.0, cohorts=500, width=2, hashes=1), np.random.default_rng(8)
    sizes = np.full(500, 40)
    held = np.stack([sizes, np.zeros(500, dtype=np.int64)], axis=1)
    counts = hashed.cell_counts(m, held, sizes, rng).sum(axis=0)
    for count, share in zip(counts, (float(m.inner.p), float(m.inner.q)), strict=True):
        tail = min(binom.cdf(count, 20_000, share), binom.sf(count - 1, 20_000, share))
        assert tail > RARE / 4
    both = hashed.cell_counts(ORR(9, 1.0, cohorts=500, width=2), held, sizes, rng)
    assert np.array_equal(both.sum(axis=1), sizes)


TINY = Grid(
    runs=5,
    sizes=(2, 8, 64),
    epsilons=(1.0, 4.0),
    other_runs=3,
    other_n=(50,),
    proposition_runs=20,
    second_look=2,
    samples=3,
    open_epsilons=(2.0, 5.0),
    widths=(4, 32),
    cohorts=(1, 2),
    hashes=(1, 2),
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A finished tiny study."""
    notebook = Notebook(tmp_path_factory.mktemp("kairouz") / "cells.jsonl", 3)
    one = study.Kairouz(False, grid=TINY)
    for _, cells in one.stages(notebook):
        list(finish(cells, one.work, notebook))
    return one, notebook


def test_a_study_from_cells_to_charts(tiny):
    one, notebook = tiny
    results = one.results(notebook)
    places = {result.where for result in results}
    for where in ("Figure 1", "Figure 2", "Figure 3", "Proposition 3", "Proposition 4"):
        assert where in places
    norm = next(r for r in results if r.where.startswith("section 4.1"))
    assert norm.ours > 1.2
    assert norm.verdict is Verdict.differs
    exact = [r for r in results if r.where in ("Proposition 5", "equations 9 and 13")]
    assert all(result.verdict is Verdict.reproduced for result in exact)
    for chart in one.charts(results).values():
        assert len(json.dumps(chart.to_dict())) > 1000


def test_designs_are_chosen_from_the_search(tiny):
    one, notebook = tiny
    chosen = one.chosen(notebook)
    assert len(chosen) == 2 * 2 * 2
    for (alphabet, mechanism, epsilon), cell in chosen.items():
        assert (cell["alphabet"], cell["mechanism"]) == (alphabet, mechanism)
        assert cell["epsilons"] == [epsilon]
        listed = one.shortlist(notebook)[alphabet, mechanism, epsilon]
        assert {**cell, "samples": TINY.second_look} in listed
        assert cell["samples"] == TINY.samples


def test_the_command_writes_and_resumes(tiny, tmp_path, monkeypatch):
    """All cells are finished but the last, which was cut off."""
    _, notebook = tiny
    monkeypatch.setattr(study.Kairouz, "grids", (TINY, TINY))
    whole, cells = notebook.path.read_bytes(), tmp_path / "cells.jsonl"
    cells.write_bytes(whole[:-5])
    command = ["reproduce", "kairouz", "--processes", "1", "--no-charts", "--seed", "3"]
    done = CliRunner().invoke(app, [*command, "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "what differs" in done.stdout
    assert "a slip: the sum is 1" in done.stdout
    last = whole.splitlines()[-1]
    assert cells.read_bytes() == whole[:-5] + b"\n" + last + b"\n"
    results = study.Kairouz(False).results(notebook)
    assert [one.where for one in read(tmp_path / "kairouz.json")] == [r.where for r in results]


def test_the_papers_settings_are_in_the_full_grid():
    assert FULL.runs == 10_000
    assert FULL.samples == 50
    assert FULL.widths == tuple(2**j for j in range(1, 13))
    assert FULL.cohorts == tuple(2**j for j in range(11))
    assert FULL.hashes == (1, 2, 4, 8, 16)
    for cell in (*FULL.search(), *QUICK.search()):
        assert (cell["n"], cell["S"]) == (10**6, 256)
    assert {cell["n"] for cell in QUICK.figures()} == {100, 30_000}
