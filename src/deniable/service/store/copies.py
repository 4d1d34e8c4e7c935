"""A backup appears complete or not at all: it is written under another name first.

A backup that was killed leaves a file of that other name, which the next one removes.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from deniable.errors import InvalidArgument, StoreUnavailable
from deniable.storage.database import SUFFIXES, Database
from deniable.storage.files import create

#: Between the name of a copy and what makes its first name unique.
PART = ".part-"


@contextmanager
def new_copy(target: Path) -> Iterator[sqlite3.Connection]:
    """A connection to an empty file that gets its name when the block ends."""
    _remove_leftovers(target)
    part = _begin(target)
    try:
        with closing(_exclusive(part)) as copy:
            yield copy
        _name(part, target)
    finally:
        _remove(part)
    Database(target).sync_folder()


def _begin(target: Path) -> Path:
    part = target.with_name(target.name + PART + secrets.token_hex(8))
    try:
        os.close(create(part))
    except OSError as error:
        raise StoreUnavailable(f"{target} cannot be written: {error}") from error
    return part


def _exclusive(part: Path) -> sqlite3.Connection:
    """A connection that nobody shares until it is closed; whoever dies lets go of it."""
    connection = sqlite3.connect(f"{part.as_uri()}?mode=rw", 0, isolation_level=None, uri=True)
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("BEGIN EXCLUSIVE")
    connection.execute("COMMIT")
    return connection


def _name(part: Path, target: Path) -> None:
    """Unlike a rename, a link never replaces a file; some disks know no links."""
    try:
        try:
            os.link(part, target)
        except FileExistsError:
            raise
        except OSError:
            if target.exists():
                raise
            part.rename(target)
    except FileExistsError:
        allowed = "a file that does not exist yet"
        raise InvalidArgument("target", str(target), allowed) from None
    except OSError as error:
        raise StoreUnavailable(f"{target} cannot be written: {error}") from error


def _remove_leftovers(target: Path) -> None:
    """Remove what was left by backups that were killed, and nothing that one still writes."""
    with suppress(OSError):
        for part in target.parent.iterdir():
            name = part.name.removeprefix(target.name + PART)
            ours = name != part.name and "-" not in name and not part.is_symlink()
            if ours and _is_left(part):
                _remove(part)


def _is_left(part: Path) -> bool:
    try:
        _exclusive(part).close()
    except sqlite3.DatabaseError as error:
        return getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY
    return True


def _remove(part: Path) -> None:
    for end in SUFFIXES:
        Path(f"{part}{end}").unlink(missing_ok=True)
