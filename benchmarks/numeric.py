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
from typing import Any

import numpy as np
from numpy.random import Generator

import deniable as dn
from deniable.views.formats import Format
from deniable.views.tables import show

#: Numbers of 0..1 with the mean .35 and the standard deviation .2: a Beta law.
ALPHA, BETA = 1.640625, 3.046875
MEAN, SD = 0.35, 0.2
EPSILONS = (0.5, 1.0, 2.0, 4.0)
#: Respondents of one sample and of two, with the runs of each.
ONE = {100: 4_000, 1_000: 4_000, 10_000: 1_500}
TWO = {(200, 300): 2_000, (2_000, 1_000): 2_000, (10_000, 5_000): 800}
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


#: Every study gets the share of the runs to make, and coins.
STUDIES: dict[str, Callable[[float, Generator], Iterator[dict[str, Any]]]] = {
    study.__name__: study for study in (mean_tests, sample_sizes)
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
