"""A memo on the disk, and the witness that notices when it is gone.

The memo and the witness are two `Box` files. Both hold the bond (collection, mechanism, budget)
and the number of memos that the respondent began; only the memo holds the secret and the keys in
use. A memo that is missing, damaged or older than its witness is lost. Nothing but `FileMemo.enrol`
starts a budget: a lost memo is refused, or replaced by one that counts the lost one in full.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from deniable.device.memo import Memo, Memory, check_bond, check_most
from deniable.errors import CorruptData, InvalidArgument, MemoLost, MismatchError
from deniable.mechanisms.two_step.memoised import Memoised
from deniable.randomness import draw_key
from deniable.storage.box import Box

FORMAT = 1
FilePath = str | os.PathLike[str]
#: How a box says that its record is gone.
GONE = (FileNotFoundError, CorruptData)


class FileMemo(Memo):
    """A durable memo; any number of threads and processes may share it."""

    def __init__(
        self,
        path: FilePath,
        mechanism: Memoised,
        collection: str,
        lost: Literal["refuse", "charge"] = "refuse",
        witness: FilePath | None = None,
    ) -> None:
        """Open the memo of an enrolled respondent.

        If it is lost, ``lost="refuse"`` raises `MemoLost`; ``lost="charge"`` begins a new one, and
        from then on `spent` counts the lost one as if all of its budget had been used.
        """
        super().__init__(mechanism, collection)
        if lost not in ("refuse", "charge"):
            raise InvalidArgument("lost", lost, "'refuse' or 'charge'")
        self._bond = Bond.of(mechanism, collection)
        self._memo, self._witness = _boxes(path, witness)
        self._number = 0
        self._declared: int | None = None
        self._secret: bytes | None = None
        self._durable: set[int] = set()
        self._reconcile(lost)

    @classmethod
    def enrol(
        cls,
        path: FilePath,
        mechanism: Memoised,
        collection: str,
        most: int | None = None,
        witness: FilePath | None = None,
    ) -> Self:
        """Start a budget of at most ``most`` permanent answers: once, when a respondent consents.

        Refuses if anything of a memo or its witness is there already.
        """
        bond, budget = Bond.of(mechanism, collection), check_most(most)
        for trace in cls.traces(path, witness):
            raise _taken(trace)
        memo, _ = _boxes(path, witness)
        try:
            memo.place(bond.memo_record(Memory(draw_key(None), budget)))
        except FileExistsError:
            raise _taken(memo.path) from None
        return cls(path, mechanism, collection, witness=witness)

    @staticmethod
    def traces(path: FilePath, witness: FilePath | None = None) -> list[Path]:
        """The files that are there of a memo and its witness."""
        return [file for box in _boxes(path, witness) for file in box.traces()]

    @contextmanager
    def _held(self) -> Iterator[Memory]:
        try:
            with self._memo.held() as contents:
                memory = self._current(contents.record, self._number)
                if memory.number == self._number and self._secret not in (None, memory.secret):
                    raise CorruptData(f"{self._memo.path} is now the memo of another enrolment")
                self._check_most(memory)
                before = set(memory.keys)
                yield memory
                contents.record = self._bond.memo_record(memory)
            if before - self._durable:  # who recorded these may have died before the last sync
                self._memo.sync_folder()
            self._number, self._durable = memory.number, self._durable | memory.keys
            self._secret = memory.secret
        except GONE as error:
            raise MemoLost(f"{error}; no report was made. Open the memo again.") from error

    def _current(self, record: bytes, number: int) -> Memory:
        """The memory of a record that is at least the ``number``-th."""
        memory = self._bond.memory(record)
        if memory.number < number:
            raise CorruptData(f"{self._memo.path} is an old copy (memo {memory.number})")
        return memory

    def _check_most(self, memory: Memory) -> None:
        """Refuse a memo with another budget than its witness."""
        if memory.most != self._declared:
            found = f"{self._memo.path} has most = {memory.most}, its witness {self._declared}"
            raise MismatchError(f"{found}: one of them was edited, and both are left alone")

    # ---- memo and witness agree before anything is reported

    def _reconcile(self, lost: str) -> None:
        """Open the memo while the witness is held, and bring the witness up to date."""
        try:
            with self._witness.held() as contents:
                noted = self._bond.read(contents.record)
                self._declared = noted["most"]
                try:
                    memory = self._current(self._memo.read(), noted["number"])
                    self._check_most(memory)
                    self._number = memory.number
                except GONE as reason:
                    self._number = self._begin_again(noted, lost, reason)
                contents.record = self._bond.record(noted["most"], self._number)
        except GONE as reason:
            self._restore_witness(reason)

    def _begin_again(self, noted: dict[str, Any], lost: str, reason: Exception) -> int:
        """Replace a lost memo; the number of its successor.

        The successor is on the disk before the witness counts it. After a crash in between, the
        witness catches up with the number that the successor carries.
        """
        number: int = noted["number"]
        if lost == "refuse":
            raise MemoLost(
                f"{reason}, and {self._witness.path} says that memo {number} was begun. Put its "
                "newest copy back, or open it with lost='charge': that begins another memo, and "
                "`spent` counts this one in full."
            ) from reason
        self._memo.set_aside(f"lost-{number}")
        successor = Memory(draw_key(None), noted["most"], number + 1)
        self._memo.place(self._bond.memo_record(successor))
        return successor.number

    def _restore_witness(self, reason: Exception) -> None:
        """Write the witness anew from the memo, while that is held."""
        try:
            with self._memo.held() as held:
                memory = self._bond.memory(held.record)
                if self._witness_is_gone():
                    self._witness.set_aside("lost")
                    self._witness.place(self._bond.record(memory.most, memory.number))
        except GONE as error:
            raise MemoLost(
                f"{error}, and {reason}: the respondent never enrolled here, or every trace is "
                "lost. Only FileMemo.enrol starts a budget, when the respondent consents."
            ) from error
        self._number, self._declared = memory.number, memory.most

    def _witness_is_gone(self) -> bool:
        """Whether it still is: another process may have been faster."""
        try:
            self._witness.read()
        except GONE:
            return True
        return False


@dataclass(frozen=True)
class Bond:
    """What a memo is bound to; ``mechanism`` is the SHA-256 of the mechanism's spec."""

    collection: str
    mechanism: str

    @classmethod
    def of(cls, mechanism: Memoised, collection: str) -> Bond:
        check_bond(mechanism, collection)
        return cls(collection, hashlib.sha256(_json(mechanism.to_spec())).hexdigest())

    def record(self, most: int | None, number: int, **private: Any) -> bytes:
        """The record of a witness, or with ``private`` that of a memo."""
        public = {"format": FORMAT, "most": most, "number": number, **vars(self)}
        return _json({**public, **private})

    def memo_record(self, memory: Memory) -> bytes:
        """Keys are sorted: the file does not tell in which order they were used."""
        private = {"secret": memory.secret.hex(), "keys": sorted(memory.keys)}
        return self.record(memory.most, memory.number, **private)

    def read(self, record: bytes) -> dict[str, Any]:
        """A record as data, if it has these bond."""
        found: dict[str, Any] = json.loads(record)
        if found["format"] != FORMAT:
            raise MismatchError(f"the memo has format {found['format']}; this is format {FORMAT}")
        for name, own in vars(self).items():
            if found[name] != own:
                what = f" ({found[name]})" if name == "collection" else ""
                raise MismatchError(f"the memo is for another {name}{what}, and is left alone")
        return found

    def memory(self, record: bytes) -> Memory:
        """The memory that `memo_record` wrote."""
        found = self.read(record)
        if "secret" not in found:
            raise MismatchError("this is the witness of a memo, not a memo")
        secret = bytes.fromhex(found["secret"])
        return Memory(secret, found["most"], found["number"], set(found["keys"]))


def _boxes(path: FilePath, witness: FilePath | None) -> tuple[Box, Box]:
    memo = Box(path)
    other = Box(f"{memo.path}.enrolled" if witness is None else witness)
    memo.require_apart(other, "memo")
    return memo, other


def _taken(trace: os.PathLike[str]) -> InvalidArgument:
    allowed = "free: a respondent enrols once; open the memo with FileMemo(...)"
    return InvalidArgument("path", str(trace), allowed)


def _json(data: dict[str, Any]) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()
