"""What several collectors, or an earlier release, left: `deniable merge` and `upgrade`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deniable.cli.commands.collect import StoreAt


def merge(
    sources: Annotated[
        list[str], typer.Argument(help="Stores of one collection, or tallies of one mechanism.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write; it must not exist yet.")
    ],
) -> None:
    """Merge what was counted by collectors that share no database.

    Of stores, an id that is in several of them counts once. If it comes with different reports, or
    if two stores purged its report, the merge is refused. Of tallies, those that name the same
    files, or count exactly the same ids, are refused.
    """
    from deniable.errors import InvalidArgument

    if len(sources) < 2:
        raise InvalidArgument("sources", sources, "two or more")
    are_tallies = [_is_tally(source) for source in sources]
    if all(are_tallies):
        _merge_tallies(sources, output)
    elif any(are_tallies):
        raise InvalidArgument("sources", sources, "all stores, or all tallies")
    else:
        from deniable.service.store.merging import merge_stores

        merged = merge_stores(sources, str(output))
        told = f"{merged.kept:,} submissions and batches"
        typer.echo(f"{output}: {told}; {merged.again:,} were in several stores, and count once")


def _is_tally(source: str) -> bool:
    from deniable.core.tally import MAGIC

    path = Path(source)
    if "://" in source or not path.is_file():
        return False
    with path.open("rb") as opened:
        return opened.read(len(MAGIC)) == MAGIC


def _merge_tallies(sources: list[str], output: Path) -> None:
    from functools import reduce

    from deniable.cli.files import read_tallies
    from deniable.core.tally import Tally
    from deniable.errors import InvalidArgument, MismatchError
    from deniable.storage.database import Database

    tallies = read_tallies(sources)
    seen: dict[tuple[int, int], str] = {}
    for file, tally in tallies.items():
        ids = tally.identified, tally.fingerprint
        if tally.identified and ids in seen:
            told = f"{seen[ids]} and {file} count reports with the same ids"
            raise MismatchError(f"{told}: they would count twice")
        seen[ids] = file
    merged = reduce(Tally.merge, tallies.values())
    try:
        Database(output).place_file(merged.to_bytes())
    except FileExistsError:
        raise InvalidArgument("--output", str(output), "a file that does not exist yet") from None
    typer.echo(f"{output}: {merged.n:,} reports")
    for file, tally in tallies.items():
        if tally.n and not tally.sources:
            told = "names neither files nor ids: nothing shows if others count its reports, too"
            if tally.identified:
                told = "names no files: nothing shows if others count some of its reports, too"
            typer.echo(f"{file} {told}", err=True)


def upgrade(store: StoreAt) -> None:
    """Bring a store of an earlier release to the tables of this one.

    Stop its collectors and take a backup first: earlier releases refuse it from then on.
    """
    from deniable.service.store import open_store
    from deniable.service.store.published import SCHEMA

    opened = open_store(store, upgrade=True)
    typer.echo(f"{opened.place} has version {SCHEMA} of the tables")
