"""Forged respondents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deniable.audit.forging.result import MALFORMED, NOBODY, Attempt, Manipulation
from deniable.views import chart, table
from deniable.views.charts import Spec, heading, line_at, number, places, whole
from deniable.views.tables import rich_table

if TYPE_CHECKING:
    from rich.table import Table

#: Of a panel, in pixels.
WIDTH, HEIGHT = 280, 150


@table.register(Manipulation)
def manipulation_table(report: Manipulation) -> Table:
    """A row for each defence and a column for each attack; what is guaranteed stands below."""
    some = {name: _of(report, name) for name in (NOBODY, *report.attacks)}
    rows = [
        {
            "defence": f"{way.defence} holds" if way.gain_after is None else way.defence,
            "kind": "" if way.label == "none" else way.label,
            **{name: _left(found[place]) for name, found in some.items()},
        }
        for place, way in enumerate(some[NOBODY])
    ]
    bounds = {name: f"{found[0].bound:.3f}" for name, found in some.items()}
    alarms = {name: f"{found[0].detected:.0%}" for name, found in some.items()}
    rows.append({"defence": "bound of the gain", "kind": "guaranteed", **bounds})
    rows.append({"defence": "alarm", "kind": "heuristic", **alarms})
    broken = _of(report, MALFORMED)[0]
    refused = f"Reports that no device can make would gain {broken.gain:.3g}: they are refused."
    caption = f"{report.words}. Gains are {report.interval_words}. {refused}"
    found = rich_table(rows, str(report), caption)
    found.pad_edge = False  # so that it fits into 80 characters
    for one in found.columns[2:]:
        one.justify, one.width, one.min_width = "right", 8, None
    return found


def _of(report: Manipulation, attack: str) -> list[Attempt]:
    return [one for one in report.attempts if one.attack == attack]


def _left(one: Attempt) -> str:
    """The gain that is left, or how often an interval holds."""
    return f"{one.covered:.0%}" if one.gain_after is None else _gain(one.gain_after)


def _gain(gain: float) -> str:
    """Three digits, and never a minus before nothing."""
    return f"{round(gain, 3) + 0.0:.3f}"


@chart.register(Manipulation)
def manipulation_chart(report: Manipulation, *, title: str | None = None) -> Spec:
    """A panel for each attack, a bar with its number for each defence; a line at the bound."""
    panels = [_panel(report, name) for name in report.attacks]
    return whole(
        {"concat": panels, "columns": 2, "spacing": 30},
        title=title or str(report),
        caption=f"Gain of targets that have {report.truth:.3g}. The first bar is what forgers "
        "gain, the others what a defence leaves. The line is a guaranteed bound: without a "
        "defence, no admissible reports gain more.",
        details=report.interval_words,
    )


def _panel(report: Manipulation, attack: str) -> Spec:
    some = _of(report, attack)
    bars = [{**_bar(one), "place": place} for place, one in enumerate(some)]
    y = places(_name(one) for one in some)
    y["axis"] |= {"ticks": False, "domain": False, "labelLimit": 260}
    gain = number("gain", "", scale={"domain": _domain(report), "nice": False})
    gain["axis"] = {"tickCount": 5}
    text = {"type": "text", "align": "right", "style": "interval"}
    rows = {
        "data": {"values": bars},
        "encoding": {"y": y},
        "layer": [
            _bars(gain, bare=True),
            _bars(gain, bare=False),
            {"mark": text, "encoding": {"x": {"value": WIDTH - 5}, "text": {"field": "text"}}},
        ],
    }
    seen = f"bound {some[0].bound:.3g}; alarm in {some[0].detected:.0%} of the collections"
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "title": {**heading(attack, seen), "fontSize": 13},
        "layer": [rows, line_at("bound", some[0].bound)],
    }


def _bars(gain: Spec, *, bare: bool) -> Spec:
    """Collections about which nothing is done look different."""
    style = "quiet" if bare else "estimate"
    return {
        "transform": [{"filter": "datum.bare" if bare else "!datum.bare"}],
        "mark": {"type": "bar", "style": style, "height": 13},
        "encoding": {"x": gain},
    }


def _name(one: Attempt) -> str:
    return "no defence" if one.label == "none" else f"{one.defence} ({one.label})"


def _bar(one: Attempt) -> dict[str, Any]:
    text = f"holds {one.covered:.0%}" if one.gain_after is None else _gain(one.gain_after)
    return {"gain": one.gain_after or 0.0, "text": text, "bare": one.label == "none"}


def _domain(report: Manipulation) -> list[float]:
    """The same for all panels, with room for numbers to the right."""
    ends = [_bar(one)["gain"] for one in report.attempts if one.attack in report.attacks]
    ends += [one.bound for one in report.attempts if one.attack in report.attacks]
    return [1.1 * min(0.0, *ends), 1.45 * max(ends)]
