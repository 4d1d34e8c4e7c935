"""Submissions: what leaves a device, as `docs/wire-format.md` specifies it byte for byte."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from deniable.canonical import canonical
from deniable.core.reports import ID_BYTES
from deniable.errors import CorruptData


@dataclass(frozen=True)
class Submission:
    """The randomised answers of one respondent in one round: rows of bytes by report."""

    collection: str
    id: str
    reports: Mapping[str, bytes]
    round: int = 1
    #: Public values, sent openly.
    fields: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> bytes:
        """The bytes to send, always the same."""
        return canonical(
            {
                "collection": self.collection,
                "fields": dict(self.fields),
                "id": self.id,
                "reports": {name: row.hex() for name, row in self.reports.items()},
                "round": self.round,
            }
        )

    @classmethod
    def from_json(cls, body: bytes) -> Submission:
        """The submission that `to_json` wrote."""
        try:
            data = json.loads(body)
            rows = {name: bytes.fromhex(row) for name, row in data["reports"].items()}
            found = cls(data["collection"], data["id"], rows, data["round"], dict(data["fields"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptData(f"this is not a submission: {error!r}") from error
        return found


def fresh_id() -> str:
    """A name for a submission that says nothing."""
    return os.urandom(ID_BYTES).hex()
