"""From files of reports to tallies: `deniable tally`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deniable.cli.options import Duplicates, EngineName, Master, Spec


def tally(
    paths: Annotated[
        list[str], typer.Argument(help="Reports (Parquet): files, folders or addresses.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="File to write, or with --by a folder. It must be new."
        ),
    ],
    by: Annotated[
        str | None,
        typer.Option(help="Keys of the paths, such as region,week: one tally for each group."),
    ] = None,
    duplicates: Duplicates = "refuse",
    engine: EngineName = "local",
    master: Master = None,
    resume: Annotated[
        Path | None,
        typer.Option(help="File that keeps unfinished work (default: beside the output)."),
    ] = None,
    mechanism: Spec = None,
) -> None:
    """Count the reports in many files, of any size, into a tally.

    If it is interrupted, the same command goes on where it ended.
    """
    from deniable.cli.files import read_mechanism
    from deniable.cli.progress import INTERRUPTED, shown
    from deniable.engines.named import engine_named
    from deniable.engines.tallying import check_output, tally_files, write_tallies

    keys = () if by is None else tuple(by.split(","))
    check_output(output)
    notes = resume or output.with_name(f"{output.name}.unfinished")
    try:
        with shown() as progress:
            found = tally_files(
                paths,
                mechanism=None if mechanism is None else read_mechanism(mechanism),
                by=keys,
                duplicates=duplicates,
                engine=engine_named(engine, master),
                resume=notes,
                progress=progress,
            )
    except KeyboardInterrupt:
        kept = (
            f"What was counted is in {notes}. " if notes.exists() else "Nothing was counted yet. "
        )
        typer.echo(f"Interrupted. {kept}Run the same command again to go on.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    for path, one in write_tallies(found, keys, output).items():
        files = "1 file" if len(one.sources) == 1 else f"{len(one.sources):,} files"
        typer.echo(f"{path}: {one.n:,} reports from {files}")
