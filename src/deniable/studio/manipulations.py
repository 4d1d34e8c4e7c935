"""Tables and charts of forged respondents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deniable.extras import altair
from deniable.studio.charts import BAR, INK, TRUTH
from deniable.studio.tables import rich_table

if TYPE_CHECKING:
    from rich.table import Table

    from deniable.audit.manipulated import Attempt, Manipulation

#: The bars of collections about which nothing is done.
BARE = "#6b7280"
#: Of a panel, in points.
WIDTH = 280


def manipulation_table(report: Manipulation) -> Table:
    """A row a defence and a column an attack; what is guaranteed stands below."""
    from deniable.audit.manipulated import MALFORMED, NOBODY

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
    table = rich_table(rows, str(report), caption)
    table.pad_edge = False  # so that it fits into 80 characters
    for one in table.columns[2:]:
        one.justify, one.width, one.min_width = "right", 8, None
    return table


def _of(report: Manipulation, attack: str) -> list[Attempt]:
    return [one for one in report.attempts if one.attack == attack]


def _left(one: Attempt) -> str:
    """The gain that is left, or how often an interval holds."""
    return f"{one.covered:.0%}" if one.gain_after is None else _gain(one.gain_after)


def _gain(gain: float) -> str:
    """Three digits, and never a minus before nothing."""
    return f"{round(gain, 3) + 0.0:.3f}"


def manipulation_chart(report: Manipulation) -> Any:
    """A panel an attack, a bar a defence with its number; the red line is the bound."""
    alt = altair()
    panels = [_panel(report, name) for name in report.attacks]
    title = alt.TitleParams(
        str(report),
        subtitle=[
            f"Gain of targets that have {report.truth:.3g}, {report.interval_words}; the first "
            "bar is what forgers gain, the others what a defence leaves.",
            "Red line: without a defence, no admissible reports gain more (guaranteed).",
        ],
        anchor="start",
        offset=14,
    )
    return alt.concat(*panels, columns=2, spacing=30).properties(title=title)


def _panel(report: Manipulation, attack: str) -> Any:
    alt = altair()
    some = _of(report, attack)
    axis = alt.Axis(ticks=False, domain=False, labelLimit=260)
    base = alt.Chart(alt.Data(values=[_bar(one) for one in some])).encode(
        y=alt.Y("defence:N", sort=None, title=None, axis=axis)
    )
    scale = alt.Scale(domain=_domain(report), nice=False)
    gain = alt.X("gain:Q", title=None, scale=scale, axis=alt.Axis(tickCount=5))
    bars = base.mark_bar(height=13).encode(x=gain, color=alt.Color("colour:N", scale=None))
    numbers = base.mark_text(align="right", color=INK).encode(x=alt.value(WIDTH - 5), text="text:N")
    limit = alt.Chart(alt.Data(values=[{"bound": some[0].bound}]))
    line = limit.mark_rule(color=TRUTH, strokeWidth=2).encode(x="bound:Q")
    seen = f"bound {some[0].bound:.3g}; alarm in {some[0].detected:.0%} of the collections"
    heading = alt.TitleParams(attack, subtitle=seen, anchor="start", fontSize=13)
    return alt.layer(bars, line, numbers).properties(width=WIDTH, height=150, title=heading)


def _bar(one: Attempt) -> dict[str, Any]:
    bare = one.label == "none"
    text = f"holds {one.covered:.0%}" if one.gain_after is None else _gain(one.gain_after)
    return {
        "defence": "no defence" if bare else f"{one.defence} ({one.label})",
        "gain": one.gain_after or 0.0,
        "text": text,
        "colour": BARE if bare else BAR,
    }


def _domain(report: Manipulation) -> list[float]:
    """The same for all panels, with room for numbers to the right."""
    ends = [_bar(one)["gain"] for one in report.attempts if one.attack in report.attacks]
    ends += [one.bound for one in report.attempts if one.attack in report.attacks]
    return [1.1 * min(0.0, *ends), 1.45 * max(ends)]
