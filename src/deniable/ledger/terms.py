"""What a ledger is bound to for ever, and the names that it uses for people."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Any

from deniable.errors import CorruptData, InvalidArgument, MismatchError

FORMAT = 1
#: Bytes of a keyed hash that are kept.
ID_BYTES = 16


@dataclass(frozen=True)
class Terms:
    """The secret, the budget of each subject in micro-epsilon, and those of named collections.

    ``collections`` is None where any collection may charge up to the whole budget.
    """

    secret: bytes
    budget: int
    collections: dict[str, int] | None

    def record(self) -> bytes:
        """These terms as bytes."""
        data = {**vars(self), "secret": self.secret.hex(), "format": FORMAT}
        return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def read(cls, record: Any) -> Terms:
        """The terms that `record` wrote."""
        try:
            data = json.loads(record)
            known = data.pop("format") == FORMAT
            found = cls(**{**data, "secret": bytes.fromhex(data["secret"])}) if known else None
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise CorruptData(f"its terms are unreadable ({error})") from error
        if found is None:
            raise MismatchError(f"it has another format than {FORMAT}")
        if found.record() != record:
            raise CorruptData("its terms were altered")
        return found

    @property
    def link(self) -> bytes:
        """The start of the chain, and the public name of the ledger."""
        return hashlib.sha256(b"deniable ledger" + self.record()).digest()

    def allowed(self, collection: str) -> int:
        """The budget of each subject for a collection."""
        require_name(collection)
        if self.collections is None:
            return self.budget
        if collection not in self.collections:
            known = ", ".join(self.collections)
            raise InvalidArgument("collection", collection, f"one that was agreed upon: {known}")
        return min(self.budget, self.collections[collection])

    def pseudonym(self, subject: str | bytes) -> bytes:
        """The name of a subject in the file."""
        return self._hash(b"subject", _bytes("subject", subject))

    def mark(self, pseudonym: bytes, collection: str, cost: int, token: bytes) -> bytes:
        """The name of a charge that is made once, however often it is asked for."""
        where = collection.encode()
        return self._hash(
            b"token",
            pseudonym,
            cost.to_bytes(8, "big"),
            len(where).to_bytes(8, "big"),
            where,
            token,
        )

    def token(self, token: str | bytes) -> bytes:
        """A token as bytes."""
        return _bytes("token", token)

    def _hash(self, label: bytes, *parts: bytes) -> bytes:
        text = b"deniable ledger " + label + b"".join(parts)
        return hmac.digest(self.secret, text, "sha256")[:ID_BYTES]


def require_name(collection: Any) -> str:
    """The name of a collection, which tables will show."""
    if not isinstance(collection, str) or not collection.isprintable() or not collection:
        raise InvalidArgument("collection", collection, "a name that can be printed")
    return collection


def _bytes(name: str, text: Any) -> bytes:
    """A text is its UTF-8: it and its bytes name the same person."""
    try:
        found = text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError:
        found = b""
    if not isinstance(found, bytes) or not found:
        raise InvalidArgument(name, text, "a text or bytes, not empty")
    return found
