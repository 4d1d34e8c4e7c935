"""The client of a collection: answers in, randomised reports out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from deniable.collection.batches import MEDIA_TYPE, Batch
from deniable.collection.manifest import Collection
from deniable.collection.responding import coin_words, indices, respond
from deniable.collection.survey import read_survey
from deniable.collection.transport import Transport
from deniable.collection.wire import Submission, fresh_id, kept_once
from deniable.errors import InvalidArgument, MismatchError, StoreUnavailable, require_int
from deniable.longitudinal.memo import Memo
from deniable.longitudinal.memo_file import FileMemo
from deniable.randomness import WORD_BYTES, ByteCoins

#: Respondents in one batch.
BATCH_ROWS = 500_000


class Client:
    """Takes part in a collection.

    ``source`` is the address of a collector, or a file: a survey (TOML) or a published manifest;
    with a file ``url`` says where to send to. ``digest``, if given, must be that of the
    manifest: whoever was told it elsewhere knows what it answers. ``memo`` is a folder for what a
    device remembers between rounds. ``key`` is needed where the collector asks for one.
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        *,
        url: str | None = None,
        digest: str | None = None,
        memo: str | os.PathLike[str] | None = None,
        key: str | None = None,
        timeout: float = 30.0,
        attempts: int = 6,
        insecure: bool = False,
    ) -> None:
        if not isinstance(source, (str, os.PathLike)):
            raise InvalidArgument("source", source, "the address of a collector, or a file")
        remote = isinstance(source, str) and "://" in source
        address = str(source) if remote else url
        self._transport = None
        if address is not None:
            options: dict[str, Any] = {"timeout": timeout, "attempts": attempts}
            self._transport = Transport(address, insecure=insecure, **options)
        self.collection = (
            Collection.from_manifest(self._sending.get("/v1/manifest"))
            if remote
            else read_survey(Path(source))
        )
        if digest is not None and digest != self.collection.digest:
            found = f"this is collection {self.collection.digest}"
            raise MismatchError(f"{found}, not {digest}: nothing was answered")
        self._memo = None if memo is None else Path(memo)
        if key is not None and not (isinstance(key, str) and key.isascii() and key.isprintable()):
            raise InvalidArgument("key", "...", "printable ASCII")
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}

    def __repr__(self) -> str:
        return f"<client of {self.collection.title!r}, {self.collection.digest[:12]}>"

    def answer(self, answers: Mapping[str, Any], round: int = 1) -> bool:  # noqa: A002
        """Randomise the answers of one respondent and send them.

        True if they were counted now, False if this very submission had been counted before. If the
        collector does not answer, `StoreUnavailable` carries the submission: send that again with
        ``client.send(error.prepared)``. To answer anew would count, and cost, twice.
        """
        return self.send(self.prepare(answers, round))

    def prepare(self, answers: Mapping[str, Any], round: int = 1) -> Submission:  # noqa: A002
        """What would be sent: look at it, keep it, send it as often as you like.

        With a folder for the memo, a round is prepared once: later calls return the same, whatever
        the answers. Without, preparing twice makes two submissions that both count, and both cost.
        """
        collection = self.collection
        require_int("round", round, 1, collection.rounds)
        values = indices(collection, answers)
        if self._memo is None:
            return self._made(values, round)
        self._memo.mkdir(parents=True, exist_ok=True)
        return kept_once(
            self._file(f"round-{round}"), lambda: self._made(values, round), collection.digest
        )

    def _made(self, values: list[int], number: int) -> Submission:
        collection = self.collection
        memos = self._memos()
        coins = ByteCoins(os.urandom(coin_words(collection) * WORD_BYTES))
        rows = respond(collection, values, coins, memos)
        coins.finish()
        return Submission(collection.digest, fresh_id(), rows, number)

    def send(self, prepared: Submission | Batch) -> bool:
        """Send what was prepared; again with the same id until the collector answers."""
        if isinstance(prepared, Submission):
            path, kind, body = "/v1/submissions", "application/json", prepared.to_json()
        elif isinstance(prepared, Batch):
            path, kind, body = "/v1/batches", MEDIA_TYPE, prepared.body
        else:
            raise InvalidArgument("prepared", prepared, "what prepare or privatize_table made")
        try:
            answer = self._sending.post(path, body, {"Content-Type": kind, **self._headers})
        except StoreUnavailable as error:
            error.prepared = prepared
            raise
        return answer.status == 201

    def privatize_table(
        self,
        table: Any,
        round: int = 1,  # noqa: A002
        *,
        rows: int = BATCH_ROWS,
    ) -> Iterator[Batch]:
        """Randomise many records, one respondent a row: batches of at most ``rows``.

        ``table`` is a Parquet file, a pandas or Polars frame, or an Arrow table with a column
        for each question. What a batch does not say is who is in it, but its rows have the order of
        the table.
        """
        from deniable.collection.tables import privatized

        require_int("round", round, 1, self.collection.rounds)
        require_int("rows", rows, 1, 1 << 31)
        return privatized(self.collection, table, round, rows)

    def send_all(self, batches: Iterable[Batch]) -> int:
        """Send many batches; returns how many respondents were counted now.

        If the collector does not answer, send ``error.prepared`` again and then the rest of the
        same ``batches``: to privatise the table anew would count those before twice.
        """
        return sum(batch.n for batch in batches if self.send(batch))

    def enrol(self) -> None:
        """Begin the memos of a respondent who takes part in rounds: once, with their consent."""
        collection = self.collection
        self._folder.mkdir(parents=True, exist_ok=True)
        for question in filter(collection.remembered, collection.questions):
            mechanism: Any = question.mechanism
            most = collection.changes + 1
            FileMemo.enrol(self._file(question.name), mechanism, collection.digest, most=most)

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def _sending(self) -> Transport:
        if self._transport is None:
            raise InvalidArgument("url", None, "given: the address of the collector to send to")
        return self._transport

    @property
    def _folder(self) -> Path:
        if self._memo is None:
            raise InvalidArgument("memo", None, "a folder: this collection has rounds")
        return self._memo

    def _file(self, name: str) -> Path:
        return self._folder / f"{self.collection.digest[:16]}-{name}"

    def _memos(self) -> dict[str, Memo]:
        collection = self.collection
        memos: dict[str, Memo] = {}
        for question in filter(collection.remembered, collection.questions):
            mechanism: Any = question.mechanism
            memos[question.name] = FileMemo(self._file(question.name), mechanism, collection.digest)
        return memos
