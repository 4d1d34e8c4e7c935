"""Numbers: what their estimates and tests achieve, beside what was specified.

    python benchmarks/numeric.py --out out/numbers --only mean_tests

Every study is a function that yields rows. Writes a JSON file of each; --quick makes a tenth of the
runs.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

import deniable as dn
from deniable.arrays import Floats
from deniable.estimation import DISTRIBUTIONS, MEANS
from deniable.estimation.numbers.density import ems, penalised
from deniable.mechanisms.numbers.bins import Binning
from deniable.views.formats import Format
from deniable.views.tables import show

#: Numbers of 0..1 with the mean .35 and the standard deviation .2: a Beta law.
ALPHA, BETA = 1.640625, 3.046875
MEAN, SD = 0.35, 0.2
EPSILONS = (0.5, 1.0, 2.0, 4.0)
#: Respondents of one sample and of two, with the runs of each.
ONE = {100: 4_000, 1_000: 4_000, 10_000: 1_500}
TWO = {(200, 300): 2_000, (2_000, 1_000): 2_000, (10_000, 5_000): 800}
#: Public data that are beside the project, or not.
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
#: Rounding of sums of shares.
TINY = 1e-9
#: Reports that are made at once.
TOGETHER = 10_000_000


def mean_tests(runs: float, rng: Generator) -> Iterator[dict[str, Any]]:
    """Size and power of `dn.mean_test` at 5 %, against the predicted .05 and .80."""
    for epsilon in EPSILONS:
        m = dn.DRR(dn.Number(0, 1), epsilon=epsilon)
        for n, times in ONE.items():
            times = round(times * runs)
            # The difference that n respondents find with power .80, from the variance of one.
            apart = 2.8016 * math.sqrt(_variance(m, n))
            found = [
                (dn.mean_test(tally, MEAN).p_value, dn.mean_test(tally, MEAN + apart).p_value)
                for tally in _tallies(m, n, times, rng)
            ]
            size, power = (np.array(found) <= 0.05).mean(axis=0)
            yield {"epsilon": epsilon, "n": n, "runs": times, "size": size, "power": power}
        for sizes, times in TWO.items():
            times = round(times * runs)
            pairs = zip(*(_tallies(m, n, times, rng) for n in sizes), strict=True)
            size = np.mean([dn.mean_test(*pair).p_value <= 0.05 for pair in pairs])
            many = " and ".join(map(str, sizes))
            yield {"epsilon": epsilon, "n": many, "runs": times, "size": size, "power": None}


def sample_sizes(runs: float, rng: Generator) -> Iterator[dict[str, Any]]:
    """Respondents of each of two samples for a difference of 5 % of the range, power .8."""
    everyone = 2 * (2.8016 * SD / 0.05) ** 2
    for epsilon in EPSILONS:
        mechanisms = {
            "drr": dn.DRR(dn.Number(0, 1), epsilon=epsilon),
            "one bit, no offset": dn.DRR(dn.Number(0, 1), epsilon=epsilon, ell=1, shown=0),
        }
        found = {name: _needed(m) for name, m in mechanisms.items()}
        yield {"epsilon": epsilon, **found, "no privacy": math.ceil(everyone)}


def _needed(m: dn.DRR) -> int:
    return dn.sample_size(m, 0.05, samples=2, mean=MEAN, sd=SD)


def _variance(m: dn.DRR, n: int) -> float:
    """That of the mean of n respondents who are a sample of everyone."""
    from scipy.stats import beta

    x = beta.ppf((np.arange(10_000) + 0.5) / 10_000, ALPHA, BETA)
    return m.variance_for(x, n) + float(x.var()) / n


def _tallies(m: dn.DRR, n: int, runs: int, rng: Generator) -> Iterator[dn.Tally]:
    """Those of as many collections of n respondents, whose reports are made many at once."""
    for first in range(0, runs, TOGETHER // n):
        some = min(TOGETHER // n, runs - first)
        reports = m.privatize(rng.beta(ALPHA, BETA, some * n), rng).data
        for one in np.split(reports, some):
            yield dn.Tally.of_counts(m, m.count(one), n)


#: What is published for means, and a hybrid that is computed here, from formulas.
PUBLISHED = (dn.HM, dn.PM, dn.PMSub, dn.Window)
HYBRID = "pmsub with three outputs"
#: So many respondents that sorting their reports by offset costs nothing.
MANY = 10**9


def best_published(runs: float, rng: Generator) -> Iterator[dict[str, Any]]:
    """n Var of means of -1..1, fixed population: exact, for the worst numbers and for some sets."""
    even = np.linspace(0, 1, 10_001)
    for epsilon in (0.25, *EPSILONS[:3], 3.0, 4.0, 5.0, 6.0):
        drr = dn.DRR(dn.Number(0, 1), epsilon)
        others = {family.name: family(dn.Number(0, 1), epsilon) for family in PUBLISHED}
        worst = {name: 4 * m.worst_variance(1) for name, m in others.items()}
        worst[HYBRID] = _three_outputs(epsilon)
        ours = 4 * MANY * drr.worst_variance(MANY)
        yield _beside("worst case", epsilon, drr, worst, ours)
        for name, x in {"even": even, **_sets()}.items():
            found = {other: 4 * MANY * m.variance_for(x, MANY) for other, m in others.items()}
            yield _beside(name, epsilon, drr, found, 4 * MANY * drr.variance_for(x, MANY))


def _beside(
    what: str, epsilon: float, drr: dn.DRR, others: dict[str, float], ours: float
) -> dict[str, Any]:
    """A row with DRR and the best of the others."""
    least = min(others, key=others.__getitem__)
    return {
        "numbers": what, "epsilon": epsilon, "ell": drr.ell, "drr": ours, "best": others[least],
        "by": least, "drr / best": ours / others[least],
    }  # fmt: skip


def _three_outputs(epsilon: float) -> float:
    """The least n Var of the worst v, of PM-SUB with some probability, else three outputs.

    Zhao et al. (2020): -C, 0 or C, of which 0 has the probability a - (a - a / e) |v|; C follows
    from the ratio of the others. a and the probability are chosen together.
    """
    e, v = math.exp(epsilon), np.linspace(0, 1, 401)
    window = 4 * dn.PMSub(dn.Number(0, 1), epsilon).noise((v + 1) / 2)
    shares, best = np.linspace(0, 1, 401)[:, None], math.inf
    for a in np.linspace(0, 1, 401):
        reach = (e + 1) / ((e - 1) * (1 - a / e))
        outputs = reach**2 * (1 - a + (a - a / e) * v) - v**2
        best = min(best, float((shares * window + (1 - shares) * outputs).max(axis=1).min()))
    return best


def _sets() -> dict[str, Floats]:
    """Ages and hours a week of Adult and incomes of the ACS, as shares of a range: if they are."""
    import pyarrow.parquet as pq

    if not DATA.exists():
        print(f"left out: real data, which {DATA} would have")
        return {}
    adult = pq.read_table(DATA / "adult_train.parquet", columns=["age", "hours_per_week"])
    acs = pq.read_table(DATA / "acs2013_2017_income_100k.parquet", columns=["pincp"])
    columns = {
        "age / 100": adult["age"].to_numpy() / 100,
        "hours / 100": adult["hours_per_week"].to_numpy() / 100,
        "income / 250,000": acs["pincp"].to_numpy() / 250_000,
    }
    return {name: np.clip(x.astype(np.float64), 0, 1) for name, x in columns.items()}


def ages(runs: float, rng: Generator) -> Iterator[dict[str, Any]]:
    """Errors and intervals of 1,000 means of ages / 100 of 10,000 respondents, by DRR."""
    found, n, times = _sets(), 10_000, round(1_000 * runs)
    if not found:
        return
    x = rng.choice(found["age / 100"], n, replace=False)
    for epsilon in (1.0, 2.0, 4.0):
        m = dn.DRR(dn.Number(0, 1), epsilon)
        errors, hits = [], 0
        for _ in range(times):
            e = MEANS.estimate([m.tally(m.privatize(x, rng))])
            errors.append(e.mean - x.mean())
            hits += e.mean_interval[0] <= x.mean() <= e.mean_interval[1]
        exact, squares = m.variance_for(x, n), np.square(errors)
        away = (squares.mean() - exact) / (squares.std(ddof=1) / math.sqrt(times))
        yield {
            "epsilon": epsilon, "ell": m.ell, "n": n, "runs": times, "n Var": 4 * n * exact,
            "without strata": 4 * MANY * m.variance_for(found["age / 100"], MANY),
            "measured": 4 * n * squares.mean(), "s.e. away": away, "covered": hits / times,
        }  # fmt: skip


def speed(runs: float, rng: Generator) -> Iterator[dict[str, Any]]:
    """Time to make and count a million reports, as a multiple of that of GRR with 16 answers."""
    n = 1_000_000
    answers, x = rng.integers(0, 16, n).astype(np.uint32), rng.random(n)
    grr = _seconds(dn.GRR(16, 1.0), answers)
    for name in ("drr", "duchi", "pm", "hm", "laplace"):
        m = dn.mechanism(name, dn.Number(0, 1), 1.0)
        encoded = m.domain.encode(x)
        yield {
            "mechanism": name, "from integers": _seconds(m, encoded) / grr,
            "from doubles": _seconds(m, x, encode=True) / grr, "GRR, ns a report": 1e9 * grr / n,
        }  # fmt: skip


def _seconds(m: dn.Mechanism, values: NDArray[Any], *, encode: bool = False) -> float:
    """The least processor time of some for reporting and counting, and perhaps for encoding."""
    taken = []
    for _ in range(10):
        start = process_time()
        m.count(m.randomise(m.domain.encode(values) if encode else values, bytes(32), 1))
        taken.append(process_time() - start)
    return min(taken)


def distributions(runs: float, rng: Generator) -> Iterator[dict[str, Any]]:
    """Intervals of F at the deciles of incomes, and of other estimates by HH with 256 bins.

    Of the same 100,000 respondents in each run; widths of F and of means as shares of the range.
    """
    found = _sets()
    if not found:
        return
    x = found["income / 250,000"]
    times, deciles = round(200 * runs), np.arange(1, 10) / 10
    for epsilon in (1.0, 4.0):
        m = dn.HH(dn.Number(0, 1), epsilon)
        bins = m.binning.of(m.domain.encode(x)).astype(np.int64)
        f = np.append(0.0, np.cumsum(np.bincount(bins, minlength=m.binning.size)) / len(x))
        edges = np.abs(f[:, None] - deciles).argmin(axis=0)
        rows = [_distribution(m, m.tally(m.privatize(x, rng)), x, f, edges) for _ in range(times)]
        inside, widths, others = map(np.array, zip(*rows, strict=True))
        yield {
            "epsilon": epsilon, "runs": times, "covered, of all deciles": inside.mean(),
            "least": inside.mean(axis=0).min(), "most": inside.mean(axis=0).max(),
            "width": widths.mean(), "mean covered": others[:, 0].mean(),
            "mean width": others[:, 1].mean(), "s. d. covered": others[:, 2].mean(),
            "median covered": others[:, 3].mean(), "band covered": others[:, 4].mean(),
        }  # fmt: skip


def _distribution(
    m: dn.HH, tally: dn.Tally, x: Floats, f: Floats, edges: NDArray[Any]
) -> tuple[Any, Any, list[float]]:
    """Which intervals of F cover, how wide they are, and what else covers."""
    e = DISTRIBUTIONS.estimate([tally], "unbiased")
    known = e.distribution
    assert known is not None
    low, high = (end[edges] for end in known.band)
    together = DISTRIBUTIONS.estimate([tally], "unbiased", simultaneous=True).distribution
    assert together is not None
    ends = together.band
    return (
        (low <= f[edges]) & (f[edges] <= high),
        high - low,
        [
            _within(e.mean_interval, x.mean()),
            e.mean_interval[1] - e.mean_interval[0],
            _within(e.statistic("standard deviation").interval, x.std()),
            _within(e.median.interval, float(np.median(x))),
            float(np.all((ends[0] <= f + TINY) & (f <= ends[1] + TINY))),
        ],
    )


def _within(interval: tuple[float, float], true: float) -> float:
    return float(interval[0] <= true <= interval[1])


def seconds_of_estimates(runs: float, rng: Generator) -> Iterator[dict[str, Any]]:
    """Time of an estimate with all intervals by HH, the first of a mechanism and the next ones."""
    x = rng.beta(2, 5, 100_000)
    for bins in (256, 1024):
        m = dn.HH(dn.Number(0, 1), 1.0, bins=bins)
        tally = m.tally(m.privatize(x, rng))
        for method in DISTRIBUTIONS.methods(m):
            taken = []
            for _ in range(3):
                start = process_time()
                DISTRIBUTIONS.estimate([tally], method).density.rows()
                taken.append(process_time() - start)
            yield {"bins": bins, "method": method, "first": taken[0], "next": min(taken[1:])}


def densities(runs: float, rng: Generator) -> Iterator[dict[str, Any]]:
    """W1 and KS of densities of 256 bins of 100,000 answers, as 1e-4 of the range and of 1.

    W1 is the mean distance of cumulative shares, KS the largest. The sets that need data are left
    out without them; the last rows of an epsilon are geometric means.
    """
    n, bins, times = 100_000, 256, max(1, round(5 * runs))
    sets = _seven_sets(n, bins, rng)
    for epsilon in (1.0, 2.0):
        found: dict[str, list[Floats]] = {}
        for name, x in sets.items():
            true = np.bincount(np.minimum((x * bins).astype(int), bins - 1), minlength=bins) / n
            for m, way, decode in _ways(epsilon, bins):
                errors = [_distances(m, x, true, decode, rng) for _ in range(times)]
                mean = np.mean(errors, axis=0)
                found.setdefault(way, []).append(mean)
                yield _row(epsilon, name, way, mean)
        for way, each in found.items():
            yield _row(epsilon, "geometric mean", way, np.exp(np.mean(np.log(each), axis=0)))


def _row(epsilon: float, name: str, way: str, mean: Floats) -> dict[str, Any]:
    w1, ks, seconds = mean.tolist()
    row = {"epsilon": epsilon, "answers": name, "way": way}
    return {**row, "w1": 1e4 * w1, "ks": 1e4 * ks, "seconds": seconds}


def _ways(epsilon: float, bins: int) -> Iterator[tuple[Any, str, Callable[[Any], Floats]]]:
    """Mechanisms with the names and the functions of decoders."""
    domain = dn.Number(0, 1)
    for m in (
        dn.HH(domain, epsilon, bins=bins),
        dn.DRR(domain, epsilon, **dn.DRR.advised(domain, epsilon, 1, ("distribution",))),
        dn.mechanism("sw", domain, epsilon),
    ):
        yield m, f"{m.name}, penalised", penalised
        if m.name == "sw":
            yield m, "sw, ems", ems


def _distances(
    m: Any, x: Floats, true: Floats, decode: Callable[[Any], Floats], rng: Generator
) -> Floats:
    counts = m.count(m.privatize(x, rng).data)
    seen = m.observed_bins(counts, len(x), Binning(m.domain, len(true)))
    start = process_time()
    off = np.abs(np.cumsum(decode(seen) - true))
    return np.array([off.mean(), off.max(), process_time() - start])


def _seven_sets(n: int, bins: int, rng: Generator) -> dict[str, Floats]:
    """Seven sets of numbers of 0..1, on which the decoder was developed, too."""
    found = {
        "normal": np.clip(rng.normal(0.45, 0.12, n), 0, 1),
        "exponential": np.clip(rng.exponential(0.12, n), 0, 1),
    }
    if not DATA.is_dir():
        return found
    import pyarrow.parquet as pq

    for name, file, column, hi in (
        ("age / 128", "adult_train", "age", 128),
        ("hours / 128", "adult_train", "hours_per_week", 128),
        ("capital gain / 100,000", "adult_train", "capital_gain", 100_000),
        ("income / 250,000", "acs2013_2017_income_100k", "pincp", 250_000),
    ):
        values = pq.read_table(DATA / f"{file}.parquet")[column].to_numpy().astype(np.float64)
        found[name] = np.clip(rng.choice(values[np.isfinite(values)], n) / hi, 0, 1)
    table = pq.read_table(DATA / "dpbench_1d.parquet", filters=[("dataset", "==", "SEARCHLOGS")])
    shares = np.zeros(4096)
    shares[table["bin"].to_numpy()] = table["count"].to_numpy()
    shares = shares.reshape(bins, -1).sum(axis=1)
    found["searches"] = (rng.choice(bins, n, p=shares / shares.sum()) + rng.random(n)) / bins
    return found


#: Every study gets the share of the runs to make, and coins.
STUDIES: dict[str, Callable[[float, Generator], Iterator[dict[str, Any]]]] = {
    study.__name__: study
    for study in (
        mean_tests,
        sample_sizes,
        best_published,
        ages,
        speed,
        distributions,
        densities,
        seconds_of_estimates,
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", choices=STUDIES, action="append")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.only or STUDIES:
        rows = list(STUDIES[name](0.1 if given.quick else 1.0, np.random.default_rng(20)))
        print(name)
        show(rows, Format.table)
        (given.out / f"{name}.json").write_text(json.dumps(rows, indent=1, default=float))


if __name__ == "__main__":
    main()
