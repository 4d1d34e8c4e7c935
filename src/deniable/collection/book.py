"""What a device was asked for at each address, and what it spent there.

The book is a `Box` in the memo folder. Whoever serves another collection at an address where one
was answered asks for another budget: the book notices, and somebody has to agree. Its lock is the
one lock of all processes that answer from a folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from deniable.collection.manifest import Collection
from deniable.errors import AlreadyAnswered, CollectionChanged, MemoLost, MismatchError
from deniable.storage.box import Box

FORMAT = 2
#: The digits of a digest that names of files begin with.
DIGITS = 16
#: The other files in the folder.
FILES = "[0-9a-f]" * DIGITS + "-*"
#: By digest: the first step of its protocol, the epsilon that was declared, the rounds that were
#: answered, and what they cost.
Entries = dict[str, dict[str, Any]]


class Book:
    """The book of a memo folder; it is begun when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self._box = Box(folder / "book")

    @contextmanager
    def held(self) -> Iterator[dict[str, Entries]]:
        """What is noted, by address, for this caller alone; durable when the block ends."""
        if self._is_missing():
            self._box.make_folder()
            with suppress(FileExistsError):
                self._box.place(_record({}))
        with self._box.held() as contents:
            noted = _addresses(contents.record)
            yield noted
            contents.record = _record(noted)

    def check(self, address: str, collection: Collection, agreed: str | None) -> None:
        """Refuse another collection than those that are noted, unless it was agreed to."""
        if not self._is_missing():
            _check(address, _addresses(self._box.read()), collection, agreed)

    @contextmanager
    def charging(
        self, address: str, collection: Collection, agreed: str | None, number: int | None = None
    ) -> Iterator[set[int]]:
        """Hold the book; when the block ends, the collection and this round of it are noted.

        Inside it are the rounds that were noted before.
        """
        with self.held() as noted:
            _check(address, noted, collection, agreed)
            yield answered(noted, collection)
            epsilon, root = collection.epsilon, collection.root
            fresh = {"epsilon": epsilon, "root": root, "rounds": [], "spent": 0.0}
            entry = noted.setdefault(address, {}).setdefault(collection.digest, fresh)
            if number is not None:
                entry["rounds"] = sorted({*entry["rounds"], number})
                entry["spent"] = collection.spent_after(len(entry["rounds"]))

    def _is_missing(self) -> bool:
        """Whether there is no book yet. It comes first: where other files are, it was lost."""
        path = self._box.path
        used = any(path.parent.glob(FILES))  # looked at first, as others may begin it meanwhile
        if path.exists():
            return False
        if used:
            raise MemoLost(
                f"{path} is missing, and {path.parent} was used. Put its newest copy back."
            )
        return True


def answered(noted: dict[str, Entries], collection: Collection) -> set[int]:
    """The rounds of a collection that were answered, at whatever address."""
    found = (here.get(collection.digest, {}).get("rounds", []) for here in noted.values())
    return {number for rounds in found for number in rounds}


def _check(
    address: str, noted: dict[str, Entries], collection: Collection, agreed: str | None
) -> None:
    """Refuse another step of a protocol that was answered, and what nobody agreed to."""
    digest, here = collection.digest, noted.get(address, {})
    for entries in noted.values():
        for step, entry in entries.items():
            if entry["root"] == collection.root and entry["rounds"] and step != digest:
                raise AlreadyAnswered(
                    f"{address} serves another step of what was answered before (collection "
                    f"{step}): nobody answers two steps. Nothing was answered."
                )
    if here and digest not in here and digest != agreed:
        spent = sum(entry["spent"] for entry in here.values())
        raise CollectionChanged(address, digest, collection.epsilon, spent)


def _record(addresses: dict[str, Entries]) -> bytes:
    data = {"format": FORMAT, "addresses": addresses}
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def _addresses(record: bytes) -> dict[str, Entries]:
    found: dict[str, Any] = json.loads(record)
    if found["format"] != FORMAT:
        raise MismatchError(f"the book has format {found['format']}; this is format {FORMAT}")
    addresses: dict[str, Entries] = found["addresses"]
    return addresses
