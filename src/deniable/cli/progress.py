"""Long work that shows how far it is, and ends politely when it is interrupted."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import typer

if TYPE_CHECKING:
    from deniable.engines.progress import Progress
    from deniable.service.store.base import Progress as Counted

Step = TypeVar("Step")
#: Seconds between two lines of a log. Work that ends sooner leaves none.
EVERY = 10.0
#: What a shell says of a program that Ctrl-C ended.
INTERRUPTED = 130


@contextmanager
def shown(doing: str = "looking at files") -> Iterator[Progress]:
    """A bar on a terminal, else a line now and then: what is being done, and how much is done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    last = time.monotonic()
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(doing, total=None)

        def tell(doing: str, done: int, total: int) -> None:
            nonlocal last
            bar.update(task, description=doing, completed=done, total=total)
            if not console.is_terminal and time.monotonic() - last > EVERY:
                last = time.monotonic()
                typer.echo(f"{doing}: {done:,} of {total:,}", err=True)

        yield tell


def tracked(steps: Iterable[Step], doing: str, total: int) -> Iterator[Step]:
    """Steps, each of which is done when the next is asked for."""
    with shown(doing) as tell:
        for done, step in enumerate(steps):
            tell(doing, done, total)
            yield step


@contextmanager
def resumable(noun: str, resume: str) -> Iterator[Counted]:
    """The same of one kind of things, such as "rows verified"; Ctrl-C says how to go on."""
    seen = 0, 0
    try:
        with shown(noun) as tell:

            def counted(done: int, total: int) -> None:
                nonlocal seen
                seen = done, total
                tell(noun, done, total)

            yield counted
    except KeyboardInterrupt:
        done, total = seen
        where = f": {done:,} of {total:,} {noun}" if total else ""
        typer.echo(f"Stopped{where}. {resume}", err=True)
        raise typer.Exit(INTERRUPTED) from None
