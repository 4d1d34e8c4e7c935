"""Long work that shows how far it is, and ends politely when it is interrupted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from deniable.service.store.base import Progress

#: Seconds between two lines of a log. Work that ends sooner leaves none.
EVERY = 10.0
#: What a shell says of a program that Ctrl-C ended.
INTERRUPTED = 130


@contextmanager
def shown(noun: str, resume: str) -> Iterator[Progress]:
    """A bar on a terminal, else a line now and then; Ctrl-C says how to go on.

    ``noun`` is what is counted: "submissions forgotten".
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (TextColumn(noun), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    last, seen = time.monotonic(), (0, 0)
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(noun, total=None)

        def progress(done: int, total: int) -> None:
            nonlocal last, seen
            seen = done, total
            bar.update(task, completed=done, total=total)
            if not console.is_terminal and time.monotonic() - last > EVERY:
                last = time.monotonic()
                typer.echo(_line(noun, *seen), err=True)

        try:
            yield progress
        except KeyboardInterrupt:
            bar.stop()
            typer.echo(f"Stopped: {_line(noun, *seen)}. {resume}", err=True)
            raise typer.Exit(INTERRUPTED) from None


def _line(noun: str, done: int, total: int) -> str:
    return f"{done:,} of {total:,} {noun}"
