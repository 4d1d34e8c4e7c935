"""Dithered randomised response, from whose reports a mean is estimated.

A public random offset rounds the number to one of few cells, up or down so that the cell is right
on average, and the cell is randomised as in k-RR. With two cells that is subtractive dithering to
one bit (Ben Basat, Mitzenmacher and Vargaftik 2021) before randomised response.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.answers.number import GRID, Number
from deniable.arrays import Counts, Floats
from deniable.core.domain import Domain
from deniable.core.integers import Design, Threshold
from deniable.core.layout import Index
from deniable.core.mechanism import batches, mixture_keep, mixture_ratio
from deniable.core.registry import register
from deniable.core.task import SKIPPED_SHARE, Task, find_task
from deniable.mechanisms.numbers.answered import Answered, ScoreSums
from deniable.mechanisms.numbers.base import LARGEST, Between
from deniable.mechanisms.numbers.bins import Binning
from deniable.mechanisms.numbers.observed import RESOLUTION, Counted
from deniable.mechanisms.numbers.scores import PER_STRATUM, Scores, lower_hull, merged
from deniable.privacy import Guarantee
from deniable.randomness import SCALE, Coins, Keystream, choice_weight

#: Bits of an encoded number, and the most that an offset may have.
FINE = GRID.bit_length() - 1
#: Steps at most.
MOST_STEPS = 4096
#: Bits of the offset that a report shows: enough for the strata of the estimate.
USUAL_SHOWN = 8
#: The mean of 1 / (the number of reports in a stratum) is at most 1 / (their average - LOST).
LOST = 3


@register
class DRR(Scores):
    """A number x of 0..1 becomes cell i = floor(ell x + t) of 0..ell, t a public uniform offset.

    t has ``fine`` bits, and u = ell x 2^fine is an integer, so i = (u + t) >> fine has the mean ell
    x exactly. The cell is kept with probability keep / 2**64, or any of the m = ell + 1 cells is
    drawn; the report shows the first ``shown`` bits of t beside it. Given t this is k-RR on m
    cells, so the likelihood ratio is k-RR's. If the question may be skipped, a skip is one cell
    more, the last.
    """

    name = "drr"
    paper = "none; Ben Basat et al. 2021 for one bit"
    good_for = "the mean of a number: the least variance in the worst case, a report of some bits"
    automatic = (Number,)
    tasks = ("mean", "distribution")
    observes = Counted
    skips = True
    small_design = {"fine": 3}
    shapes = tuple({"ell": ell, "shown": 2} for ell in (1, 2, 3, 7))
    ell = Design(1, MOST_STEPS)
    fine = Design(1, FINE, default=FINE)
    shown = Design(0, lambda m: m.fine)
    keep = Threshold()

    @classmethod
    def tasks_for(cls, domain: Domain) -> tuple[str, ...]:
        """No decoder of distributions knows a skip."""
        return ("mean",) if domain.optional else cls.tasks

    @classmethod
    def advised(
        cls, domain: Domain, epsilon: float, n: int, tasks: tuple[str, ...] = ()
    ) -> dict[str, int]:
        """The steps of the mean, of a density, or, for both, their geometric mean, rounded up."""
        if "distribution" not in tasks:
            return {}
        many = steps_of_density(epsilon)
        if "mean" not in tasks:
            return {"ell": many}
        return {"ell": math.ceil(math.sqrt(many * cls(domain, epsilon).ell))}

    @property
    def task(self) -> Task:
        """The distribution, if there are more steps than a mean asks for."""
        both = "distribution" in self.tasks_for(self.domain) and self.ell > self.derive_ell()
        return find_task("distribution" if both else "mean")

    def derive_ell(self) -> int:
        """The steps with the least variance in the worst case, for a great many respondents.

        If the question may be skipped: of a mean among those who answer that is `usual_variance`.
        """
        steps = np.arange(1, MOST_STEPS + 1)
        odds = np.expm1(self.epsilon)
        if self.domain.optional:
            return int(steps[np.argmin(usual_variance(odds / (odds + steps + 2), steps))])
        ends, rise = worst_case(odds / (odds + steps + 1), steps)
        return int(steps[np.argmin(ends + rise**3 / (12 * steps**2))])

    def derive_shown(self) -> int:
        return min(USUAL_SHOWN, self.fine)

    def derive_keep(self) -> int:
        return mixture_keep(self.epsilon, self.outcomes)

    @property
    def outcomes(self) -> int:
        """The number of cells, with that of a skip."""
        return self.ell + 1 + self.domain.optional

    def report(self, value: int, coins: Coins) -> int:
        offset = coins.choice(1 << self.fine)
        own = self.cell(value, offset)
        drawn = coins.choice(self.outcomes)
        cell = own if coins.below(self.keep) else drawn
        return (cell << self.shown) | (offset >> (self.fine - self.shown))

    def cell(self, value: int, offset: int) -> int:
        """The cell of an encoded number behind this offset; that of a skip is the last."""
        if value == self.domain.skip:
            return self.ell + 1
        return ((self.ell * value >> (FINE - self.fine)) + offset) >> self.fine

    def told(self, value: int) -> Fraction:
        return Fraction(self.ell * value >> (FINE - self.fine), self.ell << self.fine)

    @property
    def coin_words(self) -> int:
        return 3

    @cached_property
    def layout(self) -> Index:
        return Index(self.outcomes << self.shown)

    @cached_property
    def guarantee(self) -> Guarantee:
        return Guarantee(mixture_ratio(self.share, self.outcomes))

    @cached_property
    def share(self) -> Fraction:
        """The probability of keeping the cell on purpose."""
        return Fraction(self.keep, SCALE)

    @cached_property
    def exact_scores(self) -> tuple[Fraction, ...]:
        cells = [Fraction(cell, self.ell) for cell in range(self.ell + 1)]
        return self._scores([*cells, *[Fraction(0)] * self.domain.optional])

    @cached_property
    def exact_answers(self) -> tuple[Fraction, ...]:
        return self._scores([Fraction(cell <= self.ell) for cell in range(self.outcomes)])

    def _scores(self, wanted: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """Scores whose mean is the one that is wanted of the own cell, whatever is drawn.

        The weights of cells that are drawn are not all equal.
        """
        weights = (choice_weight(cell, self.outcomes) for cell in range(self.outcomes))
        drawn = sum(map(mul, weights, wanted), Fraction(0)) / SCALE
        return tuple((one - (1 - self.share) * drawn) / self.share for one in wanted)

    @property
    def random_share(self) -> float:
        return float(1 - self.share)

    def noise(self, x: Floats) -> Floats:
        cells = np.arange(self.ell + 1.0)
        given = self._noise_of(self.scores)[: self.ell + 1]
        return np.asarray(np.interp(self.ell * np.asarray(x), cells, given))

    def _noise_of(self, scores: Floats) -> Floats:
        """Their variance, s g_i^2 + (1 - s) m2 - (s g_i + (1 - s) m1)^2 for the own cell i."""
        s, m1, m2 = float(self.share), scores.mean(), (scores**2).mean()
        return np.asarray(s * scores**2 + (1 - s) * m2 - (s * scores + (1 - s) * m1) ** 2)

    @cached_property
    def squares(self) -> Floats:
        """x^2 = 2 times the integral of c [x >= c] dc, over c = (k - t) / ell, k = 1..ell.

        A cell z behind the offset t says which of these c are at most x: so x^2 is the mean of
        (z (z + 1) - 2 z t) / ell^2, the randomness of z taken out. A report shows t to
        h = 2**-shown. The middle of that makes x^2 too large, by (h / (2 ell))^2 at most:
        `square_error`, which is subtracted.
        """
        share, ell, shown = float(self.share), self.ell, 1 << self.shown
        cells = np.arange(self.outcomes)
        t = (np.arange(shown) + 0.5) / shown
        of_cell: Floats = (cells * (cells + 1) - 2 * np.outer(t, cells)) / ell**2
        of_cell[:, ell + 1 :] = 0.0  # a skip
        drawn = of_cell.mean(axis=1, keepdims=True)
        return np.asarray((of_cell - (1 - share) * drawn) / share - self.square_error)

    @property
    def square_error(self) -> float:
        return (1 / (2 * self.ell << self.shown)) ** 2

    @cached_property
    def _worst_case(self) -> tuple[float, float]:
        ends, rise = worst_case(float(self.share), self.ell)
        return float(ends), float(rise)

    def strata(self, n: int) -> int:
        """Into how many strata of the offset n reports are sorted: a power of two."""
        return 1 << min(self.shown, max(1, n // PER_STRATUM).bit_length() - 1)

    def worst_variance(self, n: int, *, sampled: bool = False) -> float:
        """The largest variance that the mean of n respondents can have, where hi - lo is 1.

        Either of a fixed population, or, with ``sampled``, of one that the respondents are a sample
        of. It never grows with n: see `worst_case` for many strata; sorting into S of them only
        costs 1 / (4 S ell^2) at most, as the cells of a stratum rise by less than 1 with the
        offset, and not sorting a^2 / (4 ell^2), of E B(r) <= a^2 / 4. That a stratum has N reports
        by chance costs a share of the variance for samples.
        """
        ends, rise = self._worst_case
        strata = min(1 << self.shown, max(1.0, n / (2 * PER_STRATUM)))
        lost = 1 / (max(PER_STRATUM, n >> self.shown) - LOST)
        of_sample = ends + 1 / 4
        if sampled:
            return of_sample * (1 + lost) / n
        sorted_ = min(rise**2 / 4, rise**3 / 12 + 1 / (4 * strata))
        fixed = ends + sorted_ / self.ell**2
        return (fixed + lost * of_sample) / n

    def variance_for(self, x: Floats, n: int) -> float:
        """(E_t Var(z | t) (1 + (S - 1) / n) / (s ell)^2 - Var(x)) / n: t is in one of S strata."""
        x, share, strata = np.asarray(x), float(self.share), self.strata(n)
        cells, law = np.arange(self.ell + 1), self._cells_of(x, strata).T
        kept, drawn = (cells @ law, cells**2 @ law), np.arange(self.outcomes)
        mean = share * kept[0] + (1 - share) * drawn.mean()
        square = share * kept[1] + (1 - share) * (drawn**2).mean()
        of_sample = float((square - mean**2).mean()) / (share * self.ell) ** 2
        return (of_sample * (1 + (strata - 1) / n) - float(x.var())) / n

    def answered(self, counts: Counts, n: int) -> Answered:
        """S and N of the strata, each with equal weight.

        Given the offset t, the cells of those who answered are (t - 1/2) / ell too high on average.
        That sums to 0, and is taken out: chance deals those who answered to the strata.
        """
        strata = merged(self.table(counts), self.strata(n))
        sums, rows = ScoreSums.of_table(strata.sum(axis=1)), len(strata)
        answers = np.array([float(score) for score in self.exact_answers])
        share, shown = sums.mean(answers), sums.mean(answers > answers[-1])
        lifts = ((np.arange(rows) + 0.5) / rows - 0.5) / self.ell
        scores = self.scores - np.outer(share / max(shown, 1 / n) * lifts, answers > answers[-1])
        total = sums.mean(scores)
        mean = total / share if share > 0 else 0.5
        errors = scores - mean * answers
        noise, cells = self._noise_of(self.scores - mean * answers), np.arange(self.ell + 1.0)
        of_mean = float(np.interp(self.ell * mean, *lower_hull(cells, noise[:-1])))
        least = (share * of_mean + (1 - share) * float(noise[-1])) / n
        most = self.worst_among(mean, n)
        largest = most - LARGEST / n
        found = min(max(sums.covariance(errors, errors), least), most)
        squares = ScoreSums.of_table(strata.reshape(rows, -1)).mean(self.squares.reshape(rows, -1))
        few = not self.shows_variance(n)
        return Answered(
            n=n,
            total=total,
            share=share,
            variance=most if few else found,
            tilt=sums.covariance(errors, answers),
            share_variance=self._share_variance(shown) / n,
            square=squares / share if share > 0 else None,
            least=largest if few else least,
            largest=largest,
        )

    def worst_among(self, mean: float, n: int) -> float:
        answers = np.array([float(score) for score in self.exact_answers])
        noise = float(self._noise_of(self.scores - mean * answers).max())
        return (noise + 1 / (2 * self.ell) ** 2 + LARGEST) / n

    def _share_variance(self, shown: float) -> float:
        """n Var(N), of c (1 - c) / s^2 for the share c of reports that show no skip."""
        share, m = float(self.share), self.outcomes
        least = (1 - share) * (m - 1) / m
        c = min(max(shown, least), least + share)
        return c * (1 - c) / share**2

    def variance_among(self, x: Floats, n: int, skipped: float, *, sampled: bool = False) -> float:
        """(E_t Var(z | t) (1 + (S - 1) / n) - N Var(x)) / (n N^2) for the scores z of S - R N."""
        x, s, answered = np.asarray(x), float(self.share), 1 - skipped
        strata = self.strata(n)
        law = np.full((strata, self.outcomes), (1 - s) / self.outcomes)
        law[:, :-1] += s * answered * self._cells_of(x, strata)
        law[:, -1] += s * skipped
        answers = np.array([float(score) for score in self.exact_answers])
        inside = answers > answers[-1]
        lifts = ((np.arange(strata) + 0.5) / strata - 0.5) / self.ell
        lifts *= answered / (law @ inside).mean()
        scores = self.scores - x.mean() * answers - np.outer(lifts, inside)
        squares, means = (law * scores**2).sum(axis=1), (law * scores).sum(axis=1)
        of_sample = float((squares - means**2).mean()) * (1 + (strata - 1) / n)
        return (of_sample - (not sampled) * answered * float(x.var())) / (n * answered**2)

    def _cells_of(self, x: Floats, strata: int) -> Floats:
        """How often the numbers x are in each cell, by stratum of the offset."""
        whole = np.minimum((self.ell * x).astype(np.int64), self.ell - 1)
        edges = np.arange(strata + 1) / strata
        # Those offsets of a stratum, as a share of it, that lift a number to the next cell.
        rest = (self.ell * x - whole)[:, None]
        lifted = np.clip((edges[1:] - (1 - rest)) * strata, 0.0, 1.0)
        law = np.zeros((self.ell + 1, strata))
        np.add.at(law, whole, (1 - lifted) / len(x))
        np.add.at(law, whole + 1, lifted / len(x))
        return law.T

    def table(self, counts: Counts) -> Counts:
        """The counts by shown offset (rows) and cell (columns)."""
        return counts.reshape(self.outcomes, 1 << self.shown).T

    def observed_bins(self, counts: Counts, n: int, binning: Binning) -> Counted:
        """Counts by stratum and cell; strata are merged where that is fine enough."""
        low, high = binning.ends
        strata = 1 << min(self.shown, math.ceil(math.log2(max(1.0, RESOLUTION / self.ell))))
        below = np.zeros((len(low), strata, self.ell + 2))
        below[:, :, -1] = 1.0
        first, width = np.arange(strata)[:, None] / strata, 1 / strata
        # P(ell x + t < j) for t of [first, first + width]; and the mean of it over x.
        room = np.arange(1, self.ell + 1) - first
        left, right = (self.ell * x[:, None, None] for x in (low, high))
        at = np.clip((room - left) / width, 0.0, 1.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = (_ramp(room - left, width) - _ramp(room - right, width)) / (right - left)
        below[:, :, 1:-1] = np.where(right > left, mean, at)
        law = np.full((len(low), strata, self.outcomes), float(1 - self.share) / self.outcomes)
        law[:, :, : self.ell + 1] += float(self.share) * np.diff(below)
        by_cell = self.table(counts).reshape(strata, -1, self.outcomes).sum(axis=1)
        return Counted(by_cell.ravel(), law.reshape(len(low), -1) / strata)

    def cdf(self, counts: Counts, n: int, u: Floats) -> Between:
        """The means of F over the thresholds next to u: as F rises, F(u) is between them.

        How often stratum b reports cell k or one above tells the mean of F over the thresholds of
        (i, i + 1] / (S ell), i = k S - b - 1: no smoothness is asked for. Next to u are `window`
        of these, which depends on n and not on the reports. Beyond the range F is 0 and 1.
        """
        table = merged(self.table(counts), self.strata(n)).sum(axis=1)
        strata, share, k = len(table), float(self.share), np.arange(1, self.ell + 1)
        places = (k * strata - np.arange(strata)[:, None] - 1).ravel()
        sizes = table.sum(axis=1)[:, None]
        never = (1 - share) * (self.outcomes - k) / self.outcomes
        above = table[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1 : self.ell + 1] / sizes
        possible = np.clip(above, never, never + share)
        window = self.window(n, strata)
        means, variances = np.zeros((2, len(places) + 2 * window))
        means[-window:] = 1.0
        means[window + places] = 1 - ((above - never) / share).ravel()
        variances[window + places] = (possible * (1 - possible) / sizes / share**2).ravel()
        means = _moving(means, window) / window
        variances = _moving(variances, window) / window**2
        at = np.clip(np.asarray(u, dtype=np.float64), 0.0, 1.0) * len(places)
        low, high = np.floor(at).astype(np.int64), np.ceil(at).astype(np.int64) + window
        return Between(means[low], variances[low], means[high], variances[high])

    def window(self, n: int, strata: int) -> int:
        """How many places next to u the means of `cdf` are over: at most one of each stratum.

        Over a width of w, F rises by r w, and its mean has the variance v / w, v = 1 / (4 n ell
        s^2) at most. So an interval is r w + 2 z sqrt(v / w) wide, which is least for w^3 = v
        (z / r)^2; z is 2, as for 95 %, and r as if half of the range were empty.
        """
        best = float(1 / (4 * n * self.ell * self.share**2)) ** (1 / 3)
        return int(np.clip(round(best * strata * self.ell), 1, strata))

    def share_half_width(
        self, n: int, z: float, *, sampled: bool = False, skipped: float = 0.0
    ) -> float:
        """As in `window`, of a sample: there v of each place is S / (4 n s^2)."""
        strata = self.strata(n)
        window = self.window(n, strata)
        error = math.sqrt(strata / (4 * n * window)) / float(self.share)
        return window / (2 * strata * self.ell) + z * error

    def fill(self, values: NDArray[Any], out: NDArray[Any], keystream: Keystream) -> None:
        from deniable.kernels.direct import keep_or_draw

        fine, coarse = np.uint64(self.fine), np.uint64(FINE - self.fine)
        shown, hidden = np.uint64(self.shown), np.uint64(self.fine - self.shown)
        skip = -1 if self.domain.skip is None else self.domain.skip
        for some, target, words in batches(values, out, keystream, self.coin_words):
            n = len(some)
            offsets = words[:n] >> np.uint64(64 - self.fine)  # `choice` of a power of two
            own = ((np.uint64(self.ell) * some >> coarse) + offsets) >> fine
            own[some == skip] = self.ell + 1
            cells = np.empty(n, dtype=np.uint64)
            keep_or_draw(cells, own, words[n:], np.uint64(self.outcomes), np.uint64(self.keep))
            target[:n] = (cells << shown) | (offsets >> hidden)


def steps_of_density(epsilon: float) -> int:
    """1 / (2 b): as many as windows of the square wave (Z. Li et al. 2020) fit into the range."""
    e = math.exp(epsilon)
    return min(max(1, round(e * (e - 1 - epsilon) / (epsilon * e - e + 1))), MOST_STEPS)


def worst_case(share: Any, ell: Any) -> tuple[Any, Any]:
    """C and a, with n Var = C + a^3 / (12 ell^2) for the worst of all populations.

    Let s be the share, y = ell x with the fraction r, and G(t) = P(r >= 1 - t), which is what the
    mean of the cells rises by with the offset t. A decoder that sorts reports by their offset has

        n Var ell^2 = C ell^2 + E[r (1 - r) / s - (1 / s - 1) y (ell - y)] - Var_t G(t),

    where C ell^2 = (1 - s) (ell (2 ell + 1) / 6 - (1 - s) ell^2 / 4) / s^2. Of all y with this r
    the one next to an end of the range has the most, and then the mean is that of B(r) = a h - h^2,
    with h = min(r, 1 - r) and a = ell - (ell - 1) / s <= 1. As Var_t G = 1/4 - E|r - r'| / 2 for
    two respondents and a symmetric law, the maximum is at the law with density 1 on h < a / 2 and
    all else at the ends: it is a^3 / 12, or 0 for a < 0.

    If half of all answer lo and half hi, n Var is C, and C + 1/4 for a sample: no population has
    more.
    """
    missed = 1 - share
    ends = missed * (ell * (2 * ell + 1) / 6 - missed * ell**2 / 4) / (share * ell) ** 2
    return ends, np.maximum(ell - (ell - 1) / share, 0.0)


def usual_variance(share: Any, ell: Any) -> Any:
    """n Var of the mean of v = 2 x - 1 among a share N = 0.9 who answer, with mean 0.3, sd 0.4.

    With a = 2 i / ell - 1 for cell i, m = ell + 1 and z = (a - mu) / s, 0 for a skip, that is
    (E[z^2] - E[z]^2 - N^2 / (3 ell^2) - N Var(v)) / N^2, where the third term is what sorting by
    offsets gains if the numbers are spread evenly between cells.
    """
    n, square, variance = 1 - SKIPPED_SHARE, 0.09, 0.16
    drawn = (1 - share) * (ell + 1) / (ell + 2)
    kept = np.where(ell == 1, 1 - square, variance + 2 / (3 * ell**2))
    of_z = (
        share * n * kept + drawn * ((ell + 2) / (3 * ell) + square) - drawn**2 * square
    ) / share**2
    return (of_z - (n / ell) ** 2 / 3 - n * variance) / n**2


def _ramp(x: Floats, width: float) -> Floats:
    """The integral of min(max(x / width, 0), 1)."""
    inside = np.clip(x, 0.0, width)
    return np.asarray(inside**2 / (2 * width) + np.maximum(x - width, 0.0))


def _moving(x: Floats, window: int) -> Floats:
    """The sums of so many neighbours."""
    sums = np.concatenate([[0.0], np.cumsum(x)])
    return np.asarray(sums[window:] - sums[:-window])
