"""Looking after a store: `deniable verify-store`, `backup`, `purge`, `export` and `import`."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deniable.cli.commands.collect import StoreAt

if TYPE_CHECKING:
    from deniable.service.store import Store
    from deniable.service.store.checkpoints import Checkpoint


def verify_store(
    store: StoreAt,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="File that remembers what was verified; the next run reads the rest."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Read everything again, whatever the file says.")
    ] = False,
) -> None:
    """Check a store: its database, every row, and a recount of all reports.

    Exit code 1 if anything is wrong.
    """
    from deniable.cli.progress import resumable
    from deniable.service.store import open_store
    from deniable.service.store.checkpoints import Checkpoint

    opened = open_store(store)
    digest = opened.collection.digest
    remembered = None if checkpoint is None else Checkpoint.read(checkpoint, digest)
    known = Checkpoint(digest) if full or remembered is None else remembered
    resume = "Nothing was kept; see --checkpoint."
    if checkpoint is not None:
        resume = "Verify with the same checkpoint to go on."
    with resumable("rows verified", resume) as progress:
        try:
            found = opened.verify(known, progress=progress)
        except KeyboardInterrupt:
            if checkpoint is not None:
                known.write(checkpoint)
            raise
    for sentence in found:
        typer.echo(sentence)
    if found:
        raise typer.Exit(1)
    if checkpoint is not None:
        known.write(checkpoint)
    _say_what_was_verified(opened, known)


def _say_what_was_verified(store: Store, known: Checkpoint) -> None:
    """Each report, how many days were not read again, and since when reports are only counted."""
    purged = store.purged()
    days = {day for (_, day), found in known.days.items() if found.run < known.run}
    for place, n in store.numbers().items():
        gone = purged.get(place, 0)
        told = f"{n - gone:,} reports recounted" + (", now or before" if days else "")
        told += f", {gone:,} purged" if gone else ""
        typer.echo(f"{store.named(place)}: {told}; the tally is their sum")
    if days:
        rest = "read before, and trusted as long as the number of their rows is the same"
        typer.echo(f"{_days(len(days))} {rest} (--full reads them again)")
    if (day := store.purged_before()) is not None:
        typer.echo(_only_counted(day))
    typer.echo("No damage found.")


def backup(
    store: StoreAt,
    target: Annotated[Path, typer.Argument(help="File to write; it must not exist yet.")],
) -> None:
    """Copy a store while it is in use."""
    from deniable.cli.progress import resumable
    from deniable.service.store import open_store

    with resumable("pages copied", "Nothing was written.") as progress:
        open_store(store).backup(str(target), progress=progress)
    typer.echo(f"{target}: {target.stat().st_size:,} bytes")


def purge(
    store: StoreAt,
    before: Annotated[
        str | None, typer.Option(help="First day to keep, such as 2026-01-31.")
    ] = None,
    keep_days: Annotated[
        int | None, typer.Option(min=1, help="Days to keep, besides today.")
    ] = None,
    rewrite: Annotated[
        bool,
        typer.Option("--rewrite", help="Also make the store smaller; respondents wait meanwhile."),
    ] = False,
) -> None:
    """Forget old reports; what they were counted for stays, and so do their ids."""
    from deniable.cli.progress import resumable
    from deniable.service.store import open_store

    day = _first_kept(before, keep_days)
    with resumable("submissions and batches forgotten", "Purge again to go on.") as progress:
        number = open_store(store).purge(day, rewrite=rewrite, progress=progress)
    gone = (
        "1 submission or batch was" if number == 1 else f"{number:,} submissions and batches were"
    )
    typer.echo(f"{gone} forgotten; what they counted for stays")


def _first_kept(before: str | None, keep_days: int | None) -> date:
    from deniable.errors import InvalidArgument
    from deniable.service.retention import first_kept
    from deniable.service.store.base import EPOCH, require_date, today

    if (before is None) == (keep_days is None):
        raise InvalidArgument("--before", before, "given, or --keep-days, and not both")
    if keep_days is not None:
        return first_kept(keep_days)
    day = require_date(before)
    if day > EPOCH + timedelta(days=today() + 1):
        raise InvalidArgument("before", before, "tomorrow at the latest, which forgets everything")
    return day


def export(
    store: StoreAt,
    folder: Annotated[Path, typer.Argument(help="A new folder, or an export to add to.")],
    unfinished: Annotated[
        bool,
        typer.Option("--today", help="Also what came today so far; the next export replaces it."),
    ] = False,
) -> None:
    """Write reports as Parquet files by question, round and day; adds only what is new."""
    from deniable.cli.progress import resumable
    from deniable.service.parquet import export as write
    from deniable.service.store import open_store

    with resumable("submissions exported", "Export again to go on.") as progress:
        found = write(open_store(store), folder, unfinished=unfinished, progress=progress)
    for day, number in found.written.items():
        typer.echo(f"{day}: {number:,} reports")
    if found.known:
        typer.echo(f"{_days(found.known)} there already")
    if not found.written:
        typer.echo("there are no new reports of days that are over (UTC); see --today")
    if found.purged_before is not None:
        typer.echo(_only_counted(found.purged_before))


def _days(number: int) -> str:
    return "1 day was" if number == 1 else f"{number:,} days were"


def _only_counted(day: date) -> str:
    return f"reports before {day} are only counted"


def import_(
    store: StoreAt,
    folder: Annotated[Path, typer.Argument(help="What `deniable export` wrote.")],
    add: Annotated[
        bool,
        typer.Option(
            "--add", help="Add to a store that holds other reports, none of them the same."
        ),
    ] = False,
) -> None:
    """Count the reports of an export; what was imported before is counted once."""
    from deniable.cli.progress import resumable
    from deniable.collection.survey import read_survey
    from deniable.errors import InvalidArgument
    from deniable.service.parquet import MANIFEST, import_folder
    from deniable.service.store import open_store

    if not (folder / MANIFEST).is_file():
        raise InvalidArgument("folder", str(folder), f"what `deniable export` wrote: {MANIFEST}")
    opened = open_store(store, read_survey(folder / MANIFEST))
    with resumable("rows checked and counted", "Nothing was counted.") as progress:
        number = import_folder(opened, folder, add=add, progress=progress)
    typer.echo(f"{number:,} reports were counted")
