"""A repeated collection as the command line shows it: the series, then what changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deniable.core.domain import Label
from deniable.core.reports import Reports
from deniable.core.tally import Tally
from deniable.errors import InvalidArgument, MismatchError
from deniable.mechanisms.frequency import oracle_of
from deniable.rounds.changes import Changes
from deniable.rounds.rounds import Round, Rounds
from deniable.rounds.series import Series
from deniable.views.formats import Format

Collection = Mapping[Round, Tally | Reports]


@dataclass(frozen=True)
class Repeated:
    """The estimates of all rounds, and their changes if there are two rounds or more.

    Those among people who answered an optional question are not compared.
    """

    series: Series
    changes: Changes | None

    def chosen(self, names: str | None) -> list[Label] | None:
        """The values of a list with commas."""
        if names is None:
            return None
        known = {str(value): value for value in self.series.values}
        wanted = [name.strip() for name in names.split(",")]
        if not all(name in known for name in wanted):
            raise InvalidArgument("values", names, f"some of {', '.join(known)}")
        return [known[name] for name in wanted]


def study(
    collection: Collection,
    method: str | None,
    choices: dict[str, Any],
    baseline: str | None = None,
    **comparison: Any,
) -> Repeated:
    """Estimate all rounds with these choices of `combine`, from reports where they are at hand.

    ``comparison`` goes to `Rounds.changes`.
    """
    rounds = tallied(collection)
    series = Series.of({label: collection[label] for label in rounds}, method, **choices)
    asked, mechanism = comparison or baseline is not None, rounds.mechanism
    comparable = oracle_of(mechanism) is not None and not mechanism.domain.optional
    if len(rounds) < 2 or not (comparable or asked):
        return Repeated(series, None)
    names: dict[str | None, Any] = {str(label): label for label in rounds}
    first = names.get(baseline, baseline)
    candidates = choices.get("candidates")
    changes = rounds.changes(baseline=first, candidates=candidates, **comparison)
    return Repeated(series, changes)


def tallied(collection: Collection) -> Rounds:
    """The tallies of all rounds, which must have one mechanism."""
    parts = list(collection.values())
    rounds = Rounds(parts[0].mechanism)
    for label, part in collection.items():
        if part.mechanism != rounds.mechanism:
            both = f"{rounds.mechanism!r} and, in round {label!r}, {part.mechanism!r}"
            raise MismatchError(f"rounds have different mechanisms: {both}")
        rounds.add(label, part)
    return rounds


def show(found: Repeated, layout: Format, values: list[Label] | None) -> None:
    """Print the series and the changes; CSV is the series alone."""
    if layout is Format.csv:
        print(found.series.to_csv().rstrip("\n"))
    elif layout is Format.json:
        changes = None if found.changes is None else json.loads(found.changes.to_json())
        both = {"series": json.loads(found.series.to_json()), "changes": changes}
        print(json.dumps(both, indent=2))
    else:
        from rich.console import Console

        console = Console()
        console.print(found.series.table(values, console.width))
        if found.changes is not None:
            console.print(found.changes.table())
