"""Mergeable counts: everything a collector has to keep."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterable
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Counts
from deniable.canonical import canonical, parsed
from deniable.core.mechanism import SPEC_VERSION, Mechanism
from deniable.core.registry import from_spec
from deniable.core.reports import SOURCE_DIGITS, Reports, require_same
from deniable.errors import CorruptData, InvalidArgument, MismatchError, require_type

if TYPE_CHECKING:
    from deniable.estimation import Estimate

MAGIC = b"DNTALLY"
_PREFIX = struct.Struct("<7sBI")
_DIGEST_BYTES = 16
_FINGERPRINTS = 1 << 256
#: Reports in one tally; far below where 64-bit counts would overflow when tallies are merged.
_MOST = 1 << 53
#: Reports that are worth a thread.
_LEAST_PIECE = 1 << 11


class Tally:
    """Counts of the reports of one mechanism: a commutative monoid under `merge`.

    ``n`` is the number of reports. ``fingerprint`` is the sum of SHA-256(id) modulo 2**256 over the
    ``identified`` reports that carried an id: it does not depend on their order, and, unlike an
    exclusive or, a report that was counted twice does not vanish from it. ``sources`` are the
    fingerprints of the files that were counted, where reports came from files: no file is counted
    twice.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        require_type("mechanism", mechanism, Mechanism)
        self.mechanism = mechanism
        self.counts: Counts = np.zeros(mechanism.cells, dtype=np.int64)
        self.n = 0
        self.identified = 0
        self.fingerprint = 0
        self.sources: frozenset[str] = frozenset()

    @classmethod
    def of_counts(cls, mechanism: Mechanism, counts: Counts, n: int) -> Tally:
        """The tally of n reports with these counts, as a kernel or a simulation makes them.

        Run by the collector.
        """
        tally = cls(mechanism)
        if counts.shape != tally.counts.shape:
            raise InvalidArgument("counts", counts.shape, f"{tally.counts.size} counts")
        tally.counts, tally.n = counts.astype(np.int64), n
        return tally

    def add(self, reports: Reports, *, threads: int | None = None) -> Tally:
        """Count more reports; on an error nothing is changed. Returns the tally itself.

        Run by the analyst.
        """
        from deniable.kernels.threads import run, thread_count

        require_type("reports", reports, Reports)
        require_same(self.mechanism, reports.mechanism)
        sources = _joined(self.sources, reports.sources)
        if not len(reports):
            return self
        size = max(_LEAST_PIECE, -(-len(reports) // thread_count(threads)))
        pieces = [reports.data[start : start + size] for start in range(0, len(reports), size)]
        counts = reduce(np.add, run(self.mechanism.count, pieces))
        self._absorb(counts, len(reports), *_fingerprint(reports.ids))
        self.sources = sources
        return self

    def merge(self, other: Tally) -> Tally:
        """A new tally with the reports of both. Run by the analyst."""
        require_type("other", other, Tally)
        require_same(self.mechanism, other.mechanism)
        result = Tally(self.mechanism)
        result.sources = _joined(self.sources, other.sources)
        for part in (self, other):
            result._absorb(part.counts, part.n, part.identified, part.fingerprint)
        return result

    def among(self, candidates: Iterable[str]) -> Tally:
        """The same counts of reports about any text, asked about some texts. Run by the analyst."""
        asked = Tally(self.mechanism.among(candidates))
        asked._absorb(self.counts, self.n, self.identified, self.fingerprint)
        asked.sources = self.sources
        return asked

    def _absorb(self, counts: Any, n: int, identified: int, fingerprint: int) -> None:
        self.counts = self.counts + counts
        self.n += n
        self.identified += identified
        self.fingerprint = (self.fingerprint + fingerprint) % _FINGERPRINTS

    def estimate(self, method: str | None = None, **choices: Any) -> Estimate:
        """Numbers with standard errors and intervals; choices as in `deniable.combine`.

        Run by the analyst.
        """
        return self.mechanism.task.estimate([self], method, **choices)

    def to_bytes(self) -> bytes:
        """Magic, version, header length, header, counts (little-endian), digest: see `seal`.

        Run by the analyst.
        """
        header: dict[str, Any] = {
            "spec": self.mechanism.to_spec(),
            "n": self.n,
            "identified": self.identified,
            "fingerprint": f"{self.fingerprint:064x}",
        }
        if self.sources:
            header["sources"] = sorted(self.sources)
        return seal(MAGIC, header, self.counts.astype("<i8").tobytes())

    @classmethod
    def from_bytes(cls, data: bytes, mechanism: Mechanism | None = None) -> Tally:
        """The tally that `to_bytes` wrote; of ``mechanism``, if the caller expects one.

        Run by the analyst.
        """
        header, counts = _open(data)
        stored = from_spec(header["spec"])
        if mechanism is not None:
            require_same(mechanism, stored)
        n, identified = header["n"], header["identified"]
        if counts.size != stored.cells or not stored.possible_counts(counts, n):
            raise CorruptData(f"these counts are not those of {n} reports of {stored!r}")
        tally = cls(stored)
        tally._absorb(counts, n, identified, int(header["fingerprint"], 16))
        tally.sources = frozenset(header.get("sources", ()))
        return tally

    def __reduce__(self) -> tuple[Any, ...]:
        return (Tally.from_bytes, (self.to_bytes(),))

    def __eq__(self, other: object) -> bool:
        return self.to_bytes() == other.to_bytes() if isinstance(other, Tally) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<tally of {self.n} reports of {self.mechanism!r}>"


def _joined(ours: frozenset[str], theirs: frozenset[str]) -> frozenset[str]:
    """The files of both, unless they share one."""
    if twice := ours & theirs:
        files = "1 file was" if len(twice) == 1 else f"{len(twice):,} files were"
        raise MismatchError(f"{files} counted before: their reports would count twice")
    return ours | theirs


def _fingerprint(ids: NDArray[np.uint8] | None) -> tuple[int, int]:
    if ids is None:
        return 0, 0
    digests = (hashlib.sha256(row.tobytes()).digest() for row in ids)
    return len(ids), sum(int.from_bytes(d, "big") for d in digests) % _FINGERPRINTS


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()[:_DIGEST_BYTES]


def seal(magic: bytes, header: dict[str, Any], content: bytes) -> bytes:
    """Magic, version, header length, header in canonical JSON, content, digest."""
    text = canonical(header)
    body = _PREFIX.pack(magic, SPEC_VERSION, len(text)) + text + content
    return body + _digest(body)


def unseal(magic: bytes, data: bytes, name: str) -> tuple[Any, bytes]:
    """The header and the content, if `seal` wrote these bytes in a version we know."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise InvalidArgument("data", data, "bytes")
    data = bytes(data)
    if len(data) < _PREFIX.size + _DIGEST_BYTES or not data.startswith(magic):
        raise CorruptData(f"these {len(data)} bytes are not a {name}")
    _, version, length = _PREFIX.unpack_from(data)
    if version == 1:
        raise CorruptData(f"this {name} was made by version 0.1, which was never released")
    if version != SPEC_VERSION:
        raise CorruptData(f"{name} version {version} is not known here (only {SPEC_VERSION})")
    body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if _digest(body) != digest:
        raise CorruptData(f"the {name} is truncated or was altered: its digest does not fit")
    header, content = body[_PREFIX.size :][:length], body[_PREFIX.size + length :]
    return parsed(header, f"{name}'s header"), content


def _open(data: bytes) -> tuple[dict[str, Any], Counts]:
    """The header and the counts of a whole tally."""
    header, counts = unseal(MAGIC, data, "tally")
    if len(counts) % 8:
        raise CorruptData(f"the tally is not whole: {len(counts)} bytes of counts")
    return _checked_header(header), np.frombuffer(counts, dtype="<i8")


def _checked_header(header: Any) -> dict[str, Any]:
    """The header, if it has the right keys and its numbers can be those of a tally."""
    keys = {"spec", "n", "identified", "fingerprint"}
    if not isinstance(header, dict) or set(header) - {"sources"} != keys:
        raise CorruptData(f"the tally's header must have the keys {sorted(keys)}")
    n, identified, fingerprint = header["n"], header["identified"], header["fingerprint"]
    numbers = type(n) is int and type(identified) is int and 0 <= identified <= n <= _MOST
    if not numbers or not re.fullmatch("[0-9a-f]{64}", str(fingerprint)):
        raise CorruptData("the tally's header has numbers that no tally has")
    if not _are_sources(header.get("sources", ["0" * SOURCE_DIGITS])):
        raise CorruptData("the tally's header has sources that no tally has")
    return header


def _are_sources(found: Any) -> bool:
    """Whether these are the fingerprints of some files, in ascending order."""
    texts = isinstance(found, list) and all(isinstance(one, str) for one in found)
    if not texts or not found or found != sorted(set(found)):
        return False
    return all(re.fullmatch(f"[0-9a-f]{{{SOURCE_DIGITS}}}", one) for one in found)
