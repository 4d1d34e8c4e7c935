"""Options that several commands share, and what they do with them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from deniable.views.formats import Format

Layout = Annotated[Format, typer.Option("--format", "-f", help="How to print the table.")]
Epsilon = Annotated[float, typer.Option("--epsilon", "-e", help="Privacy budget of one report.")]
Mechanisms = Annotated[
    list[str] | None,
    typer.Option("--mechanism", "-m", help="Name of a mechanism; may be repeated (default: all)."),
]
Size = Annotated[int, typer.Option("--size", "-k", help="Number of possible answers.")]
Chart = Annotated[
    list[Path] | None,
    typer.Option("--chart", "-c", help="Save a chart (.html, .png or .svg); may be repeated."),
]
Spec = Annotated[
    Path | None,
    typer.Option("--mechanism", "-m", help="Spec (JSON) of the reports, if not in the file."),
]
MethodName = Annotated[
    str | None,
    typer.Option("--method", help="See `deniable methods` (default: bayes, for shares)."),
]
Confidence = Annotated[float, typer.Option(help="Confidence level of the intervals.")]
Errors = Annotated[
    str | None,
    typer.Option(help="score, exact, bootstrap, posterior, information or regression."),
]
Simultaneous = Annotated[
    bool, typer.Option("--simultaneous", help="Intervals that hold for all values together.")
]
Question = Annotated[
    str | None,
    typer.Option("--question", "-q", help="Name of the question, if devices drew one of several."),
]
Population = Annotated[str, typer.Option(help="The intervals are about: respondents, or everyone.")]
CandidatesFile = Annotated[
    Path | None,
    typer.Option(help="Text file with one candidate per line, if answers were any text."),
]
Asked = Annotated[
    list[str] | None,
    typer.Option(
        "--ask",
        "-a",
        help="NAME=VALUE to ask of the answers, e.g. candidates=Bern or quantile=0.9.",
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", help="NAME=JSON of the method, e.g. iterations=100."),
]
EngineName = Annotated[str, typer.Option("--engine", help="Where the work runs: local or spark.")]
Master = Annotated[
    str | None,
    typer.Option(help="Where Spark runs: local[4], spark://HOST:7077, yarn (default: as set up)."),
]
Duplicates = Annotated[
    str,
    typer.Option(help="What to do with copies of files and with ids that repeat: refuse or drop."),
]


def check_charts(paths: list[Path] | None) -> None:
    """Find out before the work whether its charts can be drawn and saved."""
    from deniable.extras import altair
    from deniable.views import check_path

    for path in paths or ():
        check_path(path)
        altair()


def save_charts(paths: list[Path] | None, make: Any) -> None:
    if not paths:
        return
    from deniable.views import save

    chart = make()
    for path in paths:
        typer.echo(f"chart: {save(chart, path)}", err=True)


def print_result(found: Any, layout: Format) -> None:
    """Numbers that have exports of their own."""
    from rich.console import Console

    if layout is Format.table:
        Console().print(found.table())
    else:
        print(found.to_json() if layout is Format.json else found.to_csv().rstrip("\n"))


def refuse_beside(option: str, **others: Any) -> None:
    """Refuse what would be ignored beside an option."""
    from deniable.errors import InvalidArgument

    for name, value in others.items():
        if value is not None:
            raise InvalidArgument(f"--{name.replace('_', '-')}", value, f"left out with {option}")
