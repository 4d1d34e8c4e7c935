"""What `deniable reproduce` does: run a study, save its rows, draw its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from deniable.errors import InvalidArgument
from deniable.views.formats import Format
from deniable_papers import find

if TYPE_CHECKING:
    from deniable_papers.cells import Notebook
    from deniable_papers.datasets import Dataset
    from deniable_papers.results import Result
    from deniable_papers.study import Study


def reproduce(
    paper: str,
    *,
    full: bool,
    out: Path | None,
    data: Path | None,
    seed: int,
    processes: int | None,
    charts: bool,
    layout: Format,
) -> None:
    """Run one study; the arguments are the options of the command."""
    from deniable.extras import altair
    from deniable_papers.cells import Notebook

    family = find(paper)
    folder = out or Path("out") / paper
    check_folders(data, folder)
    if charts:
        altair()
    study = family(full, load_sets(family.data, data))
    notebook = Notebook(folder / "cells.jsonl", seed)
    _run(study, notebook, processes)
    results = study.results(notebook)
    notes = {name: one.note for name, one in study.sets.items()}
    about = {"paper": study.title, "mode": "full" if full else "quick", "seed": seed, "data": notes}
    saved = _save(study, results, folder / paper, about)
    if charts:
        saved += _draw(study, results, folder)
    _show(results, layout, f"{study.title} ({about['mode']})")
    for line in (*(f"data: {note}" for note in notes.values()), *(f"saved: {p}" for p in saved)):
        typer.echo(line, err=True)
    if not full:
        words = "few cells, designs and runs; the verdicts that count are those of --full"
        typer.echo(f"quick: {words}", err=True)


def check_folders(data: Path | None, out: Path) -> None:
    """A mistyped folder is refused before anything is simulated."""
    if data is not None and not data.is_dir():
        raise InvalidArgument("data", str(data), "a folder that exists")
    if out.exists() and not out.is_dir():
        raise InvalidArgument("out", str(out), "a folder, or a new name")


def load_sets(wanted: Mapping[str, Sequence[str]], folder: Path | None) -> dict[str, Dataset]:
    """The data sets of a study that are there with their columns; says what is left out."""
    from deniable_papers.datasets import SOURCES, load

    found: dict[str, Dataset] = {}
    for name, columns in wanted.items():
        missing = f"--data FOLDER has to hold {SOURCES[name].download}"
        if folder is not None:
            try:
                found[name] = load(name, folder)
                held = {column.lower() for column in found[name].columns}
                missing = ", ".join(c for c in columns if c.lower() not in held)
                missing = missing and f"{found[name].note} has no {missing}"
            except FileNotFoundError as error:
                missing = str(error)
        if missing:
            found.pop(name, None)
            typer.echo(f"left out: what needs {name}. {missing}", err=True)
    return found


def _show(results: list[Result], layout: Format, title: str) -> None:
    """All rows; or, for a reader, how many of each place hold, and why some do not."""
    from deniable.views.tables import show
    from deniable_papers.results import Verdict, counts
    from deniable_papers.views import differing, overview

    if layout is not Format.table:
        show([result.row() for result in results], layout)
        return
    show(overview(results), layout, title)
    rows, reasons = differing(results)
    if rows:
        all_of_them = counts(results)[Verdict.differs]
        cut = f"{len(rows)} of {all_of_them} rows" if len(rows) < all_of_them else "all"
        show(rows, layout, f"what differs ({cut})")
    for line in reasons:
        typer.echo(line)


def _run(study: Study[Any], notebook: Notebook, processes: int | None) -> None:
    """Finish all cells, with a progress bar a stage."""
    import os

    from rich.console import Console
    from rich.progress import track

    from deniable_papers.cells import finish

    console = Console(stderr=True)
    quiet = not console.is_terminal
    try:
        for name, cells in study.stages(notebook):
            steps = finish(cells, study.work, notebook, processes or os.cpu_count() or 1)
            for _ in track(steps, name, len(cells), console=console, transient=True, disable=quiet):
                pass
    except KeyboardInterrupt:
        kept = f"finished cells are in {notebook.path}; the same command goes on"
        typer.echo(f"stopped: {kept}", err=True)
        raise typer.Exit(130) from None


def _save(
    study: Study[Any], results: list[Result], path: Path, about: Mapping[str, Any]
) -> list[Path]:
    """All rows as JSON and as CSV, and the texts of the study."""
    from deniable.views.tables import render
    from deniable_papers.results import counts, write

    saved = [write(results, path.with_suffix(".json"), {**about, "verdicts": counts(results)})]
    table = f"{render([result.row() for result in results], Format.csv)}\n"
    for name, text in {f"{path.name}.csv": table, **study.texts(results)}.items():
        saved.append(path.with_name(name))
        saved[-1].write_text(text)
    return saved


def _draw(study: Study[Any], results: list[Result], folder: Path) -> list[Path]:
    from deniable.views import save

    return [
        save(chart, folder / f"{name}{ending}")
        for name, chart in study.charts(results).items()
        for ending in (".png", ".html")
    ]
