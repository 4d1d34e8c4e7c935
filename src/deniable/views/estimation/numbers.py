"""Distributions of numbers: the density as bars, or the share up to each number as a line."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from deniable.core.mechanism import Labelled
from deniable.errors import InvalidArgument
from deniable.estimation.numbers.estimate import Numbers
from deniable.estimation.numbers.statistic import MEAN, Statistic
from deniable.mechanisms.numbers.least_squares import plausible
from deniable.views import chart
from deniable.views.charts import DRAWN, TICKS, WIDTH, Spec, number, percent, whole
from deniable.views.estimation.estimates import columns_for_people, estimate_chart, how_many

HEIGHT = 220


@chart.register(Numbers)
def chart_of_numbers(
    numbers: Numbers,
    given: str | Labelled | None = None,
    *,
    kind: str | None = None,
    title: str | None = None,
    most: int = DRAWN,
) -> Spec:
    """The ``"density"`` or the ``"cdf"`` (``given`` or ``kind``); else the rows.

    The density has no band: no interval was tested. That of the CDF is made of its intervals. With
    the truth of a simulation (``given``), and where only a mean is known, these are the rows.
    """
    if isinstance(given, str):
        given, kind = None, given
    if kind is None and (given is not None or not numbers.views):
        return estimate_chart(numbers, given, title=title, most=most)
    kind = kind or numbers.views[0]
    if kind not in numbers.views:
        allowed = f"one of {', '.join(numbers.views)}" if numbers.views else "left out here"
        raise InvalidArgument("kind", kind, allowed)
    body, caption = KINDS[kind](numbers)
    return whole(
        {"width": WIDTH, "height": HEIGHT, **body},
        title=title or "Estimated distribution",
        caption=" ".join([how_many(numbers), caption, *_more(numbers)]),
        details=f"{numbers.method}, {numbers.interval_words}; {numbers.source}",
        columns=_columns(numbers),
    )


def _columns(numbers: Numbers) -> dict[str, list[str]]:
    """The rows, and below them the shares that were asked for, in percent."""
    found = columns_for_people(numbers)
    for name, value, _, ends in numbers.asked:
        texts = (name, *(f"{100 * share:.1f} %" for share in (value, *ends)))
        for column, text in zip(found.values(), texts, strict=True):
            column.append(text)
    return found


def _density(numbers: Numbers) -> tuple[Spec, str]:
    """A bar for each bin, and the median."""
    bars = {
        "data": {"values": numbers.density.rows()},
        "mark": {"type": "bar", "style": "estimate", "binSpacing": 0},
        "encoding": {
            "x": {**_answers(numbers, "low"), "bin": "binned"},
            "x2": {"field": "high"},
            "y": percent("share", f"share of {numbers.people} in a bin"),
            "tooltip": _tooltip("low", "high", "share"),
        },
    }
    median = {
        "data": {"values": [{"median": numbers.median.value}]},
        "mark": {"type": "rule", "style": "interval", "strokeWidth": 1.5},
        "encoding": {"x": _answers(numbers, "median")},
    }
    words = "Bars show a smooth estimate without intervals. "
    words += f"The line is at the median, {_in_words(numbers, numbers.median.name)}."
    return {"layer": [bars, median]}, words


def _cdf(numbers: Numbers) -> tuple[Spec, str]:
    """The share up to each number with its intervals, and the median with its own."""
    found, known = numbers.density.columns(), numbers.distribution
    assert known is not None
    numbers_up_to = known.bins.answers(known.bins.high).tolist()
    rising = np.cumsum(plausible(np.diff(known.cdf))).tolist()
    rows = [{"up to": numbers.lo, "share": 0.0, "from": 0.0, "to": 0.0}]
    columns = zip(numbers_up_to, rising, found["cdf_low"], found["cdf_high"], strict=True)
    rows += [dict(zip(rows[0], row, strict=True)) for row in columns]
    x, share = _answers(numbers, "up to"), percent("share", f"share of {numbers.people}")
    band = {"y": percent("from"), "y2": {"field": "to"}}
    step = {"interpolate": "step-after"}
    value, (low, high) = numbers.median.value, numbers.median.interval
    at = {"y": {"datum": 0.5}, "x": _answers(numbers, "low")}
    layers = [
        {"mark": {"type": "area", "style": "estimate", "opacity": 0.5, **step}, "encoding": band},
        {
            "mark": {"type": "line", "style": "point", "strokeWidth": 1.5, **step},
            "encoding": {"y": share, "tooltip": _tooltip("up to", "share", "from", "to")},
        },
    ]
    median = {
        "data": {"values": [{"median": value, "low": low, "high": high}]},
        "layer": [
            {
                "mark": {"type": "rule", "style": "interval"},
                "encoding": {**at, "x2": {"field": "high"}},
            },
            {
                "mark": {
                    "type": "point",
                    "style": "interval",
                    "filled": True,
                    "size": 50,
                    "opacity": 1,
                },
                "encoding": {**at, "x": _answers(numbers, "median")},
            },
        ],
    }
    level = f"{numbers.level} simultaneous" if numbers.simultaneous else numbers.level
    words = (
        f"The line is the share of answers up to each number, made to rise; the band shows "
        f"{level} intervals. "
        f"The point is the median, {_in_words(numbers, numbers.median.name)}."
    )
    inner = {"data": {"values": rows}, "encoding": {"x": x}, "layer": layers}
    return {"layer": [inner, median]}, words


DENSITY, CDF = "density", "cdf"
KINDS: Mapping[str, Callable[[Numbers], tuple[Spec, str]]] = {DENSITY: _density, CDF: _cdf}


def _answers(numbers: Numbers, field: str) -> Spec:
    """A channel for answers, over all of their range."""
    edges = numbers.bins
    scale = {"domain": [float(edges[0]), float(edges[-1])], "nice": False, "zero": False}
    axis = {"tickCount": TICKS, "labelOverlap": True}
    return number(field, numbers.words, scale=scale, axis=axis)


def _tooltip(*fields: str) -> list[Spec]:
    shares = ("share", "from", "to")
    return [
        {"field": name, "type": "quantitative", "format": ".2%" if name in shares else ",.6~g"}
        for name in fields
    ]


def _in_words(numbers: Numbers, name: str) -> str:
    """One of the rows with its interval."""
    row = numbers.labels.index(name)
    _, value, low, high = (cells[row] for cells in columns_for_people(numbers).values())
    return f"{value} ({numbers.level} interval: {low} to {high})"


def _more(numbers: Numbers) -> list[str]:
    """Sentences about what the marks do not show."""
    return [f"The mean is {_in_words(numbers, MEAN)}.", *_at_ends(numbers), *numbers.remarks]


def _at_ends(numbers: Numbers) -> list[str]:
    """How many answers may have been beyond the range, in words."""
    if not numbers.clipped:
        return []
    first, last = (_percent(one) for one in numbers.at_ends)
    return [
        f"Answers beyond the range count at its ends: {first} of answers are in the lowest bin, "
        f"{last} in the highest."
    ]


def _percent(found: Statistic) -> str:
    low, high = (100 * min(max(end, 0.0), 1.0) for end in found.interval)
    return f"{low:.1f} to {high:.1f} %"
