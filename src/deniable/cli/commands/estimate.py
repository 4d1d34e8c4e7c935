"""From files of reports to numbers with errors: `deniable estimate` and `series`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable.cli.options import (
    Asked,
    CandidatesFile,
    Chart,
    Confidence,
    Duplicates,
    EngineName,
    Errors,
    Layout,
    Master,
    MethodName,
    Options,
    Population,
    Question,
    Simultaneous,
    Spec,
    check_charts,
    print_result,
    refuse_beside,
    save_charts,
)
from deniable.views.formats import Format

if TYPE_CHECKING:
    from deniable.core.mechanism import Mechanism


def estimate(
    paths: Annotated[
        list[str],
        typer.Argument(
            help="Reports (Parquet) or tallies: files, folders or addresses. All are combined."
        ),
    ],
    mechanism: Spec = None,
    method: MethodName = None,
    confidence: Confidence = 0.95,
    errors: Errors = None,
    population: Annotated[
        str | None,
        typer.Option(
            help="Whom intervals describe: respondents, or everyone (default with --question)."
        ),
    ] = None,
    simultaneous: Simultaneous = False,
    question: Question = None,
    candidates: CandidatesFile = None,
    ask: Asked = None,
    option: Options = None,
    duplicates: Duplicates = "refuse",
    engine: EngineName = "local",
    master: Master = None,
    layout: Layout = Format.table,
    chart: Chart = None,
) -> None:
    """Estimate shares or means, with intervals, from files of reports or tallies."""
    from deniable.cli.files import about_question, read_sources
    from deniable.cli.progress import shown
    from deniable.engines.named import engine_named
    from deniable.estimation import combine

    check_charts(chart)
    with shown() as progress:
        read = read_sources(paths, mechanism, engine_named(engine, master), duplicates, progress)
        parts = about_question(read, question)
        chosen = _chosen(parts[0].mechanism, candidates, ask, option, errors=errors)
        # Those who drew a question are a sample of all respondents.
        about = population or ("respondents" if question is None else "everyone")
        chosen |= {"confidence": confidence, "population": about, "simultaneous": simultaneous}
        found = combine(parts, method, **chosen)
    print_result(found, layout)
    save_charts(chart, found.chart)


def _chosen(
    mechanism: Mechanism,
    candidates: Path | None,
    ask: list[str] | None,
    option: list[str] | None,
    **given: Any,
) -> dict[str, Any]:
    """What was chosen or asked; what was left out is the task's to choose."""
    from deniable.cli.files import read_candidates, read_options, read_queries

    asked = read_queries(ask or [], mechanism)
    if candidates is not None:
        refuse_beside("--candidates", ask=asked.get("candidates"))
        asked["candidates"] = read_candidates(candidates)
    named = {name: value for name, value in given.items() if value is not None}
    return {**named, **asked, **read_options(option or [])}


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
    ask: Asked = None,
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
    from deniable.cli import rounds as repeated
    from deniable.cli.files import read_rounds

    check_charts(chart)
    if pooled:
        refuse_beside("--pooled", values=values, baseline=baseline, false_alarm=false_alarm)
    collection = read_rounds(files, mechanism)
    first = next(iter(collection.values())).mechanism
    chosen = _chosen(first, candidates, ask, option, errors=errors)
    chosen |= {"confidence": confidence, "population": population, "simultaneous": simultaneous}
    compared: dict[str, Any] = {"respondents": respondents, "false_alarm": false_alarm}
    compared = {name: value for name, value in compared.items() if value is not None}
    if pooled:
        one = repeated.tallied(collection).pooled(method, **chosen, **compared)
        print_result(one, layout)
        save_charts(chart, one.chart)
        return
    found = repeated.study(collection, method, chosen, baseline, **compared)
    wanted = found.chosen(values)
    repeated.show(found, layout, wanted)
    save_charts(chart, lambda: found.series.chart(values=wanted, changes=found.changes))
