"""From files of reports to numbers with errors: `deniable estimate` and `series`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from deniable.cli.options import (
    CandidatesFile,
    Chart,
    Confidence,
    Errors,
    Layout,
    MethodName,
    Options,
    Population,
    Simultaneous,
    Spec,
    check_charts,
    print_result,
    refuse_beside,
    save_charts,
)
from deniable.studio.formats import Format


def estimate(
    files: Annotated[
        list[Path], typer.Argument(help="Reports (Parquet) or tallies; all are combined.")
    ],
    mechanism: Spec = None,
    method: MethodName = None,
    confidence: Confidence = 0.95,
    errors: Errors = None,
    population: Population = "respondents",
    simultaneous: Simultaneous = False,
    candidates: CandidatesFile = None,
    option: Options = None,
    layout: Layout = Format.table,
    chart: Chart = None,
) -> None:
    """Estimate frequencies with intervals from files of reports or tallies."""
    from deniable.estimation import combine
    from deniable.studio.files import read_candidates, read_options, read_sources

    check_charts(chart)
    found = combine(
        read_sources(files, mechanism),
        method,
        confidence=confidence,
        errors=errors,
        population=population,
        simultaneous=simultaneous,
        candidates=None if candidates is None else read_candidates(candidates),
        **read_options(option or []),
    )
    print_result(found, layout)
    save_charts(chart, found.plot)


def series(
    files: Annotated[
        list[Path],
        typer.Argument(help="One file per round, named for it; or one file of all rounds."),
    ],
    mechanism: Spec = None,
    method: MethodName = None,
    confidence: Annotated[
        float,
        typer.Option(help="Confidence level of the intervals of each round."),
    ] = 0.95,
    errors: Errors = None,
    population: Population = "respondents",
    simultaneous: Simultaneous = False,
    false_alarm: Annotated[
        float | None,
        typer.Option(help="Probability of any flag if nothing changes (default: 0.05)."),
    ] = None,
    respondents: Annotated[
        str | None,
        typer.Option(
            help="same (a panel) or fresh (default: fresh for changes, same for --pooled)."
        ),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="Compare with this round, not with the one before.")
    ] = None,
    pooled: Annotated[
        bool, typer.Option("--pooled", help="One estimate from all rounds, for a stable truth.")
    ] = False,
    candidates: CandidatesFile = None,
    option: Options = None,
    values: Annotated[
        str | None,
        typer.Option(help="Answers to show, separated by commas (default: the frequent ones)."),
    ] = None,
    layout: Layout = Format.table,
    chart: Chart = None,
) -> None:
    """Estimate every round of a repeated collection, and flag what changed between rounds.

    Rounds are named for their files and in the order of their names. CSV holds the series alone.
    """
    from deniable.studio import repeated
    from deniable.studio.files import read_candidates, read_options, read_rounds

    check_charts(chart)
    if pooled:
        refuse_beside("--pooled", values=values, baseline=baseline, false_alarm=false_alarm)
    collection = read_rounds(files, mechanism)
    listed = None if candidates is None else read_candidates(candidates)
    chosen: dict[str, Any] = {"confidence": confidence, "errors": errors, "population": population}
    chosen |= {"simultaneous": simultaneous, "candidates": listed, **read_options(option or [])}
    compared: dict[str, Any] = {"respondents": respondents, "false_alarm": false_alarm}
    compared = {name: value for name, value in compared.items() if value is not None}
    if pooled:
        one = repeated.tallied(collection).pooled(method, **chosen, **compared)
        print_result(one, layout)
        save_charts(chart, one.plot)
        return
    found = repeated.study(collection, method, chosen, baseline, **compared)
    wanted = found.chosen(values)
    repeated.show(found, layout, wanted)
    save_charts(chart, lambda: found.series.plot(values=wanted, changes=found.changes))
