"""Files that only their owner may read, and that are never reached through a symbolic link."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from deniable.errors import InvalidArgument

#: The device and the number of a file: what stays when its name goes to another one.
Identity = tuple[int, int]


def real_file(name: str, path: str | os.PathLike[str]) -> Path:
    """The path of a file that may not be there yet; a symbolic link in its place is refused."""
    try:
        given = Path(path)
        linked, found = os.path.islink(given), given.resolve()  # noqa: PTH114 (never raises)
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise InvalidArgument(name, path, f"the name of a file ({error})") from error
    if linked:
        raise InvalidArgument(name, str(path), "a file itself, not a symbolic link to one")
    return found


def create(path: str | os.PathLike[str]) -> int:
    """A new file, open for writing; FileExistsError if there is anything, also a link."""
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0), 0o600)
    if hasattr(os, "fchmod"):  # whatever the umask; Windows uses the rights of the folder
        os.fchmod(handle, 0o600)
    return handle


def write_new(path: Path, data: bytes) -> None:
    """A new file with these bytes, on the disk; FileExistsError if there is anything."""
    with os.fdopen(create(path), "wb") as file:
        file.write(data)
        file.flush()
        sync(file.fileno())
    sync_folder(path.parent)


@contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """A file for its owner only that gets its name when it is complete, and on the disk."""
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    with os.fdopen(create(part), "wb") as file:
        yield file
        file.flush()
        sync(file.fileno())
    part.replace(path)
    sync_folder(path.parent)


def sync(handle: int) -> None:
    """Wait until a file is on the disk, not in a cache of it."""
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
    else:
        os.fsync(handle)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable. Windows has no such call, and needs none."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        sync(handle)
    finally:
        os.close(handle)


def identity(path: str | os.PathLike[str]) -> Identity | None:
    """Which file has this name now; None for none, and for what is no file.

    It opens nothing: to close a file again would give up the locks that SQLite has on it.
    """
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None
