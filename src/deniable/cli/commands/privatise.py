"""Raw answers in files become files of reports: `deniable privatize`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deniable.cli.options import EngineName, Master, Spec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deniable.collection.manifest import Collection
    from deniable.core.mechanism import Mechanism


def privatize(
    paths: Annotated[
        list[str],
        typer.Argument(help="Answers (Parquet): files, folders or addresses, one person per row."),
    ],
    folder: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="The folder to write: new, empty, or begun with the same secret."
        ),
    ],
    survey: Annotated[
        Path | None,
        typer.Option(help="A survey (TOML) or a manifest (JSON) with a column per question."),
    ] = None,
    mechanism: Spec = None,
    column: Annotated[
        str | None, typer.Option(help="The column of answers, with --mechanism.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Public column or key of the paths that stays; may be repeated."),
    ] = None,
    missing: Annotated[
        str,
        typer.Option(
            help="Missing answers to optional questions: refuse, or skip (people skipped them)."
        ),
    ] = "refuse",
    secret: Annotated[
        Path | None,
        typer.Option(
            help="File for the secret, so that interrupted work can go on (default: none)."
        ),
    ] = None,
    engine: EngineName = "local",
    master: Master = None,
) -> None:
    """Randomise the answers in many files. Only reports and the columns you keep are written."""
    from deniable.cli.progress import resumable
    from deniable.engines.named import engine_named
    from deniable.engines.privatising import privatise_files

    asked = _asked(survey, mechanism, column)
    runner = engine_named(engine, master)
    with resumable("people randomised", _advice(secret)) as progress:
        rows = privatise_files(
            paths,
            asked,
            folder,
            keep=keep or (),
            missing=missing,
            secret=secret,
            engine=runner,
            progress=progress,
        )
    typer.echo(f"{folder}: {rows:,} people")
    for line in _told(asked):
        typer.echo(f"  {line}")


def _asked(
    survey: Path | None, spec: Path | None, column: str | None
) -> Mapping[str, Mechanism] | Collection:
    """What is asked: a survey, or a mechanism for one column."""
    from deniable.cli.files import read_mechanism
    from deniable.cli.options import refuse_beside
    from deniable.collection.survey import read_survey
    from deniable.errors import InvalidArgument

    if survey is not None:
        refuse_beside("--survey", mechanism=spec, column=column)
        return read_survey(survey).collection
    if spec is None or column is None:
        raise InvalidArgument("--survey", None, "given, or --mechanism together with --column")
    return {column: read_mechanism(spec)}


def _advice(secret: Path | None) -> str:
    """How to go on."""
    if secret is not None:
        return "Run the same command again to go on."
    return "Nothing was kept, so start anew. With --secret, work can go on."


def _told(asked: Mapping[str, Mechanism] | Collection) -> list[str]:
    """What was written, and what it costs each person."""
    from deniable.engines.privatising import reports_of

    reports = reports_of(asked)
    width = max(len(report.name) for report in reports)
    lines = [f"{report.name:{width}}  {report.mechanism}" for report in reports]
    costs = sum(report.mechanism.guarantee.epsilon for report in reports)
    return [*lines, f"Each person spends epsilon {costs:.6g}, all reports together."]
