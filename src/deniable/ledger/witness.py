"""A second small file that knows how far a ledger had come when something was last released."""

from __future__ import annotations

import json
import sqlite3
from contextlib import suppress
from dataclasses import dataclass

from deniable.errors import CorruptData, MismatchError
from deniable.ledger.chain import Chain, link_at
from deniable.storage.box import Box

FORMAT = 1


@dataclass(frozen=True)
class Head:
    """The last entry of a ledger: ``ledger`` is its name, ``link`` what seals all up to here."""

    ledger: str
    number: int
    link: str

    @classmethod
    def of(cls, chain: Chain, number: int, link: bytes) -> Head:
        return cls(chain.terms.link.hex(), number, link.hex())

    def record(self) -> bytes:
        """This head as bytes."""
        data = {**vars(self), "format": FORMAT}
        return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


class Witness(Box):
    """The head of a ledger in a file of its own."""

    def check(self, chain: Chain, connection: sqlite3.Connection) -> Head:
        """The head that was seen last; refuses a ledger that does not go on from there."""
        seen = self._seen(chain)
        if seen.number > chain.number:
            raise CorruptData(
                f"it ends with entry {chain.number}, but {self.path} has seen entry {seen.number}: "
                "it is truncated or an old copy. Put its newest copy back"
            )
        link = link_at(connection, seen.number) if seen.number else chain.terms.link
        if link is None or link.hex() != seen.link:
            raise CorruptData(f"entry {seen.number} is not the one that {self.path} has seen")
        return seen

    def advance(self, head: Head) -> bool:
        """Note a head on the disk; False if this one or a later one is noted already."""
        with self.held() as contents:
            behind = self._read_head(contents.record, head.ledger).number < head.number
            if behind:
                contents.record = head.record()
        return behind

    def _seen(self, chain: Chain) -> Head:
        """What is noted. Only a ledger without entries may be without its witness."""
        if not chain.number and not self.traces():
            with suppress(FileExistsError):
                self.place(Head.of(chain, 0, chain.link).record())
        try:
            return self._read_head(self.read(), chain.terms.link.hex())
        except (FileNotFoundError, CorruptData) as error:
            raise CorruptData(
                f"{error}, and without a witness nobody can tell whether the ledger is an old "
                "copy. Who is sure that it is the newest calls Ledger.witness_anew"
            ) from error

    def _read_head(self, record: bytes, ledger: str) -> Head:
        data = json.loads(record)
        if data.pop("format", None) != FORMAT or set(data) != set(Head.__annotations__):
            raise MismatchError(f"{self.path} is no witness of format {FORMAT}")
        head = Head(**data)
        if head.ledger != ledger:
            raise MismatchError(f"{self.path} is the witness of another ledger")
        return head
