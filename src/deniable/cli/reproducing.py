"""Published experiments, run again: `deniable reproduce`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable.cli.options import Layout
from deniable.studio.formats import Format
from deniable.studio.papers import STUDIES

if TYPE_CHECKING:
    from rich.console import Console

    from deniable.datasets import Dataset
    from deniable.studio.papers.cells import Notebook


def reproduce(
    paper: Annotated[str, typer.Argument(help=f"Which: {', '.join(STUDIES)}.")],
    full: Annotated[
        bool, typer.Option("--full/--quick", help="The paper's whole grid, or a part of it.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="For cells, table, charts. Default: out/PAPER.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder with the public data that the paper uses.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the simulation.")] = 0,
    processes: Annotated[
        int | None, typer.Option(min=1, help="How many at once. Default: all cores.")
    ] = None,
    charts: Annotated[bool, typer.Option(help="Draw the figures.")] = True,
    layout: Layout = Format.table,
) -> None:
    """Run a paper's experiment again: published values and claims beside ours.

    An interrupted run goes on where it ended: finished cells are kept in the folder.
    """
    from rich.console import Console

    from deniable.extras import altair
    from deniable.studio.papers import find
    from deniable.studio.papers.cells import Notebook
    from deniable.studio.papers.results import counts, reasons, telling, write
    from deniable.studio.tables import show

    family = find(paper)
    loaded = _load(family.data, data)
    study = family(full, loaded)
    if charts:
        altair()
    folder = out or Path("out") / paper
    notebook = Notebook(folder / "cells.jsonl", seed)
    console = Console(stderr=True)
    _run(study, notebook, processes, console)
    results = study.results(notebook)
    notes = {name: one.note for name, one in loaded.items()}
    about = {"paper": study.title, "mode": "full" if full else "quick", "seed": seed, "data": notes}
    saved = [write(results, folder / f"{paper}.json", {**about, "verdicts": counts(results)})]
    if charts:
        saved += _draw(study, results, folder)
    rows = telling(results) if layout is Format.table else [result.row() for result in results]
    show(rows, layout, f"{study.title} ({about['mode']})")
    for line in reasons(results) if layout is Format.table else ():
        typer.echo(f"differs: {line}")
    for name, note in notes.items():
        typer.echo(f"data: {name}: {note}", err=True)
    for path in saved:
        typer.echo(f"saved: {path}", err=True)


def _load(names: Sequence[str], folder: Path | None) -> dict[str, Dataset]:
    """The data sets of a study; without a folder, none, and what that means."""
    from deniable.datasets import SOURCES, load

    if folder is not None:
        return {name: load(name, folder) for name in names}
    if names:
        typer.echo("left out: what needs public data. --data FOLDER has to hold:", err=True)
    for name in names:
        typer.echo(f"  {SOURCES[name].download}", err=True)
    return {}


def _run(study: Any, notebook: Notebook, processes: int | None, console: Console) -> None:
    """Finish all cells, with a progress bar a stage."""
    import os

    from rich.progress import track

    from deniable.studio.papers.cells import finish

    for name, cells in study.stages(notebook):
        steps = finish(cells, study.work, notebook, processes or os.cpu_count() or 1)
        quiet = not console.is_terminal
        shown = track(steps, name, total=len(cells), console=console, transient=True, disable=quiet)
        for _ in shown:
            pass


def _draw(study: Any, results: list[Any], folder: Path) -> list[Path]:
    from deniable.studio.charts import save

    return [
        save(chart, folder / f"{name}{ending}")
        for name, chart in study.charts(results).items()
        for ending in (".png", ".html")
    ]
