"""Published experiments, run again: `deniable reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deniable.cli.options import Layout
from deniable.views.formats import Format


def reproduce(
    paper: Annotated[
        str, typer.Argument(help="Paper: comparative, ibu, kairouz, numbers or survey.")
    ],
    full: Annotated[
        bool, typer.Option("--full/--quick", help="The paper's whole grid, or a part of it.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for results (default: out/PAPER).")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder with the public data that the paper uses.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulation.")] = 0,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Number of processes (default: all cores).")
    ] = None,
    charts: Annotated[bool, typer.Option(help="Draw the figures.")] = True,
    layout: Layout = Format.table,
) -> None:
    """Run a paper's experiment again: published values and claims beside ours.

    Needs the package deniable-papers. An interrupted run goes on where it ended: finished cells are
    kept in the folder.
    """
    from deniable.extras import papers

    papers().reproduce(
        paper,
        full=full,
        out=out,
        data=data,
        seed=seed,
        processes=processes,
        charts=charts,
        layout=layout,
    )
