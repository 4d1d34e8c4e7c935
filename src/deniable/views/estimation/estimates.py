"""Estimates: bars or points with intervals, and the same as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from deniable.arrays import Floats
from deniable.core.mechanism import Labelled
from deniable.estimation.estimate import Estimate, Quantity
from deniable.estimation.numbers.estimate import Numbers
from deniable.views import chart, table
from deniable.views.charts import (
    DRAWN,
    STEP,
    TICKS,
    WIDTH,
    Spec,
    counted,
    interval,
    number,
    percent,
    places,
    whole,
)
from deniable.views.tables import numbers_right, rich_table

if TYPE_CHECKING:
    from rich.table import Table

#: The height of a row with a point, in pixels.
POINT_STEP = 44
BAR_WIDTH = 14
#: Decimals of a number at most.
MOST_DECIMALS = 9


@chart.register(Estimate)
def estimate_chart(
    estimate: Estimate,
    truth: Labelled | None = None,
    *,
    title: str | None = None,
    most: int = DRAWN,
) -> Spec:
    """A row for each label with an interval, and a diamond at the truth of a simulation.

    Shares are bars, other numbers points. Several quantities stand below one another.
    """
    known = None if truth is None else estimate.aligned(truth)
    shown = estimate.shown(most)
    some = estimate.part(shown)
    rows = [{**row, "place": place} for place, row in enumerate(some.rows())]
    if known is not None:
        for row, i in zip(rows, shown, strict=True):
            row["truth"] = float(known[i])
    panels = [_panel(some, name, known is not None and not i) for i, name in _numbered(some)]
    body = {"width": WIDTH, **panels[0]} if len(panels) == 1 else {"vconcat": panels}
    return whole(
        {"data": {"values": rows}, **body},
        title=title or estimate.title,
        caption=_caption(estimate, known is not None, len(shown)),
        details=_details(estimate),
        columns=columns_for_people(some),
    )


def _numbered(estimate: Estimate) -> list[tuple[int, str]]:
    return list(enumerate(estimate.quantities))


def _panel(estimate: Estimate, name: str, with_truth: bool) -> Spec:
    """One quantity."""
    quantity, alone = estimate.quantities[name], len(estimate.quantities) == 1
    fields = [name, *(end if alone else f"{name}_{end}" for end in ("low", "high"))]
    x, low, high = (_axis(estimate, quantity, name, field) for field in fields)
    layers = [_mark(quantity, x), *interval(low, high["field"])]
    if with_truth:
        diamond = {"type": "point", "shape": "diamond", "filled": True, "size": 60, "opacity": 1}
        layers.append({"mark": {**diamond, "style": "truth"}, "encoding": {"x": _at(x, "truth")}})
    step = STEP if quantity.share else POINT_STEP
    return {
        **({} if alone else {"width": WIDTH}),
        "height": step * len(estimate.labels),
        "encoding": {
            "y": places(estimate.labels),
            "description": {"field": estimate.heading},
            "tooltip": _tooltip(estimate, quantity, fields),
        },
        "layer": layers,
    }


def _mark(quantity: Quantity, x: Spec) -> Spec:
    bar = {"type": "bar", "style": "estimate", "height": 14}
    point = {"type": "point", "style": "point", "filled": True, "size": 60, "opacity": 1}
    return {"mark": bar if quantity.share else point, "encoding": {"x": x}}


def _axis(estimate: Estimate, quantity: Quantity, name: str, field: str) -> Spec:
    if quantity.share:
        return percent(field, quantity.words or f"share of {estimate.people}")
    scale: Spec = {"zero": False, "padding": 12}
    if quantity.limits is not None:
        shown = np.concatenate([quantity.values, quantity.intervals.ravel(), quantity.limits])
        scale = {"domain": [float(shown.min()), float(shown.max())], "nice": False}
    return number(
        field, quantity.words or name, scale=scale, axis={"tickCount": TICKS, "labelOverlap": True}
    )


def _at(channel: Spec, field: str) -> Spec:
    return {**channel, "field": field}


def _tooltip(estimate: Estimate, quantity: Quantity, fields: Sequence[str]) -> list[Spec]:
    form = ".2%" if quantity.share else ",.6~g"
    titles = ("share" if quantity.share else fields[0], "from", "to")
    numbers = [
        {"field": field, "title": title, "type": "quantitative", "format": form}
        for field, title in zip(fields, titles, strict=True)
    ]
    return [{"field": estimate.heading, "title": _label(estimate)}, *numbers]


def _label(estimate: Estimate) -> str:
    return "answer" if estimate.heading == "value" else estimate.heading


def _caption(estimate: Estimate, with_truth: bool, drawn: int) -> str:
    """What the marks are, in sentences."""
    said = [how_many(estimate)]
    kinds = {"Bars" if one.share else "Points": None for one in estimate.quantities.values()}
    if len(estimate.labels) == len(estimate.quantities) == 1 and "Points" in kinds:
        said.append(_in_words(estimate))
    else:
        marks, level = " and ".join(kinds).capitalize(), _level(estimate)
        said.append(f"{marks} show estimates; lines show {level} intervals.")
    if with_truth:
        one = len(estimate.labels) == 1
        said.append(f"{'A diamond shows' if one else 'Diamonds show'} the simulated truth.")
        misses = round(1 / (1 - estimate.confidence))
        if not estimate.simultaneous and math.isclose(estimate.confidence, 1 - 1 / misses):
            level = f"a {estimate.level} interval"
            said.append(f"About 1 interval in {misses} misses it, as {level} should.")
    if left_out := estimate.cut(drawn, len(estimate.labels)):
        said.append(f"{left_out[0].upper()}{left_out[1:]} are shown.")
    return " ".join([*said, *estimate.remarks])


def how_many(estimate: Estimate) -> str:
    """How many reports there are, in a sentence; not all are answers where people may skip."""
    noun = "answer" if estimate.skipped is None else "report"
    return f"{counted(estimate.n, noun)}."


def _level(estimate: Estimate) -> str:
    return f"{estimate.level} simultaneous" if estimate.simultaneous else estimate.level


def _in_words(estimate: Estimate) -> str:
    """The only number."""
    (label,), (number,), (low,), (high,) = columns_for_people(estimate).values()
    return f"The {label} is {number} ({estimate.level} interval: {low} to {high})."


def _details(estimate: Estimate) -> str:
    """How the numbers were made."""
    return f"{estimate.method}, {estimate.interval_words}; {estimate.source}"


def columns_for_people(estimate: Estimate) -> dict[str, list[str]]:
    """The numbers as a person reads them: shares in percent, others with the digits that count."""
    found = {_label(estimate): [str(label) for label in estimate.labels]}
    for name, quantity in estimate.quantities.items():
        alone = len(estimate.quantities) == 1
        names = ("share" if quantity.share else name, "from", "to")
        write = _percentages if quantity.share else _rounded
        columns = (quantity.values, quantity.intervals[:, 0], quantity.intervals[:, 1])
        for title, numbers in zip(names, columns, strict=True):
            found[title if alone or title == name else f"{name} {title}"] = write(quantity, numbers)
    return found


def _percentages(_: Quantity, numbers: Floats) -> list[str]:
    return [f"{100 * x:.1f} %" for x in numbers.tolist()]


def _rounded(quantity: Quantity, numbers: Floats) -> list[str]:
    """To the first two digits of the standard error."""
    digits = _decimals(quantity)
    return [f"{round(x, digits):,.{max(digits, 0)}f}" for x in numbers.tolist()]


def _decimals(quantity: Quantity) -> int:
    """Below 0 where two digits of the smallest standard error are tens, hundreds, ..."""
    smallest = min((x for x in quantity.standard_errors.tolist() if x > 0), default=1.0)
    return min(1 - math.floor(math.log10(smallest)), MOST_DECIMALS)


@table.register(Estimate)
def estimate_table(estimate: Estimate, truth: Labelled | None = None) -> Table:
    """A row for each label: every quantity with its error, and the truth of a simulation.

    A single share has a bar as well.
    """
    shown = estimate.shown()
    some, known = estimate.part(shown), None if truth is None else estimate.aligned(truth)[shown]
    columns: dict[str, list[str]] = {estimate.heading: [str(label) for label in some.labels]}
    for name, quantity in some.quantities.items():
        columns |= _cells(estimate, name, quantity)
    if known is not None:
        digits = _digits(next(iter(some.quantities.values())))
        columns["truth"] = [f"{x:.{digits}f}" for x in known.tolist()]
    bars = [quantity.share for quantity in estimate.quantities.values()] == [True]
    if bars:
        columns[""] = _bars(quantity.values, known)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    cut = estimate.cut(len(shown), len(estimate.labels))
    words = "; ".join(filter(None, [estimate.interval_words, cut]))
    words = ". ".join([words, *estimate.remarks])
    found = numbers_right(rich_table(rows, str(estimate), words), 1)
    if bars:
        found.columns[-1].justify, found.columns[-1].overflow = "left", "crop"
    return found


@table.register(Numbers)
def numbers_table(numbers: Numbers, truth: Labelled | None = None) -> Table:
    """The rows, and below them the shares that were asked for, in percent."""
    found = estimate_table(numbers, truth)
    for place, (name, value, error, (low, high)) in enumerate(numbers.asked):
        if not place:
            found.add_section()
        ends = f"{100 * low:.1f} .. {100 * high:.1f} %"
        found.add_row(name, f"{100 * value:.1f} %", f"{100 * error:.1f} %", ends)
    return found


def _cells(estimate: Estimate, name: str, quantity: Quantity) -> dict[str, list[str]]:
    """The columns of one quantity; beside others its interval has to be enough."""
    digits = _digits(quantity)
    values = [f"{x:.{digits}f}" for x in quantity.values.tolist()]
    intervals = [
        f"{low:{digits + 3}.{digits}f} .. {high:.{digits}f}"
        for low, high in quantity.intervals.tolist()
    ]
    if len(estimate.quantities) > 1:
        return {name: values, f"{name}, {estimate.level}": intervals}
    errors = [f"{x:.{digits}f}" for x in quantity.standard_errors.tolist()]
    return {name: values, "s.e.": errors, f"{estimate.level} interval": intervals}


def _digits(quantity: Quantity) -> int:
    return 4 if quantity.share else max(_decimals(quantity), 0)


def _bars(shares: Floats, truth: Floats | None) -> list[str]:
    top = max(float(shares.max()), 1e-12)
    marks = [None] * len(shares) if truth is None else (truth / top).tolist()
    return [_bar(*pair) for pair in zip((shares / top).tolist(), marks, strict=True)]


def _bar(share: float, truth: float | None) -> str:
    """A bar of the estimate; ``|`` marks the truth of a simulation, whose column takes room."""
    width = BAR_WIDTH if truth is None else BAR_WIDTH // 2
    cells = list("█" * round(width * min(1.0, max(0.0, share))))
    cells += [" "] * (width + 1 - len(cells))
    if truth is not None:
        cells[min(width, round(width * truth))] = "|"
    return "".join(cells).rstrip()
